//! Links: endpoints in shared memory, in this process and in others, and one endpoint over two links.
//!
//! Tests that fork, use up descriptors or register handlers do so in processes of their own: [`support::Process`]
//! starts this program again for one function alone, whose name begins with `role_`.

mod support;

mod bulk;
mod carried;
mod forks;
mod hindrances;
mod killed_writers;
mod many_peers;
mod paths;
mod pool_of_slots;
mod posted_buffers;
mod segments;
mod services;
mod shm;
mod survival;
