//! The frame around each view: the job, who holds up whom, and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{Screen, View, detail, help, jobs, matrix, ranks};
use crate::culprit::age;
use crate::top::text::{short_id, title, totals, wrapped};
use crate::top::view::JobView;

/// Less than this cannot show anything of use.
const LEAST: (u16, u16) = (40, 8);

impl Screen {
    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let text = format!("{} x {} is too small: at least {} x {}", area.width, area.height, LEAST.0, LEAST.1);
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
            return;
        }
        let parts = self.parts(area);
        let lines = [parts.head, parts.finding.len() as u16].map(Constraint::Length);
        let lines = [lines[0], lines[1], Constraint::Min(1), Constraint::Length(1)];
        let [head, finding, body, keys] = Layout::vertical(lines).areas(area);
        self.draw_head(frame, head);
        frame.render_widget(Paragraph::new(parts.finding), finding);
        self.page = body.height.saturating_sub(1).max(1).into();
        if self.has_help {
            help::draw(self, frame, body);
        } else {
            match self.view {
                _ if self.views.is_empty() => self.draw_nothing(frame, body),
                View::Jobs => jobs::draw(self, frame, body),
                View::Ranks => ranks::draw(self, frame, body),
                View::Detail => detail::draw(self, frame, body),
                View::Matrix => matrix::draw(self, frame, body),
            }
        }
        self.draw_keys(frame, keys);
    }

    /// One line says which job it is, and a second one, where there is room, what it runs.
    fn draw_head(&self, frame: &mut Frame, area: Rect) {
        let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
        let clock = match self.cost {
            cost if self.has_looked => format!(" look {:.1} ms every {} ", cost.as_secs_f64() * 1e3, self.every()),
            _ => String::new(),
        };
        let text = match self.current().filter(|_| self.view != View::Jobs) {
            Some(view) if area.width < NARROW => format!(" {}", title(view, short_id(view))),
            Some(view) => format!(" tidegate top: {}", title(view, short_id(view))),
            None => format!(" tidegate top: {} on this host", many(self.views.len(), "job")),
        };
        // The job comes first where there is no room for both.
        let has_room = text.chars().count() + clock.len() <= usize::from(area.width) || area.width >= NARROW;
        let clock = if has_room { clock } else { String::new() };
        let [left, right] =
            Layout::horizontal([Constraint::Min(1), Constraint::Length(clock.len() as u16)]).areas(first);
        let bar = Style::new().add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(text).style(bar), left);
        frame.render_widget(Paragraph::new(clock).style(bar), right);
        if area.height < 2 {
            return;
        }
        let text = match self.current().filter(|_| self.view != View::Jobs) {
            Some(view) => [view.command.clone(), totals(view)].join("   "),
            None => String::new(),
        };
        frame.render_widget(Paragraph::new(Line::styled(text, self.colours.faint())), second);
    }

    /// The time from look to look, which is longer than asked for where looks take long.
    fn every(&self) -> String {
        age(self.interval.max(self.cost + crate::top::watch::pause(self.interval, self.cost)))
    }

    /// The sentences above the view come first: they get as many lines as they need, and the view, which scrolls, what
    /// is left, but for the least that it makes sense with. The line of the command goes before any of theirs does.
    fn parts(&self, area: Rect) -> Parts {
        let room = usize::from(area.height) - 1;
        let least = match self.view {
            // The list of jobs has their sentences.
            View::Jobs => return Parts { head: if room > FEW { 2 } else { 1 }, finding: Vec::new() },
            _ if self.has_help => return Parts { head: 1, finding: Vec::new() },
            // The head of the table, and the rank that is to blame.
            View::Ranks => 2,
            View::Detail | View::Matrix => 3,
        };
        let mut finding = self.finding(area.width.into());
        let head = if finding.len() + least + 2 <= room { 2 } else { 1 };
        shorten(&mut finding, room - head - least, area.width.into());
        // A free line, or two, tells the sentence from the table.
        let usual = if room > FEW { 2 } else { 1 };
        finding.resize(finding.len().max(usual), Line::default());
        Parts { head: head as u16, finding }
    }

    /// The sentences of the job that is shown, in lines of this width.
    fn finding(&self, width: usize) -> Vec<Line<'static>> {
        self.current().map_or_else(Vec::new, |view| finding_lines(self, view, width, Style::new()))
    }

    fn draw_nothing(&self, frame: &mut Frame, area: Rect) {
        let text = if self.has_looked { self.missing.as_str() } else { "Looking …" };
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
    }

    fn draw_keys(&self, frame: &mut Frame, area: Rect) {
        let mut line = Line::default();
        if self.is_typing {
            line.push_span(Span::styled("/", self.colours.head()));
            line.push_span(Span::raw(format!("{}▏  ", self.filter)));
        }
        let keys: &[(&str, &str)] = match self.view {
            _ if self.is_typing => &[("Enter", "keep"), ("Esc", "show all")],
            _ if self.has_help => &[("↑↓ PgUp PgDn", "scroll"), ("other keys", "back"), ("q", "quit")],
            View::Jobs => &[("↑↓", "choose"), ("Enter", "ranks"), ("m", "matrix"), ("?", "help"), ("q", "quit")],
            View::Ranks => &[
                ("Enter", "detail"),
                ("m", "matrix"),
                ("←→", "sort"),
                ("r", "reverse"),
                ("/", "filter"),
                ("Esc", "jobs"),
                ("?", "help"),
                ("q", "quit"),
            ],
            View::Detail => &[("↑↓", "scroll"), ("Esc", "ranks"), ("m", "matrix"), ("?", "help"), ("q", "quit")],
            View::Matrix => {
                &[("↑↓←→", "scroll"), ("z", "groups or ranks"), ("m", "ranks"), ("?", "help"), ("q", "quit")]
            }
        };
        for (key, what) in fitting(keys, area.width.into()) {
            line.push_span(Span::styled(*key, self.colours.head()));
            line.push_span(Span::raw(format!(" {what}  ")));
        }
        frame.render_widget(Paragraph::new(line), area);
    }
}

/// Less than this has no room for more than the job in a line.
const NARROW: u16 = 80;
/// Fewer lines than these have none to spare.
const FEW: usize = 12;

/// The parts above a view.
struct Parts {
    /// Lines of the head.
    head: u16,
    /// The sentences.
    finding: Vec<Line<'static>>,
}

/// The sentence of a job, and what is wrong with the look at it, in lines of this width. `calm`: how to show that no
/// rank holds up another one.
pub(super) fn finding_lines(screen: &Screen, view: &JobView, width: usize, calm: Style) -> Vec<Line<'static>> {
    let alarm = screen.colours.alarm();
    let style = if view.finding.roots.is_empty() { calm } else { alarm };
    // Where nothing can be read, there is nothing to say but why.
    let sentence = Some((&view.sentence, style)).filter(|_| view.trouble.is_none() || !view.rows.is_empty());
    let texts = sentence.into_iter().chain(view.trouble.iter().map(|trouble| (trouble, alarm)));
    texts
        .flat_map(|(text, style)| wrapped(text, width).into_iter().map(move |line| Line::styled(line, style)))
        .collect()
}

/// Leaves out lines that have no room; the last one that is shown says so, within `width`.
pub(super) fn shorten(lines: &mut Vec<Line<'static>>, room: usize, width: usize) {
    if lines.len() <= room {
        return;
    }
    lines.truncate(room.max(1));
    if let Some(last) = lines.last_mut() {
        let text: String = last.spans.iter().map(|span| span.content.as_ref()).collect();
        let text = match text.rsplit_once(' ') {
            _ if text.chars().count() + 2 <= width => format!("{text} …"),
            Some((shorter, _)) => format!("{shorter} …"),
            None => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        };
        *last = Line::styled(text, last.style);
    }
}

/// As many of the keys as fit: the last two, help and the end, in any case.
fn fitting<'a>(keys: &'a [(&'a str, &'a str)], width: usize) -> Vec<&'a (&'a str, &'a str)> {
    let length =
        |keys: &[&(&str, &str)]| keys.iter().map(|(key, what)| key.chars().count() + what.len() + 3).sum::<usize>();
    let mut kept: Vec<&(&str, &str)> = keys.iter().collect();
    while kept.len() > 2 && length(&kept) > width + 2 {
        kept.remove(kept.len() - 3);
    }
    kept
}

/// A number of things.
pub(super) fn many(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// The first line to show of `count`, so that `chosen` is among `height` lines.
pub(super) fn scrolled(top: usize, chosen: usize, count: usize, height: usize) -> usize {
    let top = top.min(chosen).max((chosen + 1).saturating_sub(height));
    top.min(count.saturating_sub(height))
}

/// A bar at the right edge that says which part of `count` lines is shown.
pub(super) fn draw_bar(frame: &mut Frame, area: Rect, top: usize, count: usize) {
    use ratatui::widgets::{Scrollbar, ScrollbarOrientation, ScrollbarState};
    let height = usize::from(area.height);
    if count <= height {
        return;
    }
    let mut state = ScrollbarState::new(count - height).position(top).viewport_content_length(height);
    let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight).begin_symbol(None).end_symbol(None);
    frame.render_stateful_widget(bar, area, &mut state);
}

/// Which job is meant where only one can be.
pub(super) fn job_of(screen: &Screen) -> &JobView {
    screen.current().expect("drawn only where there is a job")
}
