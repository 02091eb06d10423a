//! `fi_getinfo`: what Tidegate offers, and whether that is what the application asks for.
//!
//! There is one offer: reliable datagram endpoints within one host. Hints either fit into it or they do not; where they name
//! a choice that costs nothing to grant (threading, table or map of addresses, progress of control operations, a class of
//! traffic, datagrams that might get lost), the answer repeats the choice. What does not fit is refused here and not later.
//!
//! Node and service name the one end or the other. Every name and address of this host is this host, where a service is
//! enough to find an endpoint (`name`); other hosts are refused. `src_addr` is the service that an endpoint is to be opened
//! by, or one that is empty: an endpoint's own address is only known once it is open (fi_getname).

use crate::bindings::*;
use crate::domain::Domain;
use crate::errno::{Errno, INVALID, Result};
use crate::fabric::Fabric;
use crate::guard::guarded;
use crate::identity::{self, NAME};
use crate::limits::*;
use crate::loader::{self, Loader};
use crate::name::Name;
use crate::place::{Mismatch, Place, name_at, text};
use crate::{log, parameter};
use core::ffi::{CStr, c_char, c_int, c_void};

const KINDS: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
const SENDING: u64 = FI_SEND | FI_READ | FI_WRITE;
const RECEIVING: u64 = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
const DIRECTIONS: u64 = SENDING | RECEIVING;
/// Capabilities an application gets only when it asks for them, because the receive calls then mean something else.
const PRIMARY: u64 = KINDS | FI_DIRECTED_RECV;
/// Capabilities that are there in any case.
const SECONDARY: u64 = FI_MULTI_RECV | FI_SOURCE | FI_FENCE | FI_LOCAL_COMM;
const CAPABILITIES: u64 = PRIMARY | DIRECTIONS | SECONDARY;
/// Open MPI asks for it whether or not the ranks share a host, so it is granted to who asks, and to nobody else. An address of
/// another host is refused when it is used, with a text that says so.
const ON_DEMAND: u64 = FI_REMOTE_COMM;
const SEND_CAPABILITIES: u64 = KINDS | SENDING | FI_FENCE;
const RECEIVE_CAPABILITIES: u64 = KINDS | RECEIVING | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE;
const DOMAIN_CAPABILITIES: u64 = FI_LOCAL_COMM | ON_DEMAND;

/// Flags that may be an endpoint's default for sending.
const SEND_FLAGS: u64 = FI_INJECT
    | FI_MORE
    | FI_COMPLETION
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_MATCH_COMPLETE;
/// Flags that may be an endpoint's default for receiving.
const RECEIVE_FLAGS: u64 = FI_MULTI_RECV | FI_COMPLETION | FI_MORE;
/// Messages to one peer match in order; atomic operations travel as messages and are applied in order.
const ORDER: u64 = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

/// Flag by which libfabric's own layers look for a provider to stand on. It is no part of the interface, but the same in all versions.
/// One of them (rxd) would make reliable endpoints of our datagrams, and appear beside ours as another "tidegate".
const FOR_ANOTHER_LAYER: u64 = 1 << 59;

/// Pattern of tag bits: all are the application's (`FI_TAG_GENERIC`).
const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// `fi_getinfo`, called by libfabric with pointers of its caller.
pub unsafe extern "C" fn getinfo(
    api: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    list: *mut *mut fi_info,
) -> c_int {
    guarded(|| {
        let loader = loader::get().ok_or(Errno(FI_ENODATA))?;
        // SAFETY: libfabric passes hints that are null or valid for this call, and a place for the answer.
        let (hints, list) = unsafe { (hints.as_ref().map(Hints), list.as_mut().ok_or(INVALID)?) };
        let mut place = Place { node: text(node), service: text(service), numeric: flags & FI_NUMERICHOST != 0 };
        // Who asks what there is may name what he likes besides.
        let hints = hints.filter(|_| flags & FI_PROV_ATTR_ONLY == 0);
        if flags & FI_PROV_ATTR_ONLY != 0 {
            place = Place::default();
        } else if flags & FI_SOURCE != 0 && place.is_nowhere() {
            return Err(INVALID);
        }
        let refuse = |mismatch: Mismatch| {
            log::info(FI_LOG_CORE, || format!("not for this application: {mismatch}"));
            Errno(FI_ENODATA)
        };
        let answer = Answer::to(api, hints.as_ref()).map_err(refuse)?;
        if answer.endpoint_type == FI_EP_DGRAM && flags & FOR_ANOTHER_LAYER != 0 {
            return Err(refuse(
                "a layer of libfabric that makes datagrams reliable asks for them; ours are".to_owned(),
            ));
        }
        check_parameters(loader, hints.as_ref())?;
        let ends = Ends::of(&place, flags & FI_SOURCE != 0, hints.as_ref()).map_err(refuse)?;
        *list = answer.write(loader, &ends)?;
        Ok(0)
    })
}

/// What an info says of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    source: Name,
    destination: Option<Name>,
}

impl Ends {
    /// `is_source`: the place is where the application's own endpoints are to be (`FI_SOURCE`).
    fn of(place: &Place, is_source: bool, hints: Option<&Hints>) -> core::result::Result<Ends, Mismatch> {
        // Hints only count for what the place does not say.
        let source = match hints {
            _ if is_source => Some(place.name()?),
            Some(hints) => hints.source()?,
            None => None,
        };
        if matches!(source, Some(Name::Endpoint(_))) {
            return Err("its source address is that of an endpoint, and each endpoint has one of its own".to_owned());
        }
        let destination = match hints {
            _ if !is_source && !place.is_nowhere() => Some(place.name()?),
            Some(hints) => hints.destination()?,
            None => None,
        };
        let source = match source {
            Some(source) => source,
            None => Place::default().name()?,
        };
        Ok(Ends { source, destination })
    }
}

/// A wrong parameter stops an application that asks for Tidegate by name, with a line that says what is wrong. Others may be
/// looking for another provider: they only find a line in the log, and `fi_domain` refuses them should they choose us.
fn check_parameters(loader: &Loader, hints: Option<&Hints>) -> Result<()> {
    let named = |list: &str| !list.starts_with('^') && list.split([',', ';']).any(|name| name == "tidegate");
    let by_user = std::env::var("FI_PROVIDER").is_ok_and(|list| named(&list));
    let by_application = hints.and_then(Hints::provider).is_some_and(|name| named(&name.to_string_lossy()));
    let is_wanted = by_user || by_application;
    if is_wanted {
        parameter::warn_of_misspellings();
    }
    let Err(text) = parameter::read(loader) else { return Ok(()) };
    if is_wanted {
        log::trouble(FI_LOG_CORE, &text);
        return Err(INVALID);
    }
    log::warn(FI_LOG_CORE, || text);
    Ok(())
}

/// Hints that live for the call.
struct Hints<'a>(&'a fi_info);

impl Hints<'_> {
    fn send(&self) -> Option<&fi_tx_attr> {
        // SAFETY: parts of hints are null or valid; this holds for the accessors below as well.
        unsafe { self.0.tx_attr.as_ref() }
    }
    fn receive(&self) -> Option<&fi_rx_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.rx_attr.as_ref() }
    }
    fn endpoint(&self) -> Option<&fi_ep_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.ep_attr.as_ref() }
    }
    fn domain(&self) -> Option<&fi_domain_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.domain_attr.as_ref() }
    }
    fn fabric(&self) -> Option<&fi_fabric_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.fabric_attr.as_ref() }
    }
    fn provider(&self) -> Option<&CStr> {
        text(self.fabric()?.prov_name)
    }
    fn source(&self) -> core::result::Result<Option<Name>, Mismatch> {
        // SAFETY: an address in hints is null or as long as they say.
        unsafe { name_at(self.0.src_addr, self.0.src_addrlen) }
    }
    fn destination(&self) -> core::result::Result<Option<Name>, Mismatch> {
        // SAFETY: see `source`.
        unsafe { name_at(self.0.dest_addr, self.0.dest_addrlen) }
    }
}

/// What an application gets: the parts of the offer that depend on its hints.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    caps: u64,
    endpoint_type: fi_ep_type,
    threading: fi_threading,
    control_progress: fi_progress,
    data_progress: fi_progress,
    av_type: fi_av_type,
    mr_mode: c_int,
    send_flags: u64,
    receive_flags: u64,
    /// Classes of traffic, of sends and of the domain.
    traffic: [u32; 2],
}

impl Answer {
    fn to(api: u32, hints: Option<&Hints>) -> core::result::Result<Answer, Mismatch> {
        let mut answer = Answer {
            caps: CAPABILITIES,
            endpoint_type: FI_EP_RDM,
            threading: FI_THREAD_SAFE,
            control_progress: FI_PROGRESS_AUTO,
            data_progress: FI_PROGRESS_MANUAL,
            av_type: FI_AV_TABLE,
            mr_mode: 0,
            send_flags: 0,
            receive_flags: 0,
            traffic: [0; 2],
        };
        let Some(hints) = hints else { return Ok(answer) };
        answer.caps = granted(hints.0.caps)?;
        require(hints.0.addr_format == FI_FORMAT_UNSPEC, "address format", hints.0.addr_format)?;
        require(hints.0.handle.is_null(), "an endpoint made from", "a handle")?;
        if let Some(domain) = hints.domain() {
            answer.meet_domain(api, domain)?;
        }
        if let Some(fabric) = hints.fabric() {
            require_name("fabric", fabric.name)?;
            // SAFETY: null, or an open fabric.
            let ours = fabric.fabric.is_null() || unsafe { Fabric::is_ours(fabric.fabric) };
            require(ours, "the fabric of", "another provider")?;
        }
        if let Some(endpoint) = hints.endpoint() {
            meet_endpoint(endpoint)?;
            if endpoint.type_ != FI_EP_UNSPEC {
                answer.endpoint_type = endpoint.type_;
            }
        }
        if let Some(send) = hints.send() {
            meet_send(send)?;
            answer.send_flags = send.op_flags;
            answer.traffic[0] = send.tclass;
        }
        if let Some(receive) = hints.receive() {
            meet_receive(receive)?;
            answer.receive_flags = receive.op_flags;
        }
        Ok(answer)
    }

    fn meet_domain(&mut self, api: u32, hints: &fi_domain_attr) -> core::result::Result<(), Mismatch> {
        require_name("domain", hints.name)?;
        // SAFETY: null, or an open domain.
        let ours = hints.domain.is_null() || unsafe { Domain::is_ours(hints.domain) };
        require(ours, "the domain of", "another provider")?;
        self.traffic[1] = hints.tclass;
        if hints.threading != FI_THREAD_UNSPEC {
            require(hints.threading <= FI_THREAD_ENDPOINT, "threading", hints.threading)?;
            self.threading = hints.threading;
        }
        if hints.control_progress != FI_PROGRESS_UNSPEC {
            let known = hints.control_progress <= FI_PROGRESS_CONTROL_UNIFIED;
            require(known, "progress of control operations", hints.control_progress)?;
            self.control_progress = hints.control_progress;
        }
        if hints.data_progress != FI_PROGRESS_UNSPEC {
            // Messages move while the application calls us, and never otherwise: saying AUTO would be a lie.
            require(hints.data_progress != FI_PROGRESS_AUTO, "automatic data progress", hints.data_progress)?;
            require(hints.data_progress == FI_PROGRESS_MANUAL, "data progress", hints.data_progress)?;
            self.data_progress = hints.data_progress;
        }
        require(hints.resource_mgmt <= FI_RM_ENABLED, "resource management", hints.resource_mgmt)?;
        if hints.av_type != FI_AV_UNSPEC {
            require(matches!(hints.av_type, FI_AV_MAP | FI_AV_TABLE), "type of address vector", hints.av_type)?;
            self.av_type = hints.av_type;
        }
        self.mr_mode = registration_mode(api, hints.mr_mode);
        require(hints.mr_key_size <= size_of::<u64>(), "size of memory keys", hints.mr_key_size)?;
        require(hints.cq_data_size <= CQ_DATA_BYTES, "size of completion data", hints.cq_data_size)?;
        require(hints.caps & !DOMAIN_CAPABILITIES == 0, "capabilities of the domain", hints.caps)?;
        require(hints.auth_key_size == 0, "authorization key", hints.auth_key_size)?;
        let contexts = hints.max_ep_tx_ctx.max(hints.max_ep_rx_ctx);
        require(contexts <= 1, "several contexts per endpoint", contexts)?;
        let shared = hints.max_ep_stx_ctx.max(hints.max_ep_srx_ctx);
        require(shared == 0, "shared contexts", shared)?;
        let objects = [hints.cq_cnt, hints.ep_cnt, hints.tx_ctx_cnt, hints.rx_ctx_cnt, hints.cntr_cnt];
        let most = objects.into_iter().max().unwrap_or(0);
        require(most <= OBJECTS_MOST, "queues, endpoints, contexts or counters", most)?;
        require(hints.mr_iov_limit <= PIECES_MOST, "pieces of registered memory", hints.mr_iov_limit)?;
        require(hints.mr_cnt <= REGIONS_MOST, "registered regions", hints.mr_cnt)?;
        require(hints.max_err_data <= ERROR_TEXT_BYTES_MOST, "bytes of error data", hints.max_err_data)
    }

    /// The answer as libfabric's struct.
    fn write(&self, loader: &Loader, ends: &Ends) -> Result<*mut fi_info> {
        let raw = loader.allocate_info();
        // SAFETY: the loader has just made the struct with all its parts, zeroed and at least as large as in version 1.17.
        unsafe {
            let info = raw.as_mut().ok_or(Errno(FI_ENOMEM))?;
            info.caps = self.caps;
            info.addr_format = FI_FORMAT_UNSPEC;
            self.write_transfer(&mut *info.tx_attr, &mut *info.rx_attr);
            write_endpoint(self.endpoint_type, &mut *info.ep_attr);
            self.write_domain(loader, &mut *info.domain_attr);
            (*info.fabric_attr).name = libc::strdup(NAME.as_ptr());
            (info.src_addr, info.src_addrlen) = copied(Some(ends.source));
            (info.dest_addr, info.dest_addrlen) = copied(ends.destination);
        }
        Ok(raw)
    }

    fn write_transfer(&self, send: &mut fi_tx_attr, receive: &mut fi_rx_attr) {
        send.caps = self.caps & SEND_CAPABILITIES;
        send.op_flags = self.send_flags;
        send.msg_order = ORDER;
        send.inject_size = INJECT_BYTES_MOST;
        send.size = QUEUE_SIZE;
        send.iov_limit = PIECES_MOST;
        send.rma_iov_limit = REMOTE_PIECES_MOST;
        send.tclass = self.traffic[0];
        receive.caps = self.caps & RECEIVE_CAPABILITIES;
        receive.op_flags = self.receive_flags;
        receive.msg_order = ORDER;
        receive.size = QUEUE_SIZE;
        receive.iov_limit = PIECES_MOST;
    }

    fn write_domain(&self, loader: &Loader, domain: &mut fi_domain_attr) {
        // SAFETY: `strdup` copies a C string; libfabric frees it with the struct.
        domain.name = unsafe { libc::strdup(NAME.as_ptr()) };
        domain.threading = self.threading;
        domain.control_progress = self.control_progress;
        domain.data_progress = self.data_progress;
        domain.resource_mgmt = FI_RM_ENABLED;
        domain.av_type = self.av_type;
        domain.mr_mode = self.mr_mode;
        domain.mr_key_size = size_of::<u64>();
        domain.cq_data_size = CQ_DATA_BYTES;
        domain.cq_cnt = OBJECTS_MOST;
        domain.ep_cnt = OBJECTS_MOST;
        domain.tx_ctx_cnt = OBJECTS_MOST;
        domain.rx_ctx_cnt = OBJECTS_MOST;
        domain.max_ep_tx_ctx = 1;
        domain.max_ep_rx_ctx = 1;
        domain.cntr_cnt = OBJECTS_MOST;
        domain.mr_iov_limit = PIECES_MOST;
        domain.caps = DOMAIN_CAPABILITIES & self.caps;
        domain.max_err_data = ERROR_TEXT_BYTES_MOST;
        domain.mr_cnt = REGIONS_MOST;
        domain.tclass = self.traffic[1];
        if loader.is_at_least(2, 5) {
            // SAFETY: the struct is the loader's own, and from version 2.5 on it has this tail.
            unsafe { (*(&raw mut *domain).cast::<DomainAttr25>()).counters_most = [u64::MAX; 2] };
        }
    }
}

/// `fi_domain_attr` as it is from version 2.5 on.
#[repr(C)]
struct DomainAttr25 {
    known: fi_domain_attr,
    max_ep_auth_key: usize,
    max_group_id: u32,
    /// `max_cntr_value` and `max_err_cntr_value`.
    counters_most: [u64; 2],
}

fn write_endpoint(kind: fi_ep_type, endpoint: &mut fi_ep_attr) {
    endpoint.type_ = kind;
    endpoint.protocol = PROTOCOL;
    endpoint.protocol_version = 1;
    endpoint.max_msg_size = MESSAGE_BYTES_MOST;
    endpoint.max_order_raw_size = MESSAGE_BYTES_MOST;
    endpoint.max_order_war_size = MESSAGE_BYTES_MOST;
    endpoint.max_order_waw_size = MESSAGE_BYTES_MOST;
    endpoint.mem_tag_format = TAG_FORMAT;
    endpoint.tx_ctx_cnt = 1;
    endpoint.rx_ctx_cnt = 1;
}

/// `FI_PROGRESS_CONTROL_UNIFIED`, of version 2.0 and later: control operations and data make progress together.
const FI_PROGRESS_CONTROL_UNIFIED: fi_progress = 3;

/// Our protocol, in the range for protocols that libfabric does not know (`FI_PROV_SPECIFIC`).
const PROTOCOL: u32 = FI_PROV_SPECIFIC as u32 | 0x71de;

/// Memory for libfabric to free, holding the name; null if there is none.
fn copied(name: Option<Name>) -> (*mut c_void, usize) {
    let Some(name) = name else { return (core::ptr::null_mut(), 0) };
    // SAFETY: the block is checked, and as long as what is copied into it.
    unsafe {
        let block = libc::malloc(Name::BYTES);
        if block.is_null() {
            return (block, 0);
        }
        core::ptr::copy_nonoverlapping(name.to_bytes().as_ptr(), block.cast(), Name::BYTES);
        (block, Name::BYTES)
    }
}

/// The capabilities for those asked for. Asking for none means all.
fn granted(asked: u64) -> core::result::Result<u64, Mismatch> {
    let unknown = asked & !(CAPABILITIES | ON_DEMAND);
    require(unknown == 0, "capabilities", format_args!("{unknown:#x}"))?;
    let on_demand = asked & ON_DEMAND;
    if asked & !(SECONDARY | ON_DEMAND) == 0 {
        return Ok(CAPABILITIES | on_demand);
    }
    // Directions restrict; without them a kind of transfer means all its directions.
    let directions = if asked & DIRECTIONS == 0 { DIRECTIONS } else { asked & DIRECTIONS };
    let messages = if asked & (FI_MSG | FI_TAGGED) == 0 { FI_SEND | FI_RECV } else { 0 };
    let memory = if asked & (FI_RMA | FI_ATOMIC) == 0 { DIRECTIONS & !(FI_SEND | FI_RECV) } else { 0 };
    Ok(asked & PRIMARY | directions & !messages & !memory | SECONDARY | on_demand)
}

/// Tidegate needs no mode of registration: keys are the application's, addresses are offsets. An application that only knows
/// the modes of before version 1.5 may insist on one of the two; 0 meant "either" then and means "no bits" since.
fn registration_mode(api: u32, hint: c_int) -> c_int {
    let legacy = api < identity::version(1, 5) || hint & (FI_MR_BASIC | FI_MR_SCALABLE) != 0;
    match hint & (FI_MR_BASIC | FI_MR_SCALABLE) {
        FI_MR_BASIC => FI_MR_BASIC,
        _ if legacy => FI_MR_SCALABLE,
        _ => 0,
    }
}

fn meet_endpoint(hints: &fi_ep_attr) -> core::result::Result<(), Mismatch> {
    // A datagram that always arrives is a datagram too.
    require(matches!(hints.type_, FI_EP_UNSPEC | FI_EP_RDM | FI_EP_DGRAM), "endpoint type", hints.type_)?;
    require(matches!(hints.protocol, 0 | PROTOCOL), "protocol", hints.protocol)?;
    require(hints.protocol_version <= 1, "protocol version", hints.protocol_version)?;
    require(hints.max_msg_size <= MESSAGE_BYTES_MOST, "largest message", hints.max_msg_size)?;
    require(hints.msg_prefix_size == 0, "room before messages", hints.msg_prefix_size)?;
    let ordered = hints.max_order_raw_size.max(hints.max_order_war_size).max(hints.max_order_waw_size);
    require(ordered <= MESSAGE_BYTES_MOST, "largest ordered transfer", ordered)?;
    require(hints.tx_ctx_cnt != FI_SHARED_CONTEXT && hints.rx_ctx_cnt != FI_SHARED_CONTEXT, "shared contexts", "")?;
    let contexts = hints.tx_ctx_cnt.max(hints.rx_ctx_cnt);
    require(contexts <= 1, "several contexts per endpoint", contexts)?;
    require(hints.auth_key_size == 0, "authorization key", hints.auth_key_size)
}

fn meet_send(hints: &fi_tx_attr) -> core::result::Result<(), Mismatch> {
    let capabilities = SEND_CAPABILITIES | SECONDARY | PRIMARY | ON_DEMAND;
    require(hints.caps & !capabilities == 0, "capabilities for sending", format_args!("{:#x}", hints.caps))?;
    require(hints.op_flags & !SEND_FLAGS == 0, "flags for sending", format_args!("{:#x}", hints.op_flags))?;
    require(hints.msg_order & !ORDER == 0, "order of messages", format_args!("{:#x}", hints.msg_order))?;
    require(hints.comp_order & !FI_ORDER_DATA == 0, "order of completions", hints.comp_order)?;
    require(hints.inject_size <= INJECT_BYTES_MOST, "inject size", hints.inject_size)?;
    require(hints.size <= QUEUE_SIZE, "outstanding sends", hints.size)?;
    require(hints.iov_limit <= PIECES_MOST, "pieces of memory", hints.iov_limit)?;
    require(hints.rma_iov_limit <= REMOTE_PIECES_MOST, "pieces of remote memory", hints.rma_iov_limit)
}

fn meet_receive(hints: &fi_rx_attr) -> core::result::Result<(), Mismatch> {
    let capabilities = RECEIVE_CAPABILITIES | SECONDARY | PRIMARY | ON_DEMAND;
    require(hints.caps & !capabilities == 0, "capabilities for receiving", format_args!("{:#x}", hints.caps))?;
    require(hints.op_flags & !RECEIVE_FLAGS == 0, "flags for receiving", format_args!("{:#x}", hints.op_flags))?;
    require(hints.msg_order & !ORDER == 0, "order of messages", format_args!("{:#x}", hints.msg_order))?;
    require(hints.comp_order & !FI_ORDER_DATA == 0, "order of completions", hints.comp_order)?;
    require(hints.size <= QUEUE_SIZE, "outstanding receives", hints.size)?;
    require(hints.iov_limit <= PIECES_MOST, "pieces of memory", hints.iov_limit)
}

fn require(met: bool, what: &str, value: impl core::fmt::Display) -> core::result::Result<(), Mismatch> {
    if met { Ok(()) } else { Err(format!("it asks for {what} {value}, which Tidegate does not have")) }
}

fn require_name(what: &str, name: *const c_char) -> core::result::Result<(), Mismatch> {
    let Some(name) = text(name) else { return Ok(()) };
    require(name == NAME, what, name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeroed hints with all parts, changed by `set`, answered for an application of interface version 1.17.
    fn answer(set: impl FnOnce(&mut fi_info)) -> core::result::Result<Answer, Mismatch> {
        answer_for(identity::version(1, 17), set)
    }

    fn answer_for(api: u32, set: impl FnOnce(&mut fi_info)) -> core::result::Result<Answer, Mismatch> {
        // SAFETY: all these structs are plain data, for which zero is what `fi_allocinfo` makes.
        let (mut info, mut send, mut receive, mut endpoint, mut domain, mut fabric): (
            fi_info,
            fi_tx_attr,
            fi_rx_attr,
            fi_ep_attr,
            fi_domain_attr,
            fi_fabric_attr,
        ) = unsafe { core::mem::zeroed() };
        info.tx_attr = &mut send;
        info.rx_attr = &mut receive;
        info.ep_attr = &mut endpoint;
        info.domain_attr = &mut domain;
        info.fabric_attr = &mut fabric;
        set(&mut info);
        Answer::to(api, Some(&Hints(&info)))
    }

    fn domain(info: &mut fi_info) -> &mut fi_domain_attr {
        // SAFETY: `answer_for` has set it.
        unsafe { &mut *info.domain_attr }
    }

    fn endpoint(info: &mut fi_info) -> &mut fi_ep_attr {
        // SAFETY: `answer_for` has set it.
        unsafe { &mut *info.ep_attr }
    }

    fn send(info: &mut fi_info) -> &mut fi_tx_attr {
        // SAFETY: `answer_for` has set it.
        unsafe { &mut *info.tx_attr }
    }

    #[test]
    fn without_hints_everything_is_offered() {
        let offer = Answer::to(identity::version(1, 17), None).unwrap();
        assert_eq!(offer.caps, CAPABILITIES);
        assert_eq!((offer.threading, offer.mr_mode), (FI_THREAD_SAFE, 0));
        assert_eq!(answer(|_| ()).unwrap(), offer, "empty hints are like none");
    }

    #[test]
    fn only_the_kinds_asked_for_are_granted() {
        let caps = |asked| answer(|info| info.caps = asked).unwrap().caps;
        assert_eq!(caps(FI_TAGGED), FI_TAGGED | FI_SEND | FI_RECV | SECONDARY);
        assert_eq!(caps(FI_TAGGED | FI_SEND), FI_TAGGED | FI_SEND | SECONDARY);
        assert_eq!(
            caps(FI_MSG | FI_RMA | FI_DIRECTED_RECV),
            FI_MSG | FI_RMA | FI_DIRECTED_RECV | DIRECTIONS | SECONDARY
        );
        assert_eq!(caps(FI_SOURCE), CAPABILITIES);
        assert_eq!(caps(CAPABILITIES), CAPABILITIES, "MPICH asks again for what it was offered");
    }

    #[test]
    fn other_hosts_are_only_promised_to_who_insists() {
        let caps = |asked| answer(|info| info.caps = asked).unwrap().caps;
        assert_eq!(caps(0) & FI_REMOTE_COMM, 0);
        assert_eq!(caps(FI_REMOTE_COMM), CAPABILITIES | FI_REMOTE_COMM);
        assert_eq!(caps(FI_TAGGED | FI_REMOTE_COMM) & FI_REMOTE_COMM, FI_REMOTE_COMM);
    }

    #[test]
    fn memory_of_devices_is_never_offered() {
        assert!(answer(|info| info.caps = FI_TAGGED | FI_HMEM).is_err());
        assert!(answer(|info| info.caps = FI_MSG | FI_NAMED_RX_CTX).is_err());
        assert!(answer(|info| info.caps = FI_MSG | FI_TRIGGER).is_err());
    }

    #[test]
    fn only_datagrams_of_our_own_protocol_fit() {
        assert!(answer(|info| endpoint(info).type_ = FI_EP_RDM).is_ok());
        assert!(answer(|info| endpoint(info).type_ = FI_EP_MSG).is_err());
        assert_eq!(answer(|_| ()).unwrap().endpoint_type, FI_EP_RDM);
        assert_eq!(answer(|info| endpoint(info).type_ = FI_EP_DGRAM).unwrap().endpoint_type, FI_EP_DGRAM);
        assert!(answer(|info| endpoint(info).protocol = 1).is_err());
        assert!(answer(|info| endpoint(info).tx_ctx_cnt = FI_SHARED_CONTEXT).is_err());
        assert!(answer(|info| endpoint(info).rx_ctx_cnt = 2).is_err());
    }

    #[test]
    fn the_choice_of_threading_is_repeated() {
        for threading in [FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT] {
            assert_eq!(answer(|info| domain(info).threading = threading).unwrap().threading, threading);
        }
    }

    #[test]
    fn automatic_progress_of_data_is_not_promised() {
        assert!(answer(|info| domain(info).data_progress = FI_PROGRESS_AUTO).is_err());
        let manual = answer(|info| domain(info).data_progress = FI_PROGRESS_MANUAL).unwrap();
        assert_eq!(manual.data_progress, FI_PROGRESS_MANUAL);
        let control = answer(|info| domain(info).control_progress = FI_PROGRESS_AUTO).unwrap();
        assert_eq!(control.control_progress, FI_PROGRESS_AUTO);
    }

    #[test]
    fn registration_modes_of_old_and_new_applications() {
        let mode = |api, hint| answer_for(api, |info| domain(info).mr_mode = hint).unwrap().mr_mode;
        let (old, new) = (identity::version(1, 4), identity::version(1, 17));
        assert_eq!(mode(new, 0), 0);
        assert_eq!(mode(new, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL), 0);
        assert_eq!(mode(new, FI_MR_BASIC), FI_MR_BASIC);
        assert_eq!(mode(new, FI_MR_SCALABLE), FI_MR_SCALABLE);
        assert_eq!(mode(old, 0), FI_MR_SCALABLE);
        assert_eq!(mode(old, FI_MR_BASIC), FI_MR_BASIC);
        assert_eq!(mode(old, FI_MR_BASIC | FI_MR_SCALABLE), FI_MR_SCALABLE);
    }

    #[test]
    fn limits_and_flags_are_checked() {
        assert!(answer(|info| send(info).inject_size = INJECT_BYTES_MOST).is_ok());
        assert!(answer(|info| send(info).inject_size = INJECT_BYTES_MOST + 1).is_err());
        assert!(answer(|info| send(info).iov_limit = PIECES_MOST + 1).is_err());
        assert!(answer(|info| send(info).msg_order = ORDER).is_ok());
        assert!(answer(|info| send(info).msg_order = FI_ORDER_SAW).is_err());
        assert!(answer(|info| send(info).op_flags = FI_COMMIT_COMPLETE).is_err());
        let delivery = answer(|info| send(info).op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE).unwrap();
        assert_eq!(delivery.send_flags, FI_COMPLETION | FI_DELIVERY_COMPLETE);
        assert!(answer(|info| domain(info).cq_data_size = 9).is_err());
    }

    #[test]
    fn names_of_others_do_not_fit() {
        assert!(answer(|info| domain(info).name = NAME.as_ptr().cast_mut()).is_ok());
        assert!(answer(|info| domain(info).name = c"shm".as_ptr().cast_mut()).is_err());
    }
}
