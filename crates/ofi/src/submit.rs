//! The one path of every operation, from the thin calls of `tagged`, `message`, `rma` and `atomic` into the message
//! layer. Its completion comes back through `progress`.

use crate::active::Engine;
use crate::bindings::*;
use crate::endpoint::Endpoint;
use crate::errno::{Errno, INVALID, Result, TRY_AGAIN};
use crate::lock::Entered;
use crate::operation::{Call, EventKind, Named};
use crate::tickets::{SILENT, Ticket};
use tidegate_message::TryAgain;

/// What is to be told of an operation that succeeds.
#[derive(Clone, Copy)]
struct Reporting {
    /// Whether success goes to the queue.
    wanted: bool,
    /// Whether the message layer tells of success at all.
    ticketed: bool,
}

impl Endpoint {
    /// Starts an operation: the one way from all calls into the message layer.
    #[inline]
    pub fn submit(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let queue = if call.event == EventKind::Receive { self.receive_queue.get() } else { self.send_queue.get() };
        let wanted = !call.silent && queue.is_some_and(|queue| !queue.selective || call.flags & FI_COMPLETION != 0);
        let ticketed = !call.silent || self.counters[call.event as usize].get().is_some();
        if wanted {
            match self.state.get(entered).room(call.event) {
                0 => return self.start_if_room(call, entered, start),
                room => *room -= 1,
            }
        }
        self.start(call, Reporting { wanted, ticketed }, entered, start)
    }

    /// As [`submit`](Self::submit), where the queue has to be looked at first.
    #[cold]
    fn start_if_room(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        self.find_room(call.event, entered)?;
        self.start(call, Reporting { wanted: true, ticketed: true }, entered, start)
    }

    #[inline(always)]
    fn start(
        &self,
        call: Call,
        reporting: Reporting,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let Reporting { wanted, ticketed } = reporting;
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        if call.flags & FI_FENCE != 0 && !active.is_drained() {
            self.progress(entered);
            return Err(TRY_AGAIN);
        }
        let context = if ticketed {
            let Call { context, kind, event, start, .. } = call;
            active.tickets.insert(Ticket { context, kind, start, wanted, event })
        } else {
            SILENT
        };
        match start(&mut active.engine, Named { context, report: ticketed }) {
            Ok(()) => {
                if self.state.get(entered).watched {
                    self.look_after_sleepers(entered);
                }
                Ok(0)
            }
            Err(TryAgain) => {
                active.tickets.remove(context);
                self.progress(entered);
                Err(TRY_AGAIN)
            }
        }
    }

    /// Starts an operation on the message that an earlier peek set aside for `context`; its ticket serves again.
    pub fn submit_claimed(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let selective = self.receive_queue.get().is_none_or(|queue| queue.selective);
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let context = active.claimed(call.context).ok_or(INVALID)?;
        let ticket = active.tickets.get_mut(context);
        ticket.kind = call.kind;
        ticket.wanted = !selective || call.flags & FI_COMPLETION != 0;
        active.tickets.set_claimed(context, false);
        if start(&mut active.engine, Named { context, report: true }).is_err() {
            active.tickets.set_claimed(context, true);
            return Err(TRY_AGAIN);
        }
        if self.state.get(entered).watched {
            self.look_after_sleepers(entered);
        }
        Ok(0)
    }

    /// Looks how many operations may start whose completions go where those of this kind do, and lets one of them
    /// start. If none may, makes progress, since the application may do nothing but try again until another queue tells
    /// it what it waits for.
    #[cold]
    fn find_room(&self, kind: EventKind, entered: &mut Entered) -> Result<()> {
        self.report_all(entered);
        let room = self.queue_for(kind).map_or(usize::MAX, |bound| bound.queue.state.get(entered).completions.room());
        if room == 0 {
            self.progress(entered);
            return Err(TRY_AGAIN);
        }
        *self.state.get(entered).room(kind) = room - 1;
        Ok(())
    }
}
