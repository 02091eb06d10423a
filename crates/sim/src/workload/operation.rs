//! [`Operation`]: every workload by name, and [`Benchmark`], which repeats one and takes its time, as the Intel MPI
//! Benchmarks do.

use std::fmt;

use tidegate_message::Counter;

use crate::Time;
use crate::buffer::Part;
use crate::random::Random;
use crate::task::{Program, Run, Task};
use crate::workload::collective::{
    Allgather, Allreduce, Alltoall, Alltoallv, Barrier, Blocks, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    allgather, allgatherv, allreduce, alltoall, alltoallv, barrier, broadcast, gather, gatherv, reduce, reduce_scatter,
    reduce_then_scatterv, scatter, scatterv,
};
use crate::workload::point_to_point::{self, Calls};
use crate::workload::{Communicator, Neighbours, neighbours};

/// Bytes of a `MPI_FLOAT`, of which the Intel MPI Benchmarks' reductions are.
const ELEMENT: u64 = 4;

/// What processes do again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The first two processes send a message there and back; half the time of a round trip.
    Pingpong,
    /// The first half of the processes with the second half (P §5.3).
    MultiPingpong,
    /// The first two processes send to each other at once.
    Pingping,
    /// The first two processes: a window of messages one way, then a short answer (L §6.2.2); the time of a message.
    Stream {
        /// Messages before the answer.
        window: u32,
        /// How they are sent and received.
        calls: Calls,
    },
    /// Everybody sends to the next in a ring.
    Sendrecv,
    /// Everybody exchanges with both neighbours in a ring.
    Exchange,
    /// All processes with their neighbours: halos, or `MPI_Neighbor_alltoall`.
    Neighbours(Neighbours),
    /// `MPI_Barrier`.
    Barrier(Barrier),
    /// `MPI_Bcast`.
    Broadcast(Broadcast),
    /// `MPI_Reduce`.
    Reduce(Reduce),
    /// `MPI_Allreduce`.
    Allreduce(Allreduce),
    /// `MPI_Reduce_scatter`; the message size is that of each process's whole part, of which each process gets as much
    /// as the others; as many elements of four bytes, to one, where the form is [`ReduceScatter::ReduceThenScatterv`].
    ReduceScatter(ReduceScatter),
    /// `MPI_Gather`.
    Gather(Gather),
    /// `MPI_Gatherv`.
    Gatherv,
    /// `MPI_Scatter`.
    Scatter(Scatter),
    /// `MPI_Scatterv`.
    Scatterv,
    /// `MPI_Allgather`.
    Allgather(Allgather),
    /// `MPI_Allgatherv`.
    Allgatherv(Allgather),
    /// `MPI_Alltoall`.
    Alltoall(Alltoall),
    /// `MPI_Alltoallv`.
    Alltoallv(Alltoallv),
}

/// Where an operation's data lies: as much as the largest of them needs.
#[derive(Clone, Copy, Debug)]
struct Buffers {
    out: Part,
    into: Part,
}

impl Operation {
    /// Blocks that a process sends and receives at most, per process of the group.
    pub(crate) fn blocks(self, size: u32) -> (u64, u64) {
        let all = u64::from(size);
        match self {
            Operation::Alltoall(_) | Operation::Alltoallv(_) => (all, all),
            Operation::Gather(_) | Operation::Gatherv | Operation::Allgather(_) | Operation::Allgatherv(_) => (1, all),
            Operation::Scatter(_) | Operation::Scatterv => (all, 1),
            Operation::Neighbours(neighbours) => (1, neighbours.most(size).into()),
            _ => (1, 1),
        }
    }

    /// About how many messages the processes of a group send in one repetition, all together.
    #[must_use]
    pub fn messages(self, size: u32) -> f64 {
        let (all, rounds) = (f64::from(size), f64::from(size.max(2)).log2());
        match self {
            Operation::Pingpong | Operation::Pingping => 2.0,
            Operation::Stream { window, .. } => f64::from(window),
            Operation::MultiPingpong | Operation::Sendrecv | Operation::Exchange => 2.0 * all,
            Operation::Neighbours(neighbours) => all * f64::from(neighbours.most(size)),
            // Two segments up the tree, and a part down for half of them.
            Operation::ReduceScatter(ReduceScatter::ReduceThenScatterv) => 2.5 * all,
            Operation::Alltoall(_)
            | Operation::Alltoallv(_)
            | Operation::Allgatherv(_)
            | Operation::ReduceScatter(_) => all * all,
            Operation::Barrier(_) | Operation::Allreduce(_) | Operation::Allgather(_) => all * rounds,
            _ => all,
        }
    }

    /// Whether only the first two processes take part.
    fn is_of_a_pair(self) -> bool {
        matches!(self, Operation::Pingpong | Operation::Pingping | Operation::Stream { .. })
    }

    /// Whether a repetition is a round trip, and its time half of that.
    #[must_use]
    pub fn is_there_and_back(self) -> bool {
        matches!(self, Operation::Pingpong | Operation::MultiPingpong)
    }

    /// Whether a member of the group takes part.
    fn includes(self, member: u32) -> bool {
        !self.is_of_a_pair() || member < 2
    }

    async fn once(self, group: &Communicator, bytes: u64, root: u32, data: Buffers) {
        let Buffers { out, into } = data;
        match self {
            Operation::Barrier(form) => barrier(group, form).await,
            Operation::Broadcast(form) => broadcast(group, form, root, into).await,
            Operation::Reduce(form) => reduce(group, form, root, out, into).await,
            Operation::Allreduce(form) => allreduce(group, form, out, into).await,
            Operation::ReduceScatter(ReduceScatter::ReduceThenScatterv) => {
                reduce_then_scatterv(group, out.slice(0, bytes), into, &elements(group, bytes)).await;
            }
            Operation::ReduceScatter(form) => {
                let block = bytes / u64::from(group.size());
                let whole = out.slice(0, block * u64::from(group.size()));
                reduce_scatter(group, form, whole, into, block).await;
            }
            Operation::Gather(form) => gather(group, form, root, out, into, bytes).await,
            Operation::Gatherv => gatherv(group, root, out, into, &counts(group, bytes)).await,
            Operation::Scatter(form) => scatter(group, form, root, out, into, bytes).await,
            Operation::Scatterv => scatterv(group, root, out, into, &counts(group, bytes)).await,
            Operation::Allgather(form) => allgather(group, form, out, into, bytes).await,
            Operation::Allgatherv(form) => allgatherv(group, form, out, into, &counts(group, bytes)).await,
            Operation::Alltoall(form) => alltoall(group, form, out, into, bytes).await,
            Operation::Alltoallv(form) => {
                let counts = counts(group, bytes);
                let blocks = |part| Blocks { part, counts: &counts };
                alltoallv(group, form, blocks(out), blocks(into)).await;
            }
            Operation::Pingpong
            | Operation::MultiPingpong
            | Operation::Pingping
            | Operation::Stream { .. }
            | Operation::Sendrecv
            | Operation::Exchange
            | Operation::Neighbours(_) => unreachable!("these repeat themselves"),
        }
    }

    /// Repeats the operation and returns the time of one repetition.
    async fn repeat(self, group: &Communicator, benchmark: &Benchmark, repetitions: u32, data: Buffers) -> Time {
        let (bytes, task) = (benchmark.bytes, group.task());
        match self {
            Operation::Pingpong => return point_to_point::pingpong(group, 1 - group.me(), bytes, repetitions).await,
            Operation::Pingping => return point_to_point::pingping(group, 1 - group.me(), bytes, repetitions).await,
            Operation::Stream { window, calls } => {
                return point_to_point::stream(group, 1 - group.me(), bytes, window, calls, repetitions).await;
            }
            Operation::MultiPingpong => return point_to_point::multi_pingpong(group, bytes, repetitions).await,
            Operation::Sendrecv => return point_to_point::sendrecv(group, bytes, repetitions).await,
            Operation::Exchange => return point_to_point::exchange(group, bytes, repetitions).await,
            Operation::Neighbours(neighbours) => {
                let others = neighbours.of(group.me(), group.size());
                return neighbours::exchange(group, &others, data.out, data.into, bytes, repetitions).await;
            }
            _ => {}
        }
        let begin = task.now();
        for repetition in 0..repetitions {
            let root = repetition / benchmark.repetitions_per_root.max(1) % group.size();
            self.once(group, bytes, root, data).await;
        }
        Time(task.now().since(begin).0 / u64::from(repetitions.max(1)))
    }
}

/// The bytes of each member where elements of four bytes are divided among them, those left over among the first, as
/// the Intel MPI Benchmarks do.
fn elements(group: &Communicator, bytes: u64) -> Vec<u64> {
    let (elements, size) = (bytes / ELEMENT, u64::from(group.size()));
    (0..size).map(|member| ELEMENT * (elements / size + u64::from(member < elements % size))).collect()
}

fn counts(group: &Communicator, bytes: u64) -> Vec<u64> {
    vec![bytes; group.size() as usize]
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let debug = format!("{self:?}");
        f.write_str(debug.split(['(', ' ']).next().unwrap_or(&debug))
    }
}

/// An operation, repeated. After a barrier come `warm_up` repetitions, another barrier, and the repetitions that count;
/// each process records its mean time per repetition, in microseconds, as the sample `time`, and as `messages` and
/// `delayed` how many messages it sent in them through mailboxes, and how many of these waited for credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// What is repeated.
    pub operation: Operation,
    /// Bytes of each message or block.
    pub bytes: u64,
    /// Repetitions before the clock starts.
    pub warm_up: u32,
    /// Repetitions that count.
    pub repetitions: u32,
    /// How many of the first processes take part; the others wait in a barrier meanwhile. `None`: all.
    pub active: Option<u32>,
    /// After how many repetitions the next process becomes the root of a rooted operation (the Intel benchmarks: after
    /// each).
    pub repetitions_per_root: u32,
}

impl Benchmark {
    /// One repetition after one that does not count, by all processes, with 2 KiB.
    #[must_use]
    pub fn new(operation: Operation) -> Self {
        Benchmark { operation, bytes: 2048, warm_up: 1, repetitions: 1, active: None, repetitions_per_root: 1 }
    }
}

impl Program for Benchmark {
    fn start(&self, task: Task) -> Run {
        Box::pin(repeat(*self, task, false))
    }
}

/// An all-to-all amid a program that sends messages of many lengths: after the warm-up every process sends each other
/// one message of a random length. So each pair begins what counts with credits of its own, whatever the scheme; equal
/// messages alone would leave all pairs with the same, and either all of the next messages stall or none.
#[derive(Clone, Copy, Debug)]
pub struct Mixed(pub Benchmark);

impl Program for Mixed {
    fn start(&self, task: Task) -> Run {
        Box::pin(repeat(self.0, task, true))
    }
}

/// The random stream that lengths come from, one number for each pair.
const LENGTHS: u64 = 0x6d69_7865;

/// A message of a random length, up to a block, from everybody to everybody.
async fn mix(group: &Communicator, bytes: u64, data: Buffers) {
    let length = |from: u32, to: u32| {
        let pair = u64::from(from) << 32 | u64::from(to);
        1 + Random::stream(LENGTHS, pair).below(bytes.max(1))
    };
    let (me, all) = (group.me(), 0..group.size());
    let leaving: Vec<u64> = all.clone().map(|to| length(me, to)).collect();
    let coming: Vec<u64> = all.map(|from| length(from, me)).collect();
    let (out, into) = (Blocks { part: data.out, counts: &leaving }, Blocks { part: data.into, counts: &coming });
    alltoallv(group, Alltoallv::Plain, out, into).await;
}

async fn repeat(benchmark: Benchmark, task: Task, is_mixed: bool) {
    let world = Communicator::world(&task);
    let active = benchmark.active.unwrap_or(task.size()).min(task.size());
    barrier(&world, Barrier::Dissemination).await;
    if let Some(group) = Communicator::range(&task, 1, 0, active) {
        let operation = benchmark.operation;
        if operation.includes(group.me()) {
            let (out, into) = operation.blocks(group.size());
            let data =
                Buffers { out: task.allocate(out * benchmark.bytes), into: task.allocate(into * benchmark.bytes) };
            if benchmark.warm_up > 0 {
                operation.repeat(&group, &benchmark, benchmark.warm_up, data).await;
                if is_mixed {
                    mix(&group, benchmark.bytes, data).await;
                }
                if !operation.is_of_a_pair() {
                    barrier(&group, Barrier::Dissemination).await;
                }
            }
            let counters = [("messages", Counter::MessagesEager), ("delayed", Counter::SendsDelayed)];
            let mut before = [0; 2];
            for (before, (_, counter)) in before.iter_mut().zip(counters) {
                *before = task.counter(counter).await;
            }
            let time = operation.repeat(&group, &benchmark, benchmark.repetitions, data).await;
            task.record("time", 0, time.microseconds());
            for (before, (label, counter)) in before.into_iter().zip(counters) {
                task.record(label, 0, (task.counter(counter).await - before) as f64);
            }
        }
    }
    barrier(&world, Barrier::Dissemination).await;
}
