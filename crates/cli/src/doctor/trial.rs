//! [`Trial`]: a job of the doctor's own, a rank on each host or two on this one, started by `tidegate run` in the way
//! in which the user starts jobs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::rank::{Step, step_in};
use super::words::{Starter, Words};
use crate::child::{exit_code, wait_for};
use crate::mpi::MpiKind;
use crate::quote;

/// How long a job that was told to end may take for that, before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// The option by which Intel MPI's launcher is told how to start its processes on hosts. Where hosts are named it takes
/// `ssh` by default, also in a job of Slurm.
const BOOTSTRAP: &str = "-bootstrap";
/// Lines of its output that are kept, of those that are no steps.
const OUTPUT_MOST: usize = 40;

/// The end of a job, and how far its ranks had come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// Its hosts; none: this one.
    pub hosts: Vec<String>,
    /// How many ranks it was to have.
    pub ranks: usize,
    /// The command, quoted for a shell.
    pub command: String,
    /// How its ranks got on, in the order in which they said so.
    pub steps: Vec<Step>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// Its exit code otherwise.
    pub exit_code: i32,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether messages went through Tidegate, by its report.
    pub used_tidegate: bool,
    /// Words of the provider in its ranks, and of this host on them.
    pub troubles: Vec<String>,
    /// Why no message went through Tidegate, if none did.
    pub reasons: Vec<String>,
    /// The network between hosts of the first rank, if it opened one.
    pub network: Option<String>,
    /// The first lines that it printed.
    pub output: Vec<String>,
}

/// The job to be tried.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command of the user.
    pub words: &'a Words,
    /// The MPI.
    pub kind: Option<MpiKind>,
    /// Its library.
    pub library: &'a Path,
    /// The folder of the provider.
    pub provider_dir: &'a Path,
    /// Parameters from the command line.
    pub parameters: &'a [(&'static str, String)],
    /// A folder that all hosts see.
    pub shared: Option<&'a Path>,
    /// Hosts; none: this one.
    pub hosts: &'a [String],
    /// The hosts are nodes of the job of Slurm in which this is, so Slurm starts the launcher's processes there.
    pub are_of_slurm: bool,
    /// How long it may take.
    pub timeout: Duration,
}

impl Request<'_> {
    /// Runs the job to its end. The error: it cannot be started here at all.
    pub fn run(&self) -> Result<Trial, String> {
        let this = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder can be made: {error}"))?;
        let (report, output) = (folder.path().join("report"), folder.path().join("output"));
        let job = self.words_of_job(&this).ok_or("there is no launcher")?;
        let stream = || File::options().append(true).create(true).open(&output).map(Stdio::from);
        let streams = stream().and_then(|out| Ok((out, stream()?)));
        let (out, error) = streams.map_err(|error| format!("{}: {error}", output.display()))?;
        let mut command = Command::new(&this);
        command.args(["run", "--quiet", "--json"]).arg(&report).arg("--provider-dir").arg(self.provider_dir);
        if let Some(kind) = self.kind {
            command.args(["--mpi", kind.id()]);
        }
        if let Some(folder) = self.shared {
            command.arg("--shared").arg(folder);
        }
        // They are options of the doctor, and as variables they count for a job that has no such options.
        command.envs(self.parameters.iter().map(|(name, value)| (name, value)));
        command.arg("--").args(&job).stdin(Stdio::null()).stdout(out).stderr(error);
        let start = Instant::now();
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", this.display()))?;
        let ended = wait(&mut child, self.timeout);
        let seconds = start.elapsed().as_secs_f64();
        let mut trial = Trial {
            hosts: self.hosts.to_vec(),
            ranks: self.ranks(),
            command: quote::line(&job),
            timed_out: ended.is_none(),
            exit_code: ended.unwrap_or(-1),
            seconds,
            ..Trial::default()
        };
        trial.take_output(
            &fs::read(&output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default(),
        );
        let report = fs::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        trial.take_report(&report.unwrap_or(Value::Null));
        Ok(trial)
    }

    fn ranks(&self) -> usize {
        self.hosts.len().max(2)
    }

    /// The command of the job itself: the launcher as the user calls it, with as many ranks as there are hosts.
    fn words_of_job(&self, this: &Path) -> Option<Vec<OsString>> {
        let starter = self.words.starter.as_ref()?;
        let mut words = self.words.before.clone();
        words.push(starter.path().into());
        words.extend(self.words.options.iter().cloned());
        let is_said = self.words.options.iter().any(|option| option == BOOTSTRAP);
        if self.are_of_slurm && self.kind == Some(MpiKind::IntelMpi) && matches!(starter, Starter::Mpi(_)) && !is_said {
            words.extend([BOOTSTRAP, "slurm"].map(OsString::from));
        }
        words.extend(placement(starter, self.kind, self.hosts).into_iter().map(OsString::from));
        words.extend([OsString::from("-n"), self.ranks().to_string().into(), this.into(), "doctor".into()]);
        words.extend([OsString::from("--as-rank"), self.library.into()]);
        Some(words)
    }
}

/// Options by which each host gets a rank.
fn placement(starter: &Starter, kind: Option<MpiKind>, hosts: &[String]) -> Vec<String> {
    if hosts.is_empty() {
        return match starter {
            Starter::Srun(_) => vec!["-N".into(), "1".into()],
            Starter::Mpi(_) => Vec::new(),
        };
    }
    let each: Vec<String> = hosts.iter().map(|host| format!("{host}:1")).collect();
    match (starter, kind) {
        (Starter::Srun(_), _) => {
            vec!["-w".into(), hosts.join(","), "-N".into(), hosts.len().to_string(), "--ntasks-per-node=1".into()]
        }
        (Starter::Mpi(_), Some(MpiKind::OpenMpi)) => {
            vec!["--map-by".into(), "ppr:1:node".into(), "--host".into(), each.join(",")]
        }
        (Starter::Mpi(_), Some(MpiKind::IntelMpi)) => vec!["-hosts".into(), hosts.join(","), "-ppn".into(), "1".into()],
        (Starter::Mpi(_), _) => vec!["-hosts".into(), each.join(",")],
    }
}

/// Waits for the end of a run. After its time it is told to end, which it passes on to the launcher. `None`: it was.
fn wait(child: &mut Child, timeout: Duration) -> Option<i32> {
    if let Some(status) = wait_for(child, timeout) {
        return Some(exit_code(status).into());
    }
    let pid = Pid::from_child(child);
    let launchers = children_of(child.id());
    let _ = kill_process(pid, Signal::TERM);
    if wait_for(child, END_PATIENCE).is_none() {
        launchers.into_iter().chain([pid]).for_each(|pid| _ = kill_process(pid, Signal::KILL));
        let _ = child.wait();
    }
    None
}

/// The processes that one has started itself.
fn children_of(pid: u32) -> Vec<Pid> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

impl Trial {
    /// Whether all ranks exchanged all messages and ended well.
    pub fn has_exchanged(&self) -> bool {
        let exchanged = self.steps.iter().filter(|step| matches!(step, Step::Exchanged { .. })).count();
        !self.timed_out && self.exit_code == 0 && exchanged == self.ranks
    }

    /// Whether they did so through Tidegate.
    pub fn is_good(&self) -> bool {
        self.has_exchanged() && self.used_tidegate
    }

    /// The libfabric that its ranks loaded, if they said.
    pub fn libfabric(&self) -> Option<PathBuf> {
        self.steps.iter().find_map(|step| match step {
            Step::Opened { libfabric, .. } => libfabric.first().cloned(),
            _ => None,
        })
    }

    fn take_output(&mut self, text: &str) {
        for line in text.lines() {
            match step_in(line) {
                Some(step) => self.steps.push(step),
                // Launchers draw lines around what they say.
                None if line.trim_matches(['=', '-', ' ']).is_empty() || self.output.len() == OUTPUT_MOST => {}
                None => self.output.push(line.trim().to_owned()),
            }
        }
    }

    fn take_report(&mut self, report: &Value) {
        let texts = |value: &Value, name: Option<&str>| -> Vec<String> {
            let entries = value.as_array().into_iter().flatten();
            let text = |entry: &Value| name.map_or(entry, |name| &entry[name]).as_str().map(str::to_owned);
            entries.filter_map(text).collect()
        };
        self.troubles = texts(&report["troubles"], Some("text"));
        // Ranks of other hosts say in the launcher's output alone what is wrong.
        if self.troubles.is_empty() && self.exit_code != 0 {
            let said = self.output.iter().filter_map(|line| line.split_once("tidegate: "));
            let certain = said.filter(|(_, text)| text.contains("FI_TIDEGATE_") || text.starts_with("/dev/shm"));
            self.troubles.extend(certain.map(|(_, text)| text.to_owned()).take(1));
        }
        self.used_tidegate = report["used"] == "messages";
        self.reasons = texts(&report["reasons"], None);
        let host = &report["host"];
        if host["full_shared_memory"].is_object() || host["processes_killed_for_memory"].as_u64() > Some(0) {
            // The host's words are certain, as the provider's are.
            self.troubles.extend(self.reasons.iter().cloned());
        }
        let networks = report["processes"].as_array().into_iter().flatten().map(|process| &process["network"]);
        self.network = networks.filter_map(Value::as_str).map(str::to_owned).next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::Launcher;
    use serde_json::json;

    fn words_for(starter: Starter, kind: Option<MpiKind>, hosts: &[&str], are_of_slurm: bool) -> String {
        let words =
            Words { starter: Some(starter), options: vec!["-launcher".into(), "ssh".into()], ..Words::default() };
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let (library, provider_dir) = (Path::new("/l/libmpi.so.12"), Path::new("/p"));
        let timeout = Duration::from_secs(1);
        let request = Request {
            words: &words,
            kind,
            library,
            provider_dir,
            parameters: &[],
            shared: None,
            hosts: &hosts,
            are_of_slurm,
            timeout,
        };
        quote::line(&request.words_of_job(Path::new("/t/tidegate")).unwrap())
    }

    #[test]
    fn each_launcher_is_told_in_its_own_words_where_ranks_go() {
        let mpiexec = || Starter::Mpi(Launcher { path: "/m/mpiexec".into() });
        let rank = "/t/tidegate doctor --as-rank /l/libmpi.so.12";
        for (kind, hosts, expected) in [
            (Some(MpiKind::Mpich), &[][..], "-n 2"),
            (Some(MpiKind::Mpich), &["a", "b"], "-hosts a:1,b:1 -n 2"),
            (Some(MpiKind::IntelMpi), &["a", "b", "c"], "-hosts a,b,c -ppn 1 -n 3"),
            (Some(MpiKind::OpenMpi), &["a", "b"], "--map-by ppr:1:node --host a:1,b:1 -n 2"),
        ] {
            let expected = format!("/m/mpiexec -launcher ssh {expected} {rank}");
            assert_eq!(words_for(mpiexec(), kind, hosts, false), expected);
        }
        let of_slurm = words_for(mpiexec(), Some(MpiKind::IntelMpi), &["a", "b"], true);
        assert_eq!(of_slurm, format!("/m/mpiexec -launcher ssh -bootstrap slurm -hosts a,b -ppn 1 -n 2 {rank}"));
        let srun = words_for(Starter::Srun("/s/srun".into()), None, &["a", "b"], true);
        assert_eq!(srun, format!("/s/srun -launcher ssh -w a,b -N 2 --ntasks-per-node=1 -n 2 {rank}"));
    }

    #[test]
    fn output_and_report_become_a_trial() {
        let mut trial = Trial { ranks: 1, ..Trial::default() };
        let opened = r#"{"step":"opened","host":"a","libfabric":["/l/f"]}"#;
        let mark = super::super::rank::MARK;
        trial.take_output(&format!(
            "hello\n\n=====\n{mark}{opened}\n[0] {mark}{{\"step\":\"exchanged\",\"host\":\"a\"}}\n"
        ));
        assert_eq!((trial.output.join("|"), trial.steps.len()), ("hello".into(), 2));
        assert_eq!(trial.libfabric(), Some("/l/f".into()));
        assert!(!trial.is_good(), "there is no report");
        let report = json!({ "used": "messages", "troubles": [{ "text": "t" }], "reasons": [], "processes": [{ "network": null }, { "network": "tcp/eth0" }] });
        trial.take_report(&report);
        assert!(trial.is_good());
        assert_eq!((trial.troubles.join(""), trial.network.as_deref()), ("t".into(), Some("tcp/eth0")));
        trial.take_report(
            &json!({ "reasons": ["/dev/shm is full"], "host": { "full_shared_memory": { "free_bytes": 0 } } }),
        );
        assert_eq!(trial.troubles, ["/dev/shm is full"]);
    }

    #[test]
    fn a_rank_of_another_host_is_heard_in_the_output() {
        let mut trial = Trial { exit_code: 1, ..Trial::default() };
        trial.take_output("hello\n[1] tidegate: FI_TIDEGATE_FABRIC=auto: none\ntidegate: no process opened one\n");
        trial.take_report(&Value::Null);
        assert_eq!(trial.troubles, ["FI_TIDEGATE_FABRIC=auto: none"]);
    }

    #[test]
    fn a_run_that_does_not_end_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::ZERO), None);
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_secs(60)), Some(3));
    }
}
