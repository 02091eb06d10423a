//! The command `tidegate` from outside, and what its files and pages promise.

mod script;

mod commit;
mod fabric;
mod man;
mod manual;
mod pages;
mod paper;
mod run;
mod scenario;
mod scenario_errors;
mod sweep;
mod walkthrough;
