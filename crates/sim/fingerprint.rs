//! The fingerprint of source code that decides what a simulated run gives, so that runs kept by other code are not
//! taken for this code's. The build scripts of this crate and of `papers/` use this file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[path = "src/hash.rs"]
mod hash;

/// Files of `crates/sim/src` that judge and keep what runs gave, and decide none.
const JUDGES: [&str; 3] = ["estimate.rs", "hash.rs", "kept.rs"];

/// Hashes the files below `folders` that decide runs, and has cargo run the build script again when one changes.
pub fn of(folders: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    for folder in folders {
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
    Ok(hash.digits())
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
    !matches!(name, "tests.rs" | "loom_tests.rs") && !JUDGES.contains(&name)
}
