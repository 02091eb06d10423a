//! How far predictions were from real runs: what `docs/plan.md` measured, for the foot of each report.

/// How far one number of a prediction was off.
#[derive(Clone, Copy, Debug)]
pub struct PredictionError {
    /// Which number.
    pub what: &'static str,
    /// How far, in words.
    pub error: &'static str,
}

/// Where the numbers come from.
pub const SOURCE: &str = "docs/plan.md";

/// Of each number of the table.
///
/// IMB Exchange, Alltoall and Sendrecv, 8 ranks on 2 processors, MPICH; dynamic, static and preposted with four sizes
/// each, two real runs of each of these 36 settings (26 November 2026).
pub const ERRORS: &[PredictionError] = &[
    PredictionError { what: "messages, packets", error: "exact in the median; packets 7 % fewer to 13 % more" },
    PredictionError {
        what: "sends delayed",
        error: "dynamic and static: half within 1 %, from 0.55 to 1.8 times; preposted with 2 buffers from 0.03 to 1.5 times",
    },
    PredictionError {
        what: "credit packets",
        error: "most within 7 %; with 8 or 16 slots up to 1.9 times the real ones",
    },
    PredictionError {
        what: "mailbox peak",
        error: "an upper bound: 1.4 times the real one in the median, often far more",
    },
    PredictionError { what: "unexpected peak", error: "half exact, from 0.6 to 2.4 times" },
    PredictionError {
        what: "messages above the eager limit",
        error: "exact with --bulk direct (NAS IS); with --bulk auto up to 360 times the packets, many of them delayed",
    },
    PredictionError { what: "times", error: "not compared with real ones yet" },
];
