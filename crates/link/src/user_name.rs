//! The names of users, as the system's name service has them: [`user_name()`].

use crate::plain::plain;
use std::ffi::{CStr, c_char};
use std::ptr;

/// Room for an entry: a name, a folder, a shell, and what an administrator has written about the user.
const ENTRY_BYTES: usize = 16 << 10;

/// The name of a user; `None` if there is none, or the name service does not answer. May take as long as that does.
pub fn user_name(user: u32) -> Option<String> {
    let mut room = vec![0 as c_char; ENTRY_BYTES];
    let mut found = ptr::null_mut();
    // SAFETY: zeros are an entry without texts, whose pointers are not followed; the call fills it.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    // SAFETY: all pointers are to variables of this function; the room is as long as it says.
    let status = unsafe { libc::getpwuid_r(user, &mut entry, room.as_mut_ptr(), room.len(), &mut found) };
    if status != 0 || found.is_null() || entry.pw_name.is_null() {
        return None;
    }
    // SAFETY: the entry was found, so its name is a text that ends in `room`, which lives until this function ends.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    Some(plain(&name.to_string_lossy())).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_a_number_that_is_free_has_none() {
        assert_eq!((user_name(0).as_deref(), user_name(u32::MAX - 7)), (Some("root"), None));
    }
}
