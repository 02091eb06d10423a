//! The techniques, a file or folder each, what all of them answer (`interface.rs`), and what those
//! without coordination share (`sending.rs`).

pub(crate) mod bandwidth_matching;
pub(crate) mod barriers;
pub(crate) mod booking;
pub(crate) mod in_order;
pub(crate) mod interface;
pub(crate) mod interleave;
pub(crate) mod receiver_tokens;
pub(crate) mod sending;
pub(crate) mod tokens;
