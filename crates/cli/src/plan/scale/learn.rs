//! The program of one rank, written down in rules.
//!
//! From front to back: where the next operations are a loop, the one that explains most of them is taken; else one
//! operation is explained by itself. Then it is said by rule what each of them waits for.

use std::collections::{BTreeMap, BTreeSet};

use super::aim::{Aim, Domain, Geometry};
use super::operation::{After, Operation, Way};
use super::program::{Bytes, NeedRule, Place, Program, Rule, Segment, Tags, Target};

/// Why a pattern does not explain a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Operations that it does explain.
    pub explained: usize,
    /// The first that it does not.
    pub why: String,
}

/// Most operations of one step of a loop.
const PARTS_MOST: usize = 6;

/// One rank of the trace, while it is written down.
struct Scribe<'a> {
    geometry: &'a Geometry,
    rank: u32,
    ranks: u32,
    operations: &'a [Operation],
    segments: Vec<Segment>,
    /// Steps of each of them.
    steps: Vec<usize>,
    /// Where each operation stands.
    places: Vec<Place>,
    /// Which of two rules is taken that mean the same for this rank.
    prefers: Prefers,
}

/// For some ranks, such as the first, "the k-th after" is also "the one that differs by k".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefers {
    /// Distances.
    Distances,
    /// Differences of bits.
    Bits,
}

/// Writes the programs of all roles down.
///
/// # Errors
/// If the rules of this geometry do not do for that.
pub fn learn(all: &[Vec<Operation>], geometry: Geometry, prefers: Prefers) -> Result<Program, Misfit> {
    let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
    let models = geometry.roles(&lengths);
    let mut roles = Vec::new();
    for &rank in &models {
        let operations = &all[rank as usize];
        let (segments, steps, places) = (Vec::new(), Vec::new(), Vec::new());
        let (geometry, ranks) = (&geometry, all.len() as u32);
        let mut scribe = Scribe { geometry, rank, ranks, operations, segments, steps, places, prefers };
        scribe.read_operations()?;
        scribe.read_needs()?;
        roles.push(scribe.segments);
    }
    Ok(Program::new(all.len() as u32, geometry, roles, models))
}

impl Scribe<'_> {
    fn read_operations(&mut self) -> Result<(), Misfit> {
        while let Some(next) = self.operations.get(self.places.len()) {
            let segment = self.segments.len();
            if let Some((found, steps)) = self.longest_loop() {
                let Segment::Loop { body, .. } = &found else { unreachable!("it is a loop") };
                let parts = body.len();
                let each = (0..steps).flat_map(|step| (0..parts).map(move |part| Place { segment, step, part }));
                self.places.extend(each);
                self.segments.push(found);
                self.steps.push(steps);
                continue;
            }
            let aim = match next.way {
                Way::Compute => Some(Aim::Nobody),
                _ => self.geometry.aim_at(next.peer, self.rank, self.ranks),
            };
            let Some(aim) = aim else {
                let Operation { line, .. } = next;
                let why = format!(
                    "rank {} {}, line {line}, which no rule of the pattern explains",
                    self.rank,
                    next.in_words()
                );
                return Err(Misfit { explained: self.places.len(), why });
            };
            let tags = Tags { first: next.tag, each: 0 };
            let (needs_first, needs_next) = (Vec::new(), Vec::new());
            let rule = Rule { way: next.way, aim, bytes: Bytes::Alike(next.bytes), tags, needs_first, needs_next };
            self.segments.push(Segment::Once(rule));
            self.steps.push(1);
            self.places.push(Place { segment, step: 0, part: 0 });
        }
        Ok(())
    }

    /// The loop that explains most of what comes next, and its steps.
    fn longest_loop(&self) -> Option<(Segment, usize)> {
        let mut longest: Option<(Segment, usize, usize)> = None;
        let domains = [Domain::Children, Domain::Others, Domain::Bits];
        for (domain, descends) in domains.into_iter().flat_map(|domain| [(domain, false), (domain, true)]) {
            if domain == Domain::Children && self.geometry.tree.is_none() {
                continue;
            }
            let elements = self.geometry.elements(domain, descends, self.rank, self.ranks);
            if elements.len() < domain.least() {
                continue;
            }
            for parts in 1..=PARTS_MOST {
                let Some(body) = self.body(domain, &elements, parts) else { continue };
                let explained = parts * elements.len();
                if longest.as_ref().is_none_or(|(.., before)| explained > *before) {
                    longest = Some((Segment::Loop { domain, descends, body }, elements.len(), explained));
                }
            }
        }
        longest.map(|(found, steps, _)| (found, steps))
    }

    /// The body of a loop of so many parts over these elements, if that is what comes next.
    fn body(&self, domain: Domain, elements: &[u32], parts: usize) -> Option<Vec<Rule>> {
        let rest = self.operations.get(self.places.len()..)?;
        let all = rest.get(..parts * elements.len())?;
        if all[..parts].iter().all(|operation| operation.way == Way::Compute) {
            return None;
        }
        let part = |part: usize| all.iter().skip(part).step_by(parts);
        (0..parts).map(|number| self.part(domain, elements, part(number))).collect()
    }

    /// The rule that these follow, one in each step of a loop.
    fn part<'b>(
        &self,
        domain: Domain,
        elements: &[u32],
        operations: impl Iterator<Item = &'b Operation> + Clone,
    ) -> Option<Rule> {
        let first = operations.clone().next()?;
        let is_computation = first.way == Way::Compute;
        let mut aims = if is_computation { vec![Aim::Nobody] } else { domain.aims().to_vec() };
        if self.prefers == Prefers::Bits {
            aims.reverse();
        }
        let steps = || elements.iter().zip(operations.clone());
        if steps().any(|(_, operation)| operation.way != first.way) {
            return None;
        }
        let means = |aim: &Aim, k: u32, peer: u32| self.geometry.peer(*aim, self.rank, self.ranks, k) == Some(peer);
        let fits = |aim: &&Aim| is_computation || steps().all(|(&k, operation)| means(aim, k, operation.peer));
        let aim = *aims.iter().find(fits)?;
        let mut sizes = vec![Bytes::Alike(first.bytes)];
        if domain != Domain::Others {
            sizes.push(Bytes::Doubling(first.bytes >> elements[0]));
        }
        let bytes = sizes.into_iter().find(|bytes| steps().all(|(&k, operation)| operation.bytes == bytes.of(k)))?;
        let second = operations.clone().nth(1).map_or(first.tag, |second| second.tag);
        let tags = Tags { first: first.tag, each: second.wrapping_sub(first.tag) };
        let counted = operations.clone().enumerate();
        if counted.into_iter().any(|(step, operation)| operation.tag != tags.of(step)) {
            return None;
        }
        Some(Rule { way: first.way, aim, bytes, tags, needs_first: Vec::new(), needs_next: Vec::new() })
    }

    /// Says by rule what each operation waits for.
    fn read_needs(&mut self) -> Result<(), Misfit> {
        for at in 0..self.operations.len() {
            let rules = self.needs(at).ok_or_else(|| self.misfit(at, "waits for what no rule explains"))?;
            let place = self.places[at];
            let rule = match &mut self.segments[place.segment] {
                Segment::Once(rule) => rule,
                Segment::Loop { body, .. } => &mut body[place.part],
            };
            match place.step {
                0 => rule.needs_first = rules,
                1 => rule.needs_next = rules,
                _ if rule.needs_next != rules => {
                    return Err(self.misfit(at, "waits for other things than in the step before"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn misfit(&self, at: usize, what: &str) -> Misfit {
        let operation = &self.operations[at];
        let why = format!("rank {} {what} before it {}, line {}", self.rank, operation.in_words(), operation.line);
        Misfit { explained: at, why }
    }

    /// What an operation waits for, by rule. `None`: there is none.
    fn needs(&self, at: usize) -> Option<Vec<NeedRule>> {
        let mut rules = Vec::new();
        // Of loops: which steps of which part.
        let mut steps: BTreeMap<(usize, usize, After), BTreeSet<usize>> = BTreeMap::new();
        for need in &self.operations[at].needs {
            let Place { segment, step, part } = self.places[need.operation];
            if need.operation + 1 == at && need.after == After::Begin {
                rules.push(NeedRule { target: Target::Previous, after: need.after });
            } else if matches!(self.segments[segment], Segment::Once(_)) {
                rules.push(NeedRule { target: Target::Once { segment }, after: need.after });
            } else {
                steps.entry((segment, part, need.after)).or_default().insert(step);
            }
        }
        for ((segment, part, after), steps) in steps {
            rules.push(NeedRule { target: self.target(self.places[at], segment, part, &steps)?, after });
        }
        rules.sort_unstable();
        Some(rules)
    }

    /// What these steps of a part of a loop are, seen from a place.
    fn target(&self, from: Place, segment: usize, part: usize, steps: &BTreeSet<usize>) -> Option<Target> {
        let only = (steps.len() == 1).then(|| *steps.first().expect("there is one"));
        if segment == from.segment {
            return match only? {
                step if step == from.step => Some(Target::SameStep { segment, part }),
                step if step + 1 == from.step => Some(Target::StepBefore { part }),
                _ => None,
            };
        }
        let all = self.steps[segment];
        if steps.len() == all {
            return Some(Target::AllSteps { segment, part });
        }
        let step = only?;
        let is_in_loop = matches!(self.segments[from.segment], Segment::Loop { .. });
        if is_in_loop && self.steps[from.segment] == all && step == from.step {
            return Some(Target::SameStep { segment, part });
        }
        (step + 1 == all).then_some(Target::LastStep { segment, part })
    }
}
