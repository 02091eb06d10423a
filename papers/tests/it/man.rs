//! `tidegate-paper.1` lists the options that there are. `TIDEGATE_BLESS=1 cargo test -p tidegate-papers --test it man`
//! writes that part of the page.

use std::path::Path;
use std::{env, fs};

use clap::CommandFactory;
use tidegate_papers::arguments::Arguments;

use crate::manual;

#[test]
fn the_page_lists_the_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tidegate-paper.1");
    let is = fs::read_to_string(&path).unwrap();
    let mut command = Arguments::command();
    command.build();
    let should = manual::with_part(&is, "options", &manual::options(&command, |_| false));
    if env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, should).unwrap();
    } else {
        let remedy = "TIDEGATE_BLESS=1 cargo test -p tidegate-papers --test it man";
        assert!(is == should, "tidegate-paper.1 is out of date: {remedy}");
    }
}
