//! The invariants of posted buffers, checked on a whole world.

use super::world::{Frame, Route, World};
use tidegate_flow::{PeerId, ReceiverResource, SchemeName};

/// Every invariant in turn, or which one is broken and how.
pub fn check(world: &World) -> Result<(), String> {
    let lends = world.map.layout.scheme.lends();
    for channel in 0..world.channels.len() {
        check_queue(world, channel)?;
        if lends.has_credits() {
            check_credits(world, channel)?;
        }
        check_fairness(world, channel)?;
    }
    for endpoint in 0..world.map.layout.endpoints {
        check_memory(world, endpoint)?;
    }
    Ok(())
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

/// Each taken buffer holds a message that was not processed, and the buffers of a connection are all there.
fn check_queue(world: &World, index: usize) -> Result<(), String> {
    let Route { from, to, from_index, .. } = world.map.routes[index];
    let (queues, channel) = (&world.queues[to], &world.channels[index]);
    let (posted, taken) = (queues.posted(from_index), queues.taken(from_index));
    ensure(taken as usize == channel.arrived.len(), || {
        format!("buffers {from}→{to}: {taken} are taken, {} messages wait", channel.arrived.len())
    })?;
    let buffers = match world.map.layout.scheme.lends() {
        ReceiverResource::PoolBuffers => return Ok(()),
        ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers => {
            world.inspect(to).peers[from_index.0 as usize].intended_quota
        }
        _ => world.map.layout.buffers.per_connection,
    };
    ensure(posted + taken == buffers, || {
        format!("buffers {from}→{to}: posted {posted} + taken {taken} are not {buffers}")
    })
}

/// The two ends of a channel agree on every credit, and who has none has some coming.
fn check_credits(world: &World, index: usize) -> Result<(), String> {
    let route = world.map.routes[index];
    let (forth, back) = (&world.channels[index], &world.channels[route.reverse]);
    let sender = &world.inspect(route.from).peers[route.to_index.0 as usize];
    let receiver = &world.inspect(route.to).peers[route.from_index.0 as usize];
    let sent = forth.frames.iter().chain(&forth.arrived).filter(|frame| frame.costs_credit()).count() as u32;
    let travelling: u32 = back.frames.iter().chain(&back.arrived).map(|frame| frame.returns()).sum();
    let (held, owed, buffers) = (sender.credits, receiver.retrieved, receiver.intended_quota);
    ensure(held + sent + travelling + owed == buffers, || {
        format!(
            "credits {}→{}: held {held} + sent {sent} + travelling {travelling} + owed {owed} are not {buffers}",
            route.from, route.to
        )
    })?;
    let threshold = world.map.layout.buffers.credit_threshold.min(buffers);
    ensure(receiver.thresholds == [threshold] && (owed < threshold || receiver.is_retrying), || {
        format!("credits {}→{}: owed {owed}, threshold {threshold}, and nothing is sent", route.from, route.to)
    })
}

/// A sender whose message was refused too often is passed over by each other twice at most: in the round that goes on
/// when it comes to wait, and in the next.
fn check_fairness(world: &World, index: usize) -> Result<(), String> {
    let Route { from, to, .. } = world.map.routes[index];
    let (passed_over, rivals) = (world.channels[index].passed_over, world.map.layout.peers(to).len() - 1);
    ensure(usize::from(passed_over) <= 2 * rivals, || format!("fairness {from}→{to}: passed over {passed_over} times"))
}

/// No endpoint has more buffers than its configuration says, and none is lost.
fn check_memory(world: &World, endpoint: usize) -> Result<(), String> {
    let (layout, inspection) = (&world.map.layout, world.inspect(endpoint));
    let peers = layout.peers(endpoint).len() as u32;
    let queues = &world.queues[endpoint];
    let taken: u32 = (0..peers).map(|peer| queues.taken(PeerId(peer))).sum();
    match layout.scheme {
        SchemeName::SharedWindow => {
            let (posted, window) = (queues.posted(PeerId(0)), inspection.window);
            let (bound, spare) = (layout.buffers.pool_bound(), u32::from(queues.has_spare()));
            let is_within = window <= layout.buffers.pool_most && posted + spare + taken <= bound;
            ensure(posted <= window && is_within, || {
                format!(
                    "memory of {endpoint}: posted {posted}, spare {spare}, taken {taken}, window {window}, bound {bound}"
                )
            })?;
            // While something is taken that will be free, the spare buffer is there or comes back.
            ensure(spare == 1 || taken > 0, || format!("memory of {endpoint}: the spare buffer is lost"))
        }
        SchemeName::Growing => {
            let (all, spare) = (layout.buffers.per_connection_most * peers, inspection.available_slots);
            let least = layout.buffers.per_connection;
            let owned: u32 = inspection.peers.iter().map(|peer| peer.intended_quota).sum();
            let is_sound = inspection.peers.iter().all(|peer| peer.intended_quota >= least);
            ensure(owned + spare == all && is_sound, || {
                format!("memory of {endpoint}: {owned} buffers + {spare} spare are not {all}")
            })
        }
        _ => Ok(()),
    }
}

/// From here on everybody retrieves, and all timers run out: everything that waits must leave and arrive. Returns the
/// world after that.
pub fn check_recovery(world: &World) -> Result<World, String> {
    /// More rounds than any of these small worlds needs.
    const ROUNDS: usize = 200;
    let mut world = world.clone();
    for _ in 0..ROUNDS {
        if is_quiet(&world) {
            return Ok(world);
        }
        for channel in 0..world.channels.len() as u8 {
            world.step(super::world::Action::Retry { channel })?;
            while world.step(super::world::Action::Transmit { channel })? {}
            while world.step(super::world::Action::Arrive { channel })? {}
            while world.retrieve(channel.into())? {}
        }
        for endpoint in 0..world.map.layout.endpoints as u8 {
            world.step(super::world::Action::Limit { endpoint })?;
            world.step(super::world::Action::Timeout { endpoint })?;
        }
        check(&world)?;
    }
    Err(format!("liveness: something waits for ever: {world}"))
}

fn is_quiet(world: &World) -> bool {
    let is_empty = |frames: &std::collections::VecDeque<Frame>| frames.is_empty();
    world.senders.iter().all(|sender| sender.waiting == 0)
        && world.channels.iter().all(|channel| is_empty(&channel.frames) && is_empty(&channel.arrived))
}
