//! Collections that know nothing of messages: lists whose elements have positions, indices of them, slabs whose
//! elements have names, and tables of peers that are busy.

pub(crate) mod busy_peers;
pub(crate) mod index;
pub(crate) mod learned;
pub(crate) mod list;
pub(crate) mod slab;
pub(crate) mod steps;
