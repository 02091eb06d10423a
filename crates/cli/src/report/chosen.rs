//! The settings that the provider chose because the user left them open, and why.

use std::fmt::Write;

use tidegate_fi::parameter::sizes::{LEAST_MAILBOX, MOST_MAILBOX, NODE_SHARE, RECEIVE_MEMORY, SLOTS};
use tidegate_flow::{Buffers, ReceiverResource};
use tidegate_message::{Counter, Unit};

use super::units::human;
use super::{Job, Process, distinct};

/// A line, if anything was chosen.
pub fn line(job: &Job) -> String {
    let slots = job.processes().iter().any(has_chosen_slots).then(|| distinct(job, &slots));
    let memory = job.processes().iter().any(|it| it.setup.chosen.memory).then(|| distinct(job, &memory));
    let chosen: Vec<_> = slots.into_iter().chain(memory).collect();
    let mut line = String::new();
    if !chosen.is_empty() {
        let _ = writeln!(line, "tidegate: chosen: {}", chosen.join("; "));
    }
    line
}

/// Under `static` nothing follows from the job, and buffers are no slots.
fn has_chosen_slots(process: &Process) -> bool {
    let lends = process.setup.scheme.lends();
    let follows =
        matches!(lends, ReceiverResource::Nothing | ReceiverResource::MovingSlots | ReceiverResource::PoolSlots);
    process.setup.chosen.slots && follows
}

fn slots(process: &Process) -> String {
    let setup = &process.setup;
    if !has_chosen_slots(process) {
        return "slots as given".to_owned();
    }
    let mailbox = process.get(Counter::MailboxBytes) / u64::from(process.endpoints.max(1));
    let bytes = |bytes: u64| human(bytes, Unit::Bytes);
    if let (ReceiverResource::PoolSlots, Some(posted)) = (setup.scheme.lends(), setup.posted) {
        let why = match posted.pool_most < Buffers::of(setup.scheme).pool_slots {
            true => "as the bound has no room for more",
            false => "in a job of any size",
        };
        return format!("{} slots for all peers, a mailbox of {} {why}", posted.pool_most, bytes(mailbox));
    }
    let slots = setup.slots_per_peer;
    let whose = match setup.expected_peers {
        Some(1) => "the other rank".to_owned(),
        Some(ranks) => format!("each of {ranks} other ranks"),
        None => format!("each of {} peers", setup.peers),
    };
    let why = if slots > SLOTS {
        format!(", as a mailbox takes {} however few they are", bytes(LEAST_MAILBOX as u64))
    } else if slots == SLOTS {
        format!(", a mailbox of {}", bytes(mailbox))
    } else if mailbox <= MOST_MAILBOX as u64 && setup.chosen.memory {
        format!(", as many as a mailbox of {} has", bytes(MOST_MAILBOX as u64))
    } else {
        format!(", the fewest, a mailbox of {}", bytes(mailbox))
    };
    format!("{slots} slots for {whose}{why}")
}

fn memory(process: &Process) -> String {
    if !process.setup.chosen.memory {
        return "receive memory as given".to_owned();
    }
    let (bound, usual) = (process.get(Counter::ReceiveBound), RECEIVE_MEMORY as u64);
    let why = match bound.cmp(&usual) {
        std::cmp::Ordering::Equal => "the usual bound".to_owned(),
        std::cmp::Ordering::Greater => format!("the least for {} peers", process.setup.peers),
        std::cmp::Ordering::Less => {
            format!("so that all ranks of its node keep at most 1/{NODE_SHARE} of the node's memory")
        }
    };
    format!("receive memory {}, {why}", human(bound, Unit::Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{job, process};
    use tidegate_link::Chosen;

    /// The line of a process that has chosen these slots and this memory.
    fn of(slots: u32, expected: Option<u32>, mailbox: u64, bound: u64) -> String {
        let mut one = process(0, &[(Counter::MailboxBytes, mailbox), (Counter::ReceiveBound, bound)]);
        (one.setup.slots_per_peer, one.setup.expected_peers, one.setup.chosen) =
            (slots, expected, Chosen { slots: true, memory: true });
        line(&job(vec![one]))
    }

    #[test]
    fn it_says_what_was_chosen_and_why() {
        assert_eq!(
            of(552, Some(7), 261_000, 64 << 20),
            "tidegate: chosen: 552 slots for each of 7 other ranks, as a mailbox takes 256 KiB however few they are; receive \
             memory 64.0 MiB, the usual bound\n"
        );
        for (line, wanted) in [
            (of(3844, Some(1), 1 << 18, 64 << 20), "3844 slots for the other rank, as"),
            (of(64, None, 1 << 18, 64 << 20), "64 slots for each of 20 peers, a mailbox of 256 KiB"),
            (
                of(40, Some(399), 1 << 20, 64 << 20),
                "40 slots for each of 399 other ranks, as many as a mailbox of 1.00 MiB has",
            ),
            (
                of(16, Some(4095), 4 << 20, 64 << 20),
                "16 slots for each of 4095 other ranks, the fewest, a mailbox of 4.00 MiB",
            ),
            (
                of(16, Some(511), 1 << 19, 5 << 20),
                "receive memory 5.00 MiB, so that all ranks of its node keep at most 1/8",
            ),
            (of(16, Some(65_535), 1 << 26, 300 << 20), "receive memory 300 MiB, the least for 20 peers"),
        ] {
            assert!(line.contains(wanted), "{line}");
        }
    }

    #[test]
    fn what_the_user_said_has_no_line_and_what_differs_is_said_of_both() {
        let given = process(0, &[]);
        assert_eq!(line(&job(vec![given.clone()])), "");
        let mut chosen = process(1, &[(Counter::ReceiveBound, 64 << 20)]);
        chosen.setup.chosen = Chosen { slots: false, memory: true };
        let both = line(&job(vec![given, chosen]));
        assert!(both.contains("receive memory as given") && both.contains("the usual bound"), "{both}");
    }
}
