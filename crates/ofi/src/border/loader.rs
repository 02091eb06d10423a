//! The libfabric that loaded this provider. It may have any version and may have been loaded in any way; this file
//! finds its functions.
//!
//! Linking against libfabric would tie the provider to one library file. MPI packages bring their own, rename it, load
//! it privately (`RTLD_LOCAL`) or contain it. But `fi_prov_ini` is called by libfabric, so the return address of that
//! call leads to the right object even if several are loaded.

use crate::border::bindings::*;
use crate::border::identity;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// Functions of libfabric that a provider needs. `fi_dupinfo` in particular allocates structs of the loader's own size.
pub struct Loader {
    /// `fi_version`: 0x10011 is 1.17.
    pub version: u32,
    /// The address where the library starts. It tells two libraries in one process apart.
    base: usize,
    dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    getinfo: GetInfo,
    freeinfo: unsafe extern "C" fn(*mut fi_info),
    fabric: OpenFabric,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    param_define: unsafe extern "C" fn(*const fi_provider, *const c_char, fi_param_type, *const c_char, ...) -> c_int,
    param_get: unsafe extern "C" fn(*mut fi_provider, *const c_char, *mut c_void) -> c_int,
    log:
        unsafe extern "C" fn(*const fi_provider, fi_log_level, fi_log_subsys, *const c_char, c_int, *const c_char, ...),
    log_enabled: unsafe extern "C" fn(*const fi_provider, fi_log_level, fi_log_subsys) -> c_int,
}

type GetInfo = unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int;
/// `fi_fabric`.
pub type OpenFabric = unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;

impl core::fmt::Debug for Loader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Loader").field("version", &self.version).finish_non_exhaustive()
    }
}

static LOADER: OnceLock<Loader> = OnceLock::new();

/// The library. There is none before `fi_prov_ini` has run.
pub fn get() -> Option<&'static Loader> {
    LOADER.get()
}

/// Finds the library whose code contains `caller`. There is none if functions are missing, or if another library has
/// loaded this provider before, because one provider object cannot serve two libraries.
pub fn find(caller: *const c_void) -> Option<&'static Loader> {
    let found = [Object::containing(caller), Some(Object::whole_program()), Object::already_loaded(c"libfabric.so.1")]
        .into_iter()
        .flatten()
        .find_map(|object| object.functions())?;
    let base = found.base;
    let loader = LOADER.get_or_init(|| found);
    (loader.base == base).then_some(loader)
}

/// Whether the library that `tidegate run --alltoall` preloads is in this process.
pub fn has_preloaded_library() -> bool {
    Object::whole_program().symbol(c"tidegate_alltoall_preloaded").is_some()
}

/// A loaded object, as `dlsym` wants it.
struct Object(*mut c_void);

impl Object {
    fn containing(address: *const c_void) -> Option<Object> {
        // SAFETY: `dladdr` only compares the address and fills in the zeroed struct; the name it gives lives as long as
        // the object, which is on the call stack below us.
        unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            if address.is_null() || libc::dladdr(address, &mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            Object::already_loaded(CStr::from_ptr(info.dli_fname))
        }
    }

    fn whole_program() -> Object {
        Object(libc::RTLD_DEFAULT)
    }

    fn already_loaded(name: &CStr) -> Option<Object> {
        // SAFETY: with RTLD_NOLOAD nothing is loaded and no constructor runs. The handle is never closed, which keeps
        // the library in place as long as we may call it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Object(handle))
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is one of the loader's own special values or of an object that stays loaded.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// # Safety
    /// `F` must be the function pointer type of the function that libfabric exports by this name.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the sizes are equal, and a non-null address of a function is a valid function pointer.
        self.symbol(name).map(|address| unsafe { core::mem::transmute_copy(&address) })
    }

    fn functions(&self) -> Option<Loader> {
        // SAFETY: the types in `Loader` are those of fabric.h, fi_prov.h and fi_log.h, the same since version 1.0.
        // `dlsym` yields the newest version of each symbol, which is the one that matches the library's own structs.
        unsafe {
            let version: unsafe extern "C" fn() -> u32 = self.function(c"fi_version")?;
            let mut place: libc::Dl_info = core::mem::zeroed();
            libc::dladdr(version as *const c_void, &mut place);
            Some(Loader {
                version: version(),
                base: place.dli_fbase as usize,
                dupinfo: self.function(c"fi_dupinfo")?,
                getinfo: self.function(c"fi_getinfo")?,
                freeinfo: self.function(c"fi_freeinfo")?,
                fabric: self.function(c"fi_fabric")?,
                strerror: self.function(c"fi_strerror")?,
                param_define: self.function(c"fi_param_define")?,
                param_get: self.function(c"fi_param_get")?,
                log: self.function(c"fi_log")?,
                log_enabled: self.function(c"fi_log_enabled")?,
            })
        }
    }
}

impl Loader {
    /// Whether the library is at least `major.minor`.
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        self.version >= identity::version(major, minor)
    }

    /// An empty `fi_info` with all its parts, each as large as in the library's version. It is null when memory is
    /// short.
    pub fn allocate_info(&self) -> *mut fi_info {
        // SAFETY: `fi_dupinfo(NULL)` is how libfabric defines `fi_allocinfo`.
        unsafe { (self.dupinfo)(core::ptr::null()) }
    }

    /// `fi_getinfo` without node and service.
    ///
    /// # Safety
    /// The hints are valid, and `list` is a place for the answer. Not called while libfabric loads or unloads
    /// providers.
    pub unsafe fn get_info(&self, api: u32, flags: u64, hints: *const fi_info, list: *mut *mut fi_info) -> c_int {
        // SAFETY: promised by the caller.
        unsafe { (self.getinfo)(api, core::ptr::null(), core::ptr::null(), flags, hints, list) }
    }

    /// `fi_freeinfo`.
    ///
    /// # Safety
    /// The list came from this library, and nobody uses it after this.
    pub unsafe fn free_info(&self, list: *mut fi_info) {
        // SAFETY: promised by the caller.
        unsafe { (self.freeinfo)(list) };
    }

    /// `fi_fabric`.
    pub fn fabric_function(&self) -> Option<OpenFabric> {
        Some(self.fabric)
    }

    /// The library of this file name, in a process that libfabric has not loaded: a test, or one that looks at an
    /// installation.
    pub fn of_library(path: &CStr) -> Option<&'static Loader> {
        // SAFETY: libfabric's constructors may run; it is never unloaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let object = (!handle.is_null()).then_some(Object(handle))?;
        Some(Box::leak(Box::new(object.functions()?)))
    }

    /// The library's text for an error number; it lives for ever.
    pub fn error_text(&self, errno: c_int) -> *const c_char {
        // SAFETY: any number is allowed.
        unsafe { (self.strerror)(errno) }
    }

    /// Registers a parameter, for `fi_info -g`.
    pub fn define_parameter(&self, name: &CStr, help: &CStr) {
        let provider = identity::raw();
        // SAFETY: the format is "%s" with one string; libfabric copies name and help and keeps the provider's address,
        // which is static.
        unsafe { (self.param_define)(provider, name.as_ptr(), FI_PARAM_STRING, c"%s".as_ptr(), help.as_ptr()) };
    }

    /// The text that the user gave for a parameter that was registered.
    pub fn parameter(&self, name: &CStr) -> Option<OsString> {
        let mut value: *mut c_char = core::ptr::null_mut();
        // SAFETY: string parameters write one pointer, to text that stays (part of the environment or of libfabric's
        // table).
        let found = unsafe { (self.param_get)(identity::raw(), name.as_ptr(), (&raw mut value).cast()) } == 0;
        // SAFETY: as above; libfabric has just read the text.
        (found && !value.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(value) }.to_bytes()).to_owned())
    }

    /// Whether the user's settings ask for lines of this level about this subsystem.
    pub fn logs(&self, level: fi_log_level, subsystem: fi_log_subsys) -> bool {
        // SAFETY: the provider's struct is static.
        unsafe { (self.log_enabled)(identity::raw(), level, subsystem) != 0 }
    }

    /// Writes a line to libfabric's log.
    pub fn log(&self, level: fi_log_level, subsystem: fi_log_subsys, place: &CStr, line: c_int, text: &CStr) {
        let provider = identity::raw();
        // SAFETY: the format is "%s\n" with one string.
        unsafe { (self.log)(provider, level, subsystem, place.as_ptr(), line, c"%s\n".as_ptr(), text.as_ptr()) };
    }
}
