//! [`Network`]: what the protocol needs of the network below. It is unreliable in one way only: it may lose what it had
//! accepted, when a connection breaks that nobody but itself knows of. It may also change the order of batches and,
//! since batches are sent again, deliver one twice.

use super::kind::NetworkKind;
use super::wire::LONGEST_BATCH_BYTES;
use crate::memory::IoBuffer;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use tidegate_message::{RemoteMemory, Span};

/// Most bytes of an address of the network below: what a [`Contact`](super::contact::Contact) has room for.
pub const LOWER_ADDRESS_MOST: usize = 32;

/// An address of the network below, as bytes that only that network reads. Addresses of sockets are as the kernel has
/// them, but those of IPv6 without the four bytes of the flow label: so a contact has room for settings behind them.
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

/// Bytes of an address of a socket: of IPv4, and of IPv6 without its flow label.
const SOCKET_BYTES: [usize; 2] = [16, 24];

impl LowerAddress {
    /// The socket that it is the address of, if it looks like one.
    pub fn socket(&self) -> Option<SocketAddr> {
        let bytes = self.as_bytes();
        let (family, port) = (bytes.first_chunk::<2>()?, bytes.get(2..)?.first_chunk::<2>()?);
        let (family, port) = (i32::from(u16::from_ne_bytes(*family)), u16::from_be_bytes(*port));
        match (family, bytes.len()) {
            (libc::AF_INET, length) if length == SOCKET_BYTES[0] => {
                Some((Ipv4Addr::from(*bytes[4..].first_chunk::<4>()?), port).into())
            }
            (libc::AF_INET6, length) if length == SOCKET_BYTES[1] => {
                let (ip, scope) = (bytes[4..].first_chunk::<16>()?, bytes[20..].first_chunk::<4>()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, 0, u32::from_ne_bytes(*scope)).into())
            }
            _ => None,
        }
    }
}

/// For people: as they would write it, if it is that of a socket; else as a log of the network below may have it.
impl fmt::Display for LowerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = self.socket() {
            return socket.fmt(f);
        }
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

/// Names a connection that nobody uses, made to find out whether somebody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe(pub u64);

/// Where a connection of which nobody makes use is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeTarget {
    /// The peer's own address.
    Peer,
    /// Another port of the same host, at which nobody listens.
    Host,
}

/// A port at which a process answers each connection with a number, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The port.
    pub at: SocketAddr,
    /// The number: random, so that another process at an address of the same bytes is told from this one.
    pub name: u64,
}

/// What has become of a connection that nobody uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// None yet: the host is out of reach, or too many wait there for a process that takes no connections now.
    None,
    /// The process at the port has said this number ([`Watched::name`]), and has closed it.
    Named(u64),
    /// It is there, for as long as the other host's kernel says so when it is asked, which happens by itself.
    Taken,
    /// It was there, and is no more: whoever had it has closed it or has ended, or its host answers nothing any more,
    /// or it was never complete, because the queue of its port was full.
    Ended,
    /// Nobody listens there, or something on the way resets connections.
    Refused,
    /// There is no way to the host; the text says why.
    Unreachable(String),
    /// This host lacks what a connection takes; the text says what.
    Lacking(String),
}

/// What has happened below.
#[derive(Debug, PartialEq, Eq)]
pub enum NetworkEvent<'a> {
    /// Bytes have come, from anybody.
    Received(&'a [u8]),
    /// Something has come that could not be received: it is longer than a batch, or its connection broke on the way.
    /// That says something of its sender, whoever it is, and nothing of the network.
    Dropped,
    /// A sending has ended: the network is done with it.
    Sent(Token),
    /// A sending has failed; the text says why. It may have arrived all the same.
    Failed(Token, String),
    /// All bytes of a chunk are in place.
    Read(Token),
    /// The reading of a chunk has failed; the text says why. Nothing is written to its memory any more.
    ReadFailed(Token, String),
    /// Nothing will ever come or go by it again; the text says why.
    Broken(String),
}

/// A network of datagrams of up to [`longest_batch`](Network::longest_batch) bytes, which may also read
/// memory of peers that have exposed it. Dropping it ends all sendings and reads.
pub trait Network {
    /// Where others reach us.
    fn address(&self) -> LowerAddress;

    /// Which network it is.
    fn kind(&self) -> NetworkKind {
        NetworkKind::OTHER
    }

    /// Most bytes of a batch that had better go by it, at least [`SHORT_BATCH_BYTES`](super::wire::SHORT_BATCH_BYTES).
    fn longest_batch(&self) -> usize {
        LONGEST_BATCH_BYTES
    }

    /// Makes a peer known. Errors are for people: they name the address and what is wrong.
    fn resolve(&mut self, address: &LowerAddress) -> Result<Route, String>;

    /// What the user may have set wrong if nobody ever answers at this address, and the remedy.
    fn doubt(&self, _address: &LowerAddress) -> Option<String> {
        None
    }

    /// Nothing more is sent by this route.
    fn forget(&mut self, route: Route);

    /// Starts to send a batch, of which it takes a copy. Does not wait.
    fn send(&mut self, to: Route, token: Token, batch: &[u8]) -> Sending;

    /// The same for a batch that does not change until an event tells the end: the network may share it instead.
    fn send_kept(&mut self, to: Route, token: Token, batch: &Arc<Vec<u8>>) -> Sending {
        self.send(to, token, batch)
    }

    /// Makes progress, and tells what has happened. What was received is lent until the next call.
    fn poll(&mut self) -> Option<NetworkEvent<'_>>;

    /// Whether memory can be read by it, by peers and by us: then the following three are there.
    fn reads_memory(&self) -> bool {
        false
    }

    /// Lets peers read memory of ours, until it is [hidden](Self::hide). Returns the key, which is not 0, and replaces
    /// the addresses of its pieces by those that peers have to name. `None`: this memory cannot be read.
    fn expose(&mut self, _memory: &IoBuffer, _pieces: &mut [Span]) -> Option<u64> {
        None
    }

    /// Ends what [`expose`](Self::expose) began.
    fn hide(&mut self, _key: u64) {}

    /// Starts to read a contiguous piece of a peer's memory into as many bytes of ours, in one piece, which the network
    /// has until an event tells the end. Does not wait.
    fn read(&mut self, _from: Route, _token: Token, _memory: RemoteMemory, _into: IoBuffer) -> Sending {
        Sending::Failed("this network reads no memory".into())
    }

    /// The host that a route leads to, if connections to it can be tried, and so found out whether somebody is there:
    /// then the following three are there.
    fn host(&self, _route: Route) -> Option<IpAddr> {
        None
    }

    /// Where the kernel of this host may be asked for this process, where that is another socket than its address, and
    /// the network tells nothing of processes that have ended: peers are told.
    fn watched(&self) -> Option<Watched> {
        None
    }

    /// Answers those who have connected there. To be called now and then.
    fn tend(&mut self) {}

    /// Whether an answer may go to the address of a stranger. A network that keeps all addresses that it was ever told
    /// must not be told any by strangers.
    fn may_answer(&self, _stranger: &LowerAddress) -> bool {
        true
    }

    /// The peer of a route has said where its kernel may be asked for it. From now on [`host`](Self::host) and
    /// [`probe`](Self::probe) do.
    fn watch(&mut self, _route: Route, _at: SocketAddr) {}

    /// Tries a connection that nobody will use. Does not wait. Errors are answers that are there at once.
    fn probe(&mut self, _route: Route, _target: ProbeTarget) -> Result<Probe, Answer> {
        Err(Answer::None)
    }

    /// What has become of it.
    fn answer(&mut self, _probe: Probe) -> Answer {
        Answer::None
    }

    /// Ends it.
    fn close(&mut self, _probe: Probe) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_sockets_are_shown_as_people_write_them() {
        let show = |bytes: &[u8]| LowerAddress::new(bytes).unwrap().to_string();
        let four = [&(libc::AF_INET as u16).to_ne_bytes()[..], &[0xa1, 0x10, 172, 17, 0, 1], &[0; 8]].concat();
        assert_eq!(show(&four), "172.17.0.1:41232");
        let mut six = [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &[0, 80], &[0; 20]].concat();
        six[19] = 1;
        assert_eq!((show(&six), show(&[2, 0xff]), show(&[])), ("[::1]:80".into(), "02ff".into(), String::new()));
    }
}
