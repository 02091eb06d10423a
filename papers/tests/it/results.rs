//! What `tidegate paper --out` leaves in a folder, and `--pages` makes of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn paper(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-paper"));
    command.args(arguments).arg("--out").arg(folder).output().unwrap()
}

/// What was said on standard error.
#[track_caller]
fn said(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// All files below a folder, but for kept runs.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_file() {
            all.insert(name, fs::read_to_string(entry.path()).unwrap());
        } else if name != ".runs" {
            all.extend(files(&entry.path()).into_iter().map(|(below, text)| (format!("{name}/{below}"), text)));
        }
    }
    all
}

#[test]
fn numbers_pictures_and_pages_are_written_and_said_and_made_anew_from_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["P-fig19", "P-table1", "--smallest", "--seeds", "2", "--noise=5"];
    let written = said(paper(folder.path(), &options));
    let names = ["README.md", "prades/README.md", "prades/fig19-fig19.svg", "prades/fig19.csv", "prades/table1.csv"];
    let all = files(folder.path());
    assert_eq!(all.keys().map(String::as_str).collect::<Vec<_>>(), names);
    assert!(written.contains(": prades/fig19.csv, prades/fig19-fig19.svg\n"), "{written}");
    assert!(all["prades/fig19-fig19.svg"].contains("SMALLEST size, 2 seeds, 5 % noise; means; bands: least to most"));
    let page = &all["prades/README.md"];
    for text in [
        "\n## P-fig19\n\n**Credits follow the phases of a program** (§7.3, figure 19), SMALLEST size, 2 seeds, 5 % noise. ",
        "\ntidegate paper P-fig19 --smallest --noise=5 --seeds 2 --seed 1 --out results\n",
        "Processes are interrupted for 50 µs after every ms of work, on average (5 % of the time). Every number is the mean",
        "\n## P-table1\n\n**Thresholds of eq. 1 and of two formulas that do not work** (§5.2, table 1), computed, without runs. ",
        "\ntidegate paper P-table1 --smallest --out results\n",
        "![Figure 19: Credits of rank 0: median, least and most](fig19-fig19.svg)",
        "**P-fig27** was not run: `tidegate paper P-fig27` does.",
        "| reproduced | The thresholds of eq. 1 are those of the table. |",
    ] {
        let text = text.replace("**P-fig27**", "**Mean overhead, Intel MPI Benchmarks**");
        assert!(page.contains(&text), "no `{text}` in\n{page}");
    }
    for name in ["README.md", "prades/README.md", "prades/fig19-fig19.svg"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("prades/fig19-of-before.svg"), "").unwrap();
    assert!(said(paper(folder.path(), &["--pages"])).contains("/README.md shows all results in this folder\n"));
    assert_eq!(files(folder.path()), all, "all is there again, and no picture of before");
}

#[test]
fn what_is_no_file_of_results_is_named_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("prades")).unwrap();
    fs::write(folder.path().join("prades/fig4.csv"), "figure,P-fig4,0,full,1,3,2.5\nclaim,proven\n").unwrap();
    let output = paper(folder.path(), &["--pages"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("prades/fig4.csv: line 2 is none of a figure's results"),
        "{said}"
    );
}
