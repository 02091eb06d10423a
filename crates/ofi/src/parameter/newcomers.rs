//! For how many newcomers an endpoint has places: peers beyond those that it was [planned for](super::peers), such as
//! many processes that are spawned at once. A user does not know their number before.
//!
//! Their places are to cost nothing that others would miss. A newcomer has a small window, which the spare memory pays
//! for, and the fewest slots that are legal. In a small job these come out of a mailbox that has more slots than are
//! needed; in others they make it larger by a part.

use super::Settings;
use super::sizes::{LEAST_MAILBOX, Needs, slots_by_default};
use crate::lower::Choice;
use tidegate_message::flow::{Config, PACKET_BYTES, PEERS_MAX, ReceiverResource};

/// Most newcomers that have places when the endpoint opens.
pub const NEWCOMERS_MOST: u32 = 512;
/// Most newcomers beyond these, for whom places are opened when they come.
const LATER_MOST: u32 = 1 << 16;
/// For how many of these there is room in the tables: as many as so many bytes each of this part of the receive memory
/// are enough for. That is more than the spare receive memory can pay for, which says how many may come.
const LATER_BYTES: usize = 4 << 10;
const LATER_PART: usize = 4;
/// Bytes that their slots may add to a mailbox; one part in [`PART`] of it where that is more and slots move.
const MAILBOX_BYTES: usize = LEAST_MAILBOX / 4;
/// They may take one part in this number of a mailbox, and of the receive memory beyond its least.
const PART: usize = 8;
/// Bytes of the receive memory that a newcomer takes, its slots apart: its tables, its window, and answers to it.
const BYTES_EACH: usize = 8 << 10;
/// Peers by each of two ways that always find a place that was planned for, as far as these are enough.
const SHARE_LEAST: u32 = 16;

impl Settings {
    /// The configuration of flow control, and whether it is for fewer peers than the application has hinted at: as
    /// `planned_flow` has it, and newcomers.
    pub fn flow(&self, addresses: usize, for_all: impl Fn(&Config) -> usize) -> (Config, bool) {
        let (planned, is_cut) = self.planned_flow(addresses, &for_all);
        if self.peers.is_some() {
            return (planned, is_cut);
        }
        let needed = for_all(&planned);
        let memory = self.receive_memory(Needs { least: 0, for_all: needed });
        (self.with_newcomers(planned, memory.saturating_sub(needed)), is_cut)
    }

    /// Adds newcomers to an endpoint that is otherwise configured so, whose receive memory has `room` bytes more than
    /// lets all send at a time.
    fn with_newcomers(&self, planned: Config, room: usize) -> Config {
        // By two ways, whoever finds no place of its way among those that were planned for finds one among newcomers.
        let needed = match (self.may_reach_other_hosts(), self.share_within_host(planned.peers)) {
            (true, None) => return planned,
            (true, Some(share)) => share.max(planned.peers - share),
            (false, _) => 1,
        };
        let expected_peers = planned.expected_peers.or(Some(planned.peers));
        let of = |newcomers: u32| {
            let peers = planned.peers + newcomers;
            let config = Config { peers, newcomers, expected_peers, ..planned.clone() };
            let slots_per_peer = self.slots_per_peer.unwrap_or_else(|| slots_by_default(&config));
            Config { slots_per_peer, ..config }
        };
        let mailbox = |config: &Config| config.regions().map_or(usize::MAX, |it| it.mailbox as usize * PACKET_BYTES);
        let before = mailbox(&planned);
        // Where a place is of a fixed size, few of them are much.
        let part = match planned.scheme.lends() {
            ReceiverResource::Nothing | ReceiverResource::MovingSlots => before / PART,
            _ => 0,
        };
        let most = before.saturating_add(MAILBOX_BYTES.max(part));
        let fits = |newcomers: u32| {
            newcomers as usize * BYTES_EACH <= room / PART && mailbox(&of(newcomers)) <= most && before < usize::MAX
        };
        let (mut newcomers, mut step) = (0, NEWCOMERS_MOST);
        while step > 0 {
            if newcomers + step <= NEWCOMERS_MOST && fits(newcomers + step) {
                newcomers += step;
            }
            step /= 2;
        }
        match newcomers {
            _ if newcomers < needed => planned,
            NEWCOMERS_MOST if planned.scheme.lends().shares_a_pool() => {
                let most = LATER_MOST.min(PEERS_MAX.saturating_sub(planned.peers + newcomers));
                let later = (room / LATER_PART / LATER_BYTES).min(most as usize) as u32;
                Config { later, ..of(newcomers + later) }
            }
            _ => of(newcomers),
        }
    }

    /// Whether a network to other hosts may be opened.
    fn may_reach_other_hosts(&self) -> bool {
        match self.fabric {
            Choice::None => false,
            Choice::Auto => self.job.spans_hosts() || self.job.may_span_hosts(),
            _ => true,
        }
    }

    /// Where peers are reached in two ways: of the peers that an endpoint was planned for, how many may come by shared
    /// memory, and the others by the network. `None`: the launcher does not tell.
    pub fn share_within_host(&self, planned: u32) -> Option<u32> {
        let (size, local) = (self.job.size?, self.job.local_size?);
        let here = u64::from(planned) * u64::from(local.saturating_sub(1)) / u64::from(size.saturating_sub(1).max(1));
        let least = SHARE_LEAST.min(planned / 2);
        Some((here as u32).clamp(least, planned - least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_message::flow::SchemeName;

    /// Peers that were planned for, newcomers, and KiB of the mailbox without these and with them.
    fn of(scheme: SchemeName, ranks: Option<u32>, receive_memory: Option<usize>) -> (u32, u32, [usize; 2]) {
        let mut settings = Settings { node_memory: None, scheme, receive_memory, ..Settings::default() };
        settings.job.size = ranks;
        settings.job.local_size = ranks;
        let flow = settings.flow(4, |flow| flow.peers as usize * 4600).0;
        let mut plain = Config { peers: flow.planned(), newcomers: 0, ..flow.clone() };
        plain.slots_per_peer = slots_by_default(&plain);
        let kib = |config: &Config| config.regions().unwrap().mailbox as usize * PACKET_BYTES / 1024;
        (flow.planned(), flow.newcomers, [kib(&plain), kib(&flow)])
    }

    #[test]
    fn newcomers_take_slots_that_are_not_needed_or_a_part_of_the_mailbox_more() {
        let dynamic = |ranks| of(SchemeName::Dynamic, ranks, None);
        assert_eq!([1, 2, 4, 8, 16].map(|ranks| dynamic(Some(ranks)).1), [512; 5]);
        assert_eq!([dynamic(Some(2)), dynamic(Some(8))], [(64, 512, [256, 256]), (64, 512, [255, 256])]);
        assert_eq!(dynamic(Some(64)), (256, 256, [300, 364]));
        assert_eq!(dynamic(Some(1024)), (1040, 512, [1027, 1155]));
        assert_eq!(dynamic(None), (64, 256, [256, 320]), "no launcher");
    }

    #[test]
    fn there_are_few_newcomers_where_each_costs_much_and_none_where_memory_is_short() {
        assert_eq!(of(SchemeName::Static, Some(8), None), (64, 16, [256, 320]));
        assert_eq!(of(SchemeName::Preposted, Some(8), None).1, 0);
        let with = |bytes| of(SchemeName::Dynamic, Some(8), Some(bytes)).1;
        assert_eq!([100 << 10, 1 << 20, 8 << 20, 64 << 20].map(with), [0, 14, 123, 512]);
    }

    #[test]
    fn where_all_share_a_pool_more_have_places_when_they_come() {
        let later = |scheme, receive_memory| {
            let mut settings = Settings { node_memory: None, scheme, receive_memory, ..Settings::default() };
            (settings.job.size, settings.job.local_size) = (Some(8), Some(8));
            let flow = settings.flow(4, |flow| flow.peers as usize * 4600).0;
            (flow.newcomers - flow.later, flow.later)
        };
        for (scheme, by_default) in [(SchemeName::Speculative, 4078), (SchemeName::SharedWindow, 4089)] {
            assert_eq!(later(scheme, None), (512, by_default), "{scheme}");
            assert_eq!(later(scheme, Some(2 << 30)), (512, LATER_MOST), "{scheme}");
            assert_eq!(later(scheme, Some(8 << 20)).1, 0, "{scheme}: there are not even 512 from the start");
        }
        assert_eq!(later(SchemeName::Dynamic, None), (512, 0), "a newcomer has slots, which are there from the start");
    }

    #[test]
    fn those_of_two_ways_share_the_places_that_were_planned_for() {
        let of = |size, local_size| {
            let mut settings = Settings::default();
            (settings.job.size, settings.job.local_size) = (Some(size), local_size);
            (settings.share_within_host(144), settings.flow(4, |_| 0).0.newcomers > 0)
        };
        assert_eq!(of(32, Some(16)), (Some(69), true));
        assert_eq!([of(32, Some(32)).0, of(32, Some(1)).0], [Some(128), Some(16)]);
        assert_eq!(of(32, None), (None, false), "which of them are on this host is not known");
    }
}
