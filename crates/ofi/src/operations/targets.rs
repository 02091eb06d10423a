//! Where operations go: from an `fi_addr_t` to a peer of the message layer. The answer is kept until addresses change.

use crate::addressing::addresses::NO_ADDRESS;
use crate::addressing::name::{Name, SERVICE_TIMEOUT, ServiceWait};
use crate::addressing::reach;
use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result, TRY_AGAIN};
use crate::border::log;
use crate::objects::endpoint::Endpoint;
use crate::threads::domain_lock::Entered;
use std::time::Instant;
use tidegate_link::fabric::Contact;
use tidegate_link::{Address, LinkError, Service};
use tidegate_message::{Source, Target};

impl Endpoint {
    /// The peer to which an `fi_addr_t` leads.
    #[inline]
    pub fn target(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Target> {
        let active = self.state.get(entered).active.as_ref().ok_or(Errno(FI_EOPBADSTATE))?;
        match active.target(address) {
            Some(target) => Ok(target),
            None => self.find_target(address, entered),
        }
    }

    /// From whom a receive accepts messages.
    #[inline]
    pub fn source(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Source> {
        if address == NO_ADDRESS || !self.is_directed() {
            return Ok(Source::Any);
        }
        let active = self.state.get(entered).active.as_ref().ok_or(Errno(FI_EOPBADSTATE))?;
        match active.target(address) {
            Some(target) => Ok(Source::From(target)),
            None => self.find_source_of_receive(address, entered),
        }
    }

    /// Of a departed peer there may be messages left to receive although it has no place any more.
    #[cold]
    fn find_source_of_receive(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Source> {
        let name = self.vector.get().and_then(|vector| vector.name(address, entered));
        let active = self.state.get(entered).active.as_ref().ok_or(Errno(FI_EOPBADSTATE))?;
        if let Some(Name::Endpoint(contact)) = name
            && let Some(record) = reach::record_of(active.engine.link(), &contact.address)
        {
            return Ok(Source::From(Target::Peer(record)));
        }
        self.find_target(address, entered).map(Source::From)
    }

    #[cold]
    fn find_target(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Target> {
        let vector = self.vector.get().ok_or(Errno(FI_ENOAV))?;
        let contact = match vector.name(address, entered).ok_or(INVALID)? {
            Name::Endpoint(contact) => contact,
            // Services are those of this host.
            Name::Service(service) => {
                let address = self.find_service(address, &service, entered)?;
                Contact::found(address)
            }
        };
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        if contact.address == active.own.address {
            active.set_target(address, Target::Myself);
            return Ok(Target::Myself);
        }
        if reach::record_of(active.engine.link(), &contact.address).is_some() {
            log::trouble(FI_LOG_EP_DATA, &LinkError::Gone { peer: contact.address }.to_string());
            return Err(Errno::of_link(&LinkError::Gone { peer: contact.address }));
        }
        match reach::peer(active.engine.link_mut(), &active.own, &contact) {
            Ok(peer) => {
                active.set_target(address, Target::Peer(peer));
                Ok(Target::Peer(peer))
            }
            Err(error) if error.may_be_tried_again() => {
                // The application may do nothing but try again.
                self.progress(entered);
                Err(TRY_AGAIN)
            }
            Err(error) => {
                log::trouble(FI_LOG_EP_DATA, &error.to_string());
                Err(Errno::of_link(&error))
            }
        }
    }

    /// The endpoint that has a service, which was inserted under this index. While no endpoint has it, the operation is
    /// to be tried again, until [`SERVICE_TIMEOUT`] is over.
    fn find_service(&self, index: fi_addr_t, service: &Service, entered: &mut Entered) -> Result<Address> {
        let vector = self.vector.get().ok_or(Errno(FI_ENOAV))?;
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        if let Some(owner) = service.find(active.engine.link().look_at_first().directory()) {
            active.waits.remove(&index);
            active.engine.link().look_at_first().check_settings(&owner).map_err(|error| {
                log::trouble(FI_LOG_AV, &error.to_string());
                Errno::of_link(&error)
            })?;
            vector.note(index, owner, entered);
            // Whoever has the service may have been known by no address until now.
            self.domain.forget_addresses(vector, &[], entered);
            return Ok(owner);
        }
        let now = Instant::now();
        if active.waits.entry(index).or_insert_with(|| ServiceWait::new(now)).is_over(now) {
            let seconds = SERVICE_TIMEOUT.as_secs();
            log::trouble(
                FI_LOG_EP_DATA,
                &format!(
                    "no endpoint of this user has opened {service} on this host for {seconds} seconds; start its \
                     server, which opens by fi_getinfo with FI_SOURCE and the same service"
                ),
            );
            return Err(Errno(FI_ECONNREFUSED));
        }
        self.progress(entered);
        Err(TRY_AGAIN)
    }
}
