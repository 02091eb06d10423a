//! Where a process is, from two looks at it: in its MPI, or not; and what it does there.

use std::time::Duration;

use crate::culprit::{Doing, Presence};
use crate::process::{Process, State, ticks};
use crate::top::look::Seen;

/// A process that has used a processor for so many ticks has had time to write its page, if it was in its MPI.
const RAN_AWAY: u64 = 2;

/// Where a process is, and what it does if it shows no sign of being in its MPI. `before`: the same process in the look
/// before.
pub fn presence(seen: &Seen, before: Option<&Seen>, at: Duration, patience: Duration) -> (Presence, Doing) {
    if seen.has_ended() {
        return (Presence::Ended, Doing::Unknown);
    }
    if seen.exists == Some(false) {
        return (Presence::Gone, Doing::Unknown);
    }
    let has_moved = before.is_some_and(|before| seen.has_moved_since(before));
    // What was written is the last sign of it only if nothing has moved since; a process that always finds messages
    // never writes.
    // A process may have an endpoint that it does not use (Open MPI): that one never writes.
    let has_written = seen.pages.iter().any(|page| page.written.is_some());
    let is_current = has_written && seen.pages.iter().all(|page| page.is_current || page.written.is_none());
    let written = seen.pages.iter().filter_map(|page| page.written.or(page.started)).max();
    let last_sign = match (is_current, seen.exists) {
        // What another host calls now need not be now.
        (true, None) => seen.silent_since,
        (true, Some(_)) => written,
        (false, _) => written.and(seen.quiet_since),
    };
    // When the process was last there its page says alone; all else began with our own first look.
    let at_least = !is_current || seen.exists.is_none();
    match last_sign.map(|last| at.saturating_sub(last)) {
        Some(away) if !has_moved && away > patience => match doing(seen, before) {
            // It has had no chance to show that it is there.
            Doing::Queues if is_current => (Presence::Here, Doing::Queues),
            // It got some, and waited for more.
            Doing::Computes if is_starved(seen, before) => (Presence::Away { time: away, at_least }, Doing::Queues),
            doing => (Presence::Away { time: away, at_least }, doing),
        },
        // It went on after it had written, nobody knows for how long. What was open then need not be now.
        None if before.is_none()
            && has_written
            && seen.exists.is_some()
            && written.is_some_and(|written| at.saturating_sub(written) > patience) =>
        {
            (Presence::WentOn, doing(seen, before))
        }
        _ => (Presence::Here, Doing::Unknown),
    }
}

/// A process gets no CPU that has waited for one this many times as long as it had one.
const STARVED_FROM: u32 = 3;

/// Whether a process has had less than a quarter of the processor's time that it would have used since the look before.
pub(super) fn is_starved(seen: &Seen, before: Option<&Seen>) -> bool {
    let since = |of: fn(&Process) -> Option<Duration>| {
        let (now, before) = (of(&seen.process?)?, of(&before?.process?)?);
        Some(now.saturating_sub(before))
    };
    let ran = since(|process| Some(ticks(process.ran_ticks)));
    since(|process| process.queued).zip(ran).is_some_and(|(queued, ran)| queued > ran * STARVED_FROM)
}

/// What a process does, by its state and how long it has run since the look before.
fn doing(seen: &Seen, before: Option<&Seen>) -> Doing {
    let Some(process) = seen.process else { return Doing::Unknown };
    let ran = before.and_then(|before| before.process).map(|before| process.ran_ticks.saturating_sub(before.ran_ticks));
    match (process.state, ran) {
        (State::Stopped, _) => Doing::Stopped,
        (_, None) | (State::Zombie, _) => Doing::Unknown,
        (_, Some(RAN_AWAY..)) => Doing::Computes,
        (State::Runnable, _) => Doing::Queues,
        (State::Sleeping, _) => Doing::Sleeps,
    }
}
