//! [`Progress`]: how runs get on, told to whatever shows it.

use std::time::Duration;

use tidegate_cli::progress::{Bar, Source, duration};
use tidegate_link::log::print_line;

/// Told how runs get on, from any thread.
pub trait Progress: Sync {
    /// `runs` more runs will follow, in addition to those expected before.
    fn expect(&self, runs: usize);
    /// The first of these runs begins, `jobs` at the same time. `time` is about how long all of them take on a usual
    /// machine, those left out that were kept.
    fn begin(&self, _runs: usize, _jobs: usize, _time: Duration) {}
    /// One of these runs has ended, or was found among those that are kept.
    fn finish(&self, run: &str, source: Source);
    /// How long the runs that are left will take, if that can be told; said again whenever one has ended.
    fn remaining(&self, time: Option<Duration>);
}

impl Progress for Bar {
    fn expect(&self, runs: usize) {
        Bar::expect(self, runs);
    }

    fn begin(&self, runs: usize, jobs: usize, time: Duration) {
        let time = time.max(Duration::from_secs(1));
        let (runs, time) = (if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }, duration(time));
        self.suspend(|| print_line(&format!("{runs} to do, {jobs} at the same time: about {time}")));
    }

    fn finish(&self, run: &str, source: Source) {
        Bar::finish(self, run, source);
    }

    fn remaining(&self, time: Option<Duration>) {
        Bar::remaining(self, time);
    }
}

/// Reports no progress.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn expect(&self, _runs: usize) {}
    fn finish(&self, _run: &str, _source: Source) {}
    fn remaining(&self, _time: Option<Duration>) {}
}
