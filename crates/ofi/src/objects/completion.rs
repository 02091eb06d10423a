//! One completion, and how it looks in libfabric's structs: in the format that the application chose for its queue, and
//! as the entry of an operation that failed.

use crate::addressing::addresses::NO_ADDRESS;
use crate::border::bindings::*;
use crate::border::errno::{Errno, Reason, Result};
use crate::parameter::limits::ERROR_TEXT_BYTES_MOST;
use crate::{border::identity, border::log};
use core::ffi::c_void;
use std::ffi::CStr;

/// An operation that succeeded.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The completion in the largest format, of which all others are prefixes.
    pub completion: fi_cq_tagged_entry,
    /// Who sent the message, if it is a receive.
    pub source: fi_addr_t,
}

/// An operation that failed.
pub struct Failed {
    /// The same as for a success. `len` counts the bytes that were transferred before it failed.
    pub entry: Entry,
    /// Why it failed.
    pub reason: Reason,
}

impl Entry {
    /// An entry with nothing but its context and flags.
    pub fn new(context: *mut c_void, flags: u64) -> Entry {
        let (len, buf, data, tag) = (0, core::ptr::null_mut(), 0, 0);
        Entry { completion: fi_cq_tagged_entry { op_context: context, flags, len, buf, data, tag }, source: NO_ADDRESS }
    }
}

/// Bytes of an entry of this format. The formats are prefixes of one another.
pub fn entry_bytes(format: fi_cq_format) -> Result<usize> {
    match format {
        FI_CQ_FORMAT_TAGGED => Ok(size_of::<fi_cq_tagged_entry>()),
        // The default of every provider: an application that leaves the choice to us has room for this much.
        FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_CONTEXT => Ok(size_of::<fi_cq_entry>()),
        FI_CQ_FORMAT_MSG => Ok(size_of::<fi_cq_msg_entry>()),
        FI_CQ_FORMAT_DATA => Ok(size_of::<fi_cq_data_entry>()),
        _ => Err(Errno(FI_ENOSYS)),
    }
}

/// `fi_cq_err_entry` as it is from version 1.20 on.
#[repr(C)]
struct ErrorEntry120 {
    known: fi_cq_err_entry,
    src_addr: fi_addr_t,
}

impl Failed {
    /// Tells the log of an error that an application will read.
    pub fn log(&self) {
        // Truncation, cancellation and an empty peek are answers and no faults: they come without a text.
        if !self.reason.text.is_empty() {
            log::warn(FI_LOG_CQ, || self.reason.text.clone());
        }
    }

    /// Fills in the struct in which the application reads an error. `text` is the text of the reason; it must stay
    /// until the application has looked at it.
    ///
    /// # Safety
    /// `place` must be a struct of interface version `api`, as the application filled it in.
    pub unsafe fn write(&self, text: &CStr, api: u32, place: *mut fi_cq_err_entry) {
        // SAFETY: the fields up to `prov_errno` and the pointer to error data are in every version; what came later is
        // only touched for versions that have it.
        unsafe {
            let from = &self.entry.completion;
            (*place).op_context = from.op_context;
            (*place).flags = from.flags;
            (*place).len = from.len;
            (*place).buf = from.buf;
            (*place).data = from.data;
            (*place).tag = from.tag;
            (*place).olen = self.reason.overflow;
            (*place).err = self.reason.errno.0;
            (*place).prov_errno = self.reason.errno.0;
            let bytes = text.to_bytes_with_nul();
            let bytes = if bytes.len() > 1 { &bytes[..bytes.len().min(ERROR_TEXT_BYTES_MOST)] } else { &[] };
            let has_size = api >= identity::version(1, 5);
            if has_size && (*place).err_data_size > 0 && !(*place).err_data.is_null() {
                // The application brought room of its own. A text that is cut still ends with a zero, for
                // `fi_cq_strerror`; so does one that is not there, because the application may show us its room again.
                let length = bytes.len().min((*place).err_data_size);
                let room = (*place).err_data.cast::<u8>();
                core::ptr::copy_nonoverlapping(bytes.as_ptr(), room, length);
                *room.add(length.saturating_sub(1)) = 0;
                (*place).err_data_size = length;
            } else {
                (*place).err_data =
                    if bytes.is_empty() { core::ptr::null_mut() } else { text.as_ptr().cast_mut().cast() };
                if has_size {
                    (*place).err_data_size = bytes.len();
                }
            }
            if api >= identity::version(1, 20) {
                (*place.cast::<ErrorEntry120>()).src_addr = self.entry.source;
            }
        }
    }
}

/// Completions for tests, by number.
#[cfg(test)]
pub mod samples {
    use super::*;

    pub fn entry(number: usize) -> Entry {
        let mut entry = Entry::new(number as *mut c_void, FI_RECV | FI_TAGGED);
        entry.completion.len = 100 + number;
        entry.completion.data = 200 + number as u64;
        entry.completion.tag = 300 + number as u64;
        entry.source = 400 + number as u64;
        entry
    }

    pub fn failed(number: usize) -> Failed {
        Failed { entry: entry(number), reason: Reason { errno: Errno(FI_ETRUNC), overflow: 7, text: String::new() } }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::failed;
    use super::*;
    use std::ffi::CString;

    /// An application's struct of version 1.20, filled with a pattern.
    fn place() -> ErrorEntry120 {
        // SAFETY: plain data.
        let mut place: ErrorEntry120 = unsafe { core::mem::zeroed() };
        place.src_addr = 0x5555;
        place
    }

    #[test]
    fn old_applications_get_no_fields_that_they_do_not_know() {
        for (api, expected) in [(identity::version(1, 17), 0x5555), (identity::version(1, 20), 402)] {
            let mut place = place();
            // SAFETY: the place has the fields of either version.
            unsafe { failed(2).write(c"", api, (&raw mut place).cast()) };
            assert_eq!(place.src_addr, expected);
            assert_eq!((place.known.err, place.known.olen, place.known.tag), (FI_ETRUNC, 7, 302));
        }
    }

    #[test]
    fn error_data_is_ours_or_copied_into_what_the_application_brought() {
        let text = CString::new("pid 7 died").unwrap();
        let mut ours = place();
        // SAFETY: as above.
        unsafe { failed(2).write(&text, identity::version(1, 17), (&raw mut ours).cast()) };
        assert_eq!(ours.known.err_data.cast_const().cast(), text.as_ptr());
        assert_eq!(ours.known.err_data_size, 11);
        let mut room = [1u8; 6];
        let mut theirs = place();
        theirs.known.err_data = room.as_mut_ptr().cast();
        theirs.known.err_data_size = 5;
        // SAFETY: as above; the room has five bytes and one more.
        unsafe { failed(2).write(&text, identity::version(1, 17), (&raw mut theirs).cast()) };
        assert_eq!(&room, b"pid \0\x01");
        assert_eq!(theirs.known.err_data_size, 5);
        // SAFETY: as above.
        unsafe { failed(2).write(c"", identity::version(1, 17), (&raw mut theirs).cast()) };
        assert_eq!((&room, theirs.known.err_data_size), (b"\0id \0\x01", 0), "no text ends at once");
        (theirs.known.err_data, theirs.known.err_data_size) = (core::ptr::null_mut(), 9);
        // SAFETY: as above; room that is said to be there and is not counts as none.
        unsafe { failed(2).write(&text, identity::version(1, 17), (&raw mut theirs).cast()) };
        assert_eq!((theirs.known.err_data.cast_const().cast(), theirs.known.err_data_size), (text.as_ptr(), 11));
    }
}
