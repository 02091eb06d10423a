//! What moves in a world of posted buffers: frames, channels, senders, steps.

use std::collections::VecDeque;
use tidegate_flow::{PAYLOAD_BYTES, Packet, PacketKind, SendQueue};

/// What lies in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A message, or a part of one.
    Data { packets: u8, riding: u16, waited: bool, number: u8 },
    /// A credit packet.
    Credit(u32),
}

impl Frame {
    pub fn packets(self) -> Vec<Packet> {
        match self {
            Frame::Credit(credits) => vec![Packet::with_credits(PacketKind::Credit, credits)],
            Frame::Data { packets, riding, waited, .. } => {
                let mut last = Packet::new(PacketKind::Data, 0, 0);
                last.header = last.header.ending_buffer();
                if waited {
                    last.header = last.header.after_waiting();
                }
                if riding > 0 {
                    last.set_piggyback(riding);
                }
                let first = Packet::new(PacketKind::Data, PAYLOAD_BYTES, 0);
                (1..packets).map(|_| first).chain([last]).collect()
            }
        }
    }

    pub fn costs_credit(self) -> bool {
        matches!(self, Frame::Data { .. })
    }

    /// Credits that it brings.
    pub fn returns(self) -> u32 {
        match self {
            Frame::Credit(credits) => credits,
            Frame::Data { riding, .. } => riding.into(),
        }
    }
}

/// What is on its way in one direction between two endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Channel {
    /// What the sender's adapter has, if it may be refused late.
    pub unaccepted: SendQueue<Frame>,
    /// A copy of the same, to look at.
    pub frames: VecDeque<Frame>,
    /// Numbers of those that are in the network.
    pub in_network: VecDeque<u32>,
    /// What has a buffer and was not retrieved.
    pub arrived: VecDeque<Frame>,
    /// Messages retrieved, buffer by buffer. Counted where messages are few.
    pub messages: u32,
    /// Messages written and messages retrieved, modulo 16. Counted where messages are few.
    pub numbers: (u8, u8),
    /// Retries that failed although the sender was due a buffer and the pool had got one since the last.
    pub passed_over: u8,
    /// Whether the pool has got a buffer since this sender was refused last.
    pub has_got: bool,
}

/// What a flow's application and backlog hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sender {
    /// Messages it will still begin.
    pub left: Option<u8>,
    /// Messages that wait.
    pub waiting: u8,
    /// Packets that the first of them has left, if some have gone.
    pub part: u8,
}

/// A step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The application of a flow sends a message.
    Send { flow: u8 },
    /// A frame leaves the adapter of a channel's sender.
    Transmit { channel: u8 },
    /// The frame that is first in the network arrives.
    Arrive { channel: u8 },
    /// The frame that came first is retrieved and processed.
    Retrieve { channel: u8 },
    /// The timer of a sender's adapter runs out.
    Retry { channel: u8 },
    /// The first of an endpoint's timers runs out.
    Timeout { endpoint: u8 },
    /// So much time passes that all of an endpoint's timers run out.
    LongTimeout { endpoint: u8 },
    /// The event of an endpoint's pool is handled.
    Limit { endpoint: u8 },
    /// An endpoint dies, perhaps between taking a buffer and filling it; another process takes its place.
    Restart { endpoint: u8, takes: bool },
}
