//! `tidegate report`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tidegate_message::Counter;

use crate::advice;
use crate::arguments::ReportArguments;
use crate::failure::Failure;
use crate::files;
use crate::html::{self, Shown, summary};
use crate::recording::view::Recording;
use tidegate_link::plain;

/// Name and version of the schema of `tidegate report --json`.
pub const REPORT_SCHEMA: &str = "tidegate-report/1";
/// The longest line of text for a terminal.
const COLUMNS: usize = 80;

/// Reads the recordings, says what there is to say, and writes the file.
pub fn report(arguments: &ReportArguments) -> Result<u8, Failure> {
    let prints_html = arguments.output.as_deref().is_some_and(super::is_standard_output);
    if prints_html && arguments.json {
        return Err(Failure::usage("--json and --output - both write to standard output: name a file for the HTML"));
    }
    let folders = &arguments.folders;
    let names = names(folders);
    let mut runs = Vec::new();
    for (folder, name) in folders.iter().zip(names) {
        runs.push(Shown::new(name, Recording::open(folder)?, folders.len()));
    }
    if prints_html {
        super::print(html::render(&runs).as_bytes())?;
        return Ok(0);
    }
    let file = match (&arguments.output, arguments.json) {
        (Some(file), _) => Some(file.clone()),
        (None, true) => None,
        (None, false) => Some(folders[0].join(if runs.len() == 1 { "report.html" } else { "comparison.html" })),
    };
    if let Some(file) = &file {
        // A name that the user has not chosen may have been taken by another user.
        let write = if arguments.output.is_some() { files::write_output } else { files::write_chosen };
        write(file, &html::render(&runs))
            .map_err(|error| Failure::write(file, &error).and("; --output names another file"))?;
    }
    if arguments.json {
        super::print_json(&as_json(&runs, file.as_deref()))?;
    } else {
        super::print(text(&runs, file.as_deref()).as_bytes())?;
    }
    Ok(0)
}

/// What the runs are called: the last parts of their folders, or as much as tells them apart.
fn names(folders: &[PathBuf]) -> Vec<String> {
    let last = |folder: &PathBuf| folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let names: Vec<String> = folders.iter().map(last).collect();
    let is_told = names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    if is_told { names } else { folders.iter().map(|folder| folder.display().to_string()).collect() }
}

/// For people at a terminal.
fn text(runs: &[Shown], file: Option<&Path>) -> String {
    let mut text = String::new();
    for run in runs {
        if runs.len() > 1 {
            let _ = writeln!(text, "{}", run.name);
        }
        let headline = advice::capital(run.advice.headline());
        let _ = writeln!(text, "{}\n", wrapped(&plain(&format!("{headline}."))));
        let _ = writeln!(text, "{}", wrapped(&plain(&run.advice.paragraph())));
        let options = run.advice.options();
        if !options.is_empty() {
            let _ = writeln!(text, "{}", wrapped(&format!("Worth a try: {}.", options.join(" or "))));
        }
        text.push('\n');
    }
    if let [first, second] = runs {
        let said = summary::comparison([&first.name, &second.name], [&first.view, &second.view]);
        let _ = writeln!(text, "{}\n", wrapped(&said));
    }
    if let Some(file) = file {
        let _ = writeln!(text, "All else is in {}", file.display());
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
fn as_json(runs: &[Shown], file: Option<&Path>) -> Value {
    let comparison = match runs {
        [first, second] => json!({
            "text": summary::comparison([&first.name, &second.name], [&first.view, &second.view]),
            "lines": summary::summary(&[&first.view, &second.view]),
        }),
        _ => Value::Null,
    };
    json!({
        "schema": REPORT_SCHEMA,
        "html": file.map(|file| file.to_string_lossy()),
        "comparison": comparison,
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(shown: &Shown) -> Value {
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
        "paragraph": shown.advice.paragraph(),
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
        let mut json = as_json(&[Shown::new("run".to_owned(), made.recording(), 1)], None);
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
