//! The one offer: what Tidegate has, in libfabric's attributes, and the parts of it that depend on an application's
//! hints.

use crate::addressing::name::Name;
use crate::border::bindings::*;
use crate::border::errno::{Errno, Result};
use crate::border::identity::NAME;
use crate::border::loader::Loader;
use crate::parameter::limits::*;
use core::ffi::{c_int, c_void};

/// Capabilities that are kinds of transfers.
pub const KINDS: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
/// Directions of transfers that the application starts, receives apart.
pub const SENDING: u64 = FI_SEND | FI_READ | FI_WRITE;
/// Directions of receives, and of transfers that peers start.
pub const RECEIVING: u64 = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
/// All directions.
pub const DIRECTIONS: u64 = SENDING | RECEIVING;
/// Capabilities that an application gets when it asks for them or asks for none. `FI_DIRECTED_RECV` is one of them
/// because the receive calls then mean something else.
pub const PRIMARY: u64 = KINDS | FI_DIRECTED_RECV;
/// Capabilities that are there in any case.
pub const SECONDARY: u64 = FI_MULTI_RECV | FI_SOURCE | FI_FENCE | FI_LOCAL_COMM;
/// All that is offered.
pub const CAPABILITIES: u64 = PRIMARY | DIRECTIONS | SECONDARY | FI_RMA_EVENT;
/// Capabilities that only those applications get that ask for them, or, of the second, for none. Open MPI asks for
/// `FI_REMOTE_COMM` whether or not its ranks share a host. An address of another host is refused when it is used, with
/// a text that says so.
pub const ON_DEMAND: u64 = FI_REMOTE_COMM | FI_RMA_EVENT;
/// Capabilities of sending.
pub const SEND_CAPABILITIES: u64 = KINDS | SENDING | FI_FENCE;
/// Capabilities of receiving.
pub const RECEIVE_CAPABILITIES: u64 = KINDS | RECEIVING | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT;
/// Capabilities of a domain.
pub const DOMAIN_CAPABILITIES: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;

/// Flags that may be an endpoint's default for sending.
pub const SEND_FLAGS: u64 = FI_INJECT
    | FI_MORE
    | FI_COMPLETION
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_MATCH_COMPLETE;
/// Flags that may be an endpoint's default for receiving.
pub const RECEIVE_FLAGS: u64 = FI_MULTI_RECV | FI_COMPLETION | FI_MORE;
/// Messages to one peer match in order; atomic operations travel as messages and are applied in order.
pub const ORDER: u64 =
    FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

/// The pattern of tag bits: all of them are the application's (`FI_TAG_GENERIC`).
const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// Our protocol, in the range for protocols that libfabric does not know (`FI_PROV_SPECIFIC`).
pub const PROTOCOL: u32 = FI_PROV_SPECIFIC as u32 | 0x71de;

/// What an info says of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The application's own end.
    pub source: Name,
    /// The other end, if it was named.
    pub destination: Option<Name>,
}

/// What an application gets: those parts of the offer that depend on its hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Capabilities.
    pub caps: u64,
    /// Reliable datagrams, or datagrams.
    pub endpoint_type: fi_ep_type,
    /// Which calls the application serialises itself.
    pub threading: fi_threading,
    /// Who makes progress of control operations.
    pub control_progress: fi_progress,
    /// Who makes progress of transfers.
    pub data_progress: fi_progress,
    /// Table or map of addresses, or either.
    pub av_type: fi_av_type,
    /// Mode of memory registration.
    pub mr_mode: c_int,
    /// Capabilities of sending.
    pub send_caps: u64,
    /// Capabilities of receiving.
    pub receive_caps: u64,
    /// Default flags of sending calls.
    pub send_flags: u64,
    /// Default flags of receiving calls.
    pub receive_flags: u64,
    /// Class of traffic of sends, and of the domain.
    pub traffic: [u32; 2],
}

impl Answer {
    /// The answer and the two ends, as libfabric's struct.
    pub fn write(&self, loader: &Loader, ends: &Ends) -> Result<*mut fi_info> {
        let raw = loader.allocate_info();
        // SAFETY: the loader has just made the struct with all its parts, zeroed and at least as large as in version
        // 1.17.
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
        send.caps = self.send_caps;
        send.op_flags = self.send_flags;
        send.msg_order = ORDER;
        send.inject_size = INJECT_BYTES_MOST;
        send.size = QUEUE_SIZE;
        send.iov_limit = PIECES_MOST;
        send.rma_iov_limit = REMOTE_PIECES_MOST;
        send.tclass = self.traffic[0];
        receive.caps = self.receive_caps;
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

/// A copy of the name in memory that libfabric frees, and its length. The copy is null if there is no name.
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
