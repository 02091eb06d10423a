//! `tidegate report`: recordings as one HTML file that needs nothing else.
//!
//! * [`timeline`]: samples into time lines: how much of what each process did in each column of time;
//! * [`rows`]: which processes get a row of their own, and which share one;
//! * [`pack`]: numbers as few bytes, and the data that the file's script reads;
//! * [`summary`]: what the numbers come to, for one run or several side by side;
//! * [`verdict`]: the top of the page; [`hang`]: the picture of a hang;
//! * [`parts`]: the parts of the page that are readable without script;
//! * [`markup`]: text that cannot become markup;
//! * `page.css`, `page.js`: how the page looks, and its pictures.

pub mod hang;
pub mod markup;
pub mod pack;
pub mod parts;
pub mod rows;
pub mod summary;
pub mod timeline;
pub mod verdict;

use std::fmt::Write;

use crate::advice::{self, Advice, advise};
use crate::recording::view::{Recording, View};

use markup::escape;
use pack::{First, Pack};
use timeline::Lines;

/// Columns of time of all runs of a page together: two pixels each on a wide screen.
const COLUMNS: usize = 480;
/// Least columns of a run.
const COLUMNS_LEAST: usize = 120;

/// A run that is to be shown.
#[derive(Debug)]
pub struct Shown {
    /// How it is called among several: the folder that it was read from.
    pub name: String,
    /// All that is known of it at its end.
    pub view: View,
    /// What to change.
    pub advice: Advice,
    /// The process to look at first, if there is one.
    pub blamed: Option<usize>,
    lines: Lines,
    pack: Pack,
}

impl Shown {
    /// Works out what is shown of a recording; `of`: of so many on one page.
    #[must_use]
    pub fn new(name: String, mut recording: Recording, of: usize) -> Self {
        let lines = Lines::new(&mut recording, (COLUMNS / of.max(1)).max(COLUMNS_LEAST));
        let view = recording.view;
        let advice = advise(&view);
        let blamed = advice::blamed(&view, &advice);
        let pack = Pack::new(&name, &view, &lines, &First { process: blamed, metric: timeline::first(&view, &advice) });
        Shown { name, view, advice, blamed, lines, pack }
    }
}

/// The whole file. `compared`: how the runs differ, in a line and in sentences, if that is asked for; `table`: the same
/// number by number, as markup.
#[must_use]
pub fn render(runs: &[Shown], compared: Option<(&str, &str)>, table: &str) -> String {
    let title = match runs {
        [one] => format!("Tidegate report: {}", one.view.facts.command_line()),
        _ => format!("Tidegate report: {}", runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(" and ")),
    };
    let data = serde_json::to_string(&runs.iter().map(|run| &run.pack).collect::<Vec<_>>()).expect("numbers and text");
    let mut page = String::new();
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        escape(&title),
        include_str!("page.css"),
    );
    page += &parts::header(runs);
    page += "<main>\n";
    page += &verdict::section(runs, compared);
    page += table;
    page += &parts::summary_section(runs);
    if runs.iter().any(|run| !run.view.processes.is_empty()) {
        page += &parts::pictures(runs);
    }
    page += &parts::memory(runs);
    page += &parts::longest_waits(runs);
    page += &parts::open(runs);
    page += &parts::counters(runs);
    page += &parts::provenance(runs);
    page += "</main>\n";
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        markup::json_in_html(&data),
        include_str!("page.js"),
    );
    page
}
