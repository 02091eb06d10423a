//! How runs get on: a bar on standard error where that is a terminal, else a line now and then.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tidegate_link::log::print_line;

/// Where a run comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was done now.
    Done,
    /// It was kept.
    Kept,
}

/// Where there is no terminal, how often a line says how runs get on.
const LINE_EVERY: Duration = Duration::from_secs(300);

/// Counts runs, and says how long the others will take.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    expected: usize,
    ended: usize,
    kept: usize,
    run: String,
    remaining: Option<Duration>,
    begun: Instant,
    last_line: Instant,
}

impl Bar {
    /// A bar named after what is run.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::new(0).with_prefix(name.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {wide_msg}") {
            bar.set_style(style);
        }
        let now = Instant::now();
        let state =
            State { expected: 0, ended: 0, kept: 0, run: String::new(), remaining: None, begun: now, last_line: now };
        Bar { bar, name: name.to_owned(), state: Mutex::new(state) }
    }

    /// That many more runs will follow.
    pub fn expect(&self, runs: usize) {
        self.change(|state| state.expected += runs);
    }

    /// One of the expected runs has ended, or was found among those that are kept.
    pub fn finish(&self, run: &str, source: Source) {
        self.change(|state| {
            state.ended += 1;
            run.clone_into(&mut state.run);
            state.kept += usize::from(source == Source::Kept);
        });
    }

    /// How long the runs that are left will take, if that can be told.
    pub fn remaining(&self, time: Option<Duration>) {
        self.change(|state| state.remaining = time);
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// How many runs were done, and how many had been kept.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.ended - state.kept, state.kept)
    }

    /// So many runs are not needed after all.
    pub fn forget(&self, runs: usize) {
        self.change(|state| state.expected = state.expected.saturating_sub(runs).max(state.ended));
    }

    /// Takes the bar away while something else is printed.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.bar.set_length(state.expected as u64);
        self.bar.set_position(state.ended as u64);
        self.bar.set_message(state.message());
        let is_due = self.bar.is_hidden() && state.last_line.elapsed() >= LINE_EVERY;
        if is_due && state.ended < state.expected {
            state.last_line = Instant::now();
            print_line(&format!("{}: {}", self.name, state.message()));
        }
    }
}

impl State {
    fn message(&self) -> String {
        let State { expected, ended, kept, run, .. } = self;
        let kept = if *kept > 0 { format!(" ({kept} kept from before)") } else { String::new() };
        let mut text = format!("{ended} runs done{kept}, {} left", expected.saturating_sub(*ended));
        // Where nobody knows better, as if all runs took the same time.
        let here = self.begun.elapsed().checked_div((*ended - self.kept) as u32);
        let alike = here.map(|each| each * expected.saturating_sub(*ended) as u32);
        if let Some(remaining) = self.remaining.or(alike).filter(|_| ended < expected) {
            text.push_str(&format!(", about {} to go", duration(remaining)));
        }
        if !run.is_empty() {
            text.push_str(&format!("; last: {run}"));
        }
        text
    }
}

/// As people say how long something takes: `2 h 10 min`, `3 min`, `40 s`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..90 => format!("{seconds} s"),
        90..5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_is_done_what_is_left_and_how_long_it_takes() {
        let bar = Bar::new("paper");
        bar.expect(12);
        bar.finish("one", Source::Kept);
        bar.finish("two", Source::Done);
        bar.remaining(Some(Duration::from_secs(7810)));
        let message = bar.state.lock().unwrap().message();
        assert_eq!(message, "2 runs done (1 kept from before), 10 left, about 2 h 10 min to go; last: two");
        assert_eq!([40, 91, 3600].map(|seconds| duration(Duration::from_secs(seconds))), ["40 s", "2 min", "60 min"]);
    }
}
