//! The decisions of bulk-transfer scheduling (`tidegate_bulk`) for C: `bulk/tidegate_decisions.h` declares what this
//! folder exports. The library `tidegate_bulk` and the one that `tidegate run --alltoall` preloads call it; libfabric
//! does not have to be there.
//!
//! * `layout.rs`: the structs that both sides see, and what they mean;
//! * `mod.rs`: the functions. None lets a panic reach C, and each bad argument has an error number of its own.

mod layout;

use crate::border::guard::catch;
use core::ffi::{CStr, c_char, c_int};
use layout::{CBlock, CEvent, CSettings, CStep};
use tidegate_bulk::{Block, Completion, Exchange, Node, Settings, TechniqueName};
use tidegate_flow::Instant;

/// What went wrong: `TIDEGATE_BULK_…` in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
enum Wrong {
    /// A pointer is null that must not be.
    Null = -1,
    /// No technique has this name or number.
    Technique = -2,
    /// A node is not below the number of nodes, or there are too many.
    Node = -3,
    /// A setting cannot be.
    Settings = -4,
    /// No such event, or its signal is none.
    Event = -5,
    /// A fault of ours. The exchange refuses all that follows.
    Internal = -6,
}

/// All that can go wrong, with what the caller can do about it.
const WRONG: [(Wrong, &CStr); 6] = [
    (Wrong::Null, c"a pointer is null that must not be"),
    (
        Wrong::Technique,
        c"no technique has this name; there are in_order, interleave, bandwidth_matching, barriers, tokens, receiver_tokens, booking",
    ),
    (Wrong::Node, c"a node is not below the number of nodes; nodes are numbered from 0"),
    (
        Wrong::Settings,
        c"a setting cannot be: unit, outstanding and requests_per_round are at least 1, window is 1 to 64, rounds_per_barrier is 1 to window",
    ),
    (Wrong::Event, c"there is no such event, or its signal is none of tidegate's: all nodes need the same version"),
    (Wrong::Internal, c"internal error of tidegate, please report it"),
];

/// Names of all techniques for C, in the order of their numbers.
const NAMES: [&CStr; 7] =
    [c"in_order", c"interleave", c"bandwidth_matching", c"barriers", c"tokens", c"receiver_tokens", c"booking"];

/// One node's part of one exchange. C knows its address only.
pub struct Handle {
    /// None after a panic: its state may be half changed.
    exchange: Option<Exchange>,
}

/// Runs the body of a call; a panic is [`Wrong::Internal`].
fn answer(body: impl FnOnce() -> Result<c_int, Wrong>) -> c_int {
    match catch(body) {
        Some(Ok(number)) => number,
        Some(Err(wrong)) => wrong as c_int,
        None => Wrong::Internal as c_int,
    }
}

fn technique(number: c_int) -> Result<TechniqueName, Wrong> {
    let place = usize::try_from(number).map_err(|_| Wrong::Technique)?;
    TechniqueName::ALL.get(place).copied().ok_or(Wrong::Technique)
}

/// The number of the technique of this name, or an error.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_bulk_technique(name: *const c_char) -> c_int {
    answer(|| {
        if name.is_null() {
            return Err(Wrong::Null);
        }
        // SAFETY: the caller gives a C string, which is not null.
        let name = unsafe { CStr::from_ptr(name) };
        NAMES.iter().position(|known| *known == name).map(|place| place as c_int).ok_or(Wrong::Technique)
    })
}

/// The name of a technique by its number, null where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_bulk_technique_name(technique: c_int) -> *const c_char {
    let place = usize::try_from(technique).ok();
    place.and_then(|place| NAMES.get(place)).map_or(core::ptr::null(), |name| name.as_ptr())
}

/// Whether pieces of the technique count as sent only when their receiver has them: 1 or 0, or an error.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_bulk_is_delivered(number: c_int) -> c_int {
    answer(|| Ok((technique(number)?.completion() == Completion::Delivered).into()))
}

/// Whether the technique cuts blocks into pieces of at most `unit` bytes; else a block is one piece. 1 or 0, or an
/// error.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_bulk_cuts(number: c_int) -> c_int {
    use TechniqueName::{BandwidthMatching, Booking, Interleave};
    answer(|| Ok(matches!(technique(number)?, Interleave | BandwidthMatching | Booking).into()))
}

/// What a negative answer means, for ever valid.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_bulk_error(code: c_int) -> *const c_char {
    let found = WRONG.iter().find(|(wrong, _)| *wrong as c_int == code);
    found.map_or(c"no error of tidegate", |(_, text)| text).as_ptr()
}

/// The settings that one has who makes none.
///
/// # Safety
/// `settings` is null or a place for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_bulk_defaults(settings: *mut CSettings) -> c_int {
    answer(|| {
        if settings.is_null() {
            return Err(Wrong::Null);
        }
        // SAFETY: not null, so a place for the struct, which has no destructor to be run.
        unsafe { settings.write(Settings::default().into()) };
        Ok(0)
    })
}

/// Begins a node's part of an exchange of `count` blocks, and puts its handle into `exchange`.
///
/// # Safety
/// `blocks` has `count` blocks (or is null if there are none), `settings` is null (the defaults) or valid, `exchange`
/// is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_bulk_new(
    number: c_int,
    me: u32,
    nodes: u32,
    blocks: *const CBlock,
    count: usize,
    settings: *const CSettings,
    exchange: *mut *mut Handle,
) -> c_int {
    answer(|| {
        if exchange.is_null() || (blocks.is_null() && count > 0) {
            return Err(Wrong::Null);
        }
        let name = technique(number)?;
        // SAFETY: the caller gives a place with so many blocks; where it is null there are none.
        let blocks: &[CBlock] = if count == 0 { &[] } else { unsafe { core::slice::from_raw_parts(blocks, count) } };
        if me >= nodes || u32::try_from(count).is_err() || blocks.iter().any(|block| block.to >= nodes) {
            return Err(Wrong::Node);
        }
        // SAFETY: null or valid.
        let settings = unsafe { settings.as_ref() }.map_or_else(Settings::default, |settings| (*settings).into());
        settings.check().map_err(|_| Wrong::Settings)?;
        let blocks: Vec<_> = blocks.iter().map(|block| Block { to: Node(block.to), bytes: block.bytes }).collect();
        let made = Exchange::new(name, Node(me), nodes, &blocks, &settings);
        // SAFETY: not null, so a place for a pointer.
        unsafe { exchange.write(Box::into_raw(Box::new(Handle { exchange: Some(made) }))) };
        Ok(0)
    })
}

/// Uses an exchange; one that a panic has left half changed is not used again.
///
/// # Safety
/// The handle is null or one of `tidegate_bulk_new`, and nobody else uses it now.
unsafe fn with(handle: *mut Handle, body: impl FnOnce(&mut Exchange) -> Result<c_int, Wrong>) -> c_int {
    // SAFETY: promised by the caller.
    let Some(handle) = (unsafe { handle.as_mut() }) else { return Wrong::Null as c_int };
    let Some(mut exchange) = handle.exchange.take() else { return Wrong::Internal as c_int };
    let code = answer(|| {
        let code = body(&mut exchange);
        handle.exchange = Some(exchange);
        code
    });
    debug_assert!(handle.exchange.is_some() || code == Wrong::Internal as c_int);
    code
}

/// What to do now, `now` in nanoseconds of any clock that does not go back.
///
/// # Safety
/// `handle` is of `tidegate_bulk_new`, and no other thread uses it now; `step` is a place for the answer. Both may be
/// null, which is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_bulk_step(handle: *mut Handle, now: u64, step: *mut CStep) -> c_int {
    if step.is_null() {
        return Wrong::Null as c_int;
    }
    // SAFETY: promised by the caller.
    unsafe {
        with(handle, |exchange| {
            let told = CStep::from(exchange.step(Instant::from_nanos(now)));
            // SAFETY: not null, so a place for the struct.
            step.write(told);
            Ok(0)
        })
    }
}

/// Something has happened.
///
/// # Safety
/// As for `tidegate_bulk_step`, with a valid event or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_bulk_handle(handle: *mut Handle, event: *const CEvent) -> c_int {
    // SAFETY: null or valid.
    let Some(event) = (unsafe { event.as_ref() }) else { return Wrong::Null as c_int };
    // SAFETY: promised by the caller.
    unsafe {
        with(handle, |exchange| {
            exchange.handle(event.read().ok_or(Wrong::Event)?);
            Ok(0)
        })
    }
}

/// Ends an exchange, finished or not. Null is allowed.
///
/// # Safety
/// `handle` is null or of `tidegate_bulk_new`, and nobody uses it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_bulk_free(handle: *mut Handle) {
    if !handle.is_null() {
        // SAFETY: made by `Box::into_raw`, given back once.
        let owned = unsafe { Box::from_raw(handle) };
        catch(|| drop(owned));
    }
}

#[cfg(test)]
mod tests;
