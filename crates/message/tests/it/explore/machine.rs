//! The states of one endpoint as a table that grows: each step from each state is run once, on the real endpoint.

use super::actor::{Actor, Input, Summary};
use super::layout::{Layout, MessageName};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use tidegate_message::flow::{Header, PAYLOAD_BYTES, Packet};

/// Live endpoints kept for the next step from their state.
const PARKED: usize = 2000;

/// The name of a packet in [`Packets`].
pub type PacketId = u32;
/// The name of a state in a [`Machine`].
pub type StateId = u32;

/// [`Input`], with a name in place of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    Operation,
    Packet(PacketId),
    Pair(PacketId, PacketId),
    Long(PacketId, PacketId, Option<PacketId>),
    Idle,
    Timeout,
    Departure(usize),
}

/// Every packet that was ever written.
#[derive(Default)]
pub struct Packets {
    packets: Vec<Packet>,
    names: HashMap<(u64, [u8; PAYLOAD_BYTES]), PacketId>,
}

impl Packets {
    pub fn name(&mut self, packet: &Packet) -> PacketId {
        let next = self.packets.len() as PacketId;
        let name = *self.names.entry((Header::bits(packet.header), packet.payload)).or_insert(next);
        if name == next {
            self.packets.push(*packet);
        }
        name
    }

    pub fn get(&self, name: PacketId) -> &Packet {
        &self.packets[name as usize]
    }
}

/// What happens when a state meets a cause.
#[derive(Debug)]
pub struct Step {
    pub next: StateId,
    pub written: Vec<(usize, PacketId)>,
    pub touched: Vec<MessageName>,
}

/// What leads to a step: the cause, and the room in mailboxes where it is not without end.
type Meeting = (Cause, Rc<[usize]>);

struct State {
    summary: Summary,
    /// How it was first reached.
    origin: Option<(StateId, Meeting)>,
}

/// The states of one node's endpoint.
pub struct Machine {
    layout: Rc<Layout>,
    node: usize,
    states: Vec<State>,
    names: HashMap<u64, StateId>,
    steps: HashMap<(StateId, Meeting), Rc<Step>>,
    parked: HashMap<StateId, Actor>,
}

impl Machine {
    pub fn new(layout: Rc<Layout>, node: usize) -> Self {
        let start = Actor::new(layout.clone(), node);
        let names = HashMap::from([(start.fingerprint(), 0)]);
        let states = vec![State { summary: start.summary().clone(), origin: None }];
        Machine { layout, node, states, names, steps: HashMap::new(), parked: HashMap::from([(0, start)]) }
    }

    pub fn summary(&self, state: StateId) -> &Summary {
        &self.states[state as usize].summary
    }

    /// All states.
    pub fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.states.iter().map(|state| &state.summary)
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// What happens to `state` under `cause`; an error is a panic's message.
    pub fn step(
        &mut self,
        packets: &mut Packets,
        state: StateId,
        cause: Cause,
        room: &Rc<[usize]>,
    ) -> Result<Rc<Step>, String> {
        let key = (state, (cause, room.clone()));
        if let Some(known) = self.steps.get(&key) {
            return Ok(known.clone());
        }
        let run = catch_unwind(AssertUnwindSafe(|| self.run(packets, state, &key.1)));
        let step = Rc::new(run.map_err(|panic| message_of(&*panic))?);
        self.steps.insert(key, step.clone());
        Ok(step)
    }

    fn run(&mut self, packets: &mut Packets, state: StateId, meeting: &Meeting) -> Step {
        let mut actor = self.parked.remove(&state).unwrap_or_else(|| self.replay(packets, state));
        let effects = actor.step(input(packets, meeting.0), &meeting.1);
        let found = self.states.len() as StateId;
        let next = *self.names.entry(actor.fingerprint()).or_insert(found);
        if next == found {
            let origin = Some((state, meeting.clone()));
            self.states.push(State { summary: actor.summary().clone(), origin });
        }
        if self.parked.len() < PARKED {
            self.parked.insert(next, actor);
        }
        let written = effects.written.iter().map(|(to, packet)| (*to, packets.name(packet))).collect();
        Step { next, written, touched: effects.touched }
    }

    /// An endpoint in `state`.
    fn replay(&self, packets: &Packets, state: StateId) -> Actor {
        let (mut way, mut at) = (Vec::new(), state);
        while let Some((before, meeting)) = &self.states[at as usize].origin {
            way.push(meeting);
            at = *before;
        }
        let mut actor = Actor::new(self.layout.clone(), self.node);
        for (cause, room) in way.into_iter().rev() {
            actor.step(input(packets, *cause), room);
        }
        actor
    }
}

/// What `cause` means to an actor.
pub fn input(packets: &Packets, cause: Cause) -> Input<'_> {
    match cause {
        Cause::Operation => Input::Operation,
        Cause::Packet(name) => Input::Packet(packets.get(name)),
        Cause::Pair(first, second) => Input::Pair(packets.get(first), packets.get(second)),
        Cause::Long(first, second, third) => {
            Input::Long(packets.get(first), packets.get(second), third.map(|third| packets.get(third)))
        }
        Cause::Idle => Input::Idle,
        Cause::Timeout => Input::Timeout,
        Cause::Departure(node) => Input::Departure(node),
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}
