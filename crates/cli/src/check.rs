//! Checks the chosen parameters before anything starts, so that a wrong one is one clear error and not one failure of
//! MPI_Init per rank. What the checks let through, the provider checks again.

use std::ffi::OsString;
use std::str::FromStr;

use tidegate_flow::{Config, SchemeName};
use tidegate_link::ShmLink;
use tidegate_message::{Endpoint, EndpointConfig, EndpointError};

use crate::arguments::bytes_of;
use crate::failure::Failure;

/// The provider's defaults.
const SCHEME: SchemeName = SchemeName::Dynamic;
const SLOTS: u32 = 64;
const CREDIT_SLOTS: u32 = 2;

/// Whether flow control can work with `parameters`, else with what `environment` has, else with the defaults (P eq. 2).
/// What cannot be read as a number is left to the provider, which says more about it.
pub fn check(
    parameters: &[(&'static str, String)],
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(), Failure> {
    let text = |name: &str| match parameters.iter().find(|(parameter, _)| *parameter == name) {
        Some((_, value)) => Some(value.clone()),
        None => environment(name)?.into_string().ok().filter(|value| !value.is_empty()),
    };
    let number = |name, default| match text(name) {
        Some(value) => u32::from_str(value.trim()).ok(),
        None => Some(default),
    };
    let scheme = match text("FI_TIDEGATE_SCHEME") {
        Some(name) => {
            SchemeName::from_str(&name.trim().to_lowercase()).map_err(|error| Failure::usage(error.to_string()))?
        }
        None => SCHEME,
    };
    let slots = number("FI_TIDEGATE_SLOTS", SLOTS);
    let credit_slots = number("FI_TIDEGATE_CREDIT_SLOTS", CREDIT_SLOTS);
    let peers = number("FI_TIDEGATE_PEERS", 1);
    let (Some(slots_per_peer), Some(credit_slots), Some(peers)) = (slots, credit_slots, peers) else { return Ok(()) };
    let config = Config { piggyback: true, ..Config::new(scheme, peers, slots_per_peer, credit_slots) };
    config.regions().map_err(|error| Failure::usage(error.to_string()))?;
    let receive_memory = text("FI_TIDEGATE_RX_MEMORY").and_then(|bytes| bytes_of(bytes.trim()));
    match (receive_memory, text("FI_TIDEGATE_PEERS")) {
        (Some(bytes), Some(_)) => check_receive_memory(config, bytes),
        // How many peers there will be, and so what is too small for them, only the provider knows.
        _ => Ok(()),
    }
}

/// Whether a bound on receive memory has room for what configuration fixes.
fn check_receive_memory(flow: Config, bytes: u64) -> Result<(), Failure> {
    let (peers, bytes) = (flow.peers, usize::try_from(bytes).unwrap_or(usize::MAX));
    let config = EndpointConfig {
        flow,
        eager_bytes: 0,
        operations: 0,
        receive_memory: bytes,
        packets_per_progress: 0,
        bulk_bytes_per_progress: 0,
    };
    let least =
        Endpoint::<ShmLink>::least_receive_memory(&config).map_err(|error| Failure::usage(error.to_string()))?;
    if bytes < least {
        return Err(Failure::usage(EndpointError::ReceiveMemoryTooSmall { bytes, least, peers }.to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(parameters: &str, environment: &str) -> Result<(), String> {
        let pairs = |text: &str| -> Vec<(String, String)> {
            text.split_whitespace()
                .map(|pair| pair.split_once('=').unwrap())
                .map(|(n, v)| (n.into(), v.into()))
                .collect()
        };
        let known = [
            "FI_TIDEGATE_SCHEME",
            "FI_TIDEGATE_SLOTS",
            "FI_TIDEGATE_CREDIT_SLOTS",
            "FI_TIDEGATE_PEERS",
            "FI_TIDEGATE_RX_MEMORY",
        ];
        let parameters = pairs(parameters).into_iter();
        let parameters: Vec<_> = parameters.map(|(n, v)| (*known.iter().find(|k| **k == n).unwrap(), v)).collect();
        let environment = pairs(environment);
        let environment = |name: &str| environment.iter().find(|(n, _)| n == name).map(|(_, v)| v.into());
        check(&parameters, &environment).map_err(|failure| {
            assert_eq!(failure.code, crate::failure::USAGE);
            failure.to_string()
        })
    }

    #[test]
    fn what_flow_control_accepts_passes() {
        for parameters in ["", "FI_TIDEGATE_SLOTS=4", "FI_TIDEGATE_SCHEME=none FI_TIDEGATE_CREDIT_SLOTS=0"] {
            assert_eq!(check_text(parameters, ""), Ok(()), "{parameters}");
        }
    }

    #[test]
    fn what_flow_control_refuses_names_the_parameter() {
        for (parameters, environment, named) in [
            ("FI_TIDEGATE_SLOTS=3", "", "FI_TIDEGATE_SLOTS=3"),
            ("FI_TIDEGATE_CREDIT_SLOTS=0", "", "FI_TIDEGATE_CREDIT_SLOTS=0"),
            ("FI_TIDEGATE_SLOTS=8", "FI_TIDEGATE_CREDIT_SLOTS=5", "FI_TIDEGATE_SLOTS=8"),
            ("FI_TIDEGATE_SLOTS=4000000000 FI_TIDEGATE_PEERS=1000", "", "FI_TIDEGATE_SLOTS=4000000000"),
            ("", "FI_TIDEGATE_SCHEME=fast", "FI_TIDEGATE_SCHEME=fast"),
            ("FI_TIDEGATE_RX_MEMORY=64k", "FI_TIDEGATE_PEERS=100", "FI_TIDEGATE_RX_MEMORY=65536 is too small"),
        ] {
            let message = check_text(parameters, environment).unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn the_smallest_receive_memory_that_is_named_passes() {
        let too_small = check_text("FI_TIDEGATE_PEERS=40 FI_TIDEGATE_RX_MEMORY=1", "").unwrap_err();
        let (_, least) = too_small.split_once(" at least ").expect("the smallest legal value is named");
        let least: u64 = least.split(' ').next().unwrap().parse().unwrap();
        let with = |bytes: u64| check_text(&format!("FI_TIDEGATE_PEERS=40 FI_TIDEGATE_RX_MEMORY={bytes}"), "");
        assert!(with(least).is_ok() && with(least - 1).is_err(), "{too_small}");
    }

    #[test]
    fn receive_memory_for_a_number_of_peers_unknown_is_left_to_the_provider() {
        assert_eq!(check_text("FI_TIDEGATE_RX_MEMORY=1", ""), Ok(()));
    }

    #[test]
    fn options_go_before_the_environment() {
        assert_eq!(check_text("FI_TIDEGATE_SLOTS=8", "FI_TIDEGATE_SLOTS=1"), Ok(()));
    }

    #[test]
    fn what_is_no_number_is_left_to_the_provider() {
        assert_eq!(check_text("", "FI_TIDEGATE_SLOTS=many"), Ok(()));
    }
}
