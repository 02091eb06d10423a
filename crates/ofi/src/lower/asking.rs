//! `fi_getinfo`, asked from inside a provider: which other providers there are, though the user may have hidden them
//! from the application (`FI_PROVIDER=tidegate`).
//!
//! The question comes back to this provider, as one of those that are asked: [`is_asking`] lets `getinfo` answer that
//! there is nothing. It must not be asked while libfabric loads or unloads providers, because it holds its lock then.

use super::choice::Choice;
use super::interfaces::{Interfaces, Preference, speed_of_interface};
use super::nearness;
use super::networks::{Asking, Domains, refusal, row_of};
use crate::addressing::host;
use crate::border::bindings::*;
use crate::border::loader::Loader;
use crate::border::log;
use core::cmp::Reverse;
use core::ffi::c_int;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::NonNull;
use tidegate_link::fabric::SHORT_BATCH_BYTES;

/// The name of this provider.
const OWN_NAME: &str = "tidegate";
/// By this flag libfabric's own layers find providers that the user has hidden. It is no part of the interface, but the
/// same in all versions that there are.
const HIDDEN_TOO: u64 = 1 << 60;
/// The capabilities for reading memory of peers, and letting them read ours.
const READING: u64 = FI_RMA | FI_READ | FI_REMOTE_READ;
/// The interface that we speak, as far as the library speaks it.
const API_VERSION: u32 = crate::border::identity::version(1, 17);

/// How a provider reads memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Peers name memory by its address (`FI_MR_VIRT_ADDR`), else by its distance from where the registration begins.
    pub names_addresses: bool,
    /// We choose keys, of so many bytes; `None`: the provider does (`FI_MR_PROV_KEY`).
    pub key_bytes: Option<usize>,
    /// The memory into which is read has to be registered too (`FI_MR_LOCAL`).
    pub registers_own: bool,
    /// Registrations that peers use are bound to the endpoint (`FI_MR_ENDPOINT`).
    pub binds_endpoint: bool,
}

thread_local! {
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is asking libfabric for other providers.
pub fn is_asking() -> bool {
    ASKING.get()
}

/// An offer of a provider below, as `fi_getinfo` gave it.
#[derive(Debug)]
pub struct Offer {
    info: NonNull<fi_info>,
    loader: &'static Loader,
}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: the list is libfabric's, and ours until here.
        unsafe { self.loader.free_info(self.info.as_ptr()) };
    }
}

/// # Safety
/// The pointer is null or leads to text that ends in zero.
unsafe fn text(pointer: *const core::ffi::c_char) -> String {
    // SAFETY: promised by the caller.
    if pointer.is_null() { String::new() } else { unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned() }
}

impl Offer {
    /// What the provider offers; valid while this lives.
    pub fn info(&self) -> *mut fi_info {
        self.info.as_ptr()
    }

    fn parts(&self) -> (&fi_info, &fi_domain_attr, &fi_fabric_attr) {
        // SAFETY: `fi_getinfo` fills in all parts; they live as long as the offer, and nobody changes them.
        unsafe {
            let info = self.info.as_ref();
            (info, &*info.domain_attr, &*info.fabric_attr)
        }
    }

    /// The provider, as `fi_info` shows it.
    pub fn provider(&self) -> String {
        // SAFETY: the text lives as long as the offer.
        unsafe { text(self.parts().2.prov_name) }
    }

    /// The domain, as `fi_info` shows it.
    pub fn domain(&self) -> String {
        // SAFETY: the text lives as long as the offer.
        unsafe { text(self.parts().1.name) }
    }

    /// The fabric, as `fi_info` shows it.
    fn fabric(&self) -> String {
        // SAFETY: the text lives as long as the offer.
        unsafe { text(self.parts().2.name) }
    }

    /// Whether this process needs a TCP port beside it, by which peers notice its end.
    pub fn is_watched(&self) -> bool {
        row_of(&self.provider()).asking == Asking::Operations
    }

    /// Whether addresses are those of sockets.
    pub fn has_sockets(&self) -> bool {
        self.family().is_some()
    }

    /// The interface that has the source address, where that is one of sockets.
    fn interface<'a>(&self, interfaces: &'a Interfaces) -> Option<&'a str> {
        self.family()?;
        // SAFETY: an address of sockets, as large as its family has them.
        interfaces.that_has(unsafe { host::ip_of(self.parts().0.src_addr.cast()) }?)
    }

    /// Provider and domain, as the user would choose them.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider(), self.domain())
    }

    /// The node of memory at which its device is, by the name that the provider gives the device, or the domain.
    fn node(&self, system: &Path) -> Option<u32> {
        // SAFETY: null, or the provider's description of a device, whose parts and texts live as long as the offer.
        let device = unsafe {
            let attributes = self.parts().0.nic.as_ref().and_then(|nic| nic.device_attr.as_ref());
            attributes.map(|device| text(device.name))
        };
        [device, Some(self.domain())].iter().flatten().find_map(|name| nearness::node_of_device(system, name))
    }

    fn link(&self) -> Option<&fi_link_attr> {
        let nic = self.parts().0.nic;
        // SAFETY: null, or the provider's description of a device, whose parts live as long as the offer.
        unsafe { nic.as_ref().and_then(|nic| nic.link_attr.as_ref()) }
    }

    /// Bits a second, as the device says of itself, or the system of the interface.
    pub fn speed(&self) -> Option<u64> {
        let stated = self.link().map(|link| link.speed as u64).filter(|speed| *speed > 0);
        stated.or_else(|| match row_of(&self.provider()).domains {
            Domains::Interfaces => speed_of_interface(&self.domain()),
            Domains::Devices => None,
        })
    }

    /// Whether the device says that it is not connected.
    pub fn is_down(&self) -> bool {
        self.link().is_some_and(|link| link.state == FI_LINK_DOWN)
    }

    /// Whether its local memory has to be registered.
    pub fn wants_registration(&self) -> bool {
        self.parts().1.mr_mode & FI_MR_LOCAL != 0
    }

    /// How peers' memory is read by it. The error says why it cannot be.
    pub fn reading(&self) -> Result<Reading, String> {
        let (info, domain, _) = self.parts();
        if info.caps & READING != READING {
            return Err(
                "it offers no remote reads (FI_RMA), or none with modes of registration that are known here".into()
            );
        }
        let has = |bit| domain.mr_mode & bit != 0;
        // Keys that we choose need room for the number of a piece beside what makes them hard to guess.
        if !has(FI_MR_PROV_KEY) && domain.mr_key_size < 4 {
            return Err(format!("its keys have {} bytes only", domain.mr_key_size));
        }
        Ok(Reading {
            names_addresses: has(FI_MR_VIRT_ADDR),
            key_bytes: (!has(FI_MR_PROV_KEY)).then_some(domain.mr_key_size.min(8)),
            registers_own: has(FI_MR_LOCAL),
            binds_endpoint: has(FI_MR_ENDPOINT),
        })
    }

    /// Most bytes of a message, and of a remote read.
    pub fn longest_bytes(&self) -> usize {
        // SAFETY: as in `parts`.
        unsafe { (*self.parts().0.ep_attr).max_msg_size }
    }

    /// Receives that may be posted at a time.
    pub fn receives_most(&self) -> usize {
        // SAFETY: as in `parts`.
        unsafe { (*self.parts().0.rx_attr).size }
    }

    /// Bytes that precede every message.
    pub fn has_prefix(&self) -> bool {
        self.parts().0.mode & FI_MSG_PREFIX != 0
    }

    /// The source address, if there is one.
    fn source(&self) -> &[u8] {
        let info = self.parts().0;
        match info.src_addr.is_null() {
            true => &[],
            // SAFETY: as many bytes as it says.
            false => unsafe { core::slice::from_raw_parts(info.src_addr.cast(), info.src_addrlen) },
        }
    }

    /// Lets endpoints that are opened with this offer listen at a port. Returns whether its address has a port.
    pub fn listen_at(&mut self, port: u16) -> bool {
        if self.source().len() < 4 || !matches!(self.family(), Some(libc::AF_INET | libc::AF_INET6)) {
            return false;
        }
        // SAFETY: the address has at least four bytes, of which the port is the second two in both families, and the
        // list is ours.
        unsafe { self.info.as_ref().src_addr.cast::<[u8; 2]>().add(1).write(port.to_be_bytes()) };
        true
    }

    /// Whether no other host can be reached by its source address: that of a loopback, or of one link only.
    fn is_local(&self) -> bool {
        match (self.source(), self.family()) {
            (source, Some(libc::AF_INET)) => source.get(4) == Some(&127),
            (source, Some(libc::AF_INET6)) => source.get(8) == Some(&0) || source.get(8) == Some(&0xfe),
            _ => false,
        }
    }

    /// The family of the source address, where that is one of sockets.
    fn family(&self) -> Option<c_int> {
        let is_of_sockets = matches!(self.parts().0.addr_format, FI_SOCKADDR | FI_SOCKADDR_IN | FI_SOCKADDR_IN6);
        self.source().first_chunk().filter(|_| is_of_sockets).map(|family| u16::from_ne_bytes(*family).into())
    }
}

/// How good an offer is among those of its provider, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    preference: Preference,
    is_down: bool,
    address: AddressKind,
    /// The provider chooses keys, so that memory in several pieces goes packet by packet.
    chooses_keys: bool,
    /// The more bits a second, the better.
    slowness: Reverse<u64>,
}

/// Addresses that an interface or a device may have, those first that most hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AddressKind {
    IPv4,
    IPv6,
    Other,
}

impl Offer {
    fn rank(&self, interfaces: &Interfaces) -> Rank {
        let address = match self.family() {
            Some(libc::AF_INET6) => AddressKind::IPv6,
            Some(libc::AF_INET) => AddressKind::IPv4,
            _ => AddressKind::Other,
        };
        let chooses_keys = self.parts().1.mr_mode & FI_MR_PROV_KEY != 0;
        match row_of(&self.provider()).domains {
            // The system's numbers for interfaces compare nothing: a bridge of containers states 10 Gbit/s.
            Domains::Interfaces => {
                let preference = interfaces.preference(&self.domain());
                Rank { preference, is_down: false, address, chooses_keys, slowness: Reverse(0) }
            }
            Domains::Devices => {
                let slowness = Reverse(self.speed().unwrap_or(0));
                let (preference, is_down) = (Preference::Ordinary, self.is_down());
                Rank { preference, is_down, address, chooses_keys, slowness }
            }
        }
    }
}

/// How many reasons are told why offers were not taken.
const REASONS_TOLD: usize = 3;

/// Opens the best offer for a choice that can be opened: one that can read peers' memory, if that is wanted and there
/// is one. Tried are those with an address of the same kind as the best: of interfaces of IP, the one of the default
/// route, or where there is none, all that are as good as the first; of devices, those that are up, the fastest first,
/// and then those that are down. The error says why all were refused, or lists what there is.
pub fn open_best<T>(
    loader: &'static Loader,
    choice: &Choice,
    wants_reads: bool,
    mut open: impl FnMut(&mut Offer, &Interfaces) -> Result<T, String>,
) -> Result<T, String> {
    if let Some(why) = choice.providers().into_iter().find_map(refusal) {
        return Err(format!("FI_TIDEGATE_FABRIC={choice}: {why}; {}", there(loader)));
    }
    let (mut seen, mut reasons, here) = (Vec::new(), Vec::new(), Interfaces::here());
    for (provider, reads) in choice.providers().into_iter().flat_map(|name| [(name, true), (name, false)]) {
        if reads && !wants_reads {
            continue;
        }
        let offers = ask(loader, Some(provider), reads);
        seen.extend(offers.iter().map(Offer::domain));
        for mut offer in in_order(offers, provider, choice.domain(), &here) {
            match take(&mut offer, choice, |offer| open(offer, &here)) {
                Ok(opened) => return Ok(opened),
                Err(why) if reasons.contains(&why) => {}
                Err(why) => reasons.push(why),
            }
        }
    }
    if !reasons.is_empty() {
        let more = reasons.len().saturating_sub(REASONS_TOLD);
        reasons.truncate(REASONS_TOLD);
        let more = if more == 0 { String::new() } else { format!("; and {more} more") };
        return Err(format!("{}{more}", reasons.join("; ")));
    }
    if !seen.is_empty() {
        let wanted = choice.domain().map_or("that reaches other hosts".to_owned(), |domain| format!("{domain:?}"));
        return Err(format!("FI_TIDEGATE_FABRIC={choice}: there is no domain {wanted}; there are: {}", all(seen)));
    }
    let there = there(loader);
    Err(format!("FI_TIDEGATE_FABRIC={choice}: this libfabric offers no reliable datagrams by it; {there}"))
}

/// Those offers of a provider that may be taken, in the order in which they are tried.
fn in_order(offers: Vec<Offer>, provider: &str, domain: Option<&str>, interfaces: &Interfaces) -> Vec<Offer> {
    let fits = |offer: &Offer| match domain {
        Some(domain) => offer.domain() == domain || offer.interface(interfaces) == Some(domain),
        None => !offer.is_local(),
    };
    let fabric = row_of(provider).fabric;
    let is_of_it = |offer: &Offer| offer.provider() == provider && fabric.is_none_or(|name| offer.fabric() == name);
    let fitting = offers.into_iter().filter(|offer| is_of_it(offer) && fits(offer));
    let mut ranked: Vec<(Rank, Offer)> = fitting.map(|offer| (offer.rank(interfaces), offer)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    // An interface that is worse leads elsewhere, and addresses of two kinds do not reach each other: a job whose
    // processes have chosen differently does not run.
    let best = ranked.first().map(|(rank, _)| (rank.preference, rank.address));
    let alike = ranked.into_iter().filter(|(rank, _)| Some((rank.preference, rank.address)) == best);
    let mut alike: Vec<(Rank, Offer)> = alike.collect();
    let system = Path::new("/");
    if row_of(provider).is_one_network
        && alike.len() > 1
        && let Some(node) = nearness::node_of_thread(system)
    {
        let is_as_good =
            |one: &(Rank, Offer), other: &(Rank, Offer)| one.0 == other.0 && one.1.fabric() == other.1.fabric();
        nearness::near_first(&mut alike, is_as_good, |(_, offer)| offer.node(system), node);
    }
    alike.into_iter().map(|(_, offer)| offer).collect()
}

/// Opens an offer. The error says which it was.
fn take<T>(
    offer: &mut Offer,
    choice: &Choice,
    open: impl FnOnce(&mut Offer) -> Result<T, String>,
) -> Result<T, String> {
    let name = offer.name();
    if offer.longest_bytes() < SHORT_BATCH_BYTES {
        return Err(format!(
            "FI_TIDEGATE_FABRIC={choice}: the messages of {name} have at most {} bytes, and {SHORT_BATCH_BYTES} are \
             needed",
            offer.longest_bytes()
        ));
    }
    open(offer).map_err(|why| {
        log::info(FI_LOG_EP_CTRL, || format!("{name} is not taken: {why}"));
        format!("opening {name}: {why}")
    })
}

/// Whether the library has loaded this provider, asked in a process that is none.
pub fn has_this_provider(loader: &'static Loader) -> bool {
    ask(loader, Some(OWN_NAME), false).iter().any(|offer| offer.provider() == OWN_NAME)
}

/// The providers that would do instead.
fn there(loader: &'static Loader) -> String {
    let offers = ask(loader, None, false);
    // A process that asks without being a provider sees this provider, too.
    let is_other = |name: &String| refusal(name).is_none() && name != OWN_NAME;
    let others = offers.iter().map(Offer::provider).filter(is_other);
    format!("it does by: {}", all(others.collect()))
}

fn all(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What a provider offers that we can use, or all of them; with remote reads, or perhaps without.
pub fn ask(loader: &'static Loader, provider: Option<&str>, reads: bool) -> Vec<Offer> {
    let hints = loader.allocate_info();
    let Some(hints) = NonNull::new(hints).map(|info| Offer { info, loader }) else { return Vec::new() };
    // SAFETY: the struct and its parts are fresh, ours, and as large as the library's version has them. The name is
    // copied into memory that libfabric frees.
    unsafe {
        let info = &mut *hints.info();
        info.caps = if reads { FI_MSG | FI_SEND | FI_RECV | READING } else { FI_MSG };
        info.mode = FI_CONTEXT | FI_CONTEXT2;
        (*info.ep_attr).type_ = FI_EP_RDM;
        (*info.domain_attr).resource_mgmt = FI_RM_ENABLED;
        (*info.domain_attr).threading = FI_THREAD_DOMAIN;
        (*info.domain_attr).control_progress = FI_PROGRESS_MANUAL;
        (*info.domain_attr).data_progress = FI_PROGRESS_MANUAL;
        let local = if provider.is_none_or(|name| row_of(name).offers_local) { FI_MR_LOCAL } else { 0 };
        let modes = local | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
        // Offers that demand any other mode do not come.
        (*info.domain_attr).mr_mode = if reads { modes | FI_MR_ENDPOINT } else { modes };
        if let Some(name) = provider.and_then(|name| CString::new(name).ok()) {
            (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
        }
    }
    let mut list = core::ptr::null_mut();
    ASKING.set(true);
    // SAFETY: the hints live through the call, which sets the list if it succeeds.
    let failed = unsafe { loader.get_info(API_VERSION.min(loader.version), HIDDEN_TOO, hints.info(), &mut list) } != 0;
    ASKING.set(false);
    let mut offers = Vec::new();
    let mut next = if failed { None } else { NonNull::new(list) };
    while let Some(info) = next {
        // SAFETY: each member of the list is valid, and becomes a list of its own.
        next = NonNull::new(unsafe { core::mem::replace(&mut (*info.as_ptr()).next, core::ptr::null_mut()) });
        offers.push(Offer { info, loader });
    }
    // Registrations of buffers for as long as the endpoint uses them, which end before it, are none.
    let is_possible = |mode| mode & FI_MR_LOCAL == 0 || mode & FI_MR_ENDPOINT == 0;
    offers.retain(|offer| !offer.has_prefix() && is_possible(offer.parts().1.mr_mode));
    offers
}
