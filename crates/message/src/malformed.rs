//! What no correct peer sends.

/// A packet that no correct peer sends, unless it speaks of something that we have given up. It is counted and dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Whether what has come from a peer was something that a correct peer sends.
pub(crate) type Handled = Result<(), Malformed>;
