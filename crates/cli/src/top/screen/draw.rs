//! The frame around each view: the job, who holds up whom, and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{Screen, View, detail, help, jobs, matrix, ranks};
use crate::culprit::age;
use crate::top::text::{short_id, title, totals};
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
        let said = self.finding_height(area);
        let lines = [Constraint::Length(2), Constraint::Length(said), Constraint::Min(3), Constraint::Length(1)];
        let [head, finding, body, keys] = Layout::vertical(lines).areas(area);
        self.draw_head(frame, head);
        self.draw_finding(frame, finding);
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

    fn draw_head(&self, frame: &mut Frame, area: Rect) {
        let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
        let clock = match self.cost {
            cost if self.has_looked => format!(" look {:.1} ms every {} ", cost.as_secs_f64() * 1e3, self.every()),
            _ => String::new(),
        };
        let text = match self.current().filter(|_| self.view != View::Jobs) {
            Some(view) => format!(" tidegate top: {}", title(view, short_id(view))),
            None => format!(" tidegate top: {} on this host", many(self.views.len(), "job")),
        };
        let [left, right] =
            Layout::horizontal([Constraint::Min(1), Constraint::Length(clock.len() as u16)]).areas(first);
        let bar = Style::new().add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(text).style(bar), left);
        frame.render_widget(Paragraph::new(clock).style(bar), right);
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

    /// Lines for the sentences above the view: as many as they need, as far as the view leaves them. Lists scroll, so a
    /// quarter of the screen is theirs in any case.
    fn finding_height(&self, area: Rect) -> u16 {
        const USUAL: u16 = 2;
        let room = area.height.saturating_sub(3);
        let body = match self.view {
            _ if self.has_help => return USUAL,
            View::Jobs => 1 + 2 * self.views.len(),
            View::Ranks => 1 + self.arranged().len(),
            View::Detail | View::Matrix => room.into(),
        };
        let Some(view) = self.current() else { return USUAL };
        let texts = [Some(&view.sentence), view.trouble.as_ref()];
        let needed: usize = texts.into_iter().flatten().map(|text| line_count(text, area.width.into())).sum();
        let free = usize::from(room).saturating_sub(body).max(usize::from(room / 4)).max(USUAL.into());
        needed.clamp(USUAL.into(), free) as u16
    }

    fn draw_finding(&self, frame: &mut Frame, area: Rect) {
        let Some(view) = self.current() else { return };
        let style = if view.finding.roots.is_empty() { Style::new() } else { self.colours.alarm() };
        let mut lines = Vec::new();
        // Where nothing can be read, there is nothing to say but why.
        if view.trouble.is_none() || !view.rows.is_empty() {
            lines.push(Line::styled(view.sentence.clone(), style));
        }
        lines.extend(view.trouble.iter().map(|trouble| Line::styled(trouble.clone(), self.colours.alarm())));
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), area);
    }

    fn draw_nothing(&self, frame: &mut Frame, area: Rect) {
        let text = match self.has_looked {
            true => {
                "No job of this user runs on this host. It appears here as soon as `tidegate run` starts one; for jobs \
                 started otherwise, name the folder of their FI_TIDEGATE_STATS_DIR on the command line."
            }
            false => "Looking …",
        };
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
            _ if self.has_help => &[("any key", "back"), ("q", "quit")],
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
        for (key, what) in keys {
            line.push_span(Span::styled(*key, self.colours.head()));
            line.push_span(Span::raw(format!(" {what}  ")));
        }
        frame.render_widget(Paragraph::new(line), area);
    }
}

/// The lines that a text takes where it is broken between words.
fn line_count(text: &str, width: usize) -> usize {
    let (mut lines, mut used) = (1, 0);
    for length in text.split_whitespace().map(|word| word.chars().count()) {
        let with_space = if used == 0 { length } else { used + 1 + length };
        if with_space <= width {
            used = with_space;
        } else {
            // A word that is longer than a line is broken.
            lines += if used == 0 { (length - 1) / width } else { 1 + (length - 1) / width };
            used = (length - 1) % width + 1;
        }
    }
    lines
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
