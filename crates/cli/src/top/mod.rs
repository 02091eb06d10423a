//! `tidegate top`: running jobs, live.
//!
//! * [`page`]: a page of counters as the other files use it;
//! * [`look`]: the pages of a folder at one moment, by process;
//! * [`presence`]: two looks into where a process is; [`habit`]: into how it polls; [`state`]: into one word for both;
//! * [`waits`]: two looks into who waits for whom; [`crate::culprit`] says who is to blame;
//! * [`view`]: two looks into all that is shown of a job;
//! * [`watch`]: looks again and again;
//! * [`columns`]: the columns of a table of ranks;
//! * [`text`], [`json`]: one look for people and for programs;
//! * [`screen`]: the terminal.

use tidegate_link::EndpointStats;

use crate::culprit;

pub mod columns;
pub mod habit;
pub mod json;
pub mod look;
pub mod page;
pub mod presence;
pub mod screen;
pub mod state;
pub mod text;
pub mod view;
pub mod waits;
pub mod watch;

/// Who held up whom in a launch when it ended, in a sentence; `None` if nobody did. `mpi`: the id of its MPI, by which
/// tags are read, where the pages do not tell.
pub fn at_the_end(pages: &[EndpointStats], mpi: Option<&str>) -> Option<String> {
    if pages.iter().all(|page| page.ended) {
        return None;
    }
    let told = pages.iter().find_map(|page| page.mpi.as_deref());
    let waits = waits::waits_at_the_end(&look::last_look(pages), told.or(mpi));
    let finding = culprit::find(&waits);
    (!finding.roots.is_empty()).then(|| culprit::sentence(&waits, &finding))
}
