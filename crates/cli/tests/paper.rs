//! What `tidegate paper --out` leaves in a folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tidegate_cli::experiment::{files, page};
use tidegate_sim::experiment::{Fact, Figure, Report, Series, Table};

/// A folder of this test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    #[track_caller]
    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn figure(name: &str, x: [f64; 2], categories: &[&str]) -> Figure {
    Figure {
        name: name.to_owned(),
        title: format!("Title of {name}"),
        x_axis: "slots".to_owned(),
        y_axis: "overhead (%)".to_owned(),
        series: vec![Series::new("static", [(x[0], 5.0), (x[1], 20.5)]), Series::new("dynamic", [(x[1], 1.0)])],
        categories: categories.iter().map(|&name| name.to_owned()).collect(),
    }
}

fn report() -> Report {
    let mut table = Table::new("t", "A table", &["a", "b"]);
    table.row(["1".to_owned(), "x|y".to_owned()]);
    Report {
        id: "P-fig4".to_owned(),
        title: "A report".to_owned(),
        section: "§5.3, figure 4".to_owned(),
        scale: "quick".to_owned(),
        seed: 7,
        noise: false,
        setup: "Two processes.".to_owned(),
        figures: vec![
            figure("lines", [8.0, 64.0], &[]),
            figure("decades", [1.0, 65536.0], &[]),
            figure("bars", [0.0, 1.0], &["PingPong", "Alltoall"]),
        ],
        tables: vec![table],
        facts: vec![
            Fact::tested("It holds.", true, "1", "1"),
            Fact::tested("It does not.", false, "1", "2").because("A reason."),
            Fact::not_run("Nobody knows.", "3", "No time."),
        ],
    }
}

#[test]
fn every_figure_is_a_picture_of_both_kinds_and_a_list_of_its_numbers() {
    let folder = Folder::new("pictures");
    files::write(&report(), &folder.0).unwrap();
    for name in ["lines", "decades", "bars"] {
        let svg = folder.text(&format!("P-fig4-{name}.svg"));
        for word in ["static", "dynamic", "overhead (%)", &format!("Title of {name} (QUICK)")] {
            assert!(svg.contains(word), "{name}.svg lacks `{word}`");
        }
        let png = fs::read(folder.0.join(format!("P-fig4-{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{name}.png");
    }
    assert_eq!(
        folder.text("P-fig4-lines.csv"),
        "series,slots,overhead (%),least,most\nstatic,8,5,,\nstatic,64,20.5,,\ndynamic,64,1,,\n"
    );
}

#[test]
fn bars_bear_the_names_of_their_categories() {
    let folder = Folder::new("bars");
    files::write(&report(), &folder.0).unwrap();
    let svg = folder.text("P-fig4-bars.svg");
    let height = |word: &str| {
        let text = svg.split("<text").find(|text| text.contains(word)).unwrap_or_else(|| panic!("no `{word}`"));
        let y = text.split("y=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        y.parse::<f64>().unwrap()
    };
    assert!(height("PingPong") < height("Alltoall"), "the first category is at the top");
    assert!(folder.text("P-fig4-bars.csv").contains("static,Alltoall,20.5,,\n"));
}

#[test]
fn the_page_says_what_came_of_every_statement_and_what_was_not_run() {
    let folder = Folder::new("page");
    files::write(&report(), &folder.0).unwrap();
    page::write(&folder.0).unwrap();
    let page = folder.text("README.md");
    for line in [
        "| [P-fig4](#p-fig4): A report | §5.3, figure 4 | quick | 1 | 1 | 1 |",
        "| reproduced | It holds. | 1 | 1 |  |",
        "| **differs** | It does not. | 1 | 2 | A reason. |",
        "| 1 | x\\|y |",
        "| *not run* | Nobody knows. | 3 |  | No time. |",
        "![Title of bars](P-fig4-bars.svg)",
        "tidegate paper P-fig4 --quick --seed 7 --out results",
    ] {
        assert!(page.lines().any(|found| found == line), "no line `{line}` in\n{page}");
    }
    let not_run = page.lines().find(|line| line.starts_with("Not run: P-table1 (")).expect("what was not run");
    assert!(not_run.contains(", P-fig14 (Trace of dynamic), ") && !not_run.contains("P-fig4 "), "{not_run}");
}

#[test]
fn a_run_with_noise_says_so_everywhere() {
    let folder = Folder::new("noise");
    files::write(&Report { noise: true, scale: "full".to_owned(), ..report() }, &folder.0).unwrap();
    page::write(&folder.0).unwrap();
    let page = folder.text("README.md");
    assert!(page.contains("| full, with noise |") && page.contains("full size, with noise."), "{page}");
    assert!(page.contains("tidegate paper P-fig4 --noise --seed 7 --out results"), "{page}");
    assert!(folder.text("P-fig4-lines.svg").contains("full size, with noise"));
}

#[test]
fn results_from_before_there_was_noise_had_none() {
    let folder = Folder::new("before");
    files::write(&report(), &folder.0).unwrap();
    let path = folder.0.join("P-fig4.json");
    fs::write(&path, folder.text("P-fig4.json").replace("  \"noise\": false,\n", "")).unwrap();
    assert!(!folder.text("P-fig4.json").contains("noise"));
    assert_eq!(files::read(&folder.0).unwrap(), [report()]);
}

#[test]
fn reports_that_were_written_are_read_again_as_they_were() {
    let folder = Folder::new("again");
    let mut report = report();
    // Many numbers with all their digits, because a reader of floats that is not exact fails for a few of them only.
    let points = (1..2000).map(|n| (f64::from(n), f64::from(n).sqrt() * 37.7));
    report.figures[0].series.push(Series::new("roots", points));
    files::write(&report, &folder.0).unwrap();
    assert_eq!(files::read(&folder.0).unwrap(), [report]);
    assert_eq!(files::read(&folder.0.join("not there")).unwrap(), []);
}

#[test]
fn what_is_no_report_is_named_with_the_remedy() {
    let folder = Folder::new("damaged");
    files::write(&report(), &folder.0).unwrap();
    fs::write(folder.0.join("P-fig4.json"), "{").unwrap();
    let error = page::write(&folder.0).unwrap_err().to_string();
    assert!(error.contains("P-fig4.json is no report") && error.contains("remove it"), "{error}");
}

#[test]
fn what_was_written_is_said() {
    let folder = Folder::new("said");
    let names = files::write(&report(), &folder.0).unwrap();
    let mut there: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    there.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, there);
    let output =
        Command::new(env!("CARGO_BIN_EXE_tidegate")).args(["paper", "--redraw", "--out"]).arg(&folder.0).output();
    let output = output.unwrap();
    let path = folder.0.display();
    let expected = format!(
        "tidegate: wrote to {path}: {}\ntidegate: {path}/README.md shows all results in this folder\n",
        names.join(", ")
    );
    assert_eq!((String::from_utf8(output.stderr).unwrap(), output.status.code()), (expected, Some(0)));
}
