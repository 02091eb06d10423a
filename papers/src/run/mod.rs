//! What is run for a point of a figure ([`Case`](case::Case)), and which code did it.
//!
//! What a case, a seed and some noise give depends on the simulator and on this folder, and on nothing else in this
//! crate: `build.rs` relies on that. What a figure does with its runs does not count; which cases it asks for does,
//! because a case is part of the key with all its fields.

pub(crate) mod case;

/// The fingerprint of the code that decides what runs give.
pub const CODE: &str = env!("TIDEGATE_PAPERS_CODE");

#[cfg(test)]
mod tests {
    #[test]
    fn what_decides_runs_uses_nothing_else_of_this_crate() {
        for line in include_str!("case.rs").lines() {
            assert!(!line.contains("crate::") && !line.contains("super::"), "`{line}`");
        }
    }
}
