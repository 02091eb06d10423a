//! Random traffic between 2 to 64 endpoints: bursts, silences, credits kept in hand; then everybody recovers, and all
//! data must arrive.

use crate::checker::check;
use crate::world::{Layout, World};
use proptest::prelude::*;
use tidegate_flow::{Credits, FlowControl, PeerId, SchemeName};

/// Who sends to whom.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Everybody to endpoint 0.
    AllToOne,
    /// That, and endpoint 0 to everybody.
    OneWithAll,
    /// Everybody to everybody.
    Mesh,
}

/// A step of the traffic. `place` chooses a flow or a channel.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The application of a flow has `packets` more to send.
    Burst { place: u16, packets: u16 },
    /// A flow takes credits for what waits and sends `packets` of them; the rest stays in hand.
    Send { place: u16, packets: u8, room: u8 },
    /// A flow gives back what it has in hand.
    GiveBack { place: u16 },
    /// A channel delivers `packets`.
    Deliver { place: u16, packets: u8 },
    /// Every channel delivers one packet.
    DeliverRound,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (any::<u16>(), 1_u16..300).prop_map(|(place, packets)| Step::Burst { place, packets }),
        6 => (any::<u16>(), 1_u8..60, any::<u8>()).prop_map(|(place, packets, room)| Step::Send { place, packets, room }),
        1 => any::<u16>().prop_map(|place| Step::GiveBack { place }),
        6 => (any::<u16>(), 1_u8..60).prop_map(|(place, packets)| Step::Deliver { place, packets }),
        2 => Just(Step::DeliverRound),
    ];
    prop::collection::vec(step, 0..400)
}

/// All to one, both ways or meshed; of `endpoints` endpoints at most 8 in a mesh.
fn layouts(endpoints: usize, quota_more: u32) -> impl Strategy<Value = Layout> {
    let schemes = prop_oneof![1 => Just(SchemeName::Static), 3 => Just(SchemeName::Dynamic)];
    let patterns = prop_oneof![
        (2..=endpoints).prop_map(|endpoints| (Pattern::AllToOne, endpoints)),
        (2..=endpoints).prop_map(|endpoints| (Pattern::OneWithAll, endpoints)),
        (2..=endpoints.min(8)).prop_map(|endpoints| (Pattern::Mesh, endpoints)),
    ];
    let expected = prop_oneof![Just(None), (1_u32..5).prop_map(Some)];
    let parameters = (schemes, patterns, 1_u32..5, 0..quota_more, any::<bool>(), expected);
    parameters.prop_map(|(scheme, (pattern, endpoints), credit_slots, more, piggyback, expected)| {
        let quota = credit_slots + more;
        let peers = |endpoint| if matches!(pattern, Pattern::Mesh) || endpoint == 0 { endpoints - 1 } else { 1 };
        let data: Vec<u32> = (0..endpoints).map(|endpoint| quota * peers(endpoint) as u32).collect();
        let mut layout = Layout { expected, ..Layout::new(scheme, credit_slots, &data) };
        for (from, to) in (0..endpoints).flat_map(|from| (0..endpoints).map(move |to| (from, to))) {
            let sends = match pattern {
                Pattern::AllToOne => to == 0,
                Pattern::OneWithAll => from == 0 || to == 0,
                Pattern::Mesh => true,
            };
            layout = if sends && from != to { layout.flow(from, to) } else { layout };
        }
        if piggyback { layout.piggyback() } else { layout }
    })
}

/// The world and the applications on it.
struct Run {
    world: World,
    /// Packets that each flow's application wants to send.
    backlog: Vec<u32>,
    /// Credits that each flow's application has taken.
    hands: Vec<Option<Credits>>,
}

impl Run {
    fn new(layout: Layout) -> Self {
        let flows = layout.flows.len();
        Run { world: World::new(layout), backlog: vec![0; flows], hands: (0..flows).map(|_| None).collect() }
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        let (flows, channels) = (self.backlog.len(), self.world.map.channels.len());
        match step {
            Step::Burst { place, packets } => self.backlog[usize::from(place) % flows] += u32::from(packets),
            Step::Send { place, packets, room } => self.send(usize::from(place) % flows, packets.into(), room),
            Step::GiveBack { place } => self.give_back(usize::from(place) % flows),
            Step::Deliver { place, packets } => {
                for _ in 0..packets {
                    self.world.retrieve(usize::from(place) % channels)?;
                }
            }
            Step::DeliverRound => {
                for channel in 0..channels {
                    self.world.retrieve(channel)?;
                }
            }
        }
        Ok(())
    }

    /// Sends up to `packets`; bit `n` of `room` says whether every eighth packet from the `n`-th on has room.
    fn send(&mut self, flow: usize, packets: u32, room: u8) {
        let channel = self.world.channel_of(flow);
        let mut credits = match self.hands[flow].take() {
            Some(credits) if credits.count() > 0 => credits,
            _ => self.world.take(channel, self.backlog[flow]),
        };
        let sent = packets.min(credits.count()).min(self.backlog[flow]);
        for number in 0..sent {
            self.world.send(channel, &mut credits, room >> (number % 8) & 1 != 0);
        }
        self.backlog[flow] -= sent;
        self.hands[flow] = Some(credits);
    }

    fn give_back(&mut self, flow: usize) {
        if let Some(credits) = self.hands[flow].take() {
            self.world.give_back(self.world.channel_of(flow), credits);
        }
    }

    /// From now on everybody retrieves and sends. Every round in which something waits must move something.
    fn recover(&mut self) -> Result<(), String> {
        (0..self.hands.len()).for_each(|flow| self.give_back(flow));
        loop {
            let mut moved = false;
            for channel in 0..self.world.map.channels.len() {
                while self.world.retrieve(channel)? {
                    moved = true;
                }
            }
            let before: u32 = self.backlog.iter().sum();
            for flow in 0..self.backlog.len() {
                self.send(flow, u32::MAX, 0b1010_1010);
                self.give_back(flow);
            }
            check(&self.world)?;
            moved |= self.backlog.iter().sum::<u32>() < before;
            if !moved {
                return match before {
                    0 => Ok(()),
                    waiting => Err(format!("liveness: {waiting} packets wait and nothing moves")),
                };
            }
        }
    }

    /// Every endpoint resets every peer: it must be as new.
    fn reset_all(&mut self) -> Result<(), String> {
        for endpoint in 0..self.world.map.layout.data.len() {
            let new: FlowControl = self.world.map.layout.flow_control(endpoint);
            let peers = self.world.inspect(endpoint).peers.len() as u32;
            let flow_control = self.world.flow_control(endpoint);
            (0..peers).for_each(|peer| flow_control.reset(PeerId(peer)));
            if flow_control.poll_control().is_some() || *flow_control != new {
                return Err(format!("not as new after a reset: {}", flow_control.inspect()));
            }
        }
        Ok(())
    }
}

/// Runs the traffic with frequent checks, then recovers, drains and resets.
fn run(layout: &Layout, steps: &[Step]) -> Result<(), String> {
    let mut run = Run::new(layout.clone());
    let outcome = (|| {
        for (number, &step) in steps.iter().enumerate() {
            run.step(step)?;
            if number % 8 == 0 {
                check(&run.world)?;
            }
        }
        run.recover()?;
        run.reset_all()
    })();
    outcome.map_err(|broken| format!("{broken}\n{}", run.world))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_data_arrives(layout in layouts(64, 40), steps in steps()) {
        run(&layout, &steps).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Few slots and few peers: here the rare rules act.
    #[test]
    fn all_data_arrives_where_slots_are_scarce(layout in layouts(5, 6), steps in steps()) {
        run(&layout, &steps).map_err(TestCaseError::fail)?;
    }
}
