//! [`Program`]: what all ranks of a job do, in rules.

use std::collections::{BTreeSet, HashMap};

use tidegate_sim::Time;

use super::aim::{Aim, Domain, Fixed, Geometry};
use super::learn::Misfit;
use super::operation::{After, Need, Operation, Way};

/// Where an operation stands in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which segment.
    pub segment: usize,
    /// Which step of a loop; 0 outside of loops.
    pub step: usize,
    /// Which part of the loop's body; 0 outside of loops.
    pub part: usize,
}

/// How large messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// All alike.
    Alike(u64),
    /// In a loop over bits or children, so many times 2^k.
    Doubling(u64),
}

impl Bytes {
    /// In the step whose element is `k`.
    pub fn of(self, k: u32) -> u64 {
        match self {
            Bytes::Alike(bytes) => bytes,
            Bytes::Doubling(bytes) => bytes << k,
        }
    }
}

/// Tags of messages: the first, and what each step of a loop adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    pub first: u64,
    pub each: u64,
}

impl Tags {
    /// In the `step`-th step.
    pub fn of(self, step: usize) -> u64 {
        self.first.wrapping_add(self.each.wrapping_mul(step as u64))
    }
}

/// Which operation has to have begun or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The one right before, whatever it is.
    Previous,
    /// One outside of loops.
    Once { segment: usize },
    /// A part of a loop in the same step; of another loop in the step with the same number.
    SameStep { segment: usize, part: usize },
    /// A part of the same loop in the step before.
    StepBefore { part: usize },
    /// A part of another loop in its last step.
    LastStep { segment: usize, part: usize },
    /// A part of another loop in all its steps.
    AllSteps { segment: usize, part: usize },
}

/// A need, as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeedRule {
    pub target: Target,
    pub after: After,
}

/// An operation, as a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub way: Way,
    pub aim: Aim,
    pub bytes: Bytes,
    pub tags: Tags,
    /// Outside of loops, and in the first step of one.
    pub needs_first: Vec<NeedRule>,
    /// In all other steps.
    pub needs_next: Vec<NeedRule>,
}

/// A piece of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// One operation.
    Once(Rule),
    /// Some operations for each of many.
    Loop { domain: Domain, descends: bool, body: Vec<Rule> },
}

/// What becomes of the needs of an operation that a rank does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The next one has them: a program waits at a place, whatever it does there.
    Next,
    /// Nobody has them: a graph of operations lacks one.
    Nobody,
}

/// What all ranks of a job do.
#[derive(Clone, Debug)]
pub struct Program {
    /// Ranks of the job.
    pub ranks: u32,
    /// What the rules mean.
    pub geometry: Geometry,
    /// For each role.
    pub roles: Vec<Vec<Segment>>,
    /// What becomes of what an operation waits for that a rank does not have, because there is nobody at its other end.
    pub absent: Absent,
    /// Where it comes from: the ranks of the trace, and what rules mean there.
    original: (u32, Geometry),
    /// How long each rank of the trace computes before each of its operations.
    times: Vec<HashMap<Place, Time>>,
    /// And the rank from which a role was learnt.
    models: Vec<u32>,
}

/// What stands at which place for one rank, while its part is made.
#[derive(Default)]
struct Made {
    all: Vec<(Place, Operation)>,
    at: HashMap<Place, usize>,
    /// Steps of each segment.
    steps: Vec<usize>,
    /// What absent operations would have waited for, if the next one does.
    left: Vec<Need>,
}

impl Program {
    /// One whose computation times are not known yet.
    pub fn new(ranks: u32, geometry: Geometry, roles: Vec<Vec<Segment>>, models: Vec<u32>) -> Self {
        let (original, times) = ((ranks, geometry.clone()), Vec::new());
        Program { ranks, original, geometry, roles, absent: Absent::Next, times, models }
    }

    /// What a rank does, and where each operation stands; nobody computes.
    fn made(&self, rank: u32) -> Made {
        let mut made = Made::default();
        for (segment, piece) in self.roles[self.geometry.role(rank)].iter().enumerate() {
            match piece {
                Segment::Once(rule) => {
                    let peer = self.geometry.peer(rule.aim, rank, self.ranks, 0);
                    made.add(Place { segment, step: 0, part: 0 }, rule, peer, 0, self.absent);
                    made.steps.push(1);
                }
                Segment::Loop { domain, descends, body } => {
                    let elements = self.geometry.elements(*domain, *descends, rank, self.ranks);
                    for (step, &k) in elements.iter().enumerate() {
                        for (part, rule) in body.iter().enumerate() {
                            let peer = self.geometry.peer(rule.aim, rank, self.ranks, k);
                            made.add(Place { segment, step, part }, rule, peer, k, self.absent);
                        }
                    }
                    if elements.is_empty() {
                        for (part, rule) in body.iter().enumerate() {
                            made.add(Place { segment, step: 0, part }, rule, None, 0, self.absent);
                        }
                    }
                    made.steps.push(elements.len());
                }
            }
        }
        made
    }

    /// What a rank does.
    pub fn of_rank(&self, rank: u32) -> Vec<Operation> {
        let Made { mut all, .. } = self.made(rank);
        let (ranks, geometry) = &self.original;
        let like = geometry.like(*ranks, &self.geometry, rank);
        let model = self.models[self.geometry.role(rank)];
        for (place, operation) in &mut all {
            let time = self.time(like, *place).or_else(|| self.time(model, *place));
            operation.compute = time.unwrap_or_default();
        }
        all.into_iter().map(|(_, operation)| operation).collect()
    }

    /// How long a rank of the trace computes before an operation; a longer loop takes up its times again from the
    /// second step on.
    fn time(&self, rank: u32, place: Place) -> Option<Time> {
        let times = self.times.get(rank as usize)?;
        let has = |step: usize| times.get(&Place { step, ..place });
        // The first step is unlike the others: what lies before the loop is computed there.
        let again = || {
            let later = (1..place.step).find(|step| has(*step).is_none())?.checked_sub(1)?;
            has(1 + (place.step - 1).checked_rem(later)?)
        };
        has(place.step).or_else(again).copied()
    }

    /// This program, if it gives the trace back, with the trace's computation times.
    pub fn checked(mut self, all: &[Vec<Operation>]) -> Result<Self, Misfit> {
        let mut explained = 0;
        for (rank, theirs) in all.iter().enumerate() {
            let made = self.made(rank as u32).all;
            let mut times = HashMap::with_capacity(made.len());
            for ((place, ours), theirs) in made.iter().zip(theirs) {
                let alike = Operation { compute: theirs.compute, line: theirs.line, ..ours.clone() };
                if alike != *theirs {
                    let why = difference(rank, ours, theirs);
                    return Err(Misfit { explained, why });
                }
                explained += 1;
                times.insert(*place, theirs.compute);
            }
            if made.len() != theirs.len() {
                let why = match (made.get(theirs.len()), theirs.get(made.len())) {
                    (Some((_, ours)), _) => format!("rank {rank} ends where by the pattern it {}", ours.in_words()),
                    (_, Some(more)) => {
                        format!("rank {rank} {}, line {}, where the pattern ends", more.in_words(), more.line)
                    }
                    (None, None) => unreachable!("one of them is longer"),
                };
                return Err(Misfit { explained, why });
            }
            self.times.push(times);
        }
        Ok(self)
    }

    /// All rules.
    fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.roles.iter().flatten().flat_map(|segment| match segment {
            Segment::Once(rule) => std::slice::from_ref(rule),
            Segment::Loop { body, .. } => body.as_slice(),
        })
    }

    /// The same program for more ranks.
    pub fn grow(self, ranks: u32) -> Result<Self, String> {
        if ranks < self.ranks {
            return Err(format!("the trace has {} ranks: a pattern is scaled up, not down to {ranks}", self.ranks));
        }
        let by_bits = |rule: &Rule| matches!(rule.aim, Aim::Bit | Aim::Xor | Aim::Child | Aim::Parent);
        if !ranks.is_power_of_two() && self.rules().any(by_bits) {
            let (less, more) = (ranks.next_power_of_two() / 2, ranks.next_power_of_two());
            return Err(format!(
                "the pattern goes along the bits of ranks, so it is continued to powers of two only: {ranks} is none; \
                 try {less} or {more}"
            ));
        }
        let geometry = self.geometry.grow(self.ranks, ranks)?;
        Ok(Program { ranks, geometry, ..self })
    }

    /// What there is, in words.
    pub fn description(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let has = |aims: &[Aim]| self.rules().any(|rule| aims.contains(&rule.aim));
        let distances: BTreeSet<i64> = self
            .rules()
            .filter_map(|rule| match (rule.aim, rule.way) {
                (Aim::Distance(by), Way::Send) => Some(by),
                _ => None,
            })
            .collect();
        if !distances.is_empty() {
            let each: Vec<String> = distances.iter().map(|by| format!("{by:+}")).collect();
            words.push(format!("messages in a ring by {}", each.join(", ")));
        }
        if let Fixed::Grid(grid) = &self.geometry.fixed {
            words.push(format!("neighbours in a {grid}"));
        }
        if let Fixed::Star { root } = self.geometry.fixed {
            words.push(format!("a star around rank {root}"));
        }
        if has(&[Aim::Parent, Aim::Child]) {
            words.push(format!("a binomial tree below rank {}", self.geometry.tree.unwrap_or(0)));
        }
        let is_star = matches!(self.geometry.fixed, Fixed::Star { .. });
        if has(&[Aim::After, Aim::Before, Aim::Other, Aim::Xor]) && !is_star {
            words.push("everybody with everybody in turn".to_owned());
        }
        if has(&[Aim::Bit, Aim::AfterBit, Aim::BeforeBit]) {
            words.push("exchanges along the bits of ranks".to_owned());
        }
        if words.is_empty() { "no messages".to_owned() } else { words.join("; ") }
    }
}

/// What a rank does otherwise than by the pattern.
fn difference(rank: usize, ours: &Operation, theirs: &Operation) -> String {
    let line = theirs.line;
    if ours.in_words() == theirs.in_words() && ours.way == theirs.way {
        return format!("rank {rank} {}, line {line}, after other operations than by the pattern", theirs.in_words());
    }
    format!("rank {rank} {}, line {line}, where by the pattern it {}", theirs.in_words(), ours.in_words())
}

impl Made {
    /// Adds an operation, unless there is nobody at its other end.
    fn add(&mut self, place: Place, rule: &Rule, peer: Option<u32>, k: u32, absent: Absent) {
        let rules = if place.step == 0 { &rule.needs_first } else { &rule.needs_next };
        let Some(peer) = peer else {
            if absent == Absent::Next {
                let others: Vec<_> = rules.iter().filter(|rule| rule.target != Target::Previous).copied().collect();
                let needs = self.needs(place, &others);
                self.left.extend(needs);
            }
            return;
        };
        let mut needs = self.needs(place, rules);
        needs.append(&mut self.left);
        needs.sort_unstable();
        needs.dedup();
        let is_message = rule.way != Way::Compute;
        let operation = Operation {
            way: rule.way,
            peer: if is_message { peer } else { 0 },
            bytes: rule.bytes.of(k),
            tag: rule.tags.of(place.step),
            compute: Time::ZERO,
            needs,
            line: 0,
        };
        self.at.insert(place, self.all.len());
        self.all.push((place, operation));
    }

    /// Steps of a segment that is over, or not yet begun.
    fn steps_of(&self, segment: usize) -> usize {
        self.steps.get(segment).copied().unwrap_or(0)
    }

    /// What these rules mean here. What this rank does not have is not waited for.
    fn needs(&self, place: Place, rules: &[NeedRule]) -> Vec<Need> {
        let mut needs = Vec::with_capacity(rules.len());
        for NeedRule { target, after } in rules {
            let mut need = |segment: usize, step: usize, part: usize| {
                let found = self.at.get(&Place { segment, step, part });
                needs.extend(found.map(|&operation| Need { operation, after: *after }));
            };
            match *target {
                Target::Previous => {
                    let before = self.all.len().checked_sub(1);
                    needs.extend(before.map(|operation| Need { operation, after: *after }));
                }
                Target::Once { segment } => need(segment, 0, 0),
                Target::SameStep { segment, part } => need(segment, place.step, part),
                Target::StepBefore { part } => need(place.segment, place.step - 1, part),
                Target::LastStep { segment, part } => {
                    let last = self.steps_of(segment).checked_sub(1);
                    last.into_iter().for_each(|last| need(segment, last, part));
                }
                Target::AllSteps { segment, part } => {
                    (0..self.steps_of(segment)).for_each(|step| need(segment, step, part))
                }
            }
        }
        needs
    }
}
