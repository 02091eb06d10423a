//! Environment variables that have no effect: they look like parameters and are none, or mean nothing to the scheme.

use crate::border::bindings::FI_LOG_CORE;
use crate::border::log;
use crate::parameter::launcher::Job;
use crate::parameter::{PREFIX, Settings, variables};
use tidegate_message::flow::ReceiverResource;

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

/// The message about variables that are set and mean nothing to the scheme: shares of peers to a pool of slots, and the
/// size of a pool to the others.
fn idle(settings: &Settings, is_set: impl Fn(&str) -> bool) -> Option<String> {
    let (names, why) = match settings.scheme.lends() {
        ReceiverResource::PoolSlots => (
            &["FI_TIDEGATE_SLOTS", "FI_TIDEGATE_CREDIT_SLOTS", "FI_TIDEGATE_PIGGYBACK"][..],
            "whose slots belong to no peer; FI_TIDEGATE_POOL_SLOTS says how many they are",
        ),
        _ => (&["FI_TIDEGATE_POOL_SLOTS"][..], "which has no pool of slots; FI_TIDEGATE_SCHEME=speculative has"),
    };
    let set: Vec<&str> = names.iter().copied().filter(|name| is_set(name)).collect();
    let verb = if set.len() == 1 { "has" } else { "have" };
    (!set.is_empty()).then(|| format!("{} {verb} no effect under {}, {why}", set.join(", "), settings.scheme))
}

/// Tells the user of variables that mean nothing to the scheme, once per job where the launcher tells ranks.
pub(crate) fn warn_of_idle(settings: &Settings) {
    tell(idle(settings, |name| std::env::var_os(name).is_some_and(|value| !value.is_empty())));
}

/// Tells the user of misspelt variables, once per job where the launcher tells ranks.
pub(crate) fn warn_of_misspellings() {
    tell(std::env::vars_os().filter_map(|(name, _)| misspelling(&name.to_string_lossy())));
}

fn tell(texts: impl IntoIterator<Item = String>) {
    let is_first = Job::from_environment().rank.is_none_or(|rank| rank == 0);
    for text in texts {
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
    fn a_variable_that_means_nothing_to_the_scheme_is_told() {
        let mut settings = Settings::default();
        let of = |settings: &Settings, set: &[&str]| idle(settings, |name| set.contains(&name));
        assert_eq!(of(&settings, &[]), None);
        assert_eq!(of(&settings, &["FI_TIDEGATE_POOL_SLOTS"]), None);
        assert_eq!(
            of(&settings, &["FI_TIDEGATE_SLOTS", "FI_TIDEGATE_PIGGYBACK"]).unwrap(),
            "FI_TIDEGATE_SLOTS, FI_TIDEGATE_PIGGYBACK have no effect under speculative, whose slots belong to no peer; \
             FI_TIDEGATE_POOL_SLOTS says how many they are"
        );
        settings.scheme = tidegate_message::flow::SchemeName::Dynamic;
        assert_eq!(of(&settings, &["FI_TIDEGATE_SLOTS"]), None);
        let said = of(&settings, &["FI_TIDEGATE_SLOTS", "FI_TIDEGATE_POOL_SLOTS"]).unwrap();
        assert!(said.starts_with("FI_TIDEGATE_POOL_SLOTS has no effect under dynamic, "), "{said}");
    }

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
