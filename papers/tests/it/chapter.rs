//! docs/add-a-figure.md, word for word: a paper's folder and a figure's files, run by `--papers`; and what is said of
//! files that are none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
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

/// Changes the chapter's figure, and returns what the program, with these arguments, says of it on standard error: it
/// fails, names the file and the line of the change, and runs nothing.
#[track_caller]
fn refused(arguments: &[&str], from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let file = folder.path().join("example/fig1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let line = 1 + text[..text.find(from).unwrap()].matches('\n').count();
    fs::write(&file, text.replacen(from, to, 1)).unwrap();
    let output = paper(folder.path(), arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{to}: {said}");
    assert!(said.contains("fig1.toml") && said.contains(&format!("line {line}")), "line {line}: {said}");
    assert!(output.stdout.is_empty() && !said.contains(" to do"), "{said}");
    said
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name_and_what_is_near() {
    let said = |from: &str, to: &str| refused(&["E-fig1", "--smallest"], from, to);
    assert!(said("title = \"Static credits", "titel = \"Static credits").contains("titel"));
    assert!(said("scheme = \"static\"", "scheme = \"statick\"").contains("did you mean static?"));
    assert!(said("slots_per_peer = [4,", "slots_per_peers = [4,").contains("did you mean slots_per_peer?"));
    assert!(said("of = \"overhead\", x", "of = \"overheads\", x").contains("did you mean overhead?"));
    assert!(said("enough below 3", "enogh below 3").contains("did you mean enough?"));
    assert!(
        said("perhaps = \"Work for credits\"", "perhaps = \"Work on credits\"")
            .contains("did you mean Work for credits?")
    );
    assert!(said("bytes = 256", "bytes = \"many\"").contains("[workload] bytes = many"));
    assert!(said("repetitions = 20", "repetition = 20").contains("did you mean repetitions?"));
    assert!(said("# Each point is", "unfitt = \"leave\"\n# Each point is").contains("did you mean unfit?"));
    assert!(said("reference = { flow.scheme", "reference = { flow.schema").contains("did you mean scheme?"));
}

#[test]
fn a_selection_that_no_form_has_is_refused_before_anything_is_run() {
    let said = |from: &str, to: &str| refused(&["E-fig1", "--smallest"], from, to);
    let claim = "claim `With 8 it costs more than with 16.`: `values.few`: ";
    let (few, missing) = ("slots_per_peer = 8 }", said("slots_per_peer = 8 }", "slots_per_peer = 9 }"));
    assert!(
        missing.contains(&format!("{claim}no point has `slots_per_peer = 9`, in any form; there are 4, 8, 16, 64")),
        "{missing}"
    );
    assert!(
        said(few, "slots_per_per = 8 }").contains("there is no axis `slots_per_per`: did you mean slots_per_peer?")
    );
    let series = said("x = \"slots_per_peer\" }", "x = \"slots_per_peer\", where = { slots_per_peer = \"> 64\" } }");
    assert!(series.contains("picture `fig1`: series `static`: no point has `slots_per_peer = \"> 64\"`"), "{series}");
}

#[test]
fn a_claim_on_points_of_another_form_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let file = folder.path().join("example/fig1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let reduced = "[runs.pingpong.quick]\nflow.slots_per_peer = [16, 64]\n";
    fs::write(&file, text.replace("[runs.pingpong.quick]\n", reduced)).unwrap();
    let output = paper(folder.path(), &["E-fig1", "--smallest"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && shown.contains(" 0 implied, 1 not run"), "{shown}");
    assert!(shown.contains("This form has no runs that could tell."), "{shown}");
}

#[test]
fn words_of_claims_and_braces_are_checked_without_a_run() {
    let read = |from: &str, to: &str| refused(&["--list"], from, to);
    assert!(read("enough below 3", "enough bellow 3").contains("none of the judges below, above"));
    assert!(read("few above more", "few above moer").contains("there is no value `moer`: did you mean more?"));
    assert!(read("{few:.1} % with 8", "{fews:.1} % with 8").contains("there is no value `fews`: did you mean few?"));
    assert!(read("perhaps = ", "only = \"half\"\nperhaps = ").contains("full, quick or smallest is needed"));
    // Axes are known when the runs are.
    let checked = |from: &str, to: &str| refused(&["E-fig1", "--list"], from, to);
    assert!(checked("of 256 bytes\"", "of {bytes} bytes\"").contains("bytes is none"));
    assert!(checked("name = \"static\"", "name = \"{scheme}\"").contains("scheme is none"));
}

#[test]
fn places_letters_and_ids_are_given_once() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let [paper_file, figure] = ["other/paper.toml", "other/fig1.toml"].map(|name| folder.path().join(name));
    fs::create_dir(folder.path().join("other")).unwrap();
    for name in ["paper.toml", "fig1.toml", "fig1.md"] {
        fs::copy(folder.path().join("example").join(name), folder.path().join("other").join(name)).unwrap();
    }
    let said = || {
        let output = paper(folder.path(), &["--list"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let change = |file: &Path, from: &str, to: &str| {
        fs::write(file, fs::read_to_string(file).unwrap().replace(from, to)).unwrap();
    };
    let both =
        |said: &str, file: &str| ["example", "other"].iter().all(|name| said.contains(&format!("{name}/{file}")));
    let place = said();
    assert!(both(&place, "paper.toml") && place.contains("place = 7 is that of"), "{place}");
    change(&paper_file, "place = 7", "place = 8");
    let letter = said();
    assert!(both(&letter, "paper.toml") && letter.contains("letter = \"E\" is that of"), "{letter}");
    change(&paper_file, "\"E\"", "\"F\"");
    let id = said();
    assert!(both(&id, "fig1.toml") && id.contains("id = \"E-fig1\" is that of"), "{id}");
    change(&figure, "E-fig1", "F-fig1");
    assert!(paper(folder.path(), &["--list"]).status.success());
}

#[test]
fn a_missing_file_is_named_with_the_remedy() {
    for (name, remedy) in
        [("fig1.md", "create it with the heading"), ("fig1.toml", "write it, or take \"fig1\" out of")]
    {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        fs::remove_file(folder.path().join("example").join(name)).unwrap();
        let said = String::from_utf8(paper(folder.path(), &["--list"]).stderr).unwrap();
        assert!(said.contains(&format!("example/{name} is missing: {remedy}")), "{said}");
    }
}

/// Pages and pictures below a folder.
fn shown(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let below = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let folders = below(folder).into_iter().filter(|path| path.join("paper.toml").is_file());
    let files = folders.flat_map(|path| below(&path)).chain(below(folder));
    let is_shown = |path: &PathBuf| path.ends_with("README.md") || path.extension().is_some_and(|end| end == "svg");
    let named = |path: PathBuf| (path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
    files.filter(is_shown).map(named).collect()
}

#[test]
fn pages_and_pictures_in_the_repository_are_what_the_files_beside_the_figures_give() {
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
    let is = shown(folder.path());
    is.keys().for_each(|name| fs::remove_file(folder.path().join(name)).unwrap());
    let done = paper(folder.path(), &["--pages"]);
    assert!(done.status.success(), "{done:?}");
    let should = shown(folder.path());
    assert_eq!(is.keys().collect::<Vec<_>>(), should.keys().collect::<Vec<_>>());
    for (name, bytes) in is {
        assert!(bytes == should[&name], "papers/{} is out of date: tidegate paper --pages", name.display());
    }
}

/// A reader of the chapter adds its paper to those that there are, where a place that is taken is refused.
#[test]
fn the_place_of_the_chapters_paper_is_free() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let place_of = |file: PathBuf| {
        let text = fs::read_to_string(file).ok()?;
        text.lines().find(|line| line.starts_with("place = ")).map(str::to_owned)
    };
    let of_chapter = place_of(folder.path().join("example/paper.toml")).unwrap();
    let papers = fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap().flatten();
    let taken: Vec<String> = papers.filter_map(|paper| place_of(paper.path().join("paper.toml"))).collect();
    assert!(taken.len() > 4 && !taken.contains(&of_chapter), "{of_chapter}: {taken:?}");
}

#[test]
fn the_chapter_names_every_field_of_a_figures_file() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(sources.join(name)).unwrap();
    let (chapter, code) = (read("../docs/add-a-figure.md"), read("src/data/definition.rs"));
    let fields = code.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "));
    for (field, _) in fields.filter(|(field, _)| !["numbers_of", "numbers"].contains(field)) {
        let field = field.trim_start_matches("r#");
        let is_named = ["`", "[", "."].iter().any(|before| {
            chapter.match_indices(&format!("{before}{field}")).any(|(at, found)| {
                !chapter[at + found.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
            })
        });
        assert!(is_named || chapter.contains(&format!("\n{field} = ")), "docs/add-a-figure.md does not name `{field}`");
    }
}
