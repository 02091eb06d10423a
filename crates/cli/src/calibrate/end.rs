//! [`End`]: an endpoint over shared memory with one peer, as a program uses it.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use tidegate_flow::{Config, PeerId, SchemeName};
use tidegate_link::{Address, IoBuffer, ShmConfig, ShmLink, now};
use tidegate_message::{
    Buffer, Context, Counter, Endpoint, EndpointConfig, Link, MatchFlags, Operation, Receive, Send, Source, Space,
    Target,
};

/// The longest message that is measured.
pub const BYTES_MOST: usize = 1 << 20;
/// Longer than anything here takes, even on a busy machine: then something is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// The tag of all messages.
const SPACE: Space = Space::Tagged { tag: 1, ignore: 0 };

/// Why nothing can be measured.
#[derive(Debug)]
pub struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One end of a pair.
pub struct End {
    endpoint: Endpoint<ShmLink>,
    peer: Option<PeerId>,
    out: IoBuffer,
    into: IoBuffer,
    /// Sends and receives that have ended.
    sent: usize,
    received: usize,
}

impl End {
    /// An endpoint with a mailbox of so many slots; segments lie in `folder`.
    pub fn new(scheme: SchemeName, slots: u32, folder: &Path) -> Result<Self, Trouble> {
        let flow = Config { piggyback: scheme.lends().has_credits(), ..Config::new(scheme, 1, slots, 2) };
        let trouble = |what: String| Trouble(format!("no endpoint over shared memory can be made: {what}"));
        let shm = ShmConfig { directory: folder.to_owned(), ..ShmConfig::new(flow.clone()) };
        let link = ShmLink::new(shm).map_err(|error| trouble(error.to_string()))?;
        let config = EndpointConfig {
            flow,
            eager_bytes: 2048,
            operations: 1 << 16,
            receive_memory: 64 << 20,
            patience: Duration::ZERO,
            packets_per_progress: 64,
            bulk_bytes_per_progress: 1 << 20,
        };
        let endpoint = Endpoint::new(config, link).map_err(|error| trouble(error.to_string()))?;
        let (out, into) = (IoBuffer::zeros(BYTES_MOST), IoBuffer::zeros(BYTES_MOST));
        Ok(End { endpoint, peer: None, out, into, sent: 0, received: 0 })
    }

    /// Where peers find it.
    pub fn address(&self) -> Address {
        self.endpoint.link().address()
    }

    /// Whom all sends go to.
    pub fn connect(&mut self, address: &Address) -> Result<(), Trouble> {
        let peer = self.endpoint.link_mut().peer(address);
        self.peer = Some(peer.map_err(|error| Trouble(format!("the other process is not reached: {error}")))?);
        Ok(())
    }

    /// Starts to send so many bytes.
    #[inline]
    pub fn send(&mut self, bytes: usize) -> Result<(), Trouble> {
        let to = Target::Peer(self.peer.expect("connect comes first"));
        let send = Send {
            to,
            space: SPACE,
            buffer: self.out.slice(0, bytes),
            data: None,
            context: Context(0),
            inject: false,
            delivery: false,
            report: true,
        };
        self.endpoint.send(send).map_err(|_| Trouble("the endpoint has no room for another send".to_owned()))
    }

    /// Posts a receive of so many bytes.
    #[inline]
    pub fn post(&mut self, bytes: usize) -> Result<(), Trouble> {
        let receive = Receive {
            from: self.peer.map_or(Source::Any, |peer| Source::From(Target::Peer(peer))),
            space: SPACE,
            buffer: self.into.slice(0, bytes),
            context: Context(0),
            multi: None,
            flags: MatchFlags::default(),
            report: true,
        };
        self.endpoint.receive(receive).map_err(|_| Trouble("the endpoint has no room for another receive".to_owned()))
    }

    /// One look at the mailbox, and at what has ended. Whether anything has moved.
    #[inline]
    pub fn turn(&mut self) -> Result<bool, Trouble> {
        let moved = self.endpoint.progress(now());
        while let Some(completion) = self.endpoint.poll_completion() {
            if let Err(failure) = completion.result {
                return Err(Trouble(format!("a message failed: {failure:?}")));
            }
            match completion.operation {
                Operation::Receive => self.received += 1,
                _ => self.sent += 1,
            }
        }
        Ok(moved)
    }

    /// Makes progress until so many sends and receives have ended, then forgets them.
    pub fn wait(&mut self, sends: usize, receives: usize) -> Result<(), Trouble> {
        let mut begin = None;
        while self.sent < sends || self.received < receives {
            if self.turn()? {
                self.endpoint.link_mut().busy();
                continue;
            }
            self.endpoint.link_mut().idle().yield_if_asked();
            let begin = *begin.get_or_insert_with(Instant::now);
            if begin.elapsed() > PATIENCE {
                return Err(Trouble("the other process does not answer any more".to_owned()));
            }
        }
        (self.sent, self.received) = (self.sent - sends, self.received - receives);
        Ok(())
    }

    /// Sends and receives that have ended and nobody has waited for.
    pub fn ended(&self) -> (usize, usize) {
        (self.sent, self.received)
    }

    /// A counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.endpoint.link().counters().get(counter)
    }
}
