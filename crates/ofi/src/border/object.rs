//! What all libfabric objects have in common: a `fid` in front, by which libfabric and applications know them, and
//! memory that they share with whoever is bound to them.

use crate::border::bindings::*;
use crate::border::errno::{Errno, Result};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::ManuallyDrop;
use std::sync::Arc;

/// The C struct at the start of an object. libfabric writes into some of them.
#[repr(transparent)]
pub struct Fid<T>(UnsafeCell<T>);

// SAFETY: written here only before the object is handed out; afterwards the struct belongs to libfabric and the
// application.
unsafe impl<T> Sync for Fid<T> {}
// SAFETY: plain data and pointers to static tables.
unsafe impl<T> Send for Fid<T> {}

impl<T> Fid<T> {
    /// Wraps the struct.
    pub fn new(value: T) -> Self {
        Fid(UnsafeCell::new(value))
    }

    /// The pointer that the application gets.
    pub fn raw(&self) -> *mut T {
        self.0.get()
    }
}

/// An object with its C struct in front.
///
/// # Safety
/// The type is `repr(C)` and its first field is a `Fid<Self::Fid>`, whose own first field is a `fid`.
pub unsafe trait Object: Sized {
    /// The C struct.
    type Fid;
}

/// The object behind a pointer that libfabric or the application passes in.
///
/// # Safety
/// The pointer must come from [`hand_out`] of the same type, and the object must not be closed before `'a` ends.
#[inline(always)]
pub unsafe fn object<'a, T: Object>(pointer: *mut T::Fid) -> &'a T {
    // SAFETY: promised by the caller; the C struct is the first field.
    unsafe { &*pointer.cast::<T>() }
}

/// As [`object`], but sharing the memory, so that it stays when the application closes the object.
///
/// # Safety
/// As for [`object`].
pub unsafe fn share<T: Object>(pointer: *mut T::Fid) -> Arc<T> {
    // SAFETY: `hand_out` made the pointer from an `Arc`, which the application's handle still counts for.
    unsafe {
        Arc::increment_strong_count(pointer.cast::<T>());
        Arc::from_raw(pointer.cast::<T>())
    }
}

/// Gives the application its handle on a new object.
///
/// # Safety
/// `place` must be valid for writing.
pub unsafe fn hand_out<T: Object>(object: Arc<T>, place: *mut *mut T::Fid) {
    // SAFETY: promised by the caller.
    unsafe { *place = Arc::into_raw(object).cast_mut().cast() }
}

/// The application closes its handle. `FI_EBUSY` if others still use the object: then the handle stays valid. In a
/// forked child objects that it has inherited are never in use, in whatever order it closes them: what one needs that
/// cannot be closed there (`closing`) stays until the child ends.
///
/// # Safety
/// `hand_out` made the pointer; unless the answer is an error it must not be used again.
pub unsafe fn close<T: Object>(pointer: *mut T::Fid, is_used: impl FnOnce(&Arc<T>) -> bool) -> Result {
    // SAFETY: promised by the caller. The drop below is the only place that gives up the handle's count.
    let handle = ManuallyDrop::new(unsafe { Arc::from_raw(pointer.cast_const().cast::<T>()) });
    if is_used(&handle) {
        return Err(Errno(FI_EBUSY));
    }
    drop(ManuallyDrop::into_inner(handle));
    Ok(0)
}

/// The common head of an object.
pub fn head(class: u32, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass: class as usize, context, ops: (&raw const *ops).cast_mut() }
}

/// A table for [`head`].
pub const fn operations(
    close: unsafe extern "C" fn(*mut fid) -> c_int,
    bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
    control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
) -> fi_ops {
    fi_ops {
        size: size_of::<fi_ops>(),
        close: Some(close),
        bind: Some(bind),
        control: Some(control),
        ops_open: Some(no_ops_open),
        tostr: Some(no_tostr),
        ops_set: Some(no_ops_set),
    }
}

/// For objects that nothing binds to.
pub unsafe extern "C" fn no_bind(_: *mut fid, _: *mut fid, _: u64) -> c_int {
    -FI_ENOSYS
}

/// For objects without controls.
pub unsafe extern "C" fn no_control(_: *mut fid, _: c_int, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_ops_open(_: *mut fid, _: *const c_char, _: u64, _: *mut *mut c_void, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_tostr(_: *const fid, _: *mut c_char, _: usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_ops_set(_: *mut fid, _: *const c_char, _: u64, _: *mut c_void, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}

/// A static table, as the C structs want it.
pub const fn table<T>(table: &'static T) -> *mut T {
    (&raw const *table).cast_mut()
}

/// Copies `bytes` into the caller's place, as far as there is room, and sets `length` to the number of bytes that there
/// are. Too little room is no error here; the caller compares the lengths.
///
/// # Safety
/// `length` must be valid, and as many bytes as it says at `place`.
pub unsafe fn copy_out(bytes: &[u8], place: *mut c_void, length: *mut usize) {
    // SAFETY: promised by the caller.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len().min(*length));
        *length = bytes.len();
    }
}
