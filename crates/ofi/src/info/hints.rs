//! Hints: what an application says of itself when it asks for providers.

use crate::addressing::name::Name;
use crate::addressing::place::{Mismatch, name_at, text};
use crate::border::bindings::*;
use core::ffi::CStr;

/// The hints of one call of `fi_getinfo`.
pub struct Hints<'a>(pub &'a fi_info);

impl Hints<'_> {
    /// The hints for sending.
    pub fn send(&self) -> Option<&fi_tx_attr> {
        // SAFETY: parts of hints are null or valid; this holds for the accessors below as well.
        unsafe { self.0.tx_attr.as_ref() }
    }
    /// The hints for receiving.
    pub fn receive(&self) -> Option<&fi_rx_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.rx_attr.as_ref() }
    }
    /// The hints for endpoints.
    pub fn endpoint(&self) -> Option<&fi_ep_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.ep_attr.as_ref() }
    }
    /// The hints for the domain.
    pub fn domain(&self) -> Option<&fi_domain_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.domain_attr.as_ref() }
    }
    /// The hints for the fabric.
    pub fn fabric(&self) -> Option<&fi_fabric_attr> {
        // SAFETY: see `send`.
        unsafe { self.0.fabric_attr.as_ref() }
    }
    /// The provider that it asks for.
    pub fn provider(&self) -> Option<&CStr> {
        text(self.fabric()?.prov_name)
    }
    /// The name of the application's own end.
    pub fn source(&self) -> core::result::Result<Option<Name>, Mismatch> {
        // SAFETY: an address in hints is null or as long as they say.
        unsafe { name_at(self.0.src_addr, self.0.src_addrlen) }
    }
    /// The name of the other end.
    pub fn destination(&self) -> core::result::Result<Option<Name>, Mismatch> {
        // SAFETY: see `source`.
        unsafe { name_at(self.0.dest_addr, self.0.dest_addrlen) }
    }
}
