//! One look as plain text of 80 columns: `tidegate top --once`.

use std::fmt::Write;

use tidegate_message::Unit;

use crate::culprit::age;
use crate::top::columns::{COLUMNS, Order, RANK, WAITS, arrange, fit, per_second};
use crate::top::view::JobView;

/// The width of the text.
const WIDTH: usize = 80;
/// Of a larger job, so many ranks are shown: those that hold up others, and those that wait most.
const RANKS_MOST: usize = 40;

/// All jobs.
pub fn jobs(views: &[JobView]) -> String {
    views.iter().map(job).collect::<Vec<_>>().join("\n")
}

/// What a job is called where there is little room: of a folder, its own name.
pub fn short_id(view: &JobView) -> &str {
    view.id.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// What a job is, in one line. `id`: what to call it.
pub fn title(view: &JobView, id: &str) -> String {
    let mut title = format!("job {id}");
    if let Some(user) = &view.user {
        let _ = write!(title, " of {user}");
    }
    match view.is_running {
        _ if view.has_ended => title += ", ended",
        Some(false) => title += ", its `tidegate run` was killed",
        _ => {}
    }
    if let Some(slurm) = &view.slurm {
        let _ = write!(title, ", Slurm {}", slurm.id);
    }
    if let Some(mpi) = &view.mpi {
        let _ = write!(title, ", {mpi}");
    }
    let _ = write!(title, ", {} of {} ranks", view.alive(), view.size);
    if let Some(time) = view.runs_for {
        let _ = write!(title, ", {}", age(time));
    }
    title
}

/// Its rates together, in one line; empty on a first look.
pub fn totals(view: &JobView) -> String {
    view.rates().map_or_else(String::new, |rates| {
        let of = |rate: f64, unit| per_second(rate, unit);
        let mut text = format!(
            "{} messages/s, {}/s sent, {}/s received",
            of(rates.messages, Unit::Count),
            of(rates.sent, Unit::Bytes),
            of(rates.received, Unit::Bytes)
        );
        for (rate, what) in [(rates.refused, "refused"), (rates.resent, "batches resent")] {
            if rate >= 0.5 {
                let _ = write!(text, ", {} {what}/s", of(rate, Unit::Count));
            }
        }
        text
    })
}

fn job(view: &JobView) -> String {
    let mut text = wrap(&format!("{}: {}", title(view, &view.id), view.command), "  ");
    let mut say = |line: &str| {
        if !line.is_empty() {
            text += &wrap(&format!("  {line}"), "    ");
        }
    };
    if let Some(trouble) = &view.trouble {
        say(trouble);
    } else if view.rows.is_empty() {
        say("no counters yet");
    }
    if view.rows.is_empty() {
        return text;
    }
    say(&view.setup);
    say(&totals(view));
    say(&view.sentence);
    let columns = fit(WIDTH, RANK);
    let line = |cells: Vec<String>| cells.join(" ").trim_end().to_owned() + "\n";
    text += "\n";
    text += &line(columns.iter().map(|column| COLUMNS[*column].fill(COLUMNS[*column].title)).collect());
    let mut places = arrange(view, Order::Blame, "");
    if places.len() > RANKS_MOST {
        places = arrange(view, Order::By { column: WAITS, is_reversed: true }, "");
        places.sort_by_key(|place| view.rows[*place].blame.unwrap_or(usize::MAX));
        places.truncate(RANKS_MOST);
    }
    for row in places.iter().map(|place| &view.rows[*place]) {
        text += &line(columns.iter().map(|column| COLUMNS[*column].fill(&COLUMNS[*column].cell(view, row))).collect());
    }
    if places.len() < view.rows.len() {
        let _ = writeln!(text, "  and {} more, which wait less: --once --json has all", view.rows.len() - places.len());
    }
    text
}

/// A text in lines of at most `width` characters, broken between words; a word that is longer than a line is broken,
/// too.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        match lines.last_mut() {
            Some(line) if used + 1 + letters.len() <= width => {
                line.push(' ');
                line.push_str(word);
                used += 1 + letters.len();
            }
            _ => {
                lines.extend(letters.chunks(width).map(|part| part.iter().collect()));
                used = (letters.len() - 1) % width + 1;
            }
        }
    }
    lines
}

/// Lines of at most [`WIDTH`] characters, the following ones behind `indent`. A word that is longer stays whole.
fn wrap(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = text.len() - text.trim_start().len();
    lines += &text[..line];
    let mut is_first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_first && line + 1 + length > WIDTH {
            lines += "\n";
            lines += indent;
            line = indent.len();
        } else if !is_first {
            lines += " ";
            line += 1;
        }
        lines += word;
        line += length;
        is_first = false;
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::view::tests::example;

    #[test]
    fn a_job_reads_well_in_eighty_columns() {
        let expected = "\
job 4711, 3 of 4 ranks: a.out
  dynamic, 64 slots per peer, bulk direct
  4,000 messages/s, 4.00 MiB/s sent, 0 B/s received
  rank 1 holds up 2 ranks, up to 90 % of the time: they wait for its credits

rank   state        msg/s   sent/s   recv/s waits    for why       longest  mem
1 !    runs         1,000 1.00 MiB      0 B                                50 %
0      waits        1,000 1.00 MiB      0 B  90 %      1 credits    100 ms 50 %
2      waits        1,000 1.00 MiB      0 B  90 %      1 credits    100 ms 50 %
3      gone         1,000 1.00 MiB      0 B                                50 %
";
        assert_eq!(jobs(&[example(4)]), expected);
    }

    #[test]
    fn a_large_job_shows_those_to_blame_and_those_that_wait_most() {
        let text = jobs(&[example(1024)]);
        assert!(text.contains("\n1 !    runs"), "{text}");
        assert!(text.ends_with("  and 984 more, which wait less: --once --json has all\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("90 %      1 credits")).count(), RANKS_MOST - 1);
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        let text = wrap(&format!("  {}", "wordy ".repeat(30)), "    ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH) && text.lines().count() == 3, "{text}");
        assert!(text.starts_with("  wordy wordy") && text.lines().nth(1).unwrap().starts_with("    wordy"), "{text}");
        assert_eq!(text.matches("wordy").count(), 30);
    }
}
