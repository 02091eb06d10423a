//! The provider as applications meet it: C programs over the installed libfabric, its tools, its headers. Each program
//! is a process of its own, so tests share nothing but the folder in which programs are kept that have been compiled.

mod toolbox;

mod bindings;
mod closing;
mod forking;
mod information;
mod memory;
mod programs;
mod strangers;
