//! A TOML file into simulations.
//!
//! A file describes either jobs, whose processes exchange messages, or, where it has a table `[fabric]`, a network of
//! thousands of nodes under load. Every field is one entry of a table: its name, what it means, its default, and how it
//! changes a draft. A list in the place of a value is an axis of a sweep; every combination of all axes becomes one
//! scenario.
//!
//! * `file.rs`: reading, the same for both: lines, sweeps, errors;
//! * `job.rs`, `fields.rs`: jobs, and their table of fields;
//! * `fabric.rs`: networks under load, and theirs;
//! * `value.rs`: values with units;
//! * `refusal.rs`: what the crates below refuse, in the words of the file;
//! * `workload.rs`: operations by name and form, patterns of traffic, traces.

mod buffers;
mod fabric;
mod fields;
mod file;
mod job;
mod refusal;
mod value;
mod workload;

use std::path::Path;

pub use fabric::{FABRIC_FIELDS, Fabric, FabricDraft};
pub use fields::FIELDS;
pub use file::{Draft, Field, ScenarioError, Sweep};
pub use job::{JobDraft, Scenario};
pub use workload::{OPERATIONS, TimeOf, Work};

/// What a file describes.
#[derive(Clone, Debug)]
pub enum File {
    /// Jobs.
    Jobs(Sweep<JobDraft>),
    /// Networks under load.
    Fabrics(Sweep<FabricDraft>),
}

impl File {
    /// Reads a file; traces are looked for in `folder`.
    ///
    /// # Errors
    /// If it is not UTF-8 or no TOML, names what does not exist, or describes something impossible.
    pub fn read(bytes: Vec<u8>, folder: &Path) -> Result<Self, ScenarioError> {
        let text = file::text(bytes)?;
        if file::has_table(&text, fabric::TABLE)? {
            Sweep::read(&text, folder).map(File::Fabrics)
        } else {
            Sweep::read(&text, folder).map(File::Jobs)
        }
    }
}
