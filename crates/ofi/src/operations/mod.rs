//! Operations: what the calls describe, the one path of all of them into the message layer, and where they go.

pub(crate) mod atomics;
pub(crate) mod operation;
pub(crate) mod recording;
pub(crate) mod remote;
pub(crate) mod submit;
pub(crate) mod targets;
pub(crate) mod transfer;
