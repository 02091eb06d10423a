//! [`Turns`]: which senders' messages a receiver pulls now. The rules are in the module above; this is what carries
//! them out: who waits, who has a turn, when it ends.

use super::{CANDIDATES_MOST, Candidate, Since, TurnRules};
use std::collections::{HashMap, VecDeque};
use tidegate_flow::{Instant, PeerId};

/// Where a sender stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// It has nothing to begin.
    #[default]
    Away,
    /// In the queue.
    Waiting,
    /// It has a turn.
    Running,
    /// Nothing has come for long of what it was asked for. It competes again when something does.
    Stalled,
}

/// What is kept of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    place: Place,
    /// There is something to begin.
    wants: bool,
    /// What was begun and has not ended.
    under_way: u32,
    /// It was asked whether it is free, and has not answered.
    is_asked: bool,
    candidate: Candidate,
}

/// A turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    sender: PeerId,
    /// Bytes asked for in this turn.
    begun: usize,
    /// Bytes that came in it.
    come: usize,
    /// Since when nothing has come.
    quiet: Since,
}

/// The turns of one receiver. See the module.
///
/// [`want`](Self::want) says that a sender has something to begin; [`poll_turn`](Self::poll_turn) gives turns;
/// [`may_begin`](Self::may_begin) is asked before each part, and [`begin`](Self::begin), [`advance`](Self::advance),
/// [`end`](Self::end) and [`end_message`](Self::end_message) tell what becomes of it. Time counts from the next call of
/// [`handle_timeout`](Self::handle_timeout), which is to come at [`next_timeout`](Self::next_timeout) at the latest.
#[derive(Debug, Default)]
pub struct Turns {
    rules: TurnRules,
    /// Those of whom there is something to know: at most one for each peer.
    senders: HashMap<PeerId, Sender>,
    /// Those that wait, in order. A sender is here once.
    queue: VecDeque<PeerId>,
    running: Vec<Turn>,
    /// Who is to be asked whether it is free.
    questions: VecDeque<PeerId>,
    stalls: u64,
    now: Instant,
}

impl Turns {
    /// Nobody waits.
    pub fn new(rules: TurnRules) -> Self {
        Turns { rules: TurnRules { senders: rules.senders.max(1), ..rules }, ..Turns::default() }
    }

    /// The rules.
    pub fn rules(&self) -> &TurnRules {
        &self.rules
    }

    /// Whether a message of so many bytes takes turns. If not, it begins at once, and nothing of it is told here.
    #[inline]
    pub fn orders(&self, bytes: usize) -> bool {
        bytes > self.rules.ordered_from && self.rules.order.policy().takes_turns()
    }

    /// A sender has something to begin, or nothing any more.
    pub fn want(&mut self, sender: PeerId, wants: bool) {
        let entry = self.senders.entry(sender).or_default();
        entry.wants = wants;
        match (entry.place, wants) {
            (Place::Away, true) => {
                entry.place = Place::Waiting;
                self.queue.push_back(sender);
            }
            (Place::Waiting, false) => {
                entry.place = Place::Away;
                self.queue.retain(|waiting| *waiting != sender);
            }
            _ => {}
        }
        self.settle(sender);
    }

    /// The next sender whose turn begins.
    pub fn poll_turn(&mut self) -> Option<PeerId> {
        let is_full = self.running.len() >= self.rules.senders;
        if self.queue.is_empty() || is_full {
            return None;
        }
        let (waiting, count) = self.candidates();
        let policy = self.rules.order.policy();
        let at = policy.next(&waiting[..count], self.rules.stall, self.now)?;
        if at > 0
            && let Some(first) = self.queue.front().and_then(|first| self.senders.get_mut(first))
        {
            first.candidate.was_passed_over = true;
        }
        let sender = self.queue.remove(at)?;
        let entry = self.senders.get_mut(&sender)?;
        entry.place = Place::Running;
        if policy.asks() && !entry.is_asked && entry.candidate.booked == Since::Never {
            // It learns that we are busy with it.
            entry.is_asked = true;
            self.questions.push_back(sender);
        }
        entry.candidate = Candidate::default();
        self.running.push(Turn { sender, begun: 0, come: 0, quiet: Since::Fresh });
        Some(sender)
    }

    /// Whether [`poll_turn`](Self::poll_turn) would give a turn.
    pub fn has_next(&self) -> bool {
        let (waiting, count) = self.candidates();
        let is_full = self.running.len() >= self.rules.senders;
        !is_full && self.rules.order.policy().next(&waiting[..count], self.rules.stall, self.now).is_some()
    }

    /// How many senders have a turn.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Those that have a turn.
    pub fn those_running(&self) -> impl Iterator<Item = PeerId> {
        self.running.iter().map(|turn| turn.sender)
    }

    /// The next of those that have a turn; it goes behind the others.
    pub fn next_running(&mut self) -> Option<PeerId> {
        let sender = self.running.first()?.sender;
        self.running.rotate_left(1);
        Some(sender)
    }

    /// Whether a part of a sender's message may be asked for now.
    pub fn may_begin(&self, sender: PeerId) -> bool {
        let turn = self.running.iter().find(|turn| turn.sender == sender);
        turn.is_some_and(|turn| self.queue.is_empty() || turn.begun < self.rules.quantum)
    }

    /// So many bytes were asked for.
    pub fn begin(&mut self, sender: PeerId, bytes: usize) {
        self.senders.entry(sender).or_default().under_way += 1;
        if let Some(turn) = self.turn_of(sender) {
            turn.begun += bytes;
        }
    }

    /// So many bytes have come.
    pub fn advance(&mut self, sender: PeerId, bytes: usize) {
        let (quantum, is_alone) = (self.rules.quantum, self.queue.is_empty());
        if let Some(turn) = self.turn_of(sender) {
            (turn.quiet, turn.come) = (Since::Fresh, turn.come + bytes);
            let is_through = turn.come >= quantum;
            match is_through {
                true if is_alone => (turn.begun, turn.come) = (turn.begun.saturating_sub(turn.come), 0),
                true => self.end_turn(sender, Place::Waiting),
                false => {}
            }
        } else if self.senders.get(&sender).is_some_and(|entry| entry.place == Place::Stalled) {
            self.stand(sender, Place::Waiting);
        }
    }

    /// What was [begun](Self::begin) is under way no longer.
    pub fn end(&mut self, sender: PeerId) {
        let Some(entry) = self.senders.get_mut(&sender) else { return };
        entry.under_way = entry.under_way.saturating_sub(1);
        if entry.under_way == 0 && entry.place == Place::Stalled {
            self.stand(sender, Place::Waiting);
        }
        self.settle(sender);
    }

    /// The same, but nothing came of it: so many bytes have to be asked for again.
    pub fn fail(&mut self, sender: PeerId, bytes: usize) {
        if let Some(turn) = self.turn_of(sender) {
            turn.begun = turn.begun.saturating_sub(bytes);
        }
        self.end(sender);
    }

    /// A message of a sender is over, or its receive is.
    pub fn end_message(&mut self, sender: PeerId) {
        let others_wait = !self.queue.is_empty();
        if others_wait && self.turn_of(sender).is_some() {
            self.end_turn(sender, Place::Waiting);
        }
        self.settle(sender);
    }

    /// A sender is gone.
    pub fn lose(&mut self, sender: PeerId) {
        if self.senders.remove(&sender).is_some() {
            self.queue.retain(|waiting| *waiting != sender);
            self.running.retain(|turn| turn.sender != sender);
            self.questions.retain(|asked| *asked != sender);
        }
    }

    /// The next sender that is to be asked whether it is free.
    pub fn poll_question(&mut self) -> Option<PeerId> {
        let policy = self.rules.order.policy();
        if policy.asks() && self.running.len() >= self.rules.senders && !self.queue.is_empty() {
            let (waiting, count) = self.candidates();
            let asked = policy.question(&waiting[..count], self.rules.stall, self.now);
            if let Some(&sender) = asked.and_then(|at| self.queue.get(at))
                && let Some(entry) = self.senders.get_mut(&sender)
            {
                entry.candidate = Candidate { asked: Since::Fresh, booked: Since::Never, ..entry.candidate };
                // An earlier question may be open: its answer will do.
                if !std::mem::replace(&mut entry.is_asked, true) {
                    self.questions.push_back(sender);
                }
            }
        }
        self.questions.pop_front()
    }

    /// A sender says that it is free. `false`: nobody has asked it.
    pub fn handle_booked(&mut self, sender: PeerId) -> bool {
        let Some(entry) = self.senders.get_mut(&sender) else { return false };
        let was_asked = std::mem::take(&mut entry.is_asked);
        if was_asked && entry.place == Place::Waiting {
            entry.candidate = Candidate { asked: Since::Never, booked: Since::Fresh, ..entry.candidate };
        }
        self.settle(sender);
        was_asked
    }

    /// What time it is: turns in which nothing has come for long end. Call [`poll_turn`](Self::poll_turn) then. Returns
    /// whether a turn has ended, or something counts from now on.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        self.now = now;
        let before = self.stalls;
        let mut begins = false;
        self.running.iter_mut().for_each(|turn| begins |= turn.quiet.tell_time(now));
        for sender in self.queue.iter().take(CANDIDATES_MOST) {
            if let Some(Sender { candidate, .. }) = self.senders.get_mut(sender) {
                begins |= candidate.asked.tell_time(now) | candidate.booked.tell_time(now);
                if candidate.booked.is_over(self.rules.stall, now) {
                    (candidate.asked, candidate.booked) = (Since::Never, Since::Never);
                    begins = true;
                }
            }
        }
        while let Some(turn) = self.running.iter().find(|turn| turn.quiet.is_over(self.rules.stall, now)) {
            if self.queue.is_empty() {
                break;
            }
            self.stalls += 1;
            let sender = turn.sender;
            let is_under_way = self.senders.get(&sender).is_some_and(|entry| entry.under_way > 0);
            self.end_turn(sender, if is_under_way { Place::Stalled } else { Place::Waiting });
        }
        begins || self.stalls > before
    }

    /// When time alone changes something.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.queue.is_empty() {
            return None;
        }
        let is_full = self.running.len() >= self.rules.senders;
        let (waiting, count) = self.candidates();
        let due =
            self.rules.order.policy().next_due(&waiting[..count], self.rules.stall, self.now).filter(|_| !is_full);
        let turns = self.running.iter().map(|turn| turn.quiet.end(self.rules.stall, self.now));
        turns.chain(due).min()
    }

    /// Whether somebody waits for a turn, so that time counts.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many turns have ended because nothing had come for long.
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    fn candidates(&self) -> ([Candidate; CANDIDATES_MOST], usize) {
        let mut candidates = [Candidate::default(); CANDIDATES_MOST];
        for (candidate, sender) in candidates.iter_mut().zip(&self.queue) {
            *candidate = self.senders.get(sender).map(|entry| entry.candidate).unwrap_or_default();
        }
        (candidates, self.queue.len().min(CANDIDATES_MOST))
    }

    fn turn_of(&mut self, sender: PeerId) -> Option<&mut Turn> {
        self.running.iter_mut().find(|turn| turn.sender == sender)
    }

    /// A turn ends. A sender that wants another goes behind the others.
    fn end_turn(&mut self, sender: PeerId, place: Place) {
        self.running.retain(|turn| turn.sender != sender);
        self.stand(sender, place);
    }

    /// A sender without a turn waits if it wants one, unless it has stalled.
    fn stand(&mut self, sender: PeerId, place: Place) {
        let Some(entry) = self.senders.get_mut(&sender) else { return };
        let waits = entry.wants && place == Place::Waiting;
        entry.place = match place {
            Place::Waiting if !waits => Place::Away,
            place => place,
        };
        if waits {
            self.queue.push_back(sender);
        }
    }

    /// A sender that has nothing to begin and nothing under way has no turn, and is forgotten unless it has to answer.
    fn settle(&mut self, sender: PeerId) {
        let Some(entry) = self.senders.get_mut(&sender) else { return };
        if entry.wants || entry.under_way > 0 {
            return;
        }
        entry.place = Place::Away;
        let is_asked = entry.is_asked;
        self.running.retain(|turn| turn.sender != sender);
        if !is_asked {
            self.senders.remove(&sender);
        }
    }
}
