//! Variables of the user that bear on a job.

use std::ffi::OsString;

use super::super::facts::Variables;
use crate::settings::{self, PASSED_ON, PROVIDER_PATH, Setting};

/// Variables that `tidegate run` leaves alone and that may lead messages past Tidegate, or to another network.
const KEPT: [&str; 8] = [
    "MPIR_CVAR_OFI_USE_PROVIDER",
    "OMPI_MCA_osc",
    "OMPI_MCA_coll",
    "OMPI_MCA_coll_hcoll_enable",
    "OMPI_MCA_coll_ucc_enable",
    "I_MPI_COLL_EXTERNAL",
    "FI_TCP_IFACE",
    "LD_PRELOAD",
];

/// Those that there are, where `tidegate run` makes these settings.
pub fn gather(command: &[OsString], settings: &[Setting], environment: &dyn Fn(&str) -> Option<OsString>) -> Variables {
    let is_compared = |name: &str| !name.starts_with("FI_TIDEGATE_") && name != PROVIDER_PATH && name != PASSED_ON;
    let replaced = settings.iter().filter(|setting| is_compared(setting.name)).filter_map(|setting| {
        let had = environment(setting.name)?.to_string_lossy().into_owned();
        let set = setting.value.to_string_lossy().into_owned();
        (had != set).then(|| (setting.name.to_owned(), had, set))
    });
    let kept =
        KEPT.iter().filter_map(|name| Some(((*name).to_owned(), environment(name)?.to_string_lossy().into_owned())));
    let overridden = settings::overridden(command, settings).into_iter().map(str::to_owned).collect();
    Variables { replaced: replaced.collect(), overridden, kept: kept.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_run_replaces_are_told_from_those_that_it_keeps() {
        let setting = |name, value: &str| Setting { name, value: value.into(), why: "" };
        let settings =
            [setting("FI_PROVIDER", "tidegate"), setting("MPIR_CVAR_NOLOCAL", "1"), setting(PROVIDER_PATH, "/p")];
        let environment = |name: &str| match name {
            "FI_PROVIDER" => Some("verbs".into()),
            "MPIR_CVAR_NOLOCAL" => Some("1".into()),
            "FI_PROVIDER_PATH" => Some("/mine".into()),
            "OMPI_MCA_osc" => Some("ucx".into()),
            _ => None,
        };
        let command = ["mpiexec", "-genv", "MPIR_CVAR_NOLOCAL", "0"].map(OsString::from);
        let found = gather(&command, &settings, &environment);
        assert_eq!(found.replaced, [("FI_PROVIDER".into(), "verbs".into(), "tidegate".into())]);
        assert_eq!(found.kept, [("OMPI_MCA_osc".into(), "ucx".into())]);
        assert_eq!(found.overridden, ["MPIR_CVAR_NOLOCAL"]);
    }
}
