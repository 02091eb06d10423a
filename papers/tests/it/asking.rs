//! What `tidegate-paper` does unasked: it lists, and says where runs are kept and about how long they take.

use std::path::Path;
use std::process::{Command, Output};

fn paper(arguments: &[&str], cache: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
    command.args(arguments).env_remove("HOME").env("XDG_CACHE_HOME", cache).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn without_names_it_lists_and_runs_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let [unasked, listed] = [&[][..], &["--list"]].map(|arguments| paper(arguments, cache.path()));
    assert!(unasked.status.success() && listed.status.success());
    let (all, hint) = text(&unasked.stdout).split_once("\n\n").unwrap();
    assert_eq!(all, text(&listed.stdout).trim_end());
    assert!(all.contains("P-fig27") && hint.contains("`tidegate paper all` all: more than ten hours"), "{hint}");
    for arguments in [&["--quick"][..], &["--seeds", "2"], &["--out", "results"]] {
        let refused = paper(arguments, cache.path());
        assert_eq!((text(&refused.stdout), refused.status.code()), ("", Some(2)), "{arguments:?}");
        assert!(text(&refused.stderr).contains("no experiment is named"), "{}", text(&refused.stderr));
    }
    assert_eq!(cache.path().read_dir().unwrap().count(), 0);
}

#[test]
fn without_a_folder_runs_are_kept_in_the_cache_and_that_is_said_with_the_time_they_take() {
    let cache = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str]| {
        let output = paper(arguments, cache.path());
        let said = text(&output.stderr).to_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let place = cache.path().join("tidegate/.runs").display().to_string();
    let first = said(&["P-fig19", "--smallest", "--jobs", "2"]);
    assert!(first.contains(&format!("runs are kept in {place}; ")), "{first}");
    assert!(
        first.contains("1 run to do, 2 at the same time: about ") && first.contains("1 runs were done, 0 "),
        "{first}"
    );
    let again = said(&["P-fig19", "--smallest"]);
    assert!(again.contains("0 runs were done, 1 had been kept in ") && !again.contains(" to do, "), "{again}");
    // What is computed has no runs.
    assert_eq!(said(&["P-table1"]), "");
}

#[test]
fn where_no_folder_can_be_used_that_is_said_and_the_runs_are_done() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tidegate"), "").unwrap();
    for cache in [folder.path(), Path::new("")] {
        let output = paper(&["P-fig19", "--smallest"], cache);
        let said = text(&output.stderr);
        assert!(output.status.success() && said.contains("runs are not kept, because "), "{said}");
        assert!(text(&output.stdout).contains("statements at reduced size"));
    }
}
