//! The network: every packet arrives, in order and in time, and nothing overflows, starves or gets stuck.

mod back_pressure;
mod delivery;
mod fairness;
mod latency;
mod saturation;
mod throughput;
mod traffic;
mod world;
