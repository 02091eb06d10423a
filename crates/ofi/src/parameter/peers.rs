//! For how many peers an endpoint is made unless the user says (`FI_TIDEGATE_PEERS`).
//!
//! Peers are endpoints, and a process may have several: Open MPI has two, OpenSHMEM one for each context and one more,
//! GASNet three. So there is room for four endpoints of each rank. But places cost memory although nobody takes them:
//! the mailbox is reserved in /dev/shm when the endpoint opens, and receive memory is divided among all peers. So they
//! are given as long as the mailbox takes no more than [`ROOMY_BYTES`], as much as the bounce buffers take by default,
//! and what is fixed for all of them no more than a part of the receive memory ([`SHARE`]). They are no more than
//! [`ROOMY`]: four endpoints of each of 60 ranks, two of each of 120. In any case there is a place for each rank and
//! [`SPARE`] more, and in a small job for [`LEAST`], since one rank may start many processes.

/// Endpoints of a process that find room at all others, as long as that is cheap.
const ENDPOINTS_PER_RANK: u32 = 4;
/// Peers that find room in any case beside those that the launcher or the application has told of: spawned processes,
/// tools.
const SPARE: u32 = 16;
/// Peers that find room, as long as that is cheap, however few ranks there are.
const LEAST: u32 = 64;
/// Most peers that find room beyond those in any case: windows of all others would become smaller, and newcomers have
/// places of their own.
const ROOMY: u32 = 256;
/// What a mailbox may take for endpoints that there may never be, in bytes.
const ROOMY_BYTES: usize = 1 << 20;
/// One part in so many of the receive memory is what such endpoints may take of it, mailbox included.
const SHARE: usize = 8;
/// What a peer takes of it, its slots apart, in bytes: twice the least, so that messages of the protocol need not be
/// the shortest.
const BYTES_PER_PEER: usize = 8 << 10;
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

impl Peers {
    /// Of a job of so many ranks, where the launcher tells, with so much receive memory. `expected` is how many
    /// addresses the application expects in its address vector; it counts where the launcher does not tell.
    /// `mailbox_bytes`: what a mailbox for so many peers takes.
    pub fn by_default(
        ranks: Option<u32>,
        expected: usize,
        receive_memory: usize,
        mailbox_bytes: impl Fn(u32) -> usize,
    ) -> Peers {
        // So many peers, or as many as so many bytes are enough for, where each takes so many beside the mailbox.
        let fitting = |peers: u32, bytes: usize, each: usize| {
            let needed = mailbox_bytes(peers) + peers as usize * each;
            if needed <= bytes { peers } else { (peers as usize * bytes / needed) as u32 }
        };
        // Addresses are those of endpoints: all have been counted.
        let known = ranks.unwrap_or(u32::try_from(expected).unwrap_or(PEERS_MOST).max(1));
        let endpoints = ranks.unwrap_or(0).saturating_mul(ENDPOINTS_PER_RANK);
        let at_least = known.saturating_add(SPARE).min(PEERS_MOST);
        let allowed = if ranks.is_some() { at_least } else { fitting(at_least, HINTED_BYTES, 0) };
        let wanted = endpoints.saturating_add(SPARE).clamp(LEAST, PEERS_MOST);
        let roomy = fitting(wanted, ROOMY_BYTES, 0).min(fitting(wanted, receive_memory / SHARE, BYTES_PER_PEER));
        let roomy = roomy.min(ROOMY);
        Peers { number: allowed.max(roomy), is_cut: allowed < at_least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// A job of so many ranks, with so many slots of 64 bytes per peer.
    fn of_ranks(ranks: u32, slots: usize, receive_memory: usize) -> u32 {
        Peers::by_default(Some(ranks), 4, receive_memory, |peers| peers as usize * slots * 64).number
    }

    #[test]
    fn each_rank_may_have_several_endpoints_as_long_as_the_mailbox_is_small() {
        let usual = [1, 8, 12, 16, 60, 64, 240, 241, 1024, 2_000_000].map(|ranks| of_ranks(ranks, 64, 64 * MIB));
        assert_eq!(usual, [64, 64, 64, 80, 256, 256, 256, 257, 1040, PEERS_MOST]);
        assert_eq!([8, 64, 1024].map(|ranks| of_ranks(ranks, 8, 64 * MIB)), [64, 256, 1040]);
        assert_eq!([1, 8].map(|ranks| of_ranks(ranks, 1024, 64 * MIB)), [17, 24], "a place each costs 64 KiB");
        assert_eq!([1, 8].map(|ranks| of_ranks(ranks, 64, MIB)), [17, 24], "what the user says stays legal");
    }

    /// An application that hints at so many addresses.
    fn of_hint(expected: usize) -> Peers {
        Peers::by_default(None, expected, 64 * MIB, |peers| peers as usize * 64 * 64)
    }

    #[test]
    fn a_hint_counts_endpoints_and_reserves_no_more_than_64_mib() {
        assert_eq!([0, 4, 48, 49, 100].map(|expected| of_hint(expected).number), [64, 64, 64, 65, 116]);
        assert_eq!(of_hint(16_000), Peers { number: 16_016, is_cut: false });
        for expected in [1 << 20, usize::MAX] {
            assert_eq!(of_hint(expected), Peers { number: 16_384, is_cut: true }, "{expected}");
        }
    }
}
