//! Parts of the runs of figures, and runs that move in an archive.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Nine short runs.
const EXPERIMENT: &str = "L-fig2";

fn paper(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).output().unwrap()
}

#[track_caller]
fn said(output: &Output) -> (String, String) {
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap());
    assert!(output.status.success(), "{error}");
    (out, error)
}

/// Runs the experiment with results in `out`.
#[track_caller]
fn run(out: &Path, more: &[&str], environment: &[(&str, &str)]) -> (String, String) {
    let words = [EXPERIMENT, "--smallest", "--jobs", "1", "--out", out.to_str().unwrap()];
    said(&paper(&[&words[..], more].concat(), environment))
}

/// How many runs were done, and how many had been kept.
#[track_caller]
fn counts(error: &str) -> (usize, usize) {
    let line = error.lines().find(|line| line.contains(" runs were done, ")).unwrap_or_else(|| panic!("{error}"));
    let words: Vec<&str> = line.split(' ').collect();
    let before = |word: &str| words[words.iter().position(|each| *each == word).unwrap() - 1].parse().unwrap();
    (before("runs"), before("had"))
}

/// Comma-separated values, by name.
fn tables(out: &Path) -> Vec<(String, String)> {
    // They lie in the folder of the paper.
    let Ok(files) = fs::read_dir(out.join("liu-panda")) else { return Vec::new() };
    let names = files.map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> = names.filter(|path| path.extension().is_some_and(|ending| ending == "csv")).collect();
    tables.sort();
    tables
        .iter()
        .map(|path| (path.file_name().unwrap().display().to_string(), fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn parts_give_what_one_process_gives_and_an_archive_carries_their_runs() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [whole, parts, together, unpacked] = folders.each_ref().map(|folder| folder.path());
    let (alone, error) = run(whole, &[], &[]);
    let (total, _) = counts(&error);
    let (first, error) = run(parts, &["--part", "1/2"], &[]);
    assert!(first.is_empty() && tables(parts).is_empty(), "{first}");
    assert_eq!(counts(&error), (total.div_ceil(2), 0), "{error}");
    assert!(
        error.contains(&format!("{} runs are missing: when all parts have ended, the same command", total / 2)),
        "{error}"
    );
    let (second, error) = run(parts, &["--part", "2/2"], &[]);
    assert_eq!((second, counts(&error)), (alone.clone(), (total / 2, total.div_ceil(2))), "{error}");
    assert!(!tables(parts).is_empty() && tables(parts) == tables(whole));

    // The second of two tasks of a launcher helps the first, which has not come yet, and leaves the reports to it.
    let (second, error) = run(together, &[], &[("PMI_RANK", "1"), ("PMI_SIZE", "2")]);
    assert!(second.is_empty() && error.contains("; part 1 prints what came out"), "{error}");
    assert_eq!(counts(&error), (total, 0), "{error}");
    let (first, error) = run(together, &[], &[("PMI_RANK", "0"), ("PMI_SIZE", "2")]);
    assert_eq!((first, counts(&error)), (alone.clone(), (0, total)), "{error}");
    assert_eq!(tables(together), tables(whole));

    let (archive, _) = said(&paper(&["--pack", parts.to_str().unwrap()], &[]));
    let words = ["--unpack", archive.trim_end(), "--out", unpacked.to_str().unwrap()];
    let (_, error) = said(&paper(&words, &[]));
    assert!(error.contains(&format!("{total} runs were put into {}", unpacked.display())), "{error}");
    let (again, error) = run(unpacked, &[], &[]);
    assert_eq!((again, counts(&error)), (alone, (0, total)), "{error}");
}

#[test]
fn a_part_without_a_folder_and_an_archive_that_is_none_are_refused() {
    let output = paper(&[EXPERIMENT, "--smallest", "--part", "1/2"], &[]);
    assert!(output.status.code() == Some(2) && String::from_utf8_lossy(&output.stderr).contains("--part needs --out"));
    let folder = tempfile::tempdir().unwrap();
    let [out, file] = ["out", "runs-0123456789abcdef.tar.gz"].map(|name| folder.path().join(name));
    fs::write(&file, "no archive").unwrap();
    let output = paper(&["--unpack", file.to_str().unwrap(), "--out", out.to_str().unwrap()], &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(125) && error.contains("it is damaged or has another name"), "{error}");
    let output = paper(&["--pack", folder.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(125));
}
