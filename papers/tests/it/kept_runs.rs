//! Runs that `tidegate paper --out` keeps: what was stopped goes on, and what is not to be believed is done again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidegate_papers::CODE;

/// Some dozens of short runs.
const EXPERIMENT: &str = "P-fig24-26";
/// Where its results are.
const RESULTS: &str = "prades/fig24_26.csv";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
        command.args([EXPERIMENT, "--smallest", "--jobs", "1", "--out"]).arg(self.path()).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs to the end; returns what was said on standard error.
    #[track_caller]
    fn run(&self, more: &[&str]) -> String {
        ended(self.start(more).wait_with_output().unwrap())
    }

    fn report(&self) -> String {
        fs::read_to_string(self.path().join(RESULTS)).unwrap()
    }

    fn runs_of(&self, code: &str) -> PathBuf {
        self.path().join(".runs").join(code)
    }

    /// The files of runs by name, each with what tells whether it was written anew.
    fn runs(&self) -> BTreeMap<PathBuf, u64> {
        let files = fs::read_dir(self.runs_of(CODE)).into_iter().flatten().flatten();
        let runs = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "json"));
        runs.map(|file| (file.path(), file.metadata().unwrap().ino())).collect()
    }
}

#[track_caller]
fn ended(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// How many runs were done, and how many had been kept.
#[track_caller]
fn counts(said: &str) -> (usize, usize) {
    let line = said.lines().find(|line| line.contains(" runs were done, ")).unwrap_or_else(|| panic!("{said}"));
    let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

fn ignored(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains(" is ignored, and the run done again: ")).collect()
}

#[test]
fn what_was_killed_goes_on_where_it_was_and_gives_the_same_bytes() {
    let (whole, killed) = (Folder::new(), Folder::new());
    let (total, _) = counts(&whole.run(&[]));
    let mut child = killed.start(&[]);
    let begin = Instant::now();
    while killed.runs().len() < 3 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no runs are kept");
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = killed.runs();
    assert!((3..total).contains(&before.len()), "it was killed too late for a test");
    assert!(!killed.path().join(RESULTS).exists());
    assert_eq!(counts(&killed.run(&[])), (total - before.len(), before.len()));
    let after = killed.runs();
    assert!(before.iter().all(|(name, written)| after[name] == *written), "a run was done again");
    assert_eq!(killed.report(), whole.report());
    let names: Vec<PathBuf> = fs::read_dir(killed.runs_of(CODE)).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(names.len(), total, "nothing is left of the run that was killed: {names:?}");
    assert_eq!(counts(&killed.run(&[])), (0, total));
}

#[test]
fn damaged_and_foreign_files_are_ignored_with_a_line_each() {
    let folder = Folder::new();
    let (total, _) = counts(&folder.run(&[]));
    let report = folder.report();
    let runs: Vec<PathBuf> = folder.runs().into_keys().collect();
    let text = |index: usize| fs::read_to_string(&runs[index]).unwrap();
    // Cut short; empty; another run's; of other code; with a number that is none.
    let damaged = [
        (text(0)[..text(0).len() / 2].to_owned(), "it is damaged: "),
        (String::new(), "it is damaged: "),
        (text(5), "it is another run's"),
        (text(3).replace(CODE, "0123456789abcdef"), "it is of another version of the simulator, 0123456789abcdef"),
        (text(4).replace("\"seconds\":", "\"seconds\":-"), "its numbers make no sense"),
    ];
    for (path, (text, _)) in runs.iter().zip(&damaged) {
        fs::write(path, text).unwrap();
    }
    let said = folder.run(&[]);
    assert_eq!(counts(&said), (damaged.len(), total - damaged.len()));
    for (path, (_, why)) in runs.iter().zip(&damaged) {
        let lines = ignored(&said).into_iter().filter(|line| line.contains(path.to_str().unwrap()));
        let lines: Vec<&str> = lines.collect();
        assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(why)), "{why}: {said}");
    }
    assert_eq!(ignored(&said).len(), damaged.len(), "one line for each: {said}");
    assert_eq!(folder.report(), report);
    let again = folder.run(&[]);
    assert_eq!((counts(&again), ignored(&again).len()), ((0, total), 0), "the files are whole again");
}

#[test]
fn runs_of_other_code_are_used_only_if_that_is_asked_for() {
    let folder = Folder::new();
    let (total, _) = counts(&folder.run(&[]));
    let older = folder.runs_of("0123456789abcdef");
    fs::rename(folder.runs_of(CODE), &older).unwrap();
    for file in fs::read_dir(&older).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(CODE, "0123456789abcdef")).unwrap();
    }
    let reused = folder.run(&["--reuse-older"]);
    assert_eq!(counts(&reused), (0, total));
    let used = format!("{total} runs of other versions of the simulator, used where this version has none");
    assert!(reused.contains(&used), "{reused}");
    let older = format!("\nolder,0123456789abcdef,{total}\n");
    assert!(folder.report().contains(&older), "{}", folder.report());
    let said = folder.run(&[]);
    assert_eq!(counts(&said), (total, 0));
    assert!(said.contains("not used; --reuse-older uses them"), "{said}");
    assert!(!folder.report().contains("older,"));
}

#[test]
fn two_at_the_same_time_share_the_work() {
    let (alone, shared) = (Folder::new(), Folder::new());
    let (total, _) = counts(&alone.run(&[]));
    let children = [0, 1].map(|_| shared.start(&[]));
    let said = children.map(|child| ended(child.wait_with_output().unwrap()));
    let done = said.each_ref().map(|said| counts(said).0);
    assert_eq!(done[0] + done[1], total, "each run is done by one of the two: {said:?}");
    assert!(done.iter().all(|done| *done > 0), "both have worked: {said:?}");
    assert!(said.iter().all(|said| ignored(said).is_empty() && !said.contains("cannot")), "{said:?}");
    assert_eq!(shared.report(), alone.report());
}
