//! [`Sends`]: how a batch is handed to the provider below: copied into a slot's memory, or, where memory need not be
//! registered, shared with the link, which keeps it until its receiver has it anyway.

use super::objects::{Objects, failure};
use super::slots::Slots;
use crate::border::bindings::*;
use crate::border::loader::Loader;
use crate::border::log;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::sync::Arc;
use tidegate_link::fabric::{Route, Sending, Token};

/// Bytes of batches that are copied though memory is not registered: of nearly all that are not kept.
const NOT_KEPT_MOST: usize = 512;

/// The provider is given this of an operation: its context, the bytes, and the descriptor of their memory.
type Pointers = (*mut c_void, *mut c_void, *mut c_void);

/// Operations that send.
pub struct Sends {
    slots: Slots,
    /// How many there may be.
    most: usize,
    /// Whether the provider wants to know the memory of the slots.
    registers: bool,
}

/// The provider below.
pub struct Below<'a> {
    pub loader: &'static Loader,
    pub objects: &'a mut Objects,
    /// For people.
    pub name: &'a str,
}

impl Sends {
    /// None yet. There may be `most`, of batches of up to `batch_bytes`. `registers`: the provider wants to know their
    /// memory.
    pub fn new(most: usize, batch_bytes: usize, registers: bool) -> Sends {
        let slots = Slots::new(if registers { batch_bytes } else { NOT_KEPT_MOST });
        Sends { slots, most, registers }
    }

    /// Sends a copy of a batch.
    pub fn send(&mut self, mut below: Below<'_>, to: Route, token: Token, batch: &[u8]) -> Sending {
        if !self.registers && batch.len() > self.slots.data_bytes() {
            return self.send_kept(below, to, token, &Arc::new(batch.to_vec()));
        }
        let Some(slot) = self.take(&mut below) else { return self.no_buffer(&below) };
        self.slots.fill(slot, batch);
        self.start(&below, to, token, slot, self.slots.pointers(slot), batch.len())
    }

    /// Sends a batch that stays as it is until the operation has ended: shares it, if that is possible.
    pub fn send_kept(&mut self, mut below: Below<'_>, to: Route, token: Token, batch: &Arc<Vec<u8>>) -> Sending {
        if self.registers {
            return self.send(below, to, token, batch);
        }
        let Some(slot) = self.take(&mut below) else { return self.no_buffer(&below) };
        let pointers = self.slots.share(slot, batch);
        self.start(&below, to, token, slot, pointers, batch.len())
    }

    /// All buffers are in use, or there will never be one.
    fn no_buffer(&self, below: &Below<'_>) -> Sending {
        match self.most {
            0 => Sending::Failed(format!("{} registers no memory to send from", below.name)),
            _ => Sending::NoBuffer,
        }
    }

    /// The token of the operation with this context, if it is one of these: it has ended.
    pub fn end(&mut self, context: *mut c_void) -> Option<Token> {
        let slot = self.slots.find(context)?;
        self.slots.give_back(slot);
        Some(self.slots.tokens[slot])
    }

    /// A slot to send from. There are as many as the peers may use, made as they are needed: a peer that takes nothing
    /// must not hold up the others.
    fn take(&mut self, below: &mut Below<'_>) -> Option<usize> {
        if let Some(slot) = self.slots.take() {
            return Some(slot);
        }
        if self.slots.count() >= self.most {
            return None;
        }
        let page = self.slots.new_page();
        let descriptor = match self.registers {
            true => match below.objects.register(below.loader, page.memory()) {
                Ok(descriptor) => descriptor,
                Err(why) => {
                    let count = self.slots.count();
                    let text = format!("{}: {why}: {count} buffers to send must do", below.name);
                    log::trouble(FI_LOG_EP_DATA, &text);
                    self.most = count;
                    return None;
                }
            },
            false => null_mut(),
        };
        self.slots.add(page, descriptor);
        self.slots.take()
    }

    /// Starts the operation of a slot.
    fn start(
        &mut self,
        below: &Below<'_>,
        to: Route,
        token: Token,
        slot: usize,
        (context, data, descriptor): Pointers,
        length: usize,
    ) -> Sending {
        self.slots.tokens[slot] = token;
        let endpoint = below.objects.endpoint.get();
        // SAFETY: the endpoint is open; slot and bytes are the provider's until the operation ends, and outlive the
        // endpoint.
        let code = unsafe {
            (*(*endpoint).msg)
                .send
                .map_or(-FI_ENOSYS as isize, |send| send(endpoint, data, length, descriptor, to.0, context))
        };
        let code = code as c_int;
        if code == 0 {
            return Sending::Taken;
        }
        self.slots.give_back(slot);
        if code == -FI_EAGAIN { Sending::Again } else { Sending::Failed(failure(below.loader, "sending", code)) }
    }
}
