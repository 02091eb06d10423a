//! The figures and tables of the papers, one file per figure or group of figures.
//!
//! * `l_*.rs`, `a_*.rs`: those of L (Liu, Panda) and A (Sur, Koop, Panda);
//! * `r_*.rs`: those of R (Schneider and others), whose runs are networks under load;
//! * `b_*.rs`: those of B (Brewer, Gauthier, Fox, Schuett), whose runs are jobs on other machines;
//! * `compare.rs`, `compare_*.rs`: all seven schemes at equal memory.

mod a_fig2;
mod a_fig3;
mod b_fig10_11;
mod b_fig12_13;
mod b_fig1_3;
mod b_fig5_7;
mod b_fig8;
mod b_machines;
mod b_today;
mod compare;
mod compare_causes;
mod compare_job;
mod compare_pool;
mod l_fig10_table2;
mod l_fig2_8;
mod l_fig9_table1;
mod l_flows;
mod l_nas;
mod r_endpoints;
mod r_fig1;
mod r_fig4;
mod r_fig5;
mod r_networks;
mod r_theorem2;

use crate::experiment::{Experiment, loaded, searched, simulated};

/// All experiments, in the order of the papers.
pub(crate) const ALL: &[Experiment] = &[
    simulated("L-fig2", "Latency under three schemes", "§6.2.1, figure 2", l_fig2_8::latency),
    simulated("L-fig3-6", "Bandwidth of small messages, by window", "§6.2.2, figures 3–6", l_fig2_8::small_messages),
    simulated("L-fig7-8", "Bandwidth of 32 KiB, by window", "§6.2.2, figures 7–8", l_fig2_8::large_messages),
    simulated("L-fig9", "NAS benchmarks, 100 buffers", "§6.3.1, figure 9", l_fig9_table1::enough_buffers),
    simulated("L-table1", "Explicit credit messages", "§6.3.1, table 1", l_fig9_table1::credit_messages),
    simulated("L-fig10", "NAS benchmarks, from 100 buffers to 1", "§6.3.2, figure 10", l_fig10_table2::one_buffer),
    simulated("L-table2", "Buffers that growing reaches", "§6.3.2, table 2", l_fig10_table2::buffers_reached),
    simulated("A-fig2", "Largest window of a pool", "§4.2, figure 2", a_fig2::largest_window),
    simulated("A-fig3", "Retry timer of a pool", "§4.3, figure 3", a_fig3::retry_timer),
    loaded("R-fig1", "Throughput with few slow nodes", "§4.1, figure 1", r_fig1::run),
    loaded("R-fig4", "Congestion marks against slow nodes", "§4.1, figure 4", r_fig4::run),
    loaded("R-fig5", "Chunks in flight against slow nodes", "§4.1, figure 5", r_fig5::run),
    searched("R-theorem2", "Match bits without the announcement", "§3.1, theorem 2", r_theorem2::run),
    simulated("R-endpoints", "Slow processes on a dragonfly, with endpoints", "§4.1, beyond it", r_endpoints::run),
    loaded("B-fig1-3", "Barriers and interleaving on three machines", "§2, figures 1–3", b_fig1_3::run),
    loaded("B-fig5-7", "Tokens and barriers", "§3.2, figures 5–7", b_fig5_7::run),
    loaded("B-fig8", "Receiver tokens", "§3.2, figure 8", b_fig8::run),
    loaded("B-fig10-11", "Booking on random traffic", "§4.4, figures 10–11", b_fig10_11::run),
    loaded("B-fig12-13", "Senders that booking keeps busy", "§4.4, figures 12–13", b_fig12_13::run),
    loaded("B-today", "All-to-alls on networks of today", "§5.1, beyond it", b_today::run),
    simulated("compare", "Seven schemes at equal receive memory", "in none of the papers", compare::run),
    simulated("pool", "A pool at every memory", "in none of the papers", compare_pool::run),
];
