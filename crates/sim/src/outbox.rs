//! [`Outbox`]: the packets that a process has written and that its node's interface has not taken yet.
//!
//! The packets of a message differ little: most of them are full, hold nothing but zeros, and follow each other at the
//! same interval. So they are kept as [`Train`]s: a message of 2 KiB is three trains instead of 37 packets, and the
//! interface, which serves many processes in turn, keeps the train whose turn it is at hand and rarely looks into the
//! process's memory. This changes nothing of what happens when.

use std::collections::VecDeque;

use tidegate_flow::Header;

use crate::Time;
use crate::flight::Rank;
use crate::parcel::{Body, Parcel};

/// Equal packets to one receiver, written at equal intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    /// When the process had written the first packet.
    pub ready: Time,
    /// The time between one packet and the next.
    interval: Time,
    /// Packets: at least one.
    pub packets: u32,
    /// The receiver.
    pub to: Rank,
    /// What each packet is.
    pub parcel: Parcel,
}

impl Train {
    /// No packets.
    pub fn none() -> Train {
        let parcel = Parcel { header: Header::from_bits(0), body: Body::ZEROS };
        Train { ready: Time::NEVER, interval: Time::ZERO, packets: 0, to: Rank(u32::MAX), parcel }
    }

    /// Adds a packet at the end if it is like the others.
    #[inline]
    fn append(&mut self, ready: Time, to: Rank, parcel: Parcel) -> bool {
        if self.to != to || self.parcel != parcel {
            return false;
        }
        if self.packets == 1 {
            self.interval = ready - self.ready;
        } else if self.ready + self.interval * u64::from(self.packets) != ready {
            return false;
        }
        self.packets += 1;
        true
    }

    /// The first packet leaves. Returns whether there are more.
    #[inline]
    pub fn pop_front(&mut self) -> bool {
        self.packets -= 1;
        self.ready += self.interval;
        self.packets > 0
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outbox(VecDeque<Train>);

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A packet was written. Packets become ready in the order in which they are written.
    #[inline]
    pub fn push(&mut self, ready: Time, to: Rank, parcel: Parcel) {
        if !self.0.back_mut().is_some_and(|last| last.append(ready, to, parcel)) {
            self.0.push_back(Train { ready, interval: Time::ZERO, packets: 1, to, parcel });
        }
    }

    /// Takes the first train.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Train> {
        self.0.pop_front()
    }

    /// The first train.
    pub fn front(&self) -> Option<&Train> {
        self.0.front()
    }

    /// Packets.
    pub fn packets(&self) -> usize {
        self.0.iter().map(|train| train.packets as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::PacketKind;

    #[test]
    fn packets_leave_as_they_were_written_however_they_are_kept() {
        // Time, receiver and length of each packet.
        let written = [(10, 1, 56), (20, 1, 56), (30, 1, 56), (45, 1, 56), (55, 1, 40), (65, 2, 40), (65, 2, 40)];
        let parcel = |length| Parcel { header: Header::new(PacketKind::Data, length, 0), body: Body::ZEROS };
        let mut outbox = Outbox::default();
        for (ready, to, length) in written {
            outbox.push(Time(ready), Rank(to), parcel(length));
        }
        assert_eq!((outbox.packets(), outbox.0.len()), (7, 4));
        let mut left = Vec::new();
        while let Some(mut train) = outbox.pop_front() {
            loop {
                left.push((train.ready.0, train.to.0, train.parcel.header.length()));
                if !train.pop_front() {
                    break;
                }
            }
        }
        assert_eq!(left, written);
    }
}
