//! Long messages that their senders write into their receivers' memory, where links do so
//! ([`SenderWrites::writes_bulk`]): the rendezvous of L §3.1.
//!
//! The request to send is L's *Start*. Once it has matched, the receiver (`pulling`) admits a write to the memory of
//! its receive and sends a clear to send, L's *Reply*, whose name for the receive is the memory's key. The sender
//! writes, by RDMA, which takes no buffer of anybody; when the link says that all is there the send is complete, and
//! [`Written`], L's *Finish*, tells the receiver. So a long message is three messages under flow control, two of them
//! its sender's, where a pull has one from the sender and one back.
//!
//! Only the simulator has such links, and there no peer departs before its messages have arrived.

use super::Sends;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure};
use crate::link::{Buffer, Link, RemoteMemory, Span, TransferId, TransferStatus};
use crate::port::{Port, TransferOwner};
use crate::wire::Written;
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// `part` of a send goes to the memory that its receiver calls `pull`.
    pub(super) fn write_message(&mut self, port: &mut Port<L>, to: PeerId, key: Key, pull: u32, part: &L::Buffer) {
        let length = part.len();
        let transfer = port.transfers.begin(TransferOwner::Send(key, pull), length);
        let there = RemoteMemory { key: pull.into(), span: Span { address: 0, length: length as u64 } };
        let status = port.link.write_peer(TransferId(transfer.0), to, &[there], part, 0);
        if status != TransferStatus::Pending && port.transfers.end(transfer).is_some() {
            self.end_written(port, key, pull, status);
        }
    }

    /// A send has been written.
    pub(crate) fn end_written(&mut self, port: &mut Port<L>, key: Key, pull: u32, status: TransferStatus) {
        let Some(send) = self.remove_send(port, key) else { return };
        let result = if status == TransferStatus::Done { Ok(()) } else { Err(Failure::Fault) };
        if result.is_ok() {
            port.tell(send.peer, Written { pull });
        }
        if let Some(notice) = send.notice
            && (notice.report || result.is_err())
        {
            port.ended.push(Completion::sent(notice, result));
        }
    }
}
