//! How a job ended: by itself, by a signal, with ranks that did not close.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::{Value, json};
use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGXCPU, SIGXFSZ};
use signal_hook::low_level::signal_name;
use tidegate_link::EndpointStats;

use crate::deaths::Deaths;
use crate::mpi::MpiKind;
use crate::report::Launch;
use crate::report::host::Host;
use crate::report::names::{Names, Who};

/// How the program that `tidegate run` started ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Its exit code, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Signals that came for it, in order.
    pub signals: Vec<i32>,
}

impl Ending {
    /// What became of the program, and which signals came for it.
    pub fn new(status: ExitStatus, signals: Vec<i32>) -> Ending {
        Ending { code: status.code(), signal: status.signal(), signals }
    }

    /// Whether a signal may have ended one of its ranks, and a launcher the others: not where a signal came for all of
    /// them, and not where a rank has called for the end of all, since its launcher may end others before that one.
    pub fn may_be_of_a_rank(&self, mpi: Option<MpiKind>) -> bool {
        let Some(code) = self.code.filter(|_| self.signals.is_empty()) else { return false };
        match mpi {
            Some(MpiKind::Mpich) => of_mpich(code, Evidence::default()).is_some(),
            Some(MpiKind::IntelMpi) => false,
            Some(MpiKind::OpenMpi) | None => of_shell(code).is_some(),
        }
    }

    /// The name of the signal that ended the program or one of its ranks, where that is certain.
    pub fn certain_signal(&self, mpi: Option<MpiKind>, evidence: Evidence) -> Option<String> {
        let named = |signal: i32| signal_name(signal).map(str::to_owned);
        match (self.signal, self.code, mpi) {
            (Some(signal), ..) => named(signal),
            (None, Some(code), Some(MpiKind::OpenMpi) | None) => named(code.checked_sub(128)?),
            (None, Some(code), Some(MpiKind::Mpich)) => named(shown_of_mpich(code, evidence)?),
            _ => None,
        }
    }

    /// One line for people; `None` if it ended well and nothing happened to it. `mpi`: whose launcher the program is;
    /// `evidence`: what else there is to see.
    pub fn text(&self, mpi: Option<MpiKind>, evidence: Evidence) -> Option<String> {
        let came: Vec<String> = self.signals.iter().map(|signal| name(*signal)).collect();
        let after = if came.is_empty() { String::new() } else { format!(" after {}", came.join(", ")) };
        match (self.signal, self.code) {
            (Some(signal), _) => Some(format!("the program was ended by {}{after}{}", name(signal), why(signal))),
            (None, Some(0)) if came.is_empty() => None,
            (None, Some(code)) => {
                let of_launcher = match mpi {
                    // A signal that came for the job explains it.
                    Some(MpiKind::Mpich) if came.is_empty() => of_mpich(code, evidence),
                    Some(MpiKind::Mpich) => None,
                    // It returns 255 however a rank ended, or the low bits of an error of MPI.
                    Some(MpiKind::IntelMpi) => None,
                    Some(MpiKind::OpenMpi) | None => of_shell(code),
                };
                // Whatever the code means to a launcher, a signal that came explains it.
                let of_launcher =
                    of_launcher.or_else(|| of_shell(code).filter(|_| self.signals.contains(&(code - 128))));
                Some(format!("the program ended with exit code {code}{after}{}", of_launcher.unwrap_or_default()))
            }
            (None, None) => None,
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "exit_code": self.code,
            "signal": self.signal,
            "signal_name": self.signal.map(name),
            "signals_received": self.signals.iter().map(|signal| name(*signal)).collect::<Vec<_>>(),
        })
    }
}

/// A signal by its name and number.
pub fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), |name| format!("{name} (signal {signal})"))
}

/// What an exit code means where it is 128 and a signal, as shells and Open MPI's launcher have it.
fn of_shell(code: i32) -> Option<String> {
    let signal = code - 128;
    (1..=64).contains(&signal).then(|| format!(", as after {}{}", name(signal), why(signal)))
}

/// Whether a code of MPICH's launcher may come of a rank's end by this signal.
fn may_be_of_mpich(code: i32, signal: i32) -> bool {
    signal == code || signal | SIGKILL == code
}

/// The signal by which a rank ended, where something else than the code shows it.
fn shown_of_mpich(code: i32, evidence: Evidence) -> Option<i32> {
    let shown = [(evidence.killed, SIGKILL), (evidence.full, SIGBUS)];
    let shown = shown.into_iter().filter(|_| !evidence.all_closed);
    shown.filter(|(is_shown, _)| *is_shown).map(|(_, signal)| signal).find(|signal| may_be_of_mpich(code, *signal))
}

/// What an exit code of MPICH's launcher may mean. It puts together, bit by bit, the codes with which its ranks ended,
/// the signals by which they ended, and SIGKILL, by which it ends the others. The number alone tells no signal from a
/// code: one is named as the reason only where something else shows it.
fn of_mpich(code: i32, evidence: Evidence) -> Option<String> {
    let may_be = |signal| may_be_of_mpich(code, signal);
    if evidence.all_closed {
        return None;
    }
    if let Some(signal) = shown_of_mpich(code, evidence) {
        return Some(format!(", as after {} of a rank{}", name(signal), why(signal)));
    }
    let signals: Vec<i32> = CAUSES.iter().map(|(signal, _)| *signal).filter(|signal| may_be(*signal)).collect();
    let more = match signals.as_slice() {
        [] => return None,
        [only] => why(*only),
        _ if may_be(SIGKILL) => "; its launcher ends the other ranks of a failed job by SIGKILL".to_owned(),
        _ => String::new(),
    };
    let signals: Vec<String> = signals.into_iter().map(name).collect();
    let signals = signals.join(" or ");
    Some(format!(", which under MPICH is a rank's own exit code or comes of a rank's end by {signals}{more}"))
}

/// What there is to see of how ranks ended, beside the launcher's exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Every rank has left counters that say that it closed its endpoints in order: no signal ended its work.
    pub all_closed: bool,
    /// The shared memory was full when the program had ended.
    pub full: bool,
    /// The kernel has ended processes for want of memory.
    pub killed: bool,
}

impl Evidence {
    /// Of the launches of a job, and of its host.
    pub fn of(launches: &[Launch], host: &Host) -> Evidence {
        let closed = |launch: &Launch| launch.unclosed.processes.is_empty() && launch.job.absent().0.is_empty();
        Evidence {
            all_closed: !launches.is_empty() && launches.iter().all(closed),
            full: host.is_full(),
            killed: host.has_killed(),
        }
    }
}

/// Why processes are ended by signals that they have not asked for.
const CAUSES: [(i32, &str); 9] = [
    (SIGILL, "an instruction that this processor does not have: the program may be built for another one"),
    (SIGABRT, "the program, or a library that it uses, gave up"),
    (SIGBUS, "memory of a file that was cut, or for which its file system has no room"),
    (SIGFPE, "a division by zero or the like"),
    (SIGKILL, "by hand, by a batch system, or by the kernel for want of memory, which dmesg tells"),
    (SIGSEGV, "memory that the program does not have; a stack that is too small does it too (ulimit -s)"),
    (SIGXCPU, "more time of the processor than allowed (ulimit -t)"),
    (SIGXFSZ, "a longer file than allowed (ulimit -f)"),
    (SIGSYS, "a system call that is forbidden here (seccomp)"),
];

/// The usual cause of a signal, to be said behind its name.
fn why(signal: i32) -> String {
    CAUSES.iter().find(|(of, _)| *of == signal).map_or_else(String::new, |(_, why)| format!(": {why}"))
}

/// Which processes of a launch did not close in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unclosed {
    /// Those, in order of rank.
    pub processes: Vec<Who>,
    /// How many processes there are.
    pub of: usize,
    /// The process that ended first, with the number of others that noticed it first; 0: the system has told.
    pub first_dead: Option<(Who, usize)>,
}

impl Unclosed {
    /// What the pages of a launch say.
    pub fn of(pages: &[EndpointStats]) -> Unclosed {
        let mut ended: BTreeMap<(u32, u32), bool> = BTreeMap::new();
        for page in pages {
            *ended.entry((page.rank.unwrap_or(u32::MAX), page.pid)).or_insert(true) &= page.ended;
        }
        let who = |&(rank, pid): &(u32, u32)| Who { rank: Some(rank).filter(|rank| *rank != u32::MAX), pid };
        let names = Names::of(pages);
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for dead in pages.iter().filter_map(|page| page.first_dead) {
            *votes.entry(dead).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
        let first_dead = most.and_then(|(dead, votes)| Some((names.find(dead)?, votes)));
        let processes = ended.iter().filter(|(_, ended)| !**ended).map(|(process, _)| who(process)).collect();
        Unclosed { processes, of: ended.len(), first_dead }
    }

    /// Takes the first of those that did not close from the order in which processes of `host` ended, where no other
    /// process has noticed one.
    pub fn name_first(&mut self, host: &str, deaths: &Deaths) {
        let pids: Vec<u32> = self.processes.iter().map(|who| who.pid).collect();
        if self.first_dead.is_none()
            && let Some(first) = deaths.first_of(host, &pids)
        {
            self.first_dead = self.processes.iter().find(|who| who.pid == first).map(|who| (*who, 0));
        }
    }

    /// One line for people; `None` if all have closed.
    pub fn text(&self) -> Option<String> {
        if self.processes.is_empty() {
            return None;
        }
        let all = self.processes.len() == self.of;
        let who = match (all, self.of) {
            (true, 1) => "the process".to_owned(),
            (true, 2) => "both processes".to_owned(),
            (true, _) => format!("all {} processes", self.of),
            (false, _) => format!("{} of {} processes ({})", self.processes.len(), self.of, list(&self.processes)),
        };
        // That is the one to look at, so it comes first.
        let first = match self.first_dead {
            None => String::new(),
            Some((dead, 0)) => format!("{} ended first; ", dead.label()),
            Some((dead, 1)) => format!("{} died first, as one other noticed; ", dead.label()),
            Some((dead, votes)) => format!("{} died first, as {votes} others noticed; ", dead.label()),
        };
        Some(format!("{first}{who} ended without closing"))
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let one = |who: &Who| json!({ "rank": who.rank, "pid": who.pid });
        json!({
            "not_closed": self.processes.iter().map(one).collect::<Vec<_>>(),
            "died_first": self.first_dead.as_ref().map(|(who, _)| one(who)),
            "noticed_by": self.first_dead.map_or(0, |(_, votes)| votes),
        })
    }
}

/// Processes in words, ranks in ranges: `ranks 0-3, 7`.
fn list(processes: &[Who]) -> String {
    let ranks: Vec<u32> = processes.iter().filter_map(|who| who.rank).collect();
    let mut parts: Vec<String> = ranks
        .chunk_by(|one, next| one + 1 == *next)
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    if let Some(first) = parts.first_mut() {
        let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
        *first = format!("{noun} {first}");
    }
    parts.extend(processes.iter().filter(|who| who.rank.is_none()).map(|who| who.label()));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(rank: u32) -> Who {
        Who { rank: Some(rank), pid: 100 + rank }
    }

    fn said(ending: &Ending, mpi: Option<MpiKind>) -> String {
        ending.text(mpi, Evidence::default()).unwrap_or_default()
    }

    fn code(code: i32) -> Ending {
        Ending { code: Some(code), ..Ending::default() }
    }

    #[test]
    fn ends_are_told_in_words() {
        assert_eq!(code(0).text(None, Evidence::default()), None);
        assert_eq!(said(&code(3), None), "the program ended with exit code 3");
        let killed = Ending { signal: Some(9), signals: vec![15], ..Ending::default() };
        let expected = "the program was ended by SIGKILL (signal 9) after SIGTERM (signal 15): by hand, by a batch system, or by \
                        the kernel for want of memory, which dmesg tells";
        assert_eq!(said(&killed, None), expected);
        let passed_on = Ending { code: Some(130), signals: vec![2], ..Ending::default() };
        let expected = "the program ended with exit code 130 after SIGINT (signal 2), as after SIGINT (signal 2)";
        for mpi in [None, Some(MpiKind::Mpich), Some(MpiKind::OpenMpi), Some(MpiKind::IntelMpi)] {
            assert_eq!(said(&passed_on, mpi), expected);
        }
    }

    #[test]
    fn each_signal_has_a_name_and_a_cause() {
        for (number, named, cause) in [
            (4, "SIGILL", "instruction"),
            (7, "SIGBUS", "has no room"),
            (9, "SIGKILL", "want of memory"),
            (11, "SIGSEGV", "ulimit -s"),
            (24, "SIGXCPU", "ulimit -t"),
            (25, "SIGXFSZ", "ulimit -f"),
            (31, "SIGSYS", "seccomp"),
        ] {
            let text = said(&code(128 + number), Some(MpiKind::OpenMpi));
            assert!(text.contains(&format!("as after {named} (signal {number}): ")) && text.contains(cause), "{text}");
        }
    }

    #[test]
    fn the_first_of_ranks_is_named_where_a_signal_ended_it() {
        let of = |number, mpi| code(number).may_be_of_a_rank(Some(mpi));
        assert!(of(9, MpiKind::Mpich) && of(11, MpiKind::Mpich) && of(137, MpiKind::OpenMpi));
        assert!(
            !of(1, MpiKind::Mpich) && !of(2, MpiKind::Mpich) && !of(255, MpiKind::IntelMpi) && !of(1, MpiKind::OpenMpi)
        );
        assert!(!Ending { signals: vec![2], ..code(9) }.may_be_of_a_rank(Some(MpiKind::Mpich)));
    }

    #[test]
    fn a_signal_is_certain_where_the_code_is_a_shells_or_something_else_shows_it() {
        let of = |number, mpi, evidence| code(number).certain_signal(mpi, evidence);
        let (nothing, full) = (Evidence::default(), Evidence { full: true, ..Evidence::default() });
        assert_eq!(of(139, Some(MpiKind::OpenMpi), nothing).as_deref(), Some("SIGSEGV"));
        assert_eq!((of(255, None, nothing), of(127, None, nothing), of(3, None, nothing)), (None, None, None));
        assert_eq!((of(9, Some(MpiKind::Mpich), nothing), of(255, Some(MpiKind::IntelMpi), nothing)), (None, None));
        assert_eq!(of(7, Some(MpiKind::Mpich), full).as_deref(), Some("SIGBUS"));
        let killed = Ending { signal: Some(9), ..Ending::default() };
        assert_eq!(killed.certain_signal(Some(MpiKind::Mpich), nothing).as_deref(), Some("SIGKILL"));
    }

    #[test]
    fn codes_of_mpichs_launcher_are_no_signals_of_a_shell() {
        let of_mpich = |number| said(&code(number), Some(MpiKind::Mpich));
        // MPI_Abort with an error of MPI: 143 is no SIGTERM.
        assert_eq!(of_mpich(143), "the program ended with exit code 143");
        assert_eq!(said(&code(143), Some(MpiKind::IntelMpi)), "the program ended with exit code 143");
        assert_eq!(of_mpich(1), "the program ended with exit code 1");
    }

    #[test]
    fn a_number_of_mpichs_launcher_is_called_a_signal_only_where_something_else_shows_one() {
        let with = |number, evidence| code(number).text(Some(MpiKind::Mpich), evidence).unwrap_or_default();
        let (nothing, closed) = (Evidence::default(), Evidence { all_closed: true, ..Evidence::default() });
        let (full, killed) = (Evidence { full: true, ..nothing }, Evidence { killed: true, ..nothing });
        // A program that returns a number after MPI_Finalize.
        for number in [6, 7, 9, 11, 15] {
            assert_eq!(with(number, closed), format!("the program ended with exit code {number}"));
        }
        // MPI_Abort, or a signal.
        let either = |number, signals: &str| {
            format!(
                "the program ended with exit code {number}, which under MPICH is a rank's own exit code or comes of a rank's \
                 end by {signals}"
            )
        };
        let bus = "SIGBUS (signal 7): memory of a file that was cut, or for which its file system has no room";
        assert_eq!(with(7, nothing), either(7, bus));
        assert!(with(11, full).starts_with(&either(11, "SIGSEGV (signal 11): ")), "{}", with(11, full));
        let by_launcher =
            "SIGFPE (signal 8) or SIGKILL (signal 9); its launcher ends the other ranks of a failed job by SIGKILL";
        assert_eq!(with(9, nothing), either(9, by_launcher));
        // One rank by SIGBUS, and the others then by SIGKILL.
        assert_eq!(with(15, nothing), either(15, "SIGABRT (signal 6) or SIGBUS (signal 7)"));
        for number in [7, 15] {
            let said = with(number, full);
            assert!(said.contains(", as after SIGBUS (signal 7) of a rank: memory of a file"), "{said}");
        }
        let said = with(9, killed);
        assert!(said.contains(", as after SIGKILL (signal 9) of a rank: ") && said.contains("dmesg"), "{said}");
    }

    #[test]
    fn who_did_not_close_is_listed_and_who_died_first_is_named() {
        let unclosed = |ranks: &[u32], of, first_dead| Unclosed {
            processes: ranks.iter().map(|rank| who(*rank)).collect(),
            of,
            first_dead,
        };
        assert_eq!(unclosed(&[], 4, None).text(), None);
        let said = unclosed(&[0, 1, 2, 5], 8, Some((who(5), 3))).text().unwrap_or_default();
        let expected = "rank 5 died first, as 3 others noticed; 4 of 8 processes (ranks 0-2, 5) ended without closing";
        assert_eq!(said, expected);
        let mut killed = unclosed(&[0, 1], 2, None);
        killed.name_first("here", &Deaths::of("here", &[101, 100]));
        let said = killed.text().unwrap_or_default();
        assert_eq!(said, "rank 1 ended first; both processes ended without closing");
        let said = unclosed(&[0, 1], 2, None).text().unwrap_or_default();
        assert_eq!(said, "both processes ended without closing");
    }
}
