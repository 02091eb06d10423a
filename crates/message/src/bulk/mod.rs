//! Long messages on their way in (`sends` has the rendezvous): which are being pulled, and by which way.

mod gate;
mod pull;
mod way;

use crate::link::Buffer;

pub(crate) use gate::{Gate, Pieces};
pub(crate) use pull::{Next, Part, Pull, Pulls, Waited};
pub(crate) use way::Way;

/// See the module.
#[derive(Debug)]
pub(crate) struct Bulk<B> {
    pub(crate) gate: Gate,
    /// Messages of peers that are being pulled.
    pub(crate) pulls: Pulls<B>,
}

impl<B: Buffer> Bulk<B> {
    pub(crate) fn new() -> Self {
        Bulk { gate: Gate::default(), pulls: Pulls::new() }
    }
}
