//! The picture of a hang: which rank waited for which at the end. A closed circle of waits is drawn as a ring, anything
//! else as arrows to the rank at which the waits end; the waits themselves follow as rows, with tag and age.
//!
//! It is drawn here and not by the script, so that it is there in print and without script.

use std::f64::consts::TAU;
use std::fmt::Write;

use tidegate_message::Unit;

use super::markup::escape;
use crate::advice::stuck::{Stuck, StuckWait};
use crate::recording::view::View;
use crate::report::units::human;

/// Rows that are shown at once; others are folded away.
const ROWS_SHOWN: usize = 8;
/// Rows in all.
const ROWS_MOST: usize = 96;
/// Ranks of a circle that are drawn; of a larger one its size is told.
const DRAWN_MOST: usize = 64;
/// Ranks that are drawn one by one where they wait for one other.
const WAITERS_DRAWN: usize = 6;
/// Width of the drawing in its own units, which are pixels where there is room.
const WIDTH: f64 = 360.0;

/// The picture and the rows.
pub fn picture(run: &View, stuck: &Stuck) -> String {
    let drawing = match stuck.circle.len() {
        2 if stuck.is_ring => pair(run, stuck),
        1.. => ring(run, stuck),
        _ => star(run, stuck),
    };
    let words = escape(&format!("{}: who waited for whom at the end", stuck.title(run)));
    let mut text = format!("<figure class=\"hang\" role=\"group\" aria-label=\"{words}\">\n{drawing}");
    text += &rows(run, stuck);
    text + "</figure>\n"
}

/// An arrow from one point to another.
#[derive(Clone, Copy)]
struct Arrow {
    from: (f64, f64),
    to: (f64, f64),
    /// The length that is left free at both ends.
    gap: f64,
    /// By how much it is bent to its left.
    bend: f64,
    is_blamed: bool,
}

fn arrow(arrow: Arrow) -> String {
    let Arrow { from, to, gap, bend, is_blamed } = arrow;
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let (middle_x, middle_y) = ((from.0 + to.0) / 2.0 + uy * bend, (from.1 + to.1) / 2.0 - ux * bend);
    // Ends lie on the line to the point by which the arrow is bent.
    let end = |(x, y): (f64, f64), gap: f64| {
        let (dx, dy) = (middle_x - x, middle_y - y);
        let length = dx.hypot(dy).max(1.0);
        (x + dx / length * gap, y + dy / length * gap)
    };
    let ((x1, y1), (x2, y2)) = (end(from, gap), end(to, gap + 3.0));
    let class = if is_blamed { "arrow blamed" } else { "arrow" };
    let head = 8.0;
    let (bx, by) = (x2 - middle_x, y2 - middle_y);
    let length = bx.hypot(by).max(1.0);
    let (bx, by) = (bx / length, by / length);
    format!(
        "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}Q{middle_x:.1} {middle_y:.1} {x2:.1} {y2:.1}\"/><path class=\"{class} head\" \
         d=\"M{x2:.1} {y2:.1}L{:.1} {:.1}L{:.1} {:.1}Z\"/>\n",
        x2 - bx * head - by * head * 0.45,
        y2 - by * head + bx * head * 0.45,
        x2 - bx * head + by * head * 0.45,
        y2 - by * head - bx * head * 0.45,
    )
}

/// A process.
fn node(run: &View, process: usize, at: (f64, f64), radius: f64, is_blamed: bool) -> String {
    let class = if is_blamed { "node blamed" } else { "node" };
    let name = &run.processes[process].label;
    let number = run.processes[process].rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    format!(
        "<g class=\"{class}\"><title>{}</title><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
         style=\"font-size:{:.1}px\">{number}</text></g>\n",
        escape(name),
        at.0,
        at.1,
        at.0,
        at.1,
        (radius * 0.95).clamp(7.0, 15.0),
    )
}

/// The element around; `name`: what it shows, for those who do not see it.
fn drawing(name: &str, height: f64, inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">\n{inside}</svg>\n",
        escape(name)
    )
}

fn label(class: &str, at: (f64, f64), text: &str) -> String {
    format!("<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n", at.0, at.1, escape(text))
}

/// As much of a text as fits one line of the drawing.
fn cut(text: &str) -> String {
    const LETTERS: usize = 44;
    if text.chars().count() <= LETTERS {
        return text.to_owned();
    }
    text.chars().take(LETTERS - 1).collect::<String>() + "…"
}

fn waited(wait: &StuckWait) -> String {
    human(wait.age_ns, Unit::Nanoseconds)
}

/// How many processes wait and are not drawn.
fn others(stuck: &Stuck, drawn: &[usize]) -> usize {
    let mut waiting: Vec<usize> =
        stuck.waits.iter().map(|wait| wait.from).filter(|process| !drawn.contains(process)).collect();
    waiting.sort_unstable();
    waiting.dedup();
    waiting.len()
}

fn more_wait(count: usize, text: &str) -> String {
    let (noun, verb) = if count == 1 { ("rank", "waits") } else { ("ranks", "wait") };
    format!("and {count} more {noun} {verb} {text}")
}

/// Two that wait for each other, with what for.
fn pair(run: &View, stuck: &Stuck) -> String {
    let [one, other] = stuck.circle[..] else { return String::new() };
    let ((left, right), radius) = (((70.0, 70.0), (290.0, 70.0)), 22.0);
    let mut inside = String::new();
    for (from, to, at, y) in [(one, other, (left, right), 14.0), (other, one, (right, left), 132.0)] {
        let wait = stuck.waits.iter().find(|wait| wait.from == from && wait.to == Some(to));
        let is_blamed = stuck.blamed == Some(from);
        inside += &arrow(Arrow { from: at.0, to: at.1, gap: radius, bend: 62.0, is_blamed });
        if let Some(wait) = wait {
            let class = if is_blamed { "label blamed" } else { "label" };
            inside += &label(class, (180.0, y), &cut(&format!("{}, {}", wait.what, waited(wait))));
        }
    }
    inside += &node(run, one, left, radius, stuck.blamed == Some(one));
    inside += &node(run, other, right, radius, stuck.blamed == Some(other));
    let more = others(stuck, &stuck.circle);
    if more > 0 {
        inside += &label("label muted", (180.0, 156.0), &more_wait(more, "for these"));
    }
    drawing("two ranks that wait for each other", if more > 0 { 166.0 } else { 142.0 }, &inside)
}

/// More than two that wait for each other.
fn ring(run: &View, stuck: &Stuck) -> String {
    let drawn = &stuck.circle[..stuck.circle.len().min(DRAWN_MOST)];
    let count = drawn.len();
    let size = if count > 10 { 165.0 } else { 95.0 };
    let radius = (TAU * size / count as f64 * 0.38).clamp(6.0, 19.0).min(WIDTH / 2.0 - size - 2.0).max(6.0);
    let centre = (WIDTH / 2.0, size + radius + 6.0);
    let at = |place: usize| {
        let angle = TAU * place as f64 / count as f64 - TAU / 4.0;
        (centre.0 + size * angle.cos(), centre.1 + size * angle.sin())
    };
    let place = |process: usize| drawn.iter().position(|other| *other == process);
    let mut inside = String::new();
    for wait in &stuck.waits {
        let Some((from, to)) = place(wait.from).zip(wait.to.and_then(place)) else { continue };
        let is_blamed = stuck.blamed == Some(wait.from);
        inside += &arrow(Arrow { from: at(from), to: at(to), gap: radius, bend: 0.0, is_blamed });
    }
    for (number, process) in drawn.iter().enumerate() {
        inside += &node(run, *process, at(number), radius, stuck.blamed == Some(*process));
    }
    let words = if stuck.is_ring { "wait in a circle" } else { "wait for each other" };
    inside += &label("label strong", (centre.0, centre.1 - 9.0), &format!("{} ranks", stuck.circle.len()));
    inside += &label("label", (centre.0, centre.1 + 9.0), words);
    let mut height = 2.0 * (size + radius) + 12.0;
    let more = others(stuck, &stuck.circle) + stuck.circle.len() - count;
    if more > 0 {
        inside += &label("label muted", (centre.0, height + 10.0), &more_wait(more, "for these"));
        height += 24.0;
    }
    drawing("ranks that wait for each other in a circle", height, &inside)
}

/// Those that wait for one, or for a message that no rank sends.
fn star(run: &View, stuck: &Stuck) -> String {
    let (root, radius) = (stuck.blamed, 19.0);
    let waits = || stuck.waits.iter().filter(|wait| wait.to == root);
    let mut waiters: Vec<usize> = Vec::new();
    for wait in waits() {
        if !waiters.contains(&wait.from) {
            waiters.push(wait.from);
        }
    }
    waiters.truncate(WAITERS_DRAWN);
    waiters.sort_unstable();
    if waiters.is_empty() {
        return String::new();
    }
    let height = waiters.len() as f64 * 44.0 + 6.0;
    let end = (290.0, height / 2.0);
    let mut inside = String::new();
    for (row, process) in waiters.iter().enumerate() {
        let at = (70.0, row as f64 * 44.0 + 25.0);
        inside += &arrow(Arrow { from: at, to: end, gap: radius + 3.0, bend: 0.0, is_blamed: false });
        inside += &node(run, *process, at, radius, false);
    }
    inside += &match root {
        Some(root) => node(run, root, end, radius + 3.0, true),
        None => format!(
            "<g class=\"node nowhere\"><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"22\"/><text x=\"{0:.1}\" y=\"{1:.1}\">?</text></g>\n",
            end.0, end.1
        ),
    };
    let drawn: Vec<usize> = waiters.iter().copied().chain(root).collect();
    let more = others(stuck, &drawn);
    let mut all = height;
    if more > 0 {
        inside += &label("label muted", (180.0, height + 12.0), &more_wait(more, "too"));
        all += 24.0;
    }
    drawing("ranks and the one for which they wait", all, &inside)
}

/// One line for each wait, the most important first.
fn rows(run: &View, stuck: &Stuck) -> String {
    let row = |wait: &StuckWait| {
        let name = |process: usize| {
            let class = if stuck.blamed == Some(process) { " class=\"blamed\"" } else { "" };
            format!("<b{class}>{}</b>", escape(&run.processes[process].label))
        };
        let to = wait.to.map_or_else(|| "<b>any rank</b>".to_owned(), name);
        let what = if wait.is_receive { "a message: " } else { "" };
        let there = wait.there.as_ref().map_or_else(String::new, |there| {
            format!(
                " <span class=\"there\">A message of {} with {} is there, which no receive of {} accepts.</span>",
                wait.to.map_or_else(|| "any rank".to_owned(), |to| escape(&run.processes[to].label)),
                escape(there),
                escape(&run.processes[wait.from].label),
            )
        });
        format!(
            "<li>{} <span class=\"to\">waits for →</span> {to} <span class=\"muted\">{what}{}, {}</span>{there}</li>\n",
            name(wait.from),
            escape(&wait.what),
            waited(wait),
        )
    };
    let shown = stuck.waits.len().min(if stuck.waits.len() <= ROWS_SHOWN + 2 { ROWS_SHOWN + 2 } else { ROWS_SHOWN });
    let mut text = "<figcaption>\n<ul class=\"chain\">\n".to_owned();
    stuck.waits[..shown].iter().for_each(|wait| text += &row(wait));
    text += "</ul>\n";
    let folded = &stuck.waits[shown..stuck.waits.len().min(ROWS_MOST)];
    if !folded.is_empty() {
        let _ = write!(
            text,
            "<details><summary>{} more waits</summary>\n<ul class=\"chain\">\n",
            stuck.waits.len() - shown
        );
        folded.iter().for_each(|wait| text += &row(wait));
        text += "</ul>\n";
        let left = stuck.waits.len() - shown - folded.len();
        if left > 0 {
            let _ = writeln!(text, "<p class=\"muted\">and {left} like these</p>");
        }
        text += "</details>\n";
    }
    text + "</figcaption>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::rows::{OpenKind, WaitRow};
    use crate::recording::testing::{Made, values};
    use tidegate_link::stats::WaitCause;

    /// Ranks of a job, of which the first `size` wait in a circle, and the others for rank 0.
    fn drawn(ranks: u32, size: u32) -> String {
        let mut made = Made::new(ranks);
        made.facts.end.as_mut().unwrap().exit_code = 15;
        for rank in 0..ranks {
            let peer = if rank < size { (rank + 1) % size } else { 0 };
            made.open(rank, OpenKind::Receive, Some(peer), None, 3.0);
            let row = WaitRow {
                peer: Some(u64::from(peer) + 1),
                cause: WaitCause::Message,
                count: 1,
                waited_ns: 3_000_000_000,
                goes_on: true,
            };
            made.last.endpoints[rank as usize].waits.push(row);
        }
        let view = made.view(&vec![values(&[]); ranks as usize]);
        picture(&view, &Stuck::of(&view).unwrap())
    }

    #[test]
    fn a_circle_of_48_is_drawn_whole_and_its_rows_are_folded() {
        let picture = drawn(48, 48);
        assert_eq!(picture.matches("<circle").count(), 48);
        assert_eq!(picture.matches("class=\"arrow\"").count(), 48);
        assert!(picture.contains("40 more waits") && picture.matches("<li>").count() == 48, "{picture}");
    }

    #[test]
    fn the_closed_circle_comes_first_and_others_are_counted() {
        let picture = drawn(48, 3);
        assert_eq!(picture.matches("<circle").count(), 3);
        assert!(picture.contains("and 45 more ranks wait for these"), "{picture}");
        let first = &picture[picture.find("<li>").unwrap()..];
        assert!(first.starts_with("<li><b>rank 0</b> <span class=\"to\">waits for →</span> <b>rank 1</b>"), "{first}");
    }

    #[test]
    fn two_and_a_thousand() {
        assert!(drawn(2, 2).contains("tag 7, 3.00 s"));
        let picture = drawn(1000, 1000);
        assert_eq!(picture.matches("<circle").count(), DRAWN_MOST);
        assert!(picture.contains("1000 ranks") && picture.len() < 100_000, "{}", picture.len());
    }

    #[test]
    fn coordinates_are_numbers() {
        for picture in [drawn(2, 2), drawn(3, 3), drawn(100, 100)] {
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        }
    }
}
