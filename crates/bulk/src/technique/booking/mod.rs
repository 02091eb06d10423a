//! [`Booking`]: distributed dynamic scheduling (B §4.3). Traffic that nobody knows in advance becomes a sequence of
//! partial permutations, without anybody who knows all of it.
//!
//! Time is cut into rounds. A booking of node `a` at node `b` for a round that comes gives `a` alone the right to send
//! one chunk to `b` in it. A sender with chunks that are not booked, and with a round that is free, asks one of its
//! receivers and sends a bitmap of its free rounds; the receiver books the earliest round that is free on both sides
//! and inside its window, or denies. A sender has one request outstanding, and stops asking when it is fully booked.
//! A barrier ends the round, so that all mean the same round by its number; then what is booked for the next is sent.
//!
//! Ours, where B is silent:
//!
//! * a request says which round its lowest bit means, for a neighbour may already be in the next round. A receiver
//!   keeps its list for a frame more than the window, so that it can serve such a one, too: else who is always
//!   the first behind the barrier might be denied for ever;
//! * nobody enters the barrier with a request outstanding; who is in it still answers, or nobody would get out;
//! * a sender asks a random receiver that it has not asked in this round. It makes one request in a round; where
//!   `requests_per_round` allows more, it asks another after the answer, until it is fully booked or has asked all;
//! * the barrier tells everybody whether anybody has work left: the end.
//!
//! **Fewer barriers** (B §5.1 proposes tokens every round and barriers less often; how is ours). Between two barriers
//! are `rounds_per_barrier` rounds, a *frame*. Bookings are for frames that come, so in a frame each receiver knows its
//! senders in order, and releases one (`Begin`) when the piece of the one before has come. Nodes may drift apart within
//! a frame. Nobody waits in a circle: the earliest round of all that is not over has a receiver and a sender that are
//! over with theirs before.

mod calendar;
mod candidates;

use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::work::Work;
use crate::{Node, Settings, Signal};
use calendar::Calendar;
use candidates::Candidates;
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// A round in which a node sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Booked {
    /// Which one.
    pub round: u64,
    /// The other node.
    pub peer: Node,
    /// Whether this node is the receiver.
    pub receives: bool,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Booking {
    settings: Settings,
    work: Work,
    candidates: Candidates,
    /// Which frame this is; in the first nothing is sent.
    frame: u64,
    /// "S" and "R": the rounds that come.
    sends: Calendar,
    receives: Calendar,
    /// The same for this frame, the next round first.
    outgoing: VecDeque<(u64, Node)>,
    incoming: VecDeque<(u64, Node)>,
    /// Rounds that receivers have released, where there are more than one to a barrier.
    begun: Vec<(u64, Node)>,
    under_way: Option<Node>,
    /// Who has been asked and has not answered.
    request: Option<Node>,
    /// Requests of this frame that are left.
    requests_left: u64,
    place: Place,
    signals: VecDeque<(Node, Signal)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    InFrame,
    InBarrier,
    /// Nobody has work left.
    Over,
}

impl Booking {
    pub(crate) fn new(part: Part) -> Self {
        let settings = part.settings;
        let first = u64::from(settings.rounds_per_barrier);
        let chunks = part.work.receivers().map(|to| (to, part.work.pieces(to, settings.unit))).collect();
        Booking {
            settings,
            candidates: Candidates::new(chunks, part.me, settings.seed),
            work: part.work,
            frame: 0,
            sends: Calendar::new(first, settings.window),
            receives: Calendar::new(first, settings.window + settings.rounds_per_barrier),
            outgoing: VecDeque::new(),
            incoming: VecDeque::new(),
            begun: Vec::new(),
            under_way: None,
            request: None,
            requests_left: first * u64::from(settings.requests_per_round),
            place: Place::InFrame,
            signals: VecDeque::new(),
        }
    }

    /// Rounds that are booked or granted and not over.
    pub(crate) fn booked(&self) -> Vec<Booked> {
        let sends = self.outgoing.iter().copied().chain(self.sends.booked());
        let receives = self.incoming.iter().copied().chain(self.receives.booked());
        let sends = sends.map(|(round, peer)| Booked { round, peer, receives: false });
        sends.chain(receives.map(|(round, peer)| Booked { round, peer, receives: true })).collect()
    }

    /// A request. B: the earliest round that is free on both sides, inside the window of the receiver, or a denial.
    fn handle_request(&mut self, from: Node, base: u64, free: u64) {
        let common = free & self.receives.free(base);
        let signal = match common {
            0 => Signal::Denied,
            _ => {
                let round = base + u64::from(common.trailing_zeros());
                self.receives.book(round, from);
                Signal::Booked { round }
            }
        };
        self.signals.push_back((from, signal));
    }

    fn handle_answer(&mut self, from: Node, round: Option<u64>) {
        if self.request != Some(from) {
            return;
        }
        self.request = None;
        if let Some(round) = round
            && self.sends.book(round, from)
        {
            self.candidates.book(from);
        }
    }

    /// Releases the sender of the next round, where receivers do.
    fn release(&mut self) {
        if self.settings.rounds_per_barrier > 1
            && let Some(&(round, sender)) = self.incoming.front()
        {
            self.signals.push_back((sender, Signal::Begin { round }));
        }
    }

    fn handle_passed(&mut self, work_left: bool) {
        if !work_left {
            self.place = Place::Over;
            return;
        }
        self.place = Place::InFrame;
        self.frame += 1;
        self.outgoing = self.sends.advance(self.settings.rounds_per_barrier);
        self.incoming = self.receives.advance(self.settings.rounds_per_barrier);
        self.candidates.begin_round();
        let rounds = u64::from(self.settings.rounds_per_barrier);
        self.requests_left = rounds * u64::from(self.settings.requests_per_round);
        self.release();
    }

    fn handle_lost(&mut self, node: Node) {
        self.work.forget(node);
        self.candidates.forget(node);
        self.sends.forget(node);
        self.receives.forget(node);
        self.outgoing.retain(|(_, to)| *to != node);
        let released = self.incoming.front().copied();
        self.incoming.retain(|(_, from)| *from != node);
        if self.incoming.front().copied() != released {
            self.release();
        }
        self.request = self.request.filter(|asked| *asked != node);
        self.under_way = self.under_way.filter(|to| *to != node);
    }

    /// The next piece, if its round has begun.
    fn next_piece(&mut self) -> Option<Action> {
        let &(round, to) = self.outgoing.front().filter(|_| self.under_way.is_none())?;
        if self.settings.rounds_per_barrier > 1 {
            let place = self.begun.iter().position(|begun| *begun == (round, to))?;
            self.begun.swap_remove(place);
        }
        self.outgoing.pop_front();
        let piece = self.work.take(to, self.settings.unit)?;
        self.under_way = Some(to);
        Some(Action::Send(piece))
    }

    /// The next request, if there is reason for one.
    fn next_request(&mut self) -> Option<Action> {
        let base = self.sends.start();
        let free = self.sends.free(base);
        if self.request.is_some() || free == 0 || self.requests_left == 0 {
            return None;
        }
        let to = self.candidates.ask(self.frame)?;
        self.request = Some(to);
        self.requests_left -= 1;
        Some(Action::Signal { to, signal: Signal::Book { base, free } })
    }
}

impl Technique for Booking {
    fn step(&mut self, _now: Instant) -> Step {
        if let Some((to, signal)) = self.signals.pop_front() {
            return Step::Do(Action::Signal { to, signal });
        }
        match self.place {
            Place::Over => return Step::Finished,
            Place::InBarrier => return Step::Wait,
            Place::InFrame => {}
        }
        if let Some(action) = self.next_piece().or_else(|| self.next_request()) {
            return Step::Do(action);
        }
        if self.under_way.is_some() || self.request.is_some() || !self.outgoing.is_empty() {
            return Step::Wait;
        }
        self.place = Place::InBarrier;
        let work_left = !self.candidates.is_empty() || self.sends.booked().next().is_some();
        Step::Do(Action::Enter { work_left })
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(_) => self.under_way = None,
            Event::Arrived { from } => {
                if self.incoming.front().is_some_and(|(_, sender)| *sender == from) {
                    self.incoming.pop_front();
                    self.release();
                }
            }
            Event::Signalled { from, signal } => match signal {
                Signal::Book { base, free } => self.handle_request(from, base, free),
                Signal::Booked { round } => self.handle_answer(from, Some(round)),
                Signal::Denied => self.handle_answer(from, None),
                Signal::Begin { round } if self.settings.rounds_per_barrier > 1 => self.begun.push((round, from)),
                _ => {}
            },
            Event::Passed { work_left } => self.handle_passed(work_left),
            Event::Lost(node) => self.handle_lost(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, Block, Event, Exchange, Node, Settings, Signal, Step, TechniqueName};
    use tidegate_flow::Instant;

    const PEER: Node = Node(1);

    fn heard(exchange: &mut Exchange, signal: Signal) -> Step {
        exchange.handle(Event::Signalled { from: PEER, signal });
        exchange.step(Instant::default())
    }

    #[test]
    fn nobody_enters_the_barrier_with_a_request_outstanding_and_who_is_in_it_answers() {
        let block = Block { to: PEER, bytes: 1 };
        let mut exchange = Exchange::new(TechniqueName::Booking, Node(0), 2, &[block], &Settings::default());
        let asks = exchange.step(Instant::default());
        assert!(
            matches!(asks, Step::Do(Action::Signal { to: PEER, signal: Signal::Book { base: 1, .. } })),
            "{asks:?}"
        );
        assert_eq!(exchange.step(Instant::default()), Step::Wait, "the answer may still book a round that comes");
        assert_eq!(heard(&mut exchange, Signal::Denied), Step::Do(Action::Enter { work_left: true }));
        let answer = Step::Do(Action::Signal { to: PEER, signal: Signal::Booked { round: 2 } });
        assert_eq!(heard(&mut exchange, Signal::Book { base: 1, free: 0b10 }), answer);
        // In the next round it asks again.
        exchange.handle(Event::Passed { work_left: true });
        let asks = exchange.step(Instant::default());
        assert!(
            matches!(asks, Step::Do(Action::Signal { to: PEER, signal: Signal::Book { base: 2, .. } })),
            "{asks:?}"
        );
    }
}
