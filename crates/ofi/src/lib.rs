//! `libtidegate-fi.so`: the libfabric provider `tidegate`.
//!
//! libfabric finds the library, calls [`provider::fi_prov_ini`], and from then on the functions in the tables of
//! `calls`, which has one file per table and names them after libfabric's objects and calls. Files use only what stands
//! above them in this table, or in the same row:
//!
//! | files | what they are |
//! |---|---|
//! | `bindings`, `errno`, `identity` | libfabric's C interface, error numbers, who this provider is |
//! | `loader`, `log`, `guard` | the libfabric that loaded us, log lines, the border where panics end |
//! | `thread` | which thread this is, which one holds something, and how signals are kept out meanwhile |
//! | `lock`, `object`, `wait`, `sleepers` | the domain's lock, handles, what threads sleep on, who sleeps |
//! | `misuse` | calls that must not be made: by forked children, by signal handlers |
//! | `limits`, `launcher`, `parameter` | how much there may be, what the launcher told, what the user set |
//! | `caller` | which MPI has loaded us |
//! | `lower` | another provider of the same libfabric, which reaches other hosts |
//! | `name`, `host`, `place` | what addresses say, which hosts they may name, how applications name places |
//! | `addresses`, `completion`, `completions` | what an address vector and a completion queue hold |
//! | `trace` | what a process writes of its messages where the user wants a trace |
//! | `reach` | who is reached by shared memory and who by the network |
//! | `operation`, `tickets`, `active`, `region` | what endpoints hold: operations, message layer, regions |
//! | `recording` | whether calls write the trace: it hangs `trace` into them |
//! | `fabric`, `domain`, `endpoint`, `completion_queue`, `counter` | the objects; the last four know each other |
//! | `observing` | what is open goes into the page of counters |
//! | `progress` | packets move, and what has ended is reported to queues and counters |
//! | `standby` | a thread that goes on with what the application leaves to do when it stops calling |
//! | `pilot` | a thread that makes all progress while the application does not, where the user wants it |
//! | `flight` | how such threads begin and end |
//! | `submit`, `targets` | the one path of all operations into the message layer, and where they go |
//! | `transfer`, `remote`, `atomics` | messages, reads and writes, atomic operations: checked, then submitted |
//! | `reading` | reading a completion queue or a counter, which makes progress, and waiting for them |
//! | `opening`, `closing` | how an endpoint is bound and enabled, and how it is closed |
//! | `calls` | the tables and what they lead to: thin, they describe and pass on |
//! | `info` | `fi_getinfo`: hints, and whether the offer meets them |
//! | `schedule` | the decisions of bulk-transfer scheduling for C programs, beside the provider |
//! | `provider` | `fi_prov_ini`, the function that libfabric calls first |
//!
//! Every call enters its domain (`Domain::enter`): that takes the lock where the application needs one, and keeps
//! panics from reaching C. State can only be reached with an `Entered`, the proof of having entered the domain, so the
//! compiler makes sure that no two calls use it at the same time.

mod active;
mod addresses;
mod atomics;
#[allow(unsafe_op_in_unsafe_fn)]
pub mod bindings;
mod caller;
mod calls;
mod closing;
mod completion;
mod completion_queue;
mod completions;
mod counter;
mod domain;
mod endpoint;
mod errno;
mod fabric;
mod flight;
mod forking;
mod guard;
mod host;
mod identity;
mod info;
pub mod launcher;
mod limits;
mod loader;
mod lock;
mod log;
mod lower;
pub mod misspelling;
mod misuse;
mod name;
mod object;
mod observing;
mod opening;
mod operation;
pub mod parameter;
mod pilot;
mod place;
mod progress;
pub mod provider;
mod reach;
mod reading;
mod recording;
mod region;
mod remote;
pub mod schedule;
mod sleepers;
mod standby;
mod submit;
mod targets;
mod thread;
mod tickets;
pub mod trace;
mod transfer;
mod wait;
