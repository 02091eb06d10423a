//! Memory that peers may address by a key.

use crate::link::Buffer;
use crate::operation::Access;
use std::collections::HashMap;

#[derive(Debug)]
struct Region<B> {
    buffer: B,
    read: bool,
    write: bool,
}

/// All regions, by key.
#[derive(Debug)]
pub(crate) struct Regions<B>(HashMap<u64, Region<B>>);

impl<B: Buffer> Regions<B> {
    pub(super) fn new() -> Self {
        Regions(HashMap::new())
    }

    /// Lets peers address `buffer` by `key`, for what `access` lists. A second registration replaces the first.
    pub(crate) fn register(&mut self, key: u64, buffer: B, access: &[Access]) {
        let (read, write) = (access.contains(&Access::Read), access.iter().any(|access| *access != Access::Read));
        self.0.insert(key, Region { buffer, read, write });
    }

    pub(crate) fn deregister(&mut self, key: u64) {
        self.0.remove(&key);
    }

    /// The part of a region that an access names, if it is allowed.
    pub(crate) fn find(&self, key: u64, offset: u64, length: usize, access: Access) -> Option<B> {
        let region = self.0.get(&key)?;
        let allowed = match access {
            Access::Read => region.read,
            Access::Write | Access::ToldWrite => region.write,
        };
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(length)?;
        (allowed && end <= region.buffer.len()).then(|| region.buffer.slice(offset, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    #[test]
    fn a_region_is_found_within_its_bounds_and_for_what_it_grants() {
        let mut regions = Regions::new();
        regions.register(1, Bytes::new(&[0; 10]), &[Access::Read]);
        let found = |key, offset, length, access| regions.find(key, offset, length, access).is_some();
        assert!(found(1, 0, 10, Access::Read) && found(1, 10, 0, Access::Read));
        assert!(!found(1, 1, 10, Access::Read) && !found(1, u64::MAX, 2, Access::Read));
        assert!(!found(1, 0, 1, Access::Write) && !found(2, 0, 1, Access::Read));
        regions.deregister(1);
        assert!(regions.find(1, 0, 1, Access::Read).is_none());
    }
}
