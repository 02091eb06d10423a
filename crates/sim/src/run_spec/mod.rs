//! The one description of a simulated run: what `tidegate sim FILE` reads, `tidegate plan` changes, and the papers'
//! figures sweep over.
//!
//! A file describes runs of one of the simulator's engines: jobs, whose processes exchange messages; where it has a
//! table `[fabric]`, a network of thousands of nodes under load, or, with a table `[exchange]`, an exchange of all its
//! nodes; where it has a table `[bulk]`, a job of bulk transfers on nodes that receive more slowly than they send.
//! Every field is one entry of a table: its name, what it means, its default, and how it changes a draft. A list in the
//! place of a value is an axis of a sweep; every combination of all axes becomes one run.
//!
//! * `file.rs`: reading, the same for all: lines, sweeps, errors;
//! * `job.rs`, `fields.rs`: jobs, and their table of fields; `buffers.rs`, `memory.rs`: posted buffers, and as much of
//!   what a scheme lends as fits into some memory;
//! * `fabric.rs`, `exchange.rs`: networks under load, exchanges, and theirs; `bulk.rs`: bulk transfers, and theirs;
//! * `value.rs`: values with units;
//! * `refusal.rs`: what the crates below refuse, in the words of the file;
//! * `workload.rs`, `work.rs`: operations by name and form, patterns of traffic, traces; what processes do.

mod buffers;
mod bulk;
mod exchange;
mod fabric;
mod fields;
mod file;
mod job;
mod memory;
mod refusal;
mod value;
mod work;
mod workload;

use std::path::Path;

pub use bulk::{BULK_FIELDS, BulkDraft, BulkSpec};
pub use fabric::{FABRIC_FIELDS, Fabric, FabricDraft};
pub use fields::FIELDS;
use file::Ignored;
pub use file::{Draft, Field, ScenarioError, Sweep, did_you_mean};
pub use job::{JobDraft, Scenario};
pub use work::{PhaseSizes, TimeOf, Work};
pub use workload::OPERATIONS;

/// What a file describes.
#[derive(Clone, Debug)]
pub enum File {
    /// Jobs.
    Jobs(Sweep<JobDraft>),
    /// Networks under load, or exchanges of all their nodes.
    Fabrics(Sweep<FabricDraft>),
    /// Jobs of bulk transfers.
    Bulks(Sweep<BulkDraft>),
}

impl File {
    /// Reads a file; traces are looked for in `folder`.
    ///
    /// # Errors
    /// If it is not UTF-8 or no TOML, names what does not exist, or describes something impossible.
    pub fn read(bytes: Vec<u8>, folder: &Path) -> Result<Self, ScenarioError> {
        Self::read_with(bytes, folder, Ignored::Refused)
    }

    fn read_with(bytes: Vec<u8>, folder: &Path, ignored: Ignored) -> Result<Self, ScenarioError> {
        let text = file::text(bytes)?;
        if file::has_table(&text, bulk::TABLE)? {
            Sweep::read_with(&text, folder, ignored).map(File::Bulks)
        } else if file::has_table(&text, fabric::TABLE)? || file::has_table(&text, exchange::TABLE)? {
            Sweep::read_with(&text, folder, ignored).map(File::Fabrics)
        } else {
            Sweep::read_with(&text, folder, ignored).map(File::Jobs)
        }
    }
}

/// One run, of whichever engine.
#[derive(Clone, Debug)]
pub enum RunSpec {
    /// A job of processes that exchange messages.
    Job(Box<Scenario>),
    /// A network under load, or an exchange of all its nodes.
    Fabric(Fabric),
    /// Bulk transfers.
    Bulk(BulkSpec),
}

impl RunSpec {
    /// The run that a text describes, as one point of a larger sweep: no field has a list, and fields that change
    /// nothing in it are left alone.
    ///
    /// # Errors
    /// As [`File::read`], and if the text describes several runs.
    pub fn of_point(text: &str) -> Result<Self, ScenarioError> {
        let several = || ScenarioError::new(None, "a list stands where one value is needed".to_owned());
        match File::read_with(text.into(), Path::new(""), Ignored::Allowed)? {
            File::Jobs(sweep) => one(sweep).map(|job| RunSpec::Job(Box::new(job))).ok_or_else(several),
            File::Fabrics(sweep) => one(sweep).map(RunSpec::Fabric).ok_or_else(several),
            File::Bulks(sweep) => one(sweep).map(RunSpec::Bulk).ok_or_else(several),
        }
    }
}

fn one<D: Draft>(sweep: Sweep<D>) -> Option<D::Scenario> {
    let mut points = sweep.points;
    let point = points.pop();
    point.filter(|_| points.is_empty()).map(|(_, scenario)| scenario)
}
