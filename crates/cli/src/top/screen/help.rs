//! What the keys do and what the columns mean.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::Screen;
use super::draw::draw_bar;
use crate::top::columns::COLUMNS;
use crate::top::text::wrapped;

const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ PgUp PgDn Home End", "choose, or scroll (also j k g G)"),
    ("Enter, Esc", "further in: jobs, ranks, one rank; and back"),
    ("m", "who waits for whom, as a matrix; z there: groups or single ranks"),
    ("← → (< >), r", "sort by the next column; reverse. At first those that hold up others come first, marked !"),
    ("/", "show the rank of that name (rank 2); else the ranks with that text in any column, shown or not"),
    ("space", "look now; else every --interval, or a hundred times what a look takes"),
    ("? h F1", "this help: ↑ ↓ PgUp PgDn Home End scroll it, any other key ends it"),
    ("q, Ctrl-C", "quit"),
];

/// Texts stand behind names of this width, where the terminal is wide enough for both.
const NAMES: usize = 15;
const NARROW: usize = 60;

pub(super) fn draw(screen: &mut Screen, frame: &mut Frame, area: Rect) {
    // One column is left for the bar.
    let width = usize::from(area.width.saturating_sub(1));
    let mut lines = Vec::new();
    for (name, text) in KEYS {
        push(&mut lines, screen, (name, text), width);
    }
    lines.push(Line::default());
    for column in &COLUMNS {
        push(&mut lines, screen, (column.title, column.help), width);
    }
    let (count, height) = (lines.len(), usize::from(area.height));
    screen.help_top = screen.help_top.min(count.saturating_sub(height));
    let shown: Vec<Line> = lines.into_iter().skip(screen.help_top).take(height).collect();
    frame.render_widget(Paragraph::new(shown), area);
    draw_bar(frame, area, screen.help_top, count);
}

/// A name and its meaning: in one line, or the meaning below the name.
fn push(lines: &mut Vec<Line<'static>>, screen: &Screen, (name, text): (&str, &str), width: usize) {
    let head = screen.colours.head();
    let is_above = width < NARROW || name.chars().count() > NAMES;
    let indent = if width < NARROW { 2 } else { NAMES + 1 };
    let mut texts = wrapped(text, width.saturating_sub(indent)).into_iter();
    if is_above {
        lines.push(Line::styled(name.to_owned(), head));
    } else {
        let first = texts.next().unwrap_or_default();
        lines.push(Line::from(vec![Span::styled(format!("{name:<NAMES$} "), head), Span::raw(first)]));
    }
    lines.extend(texts.map(|text| Line::raw(format!("{:indent$}{text}", ""))));
}
