//! Checks options and environment before anything starts, so that a wrong parameter is one clear error and not one
//! failure of MPI_Init per rank. Parser and texts are the provider's own. The provider checks again, because a launcher
//! can give ranks another environment.

use std::ffi::OsString;
use std::time::Duration;

use tidegate_fi::parameter::launcher::Job;
use tidegate_fi::parameter::misspelling::misspelling;
use tidegate_fi::parameter::{Ports, Settings, variable};
use tidegate_flow::{Config, ConfigError};
use tidegate_link::{NAMES, ShmConfig, ShmLink};
use tidegate_message::{Endpoint, EndpointConfig, EndpointError};

use crate::failure::Failure;
use crate::settings::given;
use crate::tuning::with_options;

/// Fails unless the provider and flow control can work with the parameters of the run (P eq. 2): those in `parameters`,
/// else those in `environment`, else the defaults.
pub fn check(
    parameters: &[(&'static str, String)],
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(), Failure> {
    let value_of = |name: &str| given(parameters, environment, &variable(name));
    // A variable of the environment is named as it is there, all else as the option that would change it.
    let is_option = |name: &str| {
        parameters.iter().any(|(given, _)| *given == name) || environment(name).is_none_or(|value| value.is_empty())
    };
    let refuse = |text: String| Failure::usage(with_options(&text, is_option));
    let mut settings = Settings::parse(value_of).map_err(|refusal| refuse(refusal.to_string()))?;
    let Some(bytes) = settings.receive_memory else { return Ok(()) };
    // Unless the user said how many peers a rank has, only the provider knows. A bound too small for one is so for all.
    let are_known = settings.peers.is_some();
    settings.peers = settings.peers.or(Some(1));
    let for_all =
        |flow: &Config| Endpoint::<ShmLink>::receive_memory_for_all(&of_flow(flow.clone(), bytes)).unwrap_or(0);
    check_receive_memory(settings.flow(1, for_all).0, bytes)
        .map_err(|text| refuse(if are_known { text } else { format!("{text}; each further peer needs more") }))
}

/// Bytes that one rank takes in `/dev/shm` at most, where the job has this number of ranks on one host. `None`: the
/// parameters are refused.
pub fn segment_bytes(
    parameters: &[(&'static str, String)],
    environment: &dyn Fn(&str) -> Option<OsString>,
    ranks: u32,
) -> Option<u64> {
    let mut settings = Settings::parse(|name| given(parameters, environment, &variable(name))).ok()?;
    settings.job = Job { size: Some(ranks), local_size: Some(ranks), ..Job::default() };
    let bound = settings.receive_memory.unwrap_or(0);
    let for_all =
        |flow: &Config| Endpoint::<ShmLink>::receive_memory_for_all(&of_flow(flow.clone(), bound)).unwrap_or(0);
    let flow = settings.flow(0, for_all).0;
    let Settings { bulk, bounce_buffers, send_buffers, .. } = settings;
    ShmConfig { bulk, bounce_buffers, send_buffers, ..ShmConfig::new(flow) }.segment_bytes()
}

/// How many ports the network between hosts may listen at on a host, if the user said.
pub fn ports(parameters: &[(&'static str, String)], environment: &dyn Fn(&str) -> Option<OsString>) -> Option<u32> {
    let settings = Settings::parse(|name| given(parameters, environment, &variable(name))).ok()?;
    settings.ports.map(Ports::count)
}

/// A variable that looks like a parameter of Tidegate and is none.
#[derive(Debug, PartialEq, Eq)]
pub struct Misspelt {
    /// The variable's name.
    pub name: OsString,
    /// What is wrong with it.
    pub text: String,
}

/// Those among the names of the environment's variables, in order of name.
pub fn misspelt(names: impl Iterator<Item = OsString>) -> Vec<Misspelt> {
    let mut found: Vec<Misspelt> = names
        .filter_map(|name| {
            let text = misspelling(&name.to_string_lossy())?;
            Some(Misspelt { name, text })
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// An endpoint with this bound on receive memory, in bytes.
fn of_flow(flow: Config, bytes: usize) -> EndpointConfig {
    EndpointConfig {
        flow,
        eager_bytes: 0,
        operations: 0,
        receive_memory: bytes,
        patience: Duration::ZERO,
        packets_per_progress: 0,
        bulk_bytes_per_progress: 0,
    }
}

/// The least bound on receive memory of an endpoint on one host, in bytes: it has room for the tables of all peers once
/// each has talked.
pub fn least_receive_memory(flow: Config) -> Result<usize, ConfigError> {
    Endpoint::<ShmLink>::least_receive_memory(&of_flow(flow, 0))
}

/// Fails unless a bound on receive memory has room for the part that the configuration fixes.
fn check_receive_memory(flow: Config, bytes: usize) -> Result<(), String> {
    let least = least_receive_memory(flow.clone()).map_err(|error| error.named(&NAMES))?;
    if bytes < least {
        return Err(EndpointError::receive_memory_too_small(&of_flow(flow, bytes), least).named(&NAMES));
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
        let known: &[&'static str] = &[
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
            ("FI_TIDEGATE_SLOTS=3", "", "--slots=3 is too few: with --credit-slots=2"),
            ("FI_TIDEGATE_CREDIT_SLOTS=0", "", "--credit-slots=0"),
            (
                "FI_TIDEGATE_SLOTS=8",
                "FI_TIDEGATE_CREDIT_SLOTS=5",
                "--slots=8 is too few: with FI_TIDEGATE_CREDIT_SLOTS=5",
            ),
            ("FI_TIDEGATE_SLOTS=16000000 FI_TIDEGATE_PEERS=1000", "", "--slots=16000000"),
            ("", "FI_TIDEGATE_SCHEME=fast", "FI_TIDEGATE_SCHEME is \"fast\", but must be one of none, static, dynamic"),
            ("", "FI_TIDEGATE_SLOTS=abc", "FI_TIDEGATE_SLOTS is \"abc\", but must be a number"),
            ("", "FI_TIDEGATE_SPIN=1.5", "FI_TIDEGATE_SPIN is \"1.5\", but must be a number"),
            ("", "FI_TIDEGATE_BULK=pigeon", "FI_TIDEGATE_BULK is \"pigeon\", but must be auto"),
            ("", "FI_TIDEGATE_STATS_DIR=/no/such/folder", "FI_TIDEGATE_STATS_DIR is \"/no/such/folder\""),
            ("FI_TIDEGATE_RX_MEMORY=64k", "FI_TIDEGATE_PEERS=100", "--rx-memory=65536 is too small"),
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
    fn receive_memory_that_is_too_small_for_any_number_of_peers_is_refused() {
        let said = check_text("FI_TIDEGATE_RX_MEMORY=1", "").unwrap_err();
        assert!(said.contains("--rx-memory=1 is too small: with 1 peer") && said.ends_with("needs more"), "{said}");
        // Enough for one peer: whether it is for those that the job has, only the provider knows.
        assert_eq!(check_text("FI_TIDEGATE_RX_MEMORY=256k", ""), Ok(()));
    }

    #[test]
    fn a_rank_of_a_larger_job_takes_more_shared_memory() {
        let of = |parameters: &[_], ranks| segment_bytes(parameters, &|_| None, ranks);
        // On a machine with little memory a rank of a job of 1,000 has no places for newcomers, and so takes less.
        let (few, many) = (of(&[], 2).unwrap(), of(&[], 20_000).unwrap());
        assert!((1 << 20..4 << 20).contains(&few) && many > few, "{few} {many}");
        assert!(of(&[("FI_TIDEGATE_BOUNCE_BUFFERS", "0".to_owned())], 2).unwrap() < few);
        assert_eq!(of(&[("FI_TIDEGATE_SLOTS", "abc".to_owned())], 2), None);
    }

    #[test]
    fn ports_are_counted_where_the_user_has_named_some() {
        assert_eq!(ports(&[("FI_TIDEGATE_PORTS", "5000-5009".to_owned())], &|_| None), Some(10));
        assert_eq!(ports(&[], &|_| None), None);
    }

    #[test]
    fn options_go_before_the_environment() {
        assert_eq!(check_text("FI_TIDEGATE_SLOTS=8", "FI_TIDEGATE_SLOTS=1"), Ok(()));
    }

    #[test]
    fn misspelt_variables_are_found_among_others() {
        let names = ["PATH", "FI_TIDEGATE_SLTOS", "FI_TIDEGATE_SLOTS", "FI_TIDEGATE_BLUK"].map(OsString::from);
        let found = misspelt(names.into_iter());
        let names: Vec<_> = found.iter().map(|misspelt| misspelt.name.to_str().unwrap()).collect();
        assert_eq!(names, ["FI_TIDEGATE_BLUK", "FI_TIDEGATE_SLTOS"]);
        assert!(found[1].text.contains("did you mean FI_TIDEGATE_SLOTS?"), "{}", found[1].text);
    }
}
