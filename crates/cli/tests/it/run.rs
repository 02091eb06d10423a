//! `tidegate run` as a user meets it, with shell scripts in place of MPI programs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::script::write_script;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_flow::{Config, SchemeName};
use tidegate_link::{ShmConfig, ShmLink, StatsConfig};
use tidegate_message::{Counter, Link};

/// A folder with a file in place of the provider, which nobody loads, and a private place for counter pages.
struct Bench {
    root: TempDir,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("provider")).unwrap();
        fs::create_dir(root.path().join("runtime")).unwrap();
        fs::write(root.path().join("provider/libtidegate-fi.so"), "").unwrap();
        Bench { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write_script(&path, text);
        path
    }

    /// The command with its provider and place set, and nothing of this machine's MPI settings.
    fn tidegate(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        // A test runner in the background may ignore the signals that these tests are about.
        command.args(["--default-signal", env!("CARGO_BIN_EXE_tidegate")]);
        for (name, _) in std::env::vars_os() {
            let known = name.to_string_lossy();
            if ["FI_", "OMPI_", "PRTE_", "I_MPI_", "MPIR_", "TIDEGATE_"].iter().any(|start| known.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        command.env("TIDEGATE_PROVIDER_DIR", self.path("provider")).env("XDG_RUNTIME_DIR", self.path("runtime"));
        command.args(words).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.tidegate(&[&["run"], words].concat()).output().unwrap()
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("runtime")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Starts a script under `tidegate run` and waits until it has printed a line, which is returned.
fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn signal(name: &str, child: &Child) {
    assert!(Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap().success());
}

#[test]
fn the_exit_code_is_the_programs() {
    let bench = Bench::new();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
    {
        assert_eq!(bench.run(&["sh", "-c", script]).status.code(), Some(code), "{script}");
    }
    assert_eq!(bench.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn failures_of_tidegate_itself_have_the_codes_of_env() {
    let bench = Bench::new();
    let text = bench.path("text");
    fs::write(&text, "").unwrap();
    for (words, code, says) in [
        (&["--scheme", "fast", "true"][..], 2, "dynamic"),
        (&["--slots", "3", "true"], 2, "--slots=3"),
        (&["--provider-dir", "/nowhere", "true"], 125, "libtidegate-fi.so is not in /nowhere"),
        (&["--json", "/nowhere/x.json", "echo", "ran"], 2, "/nowhere/x.json"),
        (&[text.to_str().unwrap()], 126, "cannot start"),
        (&["/nowhere/program"], 127, "/nowhere/program"),
        (&["tru"], 127, "it is in none of the folders of PATH: give its path; did you mean t"),
    ] {
        let output = bench.run(words);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(code), ""), "{words:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert_eq!(bench.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn the_programs_input_and_output_are_its_own() {
    let bench = Bench::new();
    let mut command = bench.tidegate(&["run", "cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"hello\n");
}

#[test]
fn the_program_gets_the_settings_that_env_prints_and_a_private_folder() {
    let bench = Bench::new();
    let mpiexec = bench.script(
        "mpiexec",
        "[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 5.0.11' && exit\n\
         env | grep -E '^(FI|OMPI|PRTE|I_MPI|MPIR)_'\nstat -c 'mode %a' \"${FI_TIDEGATE_STATS_DIR#?}\"",
    );
    let words = ["--scheme", "static", "--slots", "16", mpiexec.to_str().unwrap(), "-n", "2"];
    // The folder is the run's own, and so is its place in the list of what Open MPI passes on.
    let ran = stdout(&bench.run(&words)).replace(";FI_TIDEGATE_STATS_DIR\n", "\n");
    let mut given: Vec<_> =
        ran.lines().filter(|line| !line.starts_with("mode") && !line.contains("STATS_DIR")).collect();
    let printed = stdout(&bench.tidegate(&[&["env", "--json"], &words[..]].concat()).output().unwrap());
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let printed = printed["environment"].as_object().unwrap().iter();
    let mut expected: Vec<_> = printed.map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    given.sort_unstable();
    expected.sort_unstable();
    assert_eq!(given, expected);
    assert!(given.contains(&"OMPI_MCA_mtl=ofi") && given.contains(&"FI_TIDEGATE_SLOTS=16"), "{ran}");
    assert!(!ran.contains("I_MPI_FABRICS"), "{ran}");
    assert!(ran.contains("mode 700"), "{ran}");
    let folder = bench.path("runtime/tidegate-run-");
    assert!(ran.contains(&format!("FI_TIDEGATE_STATS_DIR=?{}", folder.display())), "{ran}");
    assert_eq!(bench.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn lines_of_env_work_in_a_shell() {
    let bench = Bench::new();
    let odd = bench.path("it's a $folder");
    fs::rename(bench.path("provider"), &odd).unwrap();
    let tidegate = env!("CARGO_BIN_EXE_tidegate");
    for eval in [format!("eval \"$({tidegate} env)\""), format!("eval \"$({tidegate} env --explain)\"")] {
        let output = Command::new("sh")
            .args(["-c", &format!("{eval} && printf %s \"$FI_PROVIDER_PATH\"")])
            .env_remove("FI_PROVIDER_PATH")
            .env_remove("I_MPI_ROOT")
            .env("TIDEGATE_PROVIDER_DIR", &odd)
            .output()
            .unwrap();
        assert!(stdout(&output).starts_with(odd.to_str().unwrap()), "{eval}: {}", stdout(&output));
    }
}

#[test]
fn signals_reach_the_program_and_the_folder_goes_all_the_same() {
    let bench = Bench::new();
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10)] {
        let script = "trap 'echo got; exit 9' TERM INT HUP USR1; echo ready; while :; do sleep 0.01; done";
        let (mut child, _) = start(&mut bench.tidegate(&["run", "sh", "-c", script]));
        assert_eq!(bench.left_behind().len(), 1);
        signal(name, &child);
        let mut rest = String::new();
        child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("got\n", Some(9)), "{name}");

        let (mut child, _) = start(&mut bench.tidegate(&["run", "sh", "-c", "echo ready; exec sleep 1000"]));
        signal(name, &child);
        assert_eq!(child.wait().unwrap().code(), Some(128 + number), "{name}");
        assert_eq!(bench.left_behind(), Vec::<PathBuf>::new(), "{name}");
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let bench = Bench::new();
    let tidegate = env!("CARGO_BIN_EXE_tidegate");
    // As under nohup: a SIGHUP neither ends the run nor reaches the program, a SIGTERM does both.
    let script = format!("trap '' HUP; exec {tidegate} run sh -c 'echo ready; exec sleep 1000'");
    let mut command = bench.tidegate(&[]);
    let environment: Vec<_> = command.get_envs().map(|(n, v)| (n.to_owned(), v.map(ToOwned::to_owned))).collect();
    command = Command::new("env");
    command.args(["--default-signal", "sh", "-c", &script]).stdin(Stdio::null());
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let (mut child, _) = start(&mut command);
    signal("HUP", &child);
    signal("TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_run_without_endpoints_is_explained() {
    let bench = Bench::new();
    let report = bench.path("run.json");
    let output = bench.run(&["--json", report.to_str().unwrap(), "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).starts_with("tidegate: no process opened a Tidegate endpoint"), "{}", stderr(&output));
    let value = json(&report);
    assert_eq!((&value["schema"], &value["exit_code"]), (&"tidegate-run/1".into(), &3.into()));
    assert_eq!(value["processes"], Value::Array(Vec::new()));
}

#[test]
fn an_older_and_longer_report_is_replaced_whole() {
    let bench = Bench::new();
    let report = bench.path("run.json");
    fs::write(&report, "x".repeat(1 << 16)).unwrap();
    bench.run(&["--json", report.to_str().unwrap(), "true"]);
    assert_eq!(json(&report)["exit_code"], 0);
}

/// A real page of an endpoint of this process, as rank `rank` of 2, that sent some packets.
fn page(folder: &Path, rank: u32, packets: u64) {
    page_with(folder, rank, &[(Counter::PacketsSent, packets)]);
}

/// The same with any counters.
fn page_with(folder: &Path, rank: u32, counters: &[(Counter, u64)]) {
    let flow = Config::new(SchemeName::Static, 5, 16, 1);
    let stats = StatsConfig { dir: folder.to_owned(), rank: Some(rank), job_size: Some(2), ..StatsConfig::default() };
    let config = ShmConfig { stats: Some(stats), directory: folder.to_owned(), ..ShmConfig::new(flow) };
    let link = ShmLink::new(config).unwrap();
    counters.iter().for_each(|(counter, value)| link.counters().add(*counter, *value));
}

#[test]
fn a_job_that_lost_messages_fails_though_its_program_succeeds() {
    let bench = Bench::new();
    let pages = bench.path("pages");
    fs::create_dir(&pages).unwrap();
    page_with(&pages, 0, &[(Counter::PacketsSent, 9), (Counter::SendsLost, 2)]);
    page_with(&pages, 1, &[(Counter::PacketsSent, 9), (Counter::SendsLost, 1)]);
    let report = bench.path("run.json");
    for (status, expected) in [(0, 124), (7, 7)] {
        let script = format!("cp {}/*.counters ${{FI_TIDEGATE_STATS_DIR#?}}; exit {status}", pages.display());
        let output = bench.run(&["--json", report.to_str().unwrap(), "sh", "-c", &script]);
        assert_eq!(output.status.code(), Some(expected), "{}", stderr(&output));
        assert!(stderr(&output).contains("3 messages that counted as sent never reached"), "{}", stderr(&output));
        assert_eq!(json(&report)["exit_code"], status, "the program's own");
    }
}

#[test]
fn pages_of_endpoints_become_the_report() {
    let bench = Bench::new();
    let pages = bench.path("pages");
    fs::create_dir(&pages).unwrap();
    page(&pages, 1, 7);
    page(&pages, 0, 7);
    let report = bench.path("run.json");
    // The program is killed after its endpoints have left their pages.
    let script = format!("cp {}/*.counters ${{FI_TIDEGATE_STATS_DIR#?}}; kill -KILL $$", pages.display());
    let output = bench.run(&["-v", "--json", report.to_str().unwrap(), "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(137));
    let text = stderr(&output);
    let heading =
        "tidegate: scheme static, 16 slots per peer, 1 of them for credit packets, piggyback off, 5 peers, bulk ";
    assert!(text.starts_with("tidegate: 2 processes of ") && text.contains(heading), "{text}");
    for line in ["  packets_sent ", "  mailbox_bytes ", "  rank 0 ", "  rank 1 "] {
        assert!(text.contains(&format!("\n{line}")), "{line} in {text}");
    }
    let value = json(&report);
    let ranks: Vec<_> = value["processes"].as_array().unwrap().iter().map(|process| process["rank"].clone()).collect();
    assert_eq!(ranks, [0, 1]);
    assert_eq!(value["job"]["mailbox_bytes"]["max"], value["processes"][0]["counters"]["mailbox_bytes"]);

    let short = stderr(&bench.run(&["sh", "-c", &script]));
    assert!(
        short.starts_with("tidegate: the program was ended by SIGKILL (signal 9): ")
            && short.contains("\ntidegate: 2 processes of "),
        "{short}"
    );
    assert_eq!(short.lines().count(), 3, "{short}");
    assert_eq!(value["launches"][0]["verdict"]["headline"], "nothing held up this job");
    let output = bench.run(&["--quiet", "sh", "-c", &script]);
    assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(137)));
}

#[test]
fn endpoints_that_no_message_went_through_are_no_report_of_zeros() {
    let bench = Bench::new();
    let pages = bench.path("pages");
    fs::create_dir(&pages).unwrap();
    page(&pages, 0, 0);
    page(&pages, 1, 0);
    let mpiexec = bench.script(
        "mpiexec",
        &format!(
            "[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 5.0.11' && exit\ncp {}/*.counters ${{FI_TIDEGATE_STATS_DIR#?}}",
            pages.display()
        ),
    );
    let report = bench.path("run.json");
    let words = ["--json", report.to_str().unwrap(), mpiexec.to_str().unwrap(), "--mca", "pml", "ob1"];
    let said = stderr(&bench.run(&words));
    let opened = "tidegate: no message went through Tidegate: its endpoints were opened and not used.";
    assert!(said.contains(opened), "{said}");
    assert!(said.contains("\n  * The command line itself sets OMPI_MCA_pml: leave that out.\n"), "{said}");
    assert!(!said.contains("packets_sent"), "{said}");
    let value = json(&report);
    assert_eq!(value["used"], "endpoints");
    assert_eq!(value["reasons"][0], "The command line itself sets OMPI_MCA_pml: leave that out.");

    let quiet = stderr(&bench.run(&["--quiet", mpiexec.to_str().unwrap()]));
    assert!(quiet.starts_with("tidegate: no message went through") && quiet.contains("pml_base_verbose"), "{quiet}");
}

#[test]
fn what_the_provider_said_takes_the_place_of_guesses() {
    let bench = Bench::new();
    let report = bench.path("run.json");
    let script =
        "for pid in 1 2; do echo 'FI_TIDEGATE_X is wrong' > ${FI_TIDEGATE_STATS_DIR#?}/$pid-0.troubles; done; exit 9";
    let said = stderr(&bench.run(&["--json", report.to_str().unwrap(), "sh", "-c", script]));
    let expected = "tidegate: no process opened a Tidegate endpoint, so there is nothing to report.\n  \
                    * FI_TIDEGATE_X is wrong (2 processes)\n";
    assert_eq!(said, expected);
    assert_eq!(json(&report)["troubles"][0]["text"], "FI_TIDEGATE_X is wrong");
}

#[test]
fn the_environment_is_checked_before_anything_starts() {
    let bench = Bench::new();
    for (name, value) in [("SLOTS", "abc"), ("SPIN", "1.5"), ("SCHEME", "sometimes"), ("RX_MEMORY", "64 buckets")] {
        let name = format!("FI_TIDEGATE_{name}");
        for command in ["run", "env"] {
            let output = bench.tidegate(&[command, "echo", "ran"]).env(&name, value).output().unwrap();
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{command} with {name}");
            let said = stderr(&output);
            assert!(said.starts_with(&format!("tidegate: {name} is \"{value}\", but must be ")), "{said}");
        }
    }
}

#[test]
fn a_misspelt_variable_is_said_once_and_not_passed_on() {
    let bench = Bench::new();
    let mut command = bench.tidegate(&["run", "env"]);
    let output = command.env("FI_TIDEGATE_SLTOS", "16").env("FI_TIDEGATE_SLOTS", "16").output().unwrap();
    let (ran, said) = (stdout(&output), stderr(&output));
    assert!(
        said.starts_with("tidegate: FI_TIDEGATE_SLTOS is no parameter of Tidegate and has no effect; did you mean"),
        "{said}"
    );
    assert!(ran.contains("FI_TIDEGATE_SLOTS=16\n") && !ran.contains("SLTOS"), "{ran}");
}

#[test]
fn an_option_that_does_not_exist_is_not_run_as_a_program() {
    let bench = Bench::new();
    for (words, says) in [(&["--slot", "8", "echo", "ran"][..], "'--slots'"), (&["-x", "echo", "ran"], "'-x'")] {
        let output = bench.run(words);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{words:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn every_message_is_one_write() {
    let bench = Bench::new();
    for words in [&["run", "--slots", "3", "true"][..], &["env", "nosuch"], &["run", "--json", "/nowhere/x", "true"]] {
        // Standard error is a socket of datagrams: each write is one datagram.
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let status = bench.tidegate(words).stderr(OwnedFd::from(theirs)).status().unwrap();
        assert!(!status.success(), "{words:?}");
        ours.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        let length = ours.recv(&mut bytes).unwrap();
        let said = String::from_utf8_lossy(&bytes[..length]);
        assert!(said.starts_with("tidegate: ") && said.ends_with('\n'), "{said}");
        assert!(ours.recv(&mut bytes).is_err(), "{words:?} wrote more than once");
    }
}

#[test]
fn the_report_as_json_can_go_to_standard_output() {
    let bench = Bench::new();
    let output =
        bench.tidegate(&["run", "--json", "-", "echo", "ran"]).current_dir(bench.path("runtime")).output().unwrap();
    let text = stdout(&output);
    let (first, rest) = text.split_once('\n').unwrap();
    let value: Value = serde_json::from_str(rest).unwrap();
    assert_eq!((first, &value["exit_code"]), ("ran", &Value::from(0)));
    assert_eq!(bench.left_behind(), Vec::<PathBuf>::new(), "no file of the name -");
}

#[test]
fn settings_for_a_launcher_that_is_not_there_are_refused() {
    let bench = Bench::new();
    let output = bench.tidegate(&["env", "nosuch"]).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(127), ""));
    assert!(stderr(&output).contains("in none of the folders of PATH: give its path"), "{}", stderr(&output));
    // A script may call a launcher in the end.
    let output = bench.tidegate(&["env", "true"]).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("settings for all MPIs"), "{}", stderr(&output));
    let output = bench.tidegate(&["env", "--mpi", "mpich", "true"]).output().unwrap();
    assert_eq!((output.status.success(), stderr(&output).as_str()), (true, ""));
}

#[test]
fn root_is_told_that_open_mpi_runs_for_root() {
    let bench = Bench::new();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mpiexec = bench.script("mpiexec", "[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 5.0.11'; exit 0");
    let mpiexec = mpiexec.to_str().unwrap();
    for words in [&["run", mpiexec][..], &["env", mpiexec]] {
        let tells =
            |command: &mut Command| stderr(&command.output().unwrap()).contains("OMPI_ALLOW_RUN_AS_ROOT is set");
        assert_eq!(tells(&mut bench.tidegate(words)), is_root, "{words:?}");
        assert!(!tells(bench.tidegate(words).env("OMPI_ALLOW_RUN_AS_ROOT", "1")), "{words:?}: it was the user");
    }
}

#[test]
fn an_interrupt_from_the_terminal_reaches_the_program_once() {
    let bench = Bench::new();
    let program = bench.script(
        "program",
        "n=0; trap 'n=$((n+1)); echo n=$n' INT; trap 'echo end n=$n; exit' TERM\n\
         echo $PPID; while :; do sleep 0.01; done",
    );
    // script(1) gives its command a terminal, and types what it reads.
    let line =
        format!("env --default-signal {} run --quiet {}; exit $?", env!("CARGO_BIN_EXE_tidegate"), program.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.env("TIDEGATE_PROVIDER_DIR", bench.path("provider")).env("XDG_RUNTIME_DIR", bench.path("runtime"));
    let mut terminal = command.spawn().unwrap();
    let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines().map(Result::unwrap);
    let tidegate = lines.next().unwrap().trim().to_owned();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &tidegate]).status().unwrap().success());

    // A stopped `tidegate` cannot forward the interrupt before the program has had its own. (Two pending ones are one.)
    signal("-STOP");
    let stopped = |status: &str| status.lines().any(|line| line.starts_with("State:\tT"));
    while !stopped(&fs::read_to_string(format!("/proc/{tidegate}/status")).unwrap()) {
        std::thread::yield_now();
    }
    terminal.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    assert!(lines.next().unwrap().contains("n=1"));
    signal("-CONT");
    signal("-TERM");
    let last: Vec<_> = lines.collect();
    assert!(last.iter().any(|line| line.contains("end n=1")), "{last:?}");
    terminal.wait().unwrap();
}

/// No test by itself: the next test runs it as its program.
#[test]
#[ignore = "ends its process"]
fn an_endpoint_that_is_killed() {
    let Ok(dir) = std::env::var("FI_TIDEGATE_STATS_DIR") else { return };
    let dir = PathBuf::from(dir.trim_start_matches('?'));
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Dynamic, 1, 8, 2) };
    let stats = Some(StatsConfig { dir, ..StatsConfig::default() });
    let _link = ShmLink::new(ShmConfig { stats, ..ShmConfig::new(flow) }).unwrap();
    std::process::abort();
}

#[test]
fn segments_of_killed_processes_go_with_the_run() {
    let bench = Bench::new();
    let report = bench.path("run.json");
    let program = std::env::current_exe().unwrap();
    let run = ["--json", report.to_str().unwrap(), program.to_str().unwrap()];
    let output = bench.run(&[&run[..], &["--exact", "run::an_endpoint_that_is_killed", "--ignored"]].concat());
    assert_eq!(output.status.code(), Some(128 + 6), "{}", stderr(&output));
    let pid = format!("-{}-", json(&report)["processes"][0]["pid"]);
    let left = fs::read_dir("/dev/shm").unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with("tidegate-") && name.contains(&pid)).count(), 0);
}
