//! Who this provider is: its name, its version, and the struct by which libfabric knows it.

use crate::border::bindings::*;
use core::cell::UnsafeCell;

/// Name of the provider, of its fabric and of its domain.
pub const NAME: &core::ffi::CStr = c"tidegate";
/// Version of the provider, in libfabric's form (`FI_VERSION(0, 2)`): that of the workspace.
pub const VERSION: u32 = version(number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR")));
/// Version and commit for the log, such as `Tidegate 0.2.0 (commit 0123456789ab)`.
pub const TEXT: &str = concat!("Tidegate ", env!("CARGO_PKG_VERSION"), " (commit ", env!("TIDEGATE_COMMIT"), ")");

/// A number of the version, which cargo tells as text.
const fn number(digits: &str) -> u32 {
    match u32::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("cargo's versions are numbers"),
    }
}

/// `FI_VERSION(major, minor)`.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// libfabric keeps the address of this struct and writes into its `context`.
struct Shared(UnsafeCell<fi_provider>);

// SAFETY: we write it only in `provider::initialize`, before libfabric sees it; from then on it belongs to libfabric,
// which has its own lock around provider set-up.
unsafe impl Sync for Shared {}

/// `provider::initialize` fills in the functions that libfabric may call. This file cannot name them, because files use
/// only files before them in the table of `lib.rs`.
static PROVIDER: Shared = Shared(UnsafeCell::new(fi_provider {
    version: VERSION,
    fi_version: 0,
    context: fi_context { internal: [core::ptr::null_mut(); 4] },
    name: NAME.as_ptr(),
    getinfo: None,
    fabric: None,
    cleanup: None,
}));

/// The provider's struct, as libfabric's functions want it.
pub fn raw() -> *mut fi_provider {
    PROVIDER.0.get()
}
