//! [`Dynamic`]: all that both roles remember, and the credits that we hold as a sender.

use super::activity_lists::ActivityLists;
use super::receiver::ReceiverSide;
use super::sender::SenderSide;
use super::slots::SlotPool;
use super::thresholds::ThresholdQueues;
use crate::control_queue::ControlQueue;
use crate::{Config, Credits, PeerId, Regions};

/// Dynamic credits towards and from all peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dynamic {
    pub(super) senders: Box<[SenderSide]>,
    pub(super) receivers: Box<[ReceiverSide]>,
    pub(super) slots: SlotPool,
    pub(super) thresholds: ThresholdQueues,
    pub(super) lists: ActivityLists,
    pub(super) control: ControlQueue,
    pub(super) credit_slots: u32,
    /// An equal share of the data region, rounded down.
    pub(super) quota: u32,
    /// Slots left over by that: so many of the first peers have one more.
    pub(super) uneven: u32,
    /// Most intended quota of a sender.
    pub(super) quota_most: u32,
    pub(super) piggyback: bool,
}

impl Dynamic {
    /// The initial state (P §6.3). The first peers get one slot more of intended quota where the data region does not
    /// divide evenly.
    pub(super) fn initial(config: &Config, regions: Regions) -> Self {
        let &Config { peers, credit_slots, quota_most, piggyback, .. } = config;
        let static_slots = credit_slots;
        let quota = regions.quota;
        let uneven = regions.data - quota * peers;
        let receivers = (0..peers).map(|peer| ReceiverSide {
            retrieved: 0,
            head: 1,
            current_credits: static_slots,
            piggybacked: 0,
            intended_quota: quota + u32::from(peer < uneven),
            crossings: 0,
            blocked: false,
        });
        Dynamic {
            senders: vec![SenderSide::new(static_slots); peers as usize].into(),
            receivers: receivers.collect(),
            slots: SlotPool::new(regions.data - static_slots * peers, static_slots),
            thresholds: ThresholdQueues::new(peers, credit_slots),
            lists: ActivityLists::new(peers),
            control: ControlQueue::new(peers as usize),
            credit_slots,
            quota,
            uneven,
            quota_most: quota_most.unwrap_or(u32::MAX).max(quota + u32::from(uneven > 0)),
            piggyback,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, to: PeerId, wanted: u32) -> Credits {
        let sender = &mut self.senders[to.0 as usize];
        sender.credits.take(if sender.is_control_waiting() { 0 } else { wanted })
    }

    /// Adds credits, and wakes a control packet that waited for one.
    #[inline]
    pub(super) fn merge_credits(&mut self, peer: usize, credits: Credits) {
        self.senders[peer].credits.merge(credits);
        self.wake_control(peer);
    }

    /// Queues a waiting control packet for the next poll, if a credit for it is there.
    #[inline]
    pub(super) fn wake_control(&mut self, peer: usize) {
        let sender = &self.senders[peer];
        if sender.is_control_waiting() && sender.credits() > 0 {
            self.control.enqueue(peer);
        }
    }
}
