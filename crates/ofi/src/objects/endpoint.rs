//! An endpoint: what it is bound to, and what changes while it lives. It is opened in `opening`, sends and receives
//! through `submit`, makes progress in `progress`, and ends in `closing`.

use crate::addressing::addresses::Addresses;
use crate::border::bindings::*;
use crate::border::object::{Fid, Object};
use crate::objects::active::Active;
use crate::objects::completion_queue::CompletionQueue;
use crate::objects::counter::Counter;
use crate::objects::domain::Domain;
use crate::objects::region::Counts;
use crate::operations::operation::EventKind;
use crate::threads::domain_lock::Guarded;
use crate::threads::wait::Wait;
use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};
use tidegate_link::Service;

/// `FI_OPT_MIN_MULTI_RECV` until the application sets it, in bytes.
const MULTI_RECEIVE_LEAST: usize = 64;

/// Where completions of one direction go.
pub struct QueueBinding {
    /// The queue.
    pub queue: Arc<CompletionQueue>,
    /// Whether only operations with `FI_COMPLETION` report success here.
    pub selective: bool,
}

/// An endpoint.
#[repr(C)]
pub struct Endpoint {
    fid: Fid<fid_ep>,
    /// Its domain.
    pub domain: Arc<Domain>,
    caps: u64,
    /// The service by which others are to find it.
    pub service: Option<Service>,
    /// The queue for sends and remote operations.
    pub send_queue: OnceLock<QueueBinding>,
    /// The queue for receives, and for writes of peers.
    pub receive_queue: OnceLock<QueueBinding>,
    /// Addresses of peers.
    pub vector: OnceLock<Arc<Addresses>>,
    /// The counter for each [`EventKind`].
    pub counters: [OnceLock<Arc<Counter>>; EventKind::COUNT],
    /// Everything that changes.
    pub state: Guarded<State>,
}

/// What the application asks of an endpoint when it opens it.
pub struct Defaults {
    /// Capabilities.
    pub caps: u64,
    /// Flags of sending calls that take none themselves.
    pub send_flags: u64,
    /// Flags of receiving calls that take none themselves.
    pub receive_flags: u64,
}

/// What the domain's lock guards.
pub struct State {
    /// What it communicates with. It is there from `fi_enable` or the first `fi_getname`, until closing.
    pub active: Option<Active>,
    /// Whether the application has enabled the endpoint.
    pub enabled: bool,
    /// Flags of sending calls that take none themselves.
    pub send_flags: u64,
    /// Flags of receiving calls that take none themselves.
    pub receive_flags: u64,
    /// `FI_OPT_MIN_MULTI_RECV`, in bytes.
    pub multi_receive_least: usize,
    /// How many sends and remote operations may start before the room in their queue has to be looked at again.
    pub send_room: usize,
    /// The same for receives.
    pub receive_room: usize,
    /// A call of the application has made progress of this endpoint since the progress thread looked last.
    pub progressed_by_app: bool,
    /// Whether threads may sleep on queues of ours, so that we have to wake them (see `sleepers`).
    pub watched: bool,
}

impl State {
    /// How many operations of this kind may start before the room in their queue has to be looked at again.
    #[inline(always)]
    pub fn room(&mut self, kind: EventKind) -> &mut usize {
        if kind == EventKind::Receive { &mut self.receive_room } else { &mut self.send_room }
    }
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Endpoint {
    type Fid = fid_ep;
}

impl Endpoint {
    /// The object that `fi_endpoint` hands out, neither bound nor enabled. `service` is the one by which others are to
    /// find it.
    pub fn new(fid: fid_ep, domain: Arc<Domain>, service: Option<Service>, defaults: Defaults) -> Endpoint {
        let state = State {
            active: None,
            enabled: false,
            send_flags: defaults.send_flags,
            receive_flags: defaults.receive_flags,
            multi_receive_least: MULTI_RECEIVE_LEAST,
            send_room: 0,
            receive_room: 0,
            progressed_by_app: false,
            watched: false,
        };
        Endpoint {
            fid: Fid::new(fid),
            domain,
            caps: defaults.caps,
            service,
            send_queue: OnceLock::new(),
            receive_queue: OnceLock::new(),
            vector: OnceLock::new(),
            counters: [const { OnceLock::new() }; EventKind::COUNT],
            state: Guarded::new(state),
        }
    }

    /// Whether receives accept messages only from the sender that they name.
    #[inline]
    pub fn is_directed(&self) -> bool {
        self.caps & FI_DIRECTED_RECV != 0
    }

    /// Which accesses of peers have a counter.
    pub fn counts(&self) -> Counts {
        let counts = |kind: EventKind| self.counters[kind as usize].get().is_some();
        Counts { reads: counts(EventKind::RemoteRead), writes: counts(EventKind::RemoteWrite) }
    }

    /// Those of its queues whose readers can sleep.
    pub fn wait_queues(&self) -> impl Iterator<Item = &Arc<CompletionQueue>> {
        let send = self.send_queue.get().map(|bound| &bound.queue);
        let receive = self.receive_queue.get().map(|bound| &bound.queue);
        send.into_iter()
            .chain(receive.filter(|queue| send.is_none_or(|send| !Arc::ptr_eq(send, queue))))
            .filter(|queue| queue.wakes())
    }

    /// What threads sleep on until something comes for this endpoint.
    pub fn waits(&self) -> impl Iterator<Item = &Wait> {
        let thread = self.domain.progress_thread.as_ref().and_then(|thread| thread.wait());
        self.wait_queues().filter_map(|queue| queue.wait()).chain(thread)
    }

    /// These descriptors wake none of them any more.
    pub fn remove_wakes(&self, descriptors: &[RawFd]) {
        for descriptor in descriptors {
            self.waits().for_each(|wait| wait.remove(*descriptor));
        }
    }

    /// Where completions of this kind go.
    #[inline]
    pub fn queue_for(&self, kind: EventKind) -> Option<&QueueBinding> {
        if kind.comes_in() { self.receive_queue.get() } else { self.send_queue.get() }
    }
}
