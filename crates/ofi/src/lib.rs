//! `libtidegate-fi.so`: the libfabric provider `tidegate`.
//!
//! libfabric finds the library, calls [`provider::fi_prov_ini`], and from then on the functions in the tables of the files
//! below, which are named after libfabric's objects and calls:
//!
//! | files | what they are |
//! |---|---|
//! | `provider`, `loader` | the way in, and the way back to the libfabric that loaded us |
//! | `info`, `parameter`, `launcher` | what is offered, what the user set, what the launcher told |
//! | `fabric`, `domain`, `endpoint`, `address_vector`, `completion_queue`, `counter`, `event_queue`, `memory_region` | the objects |
//! | `tagged`, `message`, `rma`, `atomic` | the transfer calls: thin, they describe and pass on |
//! | `transfer`, `submit` | the one path of all operations into the message layer, and of completions back |
//! | `object`, `guard`, `lock`, `wait`, `log` | handles, the border to C, threads, sleeping, log lines |
//!
//! Every call enters its domain (`Domain::enter`): that takes the lock where the application needs one, and keeps panics from
//! reaching C. State is only reachable with the proof of having entered, so the compiler knows that no two calls mix.

pub mod address_vector;
pub mod atomic;
#[allow(unsafe_op_in_unsafe_fn)]
pub mod bindings;
pub mod completion_queue;
pub mod counter;
pub mod domain;
pub mod endpoint;
pub mod event_queue;
pub mod fabric;
pub mod guard;
pub mod info;
pub mod launcher;
pub mod loader;
pub mod lock;
pub mod log;
pub mod memory_region;
pub mod message;
pub mod object;
pub mod parameter;
pub mod provider;
pub mod rma;
pub mod submit;
pub mod tagged;
pub mod transfer;
pub mod wait;
