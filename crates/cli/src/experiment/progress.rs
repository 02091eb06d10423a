//! A progress bar on standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use tidegate_sim::experiment::Progress;

/// Counts runs. Shows nothing where standard error is no terminal.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar named after what is run.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::new(0).with_prefix(name.to_owned());
        let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} runs, {elapsed} ({eta} to go)  {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Bar(bar)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn expect(&self, runs: usize) {
        self.0.inc_length(runs as u64);
        self.0.tick();
    }

    fn finish(&self, run: &str) {
        self.0.set_message(run.to_owned());
        self.0.inc(1);
    }
}
