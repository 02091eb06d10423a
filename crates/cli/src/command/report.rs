//! `tidegate report`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tidegate_message::Counter;

use crate::advice::{self, next};
use crate::arguments::{PageOptions, ReportArguments};
use crate::browser;
use crate::diff::{Comparison, Side, compare};
use crate::failure::Failure;
use crate::files;
use crate::html::{self, Shown, summary};
use crate::recording::view::{Recording, View};
use tidegate_link::log::print_line;
use tidegate_link::plain;

/// Name and version of the schema of `tidegate report --json`.
pub const REPORT_SCHEMA: &str = "tidegate-report/1";
/// The longest line of text for a terminal.
const COLUMNS: usize = 80;

/// Reads the recordings, says what there is to say, and writes the file.
pub fn report(arguments: &ReportArguments) -> Result<u8, Failure> {
    let page = &arguments.page;
    page.check()?;
    let folders = &arguments.folders;
    let mut runs = Vec::new();
    for (folder, name) in folders.iter().zip(names(folders)) {
        runs.push(Shown::new(name, Recording::open(folder)?, folders.len()));
    }
    let compared = match &runs[..] {
        [first, second] => Some(compare(&[side(first), side(second)])),
        _ => None,
    };
    let name = if runs.len() == 1 { "report.html" } else { "comparison.html" };
    page.write(&folders[0].join(name), &render(&runs, compared.as_ref()), |file| match page.json {
        true => format!("{:#}\n", as_json(&runs, compared.as_ref(), file)),
        false => text(&runs, compared.as_ref(), file),
    })
}

/// One run as a side of a comparison.
fn side(run: &Shown) -> Side<'_> {
    Side { name: run.name.clone(), runs: vec![&run.view] }
}

/// The page of runs, with how they differ.
pub(super) fn render(runs: &[Shown], compared: Option<&Comparison>) -> String {
    let said = compared.map(|compared| (compared.headline(), compared.sentences()));
    let said = said.as_ref().map(|(line, said)| (line.as_str(), said.as_str()));
    html::render(runs, said, &compared.map(Comparison::table).unwrap_or_default())
}

impl PageOptions {
    fn prints_html(&self) -> bool {
        self.output.as_deref().is_some_and(super::is_standard_output)
    }

    /// Whether they go together.
    pub fn check(&self) -> Result<(), Failure> {
        match self.prints_html() {
            true if self.json => {
                Err(Failure::usage("--json and --output - both write to standard output: name a file for the HTML"))
            }
            true if self.open => Err(Failure::usage("--open shows a file, and --output - writes none: name one")),
            _ => Ok(()),
        }
    }

    /// Writes the page to the file that the user has named, else to `file`, and prints what there is to say.
    pub fn write(&self, file: &Path, page: &str, said: impl Fn(Option<&Path>) -> String) -> Result<u8, Failure> {
        if self.prints_html() {
            super::print(page.as_bytes())?;
            return Ok(0);
        }
        let file = match (self.output.as_deref(), self.json) {
            (Some(file), _) => Some(file),
            (None, true) => None,
            (None, false) => Some(file),
        };
        if let Some(file) = file {
            // A name that the user has not chosen may have been taken by another user.
            let write = if self.output.is_some() { files::write_output } else { files::write_chosen };
            write(file, page).map_err(|error| Failure::write(file, &error).and("; --output names another file"))?;
        }
        super::print(said(file).as_bytes())?;
        if let Some(file) = file.filter(|_| self.open)
            && let Err(why) = browser::open(file)
        {
            print_line(&format!("{} is not shown: {why}", file.display()));
        }
        Ok(0)
    }
}

/// What the runs are called: the last parts of their folders, or as much as tells them apart.
pub(super) fn names(folders: &[PathBuf]) -> Vec<String> {
    let last = |folder: &PathBuf| folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let names: Vec<String> = folders.iter().map(last).collect();
    let is_told = names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    if is_told { names } else { folders.iter().map(|folder| folder.display().to_string()).collect() }
}

/// For people at a terminal.
fn text(runs: &[Shown], compared: Option<&Comparison>, file: Option<&Path>) -> String {
    let mut text = compared.map(compared_text).unwrap_or_default();
    for run in runs {
        if runs.len() > 1 {
            let _ = writeln!(text, "{}", plain(&run.name));
        }
        text += &of_run(run);
        text.push('\n');
    }
    text + &all_else(file)
}

/// How two sides differ.
pub(super) fn compared_text(compared: &Comparison) -> String {
    let headline = compared.headline();
    format!("{}\n\n{}\n\n", wrapped(&plain(&format!("{headline}."))), wrapped(&plain(&compared.sentences())))
}

/// Where the page is.
pub(super) fn all_else(file: Option<&Path>) -> String {
    file.map_or_else(String::new, |file| format!("All else is in {}\n", plain(&file.to_string_lossy())))
}

/// The text on a run.
fn of_run(run: &Shown) -> String {
    let title = advice::capital(&run.advice.title(&run.view));
    let mut text = format!("{}\n", wrapped(&plain(&format!("{title}."))));
    let rest = run.advice.subtitle(&run.view);
    if !rest.is_empty() {
        let _ = writeln!(text, "{}", wrapped(&plain(&format!("{}.", advice::capital(&rest)))));
    }
    let _ = writeln!(text, "\n{}", wrapped(&plain(&run.advice.paragraph())));
    if let Some(next) = next::next(&run.view, &run.advice) {
        // Broken into lines it could not be copied.
        let _ = writeln!(text, "\n{}:\n  {}", next.why, next.line);
    }
    text
}

/// The same with line feeds in the place of spaces, so that lines fit a terminal where words do.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > COLUMNS {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += letters;
    }
    lines
}

/// For programs.
fn as_json(runs: &[Shown], compared: Option<&Comparison>, file: Option<&Path>) -> Value {
    let comparison = compared.map(|compared| {
        let views: Vec<&View> = runs.iter().map(|run| &run.view).collect();
        let mut value = compared.json();
        value["lines"] = json!(summary::summary(&views));
        value
    });
    json!({
        "schema": REPORT_SCHEMA,
        "html": file.map(|file| file.to_string_lossy()),
        "comparison": comparison,
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    })
}

pub(super) fn run(shown: &Shown) -> Value {
    let view = &shown.view;
    let label = |process: usize| view.processes[process].label.as_str();
    let waits = view.waits.iter().map(|wait| {
        json!({
            "process": label(wait.from),
            "for": wait.to.map(label),
            "cause": wait.cause.name(),
            "count": wait.count,
            "waited_ns": wait.waited_ns,
            "goes_on": wait.goes_on,
        })
    });
    let open = view.open.iter().map(|open| {
        json!({
            "process": label(open.process),
            "kind": open.row.kind,
            "peer": open.peer.map(label),
            "tag": open.row.tag,
            "bytes": open.row.bytes,
            "age_ns": open.row.age_ns,
            "waits_for": open.row.waits_for.map(|cause| cause.name()),
        })
    });
    json!({
        "name": shown.name,
        "recording": view.facts,
        "samples": view.samples,
        "duration_s": view.seconds(),
        "interrupted": view.is_interrupted(),
        "title": shown.advice.title(view),
        "headline": shown.advice.headline(),
        "paragraph": shown.advice.paragraph(),
        "look_at": shown.blamed.map(label),
        "next": next::next(view, &shown.advice).map(|next| json!({ "why": next.why, "line": next.line })),
        "options": shown.advice.options(),
        "points": shown.advice.points,
        "summary": summary::summary(&[view]),
        "waits": waits.collect::<Vec<_>>(),
        "open": open.collect::<Vec<_>>(),
        "job": counters(&|counter| view.job(counter)),
        "processes": view.processes.iter().map(|process| json!({
            "label": process.label,
            "rank": process.rank,
            "pid": process.facts.pid,
            "host": process.facts.host,
            "scheme": process.facts.scheme,
            "counters": counters(&|counter| process.get(counter)),
        })).collect::<Vec<_>>(),
    })
}

fn counters(of: &dyn Fn(Counter) -> u64) -> Value {
    let counters = Counter::ALL.iter().map(|counter| (counter.name().to_owned(), json!(of(*counter))));
    counters.collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::rows::OpenKind;
    use crate::recording::testing::{Made, values};
    use tidegate_link::stats::WaitCause;

    /// The JSON is an interface: programs read it. A change is made on purpose, with TIDEGATE_BLESS=1, and said in the
    /// change log; one that is no addition gives the schema another version.
    #[test]
    fn the_json_of_a_recording_is_as_it_was() {
        let mut made = Made::new(3);
        made.wait(0, 1, WaitCause::Message, 8.0);
        made.wait(2, 1, WaitCause::Credits, 2.5);
        made.open(0, OpenKind::Receive, Some(1), None, 1.5);
        made.open(2, OpenKind::Send, Some(1), Some(WaitCause::Credits), 0.5);
        made.facts.end.as_mut().unwrap().exit_code = 1;
        let of = |sends, waited| {
            values(&[
                (Counter::PacketsSent, 1_000),
                (Counter::SendsDelayed, sends),
                (Counter::WaitNanoseconds, waited),
                (Counter::ReceiveBound, 64 << 20),
                (Counter::ReceivePeak, 3 << 20),
            ])
        };
        made.sample(5.0, &[of(1, 4_000_000_000), of(0, 0), of(2, 10)]);
        made.sample(10.0, &[of(3, 8_000_000_000), of(0, 50), of(4, 20)]);
        let mut json = as_json(&[Shown::new("run".to_owned(), made.recording(), 1)], None, None);
        // Counters that are 0 would be most of the file, and each new one another line of it.
        let run = &mut json["runs"][0];
        let without_zeros = |counters: &mut Value| counters.as_object_mut().unwrap().retain(|_, value| *value != 0);
        without_zeros(&mut run["job"]);
        run["processes"].as_array_mut().unwrap().iter_mut().for_each(|one| without_zeros(&mut one["counters"]));
        let is = serde_json::to_string_pretty(&json).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/report.json");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            std::fs::write(&path, &is).unwrap();
        }
        let should = std::fs::read_to_string(&path).unwrap();
        assert!(is == should, "{is}\nTIDEGATE_BLESS=1 cargo test -p tidegate-cli --lib the_json_of writes it anew");
    }

    #[test]
    fn the_name_of_a_folder_does_not_steer_the_terminal() {
        let runs = ["a\x1b[31m", "b"].map(|name| Shown::new(name.to_owned(), Made::new(2).recording(), 2));
        let text = text(&runs, None, Some(Path::new("a\x1b[31m/comparison.html")));
        assert!(!text.contains('\x1b') && text.contains("[31m/comparison.html"), "{text:?}");
    }

    #[test]
    fn lines_fit_a_terminal() {
        let text = "word ".repeat(40);
        let wrapped = wrapped(text.trim_end());
        assert!(wrapped.lines().all(|line| line.len() <= 80), "{wrapped}");
        assert_eq!(wrapped.replace('\n', " "), text.trim_end());
    }

    #[test]
    fn runs_are_called_by_as_much_as_tells_them_apart() {
        let of = |folders: &[&str]| names(&folders.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/slow", "b/fast/"]), ["slow", "fast"]);
        assert_eq!(of(&["a/run", "b/run"]), ["a/run", "b/run"]);
    }
}
