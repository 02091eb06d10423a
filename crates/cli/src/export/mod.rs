//! `tidegate export`: running jobs as metrics for Prometheus.
//!
//! * [`text`]: families of metrics, and the two text formats that Prometheus reads;
//! * [`metrics`]: which metrics there are: names, kinds, units, meanings;
//! * [`collect`]: the jobs at one moment, from the same pages as `tidegate top`;
//! * [`families`]: these jobs as families of metrics;
//! * [`exporter`]: looks again and again, and lets no counter go backwards;
//! * [`file`](mod@file): a file for the textfile collector of the node exporter;
//! * [`accept`], [`http`], [`serve`]: `--listen`.
//!
//! Two formats are written, and by code of ours: Prometheus' text format 0.0.4, which alone the textfile collector
//! reads, and OpenMetrics 1.0.0. They name counters differently in their TYPE lines, and the libraries that there are
//! write one of the two each (`prometheus` and `prometheus-client`).

pub mod accept;
pub mod collect;
pub mod exporter;
pub mod families;
pub mod file;
pub mod http;
pub mod metrics;
pub mod serve;
pub mod text;
