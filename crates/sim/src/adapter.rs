//! [`Adapter`]: what a node's interface does beside passing packets on, under schemes whose receivers post buffers.
//!
//! # The sender's half
//!
//! The packets that a process has written go to a queue for their connection, one for each pair of processes, and a
//! message leaves when all of it is there, as an adapter sends what was handed to it as a whole. Connections take
//! turns, packet by packet. A message stays in the queue until its receiver's adapter has accepted it. When a refusal
//! comes back, the connection waits for the retry timer, and everything goes again from the refused message on; the
//! node's other connections do not wait.
//!
//! # Credits between adapters
//!
//! Where connections have buffers of their own, an acknowledgement says how many of them are still posted (InfiniBand's
//! end-to-end flow control, L §2.2). The sender's adapter has no more messages under way than that, or one if it knows
//! of none: this one asks, by being refused, and after the timer it asks again. A buffer that is posted meanwhile makes
//! itself known with the next acknowledgement only. For a pool there are no such credits, and nothing but the queue
//! limits what is under way.
//!
//! # The receiver's half
//!
//! The first packet of a message takes a posted buffer of its process ([`ReceiveQueues`](tidegate_flow::ReceiveQueues),
//! in the process's link). If there is none, a refusal goes back through the network, and the rest of the message and
//! those behind it are dropped as they come.
//!
//! # One pool of slots
//!
//! Under `speculative` each packet has a slot of its own ([`Speculation`], [`SlotPool`](tidegate_flow::SlotPool)), and
//! there is no timer. A process's packets go into the network as they do without an adapter, which keeps a copy of each
//! until it is accepted. Packets that are refused or beyond the window, and those that its process writes for the same
//! receiver afterwards, wait in the adapter. Refusals, invitations and acknowledgements are packets; the last packet of
//! a message is acknowledged, and others where the sender's window wants that. A processor sees to each refusal and
//! each invitation that it gets or makes, for as long as to a packet of credits.
//!
//! What is simpler than hardware: that a message was accepted, and how many buffers are left, is known to its sender's
//! adapter at once, but for a pool of slots, without an acknowledgement that takes time and bandwidth (InfiniBand joins
//! many into one packet).

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tidegate_flow::{Arrived, Header, PacketKind, SendQueue, Speculation};

use crate::flight::{Flight, Label, Labelled, NodeId, Rank};
use crate::parcel::{Body, Parcel};

/// Bytes of payload of a refusal, an invitation or an acknowledgement: which message.
const ANSWER_BYTES: usize = 4;

/// From which process to which.
type Pair = (Rank, Rank);

/// From where to where something is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub from: NodeId,
    pub to: NodeId,
    pub source: Rank,
    pub destination: Rank,
}

impl Way {
    /// Back to where a packet has come from.
    pub fn back(flight: &Flight) -> Self {
        Way { from: flight.to, to: flight.from, source: flight.destination, destination: flight.source }
    }
}

/// A connection into a pool of slots, as its sender.
#[derive(Debug)]
struct Speculating {
    /// The receiver's node.
    node: NodeId,
    queue: Speculation<Parcel>,
    /// Whether it is among those that take turns.
    has_turn: bool,
}

/// A message that is being sent.
#[derive(Debug)]
struct UnderWay {
    number: u32,
    packets: Rc<[Parcel]>,
    /// Packets that have left.
    gone: usize,
}

/// A connection of a process of this node, as its sender.
#[derive(Debug)]
struct Sending {
    /// The receiver's node.
    node: NodeId,
    queue: SendQueue<Rc<[Parcel]>>,
    /// The packets of a message of which not all were written.
    written: Vec<Parcel>,
    under_way: Option<UnderWay>,
    /// Messages that were sent and neither accepted nor refused.
    unanswered: u32,
    /// How many of them there may be: the buffers that the receiver had posted when it accepted the last one.
    credits: u32,
    /// Whether it is among those that take turns.
    has_turn: bool,
}

impl Sending {
    /// The next packet, which message it is of, and whether it is the first of that.
    fn next(&self) -> Option<(Parcel, u32, bool)> {
        if let Some(UnderWay { number, packets, gone }) = &self.under_way {
            return Some((packets[*gone], *number, false));
        }
        if self.unanswered >= self.credits.max(1) {
            return None;
        }
        self.queue.next_to_send().map(|(number, packets)| (packets[0], number, true))
    }

    /// That packet has left.
    fn note_sent(&mut self) {
        if self.under_way.is_none()
            && let Some((number, packets)) = self.queue.next_to_send()
        {
            self.under_way = Some(UnderWay { number, packets: packets.clone(), gone: 0 });
            self.queue.note_sent();
            self.unanswered += 1;
        }
        if let Some(message) = &mut self.under_way {
            message.gone += 1;
            if message.gone == message.packets.len() {
                self.under_way = None;
            }
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Adapter {
    /// What each connection knows of its receiver's buffers before the first is used; no limit where adapters have no
    /// credits.
    first_credits: u32,
    sending: HashMap<Pair, Sending>,
    /// The connections that have something to send.
    turns: VecDeque<Pair>,
    /// Packets to other adapters that have not left.
    answers: VecDeque<Flight>,
    /// How many have left.
    pub answered: u64,
    /// What became of the message that is coming in, by its receiver and its sender.
    arriving: HashMap<Pair, Arrived>,
    /// Connections into pools of slots.
    speculating: HashMap<Pair, Speculating>,
}

impl Adapter {
    /// An adapter whose connections begin with so many credits; `None`: adapters have none.
    pub fn new(credits: Option<u32>) -> Self {
        Adapter {
            first_credits: credits.unwrap_or(u32::MAX),
            sending: HashMap::new(),
            turns: VecDeque::new(),
            answers: VecDeque::new(),
            answered: 0,
            arriving: HashMap::new(),
            speculating: HashMap::new(),
        }
    }

    /// A process of this node has written a packet for another, on `node`.
    pub fn take(&mut self, from: Rank, to: Rank, node: NodeId, parcel: Parcel) {
        let credits = self.first_credits;
        let new = || Sending {
            node,
            queue: SendQueue::default(),
            written: Vec::new(),
            under_way: None,
            unanswered: 0,
            credits,
            has_turn: false,
        };
        let connection = self.sending.entry((from, to)).or_insert_with(new);
        connection.written.push(parcel);
        if parcel.header.is_last_in_buffer() {
            connection.queue.push(std::mem::take(&mut connection.written).into());
            self.give_turn((from, to));
        }
    }

    /// Whether a packet of a process may go into the network now, to a pool of slots, and with which number. `None`:
    /// it has to wait behind others, and the adapter is to [keep](Self::keep) it.
    /// The second of what is returned: whether it wants an answer.
    pub fn number_of_next(&self, flight: &Flight) -> Option<(u16, bool)> {
        match self.speculating.get(&(flight.source, flight.destination)) {
            Some(Speculating { queue, .. }) => queue.number_of_next().map(|number| (number, queue.wants_answer())),
            None => Some((0, false)),
        }
    }

    /// A packet for a pool of slots waits here until it is accepted. `is_gone`: it has gone into the network.
    pub fn keep(&mut self, flight: &Flight, is_gone: bool) {
        let pair = (flight.source, flight.destination);
        let new = || Speculating { node: flight.to, queue: Speculation::default(), has_turn: false };
        let queue = &mut self.speculating.entry(pair).or_insert_with(new).queue;
        queue.push(flight.parcel);
        if is_gone {
            queue.note_sent();
        } else {
            self.give_turn(pair);
        }
    }

    /// A connection that has something to send takes turns with the others. Returns whether it did not before.
    fn give_turn(&mut self, pair: Pair) -> bool {
        if let Some(connection) = self.speculating.get_mut(&pair)
            && connection.queue.next_to_send().is_some()
            && !std::mem::replace(&mut connection.has_turn, true)
        {
            self.turns.push_back(pair);
            return true;
        }
        if let Some(connection) = self.sending.get_mut(&pair)
            && connection.next().is_some()
            && !std::mem::replace(&mut connection.has_turn, true)
        {
            self.turns.push_back(pair);
            return true;
        }
        false
    }

    /// Whether there is something to send.
    pub fn has_work(&self) -> bool {
        !self.answers.is_empty() || !self.turns.is_empty()
    }

    /// The next packet of this node, `id`. Answers go first.
    pub fn next(&self, id: NodeId) -> Option<Flight> {
        if let Some(&answer) = self.answers.front() {
            return Some(answer);
        }
        let &(source, destination) = self.turns.front()?;
        if let Some(connection) = self.speculating.get(&(source, destination)) {
            let (number, behind, &parcel) = connection.queue.next_to_send()?;
            let label = Label::slot(number, behind, connection.queue.wants_answer());
            return Some(Flight { parcel, from: id, to: connection.node, source, destination, bulk_bytes: 0, label });
        }
        let connection = self.sending.get(&(source, destination))?;
        let (parcel, number, is_first) = connection.next()?;
        let label = Label::packet(number, is_first);
        Some(Flight { parcel, from: id, to: connection.node, source, destination, bulk_bytes: 0, label })
    }

    /// The network has taken that packet.
    pub fn note_sent(&mut self) {
        if self.answers.pop_front().is_some() {
            self.answered += 1;
            return;
        }
        let Some(pair) = self.turns.pop_front() else { return };
        if let Some(connection) = self.speculating.get_mut(&pair) {
            connection.queue.note_sent();
            connection.has_turn = false;
        }
        if let Some(connection) = self.sending.get_mut(&pair) {
            connection.note_sent();
            connection.has_turn = false;
        }
        self.give_turn(pair);
    }

    /// The receiver's adapter has taken all of a message of ours, and says how many buffers are left, if it does.
    /// Returns whether the connection can send more now.
    pub fn handle_accepted(&mut self, pair: Pair, number: u32, posted: Option<u32>) -> bool {
        let Some(connection) = self.sending.get_mut(&pair) else { return false };
        let message = connection.queue.handle_accepted(number);
        debug_assert!(message.is_some(), "a message was accepted that is not under way");
        connection.unanswered = connection.unanswered.saturating_sub(1);
        if let Some(posted) = posted {
            connection.credits = posted;
        }
        self.give_turn(pair)
    }

    /// The receiver's adapter has refused a message of ours. Returns whether the retry timer is to be started.
    pub fn handle_refused(&mut self, pair: Pair, number: u32) -> bool {
        let Some(connection) = self.sending.get_mut(&pair) else { return false };
        connection.under_way = None;
        // What was sent behind it is dropped.
        connection.unanswered = 0;
        let begins = connection.queue.handle_refused(number);
        if std::mem::take(&mut connection.has_turn) {
            self.turns.retain(|&other| other != pair);
        }
        begins
    }

    /// The retry timer of a connection has run out.
    pub fn handle_timeout(&mut self, pair: Pair) {
        if let Some(connection) = self.sending.get_mut(&pair) {
            connection.queue.handle_timeout();
        }
        self.give_turn(pair);
    }

    /// A packet has come; `arrived` says what becomes of the message that it begins. Returns what becomes of it.
    pub fn sort(&mut self, flight: &Flight, arrived: Option<Arrived>) -> Arrived {
        let pair = (flight.destination, flight.source);
        match arrived {
            Some(arrived) => {
                self.arriving.insert(pair, arrived);
                arrived
            }
            None => self.arriving.get(&pair).copied().unwrap_or(Arrived::Dropped),
        }
    }

    /// Sends back that a message was refused.
    pub fn refuse(&mut self, flight: &Flight, number: u32) {
        self.say(Way::back(flight), Label::refusal(number));
    }

    /// Sends a packet of the adapter's own.
    pub fn say(&mut self, way: Way, label: Label) {
        let Way { from, to, source, destination } = way;
        let header = Header::new(PacketKind::Data, ANSWER_BYTES, 0);
        let parcel = Parcel { header, body: Body::ZEROS };
        self.answers.push_back(Flight { parcel, from, to, source, destination, bulk_bytes: 0, label });
    }

    /// A packet was accepted into a pool of slots, and all `before` it: its sender is told.
    pub fn acknowledge(&mut self, flight: &Flight, before: u16) {
        self.say(Way::back(flight), Label::acknowledgement(before));
    }

    /// Another adapter has said something of packets of ours for a pool of slots. Returns whether the connection can
    /// send more now.
    pub fn handle_answer(&mut self, pair: Pair, answer: Labelled) -> bool {
        let Some(connection) = self.speculating.get_mut(&pair) else { return false };
        let queue = &mut connection.queue;
        match answer {
            Labelled::Refusal { number } => {
                if queue.handle_refused(number as u16) && std::mem::take(&mut connection.has_turn) {
                    self.turns.retain(|&other| other != pair);
                }
            }
            Labelled::Invitation { slots } => queue.handle_invited(slots),
            Labelled::Acknowledgement { before } => {
                queue.handle_accepted(before);
            }
            Labelled::Plain | Labelled::Slot { .. } | Labelled::Message { .. } => {}
        }
        self.give_turn(pair)
    }

    /// Messages that no receiver has accepted.
    pub fn unaccepted(&self) -> usize {
        let slots: usize = self.speculating.values().map(|connection| connection.queue.len()).sum();
        slots + self.of_buffers()
    }

    fn of_buffers(&self) -> usize {
        self.sending.values().map(|connection| connection.queue.len() + connection.written.len()).sum()
    }
}
