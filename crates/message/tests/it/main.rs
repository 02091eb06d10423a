//! Endpoints, over a network in memory whose every delay a seed decides; and parts of them by themselves.

mod support;

mod atomic_apply;
mod endpoint;
mod explore;
mod wire;
