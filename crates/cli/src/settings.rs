//! The environment that makes an MPI use Tidegate. Names of one MPI mean nothing to the others, so where the MPI is not
//! known the settings of all of them are made.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tidegate_fi::NetworkChoice;
use tidegate_fi::parameter::variables;

use crate::mpi::{Mpi, MpiKind};

/// The provider's name.
const PROVIDER: &str = "tidegate";
/// The variable that lets Open MPI run as root.
pub const ROOT_PERMISSION: &str = "OMPI_ALLOW_RUN_AS_ROOT";

/// The variable that says where libfabric looks for providers.
pub const PROVIDER_PATH: &str = "FI_PROVIDER_PATH";
/// The variable that says what reaches other hosts.
const FABRIC: &str = "FI_TIDEGATE_FABRIC";
/// The variable that says where processes leave their counters.
pub const STATS_DIR: &str = "FI_TIDEGATE_STATS_DIR";
/// The variable that lists those which Open MPI passes on to ranks on other hosts, with `;` between them.
pub const PASSED_ON: &str = "OMPI_MCA_mca_base_env_list";

/// What a user may say of `--alltoall` beyond its options. Ranks that differ in it leave all calls to the MPI.
const ALLTOALL: [&str; 3] = ["TIDEGATE_ALLTOALL_UNIT", "TIDEGATE_ALLTOALL_WINDOW", "TIDEGATE_ALLTOALL_ROUNDS"];

/// One variable to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: OsString,
    /// Why it is set, one sentence.
    pub why: &'static str,
}

/// What the settings follow from.
pub struct Plan<'a> {
    /// The MPI, if known.
    pub mpi: Option<&'a Mpi>,
    /// The folder that holds the provider.
    pub provider_dir: &'a Path,
    /// The provider's parameters that the user chose.
    pub parameters: &'a [(&'static str, String)],
    /// What carries out collective calls, if the user wants that.
    pub alltoall: &'a [Setting],
    /// Folders with programs of the MPI; its own providers are looked for near them.
    pub near: &'a [PathBuf],
    /// Whether the user is root.
    pub root: bool,
    /// The environment as it is now.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Plan<'_> {
    /// The settings, in the order in which a person would look for them.
    pub fn settings(&self) -> Vec<Setting> {
        let providers = self.providers();
        let why = match providers.len() {
            1 => "libfabric is to offer Tidegate and nothing else.",
            _ => {
                "Tidegate, and what reaches other hosts: the second part of that asks for the first as a program would."
            }
        };
        let mut settings = vec![
            setting("FI_PROVIDER", providers.join(","), why),
            setting(PROVIDER_PATH, self.provider_path(), "Where libfabric finds the provider."),
        ];
        settings
            .extend(self.parameters.iter().map(|(name, value)| setting(name, value, "Chosen on the command line.")));
        for (name, value) in self.network().environment() {
            self.unless_set(
                &mut settings,
                name,
                value,
                "What the network to other hosts needs: fi_tidegate(7), \"Networks\".",
            );
        }
        settings.extend(self.alltoall.iter().cloned());
        if self.may_be(MpiKind::Mpich) {
            mpich(&mut settings);
        }
        if self.may_be(MpiKind::OpenMpi) {
            self.open_mpi(&mut settings);
        }
        if self.may_be(MpiKind::IntelMpi) {
            intel_mpi(&mut settings);
        }
        settings
    }

    /// The network to other hosts that the user has named. One that is none is refused by the provider, with a word.
    fn network(&self) -> NetworkChoice {
        let fabric = given(self.parameters, self.environment, FABRIC).unwrap_or_default();
        fabric.to_string_lossy().parse().unwrap_or_default()
    }

    /// The providers that libfabric is to offer: Tidegate, and the parts of a network in several.
    fn providers(&self) -> Vec<String> {
        let network = self.network();
        [PROVIDER].into_iter().chain(network.parts()).map(str::to_owned).collect()
    }

    fn may_be(&self, kind: MpiKind) -> bool {
        self.mpi.is_none_or(|mpi| mpi.kind == kind)
    }

    fn unless_set(&self, settings: &mut Vec<Setting>, name: &'static str, value: &str, why: &'static str) {
        if (self.environment)(name).is_none() {
            settings.push(setting(name, value, why));
        }
    }

    fn open_mpi(&self, settings: &mut Vec<Setting>) {
        settings.extend([
            setting("OMPI_MCA_pml", "cm", "Messages go to a matching transport, not to Open MPI's own shared memory."),
            setting("OMPI_MCA_mtl", "ofi", "That transport is libfabric."),
            setting(
                "OMPI_MCA_mtl_ofi_provider_include",
                PROVIDER,
                "Open MPI leaves out providers for shared memory by default.",
            ),
        ]);
        self.unless_set(
            settings,
            "OMPI_MCA_osc",
            "^ucx",
            "One-sided communication by UCX could not be used and would complain.",
        );
        let major = self.mpi.and_then(Mpi::major);
        let why = "More ranks than cores may run: Tidegate gives the processor away while it waits.";
        if major.is_none_or(|major| major >= 5) {
            self.unless_set(settings, "PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", why);
        }
        if major.is_none_or(|major| major < 5) {
            self.unless_set(settings, "OMPI_MCA_rmaps_base_oversubscribe", "1", why);
        }
        settings.push(setting(
            PASSED_ON,
            self.passed_on(settings),
            "Open MPI passes no other variables on to other hosts.",
        ));
        if self.root {
            let why = "You are root, in a container most likely, where Open MPI refuses to start otherwise.";
            self.unless_set(settings, ROOT_PERMISSION, "1", why);
            self.unless_set(settings, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", why);
            if major.is_none_or(|major| major >= 5) {
                let why = "The same for its launcher by its own name, `prterun`.";
                self.unless_set(settings, "PRTE_ALLOW_RUN_AS_ROOT", "1", why);
                self.unless_set(settings, "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", why);
            }
        }
    }

    /// The names of the variables that ranks on other hosts need: what the user passes on, ours, and those parameters
    /// that the user has set. Ranks without ours would find another provider, or wait for those that have them.
    fn passed_on(&self, settings: &[Setting]) -> OsString {
        let of_alltoall = ALLTOALL.iter().map(|name| (*name).to_owned());
        let of_user = variables().chain(of_alltoall).filter(|name| (self.environment)(name).is_some());
        let network = self.network();
        let is_of_network = |name: &str| network.environment().iter().any(|(other, _)| *other == name);
        let is_ours = |name: &&str| {
            let is_known = name.starts_with("FI_") || name.starts_with("TIDEGATE_") || *name == "LD_PRELOAD";
            is_known || is_of_network(name)
        };
        let ours = settings.iter().map(|setting| setting.name).filter(is_ours);
        let mut names: Vec<String> = ours.map(str::to_owned).collect();
        names.extend(of_user);
        names.sort();
        names.dedup();
        let had = (self.environment)(PASSED_ON).filter(|had| !had.is_empty());
        let known: Vec<_> = had.iter().flat_map(|had| had.as_bytes().split(|&byte| byte == b';')).collect();
        // In Open MPI's list a name may have a value behind it.
        let is_new =
            |name: &String| !known.iter().any(|had| had.split(|&byte| byte == b'=').next() == Some(name.as_bytes()));
        let more: Vec<_> = names.iter().filter(|name| is_new(name)).map(OsString::from).collect();
        had.iter().cloned().chain(more).collect::<Vec<_>>().join(OsStr::new(";"))
    }

    /// Tidegate's folder first, then what the user had, then Intel MPI's own providers, which a set variable would
    /// hide. Only folders that exist: libfabric stops reading at the first that does not.
    fn provider_path(&self) -> OsString {
        let had = (self.environment)("FI_PROVIDER_PATH").unwrap_or_default();
        let had = had.as_bytes();
        let in_order = had.starts_with(b"@");
        let mut parts: Vec<OsString> = vec![self.provider_dir.into()];
        let had = had[usize::from(in_order)..].split(|&byte| byte == b':').map(OsStr::from_bytes);
        parts.extend(
            had.filter(|part| part.as_bytes().starts_with(b"+") || Path::new(part).is_dir()).map(OsStr::to_owned),
        );
        if self.may_be(MpiKind::IntelMpi) {
            let root = (self.environment)("I_MPI_ROOT").map(PathBuf::from);
            parts.extend(intel_providers(root.as_deref(), self.near).map(PathBuf::into_os_string));
        }
        let mut path = OsString::from(if in_order { "@" } else { "" });
        for (index, part) in parts.iter().enumerate() {
            if !parts[..index].contains(part) {
                path.push(if index == 0 { "" } else { ":" });
                path.push(part);
            }
        }
        path
    }
}

fn mpich(settings: &mut Vec<Setting>) {
    settings.extend([
        setting("MPIR_CVAR_CH4_NETMOD", "ofi", "MPICH is to use libfabric, also where it was built with UCX too."),
        setting("MPIR_CVAR_NOLOCAL", "1", "Ranks of one host would use MPICH's own shared memory otherwise."),
    ]);
}

fn intel_mpi(settings: &mut Vec<Setting>) {
    settings.extend([
        setting("I_MPI_FABRICS", "ofi", "Ranks of one host would use Intel MPI's own shared memory otherwise."),
        setting("I_MPI_OFI_PROVIDER", PROVIDER, "Intel MPI chooses its provider by this variable first."),
        setting("I_MPI_COLL_INTRANODE", "pt2pt", "Collectives of one host would go past the provider otherwise."),
    ]);
}

/// The value of a variable: that of the command line, else that of the environment.
pub fn given(
    parameters: &[(&'static str, String)],
    environment: &dyn Fn(&str) -> Option<OsString>,
    variable: &str,
) -> Option<OsString> {
    let option = parameters.iter().find(|(parameter, _)| *parameter == variable);
    option.map(|(_, value)| value.into()).or_else(|| environment(variable))
}

fn setting(name: &'static str, value: impl Into<OsString>, why: &'static str) -> Setting {
    Setting { name, value: value.into(), why }
}

/// The first folder with Intel MPI's own providers, under its root or beside its programs.
fn intel_providers(root: Option<&Path>, near: &[PathBuf]) -> Option<PathBuf> {
    let prefixes = root.into_iter().chain(near.iter().filter_map(|folder| folder.parent()));
    let folders = prefixes
        .flat_map(|prefix| ["opt/mpi/libfabric/lib/prov", "libfabric/lib/prov", "lib"].map(|below| prefix.join(below)));
    // Only Intel MPI has a provider of this name (for Mellanox), so a folder that holds it is Intel MPI's.
    folders.into_iter().find(|folder| folder.join("libmlx-fi.so").exists())
}

/// The names of `settings` that words of `command` set to something of their own, as in `-genv FI_PROVIDER tcp`,
/// `--mca pml ob1`, `env FI_PROVIDER=tcp`. Tidegate's own parameters are not among them: they do not lead past it.
pub fn overridden(command: &[OsString], settings: &[Setting]) -> Vec<&'static str> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let word = |index: usize| words.get(index).map(|word| word.as_ref());
    let sets = |setting: &Setting| {
        let Setting { name, value, .. } = setting;
        (0..words.len()).any(|index| {
            let option = index.checked_sub(1).and_then(word).and_then(|before| before.strip_prefix('-'));
            let given = match option.map(|option| option.trim_start_matches('-')) {
                Some("genv" | "env") if word(index) == Some(name) => word(index + 1),
                Some("mca" | "gmca") if name.strip_prefix("OMPI_MCA_") == word(index) => word(index + 1),
                _ => words[index].strip_prefix(name).and_then(|rest| rest.strip_prefix('=')),
            };
            given.is_some_and(|given| given != value.to_string_lossy())
        })
    };
    let leads_past = |setting: &&Setting| !setting.name.starts_with("FI_TIDEGATE_") && sets(setting);
    settings.iter().filter(leads_past).map(|setting| setting.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn mpi(kind: MpiKind, version: &str) -> Mpi {
        Mpi { kind, version: Some(version.into()), device: None }
    }

    fn lines(plan: &Plan) -> String {
        let lines = plan.settings().into_iter().map(|s| format!("{}={}\n", s.name, s.value.display()));
        lines.collect::<String>()
    }

    fn plan<'a>(mpi: Option<&'a Mpi>, environment: &'a dyn Fn(&str) -> Option<OsString>) -> Plan<'a> {
        let provider_dir = Path::new("/opt/tidegate/lib");
        Plan { mpi, provider_dir, parameters: &[], alltoall: &[], near: &[], root: false, environment }
    }

    const COMMON: &str = "FI_PROVIDER=tidegate\nFI_PROVIDER_PATH=/opt/tidegate/lib\n";
    const MPICH: &str = "MPIR_CVAR_CH4_NETMOD=ofi\nMPIR_CVAR_NOLOCAL=1\n";
    const OPEN_MPI: &str =
        "OMPI_MCA_pml=cm\nOMPI_MCA_mtl=ofi\nOMPI_MCA_mtl_ofi_provider_include=tidegate\nOMPI_MCA_osc=^ucx\n";
    const PASSED: &str = "OMPI_MCA_mca_base_env_list=FI_PROVIDER;FI_PROVIDER_PATH\n";
    const OVERSUBSCRIBE_5: &str = "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe\n";
    const OVERSUBSCRIBE_4: &str = "OMPI_MCA_rmaps_base_oversubscribe=1\n";
    const INTEL: &str = "I_MPI_FABRICS=ofi\nI_MPI_OFI_PROVIDER=tidegate\nI_MPI_COLL_INTRANODE=pt2pt\n";

    fn empty(_: &str) -> Option<OsString> {
        None
    }

    #[test]
    fn each_mpi_gets_its_own_settings() {
        for (mpi, expected) in [
            (mpi(MpiKind::Mpich, "5.0.2"), [COMMON, MPICH].concat()),
            (mpi(MpiKind::OpenMpi, "5.0.11"), [COMMON, OPEN_MPI, OVERSUBSCRIBE_5, PASSED].concat()),
            (mpi(MpiKind::OpenMpi, "4.1.4"), [COMMON, OPEN_MPI, OVERSUBSCRIBE_4, PASSED].concat()),
            (mpi(MpiKind::IntelMpi, "2021.18"), [COMMON, INTEL].concat()),
        ] {
            assert_eq!(lines(&plan(Some(&mpi), &empty)), expected, "{}", mpi.title());
        }
    }

    #[test]
    fn an_unknown_mpi_gets_the_settings_of_all() {
        let expected = [COMMON, MPICH, OPEN_MPI, OVERSUBSCRIBE_5, OVERSUBSCRIBE_4, PASSED, INTEL].concat();
        assert_eq!(lines(&plan(None, &empty)), expected);
    }

    #[test]
    fn a_network_in_two_parts_is_offered_too() {
        let mpich = mpi(MpiKind::Mpich, "5");
        let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        for (fabric, expected) in [
            ("verbs;ofi_rxm", "tidegate,verbs,ofi_rxm"),
            (" tcp;ofi_rxm/eth0", "tidegate,tcp,ofi_rxm"),
            ("tcp;", "tidegate,tcp"),
            ("tcp/eth0", "tidegate"),
            ("auto", "tidegate"),
        ] {
            let expected = format!("FI_PROVIDER={expected}");
            let environment = |name: &str| (name == FABRIC).then(|| OsString::from(fabric));
            let text = lines(&plan(Some(&mpich), &environment));
            assert_eq!(first_line(&text), expected);
            let parameters = [(FABRIC, fabric.to_owned())];
            let environment = |name: &str| (name == FABRIC).then(|| OsString::from("udp;ofi_rxd"));
            let text = lines(&Plan { parameters: &parameters, ..plan(Some(&mpich), &environment) });
            assert_eq!(first_line(&text), expected, "the command line counts more");
        }
    }

    #[test]
    fn a_network_gets_the_variables_that_it_needs_unless_the_user_has_set_them() {
        let open_mpi = mpi(MpiKind::OpenMpi, "5.0.11");
        let parameters = [(FABRIC, "psm3".to_owned())];
        let text = lines(&Plan { parameters: &parameters, ..plan(Some(&open_mpi), &empty) });
        assert!(text.contains("\nPSM3_CONNECT_TIMEOUT=60\n"), "{text}");
        assert!(text.contains("FI_TIDEGATE_FABRIC;PSM3_CONNECT_TIMEOUT\n"), "it reaches other hosts: {text}");
        let environment = |name: &str| (name == "PSM3_CONNECT_TIMEOUT").then(|| OsString::from("7"));
        let text = lines(&Plan { parameters: &parameters, ..plan(Some(&open_mpi), &environment) });
        assert!(!text.contains("PSM3_CONNECT_TIMEOUT=60"), "{text}");
        let tcp = [(FABRIC, "tcp/eth0".to_owned())];
        assert!(!lines(&Plan { parameters: &tcp, ..plan(Some(&open_mpi), &empty) }).contains("PSM3"));
    }

    #[test]
    fn parameters_of_the_command_line_are_passed_on() {
        let mpich = mpi(MpiKind::Mpich, "5");
        let parameters = [("FI_TIDEGATE_SCHEME", "static".to_owned()), ("FI_TIDEGATE_SLOTS", "16".to_owned())];
        let text = lines(&Plan { parameters: &parameters, ..plan(Some(&mpich), &empty) });
        assert!(text.contains("\nFI_TIDEGATE_SCHEME=static\nFI_TIDEGATE_SLOTS=16\n"), "{text}");
    }

    #[test]
    fn open_mpi_passes_our_variables_on_to_other_hosts() {
        let open_mpi = mpi(MpiKind::OpenMpi, "5.0.11");
        let parameters = [("FI_TIDEGATE_SCHEME", "static".to_owned())];
        let environment = |name: &str| (name == "FI_TIDEGATE_SPIN").then(|| OsString::from("3"));
        let text = lines(&Plan { parameters: &parameters, ..plan(Some(&open_mpi), &environment) });
        let list = "FI_PROVIDER;FI_PROVIDER_PATH;FI_TIDEGATE_SCHEME;FI_TIDEGATE_SPIN";
        assert!(text.contains(&format!("OMPI_MCA_mca_base_env_list={list}\n")), "{text}");
        let alltoall = [setting("LD_PRELOAD", "/x.so", ""), setting("TIDEGATE_ALLTOALL", "tokens", "")];
        let text = lines(&Plan { alltoall: &alltoall, ..plan(Some(&open_mpi), &empty) });
        assert!(text.contains("\nLD_PRELOAD=/x.so\nTIDEGATE_ALLTOALL=tokens\n"), "{text}");
        assert!(text.contains("FI_PROVIDER;FI_PROVIDER_PATH;LD_PRELOAD;TIDEGATE_ALLTOALL\n"), "{text}");
        let environment = |name: &str| match name {
            PASSED_ON => Some(OsString::from("MINE;FI_PROVIDER=x")),
            "TIDEGATE_ALLTOALL_UNIT" => Some(OsString::from("8k")),
            _ => None,
        };
        let text = lines(&Plan { alltoall: &alltoall, ..plan(Some(&open_mpi), &environment) });
        let list = "MINE;FI_PROVIDER=x;FI_PROVIDER_PATH;LD_PRELOAD;TIDEGATE_ALLTOALL;TIDEGATE_ALLTOALL_UNIT";
        assert!(text.contains(&format!("OMPI_MCA_mca_base_env_list={list}\n")), "the user's own stays: {text}");
    }

    #[test]
    fn root_may_use_open_mpi() {
        let open_mpi = mpi(MpiKind::OpenMpi, "5.0.11");
        let text = lines(&Plan { root: true, ..plan(Some(&open_mpi), &empty) });
        let permitted = "OMPI_ALLOW_RUN_AS_ROOT=1\nOMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
        let launcher = "PRTE_ALLOW_RUN_AS_ROOT=1\nPRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
        assert!(text.ends_with(&[permitted, launcher].concat()), "{text}");
        let older = mpi(MpiKind::OpenMpi, "4.1.4");
        let text = lines(&Plan { root: true, ..plan(Some(&older), &empty) });
        assert!(text.ends_with(permitted), "it has no `prterun`: {text}");
    }

    #[test]
    fn what_only_helps_gives_way_to_the_users_own_choice() {
        let open_mpi = mpi(MpiKind::OpenMpi, "5.0.11");
        let mine = ["PRTE_MCA_rmaps_default_mapping_policy", "OMPI_ALLOW_RUN_AS_ROOT", "FI_PROVIDER", "OMPI_MCA_pml"];
        let environment = |name: &str| mine.contains(&name).then(|| OsString::from("mine"));
        let text = lines(&Plan { root: true, ..plan(Some(&open_mpi), &environment) });
        let expected = "FI_PROVIDER=tidegate\nFI_PROVIDER_PATH=/opt/tidegate/lib\n";
        let rest = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\nPRTE_ALLOW_RUN_AS_ROOT=1\nPRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
        assert_eq!(text, [expected, OPEN_MPI, PASSED, rest].concat());
    }

    #[test]
    fn the_provider_path_keeps_what_was_there_and_exists() {
        let root = tempfile::tempdir().unwrap();
        let there = root.path().display();
        for (had, expected) in [
            (format!("{there}"), format!("/opt/tidegate/lib:{there}")),
            (format!("/missing:{there}:/opt/tidegate/lib:"), format!("/opt/tidegate/lib:{there}")),
            (format!("@{there}:+/x/liba-fi.so"), format!("@/opt/tidegate/lib:{there}:+/x/liba-fi.so")),
            (String::new(), "/opt/tidegate/lib".to_owned()),
        ] {
            let environment = |name: &str| (name == "FI_PROVIDER_PATH").then(|| OsString::from(&had));
            assert_eq!(plan(None, &environment).provider_path(), OsString::from(expected), "had {had}");
        }
    }

    #[test]
    fn intel_mpi_keeps_its_own_providers() {
        let root = tempfile::tempdir().unwrap();
        let intel = mpi(MpiKind::IntelMpi, "2021.18");
        for below in ["lib", "libfabric/lib/prov", "opt/mpi/libfabric/lib/prov"] {
            let folder = root.path().join(below);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("libmlx-fi.so"), "").unwrap();
            let expected = OsString::from(format!("/opt/tidegate/lib:{}", folder.display()));
            let near = [root.path().join("bin")];
            assert_eq!(Plan { near: &near, ..plan(Some(&intel), &empty) }.provider_path(), expected);
            let environment = |name: &str| (name == "I_MPI_ROOT").then(|| root.path().into());
            assert_eq!(plan(Some(&intel), &environment).provider_path(), expected);
        }
    }

    #[test]
    fn overrides_on_the_command_line_are_seen() {
        let settings = plan(None, &empty).settings();
        for (command, expected) in [
            ("mpiexec -n 2 x FI_PROVIDER", &[][..]),
            ("mpiexec -genv FI_PROVIDER tcp -n 2 x", &["FI_PROVIDER"]),
            ("env FI_PROVIDER=tcp mpiexec x", &["FI_PROVIDER"]),
            ("mpirun --mca pml ob1 --mca btl self x", &["OMPI_MCA_pml"]),
            ("mpirun -x FI_PROVIDER=tcp x", &["FI_PROVIDER"]),
            ("mpirun --mca pml cm -x FI_PROVIDER=tidegate x", &[]),
            ("mpirun -n 2 x pml ob1", &[]),
        ] {
            let words: Vec<_> = command.split(' ').map(OsString::from).collect();
            assert_eq!(overridden(&words, &settings), expected, "{command}");
        }
    }
}
