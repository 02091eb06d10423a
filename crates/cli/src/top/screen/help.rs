//! What the keys do and what the columns mean.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::Screen;
use crate::top::columns::COLUMNS;

const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ PgUp PgDn Home End", "choose, or scroll (also j k g G)"),
    ("Enter, Esc", "further in: jobs, ranks, one rank; and back"),
    ("m", "who waits for whom, as a matrix; z there: groups or single ranks"),
    ("← → (< >), r", "sort by the next column; reverse"),
    ("/", "show only ranks with a text in any column"),
    ("space", "look now; else every --interval, or a hundred times what a look takes"),
    ("q, Ctrl-C", "quit"),
];

pub(super) fn draw(screen: &Screen, frame: &mut Frame, area: Rect) {
    let head = screen.colours.head();
    let of = |name: &str, text: &str, width: usize| {
        Line::from(vec![Span::styled(format!("{name:<width$} "), head), Span::raw(text.to_owned())])
    };
    let mut lines: Vec<Line> = KEYS.iter().map(|(key, text)| of(key, text, 22)).collect();
    lines.push(Line::default());
    lines.extend(COLUMNS.iter().map(|column| of(column.title, column.help, 14)));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
