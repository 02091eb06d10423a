//! Who waits for whom: a row for each rank that waits, a column for each that is waited for, and in their cell the part
//! of the time in percent. Where a job is too large for the terminal, neighbours come together in groups, whose cell
//! shows the largest of theirs; `z` shows single ranks instead, which scroll.

use std::collections::HashMap;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::Screen;
use super::draw::job_of;
use crate::top::view::{JobView, SHARE_LEAST, pairs};

/// Lines for the head and the scale.
const LINES_AROUND: usize = 2;

/// Ranks along one side.
struct Axis {
    /// Their places among the rows of the job.
    places: Vec<usize>,
    /// How many make a group.
    group: usize,
    labels: Vec<String>,
}

impl Axis {
    /// `fit`: how many labels there is room for; `None`: no groups are wanted.
    fn new(view: &JobView, mut places: Vec<usize>, fit: Option<usize>) -> Self {
        places.sort_unstable();
        places.dedup();
        let group = fit.map_or(1, |fit| places.len().div_ceil(fit.max(1)).max(1));
        let short = |place: usize| {
            let row = &view.rows[place];
            row.rank.map_or_else(|| format!("p{}", row.pid), |rank| rank.to_string())
        };
        let label = |group: &[usize]| match group {
            [one] => short(*one),
            _ => format!("{}+", short(group[0])),
        };
        let labels = places.chunks(group).map(label).collect();
        Axis { places, group, labels }
    }

    fn width(&self) -> usize {
        self.labels.iter().map(String::len).max().unwrap_or(0)
    }

    /// For each place, its number along the side.
    fn numbers(&self) -> HashMap<usize, usize> {
        self.places.iter().enumerate().map(|(number, place)| (*place, number / self.group)).collect()
    }
}

pub(super) fn draw(screen: &mut Screen, frame: &mut Frame, area: Rect) {
    let view = job_of(screen);
    let pairs: Vec<_> = pairs(&view.waits).into_iter().filter(|pair| pair.2.share >= SHARE_LEAST).collect();
    if pairs.is_empty() {
        frame.render_widget(Paragraph::new("no rank waits for another one"), area);
        return;
    }
    let waiting: Vec<usize> = pairs.iter().map(|pair| pair.0).collect();
    let awaited: Vec<usize> = pairs.iter().map(|pair| pair.1).collect();
    let (width, height) = (usize::from(area.width), usize::from(area.height).saturating_sub(LINES_AROUND).max(1));
    // Wide enough for the longest name.
    let names = Axis::new(view, waiting.iter().chain(&awaited).copied().collect(), None).width() + 1;
    let (label, cell) = (names.max(5) + 1, names.max(3) + 1);
    let fit = (width.saturating_sub(label) / cell).max(1);
    let is_grouped = !screen.is_single;
    let rows = Axis::new(view, waiting, is_grouped.then_some(height));
    let columns = Axis::new(view, awaited, is_grouped.then_some(fit));
    let mut shares: HashMap<(usize, usize), f64> = HashMap::new();
    let (row_of, column_of) = (rows.numbers(), columns.numbers());
    for (waiter, awaited, wait) in &pairs {
        let share = shares.entry((row_of[waiter], column_of[awaited])).or_default();
        *share = share.max(wait.share);
    }
    let top = screen.top.min(rows.labels.len().saturating_sub(height));
    let left = screen.left.min(columns.labels.len().saturating_sub(fit));
    let mut lines = vec![head(screen, &columns, left, fit, label, cell)];
    for (row, name) in rows.labels.iter().enumerate().skip(top).take(height) {
        let mut line = Line::from(format!("{name:>width$} ", width = label - 1));
        for column in left..(left + fit).min(columns.labels.len()) {
            line.push_span(cell_of(screen, shares.get(&(row, column)).copied(), cell));
        }
        lines.push(line);
    }
    let groups = rows.group.max(columns.group);
    lines.push(scale(screen, groups));
    frame.render_widget(Paragraph::new(lines), area);
    (screen.top, screen.left) = (top, left);
}

fn head(screen: &Screen, columns: &Axis, left: usize, fit: usize, label: usize, cell: usize) -> Line<'static> {
    let mut text = format!("{:>width$} ", "for", width = label - 1);
    for name in columns.labels.iter().skip(left).take(fit) {
        text += &format!("{name:>width$} ", width = cell - 1);
    }
    Line::styled(text, screen.colours.head())
}

fn cell_of(screen: &Screen, share: Option<f64>, width: usize) -> Span<'static> {
    match share {
        None => Span::styled(format!("{:>width$} ", "·", width = width - 1), screen.colours.faint()),
        Some(share) => {
            Span::styled(format!("{:>width$.0} ", share * 100.0, width = width - 1), screen.colours.heat(share))
        }
    }
}

fn scale(screen: &Screen, group: usize) -> Line<'static> {
    let mut line = Line::from(Span::raw("row waits for column, % of time: "));
    for (text, style) in screen.colours.legend() {
        line.push_span(Span::styled(text, style));
    }
    if group > 1 {
        line.push_span(Span::raw(format!("  + is up to {group} ranks")));
    }
    line
}
