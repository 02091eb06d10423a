//! The one path of every operation, from the thin calls of `tagged`, `message`, `rma` and `atomic` into the message
//! layer. Its completion comes back through `progress`.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result, TRY_AGAIN};
use crate::objects::active::Engine;
use crate::objects::endpoint::Endpoint;
use crate::objects::pending_operations::{SILENT, Ticket};
use crate::operations::operation::{Call, EventKind, Named};
use crate::operations::recording::Recording;
use crate::threads::domain_lock::Entered;
use tidegate_message::TryAgain;

/// What is reported of an operation that succeeds.
#[derive(Clone, Copy)]
struct Reporting {
    /// Whether success goes to the queue.
    wanted: bool,
    /// Whether the message layer reports success at all, to the queue or a counter.
    ticketed: bool,
}

impl Endpoint {
    /// Starts an operation. All calls use this way into the message layer, except claims, which use
    /// [`submit_claimed`](Self::submit_claimed).
    #[inline]
    pub fn submit<R: Recording>(
        &self,
        call: Call,
        deed: R::RecordedOperation,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let queue = if call.event == EventKind::Receive { self.receive_queue.get() } else { self.send_queue.get() };
        let wanted = !call.silent && queue.is_some_and(|queue| !queue.selective || call.flags & FI_COMPLETION != 0);
        let ticketed = !call.silent || self.counters[call.event as usize].get().is_some();
        if wanted && !self.take_room(call.event, entered) {
            self.find_room(call.event, entered)?;
        }
        self.start::<R>(call, deed, Reporting { wanted, ticketed }, entered, start)
    }

    /// Takes room for one completion in the queue for this kind, if there is room left of what was seen last. Returns
    /// whether there was.
    #[inline(always)]
    fn take_room(&self, kind: EventKind, entered: &mut Entered) -> bool {
        let room = self.state.get(entered).room(kind);
        let has_room = *room > 0;
        *room -= usize::from(has_room);
        has_room
    }

    /// Takes a ticket if the end is to be told, hands the operation to the message layer by `hand_in`, and wakes the
    /// thread if something is left.
    #[inline(always)]
    fn start<R: Recording>(
        &self,
        call: Call,
        deed: R::RecordedOperation,
        reporting: Reporting,
        entered: &mut Entered,
        hand_in: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let Reporting { wanted, ticketed } = reporting;
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let context = if ticketed {
            let Call { context, kind, event, start, .. } = call;
            active.tickets.insert(Ticket { context, kind: kind | R::FLAG, start, wanted, event })
        } else {
            SILENT
        };
        match hand_in(&mut active.engine, Named { context, report: ticketed }) {
            Ok(()) => {
                R::started(active, deed, context);
                self.note_left(entered);
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

    /// Starts an operation on the message that an earlier peek has set aside for the call's context. The ticket of the
    /// peek becomes that of this operation.
    pub fn submit_claimed<R: Recording>(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let selective = self.receive_queue.get().is_none_or(|queue| queue.selective);
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let context = active.claimed(call.context).ok_or(INVALID)?;
        let ticket = active.tickets.get_mut(context);
        ticket.kind = call.kind | R::FLAG;
        ticket.wanted = !selective || call.flags & FI_COMPLETION != 0;
        active.tickets.set_claimed(context, false);
        if start(&mut active.engine, Named { context, report: true }).is_err() {
            active.tickets.set_claimed(context, true);
            return Err(TRY_AGAIN);
        }
        R::claimed(active, context);
        self.note_left(entered);
        if self.state.get(entered).watched {
            self.look_after_sleepers(entered);
        }
        Ok(0)
    }

    /// Looks how much room there is in the queue for operations of this kind, and takes room for one completion. If
    /// there is none, makes progress: the application may do nothing but try again until another queue reports what it
    /// waits for.
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
