//! The table of the ranks of a job. Only the lines that are seen are made, so a job of any size scrolls at once.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::Screen;
use super::draw::{draw_bar, job_of, scrolled};
use crate::culprit::Presence;
use crate::top::columns::{COLUMNS, MARK, Order, RANK, WAITS, fit};
use crate::top::view::{JobView, Row};

pub(super) fn draw(screen: &mut Screen, frame: &mut Frame, area: Rect) {
    let arranged = screen.arranged();
    let chosen = screen.chosen_in(&arranged);
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    screen.top = scrolled(screen.top, chosen, arranged.len(), height);
    // One column is left for the bar.
    let columns = fit(usize::from(area.width.saturating_sub(1)), screen.order.column());
    let view = job_of(screen);
    let mut lines = vec![head(screen, &columns)];
    if arranged.is_empty() {
        lines.push(Line::raw(if screen.filter.is_empty() { "no counters yet" } else { "no rank has that text" }));
    }
    for (number, place) in arranged.iter().enumerate().skip(screen.top).take(height) {
        let line = line(screen, view, &view.rows[*place], &columns);
        lines.push(if number == chosen { line.style(screen.colours.chosen()) } else { line });
    }
    frame.render_widget(Paragraph::new(lines), area);
    let bar = Rect { y: area.y + 1, height: height as u16, ..area };
    draw_bar(frame, bar, screen.top, arranged.len());
    if !screen.filter.is_empty() && !screen.is_typing {
        let text = format!(" /{}: {} of {} ", screen.filter, arranged.len(), view.rows.len());
        let width = (text.chars().count() as u16).min(area.width);
        let place = Rect { x: area.right() - width, width, height: 1, ..area };
        frame.render_widget(Paragraph::new(text).style(screen.colours.head()), place);
    }
}

fn head(screen: &Screen, columns: &[usize]) -> Line<'static> {
    let mut line = Line::default();
    for column in columns {
        let title = COLUMNS[*column].fill(COLUMNS[*column].title);
        let mut style = screen.colours.head();
        let mark = match screen.order {
            Order::Blame if *column == RANK => MARK,
            Order::By { column: sorting, is_reversed } if *column == sorting => {
                style = style.add_modifier(Modifier::REVERSED);
                if is_reversed { '▼' } else { '▲' }
            }
            _ => ' ',
        };
        line.push_span(Span::styled(title, style));
        line.push_span(Span::styled(mark.to_string(), screen.colours.head()));
    }
    line
}

fn line(screen: &Screen, view: &JobView, row: &Row, columns: &[usize]) -> Line<'static> {
    let whole = match row.presence {
        _ if row.blame.is_some() => screen.colours.alarm(),
        Presence::Gone => screen.colours.alarm(),
        Presence::Ended => screen.colours.faint(),
        _ => Style::new(),
    };
    let mut line = Line::default().style(whole);
    for column in columns {
        let text = COLUMNS[*column].fill(&COLUMNS[*column].cell(view, row));
        let style = match &row.wait {
            Some(wait) if *column == WAITS => screen.colours.heat(wait.share),
            _ => Style::new(),
        };
        line.push_span(Span::styled(text, style));
        line.push_span(Span::raw(" "));
    }
    line
}
