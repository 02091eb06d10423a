//! Sends and receives, tagged or not: what the calls of `tagged` and `message` have in common.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result};
use crate::objects::endpoint::Endpoint;
use crate::operations::operation::{Call, EventKind, Flags, Named};
use crate::operations::recording::Recording;
use crate::parameter::limits::INJECT_BYTES_MOST;
use crate::threads::domain_lock::Entered;
use core::ffi::c_void;
use tidegate_link::IoBuffer;
use tidegate_message::{Buffer, MatchFlags, MultiReceive, Receive, Send, Source, Space, Submission};

/// A send as the application asks for it.
pub struct SendCall {
    /// To whom.
    pub to: fi_addr_t,
    /// Tagged or not.
    pub space: Space,
    /// Flags.
    pub flags: Flags,
    /// Completion data.
    pub data: Option<u64>,
    /// The application's context.
    pub context: *mut c_void,
}

/// A receive as the application asks for it.
pub struct ReceiveCall {
    /// From whom.
    pub from: fi_addr_t,
    /// Tagged or not.
    pub space: Space,
    /// Flags.
    pub flags: Flags,
    /// The application's context.
    pub context: *mut c_void,
}

/// Flags of `fi_sendmsg` and `fi_tsendmsg`.
const SEND_FLAGS: u64 = FI_REMOTE_CQ_DATA
    | FI_COMPLETION
    | FI_MORE
    | FI_INJECT
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_MATCH_COMPLETE
    | FI_FENCE;
/// Flags of `fi_recvmsg` and `fi_trecvmsg`.
const RECEIVE_FLAGS: u64 = FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD;

/// Those with which a receive is not one buffer for one message.
const SPECIAL_FLAGS: u64 = FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD;

/// Whether a send completes only when its receiver has acknowledged it. libfabric calls a message delivered when it is
/// "buffered by the provider" of the destination (fi_cq(3)). That holds for every message that lies whole in its
/// receiver's mailbox, within the window that the receiver keeps for the sender; every send here means that much, or
/// between hosts that it lies in a batch that this process keeps until the receiver's has acknowledged it. MPIs
/// that make delivery complete the default of an endpoint, for the sake of their RMA, get no more than this. But a call
/// that is given `FI_DELIVERY_COMPLETE` itself, or any with `FI_MATCH_COMPLETE`, waits for the receiver's
/// acknowledgement.
fn wants_receipt(asked: Flags, flags: u64) -> bool {
    let by_itself = matches!(asked, Flags::Given(_));
    flags & FI_MATCH_COMPLETE != 0 || (by_itself && flags & FI_DELIVERY_COMPLETE != 0)
}

/// Where a buffer for several messages begins. It has to be one piece: its completions say where each message lies, and
/// how long it is.
fn start_of(buffer: &IoBuffer) -> Result<*mut u8> {
    let mut pieces = buffer.spans();
    let start = pieces.next().map_or(0, |piece| piece.address);
    if pieces.next().is_some() { Err(INVALID) } else { Ok(core::ptr::with_exposed_provenance_mut(start as usize)) }
}

fn kind_of(space: Space) -> u64 {
    match space {
        Space::Tagged { .. } => FI_TAGGED,
        Space::Untagged => FI_MSG,
    }
}

#[inline(always)]
fn receive_call(call: &ReceiveCall, flags: u64, kind: u64, start: *mut u8) -> Call {
    let kind = kind_of(call.space) | FI_RECV | kind;
    Call { kind, flags, context: call.context, event: EventKind::Receive, start, silent: false }
}

impl Endpoint {
    /// Checks a send and submits it. `call` describes it, `buffer` is its memory. Both are closures that are called
    /// only inside the domain: constants do not pass through `catch_unwind`, so otherwise the compiler would not know
    /// there what each of libfabric's calls fixes (its flags, whether it has a tag).
    #[inline(always)]
    pub fn send<R: Recording>(
        &self,
        call: impl FnOnce() -> SendCall,
        buffer: impl FnOnce() -> Result<IoBuffer>,
    ) -> isize {
        R::call(|| {
            self.domain.enter(|entered| {
                let call = call();
                let (flags, silent) = match call.flags {
                    Flags::Default => (self.state.get(entered).send_flags, false),
                    Flags::Given(flags) if flags & !SEND_FLAGS != 0 => return Err(Errno(FI_EBADFLAGS)),
                    Flags::Given(flags) => (flags, false),
                    Flags::Inject => (FI_INJECT, true),
                };
                let buffer = buffer()?;
                let inject = flags & FI_INJECT != 0;
                if inject && buffer.len() > INJECT_BYTES_MOST {
                    return Err(Errno(FI_EMSGSIZE));
                }
                let to = self.target(call.to, entered)?;
                let general = Call {
                    kind: kind_of(call.space) | FI_SEND,
                    flags,
                    context: call.context,
                    event: EventKind::Send,
                    start: core::ptr::null_mut(),
                    silent,
                };
                let deed = R::sends(to, call.space, &buffer);
                self.submit::<R>(general, deed, entered, |engine, named| {
                    let send = Send {
                        to,
                        space: call.space,
                        buffer,
                        data: call.data,
                        context: named.context,
                        inject,
                        delivery: wants_receipt(call.flags, flags),
                        report: named.report,
                    };
                    match flags & FI_FENCE {
                        0 => engine.send(send),
                        _ => engine.submit_fenced(Submission::Send(send)),
                    }
                })
            })
        })
    }

    /// Checks a receive and submits it. `call` describes it as for [`send`](Self::send).
    #[inline(always)]
    pub fn receive<R: Recording>(
        &self,
        call: impl FnOnce() -> ReceiveCall,
        buffer: impl FnOnce() -> Result<IoBuffer>,
    ) -> isize {
        R::call(|| {
            self.domain.enter(|entered| {
                let call = call();
                let flags = match call.flags {
                    Flags::Given(flags) if flags & !RECEIVE_FLAGS != 0 => return Err(Errno(FI_EBADFLAGS)),
                    Flags::Given(flags) => flags,
                    Flags::Default | Flags::Inject => self.state.get(entered).receive_flags,
                };
                let from = self.source(call.from, entered)?;
                let buffer = buffer()?;
                if flags & SPECIAL_FLAGS != 0 {
                    return self.receive_specially::<R>(call, from, flags, buffer, entered);
                }
                let general = receive_call(&call, flags, 0, core::ptr::null_mut());
                let deed = R::receives(MatchFlags::default(), false);
                self.submit::<R>(general, deed, entered, |engine, named| {
                    let Named { context, report } = named;
                    let (space, flags) = (call.space, MatchFlags::default());
                    engine.receive(Receive { from, space, buffer, context, multi: None, flags, report })
                })
            })
        })
    }

    /// A receive that is more than one buffer for one message, or none: a look, a claim, a buffer for many.
    #[inline(never)]
    fn receive_specially<R: Recording>(
        &self,
        call: ReceiveCall,
        from: Source,
        flags: u64,
        buffer: IoBuffer,
        entered: &mut Entered,
    ) -> Result {
        let matching =
            MatchFlags { peek: flags & FI_PEEK != 0, claim: flags & FI_CLAIM != 0, discard: flags & FI_DISCARD != 0 };
        let multi = (flags & FI_MULTI_RECV != 0 && matching == MatchFlags::default())
            .then(|| MultiReceive { smallest: self.state.get(entered).multi_receive_least });
        let (mut kind, mut start) = (0, core::ptr::null_mut());
        if multi.is_some() {
            kind = FI_MULTI_RECV;
            start = start_of(&buffer)?;
        }
        if matching.peek && matching.claim && !matching.discard {
            kind = FI_CLAIM;
        }
        if matching.discard && !matching.peek && !matching.claim {
            return Err(INVALID);
        }
        let general = receive_call(&call, flags, kind, start);
        let receive = |Named { context, report }: Named| {
            let (space, flags) = (call.space, matching);
            Receive { from, space, buffer, context, multi, flags, report }
        };
        if matching.claim && !matching.peek {
            self.submit_claimed::<R>(general, entered, |engine, named| engine.receive_any(receive(named)))
        } else {
            let deed = R::receives(matching, multi.is_some());
            self.submit::<R>(general, deed, entered, |engine, named| engine.receive_any(receive(named)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_in_the_call_itself_waits_for_the_receiver() {
        for (asked, flags, waits) in [
            (Flags::Default, 0, false),
            (Flags::Default, FI_DELIVERY_COMPLETE, false),
            (Flags::Default, FI_MATCH_COMPLETE, true),
            (Flags::Given(FI_DELIVERY_COMPLETE), FI_DELIVERY_COMPLETE, true),
            (Flags::Given(FI_TRANSMIT_COMPLETE), FI_TRANSMIT_COMPLETE, false),
            (Flags::Inject, FI_INJECT, false),
        ] {
            assert_eq!(wants_receipt(asked, flags), waits, "{flags:#x}");
        }
    }
}
