//! Random traffic over posted buffers between 2 to 6 endpoints; then everybody recovers, and all messages must arrive,
//! each once and in order.

use super::check::{check, check_recovery};
use super::layout::{Carrier, Layout};
use super::world::World;
use proptest::prelude::*;
use std::time::Duration;
use tidegate_flow::{Buffers, Growth, PeerId, Posting, ReceiveQueues, SchemeName};

fn buffers() -> impl Strategy<Value = Buffers> {
    let counts = (1_u32..5, 0_u32..5, 1_u32..7, 1_u32..4);
    let pool = (1_u32..5, 0_u32..8, 1_u32..4);
    (counts, pool, any::<bool>(), any::<bool>()).prop_map(|(counts, pool, exponential, shrinks)| {
        let (per_connection, more, credit_threshold, packets) = counts;
        let (pool_first, pool_more, refusals_most) = pool;
        Buffers {
            packets,
            per_connection,
            per_connection_most: per_connection + more,
            credit_threshold,
            growth: if exponential { Growth::Exponential } else { Growth::Linear },
            quiet_after: shrinks.then_some(Duration::from_millis(1)),
            retry_timer: Duration::from_micros(10),
            pool_first,
            pool_most: pool_first + pool_more,
            refusals_most,
            pool_slots: 1,
        }
    })
}

/// Everybody to endpoint 0, perhaps endpoint 0 to everybody, or everybody to everybody.
fn layouts() -> impl Strategy<Value = Layout> {
    let shape = (2_usize..7, 0_u8..3, any::<bool>(), any::<bool>(), 1_u8..6, 1_u8..5);
    (prop::sample::select(SchemeName::WITH_BUFFERS), shape, buffers()).prop_map(|(scheme, shape, buffers)| {
        let (endpoints, pattern, late, piggyback, message_packets, backlog) = shape;
        let carrier = if late { Carrier::Late } else { Carrier::AtOnce };
        let mut layout = Layout { buffers, piggyback, ..Layout::new(scheme, carrier, endpoints) };
        for (from, to) in (0..endpoints).flat_map(|from| (0..endpoints).map(move |to| (from, to))) {
            let sends = [to == 0, to == 0 || from == 0, true][usize::from(pattern)];
            layout = if sends && from != to { layout.burst(from, to, 12) } else { layout };
        }
        let packets = layout.buffers.packets;
        layout.packets(message_packets, packets).backlog(backlog)
    })
}

/// Every endpoint resets every peer: it must be as new. The window of a pool is everybody's, and stays.
fn reset_all(world: &mut World) -> Result<(), String> {
    let layout = world.map.layout.clone();
    for endpoint in 0..layout.endpoints {
        let peers = layout.peers(endpoint).len() as u32;
        let flow_control = world.flow_control(endpoint);
        (0..peers).for_each(|peer| flow_control.reset(PeerId(peer)));
        let is_new = *flow_control == layout.flow_control(endpoint) || layout.scheme == SchemeName::SharedWindow;
        if !is_new || flow_control.poll_control().is_some() || flow_control.poll_posting().is_some() {
            return Err(format!("not as new after a reset: {}", flow_control.inspect()));
        }
    }
    Ok(())
}

/// Takes random steps with frequent checks, then sends all that is left, recovers, and resets.
fn run(layout: &Layout, steps: &[prop::sample::Index]) -> Result<(), String> {
    let mut world = World::new(layout.clone());
    let actions = world.actions();
    let outcome = (|| {
        for (number, step) in steps.iter().enumerate() {
            world.step(*step.get(&actions))?;
            if number % 8 == 0 {
                check(&world)?;
            }
        }
        while world.senders.iter().any(|sender| sender.left != Some(0)) {
            for flow in 0..world.senders.len() {
                world.send(flow)?;
            }
            world = check_recovery(&world)?;
        }
        world = check_recovery(&world)?;
        check(&world)?;
        let arrived: u32 = world.channels.iter().map(|channel| channel.messages).sum();
        // A message takes as many buffers as its packets need.
        let each = u32::from(layout.message_packets).div_ceil(layout.buffers.packets);
        let sent = 12 * world.senders.len() as u32 * each;
        if arrived != sent {
            return Err(format!("{arrived} messages arrived of {sent}"));
        }
        reset_all(&mut world)
    })();
    outcome.map_err(|broken: String| format!("{broken}\n{world}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn all_messages_arrive_over_posted_buffers(
        layout in layouts(),
        steps in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
    ) {
        run(&layout, &steps).map_err(TestCaseError::fail)?;
    }
}

/// What happens to a pool: a sender tries, a message is processed, the victim tries at the worst moment, a sender dies.
#[derive(Clone, Copy, Debug)]
enum Step {
    Try(u32),
    Process(usize),
    VictimTries,
    Die(u32),
}

fn pool_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1_u32..8).prop_map(Step::Try),
        4 => any::<usize>().prop_map(Step::Process),
        2 => Just(Step::VictimTries),
        1 => (1_u32..8).prop_map(Step::Die),
    ];
    prop::collection::vec(step, 0..600)
}

proptest! {
    /// The others take every buffer of a pool as soon as it is posted, sender 1 first: it is hardly refused. Sender 0
    /// tries only when none is left. Each time that it was due the spare buffer, another may have fetched that, but
    /// each of them twice at most; and at last it gets one.
    #[test]
    fn a_sender_that_comes_at_the_worst_moments_is_served_beside_one_that_is_never_refused(
        (first, more, refusals_most) in (1_u32..4, 0_u32..4, 1_u32..5),
        senders in 2_u32..8,
        steps in pool_steps(),
    ) {
        let scheme = SchemeName::SharedWindow;
        let buffers = Buffers { pool_first: first, pool_most: first + more, refusals_most, ..Buffers::of(scheme) };
        let mut queues = ReceiveQueues::new(scheme, senders, &buffers).unwrap();
        let (victim, hog) = (PeerId(0), PeerId(1));
        let (mut taken, mut passed_over, mut came_back): (Vec<PeerId>, u32, bool) = (Vec::new(), 0, false);
        let rest = (0..6 * senders * (refusals_most + 1)).flat_map(|number| {
            [Step::VictimTries, Step::Process(number as usize), Step::Try(1 + number % 7), Step::Try(1 + number % 5)]
        });
        let mut served = 0;
        for step in steps.into_iter().chain(rest) {
            match step {
                Step::Try(sender) if sender < senders => {
                    let was_taken = queues.take(PeerId(sender));
                    taken.extend(was_taken.then_some(PeerId(sender)));
                }
                Step::Process(which) if !taken.is_empty() => {
                    let had_spare = queues.has_spare();
                    queues.post(Posting::Again(taken.swap_remove(which % taken.len())));
                    came_back |= !had_spare && queues.has_spare() && queues.refusals(victim) == refusals_most;
                }
                Step::Die(sender) if sender < senders => {
                    // Its messages were processed.
                    taken.retain(|&of| of != PeerId(sender));
                    queues.forget(PeerId(sender));
                }
                Step::VictimTries => {
                    let is_there = queues.take(victim);
                    passed_over = if is_there { 0 } else { passed_over + u32::from(came_back) };
                    (came_back, served) = (false, served + u32::from(is_there));
                    taken.extend(is_there.then_some(victim));
                    prop_assert!(passed_over <= 2 * (senders - 1), "passed over {} times", passed_over);
                }
                _ => {}
            }
            // The worst moment is when the pool is empty.
            while queues.posted(victim) > 0 && queues.take(hog) {
                taken.push(hog);
            }
            let full: u32 = (0..senders).map(|sender| queues.taken(PeerId(sender))).sum();
            prop_assert_eq!(full as usize, taken.len());
            prop_assert!(queues.posted(victim) + u32::from(queues.has_spare()) + full <= buffers.pool_bound());
        }
        prop_assert!(served > 0, "it was never served");
    }
}
