//! What an endpoint costs that has many peers. A program of its own: its allocator counts bytes.

mod mirror;

mod departed;
mod idle;
mod newcomers;
mod silent;

#[global_allocator]
static COUNTING: mirror::Counting = mirror::Counting;
