//! `README.md` of a folder of reports: the opening (`opening.rs`), then every fact with what came out, pictures,
//! command and seed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;

use tidegate_cli::files::write_whole;

use super::times::{self, Times};
use super::{files, opening, text};
use crate::experiment::Experiment;
use crate::report::{Fact, Report, Verdict};

/// Writes the page from the reports that the folder holds, whenever they were made.
///
/// # Errors
/// If a report cannot be read or the page not written.
pub fn write(folder: &Path) -> io::Result<()> {
    let reports = files::read(folder)?;
    write_whole(&folder.join("README.md"), &page(&reports, &times::read(folder)?))
}

fn counts(report: &Report) -> [usize; 4] {
    let count = |verdict| report.facts.iter().filter(|fact| fact.verdict == verdict).count();
    [Verdict::Reproduced, Verdict::Differs, Verdict::Implied, Verdict::NotRun].map(count)
}

fn command(report: &Report) -> String {
    format!("tidegate paper {}{} --out results", report.id, opening::options(report))
}

/// The letters of the papers of some reports, each once.
fn papers(reports: &[Report]) -> Vec<&str> {
    let mut papers: Vec<&str> = Vec::new();
    for report in reports {
        if !papers.contains(&report.paper()) {
            papers.push(report.paper());
        }
    }
    papers
}

/// Which paper a letter stands for.
fn who(paper: &str) -> String {
    if let Some(source) = Experiment::source_of(paper).filter(|_| !paper.is_empty()) {
        return format!("{paper} is {source}. ");
    }
    let known = match paper {
        "L" => "L is Liu, Panda: Implementing Efficient and Scalable Flow Control Schemes in MPI over InfiniBand. ",
        "A" => "A is Sur, Koop, Panda: the paper on a receive window that adapts, over InfiniBand's shared queues. ",
        "R" => {
            "R is Schneider, Dinan, Flajslik, Underwood, Hoefler: Fast Networks and Slow Memories, on receivers that take what \
             comes more slowly than their network brings it. "
        }
        "B" => {
            "B is Brewer, Gauthier, Fox, Schuett: Software Techniques for Improving MPP Bulk-Transfer Performance, on machines \
             whose nodes receive more dearly than they send. "
        }
        _ => "",
    };
    known.to_owned()
}

fn heading(papers: &[&str]) -> &'static str {
    match papers {
        ["P"] => "The main paper: what comes out, and its figures one by one",
        ["L"] => "L: flow control in MPI over InfiniBand: what comes out, figure by figure",
        ["A"] => "A: receive windows that adapt: what comes out, figure by figure",
        ["R"] => "R: fast networks and slow memories: what comes out, figure by figure",
        ["B"] => "B: bulk transfers without many senders at one receiver: what comes out, figure by figure",
        [""] => "Seven schemes compared",
        _ => "The papers: what comes out, and their figures one by one",
    }
}

fn page(reports: &[Report], times: &BTreeMap<String, Times>) -> String {
    let papers = papers(reports);
    let who: String = papers.iter().map(|paper| who(paper)).collect();
    let mut text = format!(
        "# {}\n\nWritten by `tidegate paper --out FOLDER`; the JSON and CSV files beside this page hold every number. {who}",
        heading(&papers)
    );
    let _ = write!(
        text,
        "A statement{} that does not come out here is listed as `differs`, with the best explanation; nothing is \
         tuned to hide it. One that holds, but could hardly fail here, or is our reading and no sentence of the paper, is \
         `implied`, with the reason, and not counted as reproduced. Where there are several seeds, numbers are means over them, statements are judged on the \
         means and again on each seed alone (`2 of 3 seeds`: one seed alone says something else than the means, so that other \
         seeds might too), and ranges are the 95 % confidence interval of the mean (Student's t) if nothing else is said; \
         overheads are those of each run beside the reference with the same seed, then averaged.\n\n",
        opening::whose(reports)
    );
    text.push_str(&opening::opening(reports, times));
    text.push_str(
        "## The experiments\n\n\
         | experiment | where | size | reproduced | differs | implied | not run |\n|---|---|---|---|---|---|---|\n",
    );
    let mut total = [0; 4];
    for report in reports {
        let [reproduced, differs, implied, not_run] = counts(report);
        total.iter_mut().zip(counts(report)).for_each(|(sum, count)| *sum += count);
        let (id, title, section) = (&report.id, &report.title, &report.section);
        let anchor = anchor(report);
        let _ = writeln!(
            text,
            "| [{id}](#{anchor}): {title} | {section} | {}{} | {reproduced} | {differs} | {implied} | {not_run} |",
            report.scale,
            text::seeds_and_noise(report)
        );
    }
    let _ = writeln!(text, "| all | | | {} | {} | {} | {} |", total[0], total[1], total[2], total[3]);
    let of_these = Experiment::all().iter().filter(|experiment| papers.contains(&experiment.paper()));
    let missing = of_these.filter(|experiment| reports.iter().all(|report| report.id != experiment.id));
    let missing: Vec<_> = missing.map(|experiment| format!("{} ({})", experiment.id, experiment.title)).collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "\nNot run: {}.", missing.join(", "));
    }
    for report in reports {
        section(&mut text, report);
    }
    text
}

/// The name that Markdown gives to the heading of a report.
pub(super) fn anchor(report: &Report) -> String {
    report.id.to_lowercase()
}

/// A text in a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// How sure the outcome of a statement is, set off where a seed has another one.
pub(super) fn sureness(fact: &Fact) -> String {
    let sureness = fact.sureness().unwrap_or_default();
    if fact.is_unsure() { format!("**{sureness}**") } else { sureness }
}

fn section(text: &mut String, report: &Report) {
    let _ =
        write!(text, "\n## {}\n\n**{}** ({}), {}.\n\n", report.id, report.title, report.source(), text::scale(report));
    let setup = format!("{} {}", report.setup, text::method(report));
    let _ = write!(text, "{}\n\n```sh\n{}\n```\n\n", setup.trim_end(), command(report));
    if let Some(older) = text::older_runs(report) {
        let _ = write!(text, "{older}\n\n");
    }
    let _ = writeln!(text, "| | how sure | statement | paper | here | why |\n|---|---|---|---|---|---|");
    for fact in &report.facts {
        let verdict = match fact.verdict {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "**differs**",
            Verdict::Implied => "*implied*",
            Verdict::NotRun => "*not run*",
        };
        let cells = [&fact.statement, &fact.paper, &fact.here, &fact.explanation].map(|text| cell(text));
        let _ = writeln!(text, "| {verdict} | {} | {} |", sureness(fact), cells.join(" | "));
    }
    for table in &report.tables {
        let _ = write!(
            text,
            "\n{}:\n\n| {} |\n|{}\n",
            table.title,
            table.columns.join(" | "),
            "---|".repeat(table.columns.len())
        );
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    for figure in &report.figures {
        let _ = write!(text, "\n![{}]({})\n", files::title(figure), files::picture_name(report, figure, "svg"));
    }
}
