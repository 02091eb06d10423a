//! Whether the offer is what an application asks for. Each hint is either granted, or the reason for a refusal.

use super::attributes::*;
use super::hints::Hints;
use crate::addressing::place::{Mismatch, text};
use crate::border::bindings::*;
use crate::border::identity::{self, NAME};
use crate::calls::{domain, fabric};
use crate::parameter::Progress;
use crate::parameter::limits::*;
use core::ffi::{c_char, c_int};

/// `FI_PROGRESS_CONTROL_UNIFIED`, of version 2.0 and later: control operations and data make progress together.
const FI_PROGRESS_CONTROL_UNIFIED: fi_progress = 3;

impl Answer {
    /// What an application of interface version `api` gets for its hints, and the user's choice who makes progress. An
    /// error says which of its wishes cannot be met.
    pub fn to(api: u32, hints: Option<&Hints>, progress: Progress) -> core::result::Result<Answer, Mismatch> {
        let mut answer = Answer {
            caps: CAPABILITIES,
            endpoint_type: FI_EP_RDM,
            threading: FI_THREAD_SAFE,
            control_progress: FI_PROGRESS_AUTO,
            data_progress: match progress {
                Progress::Calls | Progress::OnDemand => FI_PROGRESS_MANUAL,
                Progress::Thread => FI_PROGRESS_AUTO,
            },
            // Both kinds are alike here, so the application may choose; who does not gets a table (`fi_av_open`).
            av_type: FI_AV_UNSPEC,
            mr_mode: 0,
            send_caps: CAPABILITIES & SEND_CAPABILITIES,
            receive_caps: CAPABILITIES & RECEIVE_CAPABILITIES,
            send_flags: 0,
            receive_flags: 0,
            traffic: [0; 2],
        };
        let Some(hints) = hints else { return Ok(answer) };
        answer.caps = granted(hints.0.caps)?;
        require(hints.0.addr_format == FI_FORMAT_UNSPEC, "address format", hints.0.addr_format)?;
        require(hints.0.handle.is_null(), "an endpoint made from", "a handle")?;
        if let Some(attr) = hints.domain() {
            answer.meet_domain(api, attr, progress)?;
        }
        if let Some(attr) = hints.fabric() {
            require_name("fabric", attr.name)?;
            // SAFETY: null, or an open fabric.
            let ours = attr.fabric.is_null() || unsafe { fabric::is_ours(attr.fabric) };
            require(ours, "the fabric of", "another provider")?;
        }
        if let Some(endpoint) = hints.endpoint() {
            meet_endpoint(endpoint)?;
            if endpoint.type_ != FI_EP_UNSPEC {
                answer.endpoint_type = endpoint.type_;
            }
        }
        answer.send_caps = answer.caps & SEND_CAPABILITIES;
        answer.receive_caps = answer.caps & RECEIVE_CAPABILITIES;
        if let Some(send) = hints.send() {
            meet_send(send)?;
            answer.send_caps &= within(answer.caps, send.caps, "capabilities for sending")?;
            answer.send_flags = send.op_flags;
            answer.traffic[0] = send.tclass;
        }
        if let Some(receive) = hints.receive() {
            meet_receive(receive)?;
            answer.receive_caps &= within(answer.caps, receive.caps, "capabilities for receiving")?;
            answer.receive_flags = receive.op_flags;
        }
        Ok(answer)
    }

    fn meet_domain(
        &mut self,
        api: u32,
        hints: &fi_domain_attr,
        progress: Progress,
    ) -> core::result::Result<(), Mismatch> {
        require_name("domain", hints.name)?;
        // SAFETY: null, or an open domain.
        let ours = hints.domain.is_null() || unsafe { domain::is_ours(hints.domain) };
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
            // A thread costs who does not need it, so it is there only if the application or the user asks for it. The
            // user who forbids threads has the last word: then AUTO would not be true.
            if hints.data_progress == FI_PROGRESS_AUTO && progress == Progress::Calls {
                return Err(Progress::NO_THREAD.to_owned());
            }
            let known = matches!(hints.data_progress, FI_PROGRESS_MANUAL | FI_PROGRESS_AUTO);
            require(known, "data progress", hints.data_progress)?;
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
        // A capability that the domain is to have is one of its endpoints, too.
        self.caps |= hints.caps & FI_REMOTE_COMM;
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
}

/// The capabilities that an application gets for those that it asks for. Asking for none means all.
fn granted(asked: u64) -> core::result::Result<u64, Mismatch> {
    let unknown = asked & !(CAPABILITIES | ON_DEMAND);
    require(unknown == 0, "capabilities", format_args!("{unknown:#x}"))?;
    let granted = expanded(asked);
    if granted & FI_RMA_EVENT != 0 && granted & (FI_REMOTE_READ | FI_REMOTE_WRITE) == 0 {
        // fi_getinfo(3): one of the two has to be enabled.
        return Err("it asks for FI_RMA_EVENT and not for FI_REMOTE_READ or FI_REMOTE_WRITE".to_owned());
    }
    Ok(granted)
}

/// The capabilities of an endpoint that one of its directions gets for those that the hints for the direction ask for:
/// they have to be among the endpoint's (fi_endpoint(3)). Asking for none means all.
fn within(caps: u64, asked: u64, what: &str) -> core::result::Result<u64, Mismatch> {
    let unknown = asked & !(caps | SECONDARY | ON_DEMAND);
    require(unknown == 0, what, format_args!("{unknown:#x}"))?;
    Ok(caps & expanded(asked))
}

/// What capabilities mean that an application asks for.
fn expanded(asked: u64) -> u64 {
    let on_demand = asked & ON_DEMAND;
    if asked & !(SECONDARY | ON_DEMAND) == 0 {
        return CAPABILITIES | on_demand;
    }
    // Directions restrict the kinds of transfers. Without directions, a kind means all its directions.
    let directions = if asked & DIRECTIONS == 0 { DIRECTIONS } else { asked & DIRECTIONS };
    let messages = if asked & (FI_MSG | FI_TAGGED) == 0 { FI_SEND | FI_RECV } else { 0 };
    let memory = if asked & (FI_RMA | FI_ATOMIC) == 0 { DIRECTIONS & !(FI_SEND | FI_RECV) } else { 0 };
    asked & PRIMARY | directions & !messages & !memory | SECONDARY | on_demand
}

/// The mode of memory registration. Tidegate needs none of its bits: the application chooses keys, and addresses are
/// offsets. Before version 1.5 there were two modes instead, and an application that only knows these may insist on one
/// of them. The number 0 meant "either mode" then, and has meant "no bits" since.
fn registration_mode(api: u32, hint: c_int) -> c_int {
    let legacy = api < identity::version(1, 5) || hint & (FI_MR_BASIC | FI_MR_SCALABLE) != 0;
    match hint & (FI_MR_BASIC | FI_MR_SCALABLE) {
        FI_MR_BASIC => FI_MR_BASIC,
        _ if legacy => FI_MR_SCALABLE,
        _ => 0,
    }
}

fn meet_endpoint(hints: &fi_ep_attr) -> core::result::Result<(), Mismatch> {
    // An application that asks for datagrams gets ours, which always arrive.
    require(matches!(hints.type_, FI_EP_UNSPEC | FI_EP_RDM | FI_EP_DGRAM), "endpoint type", hints.type_)?;
    require(matches!(hints.protocol, 0 | PROTOCOL), "protocol", hints.protocol)?;
    require(hints.protocol_version <= 1, "protocol version", hints.protocol_version)?;
    require(hints.max_msg_size <= MESSAGE_BYTES_MOST, "largest message", hints.max_msg_size)?;
    require(hints.msg_prefix_size == 0, "room before messages", hints.msg_prefix_size)?;
    let ordered = hints.max_order_raw_size.max(hints.max_order_war_size).max(hints.max_order_waw_size);
    require(ordered <= MESSAGE_BYTES_MOST, "largest ordered transfer", ordered)?;
    require(
        hints.tx_ctx_cnt != FI_SHARED_CONTEXT && hints.rx_ctx_cnt != FI_SHARED_CONTEXT,
        "contexts that are",
        "shared",
    )?;
    let contexts = hints.tx_ctx_cnt.max(hints.rx_ctx_cnt);
    require(contexts <= 1, "several contexts per endpoint", contexts)?;
    require(hints.auth_key_size == 0, "authorization key", hints.auth_key_size)
}

fn meet_send(hints: &fi_tx_attr) -> core::result::Result<(), Mismatch> {
    require(hints.op_flags & !SEND_FLAGS == 0, "flags for sending", format_args!("{:#x}", hints.op_flags))?;
    require(hints.msg_order & !ORDER == 0, "order of messages", format_args!("{:#x}", hints.msg_order))?;
    require(hints.comp_order == 0, "order of completions", hints.comp_order)?;
    require(hints.inject_size <= INJECT_BYTES_MOST, "inject size", hints.inject_size)?;
    require(hints.size <= QUEUE_SIZE, "outstanding sends", hints.size)?;
    require(hints.iov_limit <= PIECES_MOST, "pieces of memory", hints.iov_limit)?;
    require(hints.rma_iov_limit <= REMOTE_PIECES_MOST, "pieces of remote memory", hints.rma_iov_limit)
}

fn meet_receive(hints: &fi_rx_attr) -> core::result::Result<(), Mismatch> {
    require(hints.op_flags & !RECEIVE_FLAGS == 0, "flags for receiving", format_args!("{:#x}", hints.op_flags))?;
    require(hints.msg_order & !ORDER == 0, "order of messages", format_args!("{:#x}", hints.msg_order))?;
    // Parts of long messages may be placed in any order.
    require(hints.comp_order == 0, "order of completions", hints.comp_order)?;
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
        answer_with(Progress::Calls, api, set)
    }

    fn answer_with(
        progress: Progress,
        api: u32,
        set: impl FnOnce(&mut fi_info),
    ) -> core::result::Result<Answer, Mismatch> {
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
        Answer::to(api, Some(&Hints(&info)), progress)
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
        let offer = Answer::to(identity::version(1, 17), None, Progress::Calls).unwrap();
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
    fn events_of_remote_accesses_are_promised_to_who_asks_and_may_be_accessed() {
        let caps = |asked| answer(|info| info.caps = asked).map(|answer| answer.caps);
        assert_eq!(caps(FI_RMA).unwrap() & FI_RMA_EVENT, 0);
        for asked in [FI_RMA, FI_ATOMIC, FI_RMA | FI_REMOTE_WRITE, FI_ATOMIC | FI_REMOTE_READ] {
            assert_eq!(caps(asked | FI_RMA_EVENT).unwrap() & FI_RMA_EVENT, FI_RMA_EVENT);
        }
        for asked in [FI_TAGGED, FI_RMA | FI_WRITE] {
            assert!(caps(asked | FI_RMA_EVENT).unwrap_err().contains("FI_RMA_EVENT"));
        }
        // Sandia OpenSHMEM 1.5.3 asks for this, with its default options.
        let sandia = answer(|info| {
            info.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
            domain(info).data_progress = FI_PROGRESS_MANUAL;
            (domain(info).resource_mgmt, domain(info).mr_key_size) = (FI_RM_ENABLED, 1);
            (send(info).op_flags, send(info).inject_size) = (FI_DELIVERY_COMPLETE, 16);
        });
        let sandia = sandia.unwrap();
        assert_eq!((sandia.caps & FI_RMA_EVENT, sandia.receive_caps & FI_RMA_EVENT), (FI_RMA_EVENT, FI_RMA_EVENT));
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
    fn automatic_progress_of_data_is_promised_to_who_asks_and_where_the_user_does() {
        let with = |progress, set: fn(&mut fi_info)| answer_with(progress, identity::version(1, 17), set);
        let with_thread = |set: fn(&mut fi_info)| with(Progress::Thread, set).unwrap();
        assert_eq!(with_thread(|_| ()).data_progress, FI_PROGRESS_AUTO);
        assert_eq!(with_thread(|info| domain(info).data_progress = FI_PROGRESS_AUTO).data_progress, FI_PROGRESS_AUTO);
        let manual = with_thread(|info| domain(info).data_progress = FI_PROGRESS_MANUAL);
        assert_eq!(manual.data_progress, FI_PROGRESS_MANUAL);

        let on_demand = |set: fn(&mut fi_info)| with(Progress::OnDemand, set).unwrap();
        assert_eq!(on_demand(|_| ()).data_progress, FI_PROGRESS_MANUAL, "a thread costs those who do not ask for it");
        assert_eq!(on_demand(|info| domain(info).data_progress = FI_PROGRESS_AUTO).data_progress, FI_PROGRESS_AUTO);

        let refused = with(Progress::Calls, |info| domain(info).data_progress = FI_PROGRESS_AUTO);
        assert_eq!(refused.unwrap_err(), Progress::NO_THREAD);
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
