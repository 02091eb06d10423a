//! The commit that a build says it is of: by git, by the file in an archive, and without either.

use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "../../../ofi/commit.rs"]
#[expect(dead_code, reason = "build scripts alone tell cargo")]
mod shared;

use shared::{FILE, UNKNOWN, of};

const WHOLE: &str = "0123456789abcdef0123456789abcdef01234567";

fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@t.invalid"]).args(words);
    let answer = command.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE").output().unwrap();
    assert!(answer.status.success(), "{words:?}: {}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8(answer.stdout).unwrap().trim().to_owned()
}

fn write(root: &Path, name: &str, text: &str) {
    fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
    fs::write(root.join(name), text).unwrap();
}

/// Sources of which `src` alone is compiled, and their parts.
fn sources(root: &Path) -> Vec<String> {
    write(root, "src/lib.rs", "// first");
    write(root, "docs/page.md", "first");
    write(root, FILE, "$Format:%H$\n");
    vec!["src".to_owned()]
}

#[test]
fn a_repository_says_its_commit_and_whether_what_is_compiled_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (root, parts) = (folder.path(), sources(folder.path()));
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "first"]);
    let head = git(root, &["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(of(root, &parts, None), head);
    write(root, "docs/page.md", "second");
    assert_eq!(of(root, &parts, None), head, "pages are not compiled");
    write(root, "src/lib.rs", "// second");
    assert_eq!(of(root, &parts, None), format!("{head}-dirty"));
    write(root, "src/lib.rs", "// first");
    assert_eq!(of(root, &parts, None), head);
    write(root, "src/new.rs", "// a file that git does not know");
    assert_eq!(of(root, &parts, None), format!("{head}-dirty"));
    assert_eq!(of(root, &parts, Some(WHOLE.to_owned())), WHOLE, "what is given goes before git");
    for given in ["", "\n", "main", "$(id)", "012345", "0123456789ab-dirt"] {
        assert_eq!(of(root, &parts, Some(given.to_owned())), format!("{head}-dirty"), "{given:?} is no commit");
    }
}

#[test]
fn an_archive_says_the_commit_that_it_was_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let (root, parts) = (folder.path(), sources(folder.path()));
    assert_eq!(of(root, &parts, None), UNKNOWN, "the file has not been filled in");
    write(root, FILE, &format!("{WHOLE}\n"));
    assert_eq!(of(root, &parts, None), &WHOLE[..12]);
    write(root, FILE, &format!("{WHOLE}-dirty\n"));
    assert_eq!(of(root, &parts, None), format!("{}-dirty", &WHOLE[..12]));
    for odd in ["", "\0", "éééééééé", "a b c d e f g"] {
        write(root, FILE, odd);
        assert_eq!(of(root, &parts, None), UNKNOWN, "{odd:?}");
    }
    fs::remove_file(root.join(FILE)).unwrap();
    assert_eq!(of(root, &parts, None), UNKNOWN);
}

/// As when a tar is unpacked in a repository of recipes.
#[test]
fn the_repository_around_the_sources_is_not_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tidegate");
    let parts = sources(&root);
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-q", "-m", "recipes"]);
    assert_eq!(of(&root, &parts, None), UNKNOWN);
    write(&root, FILE, WHOLE);
    assert_eq!(of(&root, &parts, None), &WHOLE[..12]);
}

/// `git archive` fills in the file, because `.gitattributes` says so.
#[test]
fn the_file_is_one_that_git_fills_in() {
    let root = Path::new("../..");
    assert!(fs::read_to_string(root.join(".gitattributes")).unwrap().contains(&format!("{FILE} export-subst")));
    assert!(root.join(FILE).exists());
}
