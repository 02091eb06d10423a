//! P §8: a receiver whose active senders change. `dynamic` moves slots to the active ones; a scheme that only ever
//! gives more, as that of P's reference 17, cannot when all it has is given.

use std::collections::VecDeque;

use tidegate_flow::{Buffers, Config, FlowControl, Instant, Packet, PacketKind, PeerId, SchemeName, Violation};

use super::{Known, number};
use crate::data::{BadFigure, Keys};

const RECEIVER: PeerId = PeerId(0);
const SENDERS: u32 = 16;
/// Packets that an active sender has to send in each round, all at once.
const BURST: u32 = 64;
const ROUNDS: u32 = 50;

struct World {
    receiver: FlowControl,
    senders: Vec<FlowControl>,
    mailbox: VecDeque<(PeerId, Packet)>,
}

/// The same number of slots for each peer under each scheme. A buffer is a slot, and never taken back, as in [17].
fn config(scheme: SchemeName, peers: u32, slots: u32) -> Config {
    let lent = Buffers {
        packets: 1,
        per_connection: 2,
        per_connection_most: slots,
        credit_threshold: 1,
        quiet_after: None,
        ..Buffers::of(scheme)
    };
    Config {
        buffers: if scheme == SchemeName::Growing { lent } else { Buffers::of(scheme) },
        ..Config::new(scheme, peers, slots, 2)
    }
}

impl World {
    fn new(scheme: SchemeName, slots: u32) -> Result<Self, BadFigure> {
        let new = |peers| FlowControl::new(&config(scheme, peers, slots)).map_err(|error| error.to_string());
        let senders = (0..SENDERS).map(|_| new(1)).collect::<Result<_, _>>()?;
        Ok(World { receiver: new(SENDERS)?, senders, mailbox: VecDeque::new() })
    }

    /// Sends up to `most` packets, as far as credits last; `has_waited` is what their messages say of themselves.
    fn send(&mut self, from: u32, most: u32, has_waited: bool) -> u32 {
        let sender = &mut self.senders[from as usize];
        let mut sent = 0;
        while sent < most && sender.credits(RECEIVER) > 0 {
            sender.request(RECEIVER, 1, Instant::default()).into_credits().spend();
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            sender.before_send(RECEIVER, &mut packet, 0);
            if has_waited {
                packet.header = packet.header.after_waiting();
            }
            self.mailbox.push_back((PeerId(from), packet));
            sent += 1;
        }
        sent
    }

    /// The receiver retrieves all that lies in its mailbox, and senders all that comes back.
    fn retrieve(&mut self) -> Result<(), Violation> {
        while let Some((from, packet)) = self.mailbox.pop_front() {
            self.receiver.handle_retrieved(from, &packet)?;
            while self.receiver.poll_posting().is_some() {}
            while let Some(control) = self.receiver.poll_control() {
                let sender = &mut self.senders[control.to.0 as usize];
                sender.handle_retrieved(RECEIVER, &control.packet)?;
                while sender.poll_posting().is_some() {}
                while let Some(answer) = sender.poll_control() {
                    self.receiver.handle_retrieved(control.to, &answer.packet)?;
                }
            }
        }
        Ok(())
    }

    /// Rounds in which `active` senders send. Returns in how many parts a burst of the last round left, in the mean.
    fn phase(&mut self, active: std::ops::Range<u32>) -> Result<f64, Violation> {
        let mut parts = 0;
        for _ in 0..ROUNDS {
            let mut left = vec![BURST; active.len()];
            parts = 0;
            let mut has_waited = false;
            while left.iter().any(|&left| left > 0) {
                for (sender, left) in active.clone().zip(&mut left) {
                    let sent = self.send(sender, *left, has_waited);
                    *left -= sent;
                    parts += u32::from(sent > 0);
                }
                self.retrieve()?;
                has_waited = true;
            }
        }
        Ok(f64::from(parts) / active.len() as f64)
    }

    /// The credits of these senders, in the mean.
    fn credits(&self, of: std::ops::Range<u32>) -> f64 {
        let count = of.len() as f64;
        of.map(|sender| f64::from(self.senders[sender as usize].credits(RECEIVER))).sum::<f64>() / count
    }
}

/// The first quarter of the senders is active, then the last, then all: what an active sender has at the end of each
/// phase, what the others have, and in how many parts its bursts leave.
pub(super) fn phases(keys: &Keys) -> Known {
    let name = keys.get("scheme").map_or("", |key| key.text.as_str());
    let scheme = name.parse::<SchemeName>().map_err(|error| BadFigure(error.to_string()))?;
    let mut world = World::new(scheme, number(keys, "slots")?)?;
    let (quarter, mut known) = (SENDERS / 4, Vec::new());
    let phases = [
        (["first", "first_rest", "first_parts"], 0..quarter, quarter..SENDERS),
        (["last", "last_rest", "last_parts"], SENDERS - quarter..SENDERS, 0..SENDERS - quarter),
        (["all", "all_rest", "all_parts"], 0..SENDERS, 0..SENDERS),
    ];
    for ([active_name, rest_name, parts_name], active, rest) in phases {
        let parts = world.phase(active.clone()).map_err(|violation| BadFigure(violation.to_string()))?;
        known.push((active_name, format!("{:.1}", world.credits(active))));
        known.push((rest_name, format!("{:.1}", world.credits(rest))));
        known.push((parts_name, format!("{parts:.1}")));
    }
    Ok(known)
}
