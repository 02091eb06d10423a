//! [`Arrived`]: the end that a message comes to at its receiver's adapter.

/// What becomes of a message that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// It has a buffer.
    Accepted,
    /// There is none: its sender is to be told, and tries again.
    Refused,
    /// It was sent behind one that was refused: it is dropped, and nobody is told.
    Dropped,
}
