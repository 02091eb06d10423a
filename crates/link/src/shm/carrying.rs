//! Messages that lie in send buffers on their way: what the link does with ours and with those of peers.

use super::peer::State;
use super::send_buffers::{self, SEND_BUFFER_BYTES};
use super::state::ShmLink;
use crate::memory::IoBuffer;
use tidegate_flow::PeerId;
use tidegate_message::Carry;

impl ShmLink {
    #[inline]
    fn put_into_send_buffer(&mut self, peer: PeerId, message: &IoBuffer) -> Option<u32> {
        // A peer that is connected to us has mapped our segment, and keeps it until our last packet has been retrieved.
        let known = self.peers.get_mut(peer.0 as usize).filter(|known| known.connection.is_some())?;
        if self.table.state(peer) != State::Connected {
            return None;
        }
        let (segment, table) = (&self.segment, &self.table);
        let make = |bytes| segment.allocate_send_buffers(bytes).is_ok();
        let in_use = known.sending.get_or_insert_default();
        self.send_buffers.put(peer, in_use, || table.copied(peer), message, make)
    }

    /// No send buffer is free: takes back those that any peer has copied.
    #[cold]
    #[inline(never)]
    fn look_who_has_copied(&mut self) {
        for holder in self.send_buffers.holders().to_vec() {
            let known = self.peers.get_mut(holder.0 as usize);
            if let Some(in_use) = known.and_then(|known| known.sending.as_mut()) {
                self.send_buffers.take_back_of(holder, in_use, self.table.copied(holder));
            }
        }
        self.send_buffers.end_look();
    }
}

impl Carry for ShmLink {
    #[inline]
    fn is_better_carried(&self, _: PeerId, length: usize) -> bool {
        send_buffers::is_worth(length)
    }

    fn carries_most(&mut self, _: PeerId) -> usize {
        SEND_BUFFER_BYTES
    }

    #[inline]
    fn carry(&mut self, peer: PeerId, message: &IoBuffer) -> Option<u32> {
        let put = self.put_into_send_buffer(peer, message);
        if put.is_some() || !self.send_buffers.are_all_used() {
            return put;
        }
        self.look_who_has_copied();
        self.put_into_send_buffer(peer, message)
    }

    fn take_back_carried(&mut self, peer: PeerId) {
        let known = self.peers.get_mut(peer.0 as usize);
        if let Some(in_use) = known.and_then(|known| known.sending.as_mut()) {
            self.send_buffers.take_last_back(in_use);
        }
    }

    #[inline]
    fn has_carried(&mut self, peer: PeerId, place: u32, length: usize) -> bool {
        self.connection_until_last(peer).is_some_and(|connection| connection.has_send_buffer(place as usize, length))
    }

    #[inline]
    fn copy_carried(&mut self, peer: PeerId, place: u32, length: usize, into: &mut IoBuffer) {
        if let Some(connection) = self.connection_until_last(peer) {
            connection.copy_sent(place as usize, into, length);
        }
    }

    fn take_carried(&mut self, peer: PeerId, place: u32, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: the vector is there as long as the buffer, which alone uses it meanwhile.
        let mut into = unsafe { IoBuffer::from_parts(bytes.as_mut_ptr(), length) };
        self.copy_carried(peer, place, length, &mut into);
        bytes
    }
}
