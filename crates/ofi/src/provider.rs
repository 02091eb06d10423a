//! `fi_prov_ini`: what libfabric calls first, and the table of what it may call next.

use crate::border::bindings::*;
use crate::calls::fabric;
use crate::{border::guard, border::identity, border::loader, border::log, info, parameter};
use core::ffi::c_void;

/// The entry point that libfabric looks up. It only passes on its return address, which tells which libfabric is
/// calling.
///
/// # Safety
/// Called by libfabric, once per loading.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi_provider {
    core::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym initialize)
}

/// The entry point that libfabric looks up. It only passes on its return address, which tells which libfabric is
/// calling.
///
/// # Safety
/// Called by libfabric, once per loading.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi_provider {
    core::arch::naked_asm!("mov x0, x30", "b {}", sym initialize)
}

/// The entry point that libfabric looks up. On this architecture the caller's address is not known, so libfabric is
/// looked for in the whole program and by its name.
///
/// # Safety
/// Called by libfabric, once per loading.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi_provider {
    initialize(core::ptr::null())
}

/// Returns the provider's struct, or null if this libfabric cannot be served; it then goes on without us.
extern "C" fn initialize(caller: *const c_void) -> *mut fi_provider {
    guard::catch(|| {
        let Some(loader) = loader::find(caller) else {
            tidegate_link::log::print_line(
                "cannot serve the libfabric that loads this provider: it does not export its functions, or another \
                 libfabric in this process has loaded the provider before; the provider is left out",
            );
            return core::ptr::null_mut();
        };
        // SAFETY: the struct is ours until we return it. libfabric refuses a provider whose interface is older than
        // what the application asks for; the structs come from the loader itself, so its version is the honest answer.
        unsafe {
            let provider = identity::raw();
            (*provider).fi_version = loader.version;
            (*provider).getinfo = Some(info::getinfo);
            (*provider).fabric = Some(fabric::open);
            (*provider).cleanup = Some(cleanup);
        }
        log::connect();
        parameter::register(loader);
        log::info(FI_LOG_CORE, || identity::TEXT.to_owned());
        identity::raw()
    })
    .unwrap_or(core::ptr::null_mut())
}

/// There is nothing to clean up: nothing lives outside fabrics.
unsafe extern "C" fn cleanup() {}
