//! Receive memory that had no room, and receive memory that nobody used.

use tidegate_message::Counter;

use super::{Evidence, Point, SHARE_MATTERS, bytes, names, of_job, of_process, option_bytes, sends, share, time};
use crate::recording::view::{Process, View};

/// The name of a point: receivers had no room.
pub const NO_ROOM: &str = "receive_memory";
/// And: less would do.
pub const UNUSED: &str = "memory_unused";
/// What an unmatched message costs besides its bytes, at most.
const ENVELOPE_BYTES: u64 = 256;
/// The longest message that goes through the mailbox, and the longest that hosts carry whole, as defaults have it.
const EAGER_BYTES: u64 = 2 << 10;
const CARRIED_BYTES: u64 = 32 << 10;
/// A message that costs more than this part of a window is announced, not sent.
const PARTS_OF_WINDOW: u64 = 4;
/// Less than this is not worth a change.
const WORTH_BYTES: u64 = 4 << 20;

/// Receivers had no room for messages that no receive waited for.
pub fn no_room(run: &View) -> Option<Point> {
    let (at, longest) = run.most(Counter::PressureNanoseconds)?;
    let deferred = run.job(Counter::SendsDeferred);
    if deferred == 0 || share(run, longest) < SHARE_MATTERS {
        return None;
    }
    let receivers = run.processes.iter().filter(|process| process.get(Counter::EnvelopesDropped) > 0);
    let receivers: Vec<&str> = receivers.map(|process| process.label.as_str()).collect();
    let receivers = if receivers.is_empty() { vec![run.processes[at].label.as_str()] } else { receivers };
    let bound = run.most(Counter::ReceiveBound).map_or(0, |(_, bytes)| bytes);
    let amount = deferred_bytes(run);
    // A sender that alone needs it gets about a quarter of what is free, so four times as much holds what was deferred.
    let enough = bound.saturating_add(amount.saturating_mul(4));
    let wanted = enough.min(bound.saturating_mul(2)).max(bound + 1);
    let option = format!("--rx-memory {}", option_bytes(wanted));
    let measure = match enough <= bound.saturating_mul(2) {
        true => format!("what waited was about {} in all, so {option} should hold it", bytes(amount)),
        false => format!(
            "what waited was about {} in all; {option} is twice the bound, and lets half as far ahead as the counters tell \
             would be of use",
            bytes(amount)
        ),
    };
    let text = format!(
        "{} stayed with their senders because {} had no room for what nobody had received yet: {} under pressure for {} ({} of the run). Receiving \
         earlier helps most, as memory only lets senders run further ahead; where they have to, {measure}.",
        sends(deferred),
        names(receivers.into_iter()),
        run.processes[at].label,
        time(longest),
        super::percent(share(run, longest)),
    );
    let evidence = vec![
        of_job(run, Counter::SendsDeferred),
        of_process(run, at, Counter::PressureNanoseconds),
        of_process(run, at, Counter::ReceivePeak),
        of_process(run, at, Counter::ReceiveBound),
        of_process(run, at, Counter::EnvelopesDropped),
    ];
    let headline = format!(
        "{} had no room for what it had not received yet, for {} of the time ({})",
        run.processes[at].label,
        super::percent(share(run, longest)),
        full_room(run, at),
    );
    Some(Point { id: NO_ROOM, headline, text, options: vec![option], evidence })
}

/// Which room of a process was full: its bound, or, where that was not reached, the shares of its senders.
pub fn full_room(run: &View, process: usize) -> String {
    let of = |counter| run.processes[process].get(counter);
    let (peak, bound) = (of(Counter::ReceivePeak), of(Counter::ReceiveBound));
    match peak + peak / 8 >= bound {
        true => format!("its bound of {} was full", bytes(bound)),
        false => {
            format!("shares of {} were full; {} of {} used", bytes(of(Counter::WindowBytes)), bytes(peak), bytes(bound))
        }
    }
}

/// About how many bytes the deferred sends had: as many as the messages of their senders in the mean.
fn deferred_bytes(run: &View) -> u64 {
    let of = |process: &Process| {
        let mean = process.get(Counter::BytesSent) / process.messages().max(1);
        process.get(Counter::SendsDeferred).saturating_mul(mean + ENVELOPE_BYTES)
    };
    run.processes.iter().map(of).fold(0, u64::saturating_add)
}

/// Much less receive memory would have done as well: a bound under which no send of this run would have been deferred.
pub fn unused(run: &View) -> Option<Point> {
    if run.job(Counter::SendsDeferred) > 0 || run.is_simulated() || run.processes.is_empty() {
        return None;
    }
    let bound = run.most(Counter::ReceiveBound).map(|(_, bytes)| bytes).filter(|bound| *bound > 0)?;
    let enough = run.processes.iter().map(|process| enough(run, process)).max()?;
    // In steps of 64 KiB.
    let enough = enough.div_ceil(1 << 16) << 16;
    if enough > bound / 2 || bound - enough < WORTH_BYTES {
        return None;
    }
    let (at, peak) = run.most(Counter::ReceivePeak)?;
    let option = format!("--rx-memory {}", option_bytes(enough));
    let text = format!(
        "Memory could be lowered: no endpoint took more than {} of the {} that it may, and with {option} the share of each \
         sender would still hold all that any of them had unreceived.",
        bytes(peak),
        bytes(bound),
    );
    let widest = run.processes.iter().map(|process| process.facts.peers).max().unwrap_or(0);
    let evidence = vec![
        of_process(run, at, Counter::ReceivePeak),
        of_process(run, at, Counter::ReceiveFixedBytes),
        of_process(run, at, Counter::ReceiveBound),
        Evidence { name: "peers that may connect".into(), of: "job".into(), value: widest.to_string() },
    ];
    let headline = format!("{option} would do: at most {} of {} were used", bytes(peak), bytes(bound));
    Some(Point { id: UNUSED, headline, text, options: vec![option], evidence })
}

/// A bound with which no sender of this process would ever have been short of room. Half of what the fixed part leaves
/// is divided equally among the peers; one of them had at most all that was ever unmatched. And no message that is sent
/// whole may become one that is announced, because it is more than a quarter of such a share.
fn enough(run: &View, process: &Process) -> u64 {
    let fixed = process.get(Counter::ReceiveFixedBytes);
    let unmatched = process.get(Counter::ReceivePeak).saturating_sub(fixed);
    let given = run.facts.environment.get("FI_TIDEGATE_EAGER_SIZE").map(|_| 1 << 20);
    let several_hosts = process.get(Counter::BatchesSent) > 0;
    let longest = given.unwrap_or(if several_hosts { CARRIED_BYTES } else { EAGER_BYTES });
    let share = unmatched.max(PARTS_OF_WINDOW * (longest + ENVELOPE_BYTES));
    fixed.saturating_add((2 * u64::from(process.facts.peers)).saturating_mul(share))
}
