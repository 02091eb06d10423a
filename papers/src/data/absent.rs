//! [`Absent`]: why a combination of a grid is not run, in words for tables.

use std::fmt;

/// Why a combination is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absent {
    /// Its scheme needs so many bytes of `[flow] memory` at least.
    Needs(u64),
    /// It would take too long to simulate.
    NotRun,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Needs(bytes @ 0..0x10_0000) => write!(f, "needs {} KiB", bytes.div_ceil(1024)),
            Absent::Needs(bytes) => {
                let mebibytes = format!("{:.1}", *bytes as f64 / 1_048_576.0);
                write!(f, "needs {} MiB", mebibytes.trim_end_matches(".0"))
            }
            Absent::NotRun => f.write_str("not run"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_said_in_large_units() {
        let said = |bytes| Absent::Needs(bytes).to_string();
        assert_eq!([6216, 130_536].map(said), ["needs 7 KiB", "needs 128 KiB"]);
        assert_eq!([2_119_656, 1_600_000].map(said), ["needs 2 MiB", "needs 1.5 MiB"]);
        assert_eq!(Absent::NotRun.to_string(), "not run");
    }
}
