//! How runs get on: a bar on standard error where that is a terminal, else a line now and then.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
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

/// Where there is no terminal, when the first line says how runs get on, and how often one does from then on.
const FIRST_LINE: Duration = Duration::from_secs(60);
const LINE_EVERY: Duration = Duration::from_secs(300);

/// Counts runs, and says how long the others will take.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    shared: Arc<Shared>,
}

/// The part that the thread which prints lines sees.
#[derive(Debug)]
struct Shared {
    name: String,
    state: Mutex<State>,
    cleared: Condvar,
}

#[derive(Debug)]
struct State {
    expected: usize,
    ended: usize,
    kept: usize,
    run: String,
    remaining: Option<Duration>,
    begun: Instant,
    is_cleared: bool,
}

impl Bar {
    /// A bar named after what is run.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::new(0).with_prefix(name.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {wide_msg}") {
            bar.set_style(style);
        }
        let state = State {
            expected: 0,
            ended: 0,
            kept: 0,
            run: String::new(),
            remaining: None,
            begun: Instant::now(),
            is_cleared: false,
        };
        let shared = Arc::new(Shared { name: name.to_owned(), state: Mutex::new(state), cleared: Condvar::new() });
        if bar.is_hidden() {
            let shared = Arc::clone(&shared);
            // Without the thread there are no lines, and the runs are done all the same.
            let _ = thread::Builder::new().spawn(move || shared.print_lines(FIRST_LINE, LINE_EVERY, print_line));
        }
        Bar { bar, shared }
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
        self.shared.lock().is_cleared = true;
        self.shared.cleared.notify_all();
    }

    /// How many runs were done, and how many had been kept.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.shared.lock();
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
        let mut state = self.shared.lock();
        change(&mut state);
        self.bar.set_length(state.expected as u64);
        self.bar.set_position(state.ended as u64);
        self.bar.set_message(state.message());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line now and then as long as runs are left, also while none of them ends.
    fn print_lines(&self, first: Duration, every: Duration, print: impl Fn(&str)) {
        let (mut state, mut pause) = (self.lock(), first);
        loop {
            let waiting = self.cleared.wait_timeout_while(state, pause, |state| !state.is_cleared);
            state = waiting.unwrap_or_else(PoisonError::into_inner).0;
            if state.is_cleared {
                return;
            }
            if state.ended < state.expected {
                pause = every;
                print(&format!("{}, after {}: {}", self.name, duration(state.begun.elapsed()), state.message()));
            }
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
        let message = bar.shared.lock().message();
        assert_eq!(message, "2 runs done (1 kept from before), 10 left, about 2 h 10 min to go; last: two");
        assert_eq!([40, 91, 3600].map(|seconds| duration(Duration::from_secs(seconds))), ["40 s", "2 min", "60 min"]);
    }

    #[test]
    fn where_there_is_no_terminal_lines_come_also_while_no_run_ends() {
        let bar = Bar::new("sim");
        bar.expect(2);
        let (shared, (told, hear)) = (Arc::clone(&bar.shared), std::sync::mpsc::channel());
        let every = Duration::from_millis(1);
        let printing = thread::spawn(move || {
            shared.print_lines(every, every, |line| {
                let _ = told.send(line.to_owned());
            });
        });
        for _ in 0..2 {
            let line = hear.recv().unwrap();
            assert!(line.starts_with("sim, after ") && line.ends_with(" s: 0 runs done, 2 left"), "{line}");
        }
        bar.clear();
        printing.join().expect("it ends with the bar");
    }
}
