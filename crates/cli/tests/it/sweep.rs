//! Sweeps that are kept in a folder and divided into parts: what comes out is that of one process, to the byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A file, and a folder that several processes share.
struct Sweep(tempfile::TempDir);

/// Nine short runs, three of them references.
const JOBS: &str = "[machine]\nprocesses_per_node = 1\n[network]\ntopology = 'switch'\nsizes = '4'\n[flow]\n\
                    scheme = ['static', 'dynamic']\nslots_per_peer = 8\n[workload]\noperation = 'alltoall'\n\
                    bytes = [64, 1024, 4096]\nrepetitions = 2\n[run]\nseed = 3\n";

impl Sweep {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sweep.toml"), text).unwrap();
        Sweep(folder)
    }

    /// `words` of the command, with nothing in the environment but this, as `NAME=value` with blanks between.
    fn start(&self, words: &[&str], environment: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(words).current_dir(self.0.path()).env_clear();
        command.envs(environment.split(' ').filter_map(|word| word.split_once('=')));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Standard output and standard error.
    #[track_caller]
    fn said(&self, words: &[&str], environment: &str) -> (String, String) {
        said(self.start(words, environment).wait_with_output().unwrap())
    }

    /// All runs by one process that keeps nothing.
    #[track_caller]
    fn alone(&self) -> String {
        self.said(&["sim", "sweep.toml", "--json"], "").0
    }

    /// The files of runs in a folder.
    fn kept(&self, out: &str) -> Vec<PathBuf> {
        let codes = files(&self.0.path().join(out).join(".runs"));
        codes.iter().flat_map(|code| files(code)).collect()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn said(output: Output) -> (String, String) {
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{error}");
    (out, error)
}

#[test]
fn parts_one_after_the_other_give_what_one_process_gives() {
    let fabric = "[fabric]\ngroups = 3\nrouters_per_group = 2\nnodes_per_router = 1\nglobal_links = 1\n\
                  window_cycles = 100\nwindows_most = 5\nslow_nodes = [0, 1]\n[run]\nseeds = 2\n";
    let exchange = "[fabric]\ngroups = 3\nrouters_per_group = 2\nnodes_per_router = 1\nglobal_links = 1\n\
                    [exchange]\nbytes = [64, 128, 256]\n";
    let bulk = "[bulk]\nshape = '1'\nbytes = [64, 128, 256]\n";
    for (text, runs) in [(JOBS, 9), (fabric, 4), (exchange, 3), (bulk, 3)] {
        let sweep = Sweep::new(text);
        let alone = sweep.alone();
        let part = |part: &str| sweep.said(&["sim", "sweep.toml", "--json", "--out", "out", "--part", part], "");
        let (out, error) = part("2/3");
        let does = (1..runs).step_by(3).count();
        let says =
            format!("part 2 of 3 (--part): {does} runs were done, 0 had been kept in out/.runs; {} of", runs - does);
        assert!(out.is_empty() && error.contains(&says), "{error}");
        assert!(error.contains("the same command without --part prints what came out"), "{error}");
        assert!(part("1/3").0.is_empty());
        assert_eq!(part("3/3").0, alone, "the last one finds all runs");
        assert_eq!(sweep.kept("out").len(), runs);
        let (out, error) = sweep.said(&["sim", "sweep.toml", "--json", "--out", "out"], "");
        assert_eq!(out, alone);
        assert!(error.contains(&format!("0 runs were done, {runs} had been kept in out/.runs")), "{error}");
    }
}

#[test]
fn what_was_killed_goes_on_and_gives_the_same_bytes() {
    let sweep = Sweep::new(&JOBS.replace("repetitions = 2", "repetitions = 200"));
    let alone = sweep.alone();
    let words = ["sim", "sweep.toml", "--json", "--out", "out", "--jobs", "1"];
    let mut child = sweep.start(&words, "");
    let begin = Instant::now();
    while !sweep.kept("out").iter().any(|path| path.extension().is_some_and(|ending| ending == "json")) {
        assert!(begin.elapsed() < Duration::from_secs(60), "no runs are kept");
        sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (out, error) = sweep.said(&words, "");
    assert_eq!(out, alone);
    assert!(!error.contains(", 0 had been kept"), "{error}");
    assert_eq!(sweep.kept("out").len(), 9, "nothing is left of the run that was killed: {:?}", sweep.kept("out"));
}

#[test]
fn tasks_of_a_launcher_share_the_runs_and_the_first_prints() {
    let sweep = Sweep::new(JOBS);
    let alone = sweep.alone();
    let words = ["sim", "sweep.toml", "--json", "--out", "out", "--jobs", "1"];
    let tasks = [1, 0, 2].map(|rank| sweep.start(&words, &format!("PMI_RANK={rank} PMI_SIZE=3")));
    let [(second, error), (first, _), (third, _)] = tasks.map(|task| said(task.wait_with_output().unwrap()));
    assert_eq!((first, second, third), (alone.clone(), String::new(), String::new()));
    assert!(error.contains("part 2 of 3 (PMI_RANK of PMI_SIZE): "), "{error}");
    assert!(error.contains("; part 1 prints what came out"), "{error}");
    // The others do not come, or are gone: the first does everything.
    let other = ["sim", "sweep.toml", "--json", "--out", "other"];
    assert_eq!(sweep.said(&other, "PMI_RANK=0 PMI_SIZE=4").0, alone);
    // Whatever the environment says, a part that is named counts.
    assert_eq!(sweep.said(&[&other[..], &["--part", "1/1"]].concat(), "PMI_RANK=3 PMI_SIZE=4").0, alone);
}

#[test]
fn without_a_folder_the_environment_divides_nothing_and_a_part_is_refused() {
    let sweep = Sweep::new(JOBS);
    let alone = sweep.alone();
    let words = ["sim", "sweep.toml", "--json"];
    assert_eq!(sweep.said(&words, "PMI_RANK=1 PMI_SIZE=4"), (alone.clone(), String::new()));
    let (out, error) = sweep.said(&words, "PMI_RANK=0 PMI_SIZE=4");
    assert!(out == alone && error.contains("4 tasks run (PMI_RANK of PMI_SIZE), and each"), "{error}");
    let refused = |words: &[&str], environment: &str, why: &str| {
        let output = sweep.start(words, environment).wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(why), "{error}");
    };
    refused(&[&words[..], &["--part", "1/2"]].concat(), "", "--part needs --out DIR: a folder that all parts share");
    refused(&[&words[..], &["--out", "out", "--part", "0/2"]].concat(), "", "must be K/N with K from 1 to N");
    refused(&[&words[..], &["--out", "out"]].concat(), "PBS_ARRAY_INDEX=3", "--part $PBS_ARRAY_INDEX/N says so");
}

/// A run that fails is not kept, so each process that needs it does it, and fails alike.
#[test]
fn a_run_that_fails_fails_in_its_part_and_for_the_whole() {
    let sweep = Sweep::new(
        "[fabric]\ngroups = 3\nrouters_per_group = 2\nnodes_per_router = 1\nglobal_links = 1\n\
         [exchange]\nbytes = 64\ncycles_most = [100000, 1]\n",
    );
    let failed = |more: &[&str], environment: &str| {
        let words = [&["sim", "sweep.toml", "--jobs", "1"][..], more].concat();
        let output = sweep.start(&words, environment).wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let alone = failed(&[], "");
    assert!(alone.0 == Some(125) && alone.1.contains("(with exchange.cycles_most = 1) failed: "), "{}", alone.1);
    let out = ["--out", "out"];
    assert_eq!(failed(&["--out", "out", "--part", "2/2"], ""), alone);
    let (code, other) = failed(&["--out", "out", "--part", "1/2"], "");
    assert!(code == Some(0) && other.contains("1 of 2 runs are missing"), "{other}");
    assert_eq!(failed(&out, ""), alone);
    // The first task of a launcher says it, as one process would.
    assert_eq!(failed(&out, "PMI_RANK=1 PMI_SIZE=2").0, Some(0));
    assert_eq!(failed(&out, "PMI_RANK=0 PMI_SIZE=2"), alone);
}

#[test]
fn plans_are_made_in_parts_by_scheme() {
    let sweep = Sweep::new("");
    let words = ["plan", "halo16", "--schemes", "static,dynamic", "--slots", "8,32", "--all", "--seeds", "1", "--json"];
    let (alone, _) = sweep.said(&words, "");
    let out = [&words[..], &["--out", "out"]].concat();
    let (first, error) = sweep.said(&[&out[..], &["--part", "1/2"]].concat(), "");
    assert!(first.is_empty() && error.contains("its schemes are static; runs of others are missing"), "{error}");
    assert_eq!(sweep.said(&[&out[..], &["--part", "2/2"]].concat(), "").0, alone);
    let before = sweep.kept("out");
    let tasks = [1, 0].map(|rank| sweep.start(&out, &format!("SLURM_PROCID={rank} SLURM_STEP_NUM_TASKS=2")));
    let [(second, error), (first, _)] = tasks.map(|task| said(task.wait_with_output().unwrap()));
    assert!(first == alone && second.is_empty() && error.contains("; part 1 prints what came out"), "{error}");
    assert_eq!(sweep.kept("out"), before);
}
