//! [`Alone`]: what one process measures by itself: copies, and what credits cost beside the packets.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use tidegate_flow::SchemeName;
use tidegate_message::Counter;

use super::Effort;
use super::end::{End, Trouble};

/// Bytes of a message: 37 packets.
const BYTES: usize = 2048;
/// Packets of such a message.
pub const PACKETS: f64 = 37.0;
/// Bytes that are copied.
const COPIED: usize = 1 << 20;

/// Times in nanoseconds, one of each round.
#[derive(Clone, Debug)]
pub struct Alone {
    /// Of a copy of [`Alone::COPIED`] bytes.
    pub copy: Vec<f64>,
    /// Of adding so many bytes, as numbers of 64 bits, to others.
    pub combine: Vec<f64>,
    /// Of a message of 37 packets from one endpoint of a thread to another, without flow control.
    pub none: Vec<f64>,
    /// With many slots.
    pub many: [Credits; 2],
    /// With few slots.
    pub few: [Credits; 2],
}

/// What messages take under a scheme with credits; `static` first, then `dynamic`.
#[derive(Clone, Debug)]
pub struct Credits {
    /// Nanoseconds of a message.
    pub times: Vec<f64>,
    /// Control packets of each.
    pub control_packets: f64,
}

impl Alone {
    /// Bytes that are copied at once.
    pub const COPIED: usize = COPIED;

    /// Measures all of it.
    pub fn measure(folder: &Path, effort: Effort) -> Result<Self, Trouble> {
        let credits = |slots: u32| -> Result<[Credits; 2], Trouble> {
            Ok([
                messages(SchemeName::Static, slots, folder, effort)?,
                messages(SchemeName::Dynamic, slots, folder, effort)?,
            ])
        };
        Ok(Alone {
            copy: copy(effort),
            combine: combine(effort),
            none: messages(SchemeName::None, 1024, folder, effort)?.times,
            many: credits(1024)?,
            few: credits(16)?,
        })
    }
}

fn copy(effort: Effort) -> Vec<f64> {
    let (from, mut into) = (vec![1_u8; COPIED], vec![0_u8; COPIED]);
    rounds(effort, || black_box(&mut into).copy_from_slice(black_box(&from)))
}

fn combine(effort: Effort) -> Vec<f64> {
    let (from, mut into) = (vec![1.0_f64; COPIED / 8], vec![0.0_f64; COPIED / 8]);
    rounds(effort, || black_box(&mut into).iter_mut().zip(black_box(&from)).for_each(|(sum, term)| *sum += term))
}

/// Nanoseconds of each round, the first left out.
fn rounds(effort: Effort, mut work: impl FnMut()) -> Vec<f64> {
    let time = |_: usize| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_nanos() as f64
    };
    let begun = Instant::now();
    (0..).take_while(|round| !effort.is_done(*round, begun)).map(time).skip(1).collect()
}

/// Messages between two endpoints of this thread, one after the other, so that nobody waits and only work counts.
fn messages(scheme: SchemeName, slots: u32, folder: &Path, effort: Effort) -> Result<Credits, Trouble> {
    let (mut sender, mut receiver) = (End::new(scheme, slots, folder)?, End::new(scheme, slots, folder)?);
    sender.connect(&receiver.address())?;
    receiver.connect(&sender.address())?;
    let mut times = Vec::new();
    let control = |sender: &End, receiver: &End| {
        let counters = [Counter::CreditPackets, Counter::ReturnRequests, Counter::ReturnResponses];
        counters.iter().map(|&counter| sender.counter(counter) + receiver.counter(counter)).sum::<u64>()
    };
    let (mut before, mut count) = (0, 0);
    let begun = Instant::now();
    for round in (0..).take_while(|round| !effort.is_done(*round, begun)) {
        let begin = Instant::now();
        for _ in 0..effort.messages {
            receiver.post(BYTES)?;
            sender.send(BYTES)?;
            while sender.ended().0 == 0 || receiver.ended().1 == 0 {
                receiver.turn()?;
                sender.turn()?;
            }
            sender.wait(1, 0)?;
            receiver.wait(0, 1)?;
        }
        if round == 0 {
            before = control(&sender, &receiver);
        } else {
            times.push(begin.elapsed().as_nanos() as f64 / effort.messages as f64);
            count += effort.messages;
        }
    }
    let control_packets = (control(&sender, &receiver) - before) as f64 / count.max(1) as f64;
    Ok(Credits { times, control_packets })
}
