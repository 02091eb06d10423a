//! Libraries that are loaded by their paths, and functions found in them.

use core::ffi::{CStr, c_void};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path as C has it. The error: it has a zero byte.
pub fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("{} has a zero byte", path.display()))
}

/// A library that stays loaded.
#[derive(Clone, Copy, Debug)]
pub struct Library(*mut c_void);

impl Library {
    /// Loads it, for all libraries that come after it. The error is the dynamic loader's.
    pub fn load(path: &Path) -> Result<Library, String> {
        let name = c_path(path)?;
        // SAFETY: constructors of the library may run. This process has been started to load it, and never unloads it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            // SAFETY: the text is the loader's, valid until its next call in this thread; it is null without an error.
            let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
            return Err(text.map_or_else(|| "it cannot be loaded".into(), |text| text.to_string_lossy().into_owned()));
        }
        Ok(Library(handle))
    }

    /// The address of a symbol, if the library or one that it needs has it.
    pub fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the library stays loaded.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is the type of a function pointer that the function of this name may be called through.
    pub unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.symbol(name).ok_or_else(|| format!("it has no {}", name.to_string_lossy()))?;
        // SAFETY: the sizes are equal, and the address of a function is a valid function pointer.
        Ok(unsafe { core::mem::transmute_copy(&address) })
    }
}
