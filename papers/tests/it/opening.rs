//! The page of results opens with what a referee wants to know, and all of it follows from the results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tidegate_papers::output::opening::opening;
use tidegate_papers::{Experiment, Fact, Figure, Point, Report, Series, Verdict};

const HEADS: [&str; 6] = [
    "## What comes out",
    "## How sure",
    "## What was assumed",
    "## To repeat it",
    "## How long it took",
    "## The experiments",
];

/// Some experiments at the least size, with two seeds, into a folder; returns its page.
fn page(folder: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
    command.args(["P-table1", "P-fig24-26", "--smallest", "--seeds", "2", "--out"]).arg(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(folder.join("README.md")).unwrap()
}

/// The part of a page from one head to the next.
fn section<'a>(page: &'a str, head: &str) -> &'a str {
    let begin = page.find(head).unwrap_or_else(|| panic!("no `{head}` in\n{page}")) + head.len();
    page[begin..].split("\n## ").next().unwrap()
}

#[test]
fn the_page_opens_with_all_that_a_referee_asks_and_only_times_differ_between_machines() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let pages = folders.each_ref().map(|folder| page(folder.path()));
    let places: Vec<usize> = HEADS.iter().map(|head| pages[0].find(head).expect(head)).collect();
    assert!(places.is_sorted() && places[5] < pages[0].find("## P-table1").unwrap(), "{places:?}");
    let timeless = pages.each_ref().map(|page| page.replace(section(page, "## How long it took"), ""));
    assert_eq!(timeless[0], timeless[1]);
    let took = section(&pages[0], "## How long it took");
    assert!(took.contains(" runs, each of which uses one core: ") && !took.contains("Not kept"), "{took}");
    let repeat = section(&pages[0], "## To repeat it");
    let command = "tidegate paper P-fig24-26 P-table1 --smallest --noise=2.5 --seeds 2 --seed 1 --out results\n";
    assert!(repeat.contains("One command") && repeat.contains(command), "{repeat}");
    let sure = section(&pages[0], "## How sure");
    assert!(sure.contains("- smallest, 2 seeds, 2.5 % noise: [P-fig24-26](#p-fig24-26)\n"), "{sure}");
    assert!(sure.contains("one version of the simulator") && sure.contains("| time per operation (µs) | "), "{sure}");
    let page = &pages[0];
    assert!(section(page, "## What comes out").contains("It was not run: `tidegate paper P-fig27` does."), "{page}");
    let statements = page.matches("| reproduced | ").count() + page.matches("| **differs** | ").count();
    assert!(statements > 2, "{page}");

    // Without the files of times everything but the times is still there.
    let folder = folders[0].path();
    fs::remove_file(folder.join("P-fig24-26-times.json")).unwrap();
    let mut redraw = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
    assert!(redraw.args(["--redraw", "--out"]).arg(folder).output().unwrap().status.success());
    let again = fs::read_to_string(folder.join("README.md")).unwrap();
    assert_eq!(section(&again, "## How long it took").trim(), "Not kept: the times of P-fig24-26.");
    assert_eq!(again.replace(section(&again, "## How long it took"), ""), timeless[0]);
}

fn report(id: &str, facts: Vec<Fact>, figures: Vec<Figure>) -> Report {
    let experiment = Experiment::find(id).unwrap();
    Report {
        id: id.to_owned(),
        title: experiment.title.to_owned(),
        section: experiment.section.to_owned(),
        scale: "full".to_owned(),
        seed: 1,
        seeds: 3,
        noise_percent: 2.5,
        code: "123".to_owned(),
        older_runs: BTreeMap::new(),
        setup: "Some processes.".to_owned(),
        figures,
        tables: Vec::new(),
        facts,
        runs: Vec::new(),
    }
}

/// A figure of mean overheads, by slots, each with an interval of ± `half`.
fn overheads(of_static: [f64; 3], of_dynamic: [f64; 3], half: f64) -> Figure {
    let series = |name: &str, values: [f64; 3]| {
        let points = [8.0, 16.0, 64.0].into_iter().zip(values);
        Series::of(name, points.map(|(x, y)| Point { x, y, range: Some((y - half, y + half)), each: vec![y, y] }))
    };
    Figure {
        name: "fig27".to_owned(),
        title: "Means".to_owned(),
        y_axis: "overhead (%)".to_owned(),
        series: vec![series("static", of_static), series("dynamic", of_dynamic)],
        ..Figure::default()
    }
}

#[test]
fn the_headline_follows_the_results() {
    let of = |figure| opening(&[report("P-fig27", Vec::new(), vec![figure])], &Default::default());
    let as_the_paper = of(overheads([20.0, 10.0, 1.9], [5.0, 2.7, 1.2], 0.5));
    assert!(
        as_the_paper.contains("| `static` | 64 | 64 | 8 slots: 20 ± 0.5 %, 16 slots: 10 ± 0.5 %, "),
        "{as_the_paper}"
    );
    assert!(as_the_paper.contains("| `dynamic` | 16 | 16 | "), "{as_the_paper}");
    let otherwise = of(overheads([20.0, 10.0, 4.0], [2.5, 2.0, 1.2], 0.5));
    assert!(otherwise.contains("| `static` | 64 | more than 64 | "), "{otherwise}");
    assert!(otherwise.contains("| `dynamic` | 16 | 8 | "), "{otherwise}");
}

#[test]
fn statements_are_grouped_by_outcome_and_the_widest_interval_is_named() {
    let facts = vec![
        Fact::tested("It holds.", true, "1", "1"),
        Fact::tested("It does not.", false, "1", "2").because("A reason."),
        Fact::tested("It cannot fail.", true, "1", "1").implied("By another."),
        Fact::not_run("Nobody knows.", "3", "No time."),
    ];
    let mut narrow = overheads([1.0; 3], [1.0; 3], 0.25);
    narrow.series[1].points[2].range = Some((0.0, 9.0));
    let reports = [report("P-fig4", facts, vec![narrow]), report("P-fig14", Vec::new(), Vec::new())];
    let text = opening(&reports, &Default::default());
    for line in [
        "Of 3 statements of the paper: 1 reproduced, 1 differing, 1 not run. Beside them 1 are implied: ",
        "| *implied* |  | [P-fig4](#p-fig4) | 1 statement: Overhead of static in multi-pingpong | | |",
        "| **differs** |  | [P-fig4](#p-fig4) | It does not. | 1 | 2 |\n\
         | *not run* |  | [P-fig4](#p-fig4) | Nobody knows. | 3 |  |\n",
        "| reproduced |  | [P-fig4](#p-fig4) | 1 statement: Overhead of static in multi-pingpong | | |",
        "| overhead (%) | 6 | ± 0.25 | ± 4.5 | [P-fig4](#p-fig4): Means, dynamic, at 64, where the mean is 1 |",
        "tidegate paper P-fig4 P-fig14 --noise=2.5 --seeds 3 --seed 1 --out results\n",
        "Not kept: the times of P-fig4.",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn an_outcome_that_depends_on_the_seed_is_seen_at_once() {
    use Verdict::{Differs, Reproduced};
    let fact = |statement: &str, by_seed: [Verdict; 3]| Fact {
        by_seed: by_seed.into(),
        ..Fact::tested(statement, true, "1", "1")
    };
    let facts = vec![fact("Sure.", [Reproduced; 3]), fact("Unsure.", [Reproduced, Differs, Reproduced])];
    let text = opening(&[report("P-fig4", facts, Vec::new())], &Default::default());
    assert!(text.contains("Of the 2 that were judged with several seeds 1 have another outcome"), "{text}");
    assert!(text.contains("| reproduced | **2 of 3 seeds** | [P-fig4](#p-fig4) | Unsure. | 1 | 1 |"), "{text}");
    assert!(text.contains("| reproduced | 3 of 3 seeds | [P-fig4](#p-fig4) | 1 statement: "), "{text}");
}

#[test]
fn results_of_several_versions_are_confessed() {
    let report = || report("P-fig4", Vec::new(), Vec::new());
    let of = |reports: &[Report]| opening(reports, &Default::default());
    assert!(of(&[report()]).contains("- All results are of one version of the simulator."));
    let two = of(&[report(), Report { code: "456".to_owned(), ..report() }]);
    assert!(two.contains("- 2 versions of the simulator wrote these reports") && !two.contains("All results"), "{two}");
    let older = of(&[Report { older_runs: [("789".to_owned(), 3)].into(), ..report() }]);
    assert!(
        older.contains(
            "- With runs of other versions than the one that wrote the report, as each section says: [P-fig4]"
        )
    );
    assert!(older.contains("It does all runs anew."), "{older}");
    assert!(!older.contains("All results"), "{older}");
}

/// The page says of what the machine is made as the code has it.
#[test]
fn assumptions_have_the_values_of_the_code() {
    let text = opening(&[], &Default::default());
    let cost = tidegate_sim::Cost::extoll();
    for value in [cost.send_packet, cost.retrieve_packet, cost.retrieve_far_packet] {
        assert!(text.contains(&value.to_string()), "{value} is missing: {text}");
    }
    assert!(text.contains("50.04 µs (P §5.3)") && text.contains("278515.08 µs"), "{text}");
}
