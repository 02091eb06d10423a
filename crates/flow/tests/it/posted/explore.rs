//! Every interleaving of a small world: breadth first over its states, each state checked once, and from each it must
//! be possible to recover.

use super::check::{check, check_recovery};
use super::layout::Layout;
use super::world::{Action, Frame, World};
use crate::world::Mixer;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;

/// What an exploration came across: a world in which nothing interesting can happen proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    pub states: usize,
    /// Messages were refused.
    pub refusals: bool,
    /// Credit packets were under way.
    pub credit_packets: bool,
    /// A credit packet waited for a buffer: it was refused, or stood behind what was refused.
    pub late_credits: bool,
    /// Credits rode on messages.
    pub rides: bool,
    /// Messages that had waited.
    pub waits: bool,
    /// Connections got more buffers; were denied more; lost some.
    pub growth: (bool, bool, bool),
    /// Limit events.
    pub events: bool,
    /// The most often that a sender was passed over that was due a buffer.
    pub passed_over: u8,
}

impl Sights {
    fn watch(&mut self, world: &World) {
        self.states += 1;
        for channel in &world.channels {
            for frame in channel.frames.iter().chain(&channel.arrived) {
                self.credit_packets |= matches!(frame, Frame::Credit(_));
                self.rides |= matches!(frame, Frame::Data { riding: 1.., .. });
                self.waits |= matches!(frame, Frame::Data { waited: true, .. });
            }
            self.late_credits |=
                channel.unaccepted.is_waiting() && matches!(channel.frames.front(), Some(Frame::Credit(_)));
            self.passed_over = self.passed_over.max(channel.passed_over);
        }
        for endpoint in 0..world.map.layout.endpoints {
            let tally = world.tally(endpoint);
            self.refusals |= tally.refusals > 0;
            self.events |= tally.limit_events > 0;
            self.growth.0 |= tally.buffers_added > 0;
            self.growth.1 |= tally.growths_denied > 0;
            self.growth.2 |= tally.buffers_withdrawn > 0;
            let owes = |peer: &tidegate_flow::PeerInspection| peer.is_retrying && peer.retrieved >= peer.thresholds[0];
            self.late_credits |= world.inspect(endpoint).peers.iter().any(owes);
        }
    }
}

/// The shortest way to a broken invariant.
#[derive(Debug)]
pub struct Broken {
    pub what: String,
    pub path: Vec<Action>,
}

/// Explores all states. More than a million mean a world too large for a test.
pub fn search(layout: &Layout) -> Result<Sights, Broken> {
    const LIMIT: usize = 1_000_000;
    let start = World::new(layout.clone());
    let mut seen: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::from_iter([start.fingerprint()]);
    let mut origins: Vec<(u32, Option<Action>)> = vec![(0, None)];
    let mut sights = Sights::default();
    let mut frontier = VecDeque::from([(start, 0_u32)]);
    while let Some((world, number)) = frontier.pop_front() {
        let sound = check(&world).and_then(|()| check_recovery(&world).map(drop));
        sound.map_err(|what| Broken { what, path: path(&origins, number, None) })?;
        sights.watch(&world);
        for action in world.actions() {
            let mut next = world.clone();
            let stepped = next.step(action);
            let has_moved = stepped.map_err(|what| Broken { what, path: path(&origins, number, Some(action)) })?;
            if has_moved && seen.insert(next.fingerprint()) {
                frontier.push_back((next, origins.len() as u32));
                origins.push((number, Some(action)));
            }
        }
        assert!(seen.len() <= LIMIT, "too many states: {layout:?}");
    }
    Ok(sights)
}

/// The steps from the start to state `number`, and `last`.
fn path(origins: &[(u32, Option<Action>)], mut number: u32, last: Option<Action>) -> Vec<Action> {
    let mut path: Vec<Action> = last.into_iter().collect();
    while let (before, Some(action)) = origins[number as usize] {
        path.push(action);
        number = before;
    }
    path.reverse();
    path
}

/// Explores all states; a broken invariant fails the test and prints the way to it, state by state.
pub fn explore(layout: Layout) -> Sights {
    match search(&layout) {
        Ok(sights) => sights,
        Err(broken) => panic!("{}", tell(&layout, &broken)),
    }
}

/// The way to a broken invariant, one state per line.
fn tell(layout: &Layout, broken: &Broken) -> String {
    let mut world = World::new(layout.clone());
    let mut story = format!("{layout:?}\n{world}\n");
    for &action in &broken.path {
        let _ = world.step(action);
        story += &format!("{action:?}\n    {world}\n");
    }
    format!("{story}{}", broken.what)
}
