//! The invariants of credit-based flow control, checked on a whole world.

use crate::world::{Fault, Wire, World};
use tidegate_flow::{Inspection, PeerId, PeerInspection, SchemeName};

/// Every invariant in turn, or which one is broken and how.
pub fn check(world: &World) -> Result<(), String> {
    for channel in 0..world.map.channels.len() {
        check_channel(world, channel)?;
    }
    for endpoint in 0..world.map.layout.data.len() {
        check_mailbox(world, endpoint)?;
        let inspection = world.inspect(endpoint);
        match inspection.scheme {
            SchemeName::Static => check_static(world, endpoint, inspection)?,
            SchemeName::Dynamic => check_dynamic(world, endpoint, inspection)?,
            _ => {}
        }
    }
    Ok(())
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

/// The two ends of a channel agree on every credit; no more credit packets wait than there are slots; nobody is stuck.
fn check_channel(world: &World, index: usize) -> Result<(), String> {
    let channel = world.map.channels[index];
    let (forth, back) = (world.packets(index), world.packets(channel.reverse));
    let sender = &world.inspect(channel.from).peers[channel.to_index.0 as usize];
    let receiver = &world.inspect(channel.to).peers[channel.from_index.0 as usize];
    let who = || format!("{}→{}", channel.from, channel.to);

    let sent: u32 = forth.iter().map(|wire| u32::from(wire.costs_credit()) + wire.gives_back()).sum();
    let travelling: u32 = back.iter().map(|wire| wire.returns()).sum::<u32>() + receiver.credits_due;
    let held = sender.credits + world.in_hand[index];
    let lent = receiver.current_credits;
    ensure(held + sent + travelling == lent, || {
        format!("conservation {}: held {held} + sent {sent} + travelling {travelling} ≠ lent {lent}", who())
    })?;

    let slots = world.map.layout.credit_slots - u32::from(world.map.layout.fault == Some(Fault::OneCreditSlotFewer));
    let waiting = forth.iter().filter(|wire| matches!(wire, Wire::Credit(_))).count();
    ensure(waiting <= slots as usize, || format!("credit slots {}: {waiting} credit packets, {slots} slots", who()))?;

    let is_poll_due = || world.is_poll_due(channel.from) || world.is_poll_due(channel.to);
    let is_quiet = forth.is_empty() && back.is_empty() && !is_poll_due();
    // Control packets may wait for credits that the application has in hand: it can send with those, or give them back.
    let is_control_waiting = sender.request_waiting || sender.response_waiting;
    let may_send = world.in_hand[index] > 0 || (sender.credits > 0 && !is_control_waiting);
    ensure(!is_quiet || may_send, || format!("liveness {}: nothing is on the way and nothing can be sent", who()))
}

/// The mailbox has room for whatever is on its way to it.
fn check_mailbox(world: &World, endpoint: usize) -> Result<(), String> {
    let layout = &world.map.layout;
    let arriving = || world.map.channels.iter().enumerate().filter(|(_, channel)| channel.to == endpoint);
    let packets = || arriving().flat_map(|(index, _)| world.packets(index));
    let data = packets().filter(|wire| wire.costs_credit()).count() as u32;
    let region = layout.data[endpoint] - u32::from(layout.fault == Some(Fault::OneDataSlotFewer));
    ensure(data <= region, || format!("overflow of {endpoint}: {data} packets, data region {region}"))?;
    let (all, slots) = (packets().count() as u32, region + layout.credit_slots * arriving().count() as u32);
    ensure(all <= slots, || format!("overflow of {endpoint}: {all} packets in {slots} slots"))
}

/// What is lent and what was retrieved make the quota, and the threshold is never overrun.
fn check_static(world: &World, endpoint: usize, inspection: &Inspection) -> Result<(), String> {
    let quota = world.map.layout.data[endpoint] / inspection.peers.len() as u32;
    for (index, peer) in inspection.peers.iter().enumerate() {
        ensure(peer.current_credits + peer.retrieved == quota && peer.retrieved < peer.thresholds[0], || {
            format!("quota of {index} at {endpoint}: {peer}")
        })?;
    }
    Ok(())
}

fn check_dynamic(world: &World, endpoint: usize, inspection: &Inspection) -> Result<(), String> {
    let data = world.map.layout.data[endpoint];
    let sum = |field: fn(&PeerInspection) -> u32| inspection.peers.iter().map(field).sum::<u32>();
    let (lent, available) = (sum(|peer| peer.current_credits), inspection.available_slots);
    ensure(lent + available == data, || format!("conservation at {endpoint}: {lent} lent + {available} ≠ {data}"))?;
    let intended = sum(|peer| peer.intended_quota);
    ensure(intended == data, || format!("intended quotas at {endpoint} sum to {intended}, not {data}"))?;

    let statics = inspection.static_slots;
    let shortfall: u32 = inspection.peers.iter().map(|peer| statics.saturating_sub(peer.current_credits)).sum();
    ensure(available >= shortfall, || format!("reserve at {endpoint}: {available} available, {shortfall} reserved"))?;

    for (index, peer) in inspection.peers.iter().enumerate() {
        let id = PeerId(index as u32);
        let places: usize = inspection.activity_lists.iter().flatten().filter(|&&member| member == id).count();
        ensure(places == 1, || format!("lists of {endpoint}: {index} is in {places}"))?;
        ensure(peer.intended_quota >= statics, || format!("static slots of {index} at {endpoint} were stolen"))?;
        let queue: u32 = peer.thresholds.iter().sum();
        let is_sound = peer.thresholds.iter().all(|&threshold| threshold > 0)
            && (peer.blocked || queue == peer.current_credits + peer.retrieved + 1);
        ensure(is_sound, || format!("queue of {index} at {endpoint} (C1): {peer}"))?;
    }
    let members = inspection.activity_lists.iter().flatten().count();
    ensure(members == inspection.peers.len(), || format!("lists of {endpoint} have {members} members"))
}
