//! Access to peers' memory: what reads, writes and atomic operations have in common, and reads and writes from the
//! checked call to the message layer.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result};
use crate::objects::endpoint::Endpoint;
use crate::objects::region;
use crate::operations::operation::{Call, EventKind, Flags};
use crate::operations::recording::Recording;
use crate::parameter::limits::{INJECT_BYTES_MOST, REMOTE_PIECES_MOST};
use crate::threads::domain_lock::Entered;
use core::ffi::c_void;
use tidegate_link::IoBuffer;
use tidegate_message::{Buffer, ReadRequest, RemoteTarget, Submission, WriteRequest};

/// Flags of `fi_writemsg`. `fi_readmsg` takes those of them that make sense for a read.
const FLAGS: u64 = FI_REMOTE_CQ_DATA
    | FI_COMPLETION
    | FI_MORE
    | FI_INJECT
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_FENCE;

/// What a remote operation says beside its memory.
pub struct Access {
    /// The peer whose memory it is.
    pub peer: fi_addr_t,
    /// Flags.
    pub flags: Flags,
    /// Completion data.
    pub data: Option<u64>,
    /// The application's context.
    pub context: *mut c_void,
}

impl Endpoint {
    /// The place in a peer's memory to which an address and a key lead.
    #[inline]
    pub fn place(&self, peer: fi_addr_t, address: u64, key: u64, entered: &mut Entered) -> Result<RemoteTarget> {
        let to = self.target(peer, entered)?;
        let virtual_addresses = self.domain.virtual_addresses;
        let offset = if virtual_addresses { address.wrapping_sub(region::start_of(key)) } else { address };
        Ok(RemoteTarget { to, key, offset })
    }

    /// The flags of a call, and whether it never completes. `allowed` are the flags that a call may be given.
    pub fn access_flags(&self, flags: Flags, allowed: u64, entered: &mut Entered) -> Result<(u64, bool)> {
        match flags {
            Flags::Default => Ok((self.state.get(entered).send_flags, false)),
            Flags::Given(flags) if flags & !allowed != 0 => Err(Errno(FI_EBADFLAGS)),
            Flags::Given(flags) => Ok((flags, false)),
            Flags::Inject => Ok((FI_INJECT, true)),
        }
    }

    /// Several places in a peer's memory, each with its length.
    fn places(
        &self,
        peer: fi_addr_t,
        pieces: &[fi_rma_iov],
        entered: &mut Entered,
    ) -> Result<Vec<(RemoteTarget, u64)>> {
        if pieces.is_empty() || pieces.len() > REMOTE_PIECES_MOST {
            return Err(INVALID);
        }
        let place = |piece: &fi_rma_iov| Ok((self.place(peer, piece.addr, piece.key, entered)?, piece.len as u64));
        pieces.iter().map(place).collect()
    }

    /// Checks a write and submits it. The pieces are of the target's memory.
    pub fn write<R: Recording>(&self, access: Access, pieces: &[fi_rma_iov], buffer: IoBuffer) -> isize {
        R::call(|| {
            self.domain.enter(|entered| {
                let (flags, silent) = self.access_flags(access.flags, FLAGS, entered)?;
                let inject = flags & FI_INJECT != 0;
                if inject && buffer.len() > INJECT_BYTES_MOST {
                    return Err(Errno(FI_EMSGSIZE));
                }
                let to = self.places(access.peer, pieces, entered)?;
                require_equal(&to, &buffer)?;
                let (context, start) = (access.context, core::ptr::null_mut());
                let call = Call { kind: FI_RMA | FI_WRITE, flags, context, event: EventKind::Write, start, silent };
                let deed = R::reaches(buffer.len() as u64);
                self.submit::<R>(call, deed, entered, |engine, named| {
                    let (context, report) = (named.context, named.report);
                    let write = WriteRequest { to, buffer, data: access.data, context, inject, report };
                    match flags & FI_FENCE {
                        0 => engine.write(write),
                        _ => engine.submit_fenced(Submission::Write(write)),
                    }
                })
            })
        })
    }

    /// Checks a read and submits it. The pieces are of the target's memory.
    pub fn read<R: Recording>(&self, access: Access, pieces: &[fi_rma_iov], buffer: IoBuffer) -> isize {
        R::call(|| {
            self.domain.enter(|entered| {
                let (flags, silent) =
                    self.access_flags(access.flags, FLAGS & !(FI_REMOTE_CQ_DATA | FI_INJECT), entered)?;
                let from = self.places(access.peer, pieces, entered)?;
                require_equal(&from, &buffer)?;
                let (context, start) = (access.context, core::ptr::null_mut());
                let call = Call { kind: FI_RMA | FI_READ, flags, context, event: EventKind::Read, start, silent };
                let deed = R::reaches(buffer.len() as u64);
                self.submit::<R>(call, deed, entered, |engine, named| {
                    let read = ReadRequest { from, buffer, context: named.context, report: named.report };
                    match flags & FI_FENCE {
                        0 => engine.read(read),
                        _ => engine.submit_fenced(Submission::Read(read)),
                    }
                })
            })
        })
    }
}

/// Fails unless the two sides of a transfer are equally long.
fn require_equal(places: &[(RemoteTarget, u64)], buffer: &IoBuffer) -> Result<()> {
    let remote = places.iter().try_fold(0u64, |sum, (_, bytes)| sum.checked_add(*bytes));
    if remote == Some(buffer.len() as u64) { Ok(()) } else { Err(INVALID) }
}
