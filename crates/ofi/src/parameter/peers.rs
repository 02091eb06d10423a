//! For how many peers an endpoint is made unless the user says (`FI_TIDEGATE_PEERS`).
//!
//! Peers are endpoints, and a process may have several: Open MPI has two, OpenSHMEM one for each context and one more,
//! GASNet three. So there is room for four endpoints of each rank. But places cost memory although nobody takes them:
//! the mailbox is reserved in /dev/shm when the endpoint opens, and receive memory is divided among all peers. So they
//! are given as long as the mailbox takes no more than [`ROOMY_BYTES`], as much as the bounce buffers take by default,
//! and what is fixed for all of them no more than a part of the receive memory ([`SHARE`]). With the default slots and
//! bound that is 256 peers (5 of 64 MiB): four endpoints of each of 60 ranks, two of each of 120. In any case there is
//! a place for each rank and [`SPARE`] more, and in a small job for [`LEAST`], since one rank may start many processes.

use super::Settings;
use tidegate_message::flow::{Config, PACKET_BYTES};

/// Endpoints of a process that find room at all others, as long as that is cheap.
const ENDPOINTS_PER_RANK: u32 = 4;
/// Peers that find room in any case beside those that the launcher or the application has told of: spawned processes,
/// tools.
const SPARE: u32 = 16;
/// Peers that find room, as long as that is cheap, however few ranks there are.
const LEAST: u32 = 64;
/// What a mailbox may take for endpoints that there may never be, in bytes.
const ROOMY_BYTES: usize = 1 << 20;
/// One part in so many of the receive memory is what such endpoints may take of it, mailbox included.
const SHARE: usize = 8;
/// What a peer takes of it at the least, its slots apart, in bytes.
const BYTES_PER_PEER: usize = 19 << 10;
/// What a mailbox may take because an application hints at many addresses, in bytes: a hint is no promise, and nothing
/// of a mailbox comes back before the endpoint closes.
const HINTED_BYTES: usize = 64 << 20;
/// The link's header field for a peer has 20 bits.
pub(super) const PEERS_MOST: u32 = 0xf_ffff;

/// For how many peers an endpoint is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peers {
    /// So many.
    pub number: u32,
    /// The application has hinted at more than that.
    pub is_cut: bool,
}

impl Settings {
    /// The configuration of flow control, and whether it has fewer places than the application has hinted at.
    /// `expected` is how many addresses the application expects in its address vector; it counts where the launcher
    /// does not tell the number of ranks.
    pub fn flow(&self, expected: usize) -> (Config, bool) {
        let Peers { number, is_cut } = self.places(expected);
        (self.flow_for(number), is_cut)
    }

    fn places(&self, expected: usize) -> Peers {
        if let Some(number) = self.peers {
            return Peers { number, is_cut: false };
        }
        let (at_least, wanted, is_hint) = match self.job.size {
            Some(ranks) => (ranks.saturating_add(SPARE), ranks.saturating_mul(ENDPOINTS_PER_RANK), false),
            // Addresses are those of endpoints: all have been counted.
            None => {
                let expected = u32::try_from(expected).unwrap_or(PEERS_MOST).max(1);
                (expected.saturating_add(SPARE), 0, true)
            }
        };
        let (at_least, wanted) = (at_least.min(PEERS_MOST), wanted.saturating_add(SPARE).clamp(LEAST, PEERS_MOST));
        let allowed = if is_hint { self.fitting(at_least, HINTED_BYTES, 0) } else { at_least };
        let share = self.receive_memory(0) / SHARE;
        let roomy = self.fitting(wanted, ROOMY_BYTES, 0).min(self.fitting(wanted, share, BYTES_PER_PEER));
        Peers { number: allowed.max(roomy), is_cut: allowed < at_least }
    }

    /// So many peers, or as many as so many bytes are enough for, where each takes so many beside the mailbox.
    fn fitting(&self, peers: u32, bytes: usize, each: usize) -> u32 {
        let mailbox = self.flow_for(peers).regions().map_or(0, |regions| regions.mailbox as usize * PACKET_BYTES);
        let needed = mailbox + peers as usize * each;
        if needed <= bytes { peers } else { (peers as usize * bytes / needed) as u32 }
    }

    fn flow_for(&self, peers: u32) -> Config {
        let buffers = self.buffers.of(self.scheme);
        let config = Config::new(self.scheme, peers, self.slots_per_peer, self.credit_slots);
        Config { piggyback: self.piggyback, buffers, ..config }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str, value: &str) -> Settings {
        let settings = Settings::parse(|asked| (asked == name).then(|| value.into())).unwrap();
        Settings { job: Default::default(), ..settings }
    }

    fn of_ranks(settings: &Settings, ranks: u32) -> u32 {
        let mut settings = settings.clone();
        settings.job.size = Some(ranks);
        settings.flow(4).0.peers
    }

    #[test]
    fn each_rank_may_have_several_endpoints_as_long_as_the_mailbox_is_small() {
        let usual = settings("slots", "64");
        let found = [1, 8, 12, 16, 60, 64, 240, 241, 1024, 2_000_000].map(|ranks| of_ranks(&usual, ranks));
        assert_eq!(found, [64, 64, 64, 80, 256, 256, 256, 257, 1040, PEERS_MOST]);
        let small = settings("slots", "8");
        assert_eq!([8, 64, 1024].map(|ranks| of_ranks(&small, ranks)), [64, 272, 1040]);
        let poor = settings("rx_memory", "1M");
        assert_eq!([1, 8].map(|ranks| of_ranks(&poor, ranks)), [17, 24], "the user's bound stays legal");
        let large = settings("slots", "1024");
        assert_eq!([1, 8].map(|ranks| of_ranks(&large, ranks)), [17, 24], "a place each costs 64 KiB");
        for buffers in ["preposted", "growing"] {
            assert_eq!(of_ranks(&settings("scheme", buffers), 64), 80, "{buffers}: a place each costs many buffers");
        }
    }

    #[test]
    fn peers_follow_the_user_then_the_launcher_then_the_application() {
        let mut settings = settings("slots", "64");
        assert_eq!([0, 4, 48, 49, 100].map(|expected| settings.flow(expected).0.peers), [64, 64, 64, 65, 116]);
        settings.job.size = Some(100);
        assert_eq!(settings.flow(4).0.peers, 256);
        settings.peers = Some(3);
        assert_eq!(settings.flow(4).0.peers, 3);
    }

    #[test]
    fn a_hint_reserves_no_more_than_64_mib() {
        let mut settings = settings("slots", "64");
        let of_hint = |expected| settings.places(expected);
        assert_eq!(of_hint(16_000), Peers { number: 16_016, is_cut: false });
        for expected in [1 << 20, usize::MAX] {
            assert_eq!(of_hint(expected), Peers { number: 16_384, is_cut: true }, "{expected}");
        }
        settings.peers = Some(100_000);
        assert_eq!(settings.places(1 << 20), Peers { number: 100_000, is_cut: false }, "the user knows");
    }
}
