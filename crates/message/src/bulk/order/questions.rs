//! [`Questions`]: whom we have asked whether it is free (`booking`), and who has not answered yet.
//!
//! Two may ask one sender: the turns of the endpoint, and those of a link that reads the sender's memory. To the sender
//! both are one receiver, which asks once and is answered once. So a second question waits for the answer to the first,
//! and the answer is for whoever asked.

use tidegate_flow::{PeerId, Peers};

/// See the module.
#[derive(Debug)]
pub(crate) struct Questions {
    open: Peers<bool, 64>,
}

impl Questions {
    /// Most heap bytes: all `peers` have been asked.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<bool, 64>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32) -> Self {
        Questions { open: Peers::new(peers, ()) }
    }

    /// Somebody asks. Returns whether the question has to leave.
    pub(crate) fn ask(&mut self, sender: PeerId) -> bool {
        !std::mem::replace(self.open.of(sender), true)
    }

    /// A sender answers. `false`: nobody has asked it.
    pub(crate) fn take(&mut self, sender: PeerId) -> bool {
        self.open.forget(sender).unwrap_or(false)
    }
}
