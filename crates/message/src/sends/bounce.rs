//! Who uses which of our bounce buffers. One holds a piece of one rendezvous message of ours from the moment we fill it
//! until the receiver has copied it: a few large copies instead of many packets, and no system call.
//!
//! Two uses, and each has half of the buffers. A piece that travels with its request to send ([`Use::Ahead`]) waits for
//! as long as the receiver posts no receive for it, perhaps until it has got another message of ours: nothing may wait
//! for such a one, so a request to send that finds none free goes without. A piece that the receiver has asked for
//! ([`Use::Asked`]) is copied as soon as the receiver makes progress: the next piece waits for that. Of either half one
//! receiver gets half at most, so that one that is slow leaves some to the others, and never more than
//! what its memory has room for ([`ControlSize::bounced`]): it keeps a receipt for each.

use crate::collections::slab::Key;
use crate::control_size::ControlSize;
use crate::link::BounceBuffers;
use tidegate_flow::PeerId;

/// What a piece in a bounce buffer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A matching receive: for nobody knows how long.
    Ahead,
    /// The receiver's progress.
    Asked,
}

/// Who uses a bounce buffer.
#[derive(Clone, Copy, Debug)]
struct User {
    peer: PeerId,
    send: Key,
    purpose: Use,
}

/// The use of our bounce buffers.
#[derive(Debug)]
pub(crate) struct BouncePool {
    bytes: usize,
    users: Vec<Option<User>>,
    free: Vec<u16>,
}

impl BouncePool {
    /// Fewer than two buffers cannot serve both uses, and count as none.
    pub(crate) fn new(bounce_buffers: BounceBuffers) -> Self {
        let usable = bounce_buffers.bytes > 0 && bounce_buffers.count >= 2;
        let count = if usable { bounce_buffers.count.min(usize::from(u16::MAX) - 1) } else { 0 };
        BouncePool { bytes: bounce_buffers.bytes, users: vec![None; count], free: (0..count as u16).rev().collect() }
    }

    /// Bytes of each.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn exists(&self) -> bool {
        !self.users.is_empty()
    }

    /// Takes a free buffer for a piece of `send`.
    pub(crate) fn take(&mut self, peer: PeerId, control: ControlSize, send: Key, purpose: Use) -> Option<usize> {
        if !self.may_take(peer, control, purpose) {
            return None;
        }
        let buffer = usize::from(self.free.pop()?);
        self.users[buffer] = Some(User { peer, send, purpose });
        Some(buffer)
    }

    fn may_take(&self, peer: PeerId, control: ControlSize, purpose: Use) -> bool {
        let half = self.users.len() / 2;
        let alike = self.users.iter().flatten().filter(|user| user.purpose == purpose);
        let (all, to_peer) = alike.fold((0, 0), |(all, to), user| (all + 1, to + usize::from(user.peer == peer)));
        all < half && to_peer < half.div_ceil(2).min(control.bounced())
    }

    /// Whether `peer` has to wait for a buffer, and one that holds a piece for it ([`Use::Asked`]) will come back.
    pub(crate) fn is_busy_for(&self, peer: PeerId, control: ControlSize) -> bool {
        let is_its_own = |user: &User| user.purpose == Use::Asked && user.peer == peer;
        !self.may_take(peer, control, Use::Asked) && self.users.iter().flatten().any(is_its_own)
    }

    /// The receiver has copied a buffer. Returns whether it was its to give back.
    pub(crate) fn give_back(&mut self, peer: PeerId, buffer: usize) -> bool {
        let ours = matches!(self.users.get(buffer), Some(Some(user)) if user.peer == peer);
        if ours {
            self.users[buffer] = None;
            self.free.push(buffer as u16);
        }
        ours
    }

    /// Frees all buffers of a send that is over.
    pub(crate) fn free_send(&mut self, send: Key) {
        for (buffer, user) in self.users.iter_mut().enumerate() {
            if user.is_some_and(|user| user.send == send) {
                *user = None;
                self.free.push(buffer as u16);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);

    #[test]
    fn one_receiver_gets_half_of_the_buffers_of_either_use() {
        let mut pool = BouncePool::new(BounceBuffers { count: 8, bytes: 1 });
        for purpose in [Use::Ahead, Use::Asked] {
            assert!(
                pool.take(A, ControlSize::MOST, Key(1), purpose).is_some()
                    && pool.take(A, ControlSize::MOST, Key(2), purpose).is_some()
            );
            assert_eq!(pool.take(A, ControlSize::MOST, Key(3), purpose), None);
            let of_b = pool.take(B, ControlSize::MOST, Key(4), purpose).expect("the rest is left for B");
            assert!(pool.take(B, ControlSize::MOST, Key(4), purpose).is_some());
            assert_eq!(pool.take(PeerId(3), ControlSize::MOST, Key(5), purpose), None, "this half is used up");
            assert!(!pool.give_back(A, of_b), "A cannot free what B uses");
            assert!(pool.give_back(B, of_b) && !pool.give_back(B, of_b), "once only");
        }
        pool.free_send(Key(1));
        assert!(
            pool.take(A, ControlSize::MOST, Key(6), Use::Ahead).is_some()
                && pool.take(A, ControlSize::MOST, Key(6), Use::Asked).is_some()
        );
    }

    #[test]
    fn requests_to_send_leave_a_buffer_for_what_was_asked_for() {
        for count in 2..6 {
            let mut pool = BouncePool::new(BounceBuffers { count, bytes: 1 });
            while (0..9).any(|peer| pool.take(PeerId(peer), ControlSize::MOST, Key(peer), Use::Ahead).is_some()) {}
            assert!(pool.take(A, ControlSize::MOST, Key(99), Use::Asked).is_some(), "of {count}");
        }
    }

    #[test]
    fn too_few_buffers_are_none() {
        for count in [0, 1] {
            let mut pool = BouncePool::new(BounceBuffers { count, bytes: 1 });
            assert!(!pool.exists() && pool.take(A, ControlSize::MOST, Key(0), Use::Asked).is_none());
        }
    }
}
