//! How much of everything there may be. `fi_getinfo` tells applications these limits, and calls check them.

/// Largest message, and largest RMA transfer, in bytes.
pub const MESSAGE_BYTES_MOST: usize = isize::MAX as usize;
/// Largest atomic operation, in bytes. Programs are told less (`fi_atomicvalid`), and longer ones are taken up to this:
/// a result has its place in the origin's buffer named in 32 bits.
pub const ATOMIC_BYTES_MOST: u64 = u32::MAX as u64;
/// Largest payload of `fi_inject` and its relatives, in bytes. If the receiver has no room for such a message, the send
/// is deferred: the sender keeps a copy of the message, and the program, which is told nothing, goes on. It may start
/// any number of these, so the limit is small. A longer message that is deferred stays in its program's memory, and the
/// program waits for its completion.
pub const INJECT_BYTES_MOST: usize = 64;
/// Pieces of application memory in one operation.
pub const PIECES_MOST: usize = 16;
/// Places in remote memory in one operation.
pub const REMOTE_PIECES_MOST: usize = 16;
/// Operations outstanding at an endpoint that applications are told of and may ask for. An endpoint takes more:
/// [`OPERATIONS_MOST`].
pub const QUEUE_SIZE: usize = 65536;
/// Most operations that may be outstanding at an endpoint: as many as the message layer can name. Programs may start
/// any number of sends before their receives, and refusing one could hang them.
pub const OPERATIONS_MOST: usize = 1 << 22;
/// Bytes of remote completion data.
pub const CQ_DATA_BYTES: usize = 8;
/// Longest text of an error, in bytes, the final zero included.
pub const ERROR_TEXT_BYTES_MOST: usize = 256;
/// Completion queues, endpoints, contexts and counters of a domain that applications are told of and may ask for. A
/// domain makes more.
pub const OBJECTS_MOST: usize = 1024;
/// Regions of a domain that applications are told of and may ask for.
pub const REGIONS_MOST: usize = 65536;
