//! docs/add-a-figure.md, word for word: a paper's folder and a figure's files, run by `--papers`; and what is said of
//! files that are none.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Writes the files that the chapter shows into a folder.
fn written(folder: &Path) {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/add-a-figure.md");
    let text = fs::read_to_string(chapter).unwrap();
    let files = text.split("<!-- file: ").skip(1).map(|part| {
        let (name, rest) = part.split_once(" -->\n```").unwrap();
        let (_, contents) = rest.split_once('\n').unwrap();
        (name, contents.split("\n```").next().unwrap())
    });
    let mut count = 0;
    for (name, contents) in files {
        let path = folder.join(name.strip_prefix("papers/").unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        count += 1;
    }
    assert_eq!(count, 3, "paper.toml, and two files of a figure");
}

fn paper(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
    command.arg("--papers").arg(folder).args(arguments).env("XDG_CACHE_HOME", folder).output().unwrap()
}

#[test]
fn the_figure_of_the_chapter_is_listed_and_run() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let text = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    let listed = paper(folder.path(), &["--list"]);
    assert!(text(&listed).contains("E-fig1") && text(&listed).lines().count() == 1, "{listed:?}");
    let run = paper(folder.path(), &["E-fig1", "--smallest"]);
    assert!(run.status.success(), "{run:?}");
    for words in ["With 16 slots or more nothing can be measured", "% with 8, ", "16 slots: ", "reproduced"] {
        assert!(text(&run).contains(words), "{words}: {}", text(&run));
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name_and_what_is_near() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("example/fig1.toml");
    let said = |from: &str, to: &str| {
        written(folder.path());
        let text = fs::read_to_string(&figure).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&figure, text.replace(from, to)).unwrap();
        let output = paper(folder.path(), &["E-fig1", "--smallest"]);
        assert!(!output.status.success(), "{to}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("fig1.toml"), "{said}");
        said
    };
    assert!(said("title = \"Static credits", "titel = \"Static credits").contains("titel"));
    assert!(said("scheme = \"static\"", "scheme = \"statick\"").contains("did you mean static?"));
    assert!(said("slots_per_peer = [4,", "slots_per_peers = [4,").contains("did you mean slots_per_peer?"));
    assert!(said("of = \"overhead\", x", "of = \"overheads\", x").contains("did you mean overhead?"));
    assert!(said("enough below 3", "enogh below 3").contains("did you mean enough?"));
    assert!(
        said("perhaps = \"Work for credits\"", "perhaps = \"Work on credits\"")
            .contains("did you mean Work for credits?")
    );
}

#[test]
fn the_overview_in_the_repository_is_what_the_files_beside_the_figures_give() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    copy(sources, folder.path());
    for entry in
        fs::read_dir(sources).unwrap().map(Result::unwrap).filter(|entry| entry.path().join("paper.toml").is_file())
    {
        copy(&entry.path(), &folder.path().join(entry.file_name()));
    }
    fs::remove_file(folder.path().join("README.md")).unwrap();
    let done = paper(folder.path(), &["--overview"]);
    assert!(done.status.success(), "{done:?}");
    let [is, should] = [sources, folder.path()].map(|place| fs::read_to_string(place.join("README.md")).unwrap());
    assert!(is == should, "papers/README.md is out of date: tidegate paper --overview");
}
