//! [`FormerPeers`]: endpoints that count as lost or have left, so that they stay lost, and can be told so by a proof.

use super::contact::Contact;
use crate::secret::Secret;
use std::collections::{HashMap, VecDeque};

/// See the module. Beyond a number of them the oldest is forgotten.
#[derive(Debug)]
pub struct FormerPeers {
    most: usize,
    /// Their ids, the oldest first.
    ids: VecDeque<u64>,
    /// Their secrets, as far as we were given them.
    secrets: HashMap<u64, Option<Secret>>,
}

impl FormerPeers {
    /// Bytes that each takes at most, while the two grow.
    pub const BYTES_EACH: usize = size_of::<u64>() + size_of::<(u64, Option<Secret>)>();

    /// None so far; at most this many are remembered.
    pub fn new(most: usize) -> FormerPeers {
        FormerPeers { most, ids: VecDeque::new(), secrets: HashMap::new() }
    }

    /// Whether the endpoint of this id is one, and its secret, if we were given that.
    pub fn find(&self, id: u64) -> Option<Option<Secret>> {
        self.secrets.get(&id).copied()
    }

    /// This one is from now on.
    pub fn add(&mut self, contact: &Contact) {
        if self.ids.len() >= self.most
            && let Some(oldest) = self.ids.pop_front()
        {
            self.secrets.remove(&oldest);
        }
        if self.secrets.insert(contact.id(), contact.secret).is_none() {
            self.ids.push_back(contact.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::contact;
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut former = FormerPeers::new(2);
        let contacts = [1, 2, 3].map(|number| contact(number, 1, 64));
        contacts.iter().for_each(|contact| former.add(contact));
        let is_known = contacts.map(|contact| former.find(contact.id()).is_some());
        assert_eq!((is_known, former.ids.len(), former.secrets.len()), ([false, true, true], 2, 2));
    }
}
