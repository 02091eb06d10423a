//! What is run for a point of a figure: a [`Case`](case::Case), on what, and which code did it.
//!
//! * `case.rs`: the case, its key, and how it is measured;
//! * `machine.rs`, `program.rs`: the machines of jobs, and programs beside the simulator's benchmarks;
//! * `spec_run.rs`: cases of figures that are files;
//! * `fabric_run.rs`, `bulk_run.rs`, `exchange_run.rs`: cases that are no jobs.
//!
//! What a case, a seed and some noise give depends on the simulator and on the files of this folder, and on nothing
//! else in this crate: `build.rs` relies on that. What a figure does with its runs does not count; which cases it asks
//! for does, because a case is part of the key with all its fields.

pub(crate) mod bulk_run;
pub(crate) mod case;
pub(crate) mod exchange_run;
pub(crate) mod fabric_run;
pub(crate) mod machine;
pub(crate) mod program;
pub(crate) mod spec_run;

/// The fingerprint of the code that decides what runs give.
pub const CODE: &str = env!("TIDEGATE_PAPERS_CODE");

#[cfg(test)]
mod tests {
    #[test]
    fn files_that_decide_runs_use_no_others_of_this_crate() {
        let sources = [
            include_str!("case.rs"),
            include_str!("bulk_run.rs"),
            include_str!("exchange_run.rs"),
            include_str!("fabric_run.rs"),
            include_str!("machine.rs"),
            include_str!("program.rs"),
            include_str!("spec_run.rs"),
        ];
        for line in sources.into_iter().flat_map(str::lines) {
            let others = line.replace("crate::run::", "");
            assert!(!others.contains("crate::") && !others.contains("super::super"), "`{line}`");
        }
    }
}
