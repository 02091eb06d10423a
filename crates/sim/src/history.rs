//! [`History`]: what processes have exchanged before a run begins.
//!
//! A paper reports the mean of many repetitions. Under `static` the credits that a pair of processes has at the
//! beginning of a repetition depend on all packets that it has exchanged before, so one repetition by new processes is
//! not such a mean: every pair stands at the same point. With a history every pair stands at another one, as far into
//! the job's life as chance has it, and one repetition shows what many would on average.

use crate::flight::Rank;
use crate::random::Random;

/// What every two processes have exchanged before the run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// Nothing.
    #[default]
    Nothing,
    /// Messages of so many packets, all of which have been received: each process has sent some number of them to each
    /// other one, drawn with the run's seed for each direction by itself.
    Messages {
        /// Data packets of each message.
        packets: u32,
    },
}

/// The random stream of the first pair of ranks; the streams of the other pairs follow. It lies behind those of noise.
const STREAMS: u64 = 1 << 33;
/// Messages are fewer than this. It is so large that every remainder of their packets is as likely as the others.
const MESSAGES_END: u64 = 1 << 30;

impl History {
    /// How many data packets `sender` has sent to `receiver`.
    pub(crate) fn packets(self, seed: u64, sender: Rank, receiver: Rank) -> u64 {
        match self {
            History::Nothing => 0,
            History::Messages { packets } => {
                let pair = u64::from(sender.0) << 20 | u64::from(receiver.0);
                Random::stream(seed, STREAMS + pair).below(MESSAGES_END) * u64::from(packets)
            }
        }
    }
}
