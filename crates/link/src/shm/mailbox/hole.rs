//! [`Hole`]: a slot that a writer has reserved and does not publish, because it is dead or late. The argument is at the
//! top of `mailbox.rs`.

use super::Reader;
use std::ops::Range;
use tidegate_flow::PeerId;

/// A slot that is reserved and does not get published, and who may own it. What is found out
/// holds for all tickets that had been given out before the `writing` words were read: for all slots that a dead writer
/// had reserved, the words of all writers are read once.
#[derive(Debug)]
pub(crate) struct Hole {
    tickets: Range<u64>,
    /// Peers whose `writing` was odd when the hole was found, and what it was.
    suspects: Vec<(PeerId, u64)>,
}

/// What looking at a hole found.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// There is none: nothing reserved, or the slot is published.
    Clear,
    /// A live peer may own it. Look again later, with this.
    Wait(Hole),
    /// Its owner is dead; the reader is now behind it. Look again at once, with this.
    Skipped(Hole),
}

impl Hole {
    /// Looks at the slot that the reader waits for. `before` is what the last look returned; `writers` are all peers
    /// in the table, in any order, `writing` is the word of one that is still there; `is_alive` is asked about few.
    pub fn examine(
        reader: &mut Reader,
        before: Option<Hole>,
        writers: impl Iterator<Item = PeerId>,
        writing: impl Fn(PeerId) -> Option<u64>,
        mut is_alive: impl FnMut(PeerId) -> bool,
    ) -> Verdict {
        // A wild pointer counts as a hole: the slots that do not exist have no owner and would block the reader as
        // well.
        let backlog = reader.backlog().unwrap_or(reader.size());
        if reader.is_ready() || backlog == 0 {
            return Verdict::Clear;
        }
        let mut hole = before.filter(|hole| hole.tickets.contains(&reader.ticket)).unwrap_or_else(|| {
            let words = writers.filter_map(|peer| Some((peer, writing(peer)?)));
            let suspects = words.filter(|(_, word)| word % 2 == 1).collect();
            Hole { tickets: reader.ticket..reader.ticket + backlog, suspects }
        });
        hole.suspects.retain(|(peer, word)| writing(*peer) == Some(*word));
        if hole.suspects.iter().any(|(peer, _)| is_alive(*peer)) {
            return Verdict::Wait(hole);
        }
        // The owner may have published just before it died, or just after the first look.
        if reader.is_ready() {
            return Verdict::Clear;
        }
        reader.skip();
        Verdict::Skipped(hole)
    }
}
