//! All that is known of one rank.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tidegate_message::{Counter, Unit};

use super::Screen;
use super::draw::draw_bar;
use crate::culprit::{Presence, age, cause_word, no_call};
use crate::report::units::human;
use crate::top::columns::{per_second, percent};
use crate::top::state::State;
use crate::top::view::{JobView, Row, RowWait, pairs};

/// How many of those are named that wait for the rank, or for which it waits.
const NAMED: usize = 8;
const BAR: usize = 24;

pub(super) fn draw(screen: &mut Screen, frame: &mut Frame, area: Rect) {
    let Some((view, row)) = screen.chosen_row() else {
        frame.render_widget(Paragraph::new("this rank is not among those shown: Esc"), area);
        return;
    };
    let lines = lines(screen, view, row);
    let (count, height) = (lines.len(), usize::from(area.height));
    screen.top = screen.top.min(count.saturating_sub(height));
    let shown: Vec<Line> = lines.into_iter().skip(screen.top).take(height).collect();
    frame.render_widget(Paragraph::new(shown), area);
    draw_bar(frame, area, screen.top, count);
}

fn lines(screen: &Screen, view: &JobView, row: &Row) -> Vec<Line<'static>> {
    let head = screen.colours.head();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let host = if row.host.is_empty() { String::new() } else { format!(" on {}", row.host) };
    let mut lines = vec![
        Line::from(vec![
            Span::styled(row.name.clone(), bold),
            Span::raw(format!(": {}, process {}{host}, {}", row.program, row.pid, state(row))),
        ]),
        Line::styled(row.setup.clone(), screen.colours.faint()),
        Line::raw(rates(row)),
        memory(screen, row),
        Line::default(),
    ];
    let place = view.rows.iter().position(|other| (&other.host, other.pid) == (&row.host, row.pid));
    let pairs = pairs(&view.waits);
    let own = pairs.iter().filter(|pair| Some(pair.0) == place).map(|pair| (pair.1, &pair.2));
    let others = pairs.iter().filter(|pair| Some(pair.1) == place).map(|pair| (pair.0, &pair.2));
    push_waits(&mut lines, screen, view, "waits for", own.collect());
    push_waits(&mut lines, screen, view, "is waited for by", others.collect());
    let kinds = [&row.receive, &row.send, &row.unexpected];
    let open = kinds.iter().map(|kind| kind.in_all).fold(0, u64::saturating_add);
    lines.push(Line::styled(
        format!(
            "open: {} receives, {} sends, {} messages that no receive has accepted",
            row.receive.in_all, row.send.in_all, row.unexpected.in_all
        ),
        head,
    ));
    lines.extend(row.open.iter().map(|text| Line::raw(format!("  {text}"))));
    if open > row.open.len() as u64 {
        lines.push(Line::raw("  and more, which are younger"));
    }
    lines.push(Line::default());
    lines.push(Line::styled(format!("{:<26} {:>10} {:>12}", "counter", "value", "per second"), head));
    for counter in Counter::ALL {
        let (value, rate) = row.counters[*counter as usize];
        let rate = match rate {
            Some(rate) if rate >= 0.5 => per_second(rate, counter.unit()),
            _ => String::new(),
        };
        if value > 0 {
            let value = human(value, counter.unit());
            lines.push(Line::raw(format!("{:<26} {value:>10} {rate:>12}", counter.name())));
        }
    }
    lines.push(Line::styled("counters that are 0 are left out", screen.colours.faint()));
    lines
}

fn state(row: &Row) -> String {
    match row.presence {
        Presence::Here if row.state == State::NoProcessor => "gets no CPU".to_owned(),
        Presence::Here if row.state == State::Unknown => "in MPI".to_owned(),
        Presence::Here => row.state.word().to_owned(),
        Presence::Away { time, at_least } => format!("{}{}", no_call(time, at_least), row.doing.clause()),
        Presence::WentOn => "has gone on since it was seen waiting in MPI: the next look tells where it is".to_owned(),
        Presence::Ended => "has left MPI".to_owned(),
        Presence::Gone => "is gone".to_owned(),
    }
}

fn rates(row: &Row) -> String {
    let Some(rates) = row.rates else { return "rates come with the next look".to_owned() };
    let of = |rate: f64, unit| per_second(rate, unit);
    format!(
        "{} messages/s, {}/s sent, {}/s received, {} refused/s, {} batches resent/s",
        of(rates.messages, Unit::Count),
        of(rates.sent, Unit::Bytes),
        of(rates.received, Unit::Bytes),
        of(rates.refused, Unit::Count),
        of(rates.resent, Unit::Count)
    )
}

fn memory(screen: &Screen, row: &Row) -> Line<'static> {
    let memory = row.memory;
    let filled = ((memory.share() * BAR as f64).round() as usize).min(BAR);
    Line::from(vec![
        Span::raw("receive memory "),
        Span::styled("█".repeat(filled), screen.colours.head()),
        Span::styled("░".repeat(BAR - filled), screen.colours.faint()),
        Span::raw(format!(
            " {} of {}, peak {}",
            human(memory.held, Unit::Bytes),
            human(memory.bound, Unit::Bytes),
            human(memory.peak, Unit::Bytes)
        )),
    ])
}

fn push_waits(
    lines: &mut Vec<Line<'static>>,
    screen: &Screen,
    view: &JobView,
    title: &str,
    mut waits: Vec<(usize, &RowWait)>,
) {
    if waits.is_empty() {
        return;
    }
    waits.sort_by(|one, other| other.1.share.total_cmp(&one.1.share).then(one.0.cmp(&other.0)));
    lines.push(Line::styled(title.to_owned(), screen.colours.head()));
    for (place, wait) in waits.iter().take(NAMED) {
        let open = wait.open_for.map_or_else(String::new, |time| format!(", now for {}", age(time)));
        lines.push(Line::from(vec![
            Span::raw(format!("  {:<12} ", view.rows[*place].name)),
            Span::styled(format!("{:>5}", percent(wait.share)), screen.colours.heat(wait.share)),
            Span::raw(format!(" {}{open}", cause_word(wait.cause))),
        ]));
    }
    if waits.len() > NAMED {
        lines.push(Line::raw(format!("  and {} more", waits.len() - NAMED)));
    }
    lines.push(Line::default());
}
