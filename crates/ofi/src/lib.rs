//! `libtidegate-fi.so`: the libfabric provider `tidegate`.
//!
//! libfabric finds the library, calls [`provider::fi_prov_ini`], and from then on the functions in the tables of the files
//! below, which are named after libfabric's objects and calls:
//!
//! | files | what they are |
//! |---|---|
//! | `provider`, `loader` | the way in, and the way back to the libfabric that loaded us |
//! | `info`, `parameter`, `launcher` | what is offered, what the user set, what the launcher told |
//! | `name`, `host` | what addresses say, and which hosts they may name |
//! | `fabric`, `domain`, `endpoint`, `address_vector`, `completion_queue`, `counter`, `event_queue`, `memory_region` | the objects |
//! | `closing` | `fi_close` of an endpoint |
//! | `tagged`, `message`, `rma`, `atomic` | the transfer calls: thin, they describe and pass on |
//! | `transfer`, `submit` | the one path of all operations into the message layer, and of completions back |
//! | `object`, `guard`, `lock`, `wait`, `sleepers`, `log` | handles, the border to C, threads, sleeping, log lines |
//!
//! Every call enters its domain (`Domain::enter`): that takes the lock where the application needs one, and keeps panics from
//! reaching C. State is only reachable with the proof of having entered, so the compiler knows that no two calls mix.

mod address_vector;
mod atomic;
#[allow(unsafe_op_in_unsafe_fn)]
pub mod bindings;
mod closing;
mod completion_queue;
mod counter;
mod domain;
mod endpoint;
mod errno;
mod event_queue;
mod fabric;
mod guard;
mod host;
mod identity;
mod info;
pub mod launcher;
mod limits;
mod loader;
mod lock;
mod log;
mod memory_region;
mod message;
mod name;
mod object;
pub mod parameter;
mod place;
pub mod provider;
mod rma;
mod sleepers;
mod submit;
mod tagged;
mod transfer;
mod wait;
