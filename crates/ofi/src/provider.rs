//! `fi_prov_ini`: what libfabric calls first, and the table of what it may call next.

use crate::bindings::*;
use crate::{fabric, guard, info, loader, log, parameter};
use core::cell::UnsafeCell;
use core::ffi::c_void;

/// Name of the provider, of its fabric and of its domain.
pub const NAME: &core::ffi::CStr = c"tidegate";
/// Version of the provider, in libfabric's form (`FI_VERSION(0, 1)`).
pub const VERSION: u32 = loader::version(0, 1);

/// libfabric keeps the address of this struct and writes into its `context`.
struct Shared(UnsafeCell<fi_provider>);

// SAFETY: we write it once, in `initialize`, before libfabric sees it; from then on it belongs to libfabric, which has its own
// lock around provider set-up.
unsafe impl Sync for Shared {}

static PROVIDER: Shared = Shared(UnsafeCell::new(fi_provider {
    version: VERSION,
    fi_version: 0,
    context: fi_context { internal: [core::ptr::null_mut(); 4] },
    name: NAME.as_ptr(),
    getinfo: Some(info::getinfo),
    fabric: Some(fabric::open),
    cleanup: Some(cleanup),
}));

/// The provider's struct, as libfabric's functions want it.
pub fn raw() -> *mut fi_provider {
    PROVIDER.0.get()
}

/// The entry point that libfabric looks up. It only passes on its return address, which tells which libfabric is calling.
///
/// # Safety
/// Called by libfabric, once per loading.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi_provider {
    core::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym initialize)
}

/// The entry point that libfabric looks up. It only passes on its return address, which tells which libfabric is calling.
///
/// # Safety
/// Called by libfabric, once per loading.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi_provider {
    core::arch::naked_asm!("mov x0, x30", "b {}", sym initialize)
}

/// The entry point that libfabric looks up. Without the caller's address, libfabric is searched by its name.
///
/// # Safety
/// Called by libfabric, once per loading.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi_provider {
    initialize(core::ptr::null())
}

/// Null (libfabric then goes on without us) if the library cannot be served.
extern "C" fn initialize(caller: *const c_void) -> *mut fi_provider {
    guard::catch(|| {
        let Some(loader) = loader::find(caller) else {
            tidegate_link::log::print_line(
                "cannot serve the libfabric that loads it: it does not export its functions, or another libfabric in \
                 this process has loaded the provider before; the provider is left out",
            );
            return core::ptr::null_mut();
        };
        // SAFETY: see `Shared`. libfabric refuses a provider whose interface is older than what the application asks for; the
        // structs come from the loader itself, so its version is the honest answer.
        unsafe { (*raw()).fi_version = loader.version };
        log::connect();
        parameter::register(loader);
        raw()
    })
    .unwrap_or(core::ptr::null_mut())
}

/// Nothing lives outside fabrics.
unsafe extern "C" fn cleanup() {}
