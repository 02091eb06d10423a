//! `tidegate paper` starts `tidegate-paper` where that is installed, and else says how to get it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the command and nothing else.
struct Installation(tempfile::TempDir);

impl Installation {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_tidegate"), folder.path().join("tidegate")).unwrap();
        Installation(folder)
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.0.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// `tidegate paper` with these arguments.
    fn paper(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.0.path().join("tidegate"));
        command.arg("paper").args(arguments).env("PATH", self.folder("search")).output().unwrap()
    }
}

/// Puts a program into a folder that prints its name and its arguments, and ends with 7.
fn install(folder: &Path, name: &str) {
    let program = folder.join("tidegate-paper");
    fs::write(&program, format!("#!/bin/sh\necho {name} \"$@\"\nexit 7\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn it_becomes_the_program_in_path_or_the_one_beside_it() {
    let installation = Installation::new();
    install(&installation.folder("search"), "far");
    let far = installation.paper(&["P-fig4", "--quick", "--help"]);
    assert_eq!((text(&far.stdout), far.status.code()), ("far P-fig4 --quick --help\n", Some(7)));
    install(&installation.folder("."), "near");
    let near = installation.paper(&[]);
    assert_eq!((text(&near.stdout), near.status.code()), ("near\n", Some(7)));
}

#[test]
fn without_the_program_it_says_how_to_get_it() {
    let installation = Installation::new();
    for arguments in [&[][..], &["P-fig4"], &["all", "--quick"]] {
        let output = installation.paper(arguments);
        let said = text(&output.stderr);
        assert!(said.contains("make papers") && said.contains("cargo install --path papers"), "{said}");
        assert_eq!((text(&output.stdout), output.status.code()), ("", Some(2)));
    }
    for option in ["--help", "-h"] {
        let output = installation.paper(&[option]);
        // Help is broken into lines.
        let said = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        let (remedy, promise) = ("`cargo install --path papers` installs it", "it lists the experiments");
        assert!(said.contains(remedy) && said.contains(promise), "{said}");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}
