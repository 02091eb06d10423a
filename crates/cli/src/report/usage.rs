//! Whether a job's messages went through Tidegate, and what to say if they did not: a report of zeros looks like a
//! perfect run.

use std::path::Path;

use tidegate_link::trouble::Trouble;
use tidegate_message::Counter;

use crate::mpi::{Mpi, MpiKind};
use crate::report::Job;
use crate::report::host::Host;
use crate::shared_memory::NOLOCAL;

/// Most texts of processes that the report repeats.
const TROUBLES_MOST: usize = 4;

/// How far a job used Tidegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// Messages went through it.
    Messages,
    /// Processes opened endpoints, and no message went through them.
    Endpoints,
    /// No process opened an endpoint.
    Nothing,
}

impl Used {
    /// As JSON has it.
    pub fn id(self) -> &'static str {
        match self {
            Used::Messages => "messages",
            Used::Endpoints => "endpoints",
            Used::Nothing => "nothing",
        }
    }
}

/// What is known about how far a run used Tidegate, and why it may not have.
pub struct Usage<'a> {
    /// What its processes did.
    pub job: &'a Job,
    /// The MPI, if recognised.
    pub mpi: Option<&'a Mpi>,
    /// Settings that the command line replaces by its own.
    pub overridden: &'a [&'static str],
    /// What the provider said in the processes.
    pub troubles: &'a [Trouble],
    /// Whether the program failed.
    pub failed: bool,
    /// What this host has to say of that.
    pub host: &'a Host,
}

impl Usage<'_> {
    /// How far the job used Tidegate.
    pub fn used(&self) -> Used {
        let messages = [Counter::PacketsSent, Counter::MessagesSelf, Counter::RmaOperations, Counter::AtomicOperations];
        let has = |counter| self.job.spread(counter).is_some_and(|spread| spread.max > 0);
        match self.job.processes() {
            [] => Used::Nothing,
            _ if messages.into_iter().any(has) => Used::Messages,
            _ => Used::Endpoints,
        }
    }

    /// A text that says that messages did not go through Tidegate, and why that may be. `None` if they did, or if the
    /// process was alone and had nobody to send to.
    pub fn explain(&self) -> Option<String> {
        let mut text = match self.used() {
            Used::Messages => return None,
            Used::Endpoints if self.is_one_alone() => return None,
            Used::Endpoints => "no message went through Tidegate: its endpoints were opened and not used.".to_owned(),
            Used::Nothing => "no process opened a Tidegate endpoint, so there is nothing to report.".to_owned(),
        };
        for reason in self.reasons() {
            text += "\n  * ";
            text += &reason;
        }
        Some(text)
    }

    /// Why no message went through Tidegate: the certain reason alone, if there is one, else likely ones, most likely
    /// first. Empty if some message did.
    pub fn reasons(&self) -> Vec<String> {
        let used = self.used();
        if used == Used::Messages {
            return Vec::new();
        }
        if !self.troubles.is_empty() {
            return self.told();
        }
        if !self.overridden.is_empty() {
            return self.led_past();
        }
        let of_host = self.host.told();
        if !of_host.is_empty() {
            return of_host;
        }
        match used {
            Used::Endpoints if self.is_one_alone() => vec!["A process that is alone has nobody to send to.".into()],
            Used::Endpoints => self.reasons_for_no_message(),
            _ => self.reasons_for_no_endpoint(),
        }
    }

    /// What processes said, with how many of them did.
    pub fn told(&self) -> Vec<String> {
        let of = |trouble: &Trouble| match trouble.processes {
            1 => trouble.text.clone(),
            processes => format!("{} ({processes} processes)", trouble.text),
        };
        let mut told: Vec<String> = self.troubles.iter().take(TROUBLES_MOST).map(of).collect();
        let rest = self.troubles.len() - told.len();
        if rest > 0 {
            told.push(format!("and {rest} more, see the messages of the processes"));
        }
        told
    }

    /// A text that says which ranks are not in the report, and why that may be. `shared`: the folder that the user says
    /// all hosts share.
    pub fn absent(&self, shared: Option<&Path>) -> Option<String> {
        let (ranks, size) = self.job.absent();
        let list: Vec<String> = ranks
            .chunk_by(|one, next| one + 1 == *next)
            .map(|run| match run {
                [one] => one.to_string(),
                _ => format!("{}-{}", run[0], run[run.len() - 1]),
            })
            .collect();
        let has_other_hosts = self.job.has_other_hosts();
        let why = match shared.filter(|_| has_other_hosts) {
            Some(folder) => format!("they opened no endpoint, or their hosts do not see {}", folder.display()),
            None if has_other_hosts => {
                "they opened no endpoint, or run on other hosts: --shared names a folder that all hosts see".to_owned()
            }
            None => "they opened no endpoint".to_owned(),
        };
        let (noun, why) = match ranks.len() {
            1 => ("rank ", why.replacen("they", "it", 1).replacen("their hosts do", "its host does", 1)),
            _ => ("", why),
        };
        (!ranks.is_empty()).then(|| format!("of {size} ranks, {noun}{} left no counters: {why}", list.join(", ")))
    }

    /// What the command line's own settings have done. That which leaves messages within a host to MPICH is a remedy
    /// that `tidegate run` itself names, for programs that share memory.
    fn led_past(&self) -> Vec<String> {
        let (chosen, mistaken): (Vec<&str>, Vec<&str>) = self.overridden.iter().partition(|name| **name == NOLOCAL);
        let mistaken = (!mistaken.is_empty())
            .then(|| format!("The command line itself sets {}: leave that out.", mistaken.join(", ")));
        let chosen = chosen.first().map(|name| {
            format!(
                "The command line sets {name}: messages within a host go past Tidegate, by MPICH's own shared memory."
            )
        });
        mistaken.into_iter().chain(chosen).collect()
    }

    fn is_one_alone(&self) -> bool {
        matches!(self.job.processes(), [process] if process.job_size.unwrap_or(1) == 1)
    }

    /// The endpoints are Tidegate's, so the settings of `tidegate run` have reached their processes. A job that failed
    /// early has not sent anything yet; one that ended well may have sent past Tidegate, if something has changed those
    /// settings on the way.
    fn reasons_for_no_message(&self) -> Vec<String> {
        if self.failed {
            return vec!["The program failed, perhaps before its first message: see what it printed.".into()];
        }
        let went_past = match self.mpi.map(|mpi| mpi.kind) {
            Some(MpiKind::OpenMpi) => {
                "Or a script or wrapper that starts the ranks sets OMPI_MCA_pml again, which is `cm` here: \
                 `--mca pml_base_verbose 10` shows what Open MPI chose."
            }
            Some(MpiKind::Mpich) => {
                "Or a script or wrapper that starts the ranks sets MPIR_CVAR_NOLOCAL again, which is 1 here: with 0 MPICH sends \
                 within a host through its own shared memory."
            }
            Some(MpiKind::IntelMpi) => {
                "Or a script or wrapper that starts the ranks sets I_MPI_FABRICS or I_MPI_COLL_INTRANODE again, which are `ofi` and \
                 `pt2pt` here: I_MPI_DEBUG=5 shows what Intel MPI chose."
            }
            None => {
                "Or the MPI sent them by its own shared memory: it was not recognised, --mpi names it, and fi_tidegate(7) says what \
                 each needs."
            }
        };
        vec!["The program may send no messages between its processes.".to_owned(), went_past.to_owned()]
    }

    fn reasons_for_no_endpoint(&self) -> Vec<String> {
        if let Some(mpi) = self.mpi.filter(|mpi| mpi.lacks_libfabric()) {
            let device = mpi.device.as_deref().unwrap_or_default();
            let title = mpi.title();
            return vec![format!(
                "This {title} was built without libfabric (--with-device={device}): use one with ch4:ofi."
            )];
        }
        let mut reasons = Vec::new();
        if self.failed {
            reasons.push(
                "The program may have failed before or in MPI_Init: see its messages, or set FI_LOG_LEVEL=info.".into(),
            );
        }
        reasons.push(match self.mpi.map(|mpi| mpi.kind) {
            None => {
                "The program may not use MPI, or it starts its MPI in a clean environment or on another host.".into()
            }
            Some(kind) => format!(
                "The program may not use MPI, or it is linked with another MPI than the launcher's {}.",
                self.mpi.map_or_else(|| kind.name().to_owned(), Mpi::title)
            ),
        });
        reasons.push(match self.mpi.map(|mpi| mpi.kind) {
            Some(MpiKind::OpenMpi) => {
                "Open MPI may lack its libfabric transport: `ompi_info` must list `MCA mtl: ofi`.".into()
            }
            Some(MpiKind::Mpich) => "MPICH may be built without libfabric: `mpichversion` must show ch4:ofi.".into(),
            Some(MpiKind::IntelMpi) => {
                "Intel MPI may be told otherwise by I_MPI_* variables: I_MPI_DEBUG=5 shows its choice.".into()
            }
            None => "The launcher was not recognised: --mpi names its MPI.".into(),
        });
        reasons.push(
            "A settings file of the MPI or a wrapper may replace FI_PROVIDER: compare with `tidegate env`.".into(),
        );
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{job, process};

    fn mpich(device: &str) -> Mpi {
        Mpi { kind: MpiKind::Mpich, version: Some("4.0.2".into()), device: Some(device.into()) }
    }

    fn of(kind: MpiKind) -> Mpi {
        Mpi { kind, version: None, device: None }
    }

    #[test]
    fn ranks_that_left_nothing_are_named() {
        let with = |rank: u32| {
            let mut one = process(rank, &[]);
            (one.rank, one.job_size, one.setup.network) = (Some(rank), Some(8), "tcp/eth0".into());
            one
        };
        let some = job(vec![with(0), with(3), with(7)]);
        let text = usage(&some, None).absent(None).unwrap();
        assert!(text.starts_with("of 8 ranks, 1-2, 4-6 left no counters") && text.contains("--shared"), "{text}");
        let text = usage(&some, None).absent(Some(Path::new("/s"))).unwrap();
        assert!(text.contains("do not see /s"), "{text}");
        assert_eq!(usage(&job((0..8).map(with).collect()), None).absent(None), None);
    }

    #[test]
    fn a_folder_is_not_missed_where_there_is_one_host() {
        let with = |rank: u32| {
            let mut one = process(rank, &[]);
            one.job_size = Some(3);
            one
        };
        let said = usage(&job(vec![with(1), with(2)]), None).absent(None);
        assert_eq!(said.as_deref(), Some("of 3 ranks, rank 0 left no counters: it opened no endpoint"));
    }

    fn usage<'a>(job: &'a Job, mpi: Option<&'a Mpi>) -> Usage<'a> {
        Usage { job, mpi, overridden: &[], troubles: &[], failed: false, host: &NOTHING_TO_SAY }
    }

    static NOTHING_TO_SAY: Host = Host::NOTHING;

    fn explain(usage: &Usage) -> String {
        usage.explain().expect("something to explain")
    }

    fn trouble(text: &str, processes: usize) -> Trouble {
        Trouble { text: text.to_owned(), processes }
    }

    #[test]
    fn a_certain_reason_stands_alone() {
        let (none, ucx) = (job(Vec::new()), mpich("ch4:ucx"));
        let text = explain(&Usage { failed: true, ..usage(&none, Some(&ucx)) });
        assert!(text.contains("MPICH 4.0.2 was built without libfabric (--with-device=ch4:ucx)"), "{text}");
        assert_eq!(text.matches("\n  * ").count(), 1);
        let text = explain(&Usage { overridden: &["FI_PROVIDER", "OMPI_MCA_pml"], ..usage(&none, Some(&ucx)) });
        assert!(text.ends_with("* The command line itself sets FI_PROVIDER, OMPI_MCA_pml: leave that out."), "{text}");
    }

    #[test]
    fn likely_reasons_come_in_order() {
        let (none, ofi) = (job(Vec::new()), mpich("ch4:ofi"));
        let failed = explain(&Usage { failed: true, ..usage(&none, Some(&ofi)) });
        assert!(failed.find("MPI_Init").unwrap() < failed.find("mpichversion").unwrap(), "{failed}");
        let went_well = explain(&usage(&none, None));
        assert!(!went_well.contains("MPI_Init") && went_well.contains("--mpi"), "{went_well}");
    }

    #[test]
    fn what_the_provider_said_takes_the_place_of_guesses() {
        let (none, ofi) = (job(Vec::new()), mpich("ch4:ofi"));
        let troubles = [trouble("FI_TIDEGATE_SLOTS is \"abc\"", 4), trouble("odd", 1)];
        let text = explain(&Usage { troubles: &troubles, failed: true, ..usage(&none, Some(&ofi)) });
        let expected = "\n  * FI_TIDEGATE_SLOTS is \"abc\" (4 processes)\n  * odd";
        assert!(text.ends_with(expected) && !text.contains("mpichversion"), "{text}");
        let many: Vec<_> = (0..9).map(|number| trouble(&number.to_string(), 1)).collect();
        let text = explain(&Usage { troubles: &many, ..usage(&none, None) });
        assert!(text.ends_with("\n  * 3\n  * and 5 more, see the messages of the processes"), "{text}");
    }

    #[test]
    fn messages_that_went_past_are_explained_for_each_mpi() {
        let idle = job(vec![process(0, &[]), process(1, &[])]);
        for (kind, named) in [
            (MpiKind::Mpich, "MPIR_CVAR_NOLOCAL again"),
            (MpiKind::OpenMpi, "pml_base_verbose"),
            (MpiKind::IntelMpi, "I_MPI_FABRICS or I_MPI_COLL_INTRANODE again"),
        ] {
            let mpi = of(kind);
            let text = explain(&usage(&idle, Some(&mpi)));
            assert!(text.starts_with("no message went through Tidegate: ") && text.contains(named), "{text}");
            assert!(text.contains("may send no messages"), "{text}");
            // A job that failed before its first message says nothing of settings, which `tidegate run` has made.
            let failed = explain(&Usage { failed: true, ..usage(&idle, Some(&mpi)) });
            assert!(
                failed.ends_with("\n  * The program failed, perhaps before its first message: see what it printed."),
                "{failed}"
            );
            assert_eq!(failed.lines().count(), 2, "{failed}");
        }
        let open_mpi = of(MpiKind::OpenMpi);
        let text = explain(&Usage { overridden: &["OMPI_MCA_pml"], ..usage(&idle, Some(&open_mpi)) });
        assert!(text.ends_with("\n  * The command line itself sets OMPI_MCA_pml: leave that out."), "{text}");
        assert_eq!(usage(&idle, None).used(), Used::Endpoints);
    }

    #[test]
    fn a_remedy_that_was_named_before_is_not_called_a_mistake_after() {
        let (idle, mpich) = (job(vec![process(0, &[]), process(1, &[])]), of(MpiKind::Mpich));
        let text = explain(&Usage { overridden: &["MPIR_CVAR_NOLOCAL"], ..usage(&idle, Some(&mpich)) });
        assert!(!text.contains("leave that out") && text.matches("NOLOCAL").count() == 1, "{text}");
        assert!(text.contains("messages within a host go past Tidegate"), "{text}");
        let both = Usage { overridden: &["FI_PROVIDER", "MPIR_CVAR_NOLOCAL"], ..usage(&idle, Some(&mpich)) };
        assert!(
            explain(&both).contains("* The command line itself sets FI_PROVIDER: leave that out."),
            "{}",
            explain(&both)
        );
    }

    #[test]
    fn a_job_whose_messages_came_needs_no_explanation() {
        for counter in [Counter::PacketsSent, Counter::MessagesSelf, Counter::RmaOperations, Counter::AtomicOperations]
        {
            let busy = job(vec![process(0, &[]), process(1, &[(counter, 1)])]);
            assert_eq!((usage(&busy, None).used(), usage(&busy, None).explain()), (Used::Messages, None));
        }
    }

    #[test]
    fn a_process_that_is_alone_is_not_expected_to_send() {
        let mut one = process(0, &[]);
        one.job_size = Some(1);
        let alone = job(vec![one.clone()]);
        assert_eq!((usage(&alone, None).used(), usage(&alone, None).explain()), (Used::Endpoints, None));
        one.job_size = Some(4);
        assert!(usage(&job(vec![one]), None).explain().is_some(), "the other three are missing");
    }
}
