//! [`MpiLibrary`] and [`World`]: a rank of a job that loads its MPI library by path, and needs no compiler.
//!
//! The two binary interfaces that there are differ in what handles are: numbers in MPICH and Intel MPI, addresses of
//! objects in Open MPI. Functions take either in a register or a word of the stack, so they are called with words here.

use super::library::Library;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A handle of MPI: a communicator or a type.
type Handle = usize;
type SendReceive = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    c_int,
    c_int,
    *mut c_void,
    c_int,
    Handle,
    c_int,
    c_int,
    Handle,
    *mut c_void,
) -> c_int;

/// `MPI_COMM_WORLD`, `MPI_BYTE` and `MPI_STATUS_IGNORE` of MPICH's interface (`mpi.h` of MPICH, "MPICH ABI").
const MPICH: Constants = Constants { world: 0x4400_0000, byte: 0x4c00_010d, no_status: 1 };
const TAG: c_int = 77;

#[derive(Clone, Copy, Debug)]
struct Constants {
    world: Handle,
    byte: Handle,
    no_status: usize,
}

/// A loaded MPI library.
#[derive(Clone, Copy, Debug)]
pub struct MpiLibrary {
    library: Library,
    constants: Constants,
}

/// A rank between `MPI_Init` and `MPI_Finalize`.
#[derive(Debug)]
pub struct World {
    mpi: MpiLibrary,
    send_receive: SendReceive,
    rank: usize,
    size: usize,
}

impl MpiLibrary {
    /// Loads the library. The error is the dynamic loader's.
    pub fn load(path: &Path) -> Result<MpiLibrary, String> {
        let library = Library::load(path)?;
        let constants = match (library.symbol(c"ompi_mpi_comm_world"), library.symbol(c"ompi_mpi_byte")) {
            (Some(world), Some(byte)) => Constants { world: world as usize, byte: byte as usize, no_status: 0 },
            _ => MPICH,
        };
        Ok(MpiLibrary { library, constants })
    }

    /// `MPI_Init`. An error that MPI meets ends the process, as MPI does by default; those returned are of libraries
    /// that lack functions.
    pub fn init(self) -> Result<World, String> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the types are those of the standard, with words in the place of handles (see above); MPI_Init takes
        // null pointers, and the numbers live through the calls.
        let send_receive = unsafe {
            let init: unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int = self.library.function(c"MPI_Init")?;
            let of_world = |name| self.library.function::<unsafe extern "C" fn(Handle, *mut c_int) -> c_int>(name);
            let (rank_of, size_of) = (of_world(c"MPI_Comm_rank")?, of_world(c"MPI_Comm_size")?);
            let send_receive: SendReceive = self.library.function(c"MPI_Sendrecv")?;
            let failed = init(null_mut(), null_mut());
            if failed != 0 {
                return Err(format!("MPI_Init failed with error {failed}"));
            }
            rank_of(self.constants.world, &mut rank);
            size_of(self.constants.world, &mut size);
            send_receive
        };
        let number = |number| usize::try_from(number).unwrap_or(0);
        Ok(World { mpi: self, send_receive, rank: number(rank), size: number(size) })
    }
}

impl World {
    /// Exchanges messages of these lengths, in bytes, with all other ranks, each in both directions. The error says
    /// which came with other data than were sent.
    pub fn exchange(&self, lengths: &[usize]) -> Result<(), String> {
        for step in 1..self.size {
            let (to, from) = ((self.rank + step) % self.size, (self.rank + self.size - step) % self.size);
            for &length in lengths {
                let (sent, expected) = (pattern(self.rank, length), pattern(from, length));
                let mut received = vec![0; length];
                let constants = self.mpi.constants;
                let count = c_int::try_from(length).map_err(|_| format!("{length} bytes are too many"))?;
                // SAFETY: both buffers have as many bytes as is said and live through the call, which waits for both
                // messages; ranks are numbers of the standard's size.
                let failed = unsafe {
                    (self.send_receive)(
                        sent.as_ptr().cast(),
                        count,
                        constants.byte,
                        to as c_int,
                        TAG,
                        received.as_mut_ptr().cast(),
                        count,
                        constants.byte,
                        from as c_int,
                        TAG,
                        constants.world,
                        constants.no_status as *mut c_void,
                    )
                };
                if failed != 0 {
                    return Err(format!("MPI_Sendrecv with ranks {to} and {from} failed with error {failed}"));
                }
                if received != expected {
                    return Err(format!("a message of {length} bytes from rank {from} came with other data"));
                }
            }
        }
        Ok(())
    }

    /// `MPI_Finalize`. The error: it lacks the function, or fails.
    pub fn finalize(self) -> Result<(), String> {
        // SAFETY: the type is that of the standard.
        let failed = unsafe {
            let finalize: unsafe extern "C" fn() -> c_int = self.mpi.library.function(c"MPI_Finalize")?;
            finalize()
        };
        if failed == 0 { Ok(()) } else { Err(format!("MPI_Finalize failed with error {failed}")) }
    }
}

/// Bytes that tell from which rank they come.
fn pattern(rank: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251 + rank) as u8).collect()
}

/// The libraries that this process has loaded whose file names have this text in them.
pub fn loaded_libraries(part: &str) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_one = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.contains(part));
    paths.filter(is_one).collect::<BTreeSet<_>>().into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_no_mpi_says_which_function_it_lacks() {
        let library = MpiLibrary::load(Path::new("libc.so.6")).unwrap();
        assert_eq!(library.init().unwrap_err(), "it has no MPI_Init");
        assert!(MpiLibrary::load(Path::new("/nowhere/libmpi.so")).unwrap_err().contains("/nowhere/libmpi.so"));
        assert!(loaded_libraries("libc.so").iter().any(|path| path.ends_with("libc.so.6")));
    }

    #[test]
    fn data_of_two_ranks_differ() {
        assert_ne!(pattern(0, 8), pattern(1, 8));
        assert_eq!(pattern(3, 2), [3, 4]);
    }
}
