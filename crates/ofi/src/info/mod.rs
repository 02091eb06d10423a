//! `fi_getinfo`: what Tidegate offers, and whether that is what the application asks for.
//!
//! There is one offer: reliable datagram endpoints within one host. Hints either fit into it or do not. Where they name
//! a choice that costs nothing to grant (threading, table or map of addresses, progress of control operations, a class
//! of traffic, datagrams that might get lost), the answer repeats the choice. Hints that do not fit are refused here
//! and not later.
//!
//! Node and service name either the application's own end or the other end. All names and addresses of this host mean
//! the same; an endpoint is found by its service alone (see `name`). Other hosts are refused. `src_addr` names the
//! service by which an endpoint is to be found, or the empty service: an endpoint's own address is only known once it
//! is open (fi_getname).

mod attributes;
mod hints;
mod matching;

use crate::addressing::name::Name;
use crate::addressing::place::{Mismatch, Place, text};
use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, Result};
use crate::border::guard::guarded;
use crate::border::loader::{self, Loader};
use crate::parameter::Progress;
use crate::{border::log, lower, parameter, parameter::misspelling};
use attributes::{Answer, Ends};
pub use attributes::{RECEIVE_FLAGS, SEND_FLAGS};
use core::ffi::{c_char, c_int};
use hints::Hints;

/// The flag by which libfabric's own layers look for a provider to stand on. It is no part of the interface, but the
/// same in all versions. One of these layers (rxd) would make reliable endpoints of our datagrams, and would appear
/// beside our own reliable endpoints as a second provider of the name "tidegate".
const FOR_ANOTHER_LAYER: u64 = 1 << 59;

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
        let loader = loader::get().filter(|_| !lower::is_asking()).ok_or(Errno(FI_ENODATA))?;
        // SAFETY: libfabric passes hints that are null or valid for this call, and a place for the answer.
        let (hints, list) = unsafe { (hints.as_ref().map(Hints), list.as_mut().ok_or(INVALID)?) };
        let mut place = Place { node: text(node), service: text(service), numeric: flags & FI_NUMERICHOST != 0 };
        // An application that only asks what the provider has may name any place and give any hints.
        let hints = hints.filter(|_| flags & FI_PROV_ATTR_ONLY == 0);
        if flags & FI_PROV_ATTR_ONLY != 0 {
            place = Place::default();
        } else if flags & FI_SOURCE != 0 && place.is_nowhere() {
            return Err(INVALID);
        }
        let refuse = |mismatch: Mismatch| {
            // What the user has forbidden is nothing that another provider has to offer.
            if mismatch == Progress::NO_THREAD && is_wanted(hints.as_ref()) {
                log::trouble(FI_LOG_CORE, &mismatch);
            }
            log::info(FI_LOG_CORE, || format!("not for this application: {mismatch}"));
            Errno(FI_ENODATA)
        };
        let answer = Answer::to(api, hints.as_ref(), parameter::progress(loader)).map_err(refuse)?;
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

impl Ends {
    /// The two ends, from the place that was named and from hints. With `is_source` (`FI_SOURCE`) the place is the
    /// application's own end, otherwise the other end.
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

/// Reads the user's parameters. A wrong one stops an application that asks for Tidegate by name, with a line that says
/// what is wrong. Other applications may be looking for another provider. They only get a line in the log, and
/// `fi_domain` refuses them if they choose Tidegate.
fn check_parameters(loader: &Loader, hints: Option<&Hints>) -> Result<()> {
    let is_wanted = is_wanted(hints);
    if is_wanted {
        misspelling::warn_of_misspellings();
    }
    let settings = parameter::read(loader);
    if is_wanted && let Ok(settings) = &settings {
        misspelling::warn_of_idle(settings);
    }
    let wrong = settings.err().or_else(|| missing_library(std::env::var_os("TIDEGATE_ALLTOALL")));
    let Some(text) = wrong else { return Ok(()) };
    if is_wanted {
        log::trouble(FI_LOG_CORE, &text);
        return Err(INVALID);
    }
    log::warn(FI_LOG_CORE, || text);
    Ok(())
}

/// Whether the user or the application asks for Tidegate by name.
fn is_wanted(hints: Option<&Hints>) -> bool {
    let named = |list: &str| !list.starts_with('^') && list.split([',', ';']).any(|name| name == "tidegate");
    let by_user = std::env::var("FI_PROVIDER").is_ok_and(|list| named(&list));
    by_user || hints.and_then(Hints::provider).is_some_and(|name| named(&name.to_string_lossy()))
}

/// What is wrong where `tidegate run --alltoall` was asked for and its library did not get into this process. The ranks
/// that have it would wait for this one: better none of them starts.
fn missing_library(asked_for: Option<std::ffi::OsString>) -> Option<String> {
    let technique = asked_for.filter(|technique| !technique.is_empty() && !loader::has_preloaded_library())?;
    Some(format!(
        "TIDEGATE_ALLTOALL={} is set and the library for it is not in this process: LD_PRELOAD={} must name a file that \
         this host has, and the program must load its MPI as a shared library; else run without --alltoall",
        technique.display(),
        std::env::var_os("LD_PRELOAD").unwrap_or_default().display()
    ))
}

#[cfg(test)]
mod library_tests {
    use super::missing_library;

    #[test]
    fn a_process_without_the_library_is_told_where_it_should_have_come_from() {
        assert_eq!(missing_library(None), None);
        assert_eq!(missing_library(Some("".into())), None);
        assert!(missing_library(Some("tokens".into())).unwrap().contains("LD_PRELOAD="));
    }
}
