//! The top of the page: what happened, in one line of large type; the line to copy; the picture of a hang; and why.

use std::fmt::Write;

use super::markup::escape;
use super::parts::side_by_side;
use super::{Shown, hang};
use crate::advice::next::next;
use crate::advice::{Advice, capital};

/// The section that says what happened, and what to change; `compared`: how the runs differ, in a line and in
/// sentences, if there are two.
pub fn section(runs: &[Shown], compared: Option<(&str, &str)>) -> String {
    let mut text = "<section id=\"advice\" aria-labelledby=\"headline\">\n".to_owned();
    if let Some((line, said)) = compared {
        let _ = write!(
            text,
            "<h1 id=\"headline\" class=\"headline\">{}</h1>\n<p class=\"comparison\">{}</p>\n",
            escape(line),
            escape(said)
        );
    }
    let is_alone = runs.len() == 1;
    text += &side_by_side(runs, |run| of_run(run, is_alone));
    text + "</section>\n"
}

fn of_run(run: &Shown, is_alone: bool) -> String {
    let (element, id) = if is_alone { ("h1", " id=\"headline\"") } else { ("p", "") };
    let title = escape(&capital(&run.advice.title(&run.view)));
    let mut part = format!("<{element}{id} class=\"headline\">{title}</{element}>\n");
    let rest = run.advice.subtitle(&run.view);
    if !rest.is_empty() {
        let _ = writeln!(part, "<p class=\"sub\">{}.</p>", escape(&capital(&rest)));
    }
    if let Some(next) = next(&run.view, &run.advice) {
        let _ = writeln!(
            part,
            "<div class=\"copy\"><span class=\"why\">{}:</span> <code>{}</code> <button class=\"script\" type=\"button\" \
             data-copy>Copy</button></div>",
            next.why,
            escape(&next.line)
        );
    }
    if let Some(stuck) = &run.advice.stuck {
        part += &hang::picture(&run.view, stuck);
    }
    part += "<h2>What to change, and why</h2>\n";
    run.advice.points.iter().for_each(|point| _ = writeln!(part, "<p class=\"said\">{}</p>", escape(&point.text)));
    part + &evidence(&run.advice)
}

fn evidence(advice: &Advice) -> String {
    let mut part = "<details><summary>The numbers that led to it</summary>\n<table>\n".to_owned();
    for point in &advice.points {
        for evidence in &point.evidence {
            let [name, of, value] = [&evidence.name, &evidence.of, &evidence.value].map(|text| escape(text));
            let _ = writeln!(part, "<tr><td>{name}</td><td>{of}</td><td class=\"number\">{value}</td></tr>");
        }
    }
    part + "</table>\n</details>\n"
}
