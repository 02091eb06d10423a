//! The terminal: what is shown, and what keys do.
//!
//! * here: the state, and what each key makes of it, without any terminal;
//! * `draw`: the frame around each view: job, who holds up whom, keys;
//! * `jobs`, `ranks`, `detail`, `matrix`, `help`: the views;
//! * `heat`: colours that colour-blind people can tell apart;
//! * [`terminal`]: the loop that reads keys and draws.

mod detail;
mod draw;
mod heat;
mod help;
mod jobs;
mod matrix;
mod ranks;
pub mod terminal;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::top::columns::{COLUMNS, Order, RANK, arrange};
use crate::top::view::{JobView, Row};
use crate::top::watch::Update;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The list of jobs.
    Jobs,
    /// The ranks of a job.
    Ranks,
    /// One rank.
    Detail,
    /// Who waits for whom.
    Matrix,
}

/// What is to happen after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Go on.
    None,
    /// Look at once.
    Look,
    /// End.
    Quit,
}

/// Everything that decides what is shown.
#[derive(Debug)]
pub struct Screen {
    views: Vec<JobView>,
    cost: Duration,
    interval: Duration,
    missing: String,
    has_looked: bool,
    view: View,
    /// The id of the chosen job.
    job: Option<String>,
    /// The chosen rank, by host and process, and its place in the list if it is gone from there.
    rank: Option<(String, u32)>,
    place: usize,
    order: Order,
    filter: String,
    is_typing: bool,
    has_help: bool,
    /// The first line shown of the help.
    help_top: usize,
    /// The first line shown of a list or a text, and the first column of the matrix.
    top: usize,
    left: usize,
    /// Whether the matrix shows each rank by itself, also if it must be scrolled.
    is_single: bool,
    /// Lines of a page, as of the last drawing.
    page: usize,
    colours: heat::Colours,
}

impl Screen {
    /// Nothing has been looked at yet. `missing`: what to say where there is no job. `environment`: a variable of the
    /// environment, for what the terminal can show.
    pub fn new(interval: Duration, missing: String, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        Screen {
            views: Vec::new(),
            cost: Duration::ZERO,
            interval,
            missing,
            has_looked: false,
            view: View::Jobs,
            job: None,
            rank: None,
            place: 0,
            order: Order::Blame,
            filter: String::new(),
            is_typing: false,
            has_help: false,
            help_top: 0,
            top: 0,
            left: 0,
            is_single: false,
            page: 1,
            colours: heat::Colours::of_terminal(environment),
        }
    }

    /// Takes what a look showed.
    pub fn update(&mut self, update: Update) {
        (self.views, self.cost) = (update.views, update.cost);
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        if let (true, [only]) = (is_first, &self.views[..]) {
            // Nothing to choose from.
            (self.job, self.view) = (Some(only.id.clone()), View::Ranks);
        }
    }

    /// The chosen job, or the first.
    fn current(&self) -> Option<&JobView> {
        let chosen = self.views.iter().find(|view| Some(&view.id) == self.job.as_ref());
        chosen.or_else(|| self.views.first())
    }

    /// The places of the ranks in the list.
    fn arranged(&self) -> Vec<usize> {
        self.current().map_or_else(Vec::new, |view| arrange(view, self.order, &self.filter))
    }

    /// Where the chosen rank is in the list.
    fn chosen_in(&self, arranged: &[usize]) -> usize {
        let is_it = |row: &Row| self.rank.as_ref().is_some_and(|(host, pid)| (&row.host, row.pid) == (host, *pid));
        let view = self.current();
        let found = arranged.iter().position(|place| view.is_some_and(|view| is_it(&view.rows[*place])));
        found.unwrap_or_else(|| self.place.min(arranged.len().saturating_sub(1)))
    }

    /// The chosen rank.
    fn chosen_row(&self) -> Option<(&JobView, &Row)> {
        let view = self.current()?;
        let is_it = |row: &&Row| self.rank.as_ref().is_some_and(|(host, pid)| (&row.host, row.pid) == (host, *pid));
        if let Some(row) = view.rows.iter().find(is_it) {
            return Some((view, row));
        }
        let arranged = self.arranged();
        Some((view, &view.rows[*arranged.get(self.chosen_in(&arranged))?]))
    }

    /// What a key does.
    pub fn handle_key(&mut self, key: KeyEvent) -> Action {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if has_control && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.is_typing {
            self.type_filter(key);
            return Action::None;
        }
        if self.has_help {
            return self.handle_key_of_help(key.code);
        }
        if let Some(lines) = self.lines_of(key.code) {
            self.go(lines);
            return Action::None;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char(' ') => return Action::Look,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => (self.has_help, self.help_top) = (true, 0),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc | KeyCode::Backspace => self.leave(),
            KeyCode::Char('m') => self.switch_matrix(),
            _ if self.view == View::Ranks => self.handle_key_of_ranks(key.code),
            _ if self.view == View::Matrix => self.handle_key_of_matrix(key.code),
            _ => {}
        }
        Action::None
    }

    /// By how many lines a key moves, if it does.
    fn lines_of(&self, key: KeyCode) -> Option<isize> {
        Some(match key {
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::PageUp => -(self.page as isize),
            KeyCode::PageDown => self.page as isize,
            KeyCode::Home | KeyCode::Char('g') => -(isize::MAX >> 1),
            KeyCode::End | KeyCode::Char('G') => isize::MAX >> 1,
            _ => return None,
        })
    }

    /// Keys that scroll do; all others lead back.
    fn handle_key_of_help(&mut self, key: KeyCode) -> Action {
        match self.lines_of(key) {
            Some(lines) => self.help_top = self.help_top.saturating_add_signed(lines),
            None => self.has_help = false,
        }
        if key == KeyCode::Char('q') { Action::Quit } else { Action::None }
    }

    fn handle_key_of_ranks(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('>' | '.') | KeyCode::Right => self.order = next(self.order),
            KeyCode::Char('<' | ',') | KeyCode::Left => self.order = previous(self.order),
            KeyCode::Char('r') => {
                self.order = match self.order {
                    Order::Blame => Order::By { column: RANK, is_reversed: true },
                    Order::By { column, is_reversed } => Order::By { column, is_reversed: !is_reversed },
                }
            }
            _ => {}
        }
    }

    fn handle_key_of_matrix(&mut self, key: KeyCode) {
        match key {
            KeyCode::Left => self.left = self.left.saturating_sub(1),
            KeyCode::Right => self.left += 1,
            KeyCode::Char('z') => (self.is_single, self.top, self.left) = (!self.is_single, 0, 0),
            _ => {}
        }
    }

    fn type_filter(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => (self.is_typing, self.filter) = (false, String::new()),
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => self.filter.push(letter),
            _ => {}
        }
        (self.top, self.place, self.rank) = (0, 0, None);
    }

    /// Moves by lines: what is chosen in lists, what is shown in texts.
    fn go(&mut self, lines: isize) {
        match self.view {
            View::Jobs => {
                let here = self.current().map(|view| view.id.clone());
                let here = self.views.iter().position(|view| Some(&view.id) == here.as_ref()).unwrap_or(0);
                let there = here.saturating_add_signed(lines).min(self.views.len().saturating_sub(1));
                self.job = self.views.get(there).map(|view| view.id.clone());
            }
            View::Ranks => {
                let arranged = self.arranged();
                let there = self.chosen_in(&arranged).saturating_add_signed(lines);
                self.place = there.min(arranged.len().saturating_sub(1));
                let place = arranged.get(self.place).copied();
                let row = place.and_then(|place| self.current().map(|view| &view.rows[place]));
                self.rank = row.map(|row| (row.host.clone(), row.pid));
            }
            // Drawing knows where the end is.
            View::Detail | View::Matrix => self.top = self.top.saturating_add_signed(lines),
        }
    }

    fn enter(&mut self) {
        match self.view {
            View::Jobs if !self.views.is_empty() => {
                let job = self.current().map(|view| view.id.clone());
                (self.job, self.place, self.rank) = (job, 0, None);
                self.show(View::Ranks);
            }
            View::Ranks if self.chosen_row().is_some() => {
                // From now on it is this one, wherever it sorts.
                self.go(0);
                self.show(View::Detail);
            }
            _ => {}
        }
    }

    fn leave(&mut self) {
        match self.view {
            View::Jobs => {}
            View::Ranks if !self.filter.is_empty() => self.filter.clear(),
            View::Ranks => self.show(View::Jobs),
            View::Detail | View::Matrix => self.show(View::Ranks),
        }
    }

    fn switch_matrix(&mut self) {
        if self.current().is_some() {
            self.job = self.current().map(|view| view.id.clone());
            self.show(if self.view == View::Matrix { View::Ranks } else { View::Matrix });
        }
    }

    fn show(&mut self, view: View) {
        (self.view, self.top, self.left) = (view, 0, 0);
    }
}

/// The order behind this one: those to blame first, then each column.
fn next(order: Order) -> Order {
    match order {
        Order::Blame => by(RANK),
        Order::By { column, .. } if column + 1 < COLUMNS.len() => by(column + 1),
        Order::By { .. } => Order::Blame,
    }
}

fn previous(order: Order) -> Order {
    match order {
        Order::Blame => by(COLUMNS.len() - 1),
        Order::By { column: RANK, .. } => Order::Blame,
        Order::By { column, .. } => by(column - 1),
    }
}

/// A new column begins with what most wish to see: the largest, but for names.
fn by(column: usize) -> Order {
    Order::By { column, is_reversed: !COLUMNS[column].is_left }
}
