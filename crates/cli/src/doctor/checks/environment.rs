//! Parameters, and variables that get in the way.

use crate::doctor::facts::Facts;
use crate::doctor::verdict::{Verdict, no, ok, warn};
use crate::shared_memory::NOLOCAL;

/// Parameters that are refused, and variables that were meant as such.
pub fn settings(facts: &Facts) -> Vec<Verdict> {
    let refused = facts.refused.iter().map(|text| no("settings", text, None));
    let misspelt = facts.misspelt.iter().map(|text| warn("settings", text, None));
    let said: Vec<Verdict> = refused.chain(misspelt).collect();
    if said.is_empty() { vec![ok("settings", "all parameters (FI_TIDEGATE_*) are accepted")] } else { said }
}

/// Variables of libfabric and MPIs.
pub fn variables(facts: &Facts) -> Vec<Verdict> {
    let found = &facts.variables;
    let overridden = found.overridden.iter().map(|name| overridden(name));
    let kept = found.kept.iter().filter_map(|(name, value)| kept(name, value));
    let replaced = found.replaced.iter().map(|(name, had, set)| {
        let text = format!("{name}={had} is set: `tidegate run` makes it {set}; jobs without it go another way");
        warn("environment", text, format!("unset {name}"))
    });
    let said: Vec<Verdict> = overridden.chain(kept).chain(replaced).collect();
    if said.is_empty() { vec![ok("environment", "no variable leads past Tidegate")] } else { said }
}

fn overridden(name: &str) -> Verdict {
    if name == NOLOCAL {
        return warn(
            "environment",
            format!("the command sets {name}: within a host MPICH carries messages itself"),
            None,
        );
    }
    let text = format!("the command itself sets {name}, which leads past Tidegate: leave it out");
    no("environment", text, format!("tidegate env --explain mpiexec | grep -B1 {name}"))
}

/// A variable that `tidegate run` leaves as it is.
fn kept(name: &str, value: &str) -> Option<Verdict> {
    let names = |words: &[&str]| words.iter().any(|word| value.split([',', ';']).any(|part| part.trim() == *word));
    let is_on = || !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "no" | "off" | "false" | "disable");
    let past = |what: &str| Some(warn("environment", format!("{name}={value}: {what}"), format!("unset {name}")));
    match name {
        "MPIR_CVAR_OFI_USE_PROVIDER" if value != "tidegate" => {
            let text = format!("{name}={value}: MPICH takes this provider and no other");
            Some(no("environment", text, format!("unset {name}")))
        }
        "OMPI_MCA_osc" if !value.starts_with('^') && names(&["ucx", "rdma", "sm"]) => {
            past("one-sided communication goes past Tidegate")
        }
        "OMPI_MCA_coll" if !value.starts_with('^') && names(&["hcoll", "ucc", "sm", "xhc", "han"]) => {
            past("collective calls may go past Tidegate")
        }
        "OMPI_MCA_coll_hcoll_enable" | "OMPI_MCA_coll_ucc_enable" | "I_MPI_COLL_EXTERNAL" if is_on() => {
            past("collective calls may go past Tidegate")
        }
        "FI_TCP_IFACE" => past("libfabric's tcp is left this interface and no other"),
        "LD_PRELOAD" if value.contains("libfabric") || value.contains("libmpi") => {
            past("another library may come before the MPI's")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;

    #[test]
    fn refused_parameters_stop_a_job_and_misspelt_ones_do_not() {
        let facts = Facts { refused: Some("FI_TIDEGATE_SLOTS=1 is too few".into()), ..healthy() };
        assert_eq!(one(&settings(&facts)).0, Level::No);
        let facts = Facts { misspelt: vec!["FI_TIDEGATE_SLTOS is no parameter".into()], ..healthy() };
        assert_eq!(one(&settings(&facts)).0, Level::Warn);
    }

    fn with_kept(name: &str, value: &str) -> (Level, Option<String>) {
        let mut facts = healthy();
        facts.variables.kept = vec![(name.into(), value.into())];
        let (level, _, remedy) = one(&variables(&facts));
        (level, remedy)
    }

    #[test]
    fn variables_that_lead_past_are_named_with_what_unsets_them() {
        for (name, value, level) in [
            ("MPIR_CVAR_OFI_USE_PROVIDER", "verbs", Level::No),
            ("MPIR_CVAR_OFI_USE_PROVIDER", "tidegate", Level::Ok),
            ("OMPI_MCA_osc", "ucx", Level::Warn),
            ("OMPI_MCA_osc", "^ucx", Level::Ok),
            ("OMPI_MCA_coll", "basic,hcoll", Level::Warn),
            ("OMPI_MCA_coll", "^hcoll", Level::Ok),
            ("OMPI_MCA_coll_hcoll_enable", "1", Level::Warn),
            ("OMPI_MCA_coll_hcoll_enable", "0", Level::Ok),
            ("I_MPI_COLL_EXTERNAL", "hcoll", Level::Warn),
            ("FI_TCP_IFACE", "lo", Level::Warn),
            ("LD_PRELOAD", "/x/libfabric.so", Level::Warn),
            ("LD_PRELOAD", "/x/libjemalloc.so", Level::Ok),
        ] {
            let remedy = (level != Level::Ok).then(|| format!("unset {name}"));
            assert_eq!(with_kept(name, value), (level, remedy), "{name}={value}");
        }
    }

    #[test]
    fn a_variable_that_a_run_replaces_is_a_warning_and_one_of_the_command_stops_it() {
        let mut facts = healthy();
        facts.variables.replaced = vec![("FI_PROVIDER".into(), "verbs".into(), "tidegate".into())];
        let (level, text, remedy) = one(&variables(&facts));
        assert!(level == Level::Warn && text.starts_with("FI_PROVIDER=verbs is set: `tidegate run` makes it tidegate"));
        assert_eq!(remedy.as_deref(), Some("unset FI_PROVIDER"));
        let mut facts = healthy();
        facts.variables.overridden = vec!["OMPI_MCA_pml".into()];
        assert_eq!(one(&variables(&facts)).0, Level::No);
        facts.variables.overridden = vec![NOLOCAL.into()];
        assert_eq!(one(&variables(&facts)).0, Level::Warn);
    }
}
