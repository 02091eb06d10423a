//! The figures and tables of five papers, each one named experiment, and `tidegate-paper`, the program that runs them
//! in Tidegate's simulator and says which of the papers' statements come out.
//!
//! * [`Experiment`]: a figure, as a function from a [`Workshop`] to a [`Report`];
//! * `data/`: figures as files, which lie in a folder for each paper beside `src`; `special/`: what they cannot say;
//! * `run/`: what is run for a point of a figure; `workshop.rs`: runs it with every seed, in parallel, each once;
//! * `report.rs`: what an experiment found; `record.rs`: the same as a file of comma-separated values;
//! * `output/`: reports as text and pictures, and the pages that are made of the files of results;
//! * `archive.rs`: raw runs as one compressed file;
//! * `arguments.rs`, `command.rs`: the program.

#![forbid(unsafe_code)]

pub mod archive;
pub mod arguments;
pub mod command;
mod data;
mod experiment;
mod output;
mod record;
mod report;
mod run;
mod special;
mod workshop;

pub use data::BadFigure;
pub use experiment::Experiment;
pub use report::{Fact, Report, Verdict};
pub use run::CODE;
pub use workshop::{Scale, Workshop};
