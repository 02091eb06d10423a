//! What an endpoint has while it can communicate: the message layer, what it knows of addresses, and its outstanding
//! operations.

use crate::addresses::NO_ADDRESS;
use crate::bindings::*;
use crate::completion::Entry;
use crate::log;
use crate::name::Wait;
use crate::operation::EventKind;
use crate::tickets::{SILENT, Ticket, Tickets};
use core::ffi::c_void;
use std::collections::HashMap;
use tidegate_link::{Address, Claim, ShmLink};
use tidegate_message::{Completion, Context, Operation, PeerId, Pressure, Target};

/// The message layer over shared memory.
pub type Engine = tidegate_message::Endpoint<ShmLink>;

/// An endpoint that can communicate.
pub struct Active {
    /// The message layer.
    pub engine: Engine,
    /// Its own address.
    pub own: Address,
    /// Where an `fi_addr_t` leads: a peer's number, `MYSELF`, or `UNKNOWN`.
    targets: Vec<u32>,
    /// What the application calls a peer, by the peer's number.
    sources: Vec<fi_addr_t>,
    /// What the application calls this endpoint itself.
    own_source: fi_addr_t,
    /// State of the table of peers that the two above belong to.
    pub epoch: u32,
    /// Services that nobody has opened yet, by index in the address vector.
    pub waits: HashMap<fi_addr_t, Wait>,
    /// The service that others find this endpoint by.
    pub claim: Option<Claim>,
    /// Operations that have not completed.
    pub tickets: Tickets,
}

const UNKNOWN: u32 = u32::MAX;
const MYSELF: u32 = u32::MAX - 1;

/// An operation that ended, on its way to queues and counters.
pub struct Event {
    /// Which counter counts it.
    pub kind: EventKind,
    /// Whether success goes to the queue.
    pub wanted: bool,
    /// Whether it is not the end of one operation that the application started here.
    pub unsolicited: bool,
    /// What the queue says of it.
    pub entry: Entry,
}

impl Active {
    /// An endpoint with nothing outstanding.
    pub fn new(engine: Engine) -> Active {
        let (own, epoch) = (engine.link().address(), engine.epoch());
        let (targets, sources) = (Vec::new(), Vec::new());
        let (own_source, waits, tickets) = (NO_ADDRESS, HashMap::new(), Tickets::default());
        Active { engine, own, targets, sources, own_source, epoch, waits, claim: None, tickets }
    }

    /// Addresses have changed: they are looked up again when they are needed.
    pub fn forget_addresses(&mut self) {
        self.targets.clear();
        self.sources.clear();
        self.own_source = NO_ADDRESS;
    }

    /// These indices have been removed: whoever gets them next waits from the beginning. All others have waited as long
    /// as before, whatever else changes in the vector.
    pub fn forget_waits(&mut self, removed: &[fi_addr_t]) {
        if !self.waits.is_empty() {
            for index in removed {
                self.waits.remove(index);
            }
        }
    }

    /// Where an `fi_addr_t` leads, if that is known.
    #[inline]
    pub fn target(&self, address: fi_addr_t) -> Option<Target> {
        match self.targets.get(address as usize) {
            Some(&number) if number < MYSELF => Some(Target::Peer(PeerId(number))),
            _ => None,
        }
    }

    /// An `fi_addr_t` leads here, until addresses change.
    pub fn set_target(&mut self, address: fi_addr_t, target: Target) {
        let index = address as usize;
        if self.targets.len() <= index {
            self.targets.resize(index + 1, UNKNOWN);
        }
        self.targets[index] = match target {
            Target::Peer(peer) => peer.0,
            Target::Myself => MYSELF,
        };
    }

    /// What the application calls a sender, if that is known; else [`NO_ADDRESS`].
    #[inline]
    pub fn source(&self, source: Target) -> fi_addr_t {
        match source {
            Target::Myself => self.own_source,
            Target::Peer(peer) => self.sources.get(peer.0 as usize).copied().unwrap_or(NO_ADDRESS),
        }
    }

    /// The application calls a sender this, until addresses change.
    pub fn set_source(&mut self, source: Target, address: fi_addr_t) {
        match source {
            Target::Myself => self.own_source = address,
            Target::Peer(PeerId(number)) => {
                let index = number as usize;
                if self.sources.len() <= index {
                    self.sources.resize(index + 1, NO_ADDRESS);
                }
                self.sources[index] = address;
            }
        }
    }

    /// The address of a sender.
    pub fn address_of(&self, source: Target) -> Option<Address> {
        match source {
            Target::Myself => Some(self.own),
            Target::Peer(peer) => self.engine.link().address_of(peer),
        }
    }

    /// Whether every operation so far has completed, as `FI_FENCE` wants it.
    pub fn is_drained(&self) -> bool {
        self.tickets.none_outgoing() && !self.engine.has_outstanding()
    }

    /// Tells people that receive memory is used up, and why.
    #[cold]
    pub fn warn_of(&self, pressure: &Pressure) {
        let name = |peer: PeerId| {
            let address = self.engine.link().address_of(peer);
            address.map_or_else(|| format!("peer {}", peer.0), |address| address.to_string())
        };
        let (sender, tag) = pressure.sender;
        let tag = tag.map_or_else(|| "untagged".to_owned(), |tag| format!("tag {tag:#x}"));
        let stored: Vec<String> =
            pressure.stored.iter().map(|&(peer, bytes)| format!("{bytes} bytes from {}", name(peer))).collect();
        let Pressure { window, bytes, .. } = pressure;
        log::warn(FI_LOG_EP_DATA, || {
            format!(
                "{} has no room for more unmatched messages of {} ({tag}), whose share is {window} bytes; unmatched in all: \
                 {bytes} bytes ({}). They wait with their senders until they are received, which costs time but no memory; a \
                 larger FI_TIDEGATE_RX_MEMORY gives more room",
                self.own,
                name(sender),
                stored.join(", ")
            )
        });
    }

    /// The receive of this context, for canceling.
    pub fn cancel(&mut self, context: *mut c_void) -> bool {
        // A context may name several receives; the oldest that has not matched is meant.
        let tickets = &self.tickets;
        self.engine.cancel_named(context.addr(), |ticket| tickets.application_context(ticket).addr())
    }

    /// The message set aside for this context was claimed or discarded: its name, which the new operation takes over.
    pub fn claimed(&self, context: *mut c_void) -> Option<Context> {
        self.tickets.find_claimed(context)
    }

    /// Turns a completion into what queues and counters want, and ends the ticket if nothing more comes under it.
    /// `None`: it is one of the special ones.
    #[inline(always)]
    pub fn event(&mut self, completion: &Completion) -> Option<Event> {
        if completion.operation == Operation::RemoteWrite {
            return None;
        }
        let ticket = self.tickets.get(completion.context).unwrap_or_else(|| Ticket::silent(completion.operation));
        if ticket.kind & (FI_MULTI_RECV | FI_CLAIM) != 0 {
            return None;
        }
        if completion.context != SILENT {
            self.tickets.remove(completion.context);
        }
        let entry = ticket.entry(completion);
        Some(Event { kind: ticket.event, wanted: ticket.wanted, unsolicited: false, entry })
    }

    /// The same for special completions: peers' writes, multi-receives, which complete many times, and peeks that
    /// claim, whose ticket waits for the claim.
    #[cold]
    pub fn special_event(&mut self, completion: &Completion) -> Event {
        let ticket = self.tickets.get(completion.context);
        let Some(ticket) = ticket.filter(|_| completion.operation != Operation::RemoteWrite) else {
            let mut entry = Entry::new(core::ptr::null_mut(), FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
            entry.completion.len = completion.length;
            entry.completion.data = completion.data.unwrap_or(0);
            // Without data it is only counted.
            let wanted = completion.data.is_some();
            return Event { kind: EventKind::RemoteWrite, wanted, unsolicited: true, entry };
        };
        let mut entry = ticket.entry(completion);
        let mut ended = true;
        if ticket.kind & FI_MULTI_RECV != 0 {
            entry.completion.buf = ticket.start.wrapping_add(completion.offset).cast();
            if !completion.released {
                entry.completion.flags &= !FI_MULTI_RECV;
                ended = false;
            }
        }
        if ticket.kind & FI_CLAIM != 0 {
            entry.completion.flags &= !FI_CLAIM;
            if completion.result.is_ok() {
                self.tickets.set_claimed(completion.context, true);
                ended = false;
            }
        }
        if ended {
            self.tickets.remove(completion.context);
        }
        let unsolicited = ticket.kind & FI_MULTI_RECV != 0;
        Event { kind: ticket.event, wanted: ticket.wanted, unsolicited, entry }
    }
}
