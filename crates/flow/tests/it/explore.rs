//! Every interleaving of a small world: breadth first over its states, each state checked once.

use crate::checker::check;
use crate::world::{Action, Layout, Mixer, Wire, World};
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;

/// What an exploration came across: a world in which nothing interesting can happen proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    pub states: usize,
    /// Return requests on their way.
    pub requests: bool,
    /// A request or a response that waited for a credit.
    pub waits: bool,
    /// Responses that brought credits, and such that brought none.
    pub responses: (bool, bool),
    /// Credits that rode on data.
    pub rides: bool,
    /// Two endpoints that each waited for the other's response.
    pub mutual_blocks: bool,
}

impl Sights {
    fn watch(&mut self, world: &World) {
        self.states += 1;
        for (index, channel) in world.map.channels.iter().enumerate() {
            for wire in world.packets(index) {
                self.requests |= *wire == Wire::Request;
                self.responses.0 |= matches!(wire, Wire::Response(1..));
                self.responses.1 |= *wire == Wire::Response(0);
                self.rides |= matches!(wire, Wire::Data { riding: 1.. });
            }
            let here = &world.inspect(channel.from).peers[channel.to_index.0 as usize];
            let there = &world.inspect(channel.to).peers[channel.from_index.0 as usize];
            self.waits |= here.request_waiting || here.response_waiting;
            self.mutual_blocks |= here.blocked && there.blocked;
        }
    }
}

/// The shortest way to a broken invariant.
#[derive(Debug)]
pub struct Broken {
    pub what: String,
    pub path: Vec<Action>,
}

/// How a state was reached: from which state, by which step.
type Origin = (u32, Action);

/// Explores all states. More than four million mean a world too large for a test.
pub fn search(layout: &Layout) -> Result<Sights, Broken> {
    const LIMIT: usize = 4_000_000;
    let start = World::new(layout.clone());
    let mut seen: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::from_iter([start.fingerprint()]);
    // The start has no origin: its entry ends the way back.
    let mut origins: Vec<Origin> = vec![(0, Action::Poll { endpoint: 0 })];
    let mut sights = Sights::default();
    check(&start).map_err(|what| Broken { what, path: Vec::new() })?;
    let mut frontier = VecDeque::from([(start, 0_u32)]);
    while let Some((world, number)) = frontier.pop_front() {
        sights.watch(&world);
        for action in world.actions() {
            let mut next = world.clone();
            let stepped = next.step(action);
            let is_new = matches!(stepped, Ok(true)) && seen.insert(next.fingerprint());
            let checked = if is_new { check(&next) } else { stepped.map(|_| ()) };
            checked.map_err(|what| Broken { what, path: path(&origins, number, action) })?;
            if is_new {
                frontier.push_back((next, origins.len() as u32));
                origins.push((number, action));
            }
        }
        assert!(seen.len() <= LIMIT, "too many states: {layout:?}");
    }
    Ok(sights)
}

/// The steps from the start to state `number`, and `last`.
fn path(origins: &[Origin], mut number: u32, last: Action) -> Vec<Action> {
    let mut path = vec![last];
    while number != 0 {
        let (before, action) = origins[number as usize];
        path.push(action);
        number = before;
    }
    path.reverse();
    path
}

/// Whether worlds of more than a few seconds are explored as well: `TIDEGATE_EXPLORE=all`, as in `make test-full`.
pub fn is_full() -> bool {
    std::env::var("TIDEGATE_EXPLORE").is_ok_and(|value| value == "all")
}

/// Explores all states; a broken invariant fails the test and prints the way to it, state by state.
pub fn explore(layout: Layout) -> Sights {
    search(&layout).unwrap_or_else(|broken| panic!("{}", tell(&layout, &broken)))
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
