//! One file or folder per scheme; beside them what a scheme has to say ([`interface`]), the table of all ([`table`]),
//! and the one that an endpoint has chosen ([`chosen`]).

pub(crate) mod chosen;
mod dynamic;
mod growing;
pub(crate) mod interface;
mod none;
mod preposted;
#[cfg(debug_assertions)]
mod refuse_third;
mod rnr;
mod shared_window;
mod speculative;
mod static_credits;
pub(crate) mod table;
