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
/// IMB Exchange, Alltoall and Sendrecv, NAS IS, MG, LU and CG, 4 to 16 ranks on 2 processors, MPICH; dynamic, static
/// and preposted with four sizes each: 204 settings; times over 2 to 8 hosts with slow lines (26 November 2026).
pub const ERRORS: &[PredictionError] = &[
    PredictionError { what: "messages, packets", error: "exact in the median; packets 7 % fewer to 14 % more" },
    PredictionError {
        what: "sends delayed",
        error: "dynamic and static: exact in the median, mostly 0.6 to 1.2 times, on more ranks \
                than cores down to 0.1; preposted with 2 buffers: far too few",
    },
    PredictionError { what: "credit packets", error: "exact in the median, from 0.5 to 2 times" },
    PredictionError { what: "mailbox peak", error: "1.8 times the real one in the median, often far more" },
    PredictionError { what: "unexpected peak", error: "0.8 times in the median, from 0.1 to 2.2 times" },
    PredictionError {
        what: "messages above the eager limit",
        error: "as with --bulk direct; with --bulk auto many times the packets, many of them delayed",
    },
    PredictionError {
        what: "times",
        error: "28 % too short to 57 % too long where every rank has a core and the lines \
                are slow; else not to be relied on",
    },
];
