//! Environment variables that look like parameters and are none.

use crate::border::bindings::FI_LOG_CORE;
use crate::border::log;
use crate::parameter::launcher::Job;
use crate::parameter::{PREFIX, variables};

/// Parameters of earlier versions, and why they are gone. The next version takes them for misspelt.
const RETIRED: [(&str, &str); 4] = [
    ("FI_TIDEGATE_BULK_ORDER", TURNS),
    ("FI_TIDEGATE_BULK_SENDERS", TURNS),
    ("FI_TIDEGATE_BULK_QUANTUM", TURNS),
    ("FI_TIDEGATE_BULK_STALL", TURNS),
];
const TURNS: &str =
    "receivers take long messages from all their senders at the same time, because no other order was faster";

/// The message about an environment variable that looks like a parameter and is none; `None` if it is a parameter, or
/// was never meant for Tidegate. Such a variable has no effect, so its user should be told.
pub fn misspelling(variable_set: &str) -> Option<String> {
    if let Some((name, why)) = RETIRED.iter().find(|(name, _)| variable_set.eq_ignore_ascii_case(name)) {
        return Some(format!("{name} has no effect any more: {why}; remove it"));
    }
    let start = variable_set.get(..PREFIX.len())?;
    let known: Vec<String> = variables().collect();
    if !start.eq_ignore_ascii_case(PREFIX) || known.iter().any(|name| name == variable_set) {
        return None;
    }
    let likeness = |name: &String| strsim::jaro_winkler(name, &variable_set.to_uppercase());
    let nearest = known.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    Some(format!(
        "{variable_set} is no parameter of Tidegate and has no effect; did you mean {nearest}? `fi_info -g tidegate` lists them"
    ))
}

/// Tells the user of misspelt variables, once per job where the launcher tells ranks.
pub(crate) fn warn_of_misspellings() {
    let is_first = Job::from_environment().rank.is_none_or(|rank| rank == 0);
    for (name, _) in std::env::vars_os() {
        let Some(text) = misspelling(&name.to_string_lossy()) else { continue };
        match is_first {
            true => log::notice(FI_LOG_CORE, &text),
            false => log::warn(FI_LOG_CORE, || text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_named_with_the_nearest_parameter() {
        for (set, meant) in [
            ("FI_TIDEGATE_SLTOS", "FI_TIDEGATE_SLOTS"),
            ("FI_TIDEGATE_SLOT", "FI_TIDEGATE_SLOTS"),
            ("FI_TIDEGATE_RXMEMORY", "FI_TIDEGATE_RX_MEMORY"),
            ("FI_TIDEGATE_EAGER", "FI_TIDEGATE_EAGER_SIZE"),
            ("fi_tidegate_peers", "FI_TIDEGATE_PEERS"),
        ] {
            let said = misspelling(set).unwrap_or_else(|| panic!("{set} passes"));
            assert!(said.starts_with(set) && said.contains(&format!("did you mean {meant}?")), "{said}");
        }
        let said = misspelling("FI_TIDEGATE_BULK_ORDER").expect("it is gone");
        assert!(said.starts_with("FI_TIDEGATE_BULK_ORDER has no effect any more"), "{said}");
        for set in ["FI_TIDEGATE_SLOTS", "FI_PROVIDER", "FI_TCP_IFACE", "TIDEGATE_PROVIDER_DIR", "", "FI_TIDEGATÉ_X"] {
            assert_eq!(misspelling(set), None, "{set}");
        }
    }
}
