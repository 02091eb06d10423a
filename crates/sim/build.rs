//! Hashes the code that decides what a simulated run gives, so that runs kept by other code are not taken for this
//! code's (`src/experiment/version.rs` says which code that is, and why).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[path = "src/experiment/hash.rs"]
mod hash;

/// The only files of the folder of experiments that decide what a run gives.
const OF_EXPERIMENTS: [&str; 8] = [
    "case.rs",
    "bulk_run.rs",
    "exchange_run.rs",
    "fabric.rs",
    "machine.rs",
    "operation.rs",
    "program.rs",
    "measurement.rs",
];

fn main() -> io::Result<()> {
    let crates = ["../bulk/src", "../flow/src", "../message/src", "src"];
    let mut files = Vec::new();
    for folder in crates {
        println!("cargo:rerun-if-changed={folder}");
        find(Path::new(folder), &mut files)?;
    }
    files.sort();
    let mut hash = hash::Hash::new();
    for file in files.iter().filter(|file| decides(file)) {
        hash.add(file.to_string_lossy().as_bytes());
        // Comments decide nothing, and are edited often.
        for line in fs::read_to_string(file)?.lines().map(str::trim) {
            if !line.is_empty() && !line.starts_with("//") {
                hash.add(line.as_bytes());
                hash.add(b"\n");
            }
        }
    }
    println!("cargo:rustc-env=TIDEGATE_SIM_CODE={}", hash.digits());
    Ok(())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn decides(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_experiment = file.parent().is_some_and(|folder| folder.ends_with("experiment"));
    let is_test = matches!(name, "tests.rs" | "loom_tests.rs");
    !is_test && (!is_experiment || OF_EXPERIMENTS.contains(&name))
}
