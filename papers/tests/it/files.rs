//! What `tidegate paper --out` leaves in a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tidegate_papers::output::{files, page};
use tidegate_papers::{Fact, Figure, Point, Report, Series, Table};

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
        ..Figure::default()
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
        seeds: 1,
        noise_percent: 0.0,
        code: "123".to_owned(),
        older_runs: BTreeMap::new(),
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
            Fact::tested("It cannot fail.", true, "1", "1").implied("By another."),
            Fact::not_run("Nobody knows.", "3", "No time."),
        ],
        runs: Vec::new(),
    }
}

#[test]
fn every_figure_is_a_picture_of_both_kinds_and_a_list_of_its_numbers() {
    let folder = Folder::new("pictures");
    files::write(&report(), &folder.0).unwrap();
    for name in ["lines", "decades", "bars"] {
        let svg = folder.text(&format!("P-fig4-{name}.svg"));
        for word in ["static", "dynamic", "overhead (%)", &format!("Title of {name}"), "QUICK"] {
            assert!(svg.contains(word), "{name}.svg lacks `{word}`");
        }
        let png = fs::read(folder.0.join(format!("P-fig4-{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{name}.png");
    }
    assert_eq!(
        folder.text("P-fig4-lines.csv"),
        "panel,series,slots,overhead (%),least,most,each\n\
         ,static,8,5,,,\n,static,64,20.5,,,\n,dynamic,64,1,,,\n"
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
    assert!(folder.text("P-fig4-bars.csv").contains(",static,Alltoall,20.5,,,\n"));
}

#[test]
fn the_page_says_what_came_of_every_statement_and_what_was_not_run() {
    let folder = Folder::new("page");
    files::write(&report(), &folder.0).unwrap();
    page::write(&folder.0).unwrap();
    let page = folder.text("README.md");
    for line in [
        "| [P-fig4](#p-fig4): A report | §5.3, figure 4 | quick | 1 | 1 | 1 | 1 |",
        "| reproduced |  | It holds. | 1 | 1 |  |",
        "| **differs** |  | It does not. | 1 | 2 | A reason. |",
        "| *implied* |  | It cannot fail. | 1 | 1 | By another. |",
        "| 1 | x\\|y |",
        "| *not run* |  | Nobody knows. | 3 |  | No time. |",
        "![Title of bars](P-fig4-bars.svg)",
        "tidegate paper P-fig4 --quick --no-noise --seeds 1 --seed 7 --out results",
    ] {
        assert!(page.lines().any(|found| found == line), "no line `{line}` in\n{page}");
    }
    let not_run = page.lines().find(|line| line.starts_with("Not run: P-table1 (")).expect("what was not run");
    assert!(not_run.contains(", P-fig14 (Trace of dynamic), ") && !not_run.contains("P-fig4 "), "{not_run}");
}

#[test]
fn a_run_with_noise_says_so_everywhere() {
    let folder = Folder::new("noise");
    let noisy = Report { noise_percent: 5.0, seeds: 3, scale: "full".to_owned(), ..report() };
    files::write(&noisy, &folder.0).unwrap();
    page::write(&folder.0).unwrap();
    let page = folder.text("README.md");
    assert!(page.contains("| full, 3 seeds, 5 % noise |") && page.contains("full size, 3 seeds, 5 % noise."), "{page}");
    assert!(page.contains("tidegate paper P-fig4 --noise=5 --seeds 3 --seed 7 --out results"), "{page}");
    assert!(page.contains("Two processes. Processes are interrupted for 50 µs after every ms of work"), "{page}");
    assert!(page.contains("Every number is the mean over 3 seeds"), "{page}");
    assert!(folder.text("P-fig4-lines.svg").contains("full size, 3 seeds, 5 % noise; means"));
}

#[test]
fn results_of_older_versions_had_one_seed_and_the_usual_noise_or_none() {
    let folder = Folder::new("before");
    for (before, percent) in [("", 0.0), ("  \"noise\": false,\n", 0.0), ("  \"noise\": true,\n", 2.5)] {
        files::write(&report(), &folder.0).unwrap();
        let text = folder.text("P-fig4.json").replace("  \"noise_percent\": 0.0,\n", before);
        let text = text.replace("  \"seeds\": 1,\n", "");
        assert!(!text.contains("seeds") && !text.contains("percent"), "{text}");
        fs::write(folder.0.join("P-fig4.json"), text).unwrap();
        assert_eq!(files::read(&folder.0).unwrap(), [Report { noise_percent: percent, ..report() }]);
    }
}

#[test]
fn captions_begin_with_the_number_of_the_papers_figure() {
    let titled =
        |name: &str| files::title(&Figure { name: name.to_owned(), title: "T".to_owned(), ..Figure::default() });
    assert_eq!(titled("fig4a"), "Figure 4a: T");
    assert_eq!(titled("fig10-delayed"), "Figure 10: T");
    assert_eq!(titled("table3"), "Table 3: T");
    assert_eq!(titled("figment"), "T");
}

#[test]
fn panels_stand_beside_each_other_and_ranges_and_the_papers_points_are_drawn() {
    let folder = Folder::new("panels");
    let point = |x: f64, y: f64| Point { x, y, range: Some((y - 1.0, y + 1.0)), each: vec![y - 0.5, y + 0.5] };
    let of = |name: &str, panel: &str| Series::of(name, [point(8.0, 3.0), point(64.0, 1.0)]).in_panel(panel);
    let paper = Series::paper("paper", "static", [(8.0, 2.5)]).in_panel("left side");
    let series = vec![of("static", "left side"), of("static", "right side"), paper];
    let divided = Figure { series, ..figure("fig18", [8.0, 64.0], &[]) };
    files::write(&Report { seeds: 2, figures: vec![divided], ..report() }, &folder.0).unwrap();
    let svg = folder.text("P-fig4-fig18.svg");
    let place = |word: &str| {
        let text = svg.split("<text").find(|text| text.contains(word)).unwrap_or_else(|| panic!("no `{word}`"));
        let number = |name: &str| text.split(name).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        (number(" x=\"").parse::<f64>().unwrap(), number(" y=\"").parse::<f64>().unwrap())
    };
    let (left, right) = (place("left side"), place("right side"));
    assert!(left.0 < right.0 && left.1 == right.1, "{left:?} {right:?}");
    assert!(svg.contains("95 % confidence interval of the mean"), "the caption says what the bands are");
    assert_eq!(svg.matches("static").count(), 1, "one name for both panels");
    let bands = svg.matches("<polygon opacity=\"0.16\"").count();
    assert_eq!(bands, 2, "a band in each panel");
    let csv = folder.text("P-fig4-fig18.csv");
    assert!(csv.contains("right side,static,8,3,2,4,2.5 3.5\n"), "{csv}");
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
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate-paper")).args(["--redraw", "--out"]).arg(&folder.0).output();
    let output = output.unwrap();
    let path = folder.0.display();
    let expected = format!(
        "tidegate: wrote to {path}: {}\ntidegate: {path}/README.md shows all results in this folder\n",
        names.join(", ")
    );
    let said = String::from_utf8(output.stderr).unwrap();
    let (first, others) = said.split_once('\n').unwrap();
    assert!(
        first.starts_with("tidegate: P-fig4 keeps its statements, which are not judged anew: the run of "),
        "{first}"
    );
    assert_eq!((others, output.status.code()), (&*expected, Some(0)));
}
