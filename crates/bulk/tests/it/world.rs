//! [`World`]: nodes, what is under way between them, and what may happen next. What must hold is checked as it does.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use tidegate_bulk::{Action, Block, Completion, Event, Exchange, Node, Piece, Settings, Signal, Step, TechniqueName};
use tidegate_flow::Instant;

/// Something that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The oldest signal of a pair arrives.
    Signal(Node, Node),
    /// A piece is at its receiver, all of it.
    Land(Node, Piece),
    /// Its sender hears so.
    Tell(Node, Piece),
    /// A node hears that all are in the barrier.
    Pass(Node),
    /// A node has waited until then.
    Wake(Node, Instant),
    /// A node dies. What it has sent still arrives, or nothing of it does.
    Die(Node, bool),
    /// A node hears of that, when all that still arrives has.
    Lose(Node, Node),
}

/// Two hashes at once, by multiplication: much faster than that of the standard library, whose keys are secret.
struct Lanes(u64, u64);

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word);
            self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.1 = (self.1.rotate_left(31) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
    }
}

/// One node and what the world knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    exchange: Exchange,
    alive: bool,
    finished: bool,
    now: Instant,
    wake: Option<Instant>,
    /// In the barrier, with this to say.
    inside: Option<bool>,
    /// All are in, which it has not heard.
    passing: Option<bool>,
    /// Nodes that died, which it has not heard.
    unknown: Vec<Node>,
    /// What has arrived of each of its blocks: offsets and lengths.
    arrived: Vec<BTreeMap<u64, u64>>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    members: Vec<Member>,
    blocks: Vec<Vec<Block>>,
    wires: BTreeMap<(Node, Node), VecDeque<Signal>>,
    flights: Vec<(Node, Piece)>,
    untold: Vec<(Node, Piece)>,
    deaths_left: u32,
}

impl World {
    /// Nodes that send `blocks[i]` each, of whom `deaths` may die.
    pub fn new(technique: TechniqueName, blocks: &[Vec<Block>], settings: &Settings, deaths: u32) -> Self {
        let nodes = blocks.len() as u32;
        let members = (0..nodes).map(Node).zip(blocks).map(|(me, blocks)| Member {
            exchange: Exchange::new(technique, me, nodes, blocks, settings),
            alive: true,
            finished: false,
            now: Instant::default(),
            wake: None,
            inside: None,
            passing: None,
            unknown: Vec::new(),
            arrived: vec![BTreeMap::new(); blocks.len()],
        });
        let mut world = World {
            members: members.collect(),
            blocks: blocks.to_vec(),
            wires: BTreeMap::new(),
            flights: Vec::new(),
            untold: Vec::new(),
            deaths_left: deaths,
        };
        for node in 0..nodes {
            world.run(Node(node));
        }
        world.look_at_barrier();
        world
    }

    fn member(&mut self, node: Node) -> &mut Member {
        &mut self.members[node.0 as usize]
    }

    fn is_alive(&self, node: Node) -> bool {
        self.members[node.0 as usize].alive
    }

    /// A number for the whole state, wide enough that two states do not share one.
    pub fn fingerprint(&self) -> u128 {
        let mut lanes = Lanes(1, 2);
        self.hash(&mut lanes);
        u128::from(lanes.0) << 64 | u128::from(lanes.1)
    }

    /// All that may happen now.
    pub fn happenings(&self) -> Vec<Happening> {
        let mut all = Vec::new();
        all.extend(self.wires.keys().map(|(from, to)| Happening::Signal(*from, *to)));
        all.extend(self.flights.iter().map(|(from, piece)| Happening::Land(*from, *piece)));
        all.extend(self.untold.iter().map(|(from, piece)| Happening::Tell(*from, *piece)));
        for (node, member) in (0..).map(Node).zip(&self.members).filter(|(_, member)| member.alive) {
            all.extend(member.passing.map(|_| Happening::Pass(node)));
            all.extend(member.wake.map(|wake| Happening::Wake(node, wake)));
            let fenced = member.unknown.iter().filter(|lost| {
                let flies = self.flights.iter().any(|(from, piece)| from == *lost && piece.to == node);
                !flies && !self.wires.contains_key(&(**lost, node))
            });
            all.extend(fenced.map(|lost| Happening::Lose(node, *lost)));
            if self.deaths_left > 0 {
                all.extend([Happening::Die(node, true), Happening::Die(node, false)]);
            }
        }
        all
    }

    /// Lets something happen, and its node do all it can.
    pub fn apply(&mut self, happening: Happening) {
        match happening {
            Happening::Signal(from, to) => {
                let wire = self.wires.get_mut(&(from, to)).expect("a signal is under way");
                let signal = wire.pop_front().expect("a signal is under way");
                if wire.is_empty() {
                    self.wires.remove(&(from, to));
                }
                let bytes = signal.emit();
                assert_eq!(Signal::parse(&bytes), Some(signal));
                self.tell(to, Event::Signalled { from, signal });
            }
            Happening::Land(from, piece) => self.land(from, piece),
            Happening::Tell(from, piece) => {
                self.untold.retain(|told| *told != (from, piece));
                self.tell(from, Event::Sent(piece));
            }
            Happening::Pass(node) => {
                let work_left = self.member(node).passing.take().expect("all are in");
                self.member(node).inside = None;
                self.tell(node, Event::Passed { work_left });
            }
            Happening::Wake(node, now) => {
                self.member(node).now = now;
                self.run(node);
            }
            Happening::Die(node, arrives) => self.die(node, arrives),
            Happening::Lose(node, lost) => {
                self.member(node).unknown.retain(|unknown| *unknown != lost);
                self.tell(node, Event::Lost(lost));
            }
        }
        self.look_at_barrier();
        self.check();
    }

    fn tell(&mut self, node: Node, event: Event) {
        self.member(node).exchange.handle(event);
        self.run(node);
    }

    fn land(&mut self, from: Node, piece: Piece) {
        self.flights.retain(|flight| *flight != (from, piece));
        self.arrive(from, piece);
        if self.is_alive(from) {
            self.untold.push((from, piece));
            self.untold.sort_by_key(|(from, piece)| (*from, piece.block, piece.offset));
        }
        self.tell(piece.to, Event::Arrived { from });
    }

    fn arrive(&mut self, from: Node, piece: Piece) {
        let arrived = &mut self.member(from).arrived[piece.block as usize];
        let before = arrived.range(..=piece.offset).next_back().map_or(0, |(offset, bytes)| offset + bytes);
        let behind = arrived.range(piece.offset..).next().map_or(u64::MAX, |(offset, _)| *offset);
        assert!(before <= piece.offset && piece.offset + piece.bytes <= behind, "some of {piece:?} comes twice");
        arrived.insert(piece.offset, piece.bytes);
        let block = self.blocks[from.0 as usize][piece.block as usize];
        assert!(block.to == piece.to && piece.offset + piece.bytes <= block.bytes && piece.bytes > 0, "{piece:?}");
    }

    fn die(&mut self, node: Node, arrives: bool) {
        self.deaths_left -= 1;
        let member = self.member(node);
        member.alive = false;
        (member.wake, member.passing, member.inside) = (None, None, None);
        self.wires.retain(|(from, to), _| *to != node && (arrives || *from != node));
        self.flights.retain(|(from, piece)| piece.to != node && (arrives || *from != node));
        self.untold.retain(|(from, piece)| piece.to != node && *from != node);
        for member in self.members.iter_mut().filter(|member| member.alive) {
            member.unknown.push(node);
        }
    }

    /// Does what a node says until it waits.
    fn run(&mut self, node: Node) {
        loop {
            let member = self.member(node);
            let now = member.now;
            let step = member.exchange.step(now);
            member.finished = step == Step::Finished;
            member.wake = if let Step::WaitUntil(wake) = step { Some(wake) } else { None };
            match step {
                Step::Do(Action::Copy(piece)) => {
                    assert_eq!(piece.to, node);
                    self.arrive(node, piece);
                }
                Step::Do(Action::Send(piece)) => {
                    assert_ne!(piece.to, node);
                    if self.is_alive(piece.to) {
                        self.flights.push((node, piece));
                        self.flights.sort_by_key(|(from, piece)| (*from, piece.block, piece.offset));
                    }
                }
                Step::Do(Action::Signal { to, signal }) => {
                    assert_ne!(to, node, "{signal:?}");
                    if self.is_alive(to) {
                        self.wires.entry((node, to)).or_default().push_back(signal);
                    }
                }
                Step::Do(Action::Enter { work_left }) => {
                    assert!(member.inside.is_none(), "{node:?} enters a barrier in which it is");
                    member.inside = Some(work_left);
                }
                Step::WaitUntil(wake) => {
                    assert!(wake > now);
                    break;
                }
                Step::Wait | Step::Finished => break,
            }
        }
    }

    /// When all who live are in, and know who does not, they pass.
    fn look_at_barrier(&mut self) {
        let mut living = self.members.iter().filter(|member| member.alive);
        let mut in_it = living.clone();
        if !living.all(|member| member.inside.is_some() && member.passing.is_none() && member.unknown.is_empty()) {
            return;
        }
        let work_left = in_it.any(|member| member.inside == Some(true));
        for member in self.members.iter_mut().filter(|member| member.alive) {
            member.passing = Some(work_left);
        }
    }

    /// What must hold at any time.
    fn check(&self) {
        let name = self.members[0].exchange.name();
        if name.completion() == Completion::Local {
            return;
        }
        for node in (0..self.members.len() as u32).map(Node) {
            let senders = self.flights.iter().filter(|(_, piece)| piece.to == node).count();
            assert!(senders <= 1, "{senders} pieces are under way to {node:?}: {:?}", self.flights);
            let sent = self.flights.iter().chain(&self.untold).filter(|(from, _)| *from == node).count();
            assert!(sent <= 1, "{node:?} sends {sent} pieces at once");
            let holders = self.members.iter().filter(|member| member.alive && member.exchange.holds_token(node));
            let way = |signal: &Signal| matches!(signal, Signal::Token { of } if *of == node);
            let on_way = self.wires.values().flatten().filter(|signal| way(signal)).count();
            let deaths = self.members.iter().any(|member| !member.alive);
            let tokens = holders.clone().count() + if deaths { 0 } else { on_way };
            assert!(tokens <= 1, "{tokens} tokens of {node:?}");
            let lost = name == TechniqueName::Tokens && tokens == 0 && !deaths;
            assert!(!lost, "the token of {node:?} is lost");
        }
        self.check_bookings();
    }

    /// A round has one sender for each receiver and one receiver for each sender, and a sender's booking is known to
    /// its receiver.
    fn check_bookings(&self) {
        for member in self.members.iter().filter(|member| member.alive) {
            let booked = member.exchange.bookings();
            for (place, one) in booked.iter().enumerate() {
                let twice =
                    booked[place + 1..].iter().any(|two| (two.round, two.receives) == (one.round, one.receives));
                assert!(!twice, "two in a round: {booked:?}");
            }
        }
        for (me, member) in (0..).map(Node).zip(&self.members).filter(|(_, member)| member.alive) {
            for mine in member.exchange.bookings().into_iter().filter(|booked| !booked.receives) {
                let receiver = &self.members[mine.peer.0 as usize];
                let rival = receiver.exchange.bookings().into_iter().find(|theirs| {
                    theirs.receives && theirs.round == mine.round && theirs.peer != me && receiver.alive
                });
                assert!(rival.is_none(), "{me:?} has {mine:?}, but its receiver {rival:?}");
            }
        }
    }

    /// Nothing can happen any more: all who live are through, and have got all that the living sent.
    pub fn check_end(&self) {
        for (node, member) in (0..).map(Node).zip(&self.members).filter(|(_, member)| member.alive) {
            assert!(member.finished, "{node:?} waits for ever: {:#?}", self.members);
            for (block, arrived) in self.blocks[node.0 as usize].iter().zip(&member.arrived) {
                let arrived: u64 = arrived.values().sum();
                assert!(arrived == block.bytes || !self.is_alive(block.to), "{node:?} has not sent {block:?}");
            }
        }
    }
}
