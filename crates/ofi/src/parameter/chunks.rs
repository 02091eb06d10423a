//! What the user said of long messages: `FI_TIDEGATE_RENDEZVOUS`, `_CHUNK_SIZE`, `_CHUNKS_IN_FLIGHT`, `_CHUNKS_MOST`.

use tidegate_link::Chunk;
use tidegate_link::fabric::Chunking;

/// Bytes of a chunk in shared memory, unless the user says otherwise. The receiver copies it itself, so a chunk is what
/// keeps it from doing anything else; between hosts [`Chunking::default`] says what is usual.
const CHUNK_BYTES_SHARED: usize = 1 << 20;

/// How long messages are taken out of their senders' memories (R §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSettings {
    /// All at once, instead of in chunks.
    pub is_single: bool,
    /// Bytes of a chunk, if the user said.
    pub bytes: Option<usize>,
    /// Chunks of one sender that may be under way between hosts.
    pub in_flight: u32,
    /// Chunks that may be under way in all, beside one of each sender.
    pub most: u32,
}

impl ChunkSettings {
    /// Bytes that one call of progress copies out of a sender's memory on the same host, about.
    pub fn bytes_per_call(&self) -> usize {
        if self.is_single { usize::MAX } else { self.bytes.unwrap_or(CHUNK_BYTES_SHARED) }
    }

    /// What of a long message is taken at a time within the host, for the page of counters.
    pub fn within(&self) -> Chunk {
        if self.is_single { Chunk::Whole } else { Chunk::Bytes(self.bytes_per_call() as u64) }
    }

    /// The same between hosts, over a network that reads so many bytes at once at most.
    pub fn between(&self, longest: usize) -> Chunk {
        if self.is_single { Chunk::Whole } else { Chunk::Bytes(self.between_hosts(longest).bytes as u64) }
    }

    /// The chunks between hosts, over a network that reads so many bytes at once at most.
    pub fn between_hosts(&self, longest: usize) -> Chunking {
        let usual = Chunking::default();
        let (bytes, per_peer) = match self.is_single {
            true => (longest, self.most as usize),
            false => (self.bytes.unwrap_or(usual.bytes), self.in_flight as usize),
        };
        Chunking { bytes: bytes.min(longest), per_peer, shared: self.most as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Settings;

    #[test]
    fn chunks_are_those_of_the_place() {
        let usual = Chunking { bytes: 256 << 10, per_peer: 8, shared: 64 };
        assert_eq!(chunks("rendezvous", "chunked").between_hosts(usize::MAX), usual);
        assert_eq!(chunks("rendezvous", "chunked").between_hosts(1000).bytes, 1000, "a network may have a limit");
        let single = Chunking { bytes: 1 << 40, per_peer: 64, shared: 64 };
        assert_eq!(chunks("rendezvous", "single").between_hosts(1 << 40), single);
        assert_eq!(chunks("rendezvous", "single").bytes_per_call(), usize::MAX);
        let told = |chunks: ChunkSettings| (chunks.within(), chunks.between(1 << 30));
        assert_eq!(told(chunks("rendezvous", "single")), (Chunk::Whole, Chunk::Whole));
        assert_eq!(told(chunks("chunks_most", "9")), (Chunk::Bytes(1 << 20), Chunk::Bytes(256 << 10)));
        let small = chunks("chunk_size", "64k");
        assert_eq!((small.bytes_per_call(), small.between_hosts(usize::MAX).bytes), (64 << 10, 64 << 10));
        assert_eq!(chunks("chunks_in_flight", "1").between_hosts(usize::MAX).per_peer, 1);
        assert_eq!(chunks("chunks_most", "30").between_hosts(usize::MAX).shared, 30);
    }

    fn chunks(name: &str, value: &str) -> ChunkSettings {
        Settings::parse(|parameter| (parameter == name).then(|| value.into())).unwrap().chunks
    }
}
