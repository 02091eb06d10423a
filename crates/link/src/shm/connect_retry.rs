//! What hinders connecting and passes by itself, as a rule: a lock that somebody holds, a lack of descriptors or
//! memory, a full table with some in it that have ended. It is tried again; here is how long it has lasted, when the
//! user is told, and when it is enough.
//!
//! The log hears of it at once. After [`TOLD_AFTER`] it is said where the user sees it, with the remedy, and again
//! every [`TOLD_EVERY`]. Our own table, if full, ends it after [`FULL_AT_MOST`], and what this process alone lacks,
//! which nobody else can mend, after [`LACKING_AT_MOST`]. A lock that a stopped process holds, a peer's full table, and
//! what the whole host lacks never end it.

use super::error::LinkError;
use crate::log::Level;
use std::time::Duration;
use tidegate_flow::Instant;

/// How long our own full table, with some in it that have ended, is tried again before it counts as full. Their places
/// are given away as soon as all that they sent has been received.
const FULL_AT_MOST: Duration = Duration::from_secs(10);
/// Between two tries at a full table, at most: after a longer pause nobody knows whether it has been full meanwhile.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// How long a lack of this process's own is tried again.
const LACKING_AT_MOST: Duration = Duration::from_secs(60);
/// Between two tries at anything else, at most. It is longer, because a process that computes between two calls for
/// some seconds lacks descriptors all the while.
const LACKING_PAUSE: Duration = Duration::from_secs(20);
/// From when on, and how often, the user is told.
const TOLD_AFTER: Duration = Duration::from_secs(5);
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// What a try may fail for and a later one not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// A full table with some in it that have ended.
    Full,
    /// A lock that somebody holds.
    Busy,
    /// The system's error.
    Lack(Option<i32>),
}

impl Reason {
    /// `None`: a later try fails as well.
    fn of(error: &LinkError) -> Option<Reason> {
        match error {
            error if !error.may_be_tried_again() => None,
            LinkError::TableFull { .. } => Some(Reason::Full),
            LinkError::System { error, .. } => Some(Reason::Lack(error.raw_os_error())),
            _ => Some(Reason::Busy),
        }
    }

    fn pause(self) -> Duration {
        if self == Reason::Full { FULL_PAUSE } else { LACKING_PAUSE }
    }
}

/// Tries, one after the other, that have failed for the same reason.
#[derive(Clone, Copy, Debug)]
struct Streak {
    reason: Reason,
    begun: Instant,
    last: Instant,
}

/// What hinders us from connecting to one peer, or from taking peers into our own table.
#[derive(Debug, Default)]
pub(super) struct ConnectRetry(Option<Streak>);

impl ConnectRetry {
    /// Takes the error of a try that fails now. Returns it, as one that may not be tried again if it has lasted too
    /// long, and how long it has lasted.
    pub fn weigh(&mut self, error: LinkError, now: Instant) -> (LinkError, Duration) {
        self.weigh_table(Some(FULL_AT_MOST), error, now)
    }

    /// The same where it is a peer's table that may be full. Its owner alone can give places away, and may compute for
    /// as long as it likes meanwhile: it is tried again without end.
    pub fn weigh_of_peer(&mut self, error: LinkError, now: Instant) -> (LinkError, Duration) {
        self.weigh_table(None, error, now)
    }

    fn weigh_table(&mut self, full_at_most: Option<Duration>, error: LinkError, now: Instant) -> (LinkError, Duration) {
        let Some(reason) = Reason::of(&error) else { return (error, Duration::ZERO) };
        let continues = |streak: &Streak| streak.reason == reason && now.since(streak.last) <= reason.pause();
        let begun = self.0.filter(continues).map_or(now, |streak| streak.begun);
        self.0 = Some(Streak { reason, begun, last: now });
        let lasting = now.since(begun);
        let at_most = if reason == Reason::Full { full_at_most } else { Some(LACKING_AT_MOST) };
        (if at_most.is_none_or(|most| lasting < most) { error } else { error.ended(lasting) }, lasting)
    }
}

#[cfg(all(test, not(loom)))]
impl ConnectRetry {
    /// As if it had begun so long ago.
    pub fn pretend_to_have_lasted(&mut self, lasting: Duration) {
        if let Some(streak) = &mut self.0 {
            streak.begun = Instant::from_nanos(streak.last.as_nanos().saturating_sub(lasting.as_nanos() as u64));
        }
    }
}

/// What has been said of hindrances.
#[derive(Debug, Default)]
pub(super) struct Announcer {
    is_logged: bool,
    told_at: Option<Instant>,
}

impl Announcer {
    /// What is to be said now of an error that has lasted so long and is tried again.
    pub fn announce(&mut self, error: &LinkError, lasting: Duration, now: Instant) -> Option<(Level, String)> {
        // Places of those who ended come back in a moment, as a rule.
        let is_soon_over = matches!(error, LinkError::TableFull { .. }) && lasting < TOLD_AFTER;
        if is_soon_over || !error.may_be_tried_again() {
            return None;
        }
        let remedy = error.remedy();
        let is_due = self.told_at.is_none_or(|told_at| now.since(told_at) >= TOLD_EVERY);
        if lasting >= TOLD_AFTER && is_due {
            (self.told_at, self.is_logged) = (Some(now), true);
            let seconds = lasting.as_secs();
            let text = format!("connecting has had to wait for {seconds} seconds, and is tried again: {error}{remedy}");
            return Some((Level::Trouble, text));
        }
        let is_first = !std::mem::replace(&mut self.is_logged, true);
        is_first.then(|| (Level::Warn, format!("connecting has to wait, and is tried again: {error}{remedy}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn second(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn lack(errno: i32) -> LinkError {
        LinkError::system("opening", io::Error::from_raw_os_error(errno))
    }

    fn full() -> LinkError {
        LinkError::TableFull { owner: "somebody".into(), peers: 1, is_changing: true }
    }

    #[test]
    fn a_full_table_counts_from_the_first_of_tries_that_follow_each_other() {
        let mut connect_retry = ConnectRetry::default();
        for now in 0..10 {
            assert!(connect_retry.weigh(full(), second(now)).0.may_be_tried_again(), "{now}");
        }
        assert!(!connect_retry.weigh(full(), second(10)).0.may_be_tried_again());
        // Few tries, far apart, prove nothing.
        for now in [20, 31, 50] {
            assert!(connect_retry.weigh(full(), second(now)).0.may_be_tried_again(), "{now}");
        }
    }

    #[test]
    fn a_peers_full_table_is_tried_again_without_end_and_said() {
        let (mut connect_retry, mut announcer) = (ConnectRetry::default(), Announcer::default());
        let mut told = 0;
        for now in 0..1000 {
            let (error, lasting) = connect_retry.weigh_of_peer(full(), second(now));
            assert!(error.may_be_tried_again(), "{now}");
            let said = announcer.announce(&error, lasting, second(now));
            assert!(said.as_ref().is_none_or(|(level, _)| *level == Level::Trouble), "{said:?}");
            told += u32::from(said.is_some());
        }
        assert_eq!(told, 1 + (1000 - 1 - 5) / 60, "after 5 seconds, then once a minute");
    }

    #[test]
    fn only_what_this_process_lacks_ends_and_names_its_limit() {
        for (errno, ends, remedy) in [
            (libc::EMFILE, true, "ulimit -n"),
            (libc::ENOMEM, true, "ulimit -v"),
            (libc::ENFILE, false, "fs.file-max"),
            (libc::EAGAIN, false, "ulimit -l"),
            (libc::ENOLCK, false, "locks"),
            (libc::ENOSPC, false, "enlarge /dev/shm"),
        ] {
            let mut connect_retry = ConnectRetry::default();
            for now in (0..60).step_by(2) {
                assert!(connect_retry.weigh(lack(errno), second(now)).0.may_be_tried_again(), "{errno} {now}");
            }
            let (error, lasting) = connect_retry.weigh(lack(errno), second(60));
            assert_eq!((error.may_be_tried_again(), lasting.as_secs()), (!ends, 60), "{errno}");
            let text = if ends { error.to_string() } else { error.remedy() };
            assert!(text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn a_lack_does_not_count_while_something_else_hinders() {
        let mut connect_retry = ConnectRetry::default();
        for now in 0..100 {
            assert!(connect_retry.weigh(LinkError::Busy { file: "table".into() }, second(now)).0.may_be_tried_again());
        }
        assert!(connect_retry.weigh(lack(libc::EMFILE), second(100)).0.may_be_tried_again());
    }

    #[test]
    fn the_user_is_told_after_five_seconds_and_every_minute() {
        let (mut connect_retry, mut announcer) = (ConnectRetry::default(), Announcer::default());
        let mut said = Vec::new();
        for now in 0..130 {
            let (error, lasting) = connect_retry.weigh(lack(libc::ENFILE), second(now));
            let text = announcer.announce(&error, lasting, second(now));
            said.extend(text.map(|(level, text)| {
                assert!(text.contains("fs.file-max"), "{text}");
                (level, now)
            }));
        }
        assert_eq!(said, [(Level::Warn, 0), (Level::Trouble, 5), (Level::Trouble, 65), (Level::Trouble, 125)]);
    }
}
