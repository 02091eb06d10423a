//! [`Dynamic`]: all that both roles remember, and the credits that we hold as a sender.

use super::activity_lists::ActivityLists;
use super::receiver::{ReceiverSide, Shares};
use super::sender::SenderSide;
use super::slots::SlotPool;
use super::thresholds::ThresholdQueues;
use crate::control_queue::ControlQueue;
use crate::{Config, Credits, PeerId, Peers, Regions, SchemeStats};

/// Dynamic credits towards and from all peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dynamic {
    pub(super) senders: Peers<SenderSide>,
    pub(super) receivers: Peers<ReceiverSide>,
    pub(super) slots: SlotPool,
    pub(super) thresholds: ThresholdQueues,
    pub(super) lists: ActivityLists,
    pub(super) control: ControlQueue,
    pub(super) credit_slots: u32,
    pub(super) shares: Shares,
    /// The most slots that the intended quota of one sender may grow to.
    pub(super) quota_most: u32,
    pub(super) piggyback: bool,
    pub(super) tally: SchemeStats,
}

impl Dynamic {
    /// The initial state (P §6.3). The first peers get one slot more of intended quota where the data region does not
    /// divide evenly. Those that are not expected have nothing that could be stolen, as if it had been: they are in the
    /// null list.
    pub(super) fn initial(config: &Config, regions: Regions) -> Self {
        let &Config { peers, credit_slots, quota_most, piggyback, .. } = config;
        let static_slots = credit_slots;
        let (quota, expected) = (regions.quota, config.expected());
        let uneven = regions.data - quota * expected - static_slots * (peers - expected);
        let shares = Shares { static_slots, expected, quota, uneven };
        Dynamic {
            senders: Peers::new(peers, static_slots),
            receivers: Peers::new(peers, shares),
            slots: SlotPool::new(regions.data - static_slots * peers, static_slots),
            thresholds: ThresholdQueues::new(peers, credit_slots),
            lists: ActivityLists::new(peers, expected),
            control: ControlQueue::new(peers),
            credit_slots,
            shares,
            quota_most: quota_most.unwrap_or(u32::MAX).max(quota + u32::from(uneven > 0)),
            piggyback,
            tally: SchemeStats::default(),
        }
    }

    /// Up to `wanted` of the credits that we hold towards `to`; none while a control packet waits for one.
    #[inline(always)]
    pub(super) fn take(&mut self, to: PeerId, wanted: u32) -> Credits {
        let sender = self.senders.of(to);
        sender.credits.take(if sender.is_control_waiting() { 0 } else { wanted })
    }

    /// Adds credits, and wakes a control packet that waited for one.
    #[inline]
    pub(super) fn merge_credits(&mut self, peer: PeerId, credits: Credits) {
        self.senders.of(peer).credits.merge(credits);
        self.wake_control(peer);
    }

    /// Queues a waiting control packet for the next poll, if a credit for it is there.
    #[inline]
    pub(super) fn wake_control(&mut self, peer: PeerId) {
        let sender = self.senders.of(peer);
        if sender.is_control_waiting() && sender.credits() > 0 {
            self.control.enqueue(peer);
        }
    }
}
