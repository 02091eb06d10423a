//! Reading memory of peers through the provider below, and letting them read ours.
//!
//! Each piece of memory that peers may read is registered when it is exposed, and deregistered when it is hidden. There
//! is no cache of registrations here: with `tcp` one costs less than a microsecond, and providers whose hardware has to
//! know memory keep caches of their own, which notice when memory goes away.
//!
//! A peer is told one key for all pieces of a message. Where we choose keys, the pieces have it and those that follow
//! it, and their addresses say which: the number of the piece stands above [`ADDRESS_BITS`]. Where the provider chooses
//! them, memory of several pieces is not exposed, and goes packet by packet.

use super::asking::Reading;
use super::objects::{Exposed, Objects, failure, key_of};
use super::reads::Reads;
use crate::border::bindings::*;
use crate::border::loader::Loader;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use tidegate_link::IoBuffer;
use tidegate_link::fabric::{Route, Sending, Token};
use tidegate_message::{Buffer, RemoteMemory, Span};

/// Bits of an address in a process, or of a distance from the beginning of a piece; above them is the piece's number.
const ADDRESS_BITS: u32 = 57;
/// Tries to find keys that are not taken.
const KEYS_TRIED: usize = 4;

/// The keys of memory of so many pieces that nobody has or can guess, the first of them.
fn random_key(bytes: usize, pieces: usize) -> u64 {
    let most = if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
    // One more than the key is what peers are told, since they take 0 for none.
    tidegate_link::random() % (most - pieces as u64 - 1)
}

/// See the module.
pub struct Memory {
    /// Reads of peers' memory that are under way.
    reads: Reads,
    reading: Reading,
    loader: &'static Loader,
}

impl Memory {
    /// Nothing is being read.
    pub fn new(reading: Reading, loader: &'static Loader) -> Memory {
        Memory { reads: Reads::default(), reading, loader }
    }

    /// As [`Network::expose`](tidegate_link::fabric::Network::expose).
    pub fn expose(&self, objects: &mut Objects, memory: &IoBuffer, pieces: &mut [Span]) -> Option<u64> {
        let spans: Vec<Span> = memory.spans().collect();
        let is_sound = spans.len() == pieces.len() && spans.iter().all(|span| span.address >> ADDRESS_BITS == 0);
        if !is_sound || spans.is_empty() || (self.reading.key_bytes.is_none() && spans.len() > 1) {
            return None;
        }
        let (key, regions) = (0..KEYS_TRIED).find_map(|_| self.register(objects, &spans))?;
        for (number, (piece, span)) in pieces.iter_mut().zip(&spans).enumerate() {
            let base = if self.reading.names_addresses { span.address } else { 0 };
            piece.address = (number as u64) << ADDRESS_BITS | base;
        }
        objects.exposed.entry(key + 1).or_default().push(regions);
        Some(key + 1)
    }

    /// Registers pieces of memory by fresh keys. Returns the first of these. `None`: they are taken, or the provider
    /// cannot register this memory.
    fn register(&self, objects: &Objects, spans: &[Span]) -> Option<(u64, Exposed)> {
        let chosen = self.reading.key_bytes.map(|bytes| random_key(bytes, spans.len()));
        let mut regions = Vec::with_capacity(spans.len());
        for (span, number) in spans.iter().zip(0..) {
            let memory = (span.address as *const c_void, span.length as usize);
            let key = chosen.map_or(0, |first| first + number);
            let region = objects.register_for(self.loader, memory, FI_REMOTE_READ, key).ok()?;
            if self.reading.binds_endpoint {
                objects.bind_region(self.loader, &region).ok()?;
            }
            regions.push(region);
        }
        let key = chosen.unwrap_or_else(|| key_of(&regions[0]));
        (key != u64::MAX).then_some((key, regions))
    }

    /// As [`Network::hide`](tidegate_link::fabric::Network::hide).
    pub fn hide(&self, objects: &mut Objects, key: u64) {
        let Some(same) = objects.exposed.get_mut(&key) else { return };
        same.pop();
        if same.is_empty() {
            objects.exposed.remove(&key);
        }
    }

    /// As [`Network::read`](tidegate_link::fabric::Network::read).
    pub fn read(
        &mut self,
        objects: &mut Objects,
        from: Route,
        token: Token,
        memory: RemoteMemory,
        into: IoBuffer,
    ) -> Sending {
        let (number, address) = (memory.span.address >> ADDRESS_BITS, memory.span.address & ((1 << ADDRESS_BITS) - 1));
        let mut spans = into.spans();
        let (Some(local), None) = (spans.next(), spans.next()) else {
            return Sending::Failed("memory of several pieces is not read at once".into());
        };
        drop(spans);
        let Some(key) = memory.key.checked_sub(1).and_then(|key| key.checked_add(number)) else {
            return Sending::Failed("there is no such key".into());
        };
        let (data, length) = (local.address as *mut c_void, local.length.min(memory.span.length) as usize);
        let (place, context) = self.reads.begin(token, into);
        let descriptor = match self.reading.registers_own {
            true => objects.register_destination(self.loader, place, (data, length)),
            false => Ok(null_mut()),
        };
        let endpoint = objects.endpoint.get();
        let code = match descriptor {
            // SAFETY: the endpoint is open. `reads` keeps the context, which never moves, and the buffer, whose memory
            // is there and nobody else's as long as it exists, until the provider has ended the operation.
            Ok(descriptor) => unsafe {
                let read = (*(*endpoint).rma).read;
                read.map_or(-FI_ENOSYS as isize, |read| {
                    read(endpoint, data, length, descriptor, from.0, address, key, context)
                })
            },
            Err(why) => {
                self.reads.end(place);
                return Sending::Failed(why);
            }
        };
        if code == 0 {
            return Sending::Taken;
        }
        self.end(objects, place);
        let code = code as c_int;
        if code == -FI_EAGAIN { Sending::Again } else { Sending::Failed(failure(self.loader, "reading", code)) }
    }

    /// The read of this context has ended, if it is one. Returns the protocol's name for it.
    pub fn end_of(&mut self, objects: &mut Objects, context: *mut c_void) -> Option<Token> {
        let place = self.reads.find(context)?;
        self.end(objects, place)
    }

    fn end(&mut self, objects: &mut Objects, place: usize) -> Option<Token> {
        objects.destinations.remove(&place);
        self.reads.end(place)
    }
}
