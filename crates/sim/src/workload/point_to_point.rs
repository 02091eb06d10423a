//! Point-to-point benchmarks, as the Intel MPI Benchmarks have them.

use crate::Time;
use crate::task::Tag;
use crate::workload::Communicator;

/// The tag of all messages here.
const TAG: Tag = Tag(1);

/// Half the time of a message there and back, `repetitions` times, between this member and `partner`: what pingpong
/// reports. The lower of the two begins.
pub async fn pingpong(group: &Communicator, partner: u32, bytes: u64, repetitions: u32) -> Time {
    let (task, part) = (group.task(), group.task().allocate(bytes));
    let begin = task.now();
    for _ in 0..repetitions {
        if group.me() < partner {
            group.send(partner, TAG, part).await;
            group.receive(partner, TAG, part).await;
        } else {
            group.receive(partner, TAG, part).await;
            group.send(partner, TAG, part).await;
        }
    }
    half_per_repetition(task.now().since(begin), repetitions)
}

fn half_per_repetition(span: Time, repetitions: u32) -> Time {
    Time(span.0 / u64::from(2 * repetitions.max(1)))
}

/// Pingpong of the first half of the group with the second half, all pairs at once (P §5.3: multi-pingpong).
pub async fn multi_pingpong(group: &Communicator, bytes: u64, repetitions: u32) -> Time {
    let half = group.size() / 2;
    let partner = if group.me() < half { group.me() + half } else { group.me() - half };
    pingpong(group, partner, bytes, repetitions).await
}

/// The time per repetition of both partners sending at once.
pub async fn pingping(group: &Communicator, partner: u32, bytes: u64, repetitions: u32) -> Time {
    let task = group.task();
    let (out, into) = (task.allocate(bytes), task.allocate(bytes));
    let begin = task.now();
    for _ in 0..repetitions {
        let outgoing = group.start_send(partner, TAG, out).await;
        group.receive(partner, TAG, into).await;
        task.wait(outgoing).await;
    }
    Time(task.now().since(begin).0 / u64::from(repetitions.max(1)))
}

/// The time per repetition of sending to the next member of the ring and receiving from the one before (IMB Sendrecv).
pub async fn sendrecv(group: &Communicator, bytes: u64, repetitions: u32) -> Time {
    let task = group.task();
    let (out, into) = (task.allocate(bytes), task.allocate(bytes));
    let begin = task.now();
    for _ in 0..repetitions {
        group.exchange(group.after(1), out, group.before(1), into, TAG).await;
    }
    Time(task.now().since(begin).0 / u64::from(repetitions.max(1)))
}

/// The time per repetition of exchanging with both neighbours in the ring (IMB Exchange).
pub async fn exchange(group: &Communicator, bytes: u64, repetitions: u32) -> Time {
    let task = group.task();
    let (out, left, right) = (task.allocate(bytes), task.allocate(bytes), task.allocate(bytes));
    let begin = task.now();
    for _ in 0..repetitions {
        let sends =
            [group.start_send(group.after(1), TAG, out).await, group.start_send(group.before(1), TAG, out).await];
        group.receive(group.before(1), TAG, left).await;
        group.receive(group.after(1), TAG, right).await;
        task.wait_all(sends).await;
    }
    Time(task.now().since(begin).0 / u64::from(repetitions.max(1)))
}

/// How a program calls sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calls {
    /// `MPI_Send` and `MPI_Recv`, one after the other.
    Blocking,
    /// `MPI_Isend` and `MPI_Irecv`, and a wait for all of a window.
    NonBlocking,
}

/// The time per message of a stream of `repetitions` windows (L §6.2.2): the lower of the two partners sends a window
/// of messages back to back, and the other answers with four bytes when it has all of them.
pub async fn stream(
    group: &Communicator,
    partner: u32,
    bytes: u64,
    window: u32,
    calls: Calls,
    repetitions: u32,
) -> Time {
    const ANSWER: Tag = Tag(2);
    let (task, part, answer) = (group.task(), group.task().allocate(bytes), group.task().allocate(4));
    let is_sender = group.me() < partner;
    let begin = task.now();
    for _ in 0..repetitions {
        let mut under_way = Vec::new();
        for _ in 0..window {
            let request = match is_sender {
                true => group.start_send(partner, TAG, part).await,
                false => group.start_receive(partner, TAG, part).await,
            };
            match calls {
                Calls::Blocking => _ = task.wait(request).await,
                Calls::NonBlocking => under_way.push(request),
            }
        }
        task.wait_all(under_way).await;
        if is_sender {
            group.receive(partner, ANSWER, answer).await;
        } else {
            group.send(partner, ANSWER, answer).await;
        }
    }
    Time(task.now().since(begin).0 / u64::from(repetitions.max(1) * window.max(1)))
}
