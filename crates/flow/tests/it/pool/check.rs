//! The rules that hold in each state, and that there is a way out of it.

use super::world::{Action, World};

/// Every rule in turn, or which one is broken and how.
pub fn check(world: &World) -> Result<(), String> {
    for endpoint in 0..world.layout.endpoints {
        check_slots(world, endpoint)?;
    }
    (0..world.channels.len()).try_for_each(|flow| check_fairness(world, flow))
}

/// Conservation: each packet in the mailbox has a slot, and free, kept and filled slots make the pool.
fn check_slots(world: &World, endpoint: usize) -> Result<(), String> {
    let (pool, packets) = (&world.pools[endpoint], world.mailboxes[endpoint].len());
    let flows = (0..world.channels.len()).filter(|&flow| world.layout.flows[flow].to == endpoint);
    let kept: u32 = flows.map(|flow| pool.kept_for(world.layout.peer(flow))).sum();
    let sum = pool.free() + kept + pool.filled();
    if pool.filled() as usize != packets || sum != world.layout.slots {
        let filled = pool.filled();
        return Err(format!("slots of {endpoint}: {packets} packets, {filled} filled, {kept} kept, {sum} in all"));
    }
    Ok(())
}

/// While a sender is marked, each other one is invited once at most.
fn check_fairness(world: &World, flow: usize) -> Result<(), String> {
    let pool = &world.pools[world.layout.flows[flow].to];
    let most = world.channels[flow].passed_over.iter().max().copied().unwrap_or(0);
    if pool.is_marked(world.layout.peer(flow)) && most > 1 {
        return Err(format!("fairness: flow {flow} is marked, and another was invited {most} times"));
    }
    Ok(())
}

/// From here on everything moves, but for the sender that computes. All packets of the others must come. Slots that are
/// kept for a sender are taken back only where nothing else moves, as a receiver does after a while. Returns the last
/// state.
pub fn check_recovery(world: &World) -> Result<World, String> {
    let mut world = world.clone();
    loop {
        let mut has_moved = false;
        for flow in 0..world.channels.len() {
            for action in [Action::Send(flow), Action::Transmit(flow), Action::Arrive(flow), Action::Hear(flow)] {
                while world.step(action)? {
                    has_moved = true;
                    check(&world)?;
                }
            }
        }
        for endpoint in 0..world.layout.endpoints {
            while world.step(Action::Retrieve(endpoint))? {
                has_moved = true;
                check(&world)?;
            }
        }
        let may_revoke = |endpoint: &usize| world.mailboxes[*endpoint].is_empty();
        let idle: Vec<usize> = (0..world.layout.endpoints).filter(may_revoke).collect();
        if !has_moved && !idle.into_iter().any(|endpoint| world.step(Action::Revoke(endpoint)) == Ok(true)) {
            break;
        }
    }
    let is_over = |flow: usize| {
        let channel = &world.channels[flow];
        channel.computes || channel.next == world.layout.flows[flow].packets && channel.queue.is_empty()
    };
    match (0..world.channels.len()).find(|&flow| !is_over(flow)) {
        Some(flow) => Err(format!("liveness: flow {flow} waits for ever: {world}")),
        None => Ok(world),
    }
}
