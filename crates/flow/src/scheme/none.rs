//! `none`: no flow control. Everybody may always send, and the network's back-pressure is all that holds a sender when
//! a mailbox is full. The reference that the other schemes are measured against.

use super::interface::Scheme;
use crate::{Config, Past, PeerId, Regions};

/// Nothing to remember.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NoFlowControl;

impl Scheme for NoFlowControl {
    fn new(_config: &Config, _regions: Regions) -> Self {
        NoFlowControl
    }

    /// Earlier packets leave no trace.
    fn age(&mut self, _peer: PeerId, _past: Past) -> bool {
        true
    }
}
