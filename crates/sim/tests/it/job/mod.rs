//! Jobs of simulated processes: what collectives deliver, under every scheme and with all checkers on; determinism;
//! what is reported when a job cannot go on.

mod amid;
mod checkers;
mod collectives;
mod determinism;
mod failures;
mod machine;
mod point_to_point;
mod posted;
mod support;
mod workloads;
