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
/// IMB Exchange, Alltoall and Sendrecv, NAS IS, MG, LU and CG, 8 ranks on 2 processors, MPICH; dynamic, static and
/// preposted with four sizes each: 84 settings (26 November 2026).
pub const ERRORS: &[PredictionError] = &[
    PredictionError { what: "messages, packets", error: "exact in the median; packets 7 % fewer to 14 % more" },
    PredictionError {
        what: "sends delayed",
        error: "dynamic and static: exact in the median, from 0.4 to 1.8 times; preposted with 2 buffers: far too few",
    },
    PredictionError {
        what: "credit packets",
        error: "exact in the median; with 8 or 16 slots up to twice the real ones",
    },
    PredictionError { what: "mailbox peak", error: "1.5 times the real one in the median, often far more" },
    PredictionError { what: "unexpected peak", error: "0.9 times in the median, from 0.2 to 2.4 times" },
    PredictionError {
        what: "messages above the eager limit",
        error: "as with --bulk direct; with --bulk auto many times the packets, many of them delayed",
    },
    PredictionError { what: "times", error: "not compared with real ones yet" },
];
