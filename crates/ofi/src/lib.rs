//! `libtidegate-fi.so`: the libfabric provider `tidegate`.
//!
//! libfabric finds the library, calls [`provider::fi_prov_ini`], and from then on the functions in the tables of
//! `calls`, which has one file per table and names them after libfabric's objects and calls. No two files use each
//! other, but for the objects:
//!
//! * `border`: libfabric's C interface (`bindings`), error numbers, who this provider is, the libfabric that loaded
//!   us and its log (`loader`, `log`), where panics end (`guard`), what all handles have in common (`object`),
//!   calls that must not be made (`misuse`), which MPI has loaded us (`caller`);
//! * `threads`: which thread this is (`thread`); the domain's lock (`domain_lock`); what threads sleep on and who
//!   sleeps (`wait`, `sleepers`); the thread that makes progress while the application does not (`progress_thread`,
//!   `poll_backoff`), how it begins and ends (`background`), and forks (`fork_guard`); all waiting times (`waits`);
//! * `parameter`: how much there may be (`limits`), what the launcher told (`launcher`), what the user set;
//! * `lower`: another provider of the same libfabric, which reaches other hosts;
//! * `addressing`: what addresses say, which hosts they may name, how applications name places (`name`, `host`,
//!   `place`), what an address vector holds, who is reached by shared memory and who by the network (`reach`);
//! * `trace`: what a process writes of its messages where the user wants a trace;
//! * `objects`: `fabric`, `domain`, `endpoint`, `completion_queue`, `counter` and `region`, of which domain,
//!   endpoint, completion queue and counter know each other; what they hold: the message layer (`active`),
//!   outstanding operations (`pending_operations`), unread `completions`; how an endpoint is bound and enabled, and
//!   closed (`opening`, `closing`);
//! * `operations`: the one path of all operations into the message layer (`operation`, `submit`, `targets`);
//!   messages, reads and writes, atomic operations, which are checked first (`transfer`, `remote`, `atomics`);
//!   whether calls write the trace (`recording`);
//! * `progress`: packets move, and what has ended is reported to queues and counters; `reading` a queue or a
//!   counter, which makes progress; what is open goes into the page of counters (`observing`);
//! * `calls`: the tables and what they lead to: thin, they describe and pass on;
//! * `info`: `fi_getinfo`: hints, and whether the offer meets them;
//! * `schedule`: the decisions of bulk-transfer scheduling for C programs, beside the provider;
//! * `diagnosis`: what `tidegate doctor` asks a libfabric and an MPI library, in processes of its own.
//!
//! `provider` has `fi_prov_ini`, the function that libfabric calls first.
//!
//! Every call enters its domain (`Domain::enter`): that takes the lock where the application needs one, and keeps
//! panics from reaching C. State can only be reached with an `Entered`, the proof of having entered the domain, so the
//! compiler makes sure that no two calls use it at the same time.

mod addressing;
pub mod border;
mod calls;
pub mod diagnosis;
mod info;
mod lower;
mod objects;
mod operations;
pub mod parameter;
mod progress;
pub mod provider;
pub mod schedule;
mod threads;
pub mod trace;

pub use lower::Choice as NetworkChoice;
