//! [`Network`]: what the protocol needs of the network below. It is unreliable in one way only: it may lose what it had
//! accepted, when a connection breaks that nobody but itself knows of. It may also change the order of batches and,
//! since batches are sent again, deliver one twice.

use std::fmt;

/// Most bytes of an address of the network below: what a [`Contact`](super::contact::Contact) has room for.
pub const LOWER_ADDRESS_MOST: usize = 24;

/// An address of the network below, as bytes that only that network reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LowerAddress {
    length: u8,
    bytes: [u8; LOWER_ADDRESS_MOST],
}

impl LowerAddress {
    /// `None`: there is no room for so many bytes.
    pub fn new(bytes: &[u8]) -> Option<LowerAddress> {
        let mut address = LowerAddress { length: bytes.len() as u8, bytes: [0; LOWER_ADDRESS_MOST] };
        address.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(address)
    }

    /// Its bytes; none: there is no network below.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether it leads nowhere.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// For people who look for the address in a log of the network below.
impl fmt::Display for LowerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Names a peer to the network below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route(pub u64);

/// Names one sending to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u64);

/// What became of a try to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The network has taken a copy. An event will tell how it ended, which says nothing of whether it has arrived.
    Taken,
    /// The way to this peer cannot take it now: it is full, or is being connected.
    Again,
    /// All buffers are in use, whoever the peer is.
    NoBuffer,
    /// The network refuses; the text says why.
    Failed(String),
}

/// What has happened below.
#[derive(Debug, PartialEq, Eq)]
pub enum NetworkEvent<'a> {
    /// Bytes have come, from anybody.
    Received(&'a [u8]),
    /// A sending has ended: the network is done with it.
    Sent(Token),
    /// A sending has failed; the text says why. It may have arrived all the same.
    Failed(Token, String),
}

/// A network of datagrams of up to [`BATCH_BYTES`](super::wire::BATCH_BYTES). Dropping it ends all sendings.
pub trait Network {
    /// Where others reach us.
    fn address(&self) -> LowerAddress;

    /// Makes a peer known. Errors are for people: they name the address and what is wrong.
    fn resolve(&mut self, address: &LowerAddress) -> Result<Route, String>;

    /// Nothing more is sent by this route.
    fn forget(&mut self, route: Route);

    /// Starts to send a batch, of which it takes a copy. Does not wait.
    fn send(&mut self, to: Route, token: Token, batch: &[u8]) -> Sending;

    /// Makes progress, and tells what has happened. What was received is lent until the next call.
    fn poll(&mut self) -> Option<NetworkEvent<'_>>;

    /// Whether the peer's host says at this moment that nobody listens at the peer's address: proof that the peer's
    /// process has ended, or that something on the way resets connections. `None`: that cannot be found out.
    fn is_refused(&mut self, _route: Route) -> Option<bool> {
        None
    }
}
