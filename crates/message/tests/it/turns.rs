//! Turns of senders, over a model of a receiver's wire: every message whose sender delivers gets its quantum in time,
//! whatever the others do, and everything comes in the end.

use crate::support::Random;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_message::{BulkOrder, Instant, PeerId, TurnRules, Turns};

/// A chunk takes so long on the wire, when nothing else is on it.
const STEP: Duration = Duration::from_millis(1);
const CHUNK: usize = 100;
const QUANTUM_CHUNKS: usize = 4;
/// T, in steps.
const STALL_STEPS: u64 = 10;
/// Chunks of a sender that are asked for at a time.
const WINDOW: usize = 8;

/// A sender, as the receiver sees it.
#[derive(Debug, Default)]
struct Sender {
    /// Chunks of its messages that have not been asked for, the oldest message first.
    messages: VecDeque<usize>,
    /// Of each message that has begun, the chunks that have not come.
    open: VecDeque<usize>,
    /// Chunks that were asked for and have not come.
    asked: usize,
    /// From this step on it delivers.
    wakes_at: u64,
    /// So many steps after a question it answers; `None`: never.
    answers_after: Option<u64>,
    answer_at: Option<u64>,
    /// Since when it has waited for a quantum, and what has come since.
    waits_since: u64,
    come: usize,
    longest_wait: u64,
}

/// A receiver, its wire, and its senders.
struct Model {
    turns: Turns,
    senders: Vec<Sender>,
    /// Chunks that are on the wire.
    wire: VecDeque<usize>,
    step: u64,
}

fn peer(sender: usize) -> PeerId {
    PeerId(sender as u32)
}

impl Model {
    fn new(order: BulkOrder, at_once: usize, senders: Vec<Sender>) -> Model {
        let (quantum, stall) = (QUANTUM_CHUNKS * CHUNK, STEP * STALL_STEPS as u32);
        let mut turns = Turns::new(TurnRules { order, senders: at_once, quantum, ordered_from: 0, stall });
        (0..senders.len()).for_each(|sender| turns.want(peer(sender), true));
        Model { turns, senders, wire: VecDeque::new(), step: 0 }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(1_000_000_000 + self.step * STEP.as_nanos() as u64)
    }

    /// Gives turns, and asks for chunks of those that have one.
    fn begin(&mut self) {
        self.turns.handle_timeout(self.now());
        while self.turns.poll_turn().is_some() {}
        for _ in 0..self.turns.running() {
            let sender = self.turns.next_running().expect("it has a turn");
            let state = &mut self.senders[sender.0 as usize];
            while state.asked < WINDOW && self.turns.may_begin(sender) {
                let Some(left) = state.messages.front_mut() else { break };
                if *left == 0 {
                    panic!("a message that was asked for waits no longer");
                }
                *left -= 1;
                if *left == 0 {
                    state.messages.pop_front();
                }
                state.asked += 1;
                self.turns.begin(sender, CHUNK);
                if state.messages.is_empty() {
                    self.turns.want(sender, false);
                }
                self.wire.push_back(sender.0 as usize);
            }
        }
        while let Some(asked) = self.turns.poll_question() {
            let state = &mut self.senders[asked.0 as usize];
            assert_eq!(state.answer_at, None, "one question at a time");
            state.answer_at = Some(state.answers_after.map_or(u64::MAX, |after| self.step + after));
        }
    }

    /// The first chunk comes whose sender delivers; answers come.
    fn step(&mut self) {
        self.begin();
        let step = self.step;
        if let Some(at) = self.wire.iter().position(|sender| self.senders[*sender].wakes_at <= step) {
            let sender = self.wire.remove(at).expect("it is there");
            self.come(sender);
        }
        for sender in 0..self.senders.len() {
            if self.senders[sender].answer_at.is_some_and(|at| at <= step) {
                self.senders[sender].answer_at = None;
                assert!(self.turns.handle_booked(peer(sender)), "it was asked");
                assert!(!self.turns.handle_booked(peer(sender)), "once");
            }
        }
        self.step += 1;
    }

    fn come(&mut self, sender: usize) {
        let state = &mut self.senders[sender];
        state.asked -= 1;
        state.come += 1;
        let first = state.open.front_mut().expect("a message is open");
        *first -= 1;
        let is_over = *first == 0;
        if is_over {
            state.open.pop_front();
        }
        if is_over || state.come >= QUANTUM_CHUNKS {
            state.longest_wait = state.longest_wait.max(self.step - state.waits_since);
            (state.come, state.waits_since) = (0, self.step);
        }
        self.turns.advance(peer(sender), CHUNK);
        if is_over {
            self.turns.end_message(peer(sender));
        }
        self.turns.end(peer(sender));
    }

    fn is_through(&self) -> bool {
        self.senders.iter().all(|sender| sender.open.is_empty())
    }
}

/// Senders of some messages; a few deliver late, and a few answer late or never.
fn senders(random: &mut Random, wakes: impl Fn(&mut Random) -> u64) -> Vec<Sender> {
    let count = 2 + random.below(7);
    (0..count)
        .map(|_| {
            let messages: VecDeque<_> = (0..1 + random.below(4)).map(|_| 1 + random.below(20)).collect();
            let answers_after = (!random.one_in(3)).then(|| random.below(6) as u64);
            Sender {
                open: messages.clone(),
                messages,
                wakes_at: if random.one_in(3) { wakes(random) } else { 0 },
                answers_after,
                ..Sender::default()
            }
        })
        .collect()
}

/// Rules under which there are turns, with the number of the run.
fn runs() -> impl Iterator<Item = (BulkOrder, usize, u64)> {
    let orders = [BulkOrder::OneSender, BulkOrder::Booking];
    orders
        .into_iter()
        .flat_map(|order| (1..4).flat_map(move |at_once| (1..150).map(move |seed| (order, at_once, seed))))
}

#[test]
fn everything_comes_whoever_delivers_late() {
    for (order, at_once, seed) in runs() {
        let mut random = Random::new(seed);
        let senders = senders(&mut random, |random| random.below(500) as u64);
        let mut model = Model::new(order, at_once, senders);
        while !model.is_through() {
            model.step();
            assert!(model.step < 5000, "{order} {at_once} {seed}: {:?} {:?}", model.turns, model.senders);
        }
        assert_eq!((model.turns.running(), model.turns.has_waiting()), (0, false), "{order} {at_once} {seed}");
    }
}

#[test]
fn every_message_whose_sender_delivers_gets_its_quantum_in_time() {
    for (order, at_once, seed) in runs() {
        let mut random = Random::new(seed);
        let senders = senders(&mut random, |_| u64::MAX);
        let deliver = senders.iter().filter(|sender| sender.wakes_at == 0).count() as u64;
        let late = senders.len() as u64 - deliver;
        let mut model = Model::new(order, at_once, senders);
        let is_through =
            |model: &Model| model.senders.iter().all(|sender| sender.wakes_at > 0 || sender.open.is_empty());
        while !is_through(&model) {
            model.step();
            assert!(model.step < 5000, "{order} {at_once} {seed}: {:?} {:?}", model.turns, model.senders);
        }
        // A quantum on the wire, behind what had been asked for while nobody waited. A booking adds T at most.
        let turn = (QUANTUM_CHUNKS + WINDOW) as u64 + if order == BulkOrder::Booking { STALL_STEPS + 1 } else { 0 };
        let most = deliver * turn.max(STALL_STEPS) + late * (STALL_STEPS + turn);
        let longest = model.senders.iter().map(|sender| sender.longest_wait).max();
        assert!(longest <= Some(most), "{order} {at_once} {seed}: {longest:?} steps, at most {most}");
    }
}

#[test]
fn a_turn_alone_goes_on_and_ends_when_others_come() {
    let mut model = Model::new(
        BulkOrder::OneSender,
        1,
        vec![Sender { messages: [100].into(), open: [100].into(), ..Sender::default() }],
    );
    model.begin();
    assert_eq!(model.senders[0].asked, WINDOW, "nobody waits, so a quantum is no bound");
    model.turns.want(peer(1), true);
    model.senders.push(Sender { messages: [5].into(), open: [5].into(), ..Sender::default() });
    let steps = (0..).find(|_| {
        model.step();
        model.senders[1].open.is_empty()
    });
    assert!(steps.is_some_and(|steps| steps <= WINDOW + 2 * QUANTUM_CHUNKS + 5), "{steps:?}");
    while !model.is_through() {
        model.step();
    }
}

#[test]
fn one_sender_is_served_at_a_time_and_stalls_are_counted() {
    let sender = |wakes_at| Sender { messages: [3].into(), open: [3].into(), wakes_at, ..Sender::default() };
    let mut model = Model::new(BulkOrder::OneSender, 1, vec![sender(u64::MAX), sender(0), sender(0)]);
    model.begin();
    assert_eq!(model.wire, [0, 0, 0]);
    model.turns.handle_timeout(model.now());
    assert_eq!(model.turns.next_timeout(), Some(model.now() + STEP * STALL_STEPS as u32));
    (0..STALL_STEPS).for_each(|_| model.step());
    assert_eq!((model.senders[1].asked, model.turns.stalls()), (0, 0), "it may take so long");
    (0..8).for_each(|_| model.step());
    assert_eq!((model.senders[1].open.len(), model.senders[2].open.len(), model.turns.stalls()), (0, 0, 1));
    model.senders[0].wakes_at = 0;
    (0..3).for_each(|_| model.step());
    assert!(model.is_through() && model.turns.running() == 0);
}

#[test]
fn a_booked_sender_comes_first_and_one_that_does_not_answer_has_its_turn_all_the_same() {
    let sender = |answers_after| Sender { messages: [4].into(), open: [4].into(), answers_after, ..Sender::default() };
    let mut model = Model::new(BulkOrder::Booking, 1, vec![sender(Some(0)), sender(None), sender(Some(0))]);
    (0..8).for_each(|_| model.step());
    let left: Vec<_> = model.senders.iter().map(|sender| sender.open.len()).collect();
    assert_eq!(left, [0, 1, 0], "the last has answered");
    (0..STALL_STEPS).for_each(|_| model.step());
    assert!(model.is_through(), "no answer after T is a yes");
}

#[test]
fn who_has_waited_longest_is_passed_over_once_however_its_answers_fall() {
    let (stall, moment) = (STEP * STALL_STEPS as u32, STEP);
    let rules = TurnRules { order: BulkOrder::Booking, senders: 1, quantum: 1000 * CHUNK, ordered_from: 0, stall };
    let mut turns = Turns::new(rules);
    let mut now = Instant::from_nanos(1_000_000_000);
    turns.want(peer(9), true);
    turns.handle_timeout(now);
    let mut running = turns.poll_turn().expect("nobody else wants one");
    (0..3).for_each(|sender| turns.want(peer(sender), true));
    let mut begun = Vec::new();
    for _ in 0..4 {
        turns.begin(running, CHUNK);
        // The first says yes too early, and its yes runs out.
        let mut asked: Vec<PeerId> = std::iter::from_fn(|| turns.poll_question()).collect();
        turns.handle_timeout(now);
        turns.handle_booked(peer(0));
        turns.handle_timeout(now);
        turns.advance(running, 1);
        now = now + stall / 2;
        turns.handle_timeout(now);
        turns.advance(running, 1);
        now = now + stall / 2 + moment;
        turns.handle_timeout(now);
        // It is asked again, and one behind it, which says yes at the right moment.
        asked.extend(std::iter::from_fn(|| turns.poll_question()));
        let other = asked.iter().rev().find(|asked| **asked != peer(0)).copied();
        other.map(|other| turns.handle_booked(other));
        now = now + moment;
        turns.handle_timeout(now);
        turns.advance(running, CHUNK);
        turns.end_message(running);
        turns.end(running);
        turns.handle_timeout(now);
        running = turns.poll_turn().expect("others wait");
        begun.push(running.0);
        if running == peer(0) {
            break;
        }
    }
    assert!(begun.ends_with(&[0]) && begun.len() <= 2, "{begun:?}");
}
