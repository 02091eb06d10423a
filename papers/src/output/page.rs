//! The page of a paper: every figure with its pictures, every statement with what came of it and why, and the tables.

use std::fmt::Write;

use super::results::{Shown, picture_name};
use super::text;
use crate::data::PaperOf;
use crate::experiment::Experiment;
use crate::report::{Report, Verdict};

const LEGEND: &str = "\
A statement that does not come out is listed as *differs*, with the best explanation there is; nothing is tuned to hide
it. One that holds, but could hardly fail here, or is our reading and no sentence of the paper, is *implied*, and not
counted as reproduced. Statements are judged on the means over all seeds and again on each seed alone: with *2 of 3 seeds*
one seed says something else than the means, and other seeds might, too.";

/// The page. `has_machine`: a page beside it says what is assumed of the machine.
pub(super) fn paper(paper: &PaperOf, shown: &[Shown], has_machine: bool) -> String {
    let machine = if has_machine { " What is assumed of the machine stands in [machine.md](machine.md)." } else { "" };
    let mut text = format!(
        "# {}\n\nMade by `tidegate paper --pages` from the files beside each figure. [All papers](../README.md) on one \
         page.{machine}\n\n{LEGEND}\n",
        paper.heading()
    );
    for Shown { experiment, report } in shown {
        let Experiment { id, title, .. } = experiment;
        match report {
            Some(report) => text.push_str(&section(experiment, report)),
            None => {
                let _ = write!(text, "\n## {id}\n\n**{title}** was not run: `tidegate paper {id}` does.\n");
            }
        }
    }
    text
}

pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn row<'a>(cells: impl IntoIterator<Item = &'a String>) -> String {
    format!("| {} |\n", cells.into_iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | "))
}

/// What repeats a report, with the options that it was made with.
fn command(report: &Report, is_simulated: bool) -> String {
    let Report { id, scale, seeds, seed, noise_percent, .. } = report;
    let form = if scale == "full" { String::new() } else { format!(" --{scale}") };
    let how = match (is_simulated, *noise_percent) {
        (false, _) => String::new(),
        (true, 0.0) => format!(" --no-noise --seeds {seeds} --seed {seed}"),
        (true, percent) => format!(" --noise={percent} --seeds {seeds} --seed {seed}"),
    };
    format!("tidegate paper {id}{form}{how} --out results")
}

pub fn section(experiment: &Experiment, report: &Report) -> String {
    let Report { id, title, section, setup, .. } = report;
    let (is_simulated, stem) = (experiment.is_simulated(), experiment.figure.stem());
    let how = if is_simulated { text::scale(report) } else { "computed, without runs".to_owned() };
    let mut text = format!(
        "\n## {id}\n\n**{title}** ({section}), {how}. {setup}{}\n\n```sh\n{}\n```\n\nEvery number: [{stem}.csv]({stem}.csv).\n",
        text::method(report),
        command(report, is_simulated),
    );
    for figure in &report.figures {
        let _ = write!(text, "\n![{}]({})\n", text::caption(report, figure).0, picture_name(experiment, figure));
    }
    let _ = write!(text, "\n| | statement | paper | here | why |\n|---|---|---|---|---|\n");
    for fact in &report.facts {
        let mut name = fact.verdict.name().to_owned() + &fact.sureness();
        if fact.verdict == Verdict::Differs || fact.is_unsure() {
            name = format!("**{name}**");
        }
        let quote = if fact.quote.is_empty() { String::new() } else { format!(" “{}”", fact.quote) };
        let statement = format!("{}{quote}", fact.statement);
        text.push_str(&row([&name, &statement, &fact.paper, &fact.here, &fact.explanation]));
    }
    for table in &report.tables {
        let _ = write!(text, "\n{}:\n\n{}|{}\n", table.title, row(&table.columns), "---|".repeat(table.columns.len()));
        table.rows.iter().for_each(|cells| text.push_str(&row(cells)));
    }
    text
}
