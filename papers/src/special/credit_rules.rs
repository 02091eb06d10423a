//! P tables 1 and 2: what the rules of `static` say, taken from the flow control that runs under MPI.

use tidegate_flow::{Config, FlowControl, Instant, Packet, PacketKind, PeerId, SchemeName, slots_without_stall};

use super::receiver::fate as fate_of_running;
use super::{Known, MESSAGE_PACKETS, number};
use crate::data::{BadFigure, Keys};

fn control(slots_per_peer: u32, credit_slots: u32) -> Result<FlowControl, BadFigure> {
    let config = Config::new(SchemeName::Static, 1, slots_per_peer, credit_slots);
    Ok(FlowControl::new(&config).map_err(|error| error.to_string())?)
}

/// The threshold at which a receiver with one peer returns credits.
pub(super) fn threshold(slots_per_peer: u32, credit_slots: u32) -> Result<u32, BadFigure> {
    Ok(control(slots_per_peer, credit_slots)?.inspect().peers[0].thresholds[0])
}

/// The fate of a sender with a formula's threshold that never looks at its mailbox before its last credit is spent, the
/// worst case. It works, or it stops because the threshold was not reached (deadlock), or more credit packets wait for
/// it than it has slots for (overflow). The receiver keeps up. No flow control has these thresholds, so they are
/// played.
fn fate(quota: u32, credit_slots: u32, threshold: u32) -> &'static str {
    let (mut credits, mut retrieved) = (quota, 0);
    for _ in 0..1000 {
        let mut waiting = Vec::new();
        for _ in 0..credits {
            retrieved += 1;
            if retrieved >= threshold {
                waiting.push(retrieved);
                retrieved = 0;
            }
        }
        if waiting.len() > credit_slots as usize {
            return "overflow";
        }
        credits = waiting.iter().sum();
        if credits == 0 {
            return "deadlock";
        }
    }
    "works"
}

/// The thresholds of a running receiver and of the formulas (a) and (b), and the fate of a running sender and of one
/// with each formula.
pub(super) fn thresholds(keys: &Keys) -> Known {
    let (quota, slots) = (number(keys, "quota")?, number(keys, "credit_slots")?);
    let running = threshold(quota + slots, slots)?;
    let formulas = [("a", "fate_a", quota / slots + 1), ("b", "fate_b", quota / slots)];
    let mut known = vec![("eq1", running.to_string()), ("fate_eq1", fate_of_running(quota, slots)?.to_owned())];
    for (name, fate_name, threshold) in formulas {
        known.extend([(name, threshold.to_string()), (fate_name, fate(quota, slots, threshold).to_owned())]);
    }
    Ok(known)
}

/// Whether a receiver of 16 peers is to be had with these slots, under both schemes of the paper, and its regions.
pub(super) fn regions(keys: &Keys) -> Known {
    let (slots, credit_slots) = (number(keys, "slots")?, number(keys, "credit_slots")?);
    let schemes = [SchemeName::Static, SchemeName::Dynamic];
    let is_accepted = schemes.map(|scheme| FlowControl::new(&Config::new(scheme, 16, slots, credit_slots)).is_ok());
    let accepted = match is_accepted {
        [true, true] => "accepted",
        [false, false] => "refused",
        _ => "by one scheme",
    };
    let data = (16 * slots).saturating_sub(16 * credit_slots);
    let known = [("data", data.to_string()), ("credit", (16 * credit_slots).to_string())];
    Ok(known.into_iter().chain([("accepted", accepted.to_owned())]).collect())
}

/// The fewest credits that a sender holds while its receiver keeps up with it.
fn credits_least(slots_per_peer: u32, credit_slots: u32) -> Result<u32, BadFigure> {
    let violation = |violation: tidegate_flow::Violation| violation.to_string();
    let [mut sender, mut receiver] = [control(slots_per_peer, credit_slots)?, control(slots_per_peer, credit_slots)?];
    let (mut least, peer) = (u32::MAX, PeerId(0));
    // Enough packets for many rounds of every threshold here.
    for _ in 0..1000 {
        sender.request(peer, 1, Instant::default()).into_credits().spend();
        receiver.handle_retrieved(peer, &Packet::new(PacketKind::Data, 0, 0)).map_err(violation)?;
        while let Some(control) = receiver.poll_control() {
            sender.handle_retrieved(peer, &control.packet).map_err(violation)?;
        }
        least = least.min(sender.credits(peer));
    }
    Ok(least)
}

/// The slots from which on a sender of 2 KiB messages no longer stalls, by eq. 5 and in a running pair.
pub(super) fn without_stall(keys: &Keys) -> Known {
    let credit_slots = number(keys, "credit_slots")?;
    let equation = slots_without_stall(MESSAGE_PACKETS, credit_slots).unwrap_or(u32::MAX);
    let mut pair = 2 * credit_slots;
    while credits_least(pair, credit_slots)? < MESSAGE_PACKETS {
        pair += 1;
    }
    Ok(vec![("by_equation", equation.to_string()), ("by_pair", pair.to_string())])
}
