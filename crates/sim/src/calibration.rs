//! The four times of P that the `extoll` parameters are calibrated to, and how near they come.
//!
//! P gives few absolute times of its machine: multi-pingpong at 1 and at 14 hops, and the all-to-all of 256 and of
//! 1,024 processes (§5.3), all of 2 KiB and without flow control. What they determine:
//!
//! * The two pingpongs: the time per hop, and that of a packet in a process, of which the sender is the slower: 37
//!   packets one after the other make up the message. The difference of 13 hops shows in full, so neither links nor
//!   network interfaces are busy, and what a hop costs is its latency.
//! * The all-to-alls, in which a process looks at its mailbox once with every send, as MPI libraries do: an exchange
//!   with one other process takes 207 µs among 256 and 272 µs among 1,024, where a pingpong takes 50. Links that
//!   explained it would be busy in the multi-pingpong, too. So processes take longer for a packet, the more of them
//!   there are: [`retrieve_far_packet`](crate::Cost::retrieve_far_packet), once more peers have sent data than
//!   [`near_peers`](crate::Cost::near_peers). P does not say what takes so long. That it does not depend on how many
//!   packets *wait* follows from three things that P shows: the same all-to-all takes as long with the Intel
//!   benchmarks (figure 23's axis ends at 400 ms), though there receives are posted before; flow control never makes
//!   it faster, which it would by keeping mailboxes short; and overhead falls at once where a message fits into the
//!   data region (figure 6). Up to November 2026 these pages had the other assumption: of those three none came out.
//! * Not determined: the rate of a link, from some 1.2 GB/s on. Below 2 GB/s the sends of an all-to-all come to be
//!   limited by the links, and credits make it faster by keeping them clear; P saw nothing of the sort, so it is 2
//!   GB/s.
//!
//! `cargo run --release -p tidegate-sim --example calibrate` prints what came out.

use crate::config::{SimulationConfig, SimulationError};
use crate::flight::NodeId;
use crate::simulation::Simulation;
use crate::task::Task;
use crate::topology::Topology;
use crate::workload::collective::{Alltoall, Barrier, alltoall, barrier};
use crate::workload::{Communicator, point_to_point};

/// A time that P gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// 16 + 16 processes on neighbouring nodes of an 8×8 mesh, half of a round trip.
    PingpongNear,
    /// The same, 14 hops apart.
    PingpongFar,
    /// All-to-all of 256 processes on a 4×4 mesh.
    Alltoall256,
    /// All-to-all of 1,024 processes on a 4×4×4 mesh.
    Alltoall1024,
}

/// Bytes of every message.
const BYTES: u64 = 2048;

impl Anchor {
    /// All of them.
    pub const ALL: [Anchor; 4] = [Anchor::PingpongNear, Anchor::PingpongFar, Anchor::Alltoall256, Anchor::Alltoall1024];

    /// What it is, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Anchor::PingpongNear => "multi-pingpong, 1 hop",
            Anchor::PingpongFar => "multi-pingpong, 14 hops",
            Anchor::Alltoall256 => "all-to-all, 256 processes",
            Anchor::Alltoall1024 => "all-to-all, 1024 processes",
        }
    }

    /// The paper's time, in microseconds.
    #[must_use]
    pub fn paper_microseconds(self) -> f64 {
        match self {
            Anchor::PingpongNear => 50.04,
            Anchor::PingpongFar => 51.17,
            Anchor::Alltoall256 => 52_908.41,
            Anchor::Alltoall1024 => 278_515.08,
        }
    }

    /// The run that measures it, on the machine that `extoll` describes.
    fn config(self) -> SimulationConfig {
        let mesh = |sizes: &[u16]| Topology::mesh(sizes).expect("a legal mesh");
        let pair = |far: u32| Some(vec![NodeId(0), NodeId(far)]);
        match self {
            Anchor::PingpongNear => SimulationConfig { nodes: pair(1), ..SimulationConfig::extoll(mesh(&[8, 8])) },
            Anchor::PingpongFar => SimulationConfig { nodes: pair(63), ..SimulationConfig::extoll(mesh(&[8, 8])) },
            Anchor::Alltoall256 => SimulationConfig::extoll(mesh(&[4, 4])),
            Anchor::Alltoall1024 => SimulationConfig::extoll(mesh(&[4, 4, 4])),
        }
    }

    /// The simulated time, in microseconds: the mean over processes, after a change of the machine's parameters.
    ///
    /// # Errors
    /// If the run fails.
    pub fn measure_with(self, change: impl Fn(&mut SimulationConfig)) -> Result<f64, SimulationError> {
        let mut config = self.config();
        change(&mut config);
        let outcome = match self {
            Anchor::PingpongNear | Anchor::PingpongFar => Simulation::new(config, &repeat_pingpong)?.run()?,
            Anchor::Alltoall256 | Anchor::Alltoall1024 => Simulation::new(config, &one_alltoall)?.run()?,
        };
        let times: Vec<f64> = outcome.samples_of("time").map(|sample| sample.value).collect();
        Ok(times.iter().sum::<f64>() / times.len() as f64)
    }

    /// The simulated time, in microseconds.
    ///
    /// # Errors
    /// If the run fails.
    pub fn measure(self) -> Result<f64, SimulationError> {
        self.measure_with(|_| {})
    }
}

async fn repeat_pingpong(task: Task) {
    let world = Communicator::world(&task);
    barrier(&world, Barrier::Dissemination).await;
    let time = point_to_point::multi_pingpong(&world, BYTES, 50).await;
    task.record("time", 0, time.microseconds());
}

/// The second of two: in the first one a process meets its peers.
async fn one_alltoall(task: Task) {
    let world = Communicator::world(&task);
    let (out, into) = (task.allocate(BYTES * u64::from(task.size())), task.allocate(BYTES * u64::from(task.size())));
    alltoall(&world, Alltoall::Plain, out, into, BYTES).await;
    barrier(&world, Barrier::Dissemination).await;
    let begin = task.now();
    alltoall(&world, Alltoall::Plain, out, into, BYTES).await;
    task.record("time", 0, task.now().since(begin).microseconds());
}
