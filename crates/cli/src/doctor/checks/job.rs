//! The job of the doctor's own: on this host, and over the hosts that the user has named.

use super::one_folder_of_providers;
use crate::doctor::facts::Facts;
use crate::doctor::rank::Step;
use crate::doctor::trial::Trial;
use crate::doctor::verdict::{Verdict, no, ok};

/// Lines of a job's output that are said.
const OUTPUT_SAID: usize = 2;

/// The one on this host.
pub fn job(facts: &Facts) -> Vec<Verdict> {
    facts.job.iter().map(|trial| of("job", facts, trial)).collect()
}

/// The one over the hosts. Without two hosts there is none.
pub fn hosts(facts: &Facts) -> Vec<Verdict> {
    facts.hosts_job.iter().map(|trial| of("hosts", facts, trial)).collect()
}

fn of(check: &'static str, facts: &Facts, trial: &Trial) -> Verdict {
    let (ranks, seconds) = (trial.ranks, trial.seconds);
    let places = if trial.hosts.is_empty() { "this host".to_owned() } else { trial.hosts.join(", ") };
    if trial.is_good() {
        let network = trial.network.as_ref().map(|network| format!(" by {network}")).unwrap_or_default();
        let text = format!("{ranks} ranks on {places} exchanged messages over Tidegate{network}, in {seconds:.1} s");
        return ok(check, text);
    }
    let again = Some(format!("tidegate run {}", trial.command)).filter(|_| !trial.command.is_empty());
    let failed = trial.steps.iter().find_map(|step| match step {
        Step::Failed { host, error } => Some(format!("a rank on {host} failed: {error}")),
        _ => None,
    });
    if let Some(trouble) = trial.troubles.first() {
        // Further sentences are remedies for cases that other checks tell apart.
        let trouble = trouble.split(". ").next().unwrap_or_default();
        let lacks_network = trouble.contains("FI_TIDEGATE_FABRIC");
        let remedy = one_folder_of_providers(facts).filter(|_| lacks_network).or(again);
        return no(check, format!("ranks on {places} failed: {trouble}"), remedy);
    }
    if let Some(failed) = failed {
        return no(check, failed, again);
    }
    if trial.has_exchanged() {
        let why = trial.reasons.first().map_or("it is not said why", String::as_str);
        return no(check, format!("{ranks} ranks exchanged messages, but not through Tidegate: {why}"), again);
    }
    match trial.hosts.len() {
        0 | 1 => unfinished_here(check, trial, again),
        _ => unfinished_over_hosts(check, facts, trial, again),
    }
}

/// The hosts of ranks that have come so far, one for each rank.
fn hosts_at(trial: &Trial, is_there: impl Fn(&Step) -> bool) -> Vec<&str> {
    trial.steps.iter().filter(|step| is_there(step)).map(Step::host).collect()
}

fn unfinished_here(check: &'static str, trial: &Trial, again: Option<String>) -> Verdict {
    let count = |is_there: fn(&Step) -> bool| hosts_at(trial, is_there).len();
    let started = count(|step| matches!(step, Step::Started { .. }));
    let opened = count(|step| matches!(step, Step::Opened { .. }));
    let exchanged = count(|step| matches!(step, Step::Exchanged { .. }));
    let far = match () {
        () if started == 0 => "the launcher started no rank".to_owned(),
        () if opened < trial.ranks => {
            format!("{} of {} ranks did not come out of MPI_Init", trial.ranks - opened, trial.ranks)
        }
        () if exchanged < trial.ranks => "messages did not arrive".to_owned(),
        () => "ranks did not end".to_owned(),
    };
    no(check, far + &ended(trial), again)
}

/// How it ended, and what it printed.
fn ended(trial: &Trial) -> String {
    let how = match trial.timed_out {
        true => format!(" within {:.0} s", trial.seconds),
        false => format!(" (exit code {})", trial.exit_code),
    };
    let said = trial.output.iter().take(OUTPUT_SAID).cloned().collect::<Vec<_>>().join(" / ");
    if said.is_empty() { how } else { format!("{how}: {said}") }
}

fn unfinished_over_hosts(check: &'static str, facts: &Facts, trial: &Trial, again: Option<String>) -> Verdict {
    let started = hosts_at(trial, |step| matches!(step, Step::Started { .. }));
    let places = trial.hosts.join(", ");
    if started.len() < trial.ranks {
        let text = if started.is_empty() {
            format!("the launcher started no rank on {places}")
        } else {
            format!(
                "the launcher started {} of {} ranks on {places}, on {}",
                started.len(),
                trial.ranks,
                started.join(", ")
            )
        };
        let remedy = trial.hosts.last().map(|host| format!("ssh {host} true   # and let the launcher's ports through"));
        return no(check, text + &ended(trial), remedy);
    }
    if !trial.timed_out {
        return no(check, format!("ranks on {places} did not exchange their messages{}", ended(trial)), again);
    }
    let ports = facts.ports.is_some();
    let text = format!(
        "ranks on {places} started, and messages between them did not arrive within {:.0} s: a firewall drops them, or \
         the hosts do not reach each other by this network{}",
        trial.seconds,
        if ports { ", or their firewalls let other ports through" } else { "" }
    );
    let remedy = match ports {
        // That a range is let through has been tried.
        true => "sudo nft list ruleset   # or another interface: FI_TIDEGATE_FABRIC=tcp/INTERFACE".to_owned(),
        false => format!(
            "tidegate doctor --ports 41000-41099 --hosts {} ...   # ports that firewalls let through",
            trial.hosts.join(",")
        ),
    };
    no(check, text, remedy)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;

    fn step(name: &str, host: &str) -> Step {
        let host = host.to_owned();
        match name {
            "started" => Step::Started { host },
            "opened" => Step::Opened { host, libfabric: Vec::new() },
            "exchanged" => Step::Exchanged { host },
            "closed" => Step::Closed { host },
            _ => Step::Failed { host, error: name.to_owned() },
        }
    }

    /// A job that went well.
    fn good(hosts: &[&str]) -> Trial {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let places = if hosts.is_empty() { vec!["h1".to_owned(); 2] } else { hosts.clone() };
        let steps = ["started", "opened", "exchanged", "closed"];
        let steps = steps.iter().flat_map(|name| places.iter().map(move |host| step(name, host))).collect();
        let command = "mpiexec -n 2 x".into();
        Trial { hosts, ranks: 2, command, steps, seconds: 1.25, used_tidegate: true, ..Trial::default() }
    }

    fn here(change: impl Fn(&mut Trial)) -> (Level, String, Option<String>) {
        let mut trial = good(&[]);
        change(&mut trial);
        one(&job(&Facts { job: Some(trial), ..healthy() }))
    }

    fn over(ports: Option<u32>, change: impl Fn(&mut Trial)) -> (Level, String, Option<String>) {
        let mut trial = good(&["a", "b"]);
        change(&mut trial);
        one(&hosts(&Facts { hosts_job: Some(trial), ports, ..healthy() }))
    }

    #[test]
    fn a_job_that_went_well_says_so() {
        assert_eq!(here(|_| ()).1, "2 ranks on this host exchanged messages over Tidegate, in 1.2 s");
        let over = over(None, |trial| trial.network = Some("tcp/eth0".into()));
        assert_eq!(
            over,
            (Level::Ok, "2 ranks on a, b exchanged messages over Tidegate by tcp/eth0, in 1.2 s".into(), None)
        );
        assert_eq!((job(&healthy()), hosts(&healthy())), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_the_provider_or_a_rank_said_comes_first() {
        let again = Some("tidegate run mpiexec -n 2 x".to_owned());
        let (level, text, remedy) = here(|trial| {
            (trial.exit_code, trial.troubles) = (1, vec!["/dev/shm is too small. Enlarge it".into()]);
        });
        assert_eq!((level, remedy), (Level::No, again.clone()));
        assert_eq!(text, "ranks on this host failed: /dev/shm is too small");
        let (_, text, remedy) = here(|trial| {
            (trial.exit_code, trial.steps) = (1, vec![step("started", "h1"), step("libx.so is missing", "h1")]);
        });
        assert_eq!((text.as_str(), remedy), ("a rank on h1 failed: libx.so is missing", again));
    }

    #[test]
    fn messages_that_went_past_are_no_success() {
        let (level, text, _) = here(|trial| {
            (trial.used_tidegate, trial.reasons) = (false, vec!["MPICH may be built without libfabric.".into()]);
        });
        assert_eq!(level, Level::No);
        assert!(text.ends_with("but not through Tidegate: MPICH may be built without libfabric."), "{text}");
    }

    #[test]
    fn a_job_here_says_how_far_it_came() {
        let ended = |steps: usize, timed_out: bool, output: &[&str]| {
            let text = here(|trial| {
                trial.steps.truncate(steps);
                (trial.timed_out, trial.exit_code) = (timed_out, 9);
                trial.output = output.iter().map(|line| (*line).to_owned()).collect();
            });
            text.1
        };
        assert_eq!(
            ended(0, false, &["no slots", "x", "y"]),
            "the launcher started no rank (exit code 9): no slots / x"
        );
        assert_eq!(ended(3, true, &[]), "1 of 2 ranks did not come out of MPI_Init within 1 s");
        assert_eq!(ended(5, true, &[]), "messages did not arrive within 1 s");
        assert_eq!(ended(7, false, &[]), "ranks did not end (exit code 9)");
    }

    #[test]
    fn over_hosts_it_is_said_whether_launcher_or_network_is_in_the_way() {
        let (level, text, remedy) = over(None, |trial| {
            (trial.steps, trial.timed_out) = (vec![step("started", "a")], true);
        });
        assert_eq!((level, text.as_str()), (Level::No, "the launcher started 1 of 2 ranks on a, b, on a within 1 s"));
        assert!(remedy.unwrap().starts_with("ssh b true"));
        assert!(
            over(None, |trial| (trial.steps, trial.exit_code) = (Vec::new(), 1))
                .1
                .contains("no rank on a, b (exit code 1)")
        );
        let dropped = |trial: &mut Trial| {
            trial.steps.truncate(4);
            (trial.timed_out, trial.seconds) = (true, 30.0);
        };
        let (_, text, remedy) = over(None, dropped);
        assert!(text.contains("did not arrive within 30 s: a firewall drops them"), "{text}");
        assert!(remedy.unwrap().starts_with("tidegate doctor --ports 41000-41099 --hosts a,b"));
        assert!(over(Some(100), dropped).2.unwrap().starts_with("sudo nft list ruleset"));
        let text = over(None, |trial| {
            trial.steps.truncate(4);
            trial.exit_code = 1;
        });
        assert!(text.1.contains("did not exchange their messages (exit code 1)"));
    }
}
