//! The bindings are checked in: a C program tells sizes, offsets and values as the installed headers have them, and
//! they must be the same here. Structs of newer headers may be longer: they grow at the end.

use crate::toolbox::{Folder, have_libfabric};
use std::collections::BTreeMap;
use std::fs;
use std::mem::offset_of;
use std::process::Command;
use tidegate_fi::border::bindings::*;

/// C expressions, and their values here.
type Facts = Vec<(String, u64)>;

macro_rules! fields {
    ($facts:ident; $($kind:literal $name:ident { $($field:ident $(as $ours:ident)?),* })*) => {$(
        $($facts.push((
            format!("offsetof({}{}, {})", $kind, stringify!($name), stringify!($field)),
            fields!(@offset $name, $field $(, $ours)?),
        ));)*
    )*};
    (@offset $name:ident, $field:ident) => { offset_of!($name, $field) as u64 };
    (@offset $name:ident, $field:ident, $ours:ident) => { offset_of!($name, $ours) as u64 };
}

macro_rules! sizes {
    ($facts:ident; $($name:ident),*) => {
        $($facts.push((format!("sizeof(struct {})", stringify!($name)), size_of::<$name>() as u64));)*
    };
}

macro_rules! values {
    ($facts:ident; $($name:ident),*) => {
        $($facts.push((format!("(uint64_t)({})", stringify!($name)), $name as u64));)*
    };
}

/// Where fields lie that this crate reads or writes.
fn offsets() -> Facts {
    let mut facts = Facts::new();
    fields! { facts;
        "struct " fi_info {
            next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle, tx_attr, rx_attr, ep_attr,
            domain_attr, fabric_attr, nic
        }
        "struct " fi_tx_attr {
            caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit, rma_iov_limit, tclass
        }
        "struct " fi_rx_attr { caps, mode, op_flags, msg_order, comp_order, total_buffered_recv, size, iov_limit }
        "struct " fi_ep_attr {
            type as type_, protocol, protocol_version, max_msg_size, msg_prefix_size, max_order_raw_size, max_order_war_size,
            max_order_waw_size, mem_tag_format, tx_ctx_cnt, rx_ctx_cnt, auth_key_size, auth_key
        }
        "struct " fi_domain_attr {
            domain, name, threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode, mr_key_size,
            cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx,
            max_ep_srx_ctx, cntr_cnt, mr_iov_limit, caps, mode, auth_key, auth_key_size, max_err_data, mr_cnt, tclass
        }
        "struct " fi_fabric_attr { fabric, name, prov_name, prov_version, api_version }
        "struct " fi_provider { version, fi_version, context, name, getinfo, fabric, cleanup }
        "struct " fid { fclass, context, ops }
        "struct " fid_fabric { fid, ops, api_version }
        "struct " fid_domain { fid, ops, mr }
        "struct " fid_ep { fid, ops, cm, msg, rma, tagged, atomic, collective }
        "struct " fid_av { fid, ops }
        "struct " fid_cq { fid, ops }
        "struct " fid_cntr { fid, ops }
        "struct " fid_eq { fid, ops }
        "struct " fid_mr { fid, mem_desc, key }
        "struct " fi_av_attr { type as type_, rx_ctx_bits, count, ep_per_node, name, map_addr, flags }
        "struct " fi_cq_attr { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set }
        "struct " fi_cntr_attr { events, wait_obj, wait_set, flags }
        "struct " fi_eq_attr { size, flags, wait_obj, signaling_vector, wait_set }
        "struct " fi_mr_attr { mr_iov, iov_count, access, offset, requested_key, context }
        "struct " fi_cq_tagged_entry { op_context, flags, len, buf, data, tag }
        "struct " fi_cq_err_entry {
            op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data, err_data_size
        }
        "struct " fi_msg { msg_iov, desc, iov_count, addr, context, data }
        "struct " fi_msg_tagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data }
        "struct " fi_msg_rma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data }
        "struct " fi_msg_atomic {
            msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, datatype, op, context, data
        }
        "struct " fi_ops { size, close, bind, control, ops_open, tostr, ops_set }
        "struct " fi_ops_fabric { size, domain, passive_ep, eq_open, wait_open, trywait, domain2 }
        "struct " fi_ops_domain {
            size, av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx, query_atomic,
            query_collective, endpoint2
        }
        "struct " fi_ops_mr { size, reg, regv, regattr }
        "struct " fi_ops_ep { size, cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left }
        "struct " fi_ops_cm { size, setname, getname, getpeer, connect, listen, accept, reject, shutdown, join }
        "struct " fi_ops_av { size, insert, insertsvc, insertsym, remove, lookup, straddr, av_set }
        "struct " fi_ops_cq { size, read, readfrom, readerr, sread, sreadfrom, signal, strerror }
        "struct " fi_ops_cntr { size, read, readerr, add, set, wait, adderr, seterr }
        "struct " fi_ops_eq { size, read, readerr, write, sread, strerror }
        "struct " fi_ops_msg { size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata }
        "struct " fi_ops_tagged { size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata }
        "struct " fi_ops_rma { size, read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata }
        "struct " fi_ops_atomic {
            size, write, writev, writemsg, inject, readwrite, readwritev, readwritemsg, compwrite, compwritev, compwritemsg,
            writevalid, readwritevalid, compwritevalid
        }
    }
    facts
}

/// Structs that are passed in arrays, so newer headers must have the same size.
fn exact_sizes() -> Facts {
    let mut facts = Facts::new();
    sizes!(facts; iovec, fi_ioc, fi_rma_iov, fi_rma_ioc, fi_cq_entry, fi_cq_msg_entry, fi_cq_data_entry, fi_cq_tagged_entry,
        fi_context, fid, fid_ep, fid_cq, fid_mr, fi_atomic_attr);
    facts
}

/// Structs that callers allocate in the size of their version, so newer headers may have larger ones.
fn growing_sizes() -> Facts {
    let mut facts = Facts::new();
    sizes!(facts; fi_info, fi_tx_attr, fi_rx_attr, fi_ep_attr, fi_domain_attr, fi_fabric_attr, fi_cq_err_entry, fi_mr_attr);
    facts
}

fn constants() -> Facts {
    let mut facts = Facts::new();
    values!(facts; FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC, FI_READ, FI_WRITE, FI_RECV, FI_SEND, FI_TRANSMIT, FI_REMOTE_READ,
        FI_REMOTE_WRITE, FI_MULTI_RECV, FI_REMOTE_CQ_DATA, FI_MORE, FI_PEEK, FI_FENCE, FI_COMPLETION, FI_INJECT,
        FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE, FI_COMMIT_COMPLETE, FI_AV_USER_ID,
        FI_HMEM, FI_LOCAL_COMM, FI_REMOTE_COMM, FI_SOURCE, FI_DIRECTED_RECV, FI_CLAIM, FI_DISCARD, FI_SYNC_ERR,
        FI_SELECTIVE_COMPLETION, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC, FI_ORDER_SAS, FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_WAW,
        FI_SHARED_CONTEXT, FI_EP_RDM, FI_FORMAT_UNSPEC, FI_AV_MAP, FI_AV_TABLE, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL,
        FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_ENDPOINT, FI_RM_ENABLED, FI_CLASS_FABRIC, FI_CLASS_DOMAIN, FI_CLASS_EP,
        FI_CLASS_AV, FI_CLASS_MR, FI_CLASS_EQ, FI_CLASS_CQ, FI_CLASS_CNTR, FI_ENABLE, FI_GETWAIT, FI_GETWAITOBJ,
        FI_GETOPSFLAG, FI_SETOPSFLAG, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD,
        FI_WAIT_YIELD, FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED,
        FI_CNTR_EVENTS_COMP, FI_PARAM_STRING, FI_LOG_WARN, FI_LOG_INFO, FI_LOG_DEBUG, FI_LOG_CORE, FI_LOG_EP_DATA, FI_LOG_CQ,
        FI_EAGAIN, FI_EINVAL, FI_EAVAIL, FI_ETRUNC, FI_ECANCELED, FI_ENOMSG, FI_ECONNABORTED, FI_EOTHER, FI_ETOOSMALL,
        FI_ENOKEY, FI_ENOCQ, FI_ENOAV, FI_EBADFLAGS, FI_EOPBADSTATE, FI_UINT128, FI_MSWAP);
    facts
}

/// The value of each of `facts` according to the installed headers.
fn ask_headers(facts: &Facts) -> BTreeMap<String, u64> {
    let folder = Folder::new("bindings");
    let mut source = String::from("#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n");
    for header in
        ["fabric", "fi_atomic", "fi_cm", "fi_domain", "fi_endpoint", "fi_eq", "fi_errno", "fi_rma", "fi_tagged"]
    {
        source += &format!("#include <rdma/{header}.h>\n");
    }
    source += "#include <rdma/providers/fi_log.h>\n#include <rdma/providers/fi_prov.h>\nint main(void) {\n";
    for (expression, _) in facts {
        source += &format!("printf(\"%llu {expression}\\n\", (unsigned long long)({expression}));\n");
    }
    source += "return 0; }\n";
    let (file, binary) = (folder.path().join("facts.c"), folder.path().join("facts"));
    fs::write(&file, source).unwrap();
    let compiled = Command::new("cc").arg("-w").arg("-o").arg(&binary).arg(&file).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let told = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    let lines = told.lines().map(|line| line.split_once(' ').unwrap());
    lines.map(|(value, expression)| (expression.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn layouts_and_values_are_those_of_the_installed_headers() {
    if !have_libfabric() {
        return;
    }
    let exact: Facts = [offsets(), exact_sizes(), constants()].concat();
    let told = ask_headers(&exact);
    for (expression, ours) in &exact {
        assert_eq!(told[expression], *ours, "{expression}");
    }
    let growing = growing_sizes();
    let told = ask_headers(&growing);
    for (expression, ours) in &growing {
        assert!(told[expression] >= *ours, "{expression} is {}, here {ours}", told[expression]);
    }
}
