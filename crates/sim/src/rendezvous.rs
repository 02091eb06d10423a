//! [`Rendezvous`]: how the data of long messages travels.

/// Who moves the data of a long message, once its receiver has matched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rendezvous {
    /// The receiver reads it out of the sender's memory: request to send, read, finished. As Tidegate's library does.
    #[default]
    Read,
    /// The sender writes it into the receiver's: request to send, clear to send, write, finish (L §3.1).
    Write,
}
