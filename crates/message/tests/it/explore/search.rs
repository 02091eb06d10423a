//! Every interleaving of a layout: breadth first over the states of its world.
//!
//! A state of the world is a state of each endpoint and the packets on their way, in order for each pair. A step is the
//! next operation of a program, or a progress call that finds one packet (of any sender that has one on its way: a real
//! mailbox allows fewer orders), two of one sender, none, or the news of a departure. Where flow control acts on time,
//! a node's clock jumps to the moment that its endpoint waits for: clocks of nodes need not agree.
//!
//! Where nothing can happen any more, the run is judged. From everywhere such a place can be reached: no program goes
//! round in circles for ever. And since a step of an endpoint is remembered by a digest of its state, some whole runs
//! are done again without remembering anything, and must pass through the same states.

use super::actor::{Actor, Presence};
use super::judge::judge;
use super::layout::Layout;
use super::machine::{Cause, Machine, PacketId, Packets, StateId, Step, input};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::rc::Rc;
use tidegate_message::flow::{PAYLOAD_BYTES, Packet, PacketKind, SchemeName};

/// More states mean a layout too large for a test.
const MOST_STATES: usize = 6_000_000;
/// One end in so many is reached again by live endpoints alone.
const RETRACED: usize = 50;
/// Room in mailboxes that cannot fill up.
const PLENTY: usize = 1 << 20;

/// What an exploration came across.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    /// States of the world.
    pub states: usize,
    /// States in which nothing can happen any more.
    pub ends: usize,
    /// Different states of all endpoints together.
    pub endpoint_states: usize,
    /// Sends were deferred, or their envelopes dropped by the receiver.
    pub deferred: bool,
    /// A receiver made a query.
    pub queried: bool,
    /// A window grew.
    pub grown: bool,
    /// A request waited until another was answered.
    pub delayed: bool,
    /// Slots of the longest packet.
    pub longest: usize,
}

impl Sights {
    fn watch(&mut self, machine: &Machine) {
        self.endpoint_states += machine.len();
        let windows = || machine.summaries().flat_map(|summary| summary.windows.iter().flatten());
        let smallest = windows().map(|window| window.window).min();
        let mut backlogs = machine.summaries().flat_map(|summary| summary.backlogs.iter().flatten());
        self.delayed |= backlogs.any(|backlog| backlog.requests > 0);
        for window in windows() {
            self.deferred |= window.deferred > 0 || window.dropped > 0;
            self.queried |= window.querying;
            self.grown |= Some(window.window) > smallest;
        }
    }
}

/// One step of the world: what happens to which node.
#[derive(Clone, Copy, Debug)]
struct Move {
    node: usize,
    cause: Cause,
}

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    endpoints: Vec<StateId>,
    /// Packets on their way, by sender within receiver.
    ways: Vec<VecDeque<PacketId>>,
}

/// The shortest way to something that must not be.
#[derive(Debug)]
pub struct Broken {
    pub what: String,
    pub story: String,
}

struct Search {
    layout: Rc<Layout>,
    machines: Vec<Machine>,
    packets: Packets,
    /// Slots of every mailbox.
    slots: usize,
    /// `plenty`, for every node: the room where it does not matter.
    plenty: Rc<[usize]>,
    /// The numbers of all states.
    seen: HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>,
    /// How each state was first reached.
    origins: Vec<(u32, Move)>,
    /// From where to where steps lead.
    steps: Vec<(u32, u32)>,
    ends: Vec<u32>,
    sights: Sights,
}

/// Explores all states of a layout.
pub fn search(layout: &Layout) -> Result<Sights, Broken> {
    let layout = Rc::new(layout.clone());
    let nodes = layout.nodes();
    let mut search = Search {
        machines: (0..nodes).map(|node| Machine::new(layout.clone(), node)).collect(),
        packets: Packets::default(),
        slots: layout.mailbox(),
        plenty: vec![PLENTY; nodes].into(),
        seen: HashMap::default(),
        origins: vec![(0, Move { node: 0, cause: Cause::Idle })],
        steps: Vec::new(),
        ends: Vec::new(),
        sights: Sights { longest: 1, ..Sights::default() },
        layout,
    };
    search.explore()?;
    search.machines.iter().for_each(|machine| search.sights.watch(machine));
    Ok(search.sights)
}

/// Explores all states; the first that must not be fails the test and prints the way to it.
pub fn explore(layout: &Layout) -> Sights {
    search(layout).unwrap_or_else(|broken| panic!("{layout:?}\n{}{}", broken.story, broken.what))
}

impl Search {
    fn explore(&mut self) -> Result<(), Broken> {
        let start = self.start();
        self.seen.insert(self.digest(&start), 0);
        let mut frontier = VecDeque::from([(start, 0)]);
        while let Some((state, number)) = frontier.pop_front() {
            let mut is_end = true;
            for step in self.moves(&state) {
                let outcome = self.go(&state, step).map_err(|what| self.broken(number, Some(step), what))?;
                for next in outcome.into_iter().filter(|next| *next != state) {
                    is_end = false;
                    let found = self.origins.len() as u32;
                    let name = *self.seen.entry(self.seen.hasher().hash_one(&next)).or_insert(found);
                    self.steps.push((number, name));
                    if name == found {
                        frontier.push_back((next, found));
                        self.origins.push((number, step));
                    }
                }
            }
            if is_end {
                self.ends.push(number);
                let endpoints = state.endpoints.iter().zip(&self.machines);
                let summaries: Vec<_> = endpoints.map(|(state, machine)| machine.summary(*state)).collect();
                judge(&self.layout, &summaries).map_err(|what| self.broken(number, None, what))?;
            }
            if self.seen.len() > MOST_STATES {
                return Err(self.broken(number, None, "too many states".to_owned()));
            }
        }
        self.check_circles()?;
        for end in self.ends.clone().into_iter().step_by(RETRACED) {
            self.retrace(end).map_err(|what| self.broken(end, None, what))?;
        }
        self.sights = Sights { states: self.seen.len(), ends: self.ends.len(), ..self.sights };
        Ok(())
    }

    fn start(&self) -> State {
        let nodes = self.layout.nodes();
        State { endpoints: vec![0; nodes], ways: vec![VecDeque::new(); nodes * nodes] }
    }

    fn digest(&self, state: &State) -> u64 {
        self.seen.hasher().hash_one(state)
    }

    /// From every state some end can be reached.
    fn check_circles(&mut self) -> Result<(), Broken> {
        let mut steps = std::mem::take(&mut self.steps);
        steps.sort_unstable_by_key(|(_, to)| *to);
        let mut reaches_end = vec![false; self.origins.len()];
        let mut frontier = self.ends.clone();
        while let Some(number) = frontier.pop() {
            if std::mem::replace(&mut reaches_end[number as usize], true) {
                continue;
            }
            let first = steps.partition_point(|(_, to)| *to < number);
            frontier.extend(steps[first..].iter().take_while(|(_, to)| *to == number).map(|(from, _)| *from));
        }
        match reaches_end.iter().position(|reaches| !reaches) {
            Some(number) => Err(self.broken(number as u32, None, "from here on it never ends".to_owned())),
            None => Ok(()),
        }
    }

    /// Does a run again with live endpoints that remember nothing, and compares.
    fn retrace(&mut self, end: u32) -> Result<(), String> {
        let mut numbers = vec![end];
        while let Some(&number) = numbers.last().filter(|number| **number != 0) {
            numbers.push(self.origins[number as usize].0);
        }
        let mut actors: Vec<_> = (0..self.layout.nodes()).map(|node| Actor::new(self.layout.clone(), node)).collect();
        let mut state = self.start();
        for number in numbers.into_iter().rev().skip(1) {
            let step = self.origins[number as usize].1;
            let (room, actor) = (self.room(&state), &mut actors[step.node]);
            let written = actor.step(input(&self.packets, step.cause), &room).written;
            let written: Vec<_> = written.iter().map(|(to, packet)| (*to, self.packets.name(packet))).collect();
            let before = state.endpoints[step.node];
            let known = self.machines[step.node].step(&mut self.packets, before, step.cause, &room)?;
            if known.written != written || actor.summary() != self.machines[step.node].summary(known.next) {
                return Err(format!("{step:?} has another effect now: the digest of a state hides what matters"));
            }
            let nexts = self.go(&state, step)?;
            let of_path = |next: &State| self.seen.get(&self.digest(next)) == Some(&number);
            state = nexts.into_iter().find(of_path).ok_or("a step has led elsewhere before")?;
        }
        Ok(())
    }

    fn presence(&self, state: &State, node: usize) -> Presence {
        self.machines[node].summary(state.endpoints[node]).presence
    }

    fn way(&self, from: usize, to: usize) -> usize {
        to * self.layout.nodes() + from
    }

    /// Everything that can happen.
    fn moves(&self, state: &State) -> Vec<Move> {
        let (nodes, mut moves) = (self.layout.nodes(), Vec::new());
        for node in (0..nodes).filter(|node| self.presence(state, *node) == Presence::Alive) {
            moves.extend([Cause::Operation, Cause::Idle].map(|cause| Move { node, cause }));
            moves.extend(self.layout.is_timed().then_some(Move { node, cause: Cause::Timeout }));
            for other in (0..nodes).filter(|other| *other != node) {
                let is_gone = self.presence(state, other) != Presence::Alive;
                let told = || self.machines[node].summary(state.endpoints[node]).told.contains(&other);
                let way = &state.ways[self.way(other, node)];
                moves.extend(way.front().map(|first| Move { node, cause: Cause::Packet(*first) }));
                moves.extend(way.get(1).map(|second| Move { node, cause: Cause::Pair(way[0], *second) }));
                moves.extend(self.long(way).map(|cause| Move { node, cause }));
                if way.is_empty() && is_gone && !told() {
                    moves.push(Move { node, cause: Cause::Departure(other) });
                }
            }
        }
        moves
    }

    /// The first packets of a way as one of several slots, if they may have been written as that.
    fn long(&self, way: &VecDeque<PacketId>) -> impl Iterator<Item = Cause> {
        let goes_on = |index: usize| {
            if !self.layout.joins {
                return None;
            }
            let [first, second] = [way.get(index)?, way.get(index + 1)?].map(|name| self.packets.get(*name).header);
            let is_full = first.kind() == PacketKind::Data && first.length() == PAYLOAD_BYTES;
            (is_full && second.kind() == PacketKind::Data && second.message() == 0).then_some(way[index + 1])
        };
        let second = goes_on(0);
        let third = second.and_then(|_| goes_on(1));
        let two = second.map(|second| Cause::Long(way[0], second, None));
        let three = second.zip(third).map(|(second, third)| Cause::Long(way[0], second, Some(third)));
        two.into_iter().chain(three)
    }

    /// Packets that fit each node's mailbox. Under flow control they never fill up, and this is checked.
    fn room(&self, state: &State) -> Rc<[usize]> {
        if self.layout.scheme != SchemeName::None {
            return self.plenty.clone();
        }
        let nodes = self.layout.nodes();
        (0..nodes).map(|node| self.slots - self.waiting(state, node)).collect()
    }

    fn waiting(&self, state: &State, node: usize) -> usize {
        let nodes = self.layout.nodes();
        state.ways[node * nodes..][..nodes].iter().map(VecDeque::len).sum()
    }

    /// The states that a step may lead to.
    fn go(&mut self, state: &State, Move { node, cause }: Move) -> Result<Vec<State>, String> {
        let room = self.room(state);
        let step = self.machines[node].step(&mut self.packets, state.endpoints[node], cause, &room)?;
        let mut next = state.clone();
        let taken = match cause {
            Cause::Packet(_) => 1,
            Cause::Pair(..) | Cause::Long(_, _, None) => 2,
            Cause::Long(..) => 3,
            Cause::Operation | Cause::Idle | Cause::Timeout | Cause::Departure(_) => 0,
        };
        if let Cause::Long(..) = cause {
            self.sights.longest = self.sights.longest.max(taken);
        }
        if let Cause::Packet(packet) | Cause::Pair(packet, _) | Cause::Long(packet, ..) = cause {
            let nodes = self.layout.nodes();
            let source = crate::support::node_of(node, self.packets.get(packet).header.source(), nodes);
            let way = self.way(source, node);
            next.ways[way].drain(..taken);
        }
        self.check_touched(state, &step)?;
        for &(to, packet) in &step.written {
            if self.presence(state, to) == Presence::Alive {
                let way = self.way(node, to);
                next.ways[way].push_back(packet);
                self.check_mailbox(&next, node, to)?;
            }
        }
        next.endpoints[node] = step.next;
        match self.presence(&next, node) {
            Presence::Alive => Ok(vec![next]),
            presence => Ok(self.leave(next, node, presence)),
        }
    }

    /// A node is no more: nobody takes what is on its way there. Of what it wrote, all, some or nothing arrives if it
    /// was killed.
    fn leave(&self, mut state: State, node: usize, presence: Presence) -> Vec<State> {
        let others = (0..self.layout.nodes()).filter(|other| *other != node);
        others.clone().for_each(|other| state.ways[self.way(other, node)].clear());
        if presence == Presence::Closed {
            return vec![state];
        }
        let longest = others.clone().map(|other| state.ways[self.way(node, other)].len()).max().unwrap_or(0);
        let cut = |kept: usize| {
            let mut state = state.clone();
            others.clone().for_each(|other| state.ways[self.way(node, other)].truncate(kept));
            state
        };
        (0..=longest).map(cut).collect()
    }

    /// Flow control's promises for the mailbox of `to`, into which `from` has just written.
    fn check_mailbox(&self, state: &State, from: usize, to: usize) -> Result<(), String> {
        let waiting = self.waiting(state, to);
        if waiting > self.slots {
            return Err(format!("{waiting} packets in the {} slots of node {to}", self.slots));
        }
        let is_credit = |packet: &&PacketId| self.packets.get(**packet).header.kind() == PacketKind::Credit;
        let credits = state.ways[self.way(from, to)].iter().filter(is_credit).count();
        match credits > self.layout.credit_slots as usize {
            true => Err(format!("{credits} credit packets from {from} wait at {to}")),
            false => Ok(()),
        }
    }

    /// Nobody reads the memory of a send that has completed.
    fn check_touched(&self, state: &State, step: &Step) -> Result<(), String> {
        let is_over = |name: &&super::layout::MessageName| {
            let summary = self.machines[name.node].summary(state.endpoints[name.node]);
            summary.presence == Presence::Alive && summary.outcomes[name.place].is_some()
        };
        match step.touched.iter().find(is_over) {
            Some(name) => Err(format!("the memory of {name:?} was read after its completion")),
            None => Ok(()),
        }
    }

    /// Tells how a state was reached, and what is wrong with it.
    fn broken(&self, mut number: u32, last: Option<Move>, what: String) -> Broken {
        let mut path: Vec<Move> = last.into_iter().collect();
        while number != 0 {
            let (before, step) = self.origins[number as usize];
            path.push(step);
            number = before;
        }
        let mut story = String::new();
        for Move { node, cause } in path.into_iter().rev() {
            let told = match cause {
                Cause::Packet(name) => self.tell(node, self.packets.get(name)),
                Cause::Pair(first, second) => {
                    let [first, second] = [first, second].map(|name| self.tell(node, self.packets.get(name)));
                    format!("{first}; at once {second}")
                }
                Cause::Long(first, second, third) => {
                    let slots = [first, second].into_iter().chain(third);
                    let told: Vec<_> = slots.map(|name| self.tell(node, self.packets.get(name))).collect();
                    format!("as one packet {}", told.join("; "))
                }
                other => format!("{other:?}"),
            };
            writeln!(story, "  node {node}: {told}").expect("a string takes all");
        }
        Broken { what, story }
    }

    fn tell(&self, node: usize, packet: &Packet) -> String {
        let from = crate::support::node_of(node, packet.header.source(), self.layout.nodes());
        let word = u64::from_le_bytes(*packet.payload.first_chunk().expect("a payload has a word"));
        let kind = packet.header.kind();
        let first = match packet.header.message() {
            0 => "more".to_owned(),
            message => format!("message of kind {message}"),
        };
        format!("takes from {from}: {kind:?}, {first}, word {word:#x}, {} bytes", packet.header.length())
    }
}
