//! Which MPI has loaded us: the tags of its messages can be read only by who knows that. Its library is asked for
//! symbols that it alone has; nothing in it is called.

use core::ffi::CStr;
use std::collections::BTreeSet;
use std::ffi::CString;

/// A symbol of each MPI, in the order in which they are looked for: Intel MPI has those of MPICH too.
const SYMBOLS: [(&CStr, &str); 3] =
    [(c"ompi_mpi_abort", "openmpi"), (c"I_MPI_Check_image_status", "impi"), (c"MPIX_GPU_query_support", "mpich")];

/// `mpich`, `openmpi` or `impi`; `None` if it is none of them, or none that we know.
pub fn mpi() -> Option<&'static str> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    libraries(&maps).into_iter().find_map(mpi_of)
}

/// The paths of loaded libraries that may be an MPI's.
fn libraries(maps: &str) -> BTreeSet<&str> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    paths.filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("libmpi"))).collect()
}

/// Which MPI a library is, if it is one and loaded.
fn mpi_of(path: &str) -> Option<&'static str> {
    let path = CString::new(path).ok()?;
    // SAFETY: the library is loaded, so that this runs no code of it; the handle is closed again, and symbols are only
    // looked for.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let has = |symbol: &CStr| !libc::dlsym(library, symbol.as_ptr()).is_null();
        let found = SYMBOLS.into_iter().find(|(symbol, _)| has(symbol)).map(|(_, mpi)| mpi);
        libc::dlclose(library);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_mpis_are_found_by_name() {
        let maps = "7f00-7f01 r-xp 00000000 00:2b 7 /opt/mpich/lib/libmpi.so.12\n\
                    7f01-7f02 r--p 00001000 00:2b 7 /opt/mpich/lib/libmpi.so.12\n\
                    7f02-7f03 rw-p 00000000 00:00 0 [heap]\n\
                    7f03-7f04 r-xp 00000000 00:2b 8 /usr/lib/libm.so.6\n";
        assert_eq!(libraries(maps).into_iter().collect::<Vec<_>>(), ["/opt/mpich/lib/libmpi.so.12"]);
        assert_eq!(mpi(), None, "this program has none");
    }
}
