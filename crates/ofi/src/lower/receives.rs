//! [`Receives`]: the receives that are posted, and how many: [`SPARE`], and one more for each peer that is known.
//!
//! libfabric's `tcp` takes a posted receive when the head of a message has come, and keeps it until the last byte is
//! there. So a peer whose host has lost its power in the middle of a batch keeps one, until TCP gives up; with fewer
//! receives than peers, such peers would stop us from hearing all others. A peer has one connection, so it keeps one
//! receive at most; the spare ones are for those whom we do not know yet, and for speed.

use super::objects::{Objects, failure};
use super::slots::Slots;
use super::wants::SPARE;
use crate::border::bindings::*;
use crate::border::loader::Loader;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

/// The address of an unspecified peer.
const ANYBODY: fi_addr_t = u64::MAX;

/// See the module.
pub struct Receives {
    slots: Slots,
    /// Receives that are to be posted.
    to_post: Vec<usize>,
    /// Receives that are in use: posted, to be posted, or lent. They stay so, and become more.
    in_use: usize,
    most: usize,
    /// The receive whose bytes are lent.
    lent: Option<usize>,
}

impl Receives {
    /// None yet. There may ever be `most`, for batches of up to `batch_bytes`.
    pub fn new(most: usize, batch_bytes: usize) -> Receives {
        Receives { slots: Slots::new(batch_bytes), to_post: Vec::new(), in_use: 0, most, lent: None }
    }

    /// Takes more into use, so that there are as many as so many known peers need. `registers`: the provider wants to
    /// know their memory. They are posted by the next [`Self::post`]. The error: there will never be more than there
    /// are.
    pub fn grow(
        &mut self,
        loader: &Loader,
        objects: &mut Objects,
        registers: bool,
        peers: usize,
    ) -> Result<(), String> {
        let wanted = (SPARE + peers).min(self.most);
        while self.in_use < wanted {
            let slot = match self.slots.take() {
                Some(slot) => slot,
                None => {
                    self.add_page(loader, objects, registers)?;
                    continue;
                }
            };
            self.to_post.push(slot);
            self.in_use += 1;
        }
        Ok(())
    }

    fn add_page(&mut self, loader: &Loader, objects: &mut Objects, registers: bool) -> Result<(), String> {
        let page = self.slots.new_page();
        let descriptor = match registers {
            true => match objects.register(loader, page.memory()) {
                Ok(descriptor) => descriptor,
                Err(why) => {
                    self.most = self.in_use;
                    return Err(format!("{why}: {} buffers to receive must do", self.in_use));
                }
            },
            false => null_mut(),
        };
        self.slots.add(page, descriptor);
        Ok(())
    }

    /// Whether the bytes of one are lent.
    pub fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// Whether a call of [`Self::post`] has something to do.
    pub fn is_due(&self) -> bool {
        self.lent.is_some() || !self.to_post.is_empty()
    }

    /// Posts those that are to be posted; nobody looks at lent bytes any more. Returns whether one was posted.
    pub fn post(&mut self, loader: &Loader, objects: &Objects) -> Result<bool, String> {
        self.to_post.extend(self.lent.take());
        let (endpoint, before) = (objects.endpoint.get(), self.to_post.len());
        while let Some(slot) = self.to_post.pop() {
            let (context, data, descriptor) = self.slots.pointers(slot);
            // SAFETY: the endpoint is open; the slot is ours alone until its operation ends, and lives longer than the
            // endpoint.
            let code = unsafe {
                (*(*endpoint).msg).recv.map_or(-FI_ENOSYS as isize, |recv| {
                    recv(endpoint, data, self.slots.data_bytes(), descriptor, ANYBODY, context)
                })
            };
            if code != 0 {
                self.to_post.push(slot);
                // The provider's queue is full, or it has no memory now: others are posted.
                if code == -FI_EAGAIN as isize && self.to_post.len() < self.in_use {
                    break;
                }
                return Err(failure(loader, "posting a receive", code as c_int));
            }
        }
        Ok(self.to_post.len() < before)
    }

    /// The receive of a context, if it is one of ours.
    pub fn find(&self, context: *mut c_void) -> Option<usize> {
        self.slots.find(context)
    }

    /// This receive has ended with so many bytes, which are lent until the next call of [`Self::post`].
    pub fn lend(&mut self, receive: usize, length: usize) -> &[u8] {
        debug_assert!(self.lent.is_none());
        self.lent = Some(receive);
        // SAFETY: the receive has ended, and is posted again by a later call.
        unsafe { self.slots.received(receive, length) }
    }

    /// This receive has ended without a batch.
    pub fn end(&mut self, receive: usize) {
        self.to_post.push(receive);
    }
}
