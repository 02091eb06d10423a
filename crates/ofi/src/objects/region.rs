//! Registered memory: what a domain and its endpoints know of the regions that peers may read and write by key.
//!
//! The application chooses keys, and remote addresses are offsets from the start of a region. Older applications insist
//! on `FI_MR_BASIC`: we choose keys, and remote addresses are virtual addresses. Whoever starts a transfer knows only
//! the key and the address. So a key of ours holds the start of its region (a user's address has at most 48 bits) and a
//! number that tells regions of equal start apart. The offset then follows from the key and the address, and nothing
//! else differs.

use crate::border::bindings::{FI_EKEYREJECTED, FI_ENOKEY};
use crate::border::errno::{Errno, Result};
use crate::objects::active::Engine;
use std::collections::HashMap;
use tidegate_link::IoBuffer;
use tidegate_message::{Access, Buffer};

/// All regions of a domain, by key.
pub type Regions = HashMap<u64, Region>;

/// The accesses of peers that an endpoint counts, whichever region they are to.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Reads (`FI_REMOTE_READ`).
    pub reads: bool,
    /// Writes (`FI_REMOTE_WRITE`).
    pub writes: bool,
}

/// What an endpoint needs to know of a region.
pub struct Region {
    /// Its memory.
    pub buffer: IoBuffer,
    /// What peers may do with it.
    pub access: Vec<Access>,
    /// Whether the changes that peers make to it are to be counted: a counter is bound to it (the domain has them), or
    /// the application has said that it will bind one.
    pub is_counted: bool,
    /// The application closes it, which may take a while: no further endpoint lets peers reach it.
    pub is_closing: bool,
}

impl Region {
    /// Lets peers of this endpoint reach the region: by message, and directly where the link can do that. Of direct
    /// writes that are counted their origins tell us; reads that are counted have to come by message.
    pub fn register(&self, key: u64, engine: &mut Engine, counts: Counts) {
        if self.is_closing {
            return;
        }
        let mut spans = self.buffer.spans();
        if let (Some(span), None) = (spans.next(), spans.next()) {
            let grants = |access| self.access.contains(&access);
            let mut direct = Vec::with_capacity(2);
            if grants(Access::Read) && !counts.reads {
                direct.push(Access::Read);
            }
            if grants(Access::Write) {
                let is_told = counts.writes || self.is_counted;
                direct.push(if is_told { Access::ToldWrite } else { Access::Write });
            }
            engine.link_mut().first().publish_region(key, span, &direct);
        }
        engine.register(key, self.buffer.slice(0, self.buffer.len()), &self.access);
        if self.is_counted {
            engine.count_region(key);
        }
    }
}

/// Bits of a key of ours that tell regions of equal start apart.
const NUMBER_BITS: u32 = 16;

/// The key that we choose for a region at `start`.
pub fn key_for(start: u64, is_used: impl Fn(u64) -> bool) -> Result<u64> {
    if start >> (u64::BITS - NUMBER_BITS) != 0 {
        return Err(Errno(FI_EKEYREJECTED));
    }
    (0..1 << NUMBER_BITS).map(|number| start << NUMBER_BITS | number).find(|&key| !is_used(key)).ok_or(Errno(FI_ENOKEY))
}

/// The start of the region to which a key of ours belongs.
pub fn start_of(key: u64) -> u64 {
    key >> NUMBER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_keys_carry_the_start_of_their_region() {
        let start = 0x7fff_1234_5000;
        let first = key_for(start, |_| false).unwrap();
        let second = key_for(start, |key| key == first).unwrap();
        assert_ne!(first, second);
        assert_eq!((start_of(first), start_of(second)), (start, start));
    }

    #[test]
    fn addresses_that_do_not_fit_a_key_are_refused() {
        assert_eq!(key_for(1 << 48, |_| false), Err(Errno(FI_EKEYREJECTED)));
        assert_eq!(key_for(0, |_| true), Err(Errno(FI_ENOKEY)));
    }
}
