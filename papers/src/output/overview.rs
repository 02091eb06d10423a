//! The page of all papers: what comes out in numbers, a row for each figure, why statements differ, and what the
//! papers' texts get wrong.

use std::fmt::Write;

use super::page::cell;
use super::results::{Paper, Shown, picture_name};
use crate::data::{Cause, PaperOf};
use crate::experiment::Experiment;
use crate::report::{Fact, Verdict};

/// The page; `mistakes` is a section that follows.
pub(super) fn page(papers: &[Paper], mistakes: &str) -> String {
    let mut text = HEAD.to_owned();
    for (paper, shown) in papers {
        for (kind, is_computed) in [("simulated", false), ("computed or traced", true)] {
            text.push_str(&counts(paper, kind, &of_kind(shown, is_computed)));
        }
    }
    for (paper, shown) in papers {
        let _ = write!(text, "\n## {}\n\n{COLUMNS}\n", paper.heading());
        shown.iter().for_each(|shown| text.push_str(&line(paper, shown)));
    }
    text.push_str(CAUSES);
    for (paper, shown) in papers {
        paper.causes.iter().for_each(|cause| text.push_str(&cause_line(paper, cause, shown)));
    }
    if !mistakes.is_empty() {
        let _ = write!(text, "\n{mistakes}");
    }
    text
}

const HEAD: &str = "\
# The papers: what comes out

Five papers on flow control, run in a simulator: what they say, and what comes out here. Made by `tidegate paper --pages`
from the files beside each figure; a figure's name leads to all of its statements, numbers and pictures.

P, L, A, R and B are the papers whose titles open the sections below; *ours* are comparisons that no paper makes. What
slots, credits and the eight schemes are is told in the book's [chapter on schemes](../docs/schemes.md).

A quoted *sentence* of a paper may make several statements, of which each is tested: it *comes out* if all of them do, *in
part* if some do. *Implied* is what holds, but could hardly fail here; it does not count as coming out. The last column
counts all statements, also those that are our reading of a paper and quote no sentence. What is computed from rules or
traced step by step needs no simulation, and is counted apart.

| | | sentences | come out | in part | differ | implied | not run | statements in all |
|---|---|---|---|---|---|---|---|---|
";

const COLUMNS: &str = "| | | figure | the paper says | here | why not |\n|---|---|---|---|---|---|";

const CAUSES: &str = "
## Why statements differ

Each statement that differs has an explanation on its figure's page. Here are the causes behind these explanations, each
with the experiment that decides it.

| | cause | statements that differ | what decides it | tested |
|---|---|---|---|---|
";

impl Shown {
    fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.report.iter().flat_map(|report| &report.facts)
    }

    fn link(&self) -> String {
        let Experiment { id, paper, .. } = self.experiment;
        format!("[{id}]({}/README.md#{})", paper.folder, id.to_lowercase())
    }

    /// The explanation of a statement, as causes name it (`P-fig4: Short ways`), and what is behind it.
    fn cause(&self, fact: &Fact) -> (String, Option<&Cause>) {
        let Experiment { id, paper, figure, .. } = self.experiment;
        let is_reduced = self.report.as_ref().is_some_and(|report| report.scale != "full");
        let heading = figure.claim(&fact.statement).map_or("", |claim| claim.heading(fact.verdict, is_reduced).0);
        let heading = format!("{id}: {heading}");
        let cause = paper.causes.iter().find(|cause| cause.explains.contains(&heading));
        (heading, cause)
    }
}

/// The statements that are computed or traced, or those of simulated runs.
fn of_kind(shown: &[Shown], is_computed: bool) -> Vec<&Fact> {
    let of = |shown: &'_ Shown, fact: &Fact| {
        let figure = shown.experiment.figure;
        // One that compares seeds says how many it needs.
        let is_without_runs = figure.claim(&fact.statement).is_some_and(|claim| claim.computed && claim.seeds == 0);
        (is_without_runs || !figure.is_simulated()) == is_computed
    };
    shown.iter().flat_map(|shown| shown.facts().filter(|fact| of(shown, fact)).collect::<Vec<_>>()).collect()
}

/// The statements of each quoted sentence.
fn sentences<'a>(facts: &[&'a Fact]) -> Vec<Vec<&'a Fact>> {
    let mut sentences: Vec<Vec<&Fact>> = Vec::new();
    for fact in facts.iter().filter(|fact| !fact.quote.is_empty()) {
        match sentences.iter_mut().find(|sentence| sentence[0].quote == fact.quote) {
            Some(sentence) => sentence.push(fact),
            None => sentences.push(vec![fact]),
        }
    }
    sentences
}

fn outcomes(facts: &[&Fact]) -> [usize; 4] {
    Verdict::ALL.map(|verdict| facts.iter().filter(|fact| fact.verdict == verdict).count())
}

/// What becomes of statements that belong together: its place among `come out, in part, differ, implied, not run`.
fn together(facts: &[&Fact]) -> usize {
    match outcomes(facts) {
        [0, 0, 0, _] => 4,
        [0, 0, _, _] => 3,
        [_, 0, _, 0] => 0,
        [0, _, _, _] => 2,
        _ => 1,
    }
}

/// A row of numbers; nothing for a paper without such statements.
fn counts(paper: &PaperOf, kind: &str, facts: &[&Fact]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let (mut counts, sentences) = ([0; 5], sentences(facts));
    sentences.iter().for_each(|facts| counts[together(facts)] += 1);
    let each = outcomes(facts).into_iter().zip(["reproduced", "differ", "implied", "not run"]);
    let each: Vec<String> =
        each.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let (counts, name) = (counts.map(|count| count.to_string()).join(" | "), paper.short());
    format!("| {name} | {kind} | {} | {counts} | {}: {} |\n", sentences.len(), facts.len(), each.join(", "))
}

/// A figure in one row: of the first statement that differs, or the first of all.
fn line(paper: &PaperOf, shown: &Shown) -> String {
    let facts: Vec<&Fact> = shown.facts().collect();
    let mark = ["✓ reproduced", "◐ in part", "✗ differs", "✓ implied", "– not run"][together(&facts)];
    let picture = shown.report.as_ref().and_then(|report| report.figures.first()).map_or(String::new(), |figure| {
        let name = format!("{}/{}", paper.folder, picture_name(shown.experiment, figure));
        format!("<a href=\"{name}\"><img src=\"{name}\" width=\"160\" alt=\"{}\"></a>", shown.experiment.id)
    });
    let differing = facts.iter().find(|fact| fact.verdict == Verdict::Differs);
    let (said, here) = differing.or(facts.first()).map_or_else(Default::default, |fact| {
        let of_ours = format!("*Our reading:* {}", fact.statement);
        let said = if fact.quote.is_empty() { of_ours } else { format!("“{}”", fact.quote) };
        // What all statements of the sentence found, such as the slots of both schemes.
        let alike = facts.iter().filter(|other| !fact.quote.is_empty() && other.quote == fact.quote);
        let all: Vec<&str> = alike.map(|other| other.here.as_str()).filter(|here| !here.is_empty()).collect();
        (said, shortened(&if all.is_empty() { fact.here.clone() } else { all.join("; ") }))
    });
    let why = differing.map_or(String::new(), |fact| {
        let (heading, cause) = shown.cause(fact);
        cause.map_or(heading, |cause| cause.name.clone())
    });
    let (said, here, why) = (cell(&said), cell(&here), cell(&why));
    format!("| {mark} | {picture} | {} {} | {said} | {here} | {why} |\n", shown.link(), shown.experiment.title)
}

fn shortened(text: &str) -> String {
    const SHORT: usize = 80;
    if text.chars().count() <= SHORT {
        return text.to_owned();
    }
    let begin: String = text.chars().take(SHORT).collect();
    let end = begin.rfind([';', ',', ' ']).unwrap_or(begin.len());
    format!("{} …", begin[..end].trim_end_matches([';', ',', ' ']))
}

/// A cause in one row, with the figures whose statements differ by it, and how many of each.
fn cause_line(paper: &PaperOf, cause: &Cause, shown: &[Shown]) -> String {
    let mut figures = Vec::new();
    for each in shown {
        let differing = each.facts().filter(|fact| fact.verdict == Verdict::Differs);
        let count = differing.filter(|fact| each.cause(fact).1.is_some_and(|of| of.name == cause.name)).count();
        match count {
            0 => {}
            1 => figures.push(each.link()),
            _ => figures.push(format!("{} ({count})", each.link())),
        }
    }
    let tested = if cause.tested.is_empty() { "not tested" } else { &cause.tested };
    let [name, decides, tested] = [&cause.name, &cause.decides, tested].map(cell);
    format!("| {} | **{name}** | {} | {decides} | {tested} |\n", paper.short(), figures.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::results;
    use super::*;
    use crate::data::usual_folder;

    #[test]
    fn long_numbers_are_cut_between_words() {
        let text = "0.542 (dragonfly of 33 groups of 8 routers of 4 nodes 64 KiB at 16 distances), 0.443 (dragonfly)";
        assert_eq!(shortened(text), "0.542 (dragonfly of 33 groups of 8 routers of 4 nodes 64 KiB at 16 distances) …");
        assert_eq!(shortened("64 slots"), "64 slots");
    }

    #[test]
    fn a_sentence_comes_out_if_all_of_its_statements_do() {
        use Verdict::{Differs, Implied, NotRun, Reproduced};
        let of = |verdicts: &[Verdict]| {
            let facts: Vec<Fact> =
                verdicts.iter().map(|verdict| Fact { verdict: *verdict, ..Fact::default() }).collect();
            ["comes out", "in part", "differs", "implied", "not run"][together(&facts.iter().collect::<Vec<_>>())]
        };
        assert_eq!(
            [of(&[Reproduced, Implied]), of(&[Reproduced, Differs]), of(&[Implied, Differs])],
            ["comes out", "in part", "differs"]
        );
        assert_eq!(of(&[Reproduced, NotRun]), "in part");
        assert_eq!([of(&[Differs, NotRun]), of(&[Implied, NotRun]), of(&[NotRun])], ["differs", "implied", "not run"]);
    }

    #[test]
    fn each_statement_that_differs_has_one_cause_and_each_cause_such_statements() {
        let causes = || Experiment::all().iter().flat_map(|experiment| &experiment.paper.causes);
        causes().for_each(|cause| assert!(cause.name.split(' ').count() <= 10, "{} has over ten words", cause.name));
        let mut left: Vec<&String> = causes().flat_map(|cause| &cause.explains).collect();
        for experiment in Experiment::all() {
            let place = usual_folder().join(&experiment.paper.folder);
            let shown = Shown { experiment, report: results::read(experiment, &place).unwrap() };
            for fact in shown.facts().filter(|fact| fact.verdict == Verdict::Differs) {
                let heading = shown.cause(fact).0;
                let causes = experiment.paper.causes.iter().filter(|cause| cause.explains.contains(&heading));
                assert_eq!(causes.count(), 1, "{heading}: {}", fact.statement);
                left.retain(|other| **other != heading);
            }
        }
        assert!(left.is_empty(), "these explain nothing that differs: {left:?}");
    }
}
