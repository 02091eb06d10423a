//! What an endpoint has while it can communicate: the message layer, what it knows of addresses, and its outstanding
//! operations.

use crate::addressing::name::ServiceWait;
use crate::addressing::reach::{self, Links};
use crate::border::bindings::*;
use crate::border::log;
use crate::objects::completion::Entry;
use crate::objects::pending_operations::{Event, PendingOperations, RECORDED};
use crate::operations::operation::EventKind;
use crate::trace::operations::Operations;
use core::ffi::c_void;
use std::collections::HashMap;
use tidegate_link::fabric::Contact;
use tidegate_link::{Address, Claim};
use tidegate_message::{Completion, Context, PeerId, PeerWait, Pressure, Snapshot, Target};

/// The message layer over shared memory and, where there is one, the network.
pub type Engine = tidegate_message::Endpoint<Links>;

/// An endpoint that can communicate.
pub struct Active {
    /// The message layer.
    pub engine: Engine,
    /// How it is reached.
    pub own: Contact,
    /// By `fi_addr_t`, the endpoint that it means: a peer's number, `MYSELF`, or `UNKNOWN`.
    targets: Vec<u32>,
    /// By a peer's number, the `fi_addr_t` that the application knows it by, `NO_ADDRESS` if it knows it by none, or
    /// `NOT_LOOKED_UP`.
    sources: Vec<fi_addr_t>,
    /// The same for this endpoint itself.
    own_source: fi_addr_t,
    /// The epoch of the link's table of peers for which `targets` and `sources` hold. In another epoch a peer's number
    /// may mean another peer.
    pub epoch: u32,
    /// By index in the address vector, services that no endpoint has yet, and how long operations have waited for them.
    pub waits: HashMap<fi_addr_t, ServiceWait>,
    /// The service that others find this endpoint by.
    pub claim: Option<Claim>,
    /// Operations that have not completed.
    pub tickets: PendingOperations,
    /// What the trace has to know of them, if there is one.
    pub trace: Option<Box<Operations>>,
    /// What looks at what is open need.
    pub observing: Observing,
}

/// What the last look at what is open has found, kept for its memory.
#[derive(Default)]
pub struct Observing {
    /// As the message layer tells it.
    pub open: Snapshot,
    /// As the page of counters has it.
    pub rows: Snapshot<u64>,
    /// The waits that it had before.
    pub waits_before: Vec<PeerWait<u64>>,
}

/// What that is has to be looked up. (An application may have chosen just this number: then it is looked up each time.)
const NOT_LOOKED_UP: fi_addr_t = u64::MAX - 1;

const UNKNOWN: u32 = u32::MAX;
const MYSELF: u32 = u32::MAX - 1;

impl Active {
    /// An endpoint with nothing outstanding.
    pub fn new(engine: Engine) -> Active {
        let (own, epoch) = (reach::own_contact(engine.link()), engine.epoch());
        let (targets, sources) = (Vec::new(), Vec::new());
        let (own_source, waits, tickets) = (NOT_LOOKED_UP, HashMap::new(), PendingOperations::default());
        let observing = Observing::default();
        Active { engine, own, targets, sources, own_source, epoch, waits, claim: None, tickets, trace: None, observing }
    }

    /// Addresses have changed. From now on each is looked up again when it is needed.
    pub fn forget_addresses(&mut self) {
        self.targets.clear();
        self.sources.clear();
        self.own_source = NOT_LOOKED_UP;
    }

    /// These indices have been removed. A service that is inserted under one of them later waits from the beginning;
    /// the waits for all other services go on.
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

    /// Notes where an `fi_addr_t` leads, until addresses change.
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

    /// The `fi_addr_t` that the application knows a sender by, or
    /// [`NO_ADDRESS`](crate::addressing::addresses::NO_ADDRESS). `None`: that has to be looked up.
    #[inline]
    pub fn source(&self, source: Target) -> Option<fi_addr_t> {
        let noted = match source {
            Target::Myself => self.own_source,
            Target::Peer(peer) => self.sources.get(peer.0 as usize).copied().unwrap_or(NOT_LOOKED_UP),
        };
        (noted != NOT_LOOKED_UP).then_some(noted)
    }

    /// Notes the `fi_addr_t` that the application knows a sender by, or that it knows none, until addresses change.
    pub fn set_source(&mut self, source: Target, address: fi_addr_t) {
        match source {
            Target::Myself => self.own_source = address,
            Target::Peer(PeerId(number)) => {
                let index = number as usize;
                if self.sources.len() <= index {
                    self.sources.resize(index + 1, NOT_LOOKED_UP);
                }
                self.sources[index] = address;
            }
        }
    }

    /// The address of a sender.
    pub fn address_of(&self, source: Target) -> Option<Address> {
        match source {
            Target::Myself => Some(self.own.address),
            Target::Peer(peer) => reach::address_of(self.engine.link(), peer),
        }
    }

    /// Logs a warning that receive memory is used up, with the senders whose messages fill it.
    #[cold]
    pub fn warn_of(&self, pressure: &Pressure) {
        let name = |peer: PeerId| {
            let address = reach::address_of(self.engine.link(), peer);
            address.map_or_else(|| format!("peer {}", peer.0), |address| address.to_string())
        };
        let (sender, tag) = pressure.sender;
        let tag = tag.map_or_else(|| "untagged".to_owned(), |tag| format!("tag {tag:#x}"));
        let stored: Vec<String> =
            pressure.stored.iter().map(|&(peer, bytes)| format!("{bytes} bytes from {}", name(peer))).collect();
        let Pressure { window, bytes, .. } = pressure;
        log::warn(FI_LOG_EP_DATA, || {
            format!(
                "{} has no room for more unmatched messages of {} ({tag}), whose share is {window} bytes; unmatched in \
                 all: {bytes} bytes ({}). They wait with their senders until they are received, which costs time but \
                 no memory; a larger FI_TIDEGATE_RX_MEMORY gives more room",
                self.own,
                name(sender),
                stored.join(", ")
            )
        });
    }

    /// Cancels the receive of this context; of several, the oldest that has not matched. Or else an operation that
    /// waits behind a fence. Returns whether there was one.
    pub fn cancel(&mut self, context: *mut c_void) -> bool {
        let tickets = &self.tickets;
        self.engine.cancel_named(context.addr(), |ticket| tickets.application_context(ticket).addr())
    }

    /// The ticket of the peek that has set a message aside for this context. The operation that claims or discards the
    /// message takes over this ticket.
    pub fn claimed(&self, context: *mut c_void) -> Option<Context> {
        self.tickets.find_claimed(context)
    }

    /// The operation that has ended first of those that were not told of, if it is a plain success, with its sender if
    /// it is a receive. Ends its ticket.
    #[inline(always)]
    pub fn plain_event(&mut self) -> Option<(Event, Option<Target>)> {
        let completion = self.engine.first_completion().filter(|completion| completion.result.is_ok())?;
        let plain = (self.tickets.event(completion)?, completion.source);
        self.engine.pass_completion();
        Some(plain)
    }

    /// Turns a completion into an event of queues and counters where [`PendingOperations::event`] cannot: writes of
    /// peers, multi-receives, which complete many times, and peeks that claim, whose ticket stays until the message is
    /// claimed.
    #[cold]
    pub fn special_event(&mut self, completion: &Completion) -> Event {
        let ticket = self.tickets.get(completion.context);
        let Some(ticket) = ticket.filter(|_| !completion.operation.is_at_target()) else {
            let mut entry = Entry::new(core::ptr::null_mut(), FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
            entry.completion.len = completion.length;
            entry.completion.data = completion.data.unwrap_or(0);
            return Event { kind: EventKind::RemoteWrite, wanted: true, unsolicited: true, entry };
        };
        let mut entry = ticket.entry(completion);
        entry.completion.flags &= !RECORDED;
        let (mut ended, mut wanted) = (true, ticket.wanted);
        if ticket.kind & FI_MULTI_RECV != 0 {
            entry.completion.buf = ticket.start.wrapping_add(completion.offset).cast();
            if !completion.released {
                entry.completion.flags &= !FI_MULTI_RECV;
                ended = false;
            } else if !wanted && completion.result.is_ok() {
                // The application asked to hear of no message, but has to hear that the buffer is its own again.
                entry = Entry::new(ticket.context, FI_MULTI_RECV);
                wanted = true;
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
        Event { kind: ticket.event, wanted, unsolicited, entry }
    }
}

#[cfg(test)]
mod tests {
    use super::Engine;
    use std::time::Duration;
    use tidegate_message::EndpointConfig;
    use tidegate_message::flow::{Config, SchemeName};

    /// The least receive memory of an endpoint for 1,024 peers, and with how much all of them may send at a time, in
    /// bytes.
    fn for_1024_peers(slots: u32) -> (usize, usize) {
        let config = EndpointConfig {
            flow: Config::new(SchemeName::Dynamic, 1024, slots, 2),
            eager_bytes: 2048,
            operations: 64,
            receive_memory: 0,
            patience: Duration::ZERO,
            packets_per_progress: 64,
            bulk_bytes_per_progress: 1 << 20,
        };
        let for_all = Engine::receive_memory_for_all(&config).expect("a legal configuration");
        (Engine::least_receive_memory(&config).expect("a legal configuration"), for_all)
    }

    #[test]
    fn an_endpoint_for_1024_peers_with_16_slots_takes_2_mb_at_least() {
        let (least, for_all) = for_1024_peers(16);
        assert!(least <= 1_960_000 && for_all <= 4_850_000, "{least}, {for_all}");
        // The mailbox is 1 MiB of it, and 4 MiB with 64 slots.
        assert!(for_1024_peers(64).0 <= least + (3 << 20));
    }
}
