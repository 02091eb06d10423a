//! A counter: how many operations have ended, and the endpoints that count here.

use crate::border::bindings::*;
use crate::border::object::{Fid, Object};
use crate::objects::domain::Domain;
use crate::objects::endpoint::Endpoint;
use crate::threads::domain_lock::Guarded;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
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
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Counter {
    type Fid = fid_cntr;
}

impl Counter {
    /// A counter at zero.
    pub fn new(fid: fid_cntr, domain: Arc<Domain>) -> Counter {
        let (successes, errors) = (AtomicU64::new(0), AtomicU64::new(0));
        Counter { fid: Fid::new(fid), domain, successes, errors, endpoints: Guarded::new(Vec::new()) }
    }

    /// One more operation has ended.
    #[inline]
    pub fn count(&self, succeeded: bool) {
        let counter = if succeeded { &self.successes } else { &self.errors };
        counter.fetch_add(1, Relaxed);
    }
}
