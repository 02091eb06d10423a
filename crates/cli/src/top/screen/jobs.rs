//! The list of jobs: two lines each, what it does and who holds it up.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tidegate_message::Unit;

use super::Screen;
use super::draw::{draw_bar, scrolled};
use crate::culprit::age;
use crate::top::columns::per_second;
use crate::top::text::short_id;
use crate::top::view::JobView;

const LINES: usize = 2;

pub(super) fn draw(screen: &mut Screen, frame: &mut Frame, area: Rect) {
    let fit = usize::from(area.height.saturating_sub(1)) / LINES;
    let chosen = screen.current().map(|view| view.id.clone());
    let place = screen.views.iter().position(|view| Some(&view.id) == chosen.as_ref()).unwrap_or(0);
    screen.top = scrolled(screen.top, place, screen.views.len(), fit.max(1));
    screen.page = fit.max(1);
    let head = format!("{:<12} {:>9} {:>12} {:>8} {:>10}  command", "job", "ranks", "runs for", "msg/s", "sent/s");
    let mut lines = vec![Line::styled(head, screen.colours.head())];
    for (number, view) in screen.views.iter().enumerate().skip(screen.top).take(fit.max(1)) {
        let mut line = Line::raw(summary(view));
        if number == place {
            line = line.style(screen.colours.chosen());
        }
        lines.push(line);
        let style = if view.finding.roots.is_empty() { screen.colours.faint() } else { screen.colours.alarm() };
        lines.push(Line::from(vec![Span::raw("  "), Span::styled(view.sentence.clone(), style)]));
    }
    frame.render_widget(Paragraph::new(lines), area);
    let bar = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    draw_bar(frame, bar, screen.top * LINES, screen.views.len() * LINES);
}

fn summary(view: &JobView) -> String {
    let rates = view.rates();
    let of = |rate: Option<f64>, unit| rate.map_or_else(|| "-".to_owned(), |rate| per_second(rate, unit));
    let time = match view.has_ended {
        true => "ended".to_owned(),
        false => view.runs_for.map_or_else(String::new, age),
    };
    format!(
        "{:<12} {:>9} {:>12} {:>8} {:>10}  {}",
        short_id(view),
        format!("{}/{}", view.alive(), view.size),
        time,
        of(rates.map(|rates| rates.messages), Unit::Count),
        of(rates.map(|rates| rates.sent), Unit::Bytes),
        view.command
    )
}
