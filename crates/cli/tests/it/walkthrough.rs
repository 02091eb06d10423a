//! docs/simulator.md says what the program does: its examples can be read, its tables are complete.

use std::path::Path;

use tidegate_sim::run_spec::{File, JobDraft, Sweep};

const TEXT: &str = include_str!("../../../../docs/simulator.md");

/// What stands between ```toml and ```.
fn files() -> Vec<&'static str> {
    TEXT.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_file_in_it_can_be_read() {
    let files = files();
    assert_eq!(files.len(), 7);
    for file in files {
        File::read(file.into(), Path::new("")).unwrap_or_else(|error| panic!("{error} in\n{file}"));
    }
}

#[test]
fn the_first_run_is_a_sweep_of_eight() {
    assert_eq!(Sweep::<JobDraft>::read(files()[0], Path::new("")).unwrap().points.len(), 8);
}

#[test]
fn its_table_of_workloads_has_every_operation_and_form() {
    let rows: Vec<&str> =
        TEXT.split("## Workloads").nth(1).unwrap().lines().filter(|line| line.starts_with("| `")).collect();
    for (operation, forms) in tidegate_sim::run_spec::OPERATIONS {
        let row = rows.iter().find(|row| row.split('|').nth(1).unwrap().contains(&format!("`{operation}`")));
        let row = row.unwrap_or_else(|| panic!("{operation} is missing"));
        for form in *forms {
            assert!(row.contains(&format!("`{form}`")), "{operation} lacks {form}");
        }
    }
}
