//! Whom an endpoint reaches how: processes of its host by shared memory, others by the network below, where one is
//! open.
//!
//! Who is where follows from the two contacts alone ([`Contact::shares_host`]), so both sides come to the same answer,
//! and neither falls back from one way to the other. There is one exception, on which both sides agree as well: copies
//! of a virtual machine that were resumed from one snapshot show one boot id, and pass for one host. But each has a
//! network address that the other has not, and neither finds the other's segment. So the network carries what goes
//! between them, if both have opened one.

use crate::lower::Lower;
use crate::threads::waits::NETWORK_INTERVAL;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;
use tidegate_link::fabric::{Contact, FabricLink, NetworkKind};
use tidegate_link::{Address, Idle, LinkError, Path, Paths, ShmLink};
use tidegate_message::{Counter, Link, PeerId};

/// Shared memory, and the network where there is one.
pub type Links = Paths<ShmLink, FabricLink<Lower>>;

/// How an endpoint over these links is reached.
pub fn own_contact(links: &Links) -> Contact {
    match links.look_at_second() {
        Some(network) => network.contact(),
        None => contact_of(links.look_at_first()),
    }
}

/// How an endpoint is reached that has shared memory alone.
pub fn contact_of(link: &ShmLink) -> Contact {
    Contact::new(link.address(), link.secret(), link.flow())
}

/// Whether the endpoint at a contact is reached by shared memory.
fn is_here(links: &Links, own: &Contact, contact: &Contact) -> bool {
    let is_copy = || {
        let is_elsewhere = |network: &FabricLink<Lower>| !network.look_at_network().may_be_own(&contact.lower);
        let has_network = own.kind == contact.kind && links.look_at_second().is_some_and(is_elsewhere);
        has_network && !links.look_at_first().shows(&contact.address)
    };
    own.shares_host(contact) && !is_copy()
}

/// Whether the endpoint at a contact can be reached by anything that this process has. The error names what each has.
pub fn check(links: &Links, own: &Contact, contact: &Contact) -> Result<(), LinkError> {
    if is_here(links, own, contact) {
        return Ok(());
    }
    // Containers that show different boot ids may share `/dev/shm` all the same.
    let is_beside_us = || own.kind == NetworkKind::NONE && links.look_at_first().shows(&contact.address);
    own.check_network(contact).or_else(|error| if is_beside_us() { Ok(()) } else { Err(error) })
}

/// The peer at a contact.
pub fn peer(links: &mut Links, own: &Contact, contact: &Contact) -> Result<PeerId, LinkError> {
    check(links, own, contact)?;
    let is_here = is_here(links, own, contact);
    let path = match links.second() {
        Some(network) if !is_here => match network.peer(contact) {
            Err(LinkError::TableFull { peers, is_changing: true, .. }) => {
                return Err(links.first().no_place_beside(peers));
            }
            place => Path::Second(place?),
        },
        _ => Path::First(links.first().peer(&contact.address)?),
    };
    if let Some(place) = links.place(path) {
        return Ok(place);
    }
    let reason = "this process communicates with as many peers as it was made for (FI_TIDEGATE_PEERS)";
    Err(LinkError::Elsewhere { peer: contact.address, reason: reason.into() })
}

/// Brings the network's counters up to date.
pub fn count(links: &Links) {
    if let Some(network) = links.look_at_second() {
        let (counts, counters) = (network.counts(), links.look_at_first().counters());
        counters.set(Counter::BatchesSent, counts.sent);
        counters.set(Counter::BatchesResent, counts.resent);
        counters.set(Counter::BatchesReceived, counts.received);
        counters.set(Counter::BatchesDropped, counts.dropped);
    }
}

/// The address of a peer, or of a departed one of which the endpoint has messages.
pub fn address_of(links: &Links, peer: PeerId) -> Option<Address> {
    let (first, second) = (links.look_at_first(), links.look_at_second());
    let of_peer = match links.path(peer) {
        Some(Path::First(peer)) => first.address_of(peer),
        Some(Path::Second(peer)) => second.and_then(|second| second.contact_of(peer)).map(|contact| contact.address),
        None => None,
    };
    let of_record = || second.and_then(|second| second.address_of_record(peer));
    of_peer.or_else(|| first.address_of_record(peer)).or_else(of_record)
}

/// The name of a peer, for people.
pub fn name_of(links: &Links, peer: PeerId) -> Option<String> {
    match links.path(peer)? {
        Path::First(peer) => links.look_at_first().address_of(peer).map(|address| address.to_string()),
        Path::Second(peer) => links.look_at_second()?.name_of(peer),
    }
}

/// The number by which the endpoint has messages of the departed peer of this address, if that has no place any more.
pub fn record_of(links: &Links, address: &Address) -> Option<PeerId> {
    let of_second = || links.look_at_second()?.record_of(address);
    links.look_at_first().record_of(address).or_else(of_second)
}

/// Progress has found nothing to do: waits a little. Says whether something has come, and whether the processor is to
/// be given away, which is done outside of the domain.
#[inline]
pub fn idle(links: &mut Links) -> Idle {
    match links.first().idle() {
        Idle::Arrived => Idle::Arrived,
        _ if look_at_network(links) => Idle::Arrived,
        nothing => nothing,
    }
}

/// A completion is near: waits a little for packets, never gives the processor away. Returns whether one has come.
#[inline]
pub fn linger(links: &mut Links) -> bool {
    links.first().linger() || look_at_network(links)
}

#[inline(always)]
fn look_at_network(links: &mut Links) -> bool {
    links.look_at_second().is_some() && look_at_second(links)
}

#[inline(never)]
fn look_at_second(links: &mut Links) -> bool {
    let Some(network) = links.second() else { return false };
    if network.is_quiet() {
        return false;
    }
    let has_come = network.look();
    count(links);
    has_come
}

/// The descriptors by which the links wake a thread.
pub fn wake_descriptors(links: &mut Links) -> io::Result<Vec<RawFd>> {
    let mut descriptors = vec![links.first().wake_fd()?];
    descriptors.extend(links.second().and_then(|network| network.network().descriptor()));
    Ok(descriptors)
}

/// Asks for a wake when something comes. Returns how long a thread may sleep at most, of `most`; `None`: something has
/// come, it may not sleep at all.
pub fn arm(links: &mut Links, most: Duration) -> Option<Duration> {
    if !links.first().arm() {
        return None;
    }
    let Some(network) = links.second() else { return Some(most) };
    let now = tidegate_link::now();
    let due = network.next_timeout(now).map_or(Duration::MAX, |due| due.since(now));
    let wakes = network.network().descriptor().is_some();
    if due.is_zero() || network.is_ready() || (wakes && !network.network().may_sleep()) {
        links.first().disarm();
        return None;
    }
    Some(most.min(due).min(if wakes { most } else { NETWORK_INTERVAL }))
}
