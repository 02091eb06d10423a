//! The link that leads to a peer carries messages to and from that peer.

use super::{Path, Paths};
use tidegate_flow::PeerId;
use tidegate_message::{Carry, Link};

impl<A: Link, B: Link<Buffer = A::Buffer>> Carry for Paths<A, B> {
    fn carries_most(&mut self, peer: PeerId) -> usize {
        by_path!(self, peer, link, peer => link.carries_most(peer), else 0)
    }

    #[inline]
    fn is_better_carried(&self, peer: PeerId, length: usize) -> bool {
        match self.path(peer) {
            Some(Path::First(place)) => self.first.is_better_carried(place, length),
            Some(Path::Second(place)) => {
                self.second.as_ref().is_some_and(|second| second.is_better_carried(place, length))
            }
            None => false,
        }
    }

    #[inline]
    fn carry(&mut self, peer: PeerId, message: &Self::Buffer) -> Option<u32> {
        by_path!(self, peer, link, peer => link.carry(peer, message), else None)
    }

    fn take_back_carried(&mut self, peer: PeerId) {
        by_path!(self, peer, link, peer => link.take_back_carried(peer), else ());
    }

    #[inline]
    fn has_carried(&mut self, peer: PeerId, number: u32, length: usize) -> bool {
        by_path!(self, peer, link, peer => link.has_carried(peer, number, length), else false)
    }

    #[inline]
    fn copy_carried(&mut self, peer: PeerId, number: u32, length: usize, into: &mut Self::Buffer) {
        by_path!(self, peer, link, peer => link.copy_carried(peer, number, length, into), else ())
    }

    fn take_carried(&mut self, peer: PeerId, number: u32, length: usize) -> Vec<u8> {
        by_path!(self, peer, link, peer => link.take_carried(peer, number, length), else vec![0; length])
    }

    fn set_window_left(&mut self, peer: PeerId, bytes: u32) {
        by_path!(self, peer, link, peer => link.set_window_left(peer, bytes), else ())
    }
}
