//! What an address vector holds: addresses by index, and indices by address. The endpoints that are bound to the vector
//! share this with it.

use crate::addressing::name::Name;
use crate::border::bindings::{FI_LOG_AV, fi_addr_t};
use crate::border::errno::{Errno, INVALID, Result};
use crate::border::log;
use crate::parameter::Settings;
use crate::threads::domain_lock::{Entered, Guarded};
use std::collections::{BTreeSet, HashMap};
use tidegate_link::Address;
use tidegate_link::fabric::Contact;

/// `FI_ADDR_UNSPEC` and `FI_ADDR_NOTAVAIL`, which are the same number.
pub const NO_ADDRESS: fi_addr_t = u64::MAX;

/// The addresses of a vector, behind the domain's lock.
pub struct Addresses {
    /// How many addresses the application expects to insert (`fi_av_attr.count`).
    pub expected: usize,
    table: Guarded<Table>,
}

impl Addresses {
    /// No addresses yet.
    pub fn new(expected: usize) -> Addresses {
        Addresses { expected, table: Guarded::new(Table::default()) }
    }

    /// Adds a name under an index of its own. `user_id` is what the application wants to see as the source of its
    /// messages, if that is not the index.
    pub fn insert(&self, name: Name, user_id: Option<fi_addr_t>, entered: &mut Entered) -> fi_addr_t {
        self.table.get(entered).insert(name, user_id)
    }

    /// Removes an index.
    pub fn remove(&self, index: fi_addr_t, entered: &mut Entered) -> Result<()> {
        self.table.get(entered).remove(index)
    }

    /// The name that was inserted under an index.
    pub fn name(&self, index: fi_addr_t, entered: &mut Entered) -> Option<Name> {
        self.table.get(entered).get(index)
    }

    /// Notes the address to which the name of an index has been found to lead.
    pub fn note(&self, index: fi_addr_t, address: Address, entered: &mut Entered) {
        self.table.get(entered).note(index, address);
    }

    /// What the application calls an address; `NO_ADDRESS` if it has not inserted it.
    pub fn index(&self, address: &Address, entered: &mut Entered) -> fi_addr_t {
        self.table.get(entered).shown(address).unwrap_or(NO_ADDRESS)
    }

    /// Fails if the process of this contact has other settings than ours, and tells the user.
    pub fn check_settings(&self, settings: &Settings, contact: &Contact) -> Result<()> {
        contact.check_settings(&settings.flow_alike()).map_err(|error| {
            log::trouble(FI_LOG_AV, &error.to_string());
            Errno::of_link(&error)
        })
    }
}

/// Addresses by index and indices by address.
#[derive(Debug, Default)]
struct Table {
    entries: Vec<Option<Entry>>,
    indices: HashMap<Address, Insertions>,
    free: Vec<usize>,
}

/// The indices of all insertions that lead to one address.
#[derive(Debug)]
struct Insertions {
    /// The insertion by which the application knows the address: the latest one.
    answering: usize,
    /// Earlier insertions, one of which takes over when that one is removed.
    others: BTreeSet<usize>,
}

/// One insertion.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: Name,
    /// The address that the name leads to, if that is known.
    address: Option<Address>,
    /// What the application wants to see as the source of its messages.
    shown: fi_addr_t,
}

impl Table {
    /// Every insertion gets an index of its own, also if the address is there already.
    fn insert(&mut self, name: Name, user_id: Option<fi_addr_t>) -> fi_addr_t {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let shown = user_id.unwrap_or(index as fi_addr_t);
        self.entries[index] = Some(Entry { name, address: None, shown });
        if let Name::Endpoint(contact) = name {
            self.note(index as fi_addr_t, contact.address);
        }
        index as fi_addr_t
    }

    /// Notes the address to which the name of an index leads from now on.
    fn note(&mut self, index: fi_addr_t, address: Address) {
        let index = index as usize;
        let Some(entry) = self.entries.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(before) = entry.address.replace(address) {
            self.end_answering(index, before);
        }
        match self.indices.get_mut(&address) {
            Some(insertions) => {
                insertions.others.insert(insertions.answering);
                insertions.answering = index;
            }
            None => {
                self.indices.insert(address, Insertions { answering: index, others: BTreeSet::new() });
            }
        }
    }

    /// An insertion does not lead to `address` any more. If it was the one by which the application knows the address,
    /// another insertion of the same address takes over.
    fn end_answering(&mut self, index: usize, address: Address) {
        let Some(insertions) = self.indices.get_mut(&address) else { return };
        if insertions.answering != index {
            insertions.others.remove(&index);
            return;
        }
        match insertions.others.pop_first() {
            Some(other) => insertions.answering = other,
            None => {
                self.indices.remove(&address);
            }
        }
    }

    /// What the application wants to see as the source of messages from `address`.
    fn shown(&self, address: &Address) -> Option<fi_addr_t> {
        let answering = self.indices.get(address)?.answering;
        self.entries[answering].map(|entry| entry.shown)
    }

    fn remove(&mut self, index: fi_addr_t) -> Result<()> {
        let slot = usize::try_from(index).ok().and_then(|index| self.entries.get_mut(index)).ok_or(INVALID)?;
        let removed = slot.take().ok_or(INVALID)?;
        self.free.push(index as usize);
        if let Some(address) = removed.address {
            self.end_answering(index as usize, address);
        }
        Ok(())
    }

    fn get(&self, index: fi_addr_t) -> Option<Name> {
        self.entries.get(usize::try_from(index).ok()?)?.map(|entry| entry.name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;
    use tidegate_link::Service;
    use tidegate_link::fabric::LowerAddress;
    use tidegate_message::flow::{Config, SchemeName};

    fn contact(number: u64) -> Contact {
        Contact::example(number, 1, &Config::new(SchemeName::None, 4, 64, 0), LowerAddress::default())
    }

    /// The address of an endpoint of this process.
    pub(crate) fn address(number: u64) -> Address {
        contact(number).address
    }

    fn name(number: u64) -> Name {
        Name::Endpoint(contact(number))
    }

    #[test]
    fn indices_count_from_zero_and_lead_back() {
        let mut all = Table::default();
        for pid in 0..5 {
            assert_eq!(all.insert(name(pid), None), pid);
        }
        assert_eq!(all.get(3), Some(name(3)));
        assert_eq!(all.shown(&address(3)), Some(3));
        assert_eq!((all.get(5), all.get(NO_ADDRESS)), (None, None));
    }

    #[test]
    fn a_removed_address_is_gone_and_its_index_used_again() {
        let mut all = Table::default();
        all.insert(name(1), None);
        all.insert(name(2), None);
        all.remove(0).unwrap();
        assert_eq!(all.get(0), None);
        assert_eq!(all.shown(&address(1)), None);
        assert_eq!(all.remove(0), Err(INVALID));
        assert_eq!(all.insert(name(3), None), 0);
    }

    #[test]
    fn an_address_inserted_twice_survives_one_removal() {
        let mut all = Table::default();
        let first = all.insert(name(1), None);
        let second = all.insert(name(1), None);
        assert_ne!(first, second);
        assert_eq!(all.shown(&address(1)), Some(second));
        all.remove(second).unwrap();
        assert_eq!(all.shown(&address(1)), Some(first));
        let third = all.insert(name(1), None);
        all.remove(first).unwrap();
        assert_eq!(all.shown(&address(1)), Some(third), "another's removal changes nothing");
        all.remove(third).unwrap();
        assert_eq!(all.shown(&address(1)), None);
        assert!(all.indices.is_empty());
    }

    /// The time that the thread was running counts, whatever else the machine does; and if the cost of a step grew with
    /// the number of addresses, this would take minutes.
    #[test]
    fn what_an_insertion_or_removal_costs_does_not_grow_with_the_addresses() {
        const MANY: u64 = 200_000;
        let has_run = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let begun = has_run();
        let mut all = Table::default();
        assert_ne!(name(1), name(2));
        for names in [&name, &|_| name(1)] as [&dyn Fn(u64) -> Name; 2] {
            let indices: Vec<fi_addr_t> = (0..MANY).map(|number| all.insert(names(number), None)).collect();
            indices.iter().for_each(|index| all.remove(*index).unwrap());
            assert!(all.indices.is_empty());
        }
        let took = has_run() - begun;
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[test]
    fn the_application_may_name_sources_itself() {
        let mut all = Table::default();
        let index = all.insert(name(1), Some(77));
        assert_eq!((index, all.shown(&address(1))), (0, Some(77)));
    }

    #[test]
    fn a_service_is_known_by_the_address_that_it_leads_to_last() {
        let mut all = Table::default();
        let service = Name::Service(Service::new(b"7471").unwrap());
        let index = all.insert(service, None);
        assert!(all.indices.is_empty());
        all.note(index, address(1));
        all.note(index, address(1));
        assert_eq!((all.shown(&address(1)), all.indices.len()), (Some(index), 1));
        all.note(index, address(2));
        assert_eq!((all.shown(&address(2)), all.indices.len()), (Some(index), 1));
        assert_eq!(all.get(index), Some(service));
        all.remove(index).unwrap();
        assert!(all.indices.is_empty());
    }
}
