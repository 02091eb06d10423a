//! Who uses which of our stages. A stage holds a piece of one announced message of ours from the moment we fill it until the
//! receiver has copied it: a few large copies instead of many packets, and no system call.
//!
//! One receiver that does not take its messages cannot use up all stages: it gets half of them at most. Messages that find
//! no stage free wait for nothing; they go another way (see `rendezvous`).

use crate::link::Stages;
use crate::slab::Key;
use tidegate_flow::PeerId;

/// The use of our stages.
#[derive(Debug)]
pub(crate) struct StagePool {
    pub(crate) bytes: usize,
    /// Per stage: which send of ours occupies it, and its receiver.
    users: Vec<Option<(PeerId, Key)>>,
    free: Vec<u16>,
}

impl StagePool {
    pub(crate) fn new(stages: Stages) -> Self {
        let count = if stages.bytes == 0 { 0 } else { stages.count.min(usize::from(u16::MAX) - 1) };
        StagePool { bytes: stages.bytes, users: vec![None; count], free: (0..count as u16).rev().collect() }
    }

    pub(crate) fn exists(&self) -> bool {
        !self.users.is_empty()
    }

    /// Takes a free stage for a piece of `send`.
    pub(crate) fn take(&mut self, peer: PeerId, send: Key) -> Option<usize> {
        let crowded = self.free.len() <= self.users.len() / 2;
        if crowded && self.used_by(peer) >= self.users.len().div_ceil(2) {
            return None;
        }
        let stage = usize::from(self.free.pop()?);
        self.users[stage] = Some((peer, send));
        Some(stage)
    }

    fn used_by(&self, peer: PeerId) -> usize {
        self.users.iter().flatten().filter(|user| user.0 == peer).count()
    }

    /// Whether a piece of `send` is in a stage.
    pub(crate) fn is_used_by(&self, send: Key) -> bool {
        self.users.iter().flatten().any(|user| user.1 == send)
    }

    /// The receiver has copied a stage. Returns whether it was its to give back.
    pub(crate) fn give_back(&mut self, peer: PeerId, stage: usize) -> bool {
        let ours = matches!(self.users.get(stage), Some(Some((user, _))) if *user == peer);
        if ours {
            self.users[stage] = None;
            self.free.push(stage as u16);
        }
        ours
    }

    /// Frees all stages of a send that is over.
    pub(crate) fn free_send(&mut self, send: Key) {
        for (stage, user) in self.users.iter_mut().enumerate() {
            if matches!(user, Some((_, key)) if *key == send) {
                *user = None;
                self.free.push(stage as u16);
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
    fn one_receiver_gets_half_of_the_stages_and_the_rest_stays_for_others() {
        let mut pool = StagePool::new(Stages { count: 4, bytes: 1 });
        assert!(pool.take(A, Key(1)).is_some() && pool.take(A, Key(2)).is_some());
        assert_eq!(pool.take(A, Key(3)), None);
        let of_b = pool.take(B, Key(4)).expect("half is left for B");
        assert!(!pool.give_back(A, of_b), "A cannot free what B uses");
        assert!(pool.give_back(B, of_b) && !pool.give_back(B, of_b), "once only");
        pool.free_send(Key(1));
        assert!(pool.take(A, Key(5)).is_some());
    }

    #[test]
    fn without_stages_none_is_given() {
        assert_eq!(StagePool::new(Stages::default()).take(A, Key(0)), None);
    }
}
