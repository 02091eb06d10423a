//! The parts of the page that are readable without script.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use tidegate_message::{Counter, Unit};

use super::Shown;
use super::markup::escape;
use super::summary::summary;
use crate::recording::rows::OpenKind;
use crate::recording::view::{Process, View};
use crate::report::units::human;

/// Most lines of a table of processes, pairs or unfinished work.
const LINES_MOST: usize = 24;

/// The title, what was run, and the switch of colours.
pub fn header(runs: &[Shown]) -> String {
    let mut text = "<header>\n<div>\n<p class=\"brand\">Tidegate report</p>\n".to_owned();
    for run in runs {
        let facts = &run.view.facts;
        let name = if runs.len() > 1 { format!("<strong>{}</strong> ", escape(&run.name)) } else { String::new() };
        let mpi = facts.mpi.as_ref().map(|mpi| format!(", {}", escape(mpi))).unwrap_or_default();
        let _ = writeln!(
            text,
            "<p class=\"command\">{name}<code>{}</code><span class=\"muted\">{mpi}, {}, {}</span></p>",
            escape(&facts.command_line()),
            if run.view.is_simulated() { "simulated".to_owned() } else { format!("on {}", escape(&facts.host)) },
            moment(facts.started_s),
        );
    }
    text += "</div>\n<button id=\"theme\" class=\"script\" type=\"button\" title=\"Light, dark, or as the system has it\">\
             colours: system</button>\n</header>\n";
    text
}

/// A moment in universal time; the script replaces it by the reader's own time, with its offset.
fn moment(seconds: f64) -> String {
    // Later years have more than four digits, and are of a recording that was tampered with.
    const LAST: f64 = 253_402_300_799.0;
    if !(0.0..LAST).contains(&seconds) {
        return "at an unknown time".to_owned();
    }
    let moment = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds as u64)).to_string();
    let words = moment.trim_end_matches('Z').replace('T', " ");
    format!("<time datetime=\"{moment}\">{words} UTC</time>")
}

/// The most important numbers.
pub fn summary_table(runs: &[Shown]) -> String {
    let views: Vec<&View> = runs.iter().map(|run| &run.view).collect();
    let mut text = "<table class=\"summary\">\n".to_owned();
    if runs.len() > 1 {
        text += "<tr><th></th>";
        runs.iter().for_each(|run| _ = write!(text, "<th>{}</th>", escape(&run.name)));
        text += "</tr>\n";
    }
    for line in summary(&views) {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", line.name);
        line.values.iter().for_each(|value| _ = write!(text, "<td>{}</td>", escape(value)));
        text += "</tr>\n";
    }
    text + "</table>\n"
}

/// The section of those.
pub fn summary_section(runs: &[Shown]) -> String {
    format!("<section id=\"summary\">\n<h2>Summary</h2>\n{}</section>\n", summary_table(runs))
}

/// What the script draws.
pub fn pictures(runs: &[Shown]) -> String {
    let without = "<noscript><p class=\"note\">The pictures here are drawn by the file's own script, which is switched off. \
                   All other parts of the page do without.</p></noscript>\n";
    let mut text = format!(
        "<section id=\"lines\">\n<h2>Over time</h2>\n{without}\
         <p class=\"script muted\">Least, median and most of all processes; the row that you choose below is drawn in orange. \
         Values at the pointer, or with the arrow keys.</p>\n"
    );
    text += &side_by_side(runs, |run| drawn_from_the_start(run) + "<div class=\"charts script\"></div>\n");
    let _ = write!(
        text,
        "</section>\n<section id=\"ranks\">\n<h2>Rank by rank</h2>\n{without}\
         <p class=\"script\"><label>Show <select id=\"metric\"></select></label> <span id=\"about\" class=\"muted\"></span></p>\n"
    );
    text += &side_by_side(runs, |_| "<div class=\"strips script\"></div>\n".to_owned());
    let _ = write!(text, "</section>\n<section id=\"waits\">\n<h2>Who waits for whom</h2>\n{without}");
    text += "<p class=\"script\"><label>Waiting for <select id=\"cause\"></select></label> <span class=\"muted\">A row waited \
             for a column: a column that stands out is a process that held up others.</span></p>\n";
    text += &side_by_side(runs, |run| match run.pack.has_waits() {
        true => "<div class=\"matrix script\"></div>\n".to_owned(),
        false => "<p class=\"note\">No process waited for another one.</p>\n".to_owned(),
    });
    text + "</section>\n"
}

/// Which process is drawn in orange before the reader has chosen one.
fn drawn_from_the_start(run: &Shown) -> String {
    run.blamed.map_or_else(String::new, |blamed| {
        let label = escape(&run.view.processes[blamed].label);
        format!(
            "<p class=\"script\"><b class=\"blamed\">{label}</b> is to be looked at first: it is drawn in orange.</p>\n"
        )
    })
}

/// The attribute of a row that is about the process to look at first.
fn blamed(run: &Shown, process: usize) -> &'static str {
    if run.blamed == Some(process) { " class=\"blamed\"" } else { "" }
}

/// Memory against its bound, as bars.
pub fn memory(runs: &[Shown]) -> String {
    let text = "<section id=\"memory\">\n<h2>Receive memory against its bound</h2>\n\
                <p class=\"muted\">The whole length is the bound. Dark: the fixed part (mailbox, book-keeping). Light: what was \
                added by messages that nobody had received yet, at their peak.</p>\n";
    let parts = side_by_side(runs, |run| {
        let mut order: Vec<(usize, &Process)> = run.view.processes.iter().enumerate().collect();
        let fill = |process: &Process| {
            process.get(Counter::ReceivePeak) as f64 / process.get(Counter::ReceiveBound).max(1) as f64
        };
        if order.len() > LINES_MOST {
            order.sort_by(|(_, one), (_, other)| fill(other).total_cmp(&fill(one)));
        }
        let has_bound = |process: &Process| process.get(Counter::ReceiveBound) > 0;
        if !order.iter().any(|(_, process)| has_bound(process)) {
            return "<p class=\"note\">No process told a bound.</p>\n".to_owned();
        }
        let mut part = "<table class=\"bars\">\n".to_owned();
        order.iter().take(LINES_MOST).for_each(|(number, process)| part += &bar(process, blamed(run, *number)));
        part += "</table>\n";
        part + &rest(order.len(), "took less of theirs")
    });
    text.to_owned() + &parts + "</section>\n"
}

fn bar(process: &Process, class: &str) -> String {
    let [bound, fixed, peak] =
        [Counter::ReceiveBound, Counter::ReceiveFixedBytes, Counter::ReceivePeak].map(|c| process.get(c));
    let share = |bytes: u64| 100.0 * bytes as f64 / bound.max(1) as f64;
    let more = peak.saturating_sub(fixed);
    format!(
        "<tr{class}><th scope=\"row\">{}</th><td class=\"bar\"><span class=\"fixed\" style=\"width:{:.2}%\"></span><span \
         class=\"peak\" style=\"width:{:.2}%\"></span></td><td class=\"number\">{} of {}</td></tr>\n",
        escape(&process.label),
        share(fixed).min(100.0),
        share(more).min(100.0 - share(fixed).min(100.0)),
        human(peak, Unit::Bytes),
        human(bound, Unit::Bytes),
    )
}

/// How many more there are than a table shows.
fn rest(number: usize, what: &str) -> String {
    match number.saturating_sub(LINES_MOST) {
        0 => String::new(),
        more => format!("<p class=\"muted\">{} more {what}.</p>\n", human(more as u64, Unit::Count)),
    }
}

/// The pairs that waited longest, as a table.
pub fn longest_waits(runs: &[Shown]) -> String {
    if runs.iter().all(|run| run.view.waits.is_empty()) {
        return String::new();
    }
    let parts = side_by_side(runs, |run| {
        let label = |process: usize| escape(&run.view.processes[process].label);
        let mut part = "<table>\n<tr><th>who</th><th>for whom</th><th>for what</th><th class=\"number\">waits</th>\
                        <th class=\"number\">time</th></tr>\n"
            .to_owned();
        for wait in run.view.waits.iter().take(LINES_MOST) {
            let goes_on = if wait.goes_on { ", goes on" } else { "" };
            let _ = writeln!(
                part,
                "<tr{}><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}{goes_on}</td></tr>",
                wait.to.map_or("", |to| blamed(run, to)),
                label(wait.from),
                wait.to.map_or_else(|| "others".to_owned(), label),
                crate::recording::rows::words(wait.cause),
                human(wait.count, Unit::Count),
                human(wait.waited_ns, Unit::Nanoseconds),
            );
        }
        part + "</table>\n" + &rest(run.view.waits.len(), "waited less")
    });
    format!("<section id=\"longest\">\n<h2>Longest waits</h2>\n{parts}</section>\n")
}

/// What was not finished, where the job did not end in order.
pub fn open(runs: &[Shown]) -> String {
    if runs.iter().all(|run| run.view.open.is_empty()) {
        return String::new();
    }
    let parts = side_by_side(runs, |run| {
        if run.view.open.is_empty() {
            return "<p class=\"note\">Nothing.</p>\n".to_owned();
        }
        let label = |process: usize| escape(&run.view.processes[process].label);
        let mut part = "<table>\n<tr><th>process</th><th>what</th><th>other side</th><th>tag</th>\
                        <th class=\"number\">bytes</th><th class=\"number\">since</th><th>waits for</th></tr>\n"
            .to_owned();
        for open in run.view.open.iter().take(LINES_MOST) {
            let what = match open.row.kind {
                OpenKind::Receive => "posted receive",
                OpenKind::Send => "unfinished send",
                OpenKind::Unexpected => "message that nobody received",
            };
            let _ = writeln!(
                part,
                "<tr{}><td>{}</td><td>{what}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td \
                 class=\"number\">{}</td><td>{}</td></tr>",
                blamed(run, open.process),
                label(open.process),
                open.peer.map_or_else(|| "any".to_owned(), label),
                escape(&open.row.tag),
                human(open.row.bytes, Unit::Bytes),
                human(open.row.age_ns, Unit::Nanoseconds),
                open.row.waits_for.map_or("", crate::recording::rows::words),
            );
        }
        let all = run.view.open_in_all;
        let _ = writeln!(
            part,
            "</table>\n<p class=\"muted\">In all {}, {}, {} that nobody received.</p>",
            counted(all.receives, "posted receive"),
            counted(all.sends, "unfinished send"),
            counted(all.unexpected, "message"),
        );
        part
    });
    format!("<section id=\"open\">\n<h2>Still open at the end</h2>\n{parts}</section>\n")
}

/// "1 send", "2 sends".
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", human(number, Unit::Count), if number == 1 { "" } else { "s" })
}

/// All counters, folded away.
pub fn counters(runs: &[Shown]) -> String {
    let parts = side_by_side(runs, |run| {
        let mut part = "<details><summary>All counters that are not 0</summary>\n<table>\n<tr><th>counter</th><th \
                        class=\"number\">job</th><th class=\"number\">median</th><th class=\"number\">most</th><th>most \
                        at</th></tr>\n"
            .to_owned();
        for counter in Counter::ALL {
            let Some((at, most)) = run.view.most(*counter).filter(|(_, most)| *most > 0) else { continue };
            let mut values: Vec<u64> = run.view.processes.iter().map(|process| process.get(*counter)).collect();
            values.sort_unstable();
            let value = |value| human(value, counter.unit());
            let _ = writeln!(
                part,
                "<tr><th scope=\"row\" title=\"{}\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td><td \
                 class=\"number\">{}</td><td>{}</td></tr>",
                escape(counter.help()),
                counter.name(),
                value(run.view.job(*counter)),
                value(values[values.len() / 2]),
                value(most),
                escape(&run.view.processes[at].label),
            );
        }
        part + "</table>\n</details>\n"
    });
    format!("<section id=\"counters\">\n<h2>Counters</h2>\n{parts}</section>\n")
}

/// How the numbers came about, and what was left out.
pub fn provenance(runs: &[Shown]) -> String {
    let parts = side_by_side(runs, |run| {
        let (view, pack) = (&run.view, &run.pack);
        let mut said = vec![format!(
            "{} of {}, {} apart at first{}.",
            counted(view.samples, "sample"),
            processes(view.processes.len()),
            human(view.facts.interval_ns, Unit::Nanoseconds),
            match view.facts.end.as_ref().map(|end| end.interval_ns) {
                Some(last) if last > view.facts.interval_ns => format!(
                    " and {} at the end: the recording had reached its bound, so that every second sample was left out",
                    human(last, Unit::Nanoseconds)
                ),
                _ => String::new(),
            }
        )];
        said.push(format!(
            "Time lines have {} of {}; what lies between is a mean, for memory the largest value.",
            counted(pack.columns() as u64, "column"),
            human((run.lines.column_seconds() * 1e9) as u64, Unit::Nanoseconds)
        ));
        if pack.rows() < view.processes.len() {
            said.push(format!(
                "{} rows stand for {} processes: those that stand out have one each, neighbours share the others, which \
                 show the mean of their rates and the most of their waiting and memory.",
                pack.rows(),
                view.processes.len()
            ));
        }
        said.push("Values in pictures are rounded to 2.2 %, values in tables are not.".to_owned());
        if let Some(share) = view.facts.cost_share() {
            said.push(format!("Reading the counters took {:.2} % of one processor.", 100.0 * share));
        }
        if view.is_torn {
            said.push("The file of samples ends in the middle of a sample, which was left out.".to_owned());
        }
        if view.is_interrupted() {
            said.push("The recording has no end: it goes on, or its recorder was killed.".to_owned());
        }
        let end = view.facts.end.as_ref();
        said.extend(end.and_then(|end| end.stopped.clone()).map(|why| format!("Samples end early: {why}.")));
        said.extend(end.iter().flat_map(|end| &end.troubles).map(|trouble| format!("A process said: {trouble}.")));
        let settings: Vec<String> =
            view.facts.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut part: String = said.iter().map(|said| format!("<p>{}</p>\n", escape(said))).collect();
        if !settings.is_empty() {
            let _ =
                writeln!(part, "<details><summary>Settings</summary><pre>{}</pre></details>", escape_lines(&settings));
        }
        let _ = writeln!(part, "<p class=\"muted\">Recorded by tidegate {}.</p>", escape(&view.facts.tidegate_version));
        part
    });
    format!("<section id=\"provenance\">\n<h2>How these numbers came about</h2>\n{parts}</section>\n")
}

fn processes(number: usize) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{number} processes") }
}

fn escape_lines(lines: &[String]) -> String {
    lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("\n")
}

/// The part of each run, beside each other.
pub fn side_by_side(runs: &[Shown], part: impl Fn(&Shown) -> String) -> String {
    let mut text = format!("<div class=\"runs\" data-runs=\"{}\">\n", runs.len());
    for run in runs {
        text += "<div class=\"run\">\n";
        if runs.len() > 1 {
            let _ = writeln!(text, "<h3>{}</h3>", escape(&run.name));
        }
        text += &part(run);
        text += "</div>\n";
    }
    text + "</div>\n"
}
