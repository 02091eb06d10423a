//! [`Facts`]: all that the doctor knows before it says anything. Sizes are in bytes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidegate_link::Container;

use super::trial::Trial;
use crate::mpi::{Mpi, MpiKind};

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The name of this host.
    pub host: String,
    /// How many processors this process may use.
    pub cores: u32,
    /// The container that holds this process.
    pub container: Option<Container>,
    /// How many ranks the job has on this host.
    pub ranks: u32,
    /// Whether the user said so; else there is one for each processor.
    pub are_ranks_given: bool,
    /// Hosts that the user has named.
    pub hosts: Vec<String>,
    /// Whether the user has named a folder that all of them see.
    pub has_shared_folder: bool,
    /// Launcher, program and MPI.
    pub mpi: MpiFacts,
    /// The folder of the provider, or why there is none.
    pub provider: Option<Result<PathBuf, String>>,
    /// The reason why parameters are refused, if they are.
    pub refused: Option<String>,
    /// Variables that look like parameters and are none, in sentences.
    pub misspelt: Vec<String>,
    /// The answer of the MPI's libfabric in the environment of a job.
    pub libfabric: Option<Result<Libfabric, String>>,
    /// Variables of the user.
    pub variables: Variables,
    /// `/dev/shm`.
    pub shared_memory: SharedMemory,
    /// Files that dead processes have left there.
    pub left: Vec<LeftFile>,
    /// Whether one process reads the memory of another one that has the same parent.
    pub copies: Option<Result<(), String>>,
    /// The number in `/proc/sys/kernel/yama/ptrace_scope`.
    pub ptrace_scope: Option<u8>,
    /// Limits of processes.
    pub limits: Limits,
    /// How many ports the network between hosts may listen at, if the user said.
    pub ports: Option<u32>,
    /// Interfaces of this host.
    pub interfaces: Vec<Interface>,
    /// The value of FI_TIDEGATE_FABRIC, if the user has set it.
    pub fabric: Option<String>,
    /// Slurm, where there is one.
    pub slurm: Option<Slurm>,
    /// A job on this host, if one was tried.
    pub job: Option<Trial>,
    /// A job over the hosts that the user has named, if one was tried.
    pub hosts_job: Option<Trial>,
}

/// Launcher, program and MPI.
#[derive(Clone, Debug, Default)]
pub struct MpiFacts {
    /// The launcher, if one was found.
    pub launcher: Option<PathBuf>,
    /// Whether it is Slurm's.
    pub is_srun: bool,
    /// The launcher that the user has named and that is not there.
    pub missing_launcher: Option<String>,
    /// The MPI of the launcher, or of the program where the launcher is Slurm's.
    pub mpi: Option<Mpi>,
    /// The MPI library near the launcher, or that of the program.
    pub library: Option<PathBuf>,
    /// The program, if the user has named one.
    pub program: Option<Program>,
}

/// A program that the user has named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// As it was named.
    pub name: String,
    /// Where it is, if it is there.
    pub path: Option<PathBuf>,
    /// The MPI library that the dynamic loader finds for it; none also for scripts.
    pub library: Option<PathBuf>,
    /// Libraries that the loader does not find.
    pub missing: Vec<String>,
    /// The MPI of that library, if it is known.
    pub kind: Option<MpiKind>,
}

/// The answer of a libfabric, in a process of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Libfabric {
    /// The file.
    pub path: PathBuf,
    /// Major and minor number of its interface.
    pub version: (u32, u32),
    /// Whether it has loaded Tidegate.
    pub has_tidegate: bool,
    /// The network that Tidegate takes for a job over several hosts, or why it takes none. `None`: the user wants none.
    pub taken: Option<Result<Taken, String>>,
}

/// The network that is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Its provider.
    pub provider: String,
    /// Its domain: an interface, or a device.
    pub domain: String,
    /// Its speed in words, if it is known.
    pub speed: Option<String>,
    /// Name and speed of the fastest network that is faster, if there is one.
    pub faster: Option<(String, String)>,
}

/// Variables of the user that bear on a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// Those that `tidegate run` sets otherwise: name, value of the user, value of `tidegate run`.
    pub replaced: Vec<(String, String, String)>,
    /// Those that words of the command set to something else than `tidegate run` does.
    pub overridden: Vec<String>,
    /// Those that `tidegate run` leaves alone, with their values.
    pub kept: Vec<(String, String)>,
}

/// `/dev/shm`, or what is in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedMemory {
    /// Whether there is such a folder.
    pub is_there: bool,
    /// Why no file can be made there, if none can.
    pub refused: Option<String>,
    /// Whether its files lie in memory.
    pub is_memory: bool,
    /// All bytes and free ones.
    pub total: u64,
    /// Free ones.
    pub free: u64,
    /// The most that a rank takes. `None`: parameters are refused.
    pub each: Option<u64>,
}

/// A file that a dead process has left in `/dev/shm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftFile {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

/// A limit: the one in force, and how far the user may raise it. `None`: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// The one in force.
    pub now: Option<u64>,
    /// The value to which the user may raise it.
    pub most: Option<u64>,
}

/// Limits of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Descriptors of a process.
    pub descriptors: Limit,
    /// Bytes of memory that may be locked.
    pub locked_memory: Limit,
    /// Bytes of a file.
    pub file_size: Limit,
    /// Processes and threads of the user. Root has no such limit.
    pub processes: Limit,
    /// How many the user has.
    pub processes_of_user: u64,
    /// How many more the control group lets in.
    pub processes_of_group: Option<u64>,
}

/// An interface of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its addresses that reach other hosts, as text.
    pub addresses: Vec<String>,
    /// Its speed in words, if the system says.
    pub speed: Option<String>,
    /// Whether it joins containers, virtual machines or tunnels.
    pub is_virtual: bool,
}

/// Slurm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slurm {
    /// The job of Slurm in which this process runs.
    pub job: Option<String>,
    /// How many hosts that has.
    pub nodes: Option<u32>,
    /// The plugins by which `srun` starts MPI programs (`srun --mpi=list`). `None`: there is no `srun`.
    pub plugins: Option<Vec<String>>,
}
