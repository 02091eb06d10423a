//! Runs that begin amid a program.
//!
//! A receiver returns credits after every so many packets (the threshold), and messages have other lengths, so of each
//! sender some packets are left that it has not returned credits for: the *rest*. How large it is decides whether the
//! next message finds its credits. A program that has just begun has no rests, and its first messages say little of the
//! mean over many (P §5.3 takes that of 150 all-to-alls). Here each pair gets the rest of a random number of messages.

use tidegate_flow::ReceiverResource;

use super::Simulation;
use crate::config::{FlowChoice, SimulationError};
use crate::flight::Rank;
use crate::random::Random;

/// The random stream of rank 0's rests; those of the other ranks follow. See `NOISE_STREAMS`.
const REST_STREAMS: u64 = 2 << 32;

impl Simulation {
    /// All have heard all, and under `static` each pair has exchanged a random number of messages of so many packets,
    /// pairs of one node too: what goes through the node's memory does not look at their rests.
    pub(super) fn begin_mid_stream(&mut self, packets: u32) -> Result<(), SimulationError> {
        let size = self.config.size();
        for process in &mut self.processes {
            process.endpoint.link_mut().hear_all(size);
        }
        let FlowChoice::Mailbox { scheme, piggyback, .. } = self.config.flow else { return Ok(()) };
        if scheme.lends() != ReceiverResource::FixedSlots {
            return Ok(());
        }
        if piggyback {
            let why = "with credits that ride rests depend on more than numbers of messages";
            return Err(SimulationError::Setup(why.to_owned()));
        }
        let inspection = self.processes[0].endpoint.inspect();
        let Some(&[threshold]) = inspection.peers.first().map(|peer| &peer.thresholds[..]) else { return Ok(()) };
        for sender in 0..size {
            let mut random = Random::stream(self.config.seed, REST_STREAMS + u64::from(sender));
            for receiver in (0..size).filter(|&receiver| receiver != sender) {
                // After as many messages as the threshold has packets, rests come back in the same order.
                let messages = random.below(threshold.into());
                let rest = (messages * u64::from(packets) % u64::from(threshold)) as u32;
                self.leave_rest(Rank(sender), Rank(receiver), rest)?;
            }
        }
        Ok(())
    }

    /// `receiver` has retrieved so many packets of `sender` without returning credits.
    fn leave_rest(&mut self, sender: Rank, receiver: Rank, rest: u32) -> Result<(), SimulationError> {
        for (one, other, sent, received) in [(sender, receiver, rest, 0), (receiver, sender, 0, rest)] {
            let endpoint = &mut self.processes[one.0 as usize].endpoint;
            let peer = endpoint.link_mut().admit_peer(other);
            if !peer.is_some_and(|peer| endpoint.begin_mid_stream(peer, sent, received)) {
                let why = format!("{one} and {other} cannot begin amid a program: give every process a place for all");
                return Err(SimulationError::Setup(why));
            }
        }
        Ok(())
    }
}
