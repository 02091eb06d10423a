//! The man pages say what the code does: the parts of `tidegate.1` that list options and counters are made from their
//! definitions, and `fi_tidegate.7` names every parameter with its default.
//!
//! `TIDEGATE_BLESS=1 cargo test -p tidegate-cli --test it man` writes those parts anew.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use crate::manual::{self, roff, with_part};
use clap::{Arg, CommandFactory};
use tidegate_cli::arguments::Cli;
use tidegate_cli::report::table::aggregate_name;
use tidegate_cli::report::units;
use tidegate_message::Counter;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/man").join(name)
}

/// The options of a command; of `env`, `doctor` and `record` only those that they do not share with
/// `run`.
fn options(command: &str) -> String {
    let mut cli = Cli::command();
    cli.build();
    let is_shared = |argument: &Arg| match command {
        "env" | "doctor" => argument.get_help_heading().is_some(),
        "record" => argument.get_help_heading() != Some("Trace"),
        _ => false,
    };
    manual::options(cli.find_subcommand(command).unwrap(), is_shared)
}

/// One `.TP` item per counter.
fn counters() -> String {
    let mut text = String::new();
    for counter in Counter::ALL {
        let (unit, over) = (units::name(counter.unit()), aggregate_name(*counter));
        let _ = writeln!(text, ".TP\n\\fB{}\\fR ({unit}, {over})\n{}", counter.name(), roff(counter.help()));
    }
    text
}

#[test]
fn the_page_of_the_command_lists_its_options_and_counters() {
    let path = page("tidegate.1");
    let is = fs::read_to_string(&path).unwrap();
    let mut should = is.clone();
    let commands =
        ["run", "record", "env", "doctor", "top", "export", "sim", "plan", "calibrate", "report", "diff", "counters"];
    for command in commands {
        should = with_part(&should, command, &options(command));
    }
    should = with_part(&should, "table", &counters());
    if env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, &should).unwrap();
    } else {
        assert!(is == should, "tidegate.1 is out of date: TIDEGATE_BLESS=1 cargo test -p tidegate-cli --test it man");
    }
}

#[test]
fn the_page_of_the_command_knows_every_command_and_schema() {
    let text = fs::read_to_string(page("tidegate.1")).unwrap();
    for command in Cli::command().get_subcommands() {
        assert!(text.contains(&format!(".SS tidegate {}", command.get_name())), "{}", command.get_name());
    }
    use tidegate_cli::command::calibrate::CALIBRATE_SCHEMA;
    use tidegate_cli::command::record::RECORD_SCHEMA;
    use tidegate_cli::command::report::REPORT_SCHEMA;
    use tidegate_cli::command::sim::{FABRIC_SCHEMA, SIM_SCHEMA};
    use tidegate_cli::doctor::verdict::DOCTOR_SCHEMA;
    use tidegate_cli::plan::PLAN_SCHEMA;
    use tidegate_cli::recording::RECORDING_SCHEMA;
    use tidegate_cli::report::json::{COUNTERS_SCHEMA, ENV_SCHEMA, PAGES_SCHEMA, RUN_SCHEMA};
    use tidegate_cli::top::json::TOP_SCHEMA;
    let of_commands = [RUN_SCHEMA, RECORD_SCHEMA, ENV_SCHEMA, COUNTERS_SCHEMA, PAGES_SCHEMA, TOP_SCHEMA, REPORT_SCHEMA];
    let others = [DOCTOR_SCHEMA, RECORDING_SCHEMA, SIM_SCHEMA, FABRIC_SCHEMA, PLAN_SCHEMA, CALIBRATE_SCHEMA];
    for schema in of_commands.into_iter().chain(others) {
        assert!(text.contains(&roff(schema)), "{schema}");
    }
}

#[test]
fn the_page_of_the_provider_names_every_parameter_with_its_default() {
    let page = fs::read_to_string(page("fi_tidegate.7")).unwrap();
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ofi/src/parameter/rows.rs");
    let source = fs::read_to_string(source).unwrap();
    // A long text goes on in the next line, behind a backslash.
    let source: String = source.split("\\\n").map(|line| format!("{} ", line.trim())).collect();
    let strings = |field: &str| -> Vec<String> {
        let values = source.lines().filter_map(|line| line.trim().strip_prefix(field)?.trim().strip_prefix('"'));
        values.filter_map(|rest| rest.split_once("\",").map(|(value, _)| value.to_owned())).collect()
    };
    let (names, defaults) = (strings("name:"), strings("default:"));
    assert!(names.len() >= 9 && names.len() == defaults.len(), "the provider's table is not where it was: {names:?}");
    for (name, default) in names.iter().zip(&defaults) {
        let name = format!("\\fBFI_TIDEGATE_{}\\fR", name.to_uppercase());
        let (_, rest) = page.split_once(&format!(".TP\n{name}")).unwrap_or_else(|| panic!("{name} is missing"));
        let item = rest.split(".TP\n").next().unwrap();
        // Long defaults are sentences, which the page may put in other words.
        if !default.contains(' ') {
            assert!(item.contains(&format!("Default: \\fB{default}\\fR")), "{name}: {default}");
        }
        assert!(item.contains("Default: "), "{name}");
    }
}
