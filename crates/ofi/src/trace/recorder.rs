//! [`Recorder`]: what a process's calls and completions become in its trace. No clock and no file: times are arguments,
//! records go into a [`Sink`].

use super::format::{Encoder, Message, Record};
use super::gaps::{Gaps, Waited};
use std::collections::HashMap;
use tidegate_link::Address;
use tidegate_link::journal::Journal;

/// Where records go.
pub trait Sink {
    /// Appends the bytes of a record. Returns whether there was room.
    fn append(&mut self, bytes: &[u8]) -> bool;
}

impl Sink for Journal {
    fn append(&mut self, bytes: &[u8]) -> bool {
        Journal::append(self, bytes).is_ok()
    }
}

impl Sink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> bool {
        self.extend_from_slice(bytes);
        true
    }
}

/// What an application starts. Each is an operation with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A send of this message.
    Send(Message),
    /// A receive.
    Receive,
    /// A receive that takes many messages.
    Buffer,
    /// An operation on a peer's memory that moves so many bytes. Of it the trace says only that.
    Remote(u64),
    /// Nothing that a trace tells of: a look whether a message is there.
    Look,
}

/// See the module. Its methods are called in the order in which things happen.
#[derive(Debug)]
pub struct Recorder<S> {
    sink: S,
    encoder: Encoder,
    gaps: Gaps,
    /// The number of the next operation.
    next: u64,
    endpoints: u64,
    /// The endpoint that the records are about.
    endpoint: u64,
    peers: HashMap<Address, u64>,
    /// Whether a message has been sent or received. What was computed before is none of the trace's: much of it is the
    /// launcher's start-up.
    has_begun: bool,
    is_full: bool,
}

impl<S: Sink> Recorder<S> {
    /// A recorder of a process that has not opened an endpoint.
    pub fn new(sink: S) -> Self {
        Recorder {
            sink,
            encoder: Encoder::default(),
            gaps: Gaps::default(),
            next: 0,
            endpoints: 0,
            endpoint: 0,
            peers: HashMap::new(),
            has_begun: false,
            is_full: false,
        }
    }

    /// An endpoint has been opened. Returns its number.
    pub fn open(&mut self, address: &Address) -> u64 {
        self.endpoint = self.endpoints;
        self.endpoints += 1;
        self.put(&Record::Opened(address.to_bytes()));
        self.endpoint
    }

    /// The number of a peer, which it gets here if it has none.
    pub fn peer(&mut self, address: &Address) -> u64 {
        if let Some(number) = self.peers.get(address) {
            return *number;
        }
        let number = self.peers.len() as u64;
        self.peers.insert(*address, number);
        self.put(&Record::Peer(address.to_bytes()));
        number
    }

    /// A call is under way that began at this time in nanoseconds.
    pub fn enter(&mut self, began: u64, waited: impl FnOnce() -> Option<Waited>) {
        self.gaps.enter(began, waited);
    }

    /// It returns.
    pub fn leave(&mut self, began: u64, now: u64, waited: impl Fn() -> Option<Waited>) {
        self.gaps.leave(began, now, waited);
    }

    /// The application starts an operation on an endpoint. Returns the operation's number.
    pub fn start(&mut self, endpoint: u64, start: Start) -> u64 {
        let number = self.next;
        self.next += 1;
        match start {
            Start::Send(message) => {
                self.act(endpoint);
                self.has_begun = true;
                self.put(&Record::Send { number, message });
            }
            Start::Receive => self.receive(endpoint, number),
            Start::Buffer => {
                self.act(endpoint);
                self.put(&Record::Buffer { number });
            }
            Start::Remote(bytes) => {
                self.gaps.act();
                self.put(&Record::Remote { bytes });
            }
            Start::Look => {}
        }
        number
    }

    /// The application receives by an operation that was a look when it started: it claims the message that was found,
    /// or has it dropped.
    pub fn receive(&mut self, endpoint: u64, number: u64) {
        self.act(endpoint);
        self.put(&Record::Receive { number });
    }

    /// A receive has its message.
    pub fn met(&mut self, number: u64, message: Message) {
        self.has_begun = true;
        self.put(&Record::Met { number, message });
    }

    /// The application learns that an operation is over.
    pub fn read(&mut self, number: u64) {
        self.gaps.look();
        self.put_computed();
        self.put(&Record::Read { number });
    }

    /// What comes next belongs to the application's own course, on this endpoint.
    fn act(&mut self, endpoint: u64) {
        self.gaps.act();
        self.put_computed();
        if self.endpoint != endpoint {
            self.endpoint = endpoint;
            self.put(&Record::Endpoint(endpoint));
        }
    }

    fn put_computed(&mut self) {
        let computed = self.gaps.take();
        if computed > 0 && self.has_begun {
            self.put(&Record::Compute(computed));
        }
    }

    /// Appends a record, unless one before it found no room: nothing may be missing in the middle.
    fn put(&mut self, record: &Record) {
        if !self.is_full {
            let encoded = self.encoder.encode(record);
            self.is_full = !self.sink.append(encoded.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::addresses::tests::address;
    use crate::trace::format::Decoder;

    fn records(recorder: &Recorder<Vec<u8>>) -> Vec<Record> {
        Decoder::new(&recorder.sink).map(Result::unwrap).collect()
    }

    /// A call of 10 ns that begins at `at`.
    fn call(recorder: &mut Recorder<Vec<u8>>, at: u64, body: impl FnOnce(&mut Recorder<Vec<u8>>)) {
        recorder.enter(at, || None);
        body(recorder);
        recorder.leave(at, at + 10, || None);
    }

    #[test]
    fn a_process_that_receives_computes_and_answers() {
        let mut recorder = Recorder::new(Vec::new());
        let endpoint = recorder.open(&address(1));
        let peer = recorder.peer(&address(2));
        let question = Message { peer, bytes: 8, tag: Some(5) };
        call(&mut recorder, 100, |recorder| _ = recorder.start(endpoint, Start::Receive));
        call(&mut recorder, 150, |_| {});
        call(&mut recorder, 190, |recorder| {
            recorder.met(0, question);
            recorder.read(0);
        });
        call(&mut recorder, 1200, |recorder| _ = recorder.start(endpoint, Start::Send(question)));
        assert_eq!(
            records(&recorder),
            [
                Record::Opened(address(1).to_bytes()),
                Record::Peer(address(2).to_bytes()),
                Record::Receive { number: 0 },
                // 40 ns before the first look: computation. 30 ns between two looks: none.
                Record::Met { number: 0, message: question },
                Record::Compute(40),
                Record::Read { number: 0 },
                Record::Compute(1000),
                Record::Send { number: 1, message: question },
            ]
        );
    }

    #[test]
    fn what_is_computed_before_the_first_message_is_left_out() {
        let mut recorder = Recorder::new(Vec::new());
        let endpoint = recorder.open(&address(1));
        let message = Message { peer: recorder.peer(&address(1)), bytes: 0, tag: None };
        for at in [100, 5000] {
            call(&mut recorder, at, |recorder| _ = recorder.start(endpoint, Start::Receive));
        }
        call(&mut recorder, 9000, |recorder| _ = recorder.start(endpoint, Start::Send(message)));
        call(&mut recorder, 9100, |recorder| _ = recorder.start(endpoint, Start::Send(message)));
        let computed: Vec<Record> =
            records(&recorder).into_iter().filter(|record| matches!(record, Record::Compute(_))).collect();
        assert_eq!(computed, [Record::Compute(90)]);
    }

    #[test]
    fn endpoints_are_named_when_they_change_and_peers_once() {
        let mut recorder = Recorder::new(Vec::new());
        let [first, second] = [1, 2].map(|pid| recorder.open(&address(pid)));
        assert_eq!((first, second, recorder.peer(&address(9)), recorder.peer(&address(9))), (0, 1, 0, 0));
        for endpoint in [second, first, first] {
            recorder.start(endpoint, Start::Buffer);
        }
        assert_eq!(
            records(&recorder)[3..],
            [
                Record::Buffer { number: 0 },
                Record::Endpoint(0),
                Record::Buffer { number: 1 },
                Record::Buffer { number: 2 }
            ]
        );
    }

    #[test]
    fn a_look_that_finds_a_message_keeps_its_place_in_the_order_of_receives() {
        let mut recorder = Recorder::new(Vec::new());
        let endpoint = recorder.open(&address(1));
        let look = recorder.start(endpoint, Start::Look);
        recorder.start(endpoint, Start::Receive);
        recorder.receive(endpoint, look);
        assert_eq!(records(&recorder)[1..], [Record::Receive { number: 1 }, Record::Receive { number: 0 }]);
    }

    #[test]
    fn after_a_record_without_room_there_is_none() {
        /// Room for two records.
        struct Narrow(Vec<usize>);
        impl Sink for Narrow {
            fn append(&mut self, bytes: &[u8]) -> bool {
                self.0.push(bytes.len());
                self.0.len() != 2
            }
        }
        let mut recorder = Recorder::new(Narrow(Vec::new()));
        for _ in 0..5 {
            recorder.start(0, Start::Receive);
        }
        assert_eq!(recorder.sink.0.len(), 2, "asked for room once too often");
    }
}
