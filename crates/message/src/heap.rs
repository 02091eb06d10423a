//! How much memory the allocator really takes for a block that is requested.

/// What a block of this size takes of the heap: its length, rounded as allocators do, and what they keep beside it.
#[inline]
pub(crate) const fn block(bytes: usize) -> usize {
    // A multiple of 16 bytes: written so, it is no division and no branch.
    if bytes == 0 { 0 } else { ((bytes + 8 + 15) & !15) + 16 }
}

/// The longest block that takes no more of the heap than this.
pub(crate) const fn longest_block(heap_bytes: usize) -> usize {
    (heap_bytes.saturating_sub(16) & !15).saturating_sub(8)
}

/// Most that [`block`] adds to a block's length.
pub(crate) const BLOCK_MOST: usize = 39;

/// What a queue may take of the heap before it has doubled its room for the first time: a `VecDeque` begins with four
/// places. From then on it has fewer places than twice the most elements that it ever had.
pub(crate) const fn queue_begun<T>() -> usize {
    block(4 * size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_block_within_a_limit_is_within_it_and_one_byte_more_is_not() {
        for limit in 0..1000 {
            let longest = longest_block(limit);
            assert!(block(longest) <= limit && block(longest + 1) > limit, "{longest} in {limit}");
            assert!(block(limit) <= limit + BLOCK_MOST);
        }
    }
}
