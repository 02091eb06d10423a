//! A counter: how many operations have ended, and the endpoints that count here.

use crate::border::bindings::*;
use crate::border::object::{Fid, Object};
use crate::objects::domain::Domain;
use crate::objects::endpoint::Endpoint;
use crate::threads::domain_lock::{Entered, Guarded};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

/// A counter.
#[repr(C)]
pub struct Counter {
    fid: Fid<fid_cntr>,
    /// Its domain.
    pub domain: Arc<Domain>,
    /// Operations that ended well.
    pub successes: AtomicU64,
    /// Operations that failed.
    pub errors: AtomicU64,
    /// Endpoints that count here.
    pub endpoints: Guarded<Vec<Arc<Endpoint>>>,
    /// Whether it counts at regions, which peers reach through any endpoint of the domain.
    pub counts_at_regions: Guarded<bool>,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Counter {
    type Fid = fid_cntr;
}

impl Counter {
    /// A counter at zero.
    pub fn new(fid: fid_cntr, domain: Arc<Domain>) -> Counter {
        let (successes, errors) = (AtomicU64::new(0), AtomicU64::new(0));
        let (endpoints, counts_at_regions) = (Guarded::new(Vec::new()), Guarded::new(false));
        Counter { fid: Fid::new(fid), domain, successes, errors, endpoints, counts_at_regions }
    }

    /// One more operation has ended. Its data is there for who sees the count.
    #[inline]
    pub fn count(&self, succeeded: bool) {
        let counter = if succeeded { &self.successes } else { &self.errors };
        counter.fetch_add(1, Release);
    }

    /// How many operations have ended well.
    #[inline]
    pub fn ended_well(&self) -> u64 {
        self.successes.load(Acquire)
    }

    /// The endpoints whose operations it counts.
    pub fn counted<'a>(&'a self, entered: &'a mut Entered) -> &'a [Arc<Endpoint>] {
        match *self.counts_at_regions.get(entered) {
            true => &self.domain.state.get(entered).endpoints,
            false => self.endpoints.get(entered),
        }
    }
}
