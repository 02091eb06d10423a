//! One file per scheme.

pub(crate) mod dynamic;
pub(crate) mod none;
pub(crate) mod static_credits;
