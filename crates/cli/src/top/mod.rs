//! `tidegate top`: running jobs, live.
//!
//! * [`page`]: a page of counters as the other files use it;
//! * [`look`]: the pages of a folder at one moment, by process;
//! * [`waits`]: two looks into who waits for whom; [`crate::culprit`] says who is to blame;
//! * [`view`]: two looks into all that is shown of a job;
//! * [`watch`]: looks again and again;
//! * [`columns`]: the columns of a table of ranks;
//! * [`text`], [`json`]: one look for people and for programs;
//! * [`screen`]: the terminal.

pub mod columns;
pub mod json;
pub mod look;
pub mod page;
pub mod screen;
pub mod text;
pub mod view;
pub mod waits;
pub mod watch;
