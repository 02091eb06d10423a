//! A job that hangs names itself: `tidegate run --hang-after SECONDS` and `--hang-exit`.
//!
//! * [`quiet`]: for how long no message has moved, and when that is said: pure, time is an argument;
//! * [`polling`]: whether a process has polled in its MPI all the time, from what it did between looks: pure;
//! * [`verdict`]: from the waits of a job to the line, and to whether nothing can move any more: pure;
//! * [`watching`]: the thread of `tidegate run` that looks at the counter pages and asks the others.
//!
//! The simple idea: a job without messages in which ranks wait is one that hangs. It fails for a program that computes
//! for hours while other ranks wait for it. So the line says what the awaited rank does, and calls nothing a hang.
//! `--hang-exit` needs more: that *no* rank can go on. An open receive is no proof, since a program may compute and ask
//! for its messages now and then; nor is a page that was written a moment ago, for the same reason, and because a
//! thread of the provider writes it, too. The number of polls for each second of a processor tells these apart: a rank
//! that waits in a blocking call does nothing but poll.

pub mod polling;
pub mod quiet;
pub mod verdict;
pub mod watching;
