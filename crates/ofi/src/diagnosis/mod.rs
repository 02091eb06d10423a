//! Questions of `tidegate doctor` to a libfabric and an MPI library: which networks there are, and whether a job of a
//! few ranks gets its messages through. The command calls these functions in processes of its own, because a library
//! that is loaded here may end its process. The provider itself uses none of them.

mod library;
mod networks;
mod rank;

pub use crate::addressing::host::interfaces;
pub use crate::lower::{Fast, Speed, Taken, is_virtual, speed_of_interface};
pub use networks::{Networks, networks};
pub use rank::{MpiLibrary, World, loaded_libraries};
