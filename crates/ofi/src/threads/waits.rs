//! How long threads wait, nap and sleep, and how often they look before: all these numbers in one place, each with its
//! reason. (How a lower provider is tried again is a matter of `lower`; how long a service may be without an owner is
//! in `addressing/name`.)
//!
//! | who waits | for what | how |
//! |---|---|---|
//! | a call | for another thread inside the domain | [`SPINS`], then [`YIELDS`], then naps of [`LOCK_NAP`] |
//! | the progress thread, `Always` | for the same | the same |
//! | the same, `WhenLeft` | for calls that wait; for a call to leave | [`SECOND_THREAD_TRIES`] of these each |
//! | a call, and `Always` | for a thread that has waited to come in | [`THREAD_FIRST_TRIES`], [`THREAD_FIRST_NAPS`] |
//! | a call that waits by entering again | for calls that wait to come in between | [`SECOND_THREAD_TRIES`] of these |
//! | a call that injects | for credits | refused for up to [`INJECT_PATIENCE`] |
//! | a read | for the rest of a message | [`WAITS_PER_POLL`] |
//! | a blocking read | for a completion | [`POLLS_BEFORE_SLEEP`], then sleeps, [`SLEEP_MOST`] at a time |
//! | an armed endpoint between hosts | for a lower provider without a descriptor | [`NETWORK_INTERVAL`] |
//! | the progress thread, `Always` | for the application to stop calling | [`ALWAYS_LEAVES`] |
//! | the same | for a packet, after [`ALWAYS_POLLS_BEFORE_SLEEP`] | sleeps, [`SLEEP_MOST`] at a time |
//! | the progress thread, `WhenLeft` | for the application to go on | [`WHEN_LEFT_LEAVES`] |
//! | the same | for peers | [`QUICK_POLLS`], then naps from [`NAP_FIRST`] to [`NAP_LONGEST`] |
//! | the same | for work, after [`IDLE_POLLS_BEFORE_SLEEP`] | sleeps until it is woken |
//! | the end of the process | for our threads | naps of [`END_NAP`], [`END_MOST`] in all |
//! | a fork | for our threads to leave their domains | naps of [`FORK_NAP`], [`FORK_MOST`] in all |
//! | a call that begins a thread | for a fork | naps of [`FORK_NAP`], [`FORK_CALL_MOST`] in all |
//! | `fi_close` | for messages to leave | [`CLOSE_POLLS_BEFORE_NAP`], then naps of [`CLOSE_NAP`] |
//! | the same | for peers of other hosts to hear the goodbye | naps of [`FLUSH_NAP`], [`FLUSH_MOST`] in all |
//! | a process that has to fail | for its user to read why | [`FAILURE_LINGERS`] |

use std::time::Duration;

/// Tries before a thread that waits for another one gives the processor away: a call is inside for less than a
/// microsecond mostly, and this takes two or three.
pub const SPINS: u32 = 100;
/// Tries before it sleeps between two of them: the thread inside may have no processor, and gets one when others give
/// theirs away; unless the thread that waits has a higher priority, to which the scheduler gives it back at once.
pub const YIELDS: u32 = SPINS + 400;
/// How long it sleeps between two tries then: as long as the system takes to wake a thread, about.
pub const LOCK_NAP: Duration = Duration::from_micros(50);

/// Tries before the progress thread (`WhenLeft`) gives up, and comes another time. These are as many as reach into the
/// naps: the thread inside may have lost its processor there, and only a nap gives it the time to leave.
pub const SECOND_THREAD_TRIES: u32 = YIELDS + 200;

/// Tries for which a call waits outside while another thread has waited for the lock: that has it in less than a
/// microsecond if it runs, and if it waits for this processor, it gets it by the first yields.
pub const THREAD_FIRST_TRIES: u32 = SPINS + 16;
/// Naps of [`LOCK_NAP`] for which it waits then: the other thread may nap itself, between two tries, and would find the
/// lock taken once more.
pub const THREAD_FIRST_NAPS: u32 = 2;

/// How long injected messages are refused that would have to wait for credits: many round trips between hosts. The
/// measurements are in `egress/inject_backoff.rs` of the message layer.
pub const INJECT_PATIENCE: Duration = Duration::from_millis(2);

/// How often one read waits at most for the rest of a message or for credits, each time a little: the rest of a message
/// comes within the time of a few packets, or its sender has lost its processor.
pub const WAITS_PER_POLL: u32 = 8;
/// Polls before a blocking read sleeps: to go to sleep and to be woken takes longer than these polls.
pub const POLLS_BEFORE_SLEEP: u32 = 64;
/// The longest sleep without progress: neither the death of a peer nor room in a full mailbox wakes a thread, so it
/// looks five times a second.
pub const SLEEP_MOST: Duration = Duration::from_millis(200);
/// How long a thread sleeps at most where the network below cannot wake it: the shortest sleep that `poll(2)` knows.
pub const NETWORK_INTERVAL: Duration = Duration::from_millis(1);

/// How long the thread that makes all progress leaves the work to an application that has called: this is the time by
/// which a peer may have to wait when the application stops calling, and each such look takes the lock once.
pub const ALWAYS_LEAVES: Duration = Duration::from_millis(1);
/// Its polls that find nothing before it sleeps: as for a blocking read.
pub const ALWAYS_POLLS_BEFORE_SLEEP: u32 = 64;

/// How long the thread that goes on with what is left leaves an application alone that has called. Longer than for
/// `Always`, since it is the default, and an application that calls mostly makes the progress itself: where ranks share
/// processors, a thread that runs takes one from them.
pub const WHEN_LEFT_LEAVES: Duration = Duration::from_millis(8);
/// Polls without a nap after something has moved: peers that run answer in microseconds.
pub const QUICK_POLLS: u32 = 32;
/// The first nap when the application is silent and nothing moves. A peer that runs has had thousands of polls' time.
pub const NAP_FIRST: Duration = Duration::from_millis(2);
/// The longest nap; each is twice the one before. Thirty looks a second are no load while a peer computes for long.
pub const NAP_LONGEST: Duration = Duration::from_millis(32);
/// Polls in a row that find nothing left before it sleeps until it is woken: 64 ms, so that an application that leaves
/// something now and then does not pay for a wake each time.
pub const IDLE_POLLS_BEFORE_SLEEP: u32 = 8;
/// Looks from outside in a row, while the application calls and makes its progress, before it looks inside: a thread
/// that loses its processor inside keeps the calls out until it has one again.
pub const LOOKS_FROM_OUTSIDE: u32 = 3;
/// After this time it is tried again to begin a thread: the process has as many threads as it may, and some may end.
pub const BEGIN_AGAIN: Duration = Duration::from_secs(1);

/// How long the end of the process waits for our threads in all. Their polls take microseconds, so this is reached only
/// if one is kept from ending by what the application holds.
pub const END_MOST: Duration = Duration::from_secs(1);
/// How long it waits between two looks: a poll that is under way is over by then.
pub const END_NAP: Duration = Duration::from_micros(100);

/// How long a fork waits for our threads to leave their domains: their work is short, and never sleeps, so this is
/// never reached unless they are kept from running. Then the child finds the domain occupied, and closes it without
/// tidying up.
pub const FORK_MOST: Duration = Duration::from_secs(1);
/// How long a call of the application waits for a fork: it may be that a handler at the fork waits for this call.
pub const FORK_CALL_MOST: Duration = Duration::from_millis(10);
/// How long they wait for each other between two tries. A fork may take long: the application has its own to do then.
pub const FORK_NAP: Duration = Duration::from_micros(100);

/// Looks of `fi_close` that found nothing to do before it sleeps between two of them: as long as a peer takes that has
/// to be given a processor first.
pub const CLOSE_POLLS_BEFORE_NAP: u32 = 1000;
/// How long it sleeps between two looks: a receiver that computes for seconds is to have the processor.
pub const CLOSE_NAP: Duration = Duration::from_millis(1);
/// Time between two lines to the user that closing takes long.
pub const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);
/// How long peers of other hosts have to acknowledge the goodbye: their applications may compute, and need it not.
pub const FLUSH_MOST: Duration = Duration::from_secs(2);
/// Time between two looks whether they have: a round trip between hosts.
pub const FLUSH_NAP: Duration = Duration::from_micros(50);
/// How long a process that has to fail waits, so that the user reads why before the launcher ends the job.
pub const FAILURE_LINGERS: Duration = Duration::from_secs(1);
