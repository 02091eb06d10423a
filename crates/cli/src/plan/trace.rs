//! A trace as a user hands it in: read, and checked for messages without an end.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use tidegate_sim::workload::{HALO, RecordedOperation, Trace};

use crate::failure::Failure;
use tidegate_sim::goal;

/// A trace that can be replayed.
#[derive(Clone, Debug)]
pub struct Program {
    /// The trace.
    pub trace: Trace,
    /// What tells its text from other texts.
    pub fingerprint: String,
}

impl Program {
    /// Reads a file, or the bundled trace `halo16`.
    ///
    /// # Errors
    /// If it cannot be read, is no trace, or has messages that nobody receives or sends.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let text = match path.to_str() {
            Some("halo16") if !path.exists() => HALO.to_owned(),
            _ => goal::read_text(path).map_err(refuse)?,
        };
        Self::parse(&text)
            .map_err(|why| refuse(format!("{why}. A trace is in GOAL; `tidegate record` writes one of a job")))
    }

    /// The trace of a text.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, String> {
        let trace = goal::parse(text)?;
        if trace.size() < 2 || trace.messages().0 == 0 {
            return Err(format!("{} ranks and {} messages leave nothing to plan", trace.size(), trace.messages().0));
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Ok(Program { trace, fingerprint: format!("{:016x}", hasher.finish()) })
    }
}

/// The number of messages of a trace that are longer than `bytes`, and the bytes of the largest of the others.
pub fn longer_than(trace: &Trace, bytes: usize) -> (u64, u64) {
    let (mut longer, mut largest) = (0, 0);
    for operation in (0..trace.size()).flat_map(|rank| trace.operations(rank)) {
        match operation.deed {
            RecordedOperation::Send { bytes: own, .. } if own > bytes as u64 => longer += 1,
            RecordedOperation::Send { bytes: own, .. } => largest = largest.max(own),
            _ => {}
        }
    }
    (longer, largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Program::parse(text).expect_err("it is no trace to plan with")
    }

    #[test]
    fn what_is_no_trace_is_named_by_its_line() {
        assert!(refusal("num_ranks 2\nrank 0 {\nsend 8 to 1\n}").starts_with("line 3, column 8: "));
        assert!(refusal("num_ranks 2").contains("nothing to plan"));
    }
}
