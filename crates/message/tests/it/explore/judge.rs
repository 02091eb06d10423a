//! What MPI allows, as if memory had no end: a run in which nothing moves any more is held to these rules. Those of
//! `endpoint/reference.rs`, and those for probe, claim, cancel and death.
//!
//! 1. A receive got a message that it accepts, whole, and no message was received twice.
//! 2. No overtaking: if a receive took a message although an earlier one of the same sender would have done, then that
//!    one had been taken by a receive posted before. A claim takes its message, and so does a discard; a probe names
//!    the one that a receive would take.
//! 3. No message and no receive are left over that accept each other.
//! 4. No receive goes without if a later one of the same program took a message that it accepts.
//! 5. A receive of what a probe found gets just that; one of what a claim set aside too.
//! 6. Every program has come to its end, and every send whose message was received has completed.
//! 7. Both sides of every pair agree on what is left of their windows, on which sends are deferred and how many
//!    envelopes were dropped, and no query is open.
//! 8. Only what involves a node that was killed may fail, or, canceled by its program, say so.
//! 9. Every remote operation has completed, and memory holds what a sequential run leaves there; nothing is unanswered.

use super::actor::{Outcome, Presence, Summary, space_of};
use super::layout::{Layout, MessageName, Op, UNTAGGED};
use crate::support::{node_of, pattern};
use tidegate_message::{BacklogInspection, Failure, Target};

/// A message as it was sent.
#[derive(Clone, Copy, Debug)]
struct Message {
    name: MessageName,
    to: usize,
    tag: u64,
    size: usize,
}

/// Something that looked for a message.
#[derive(Clone, Copy, Debug)]
struct Taker {
    node: usize,
    /// Its place in the order of posting.
    place: usize,
    from: Option<usize>,
    tag: Option<u64>,
    /// A probe names a message and leaves it.
    takes: bool,
    /// What it found.
    found: Option<MessageName>,
    /// It waits, or found nothing.
    waits: bool,
}

impl Taker {
    fn accepts(&self, message: &Message) -> bool {
        self.node == message.to
            && self.from.is_none_or(|from| from == message.name.node)
            && self.tag.map_or(message.tag != UNTAGGED, |tag| tag == message.tag)
    }
}

struct Judge<'r> {
    layout: &'r Layout,
    run: &'r [&'r Summary],
    messages: Vec<Message>,
    takers: Vec<Taker>,
}

/// Judges a run in which nothing moves any more.
pub fn judge(layout: &Layout, run: &[&Summary]) -> Result<(), String> {
    let mut judge = Judge { layout, run, messages: Vec::new(), takers: Vec::new() };
    let operations =
        || (0..run.len()).flat_map(|node| (0..run[node].place).map(move |place| MessageName { node, place }));
    operations().try_for_each(|name| judge.note_send(name))?;
    operations().try_for_each(|name| judge.note_taker(name.node, name.place))?;
    judge.check_order()?;
    judge.check_left_over()?;
    judge.check_windows()?;
    judge.check_memory()?;
    judge.check_ends()
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Judge<'_> {
    fn outcome(&self, name: MessageName) -> Option<&Outcome> {
        self.run[name.node].outcomes[name.place].as_ref()
    }

    fn is_gone(&self, node: usize) -> bool {
        self.run[node].presence != Presence::Alive
    }

    /// Takes down a send that was started.
    fn note_send(&mut self, name: MessageName) -> Result<(), String> {
        let op = self.layout.programs[name.node][name.place];
        let (Op::Send { to, tag, size } | Op::Inject { to, tag, size } | Op::Fenced { to, tag, size }) = op else {
            return Ok(());
        };
        self.messages.push(Message { name, to, tag, size });
        let failed = self.outcome(name).is_some_and(|outcome| outcome.completion.result.is_err());
        ensure(!failed || self.is_gone(to), || format!("{name:?} failed: {:?}", self.outcome(name)))
    }

    /// Takes down a receive or probe that was started, and checks by itself what came of it.
    fn note_taker(&mut self, node: usize, place: usize) -> Result<(), String> {
        let (from, tag, takes) = match self.layout.programs[node][place] {
            Op::Receive { from, tag } => (from, tag, true),
            Op::Probe { from, tag } | Op::Look { from, tag } => (from, tag, false),
            // Its message counts as taken since the claim.
            Op::Claim { from, tag } | Op::Discard { from, tag } => (from, tag, true),
            Op::ReceiveProbed { of } | Op::ReceiveClaimed { of } => return self.note_second(node, place, of),
            _ => return Ok(()),
        };
        let (found, waits) = self.found(node, place)?;
        self.takers.push(Taker { node, place, from, tag, takes, found, waits });
        Ok(())
    }

    /// What a receive or probe found, and whether it still waits. Rules 1 and 8.
    fn found(&self, node: usize, place: usize) -> Result<(Option<MessageName>, bool), String> {
        let op = self.layout.programs[node][place];
        let Some(Outcome { completion, bytes }) = self.outcome(MessageName { node, place }) else {
            return Ok((None, true));
        };
        let failed = || format!("operation {place} of node {node}: {completion:?}");
        match &completion.result {
            Ok(()) => {}
            Err(Failure::Canceled) => {
                let canceled = self.layout.programs[node].contains(&Op::Cancel { of: place });
                return ensure(canceled, failed).map(|()| (None, false));
            }
            Err(Failure::NoMessage) => {
                return ensure(matches!(op, Op::Look { .. }), failed).map(|()| (None, false));
            }
            Err(Failure::PeerLost { .. }) => {
                let killed = self.run.iter().any(|summary| summary.presence != Presence::Alive);
                return ensure(killed, failed).map(|()| (None, false));
            }
            Err(_) => return Err(failed()),
        }
        let name = MessageName::from_number(completion.data.ok_or_else(failed)?);
        let Message { to, tag, size, .. } = self.message(name).ok_or_else(failed)?;
        let source = match completion.source {
            Some(Target::Peer(peer)) => node_of(node, peer, self.layout.nodes()),
            _ => return Err(failed()),
        };
        let has_tag = completion.space == space_of(*tag);
        let same = (source, *to, completion.length) == (name.node, node, *size) && has_tag;
        ensure(same, || format!("{name:?} came as something else: {completion:?}"))?;
        let brings = matches!(op, Op::Receive { .. } | Op::ReceiveProbed { .. } | Op::ReceiveClaimed { .. });
        let whole = !brings || *bytes == pattern(name.number(), *size);
        ensure(whole, || format!("{name:?} was received with wrong bytes at place {place} of node {node}"))?;
        Ok((Some(name), false))
    }

    /// A receive of what an earlier operation found. Rule 5.
    fn note_second(&mut self, node: usize, place: usize, of: usize) -> Result<(), String> {
        let earlier = *self.takers.iter().find(|taker| (taker.node, taker.place) == (node, of)).expect("it was noted");
        let (found, waits) = self.found(node, place)?;
        let gone = earlier.found.is_some_and(|name| self.is_gone(name.node));
        let same = found == earlier.found || (gone && found.is_none());
        ensure(same, || format!("place {of} of node {node} found {:?}, place {place} got {found:?}", earlier.found))?;
        if !earlier.takes {
            let name = earlier.found.expect("a probe ends when it has found something");
            let message = *self.message(name).ok_or("a probe found what was not sent")?;
            let (from, tag) = (Some(name.node), Some(message.tag));
            self.takers.push(Taker { node, place, from, tag, takes: true, found, waits });
        }
        Ok(())
    }

    fn message(&self, name: MessageName) -> Option<&Message> {
        self.messages.iter().find(|message| message.name == name)
    }

    fn taker_of(&self, name: MessageName) -> Option<&Taker> {
        self.takers.iter().find(|taker| taker.takes && taker.found == Some(name))
    }

    /// Rules 1, 2 and 4.
    fn check_order(&self) -> Result<(), String> {
        for taker in &self.takers {
            let Some(name) = taker.found else { continue };
            let message = self.message(name).ok_or("a receive got what was not sent")?;
            ensure(taker.accepts(message), || format!("{taker:?} took {message:?}"))?;
            let takers = self.takers.iter().filter(|taker| taker.takes && taker.found == Some(name));
            ensure(takers.count() <= 1, || format!("{message:?} was received twice"))?;
            let earlier = |other: &&Message| {
                (other.name.node, other.to) == (name.node, message.to) && other.name.place < name.place
            };
            // Of a dead sender a receive may have matched the earlier one, and failed because its payload is lost.
            let rivals = self.messages.iter().filter(|other| !self.is_gone(other.name.node));
            for overtaken in rivals.filter(earlier).filter(|other| taker.accepts(other)) {
                let before = self.taker_of(overtaken.name).is_some_and(|other| other.place < taker.place);
                ensure(before, || format!("{message:?} overtook {overtaken:?} into {taker:?}"))?;
            }
            let without = self.takers.iter().find(|other| {
                let alike = other.node == taker.node && other.takes && taker.takes && !self.is_gone(other.node);
                let rival = alike && other.place < taker.place;
                rival && other.waits && other.accepts(message)
            });
            ensure(without.is_none(), || format!("{taker:?} took {message:?}, {without:?} goes without"))?;
        }
        Ok(())
    }

    /// Rules 3 and 6.
    fn check_left_over(&self) -> Result<(), String> {
        for message in &self.messages {
            if self.is_gone(message.name.node) || self.is_gone(message.to) {
                continue;
            }
            if self.taker_of(message.name).is_some() {
                let done = self.outcome(message.name).is_some();
                let claimed_only = self.takers.iter().any(|taker| {
                    let is_claim = matches!(self.layout.programs[taker.node][taker.place], Op::Claim { .. });
                    is_claim && taker.found == Some(message.name)
                });
                ensure(done || claimed_only, || format!("{message:?} was received, its send hangs"))?;
                continue;
            }
            let waiting = self.takers.iter().find(|taker| taker.takes && taker.waits && taker.accepts(message));
            ensure(waiting.is_none(), || format!("{message:?} and {waiting:?} never met"))?;
        }
        Ok(())
    }

    /// Rule 7.
    fn check_windows(&self) -> Result<(), String> {
        for (node, summary) in self.run.iter().enumerate() {
            for (other, window) in summary.windows.iter().enumerate() {
                let (Some(window), false) = (window, self.is_gone(node) || self.is_gone(other)) else { continue };
                let Some(Some(back)) = self.run[other].windows.get(node) else { continue };
                let sum = window.stored + window.freed + back.room.unwrap_or(window.window);
                let agreed = sum == window.window && window.dropped == back.deferred as u64 && !window.querying;
                ensure(agreed, || format!("{node} has {window:?} for {other}, which has {back:?}"))?;
            }
        }
        Ok(())
    }

    /// Rule 9.
    fn check_memory(&self) -> Result<(), String> {
        let mut fetched = vec![Vec::new(); self.run.len()];
        for (node, summary) in self.run.iter().enumerate() {
            for (place, op) in self.layout.programs[node].iter().enumerate().take(summary.place) {
                let (Op::Write { to } | Op::Read { from: to } | Op::Add { to }) = *op else { continue };
                if self.is_gone(node) || self.is_gone(to) {
                    continue;
                }
                let name = MessageName { node, place };
                let ended = self.outcome(name).filter(|outcome| outcome.completion.result.is_ok());
                let bytes = &ended.ok_or_else(|| format!("{name:?} hangs, or failed: {:?}", self.outcome(name)))?.bytes;
                match op {
                    Op::Write { .. } => {
                        let there = &self.run[to].memory[name.offset()..][..8];
                        ensure(*there == (name.number() as u64).to_le_bytes(), || format!("{name:?} wrote {there:?}"))?;
                    }
                    Op::Add { .. } => fetched[to].push(u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))),
                    _ => {}
                }
            }
            let quiet =
                |backlog: &BacklogInspection| (backlog.requests, backlog.unanswered, backlog.notes) == (0, 0, 0);
            let loud = summary.backlogs.iter().flatten().find(|backlog| !quiet(backlog));
            ensure(loud.is_none() || self.is_gone(node), || format!("something waits at node {node}: {loud:?}"))?;
        }
        let all_live = (0..self.run.len()).all(|node| !self.is_gone(node));
        for (node, mut fetched) in fetched.into_iter().enumerate().filter(|_| all_live) {
            fetched.sort_unstable();
            let every_one = fetched.iter().copied().eq(0..fetched.len() as u64);
            ensure(every_one, || format!("{fetched:?} were fetched from node {node}"))?;
        }
        Ok(())
    }

    /// Rule 6.
    fn check_ends(&self) -> Result<(), String> {
        for (node, summary) in self.run.iter().enumerate() {
            let ended = summary.place == self.layout.programs[node].len() || self.is_gone(node);
            ensure(ended, || {
                let place = summary.place;
                format!("node {node} hangs at its operation {place}: {:?}", self.layout.programs[node][place])
            })?;
        }
        Ok(())
    }
}
