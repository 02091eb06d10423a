//! The list of jobs: a line for each, and below it the sentence on what holds it up, in as many lines as there are.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tidegate_message::Unit;

use super::Screen;
use super::draw::{draw_bar, finding_lines, shorten};
use crate::culprit::age;
use crate::top::columns::per_second;
use crate::top::text::short_id;
use crate::top::view::JobView;

/// Lines of a job where there is no room for all of its sentence.
const LINES: usize = 2;
const INDENT: usize = 2;

pub(super) fn draw(screen: &mut Screen, frame: &mut Frame, area: Rect) {
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let chosen = screen.current().map(|view| view.id.clone());
    let place = screen.views.iter().position(|view| Some(&view.id) == chosen.as_ref()).unwrap_or(0);
    let entries = entries(screen, place, usize::from(area.width.saturating_sub(1)), height);
    screen.top = first_shown(&entries, screen.top, place, height);
    screen.page = (height / LINES).max(1);
    let head = screen.line_of_job(["job", "user", "Slurm", "ranks", "runs for", "msg/s", "sent/s", "command"]);
    let before: usize = entries[..screen.top].iter().map(Vec::len).sum();
    let count: usize = entries.iter().map(Vec::len).sum();
    let mut lines = vec![Line::styled(head, screen.colours.head())];
    lines.extend(entries.into_iter().flatten().skip(before).take(height));
    frame.render_widget(Paragraph::new(lines), area);
    let bar = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    draw_bar(frame, bar, before, count);
}

/// The lines of each job. Where not all fit, the chosen one keeps all of its own.
fn entries(screen: &Screen, chosen: usize, width: usize, height: usize) -> Vec<Vec<Line<'static>>> {
    let of = |(number, view): (usize, &JobView)| {
        let mut line = Line::raw(summary(screen, view));
        if number == chosen {
            line = line.style(screen.colours.chosen());
        }
        let said = finding_lines(screen, view, width.saturating_sub(INDENT), screen.colours.faint());
        (line, said)
    };
    let mut all: Vec<_> = screen.views.iter().enumerate().map(of).collect();
    if all.iter().map(|(_, said)| 1 + said.len()).sum::<usize>() > height {
        for (number, (_, said)) in all.iter_mut().enumerate() {
            let most = if number == chosen { height } else { LINES };
            shorten(said, most - 1, width.saturating_sub(INDENT));
        }
    }
    let indented = |mut line: Line<'static>| {
        line.spans.insert(0, Span::raw(" ".repeat(INDENT)));
        line
    };
    all.into_iter().map(|(line, said)| std::iter::once(line).chain(said.into_iter().map(indented)).collect()).collect()
}

/// The first job to show, so that all lines of the chosen one are seen, and no line is left free below.
fn first_shown(entries: &[Vec<Line>], top: usize, chosen: usize, height: usize) -> usize {
    let lines = |first: usize, last: usize| entries[first..last].iter().map(Vec::len).sum::<usize>();
    let mut top = top.min(chosen);
    while top < chosen && lines(top, chosen + 1) > height {
        top += 1;
    }
    while top > 0 && lines(top - 1, entries.len()) <= height {
        top -= 1;
    }
    top
}

fn summary(screen: &Screen, view: &JobView) -> String {
    let rates = view.rates();
    let of = |rate: Option<f64>, unit| rate.map_or_else(|| "-".to_owned(), |rate| per_second(rate, unit));
    let time = match view.has_ended {
        true => "ended".to_owned(),
        false => view.runs_for.map_or_else(String::new, age),
    };
    screen.line_of_job([
        short_id(view),
        view.user.as_deref().unwrap_or("you"),
        view.slurm.as_ref().map_or("", |job| &job.id),
        &format!("{}/{}", view.alive(), view.size),
        &time,
        &of(rates.map(|rates| rates.messages), Unit::Count),
        &of(rates.map(|rates| rates.sent), Unit::Bytes),
        &view.command,
    ])
}

impl Screen {
    /// A line of the list. Whose a job is, and which job of Slurm, is there where it tells jobs apart.
    fn line_of_job(&self, [job, user, slurm, ranks, time, messages, sent, command]: [&str; 8]) -> String {
        let has_users = self.views.iter().any(|view| view.user.is_some());
        let has_slurm = self.views.iter().any(|view| view.slurm.is_some());
        let user = if has_users { format!(" {user:<10.10}") } else { String::new() };
        let slurm = if has_slurm { format!(" {slurm:<8}") } else { String::new() };
        format!("{job:<12}{user}{slurm} {ranks:>9} {time:>12} {messages:>8} {sent:>10}  {command}")
    }
}
