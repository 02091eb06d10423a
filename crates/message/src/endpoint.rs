//! The endpoint: the one submit path of every operation, and progress.

use crate::operation::{AtomicRequest, Context, EndpointConfig, ReadRequest, Receive, Send, Target, TryAgain, WriteRequest};
use crate::{Access, Completion, Link};
use tidegate_flow::{ConfigError, PeerId};

/// One endpoint over a link.
///
/// Submit operations, call [`progress`](Self::progress) again and again, take what [`poll_completion`](Self::poll_completion)
/// returns. Operations to one peer keep their order.
#[derive(Debug)]
pub struct Endpoint<L: Link> {
    link: L,
}

impl<L: Link> Endpoint<L> {
    /// An endpoint with nothing outstanding.
    pub fn new(config: EndpointConfig, link: L) -> Result<Self, ConfigError> {
        let _ = config;
        Ok(Endpoint { link })
    }
    /// The environment.
    pub fn link(&self) -> &L {
        &self.link
    }
    /// The environment.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }
    /// Sends a message, eagerly or by rendezvous.
    pub fn send(&mut self, _send: Send<L::Buffer>) -> Result<(), TryAgain> {
        todo!()
    }
    /// Posts a receive, or peeks, claims, discards.
    pub fn receive(&mut self, _receive: Receive<L::Buffer>) -> Result<(), TryAgain> {
        todo!()
    }
    /// Cancels the receive of this context, if it has not matched: it completes with `Failure::Canceled`. Returns whether.
    pub fn cancel(&mut self, _context: Context) -> bool {
        todo!()
    }
    /// RMA write.
    pub fn write(&mut self, _write: WriteRequest<L::Buffer>) -> Result<(), TryAgain> {
        todo!()
    }
    /// RMA read.
    pub fn read(&mut self, _read: ReadRequest<L::Buffer>) -> Result<(), TryAgain> {
        todo!()
    }
    /// Remote atomic.
    pub fn atomic(&mut self, _atomic: AtomicRequest<L::Buffer>) -> Result<(), TryAgain> {
        todo!()
    }
    /// Lets peers address `buffer` by `key`, for what `access` lists. (The shared-memory link publishes it as well, for direct
    /// access: `ShmLink::publish_region`.)
    pub fn register(&mut self, _key: u64, _buffer: L::Buffer, _access: &[Access]) {
        todo!()
    }
    /// Ends that.
    pub fn deregister(&mut self, _key: u64) {
        todo!()
    }
    /// Retrieves packets, moves bulk data, sends what waited. Bounded work. Returns whether anything happened.
    pub fn progress(&mut self) -> bool {
        todo!()
    }
    /// The next operation that ended.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        todo!()
    }
    /// Whether anything that the application believes sent has not left yet; progress until it is `false` before closing.
    pub fn has_unsent(&self) -> bool {
        todo!()
    }
    /// Credits towards a peer, for display.
    pub fn credits(&self, _peer: PeerId) -> u32 {
        todo!()
    }
    /// Largest payload that one packet carries beside the message header: 40 bytes.
    pub const SINGLE_PACKET_BYTES: usize = 40;
    #[doc(hidden)]
    pub fn _target(_: Target) {}
}
