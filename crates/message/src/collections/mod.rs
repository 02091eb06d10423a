//! Collections that know nothing of messages: lists whose elements have positions, indices of them, and slabs whose
//! elements have names.

pub(crate) mod index;
pub(crate) mod learned;
pub(crate) mod list;
pub(crate) mod slab;
pub(crate) mod steps;
