//! [`Sampling`]: a thread of `tidegate run` that reads the counter pages of the program at an interval into a
//! recording.
//!
//! It only reads pages, files in memory that the processes write anyway, so they do not notice but for the processor's
//! time that it takes: some 10 µs a look and rank. Where a look takes long, as with a thousand pages, looks become
//! rarer, so that the thread takes at most `SHARE_MOST` of a processor.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tidegate_link::{EndpointStats, stats};
use tidegate_message::Counter;

use super::facts::{End, Failure};
use super::folder::Recorder;
use super::page;
use super::rows::Last;
use super::{RECORDING_SCHEMA, Values};
use crate::process::processor_time;

/// The thread takes at most this share of a processor: one in so many.
const SHARE_MOST: u32 = 50;
/// What is no counter is written at most this often while the program runs, and at its end.
const LAST_INTERVAL: Duration = Duration::from_secs(2);

/// What is known of a program besides its pages when it has ended.
#[derive(Debug)]
pub struct Left {
    /// Its exit code, as a shell sees it.
    pub exit_code: u8,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How it failed, if it did.
    pub failure: Failure,
    /// What processes said.
    pub troubles: Vec<String>,
    /// Who held up whom, if anybody did.
    pub held_up: Option<String>,
}

/// A recording under way.
#[derive(Debug)]
pub struct Sampling {
    stop: Sender<()>,
    thread: JoinHandle<Sampler>,
    start: Instant,
}

impl Sampling {
    /// Begins to read the pages in the folder `pages`.
    #[must_use]
    pub fn start(recorder: Recorder, pages: &Path) -> Self {
        let (stop, stopped) = mpsc::channel();
        let start = Instant::now();
        let mut sampler = Sampler {
            recorder,
            pages: pages.to_owned(),
            start,
            numbers: HashMap::new(),
            values: Vec::new(),
            looks: 0,
            looks_time: Duration::ZERO,
            wrote_last: start,
            stopped: None,
        };
        let thread = thread::spawn(move || {
            let mut pause = sampler.pause(Duration::ZERO);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let cost = sampler.look();
                pause = sampler.pause(cost);
            }
            sampler
        });
        Sampling { stop, thread, start }
    }

    /// Ends the recording with the pages as the processes left them. Returns what went wrong, if anything did.
    pub fn finish(self, mut pages: Vec<EndpointStats>, left: Left) -> Option<String> {
        let wall_time = self.start.elapsed();
        drop(self.stop);
        let Ok(mut sampler) = self.thread.join() else { return Some("the thread that records panicked".to_owned()) };
        page::until_now(&mut pages);
        sampler.record(&pages, Some(left.held_up));
        let end = End {
            exit_code: left.exit_code,
            signal: left.signal,
            failure: left.failure,
            wall_time_s: wall_time.as_secs_f64(),
            interval_ns: sampler.recorder.interval_ns(),
            looks: sampler.looks,
            looks_ns: sampler.looks_time.as_nanos() as u64,
            stopped: sampler.stopped.clone(),
            troubles: left.troubles,
        };
        let written = sampler.recorder.finish(end).map_err(|error| error.to_string());
        // What went wrong first explains the rest.
        sampler.stopped.or(written.err())
    }

    /// Forgets the recording: the program did not start.
    pub fn discard(self) {
        drop(self.stop);
        if let Ok(sampler) = self.thread.join() {
            sampler.recorder.discard();
        }
    }
}

#[derive(Debug)]
struct Sampler {
    recorder: Recorder,
    pages: PathBuf,
    start: Instant,
    /// The number of each endpoint.
    numbers: HashMap<page::Key, usize>,
    /// By endpoint.
    values: Vec<Values>,
    looks: u64,
    looks_time: Duration,
    wrote_last: Instant,
    /// Why nothing is recorded any more.
    stopped: Option<String>,
}

impl Sampler {
    /// How long to wait after a look that cost so much.
    fn pause(&self, cost: Duration) -> Duration {
        Duration::from_nanos(self.recorder.interval_ns()).max(cost * SHARE_MOST)
    }

    /// Takes a sample. Returns the processor's time that it took.
    fn look(&mut self) -> Duration {
        let begin = processor_time();
        // A page that is being made, or a folder that goes away, is met again at the next look, or at the end.
        if let Ok(mut pages) = stats::read_dir(&self.pages) {
            page::until_now(&mut pages.read);
            self.record(&pages.read, None);
        }
        let cost = processor_time().saturating_sub(begin);
        self.looks += 1;
        self.looks_time += cost;
        cost
    }

    /// `end`: who held up whom at the end, if this is it.
    fn record(&mut self, pages: &[EndpointStats], end: Option<Option<String>>) {
        if pages.is_empty() || self.stopped.is_some() {
            return;
        }
        if let Err(error) = self.try_record(pages, end) {
            let after = self.start.elapsed().as_secs_f64();
            self.stopped = Some(format!("after {after:.1} s nothing could be written any more: {error}"));
        }
    }

    fn try_record(&mut self, pages: &[EndpointStats], end: Option<Option<String>>) -> std::io::Result<()> {
        for page in pages {
            let number = match self.numbers.get(&page::key(page)) {
                Some(number) => *number,
                None => {
                    self.recorder.add_endpoint(&page::facts(page))?;
                    self.values.push([0; Counter::COUNT]);
                    self.numbers.insert(page::key(page), self.values.len() - 1);
                    self.values.len() - 1
                }
            };
            self.values[number] = page::values(page);
        }
        let time_ns = self.start.elapsed().as_nanos() as u64;
        self.recorder.add_sample(time_ns, &self.values)?;
        if end.is_none() && self.wrote_last.elapsed() < LAST_INTERVAL {
            return Ok(());
        }
        let begin = Instant::now();
        let held_up = end.unwrap_or_else(|| page::held_up(pages));
        let mut last = Last { schema: RECORDING_SCHEMA.to_owned(), at_ns: time_ns, endpoints: Vec::new(), held_up };
        last.endpoints.resize_with(self.values.len(), Default::default);
        pages.iter().for_each(|page| last.endpoints[self.numbers[&page::key(page)]] = page::rows(page));
        self.recorder.write_last(&last)?;
        // A large file is written so rarely that it stays within the share.
        self.wrote_last = Instant::now() + (begin.elapsed() * SHARE_MOST).saturating_sub(LAST_INTERVAL);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::folder::tests::facts;
    use crate::recording::folder::{read_facts, read_last};
    use crate::recording::writer::Bounds;

    #[test]
    fn the_end_is_recorded_as_it_is_told() {
        let place = tempfile::tempdir().unwrap();
        let (folder, pages) = (place.path().join("recording"), place.path());
        let recorder = Recorder::create(&folder, facts(), Bounds { bytes: 1 << 20, samples: 100 }).unwrap();
        let left = Left {
            exit_code: 7,
            signal: Some(9),
            failure: Failure { ends: vec!["it ended".to_owned()], ..Failure::default() },
            troubles: vec!["t".to_owned()],
            held_up: Some("rank 1 waits".to_owned()),
        };
        let page = EndpointStats::blank(1, Some(0), Some(1));
        assert_eq!(Sampling::start(recorder, pages).finish(vec![page], left), None);
        assert_eq!(read_last(&folder).unwrap().held_up.as_deref(), Some("rank 1 waits"));
        let end = read_facts(&folder).unwrap().end.unwrap();
        assert_eq!((end.exit_code, end.signal, end.troubles), (7, Some(9), vec!["t".to_owned()]));
        assert_eq!(end.failure.ends, ["it ended"]);
    }
}
