//! Two processes that measure together: one asks by lines over a pipe, the other answers ([`answer`]).
//!
//! What one of them does while the other must not look is kept apart by these lines; what is timed has none.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tidegate_flow::SchemeName;
use tidegate_link::Address;

use super::Effort;
use super::end::{End, Trouble};

/// Slots of each mailbox: a burst lies in it as a whole.
const SLOTS: u32 = 4096;
/// Messages of a burst that nobody takes meanwhile.
const BURST: usize = 64;

/// An exchange that is measured, and simulated afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Half a round trip of so many bytes.
    Pingpong {
        /// Of a message.
        bytes: usize,
    },
    /// Messages back to back, a window at a time; the receiver answers each window.
    Stream {
        /// Of a message.
        bytes: usize,
        /// Messages.
        window: usize,
    },
}

impl Exchange {
    /// Those that are measured.
    pub const ALL: [Exchange; 11] = [
        Exchange::Pingpong { bytes: 0 },
        Exchange::Pingpong { bytes: 64 },
        Exchange::Pingpong { bytes: 512 },
        Exchange::Pingpong { bytes: 2048 },
        Exchange::Pingpong { bytes: 16 << 10 },
        Exchange::Pingpong { bytes: 64 << 10 },
        Exchange::Pingpong { bytes: 256 << 10 },
        Exchange::Pingpong { bytes: 1 << 20 },
        Exchange::Stream { bytes: 8, window: 64 },
        Exchange::Stream { bytes: 2048, window: 64 },
        Exchange::Stream { bytes: 256 << 10, window: 8 },
    ];

    /// As people call it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Exchange::Pingpong { bytes } => format!("ping-pong, {bytes} B"),
            Exchange::Stream { bytes, window } => format!("stream, {window} x {bytes} B"),
        }
    }
}

/// This process and the other one.
pub struct Pair {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    end: End,
    effort: Effort,
    /// The processors that this process had before it was bound to one.
    before: Option<CpuSet>,
    /// Whether each of the two has a processor of its own.
    pub has_two_processors: bool,
}

/// The two first processors that this process may use; with one alone, twice the same.
fn processors() -> Option<(CpuSet, [usize; 2])> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut each = (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor));
    let first = each.next()?;
    Some((allowed, [first, each.next().unwrap_or(first)]))
}

/// Binds this process to a processor; where the system forbids that it stays free.
fn bind(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

impl Pair {
    /// Starts the other process; segments lie in `folder`.
    pub fn start(folder: &Path, effort: Effort) -> Result<Self, Trouble> {
        let trouble = |error: std::io::Error| Trouble(format!("the second process does not start: {error}"));
        let mut end = End::new(SchemeName::None, SLOTS, folder)?;
        let found = processors();
        let (first, second) = found.as_ref().map_or((0, 0), |(_, two)| (two[0], two[1]));
        let mut child = Command::new(std::env::current_exe().map_err(trouble)?)
            .args(["calibrate", "--answer", &hexadecimal(&end.address().to_bytes()), "--folder"])
            .arg(folder)
            .args(["--processor", &second.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(trouble)?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else { unreachable!("both are pipes") };
        if found.is_some() {
            bind(first);
        }
        let before = found.map(|(before, _)| before);
        let mut answers = BufReader::new(answers);
        let address = line(&mut answers)?;
        let address = address_of(&address)?;
        end.connect(&address)?;
        Ok(Pair { child, orders, answers, end, effort, before, has_two_processors: first != second })
    }

    fn order(&mut self, order: &str) -> Result<(), Trouble> {
        writeln!(self.orders, "{order}").and_then(|()| self.orders.flush()).map_err(gone)
    }

    fn heard(&mut self) -> Result<Vec<f64>, Trouble> {
        let answer = line(&mut self.answers)?;
        let numbers: Option<Vec<f64>> = answer.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers.ok_or_else(|| Trouble(format!("the other process says {answer:?}")))
    }

    /// Nanoseconds per message of so many bytes, in each round: of the send, of the receive that is posted before its
    /// packets are looked at, and from then on until it is complete.
    pub fn burst(&mut self, bytes: usize) -> Result<[Vec<f64>; 3], Trouble> {
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        let (effort, begun) = (self.effort, Instant::now());
        for round in (0..).take_while(|round| !effort.is_done(*round, begun)) {
            let begin = Instant::now();
            for _ in 0..BURST {
                self.end.send(bytes)?;
            }
            let sending = begin.elapsed().as_nanos() as f64 / BURST as f64;
            self.order(&format!("burst {bytes}"))?;
            let heard = self.heard()?;
            self.end.wait(BURST, 0)?;
            if let ([posting, taking], 1..) = (heard.as_slice(), round) {
                found[0].push(sending);
                found[1].push(*posting);
                found[2].push(*taking);
            }
        }
        Ok(found)
    }

    /// Nanoseconds that an exchange takes: half a round trip, or each message of a window.
    pub fn exchange(&mut self, exchange: Exchange) -> Result<Vec<f64>, Trouble> {
        let (bytes, window) = match exchange {
            Exchange::Pingpong { bytes } => (bytes, 1),
            Exchange::Stream { bytes, window } => (bytes, window),
        };
        // Long messages take long.
        let count = (self.effort.messages / window).min((64 << 20) / (bytes.max(1) * window)).max(4);
        let is_pingpong = matches!(exchange, Exchange::Pingpong { .. });
        let answer = if is_pingpong { bytes } else { 4 };
        let mut found = Vec::new();
        let (effort, begun) = (self.effort, Instant::now());
        for round in (0..).take_while(|round| !effort.is_done(*round, begun)) {
            self.order(&format!("exchange {bytes} {window} {answer} {count}"))?;
            self.heard()?;
            let begin = Instant::now();
            for _ in 0..count {
                self.end.post(answer)?;
                for _ in 0..window {
                    self.end.send(bytes)?;
                }
                self.end.wait(window, 1)?;
            }
            let each = begin.elapsed().as_nanos() as f64 / count as f64;
            if round > 0 {
                found.push(if is_pingpong { each / 2.0 } else { each / window as f64 });
            }
            self.heard()?;
        }
        Ok(found)
    }

    /// Nanoseconds of a look into an empty mailbox.
    pub fn poll(&mut self) -> Result<Vec<f64>, Trouble> {
        let count = 50 * self.effort.messages;
        let mut found = Vec::new();
        let (effort, begun) = (self.effort, Instant::now());
        for _ in (1..).take_while(|round| !effort.is_done(*round, begun)) {
            let begin = Instant::now();
            for _ in 0..count {
                self.end.turn()?;
            }
            found.push(begin.elapsed().as_nanos() as f64 / count as f64);
        }
        Ok(found)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.order("end");
        // A process that does not answer any more would be waited for without end.
        if self.heard().is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The other process: does what it is told, until it is told to end or the first process is gone.
pub fn answer(address: &str, folder: PathBuf, processor: usize) -> Result<(), Trouble> {
    bind(processor);
    let mut end = End::new(SchemeName::None, SLOTS, &folder)?;
    let first = address_of(address)?;
    say(&hexadecimal(&end.address().to_bytes()))?;
    end.connect(&first)?;
    let mut orders = BufReader::new(std::io::stdin());
    loop {
        let order = line(&mut orders)?;
        let words: Vec<&str> = order.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
        match words.first() {
            Some(&"burst") => answer_burst(&mut end, number(1))?,
            Some(&"exchange") => answer_exchange(&mut end, number(1), number(2), number(3), number(4))?,
            _ => return say("0"),
        }
    }
}

fn answer_burst(end: &mut End, bytes: usize) -> Result<(), Trouble> {
    let begin = Instant::now();
    for _ in 0..BURST {
        end.post(bytes)?;
    }
    let posted = begin.elapsed();
    end.wait(0, BURST)?;
    let taken = begin.elapsed() - posted;
    let each = |span: std::time::Duration| span.as_nanos() as f64 / BURST as f64;
    say(&format!("{} {}", each(posted), each(taken)))
}

fn answer_exchange(end: &mut End, bytes: usize, window: usize, answer: usize, count: usize) -> Result<(), Trouble> {
    let post = |end: &mut End| (0..window).try_for_each(|_| end.post(bytes));
    post(end)?;
    say("0")?;
    for round in 0..count {
        end.wait(0, window)?;
        // The receives of the next window are there before the answer that lets it begin.
        if round + 1 < count {
            post(end)?;
        }
        end.send(answer)?;
    }
    end.wait(count, 0)?;
    say("0")
}

fn say(text: &str) -> Result<(), Trouble> {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(gone)
}

fn line(from: &mut impl BufRead) -> Result<String, Trouble> {
    let mut text = String::new();
    match from.read_line(&mut text) {
        Ok(0) => Err(Trouble("the other process has ended".to_owned())),
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) => Err(gone(error)),
    }
}

fn gone(error: std::io::Error) -> Trouble {
    Trouble(format!("the other process is not heard any more: {error}"))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn address_of(text: &str) -> Result<Address, Trouble> {
    let byte = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    let address = bytes.and_then(|bytes| Address::from_bytes(&bytes));
    address.ok_or_else(|| Trouble(format!("{text:?} is no address")))
}
