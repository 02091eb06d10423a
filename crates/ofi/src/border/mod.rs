//! The border to C: libfabric's interface, its error numbers and log, the libfabric that loaded us, and where panics
//! end.

#[allow(unsafe_op_in_unsafe_fn)]
pub mod bindings;
pub(crate) mod caller;
pub(crate) mod errno;
pub(crate) mod guard;
pub(crate) mod identity;
pub(crate) mod loader;
pub(crate) mod log;
pub(crate) mod misuse;
pub(crate) mod object;
