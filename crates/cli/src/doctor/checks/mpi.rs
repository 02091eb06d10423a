//! Launcher, program, libfabric and provider.

use crate::doctor::facts::{Facts, Program};
use crate::doctor::verdict::{Verdict, bad, no, ok, warn};
use crate::mpi::MpiKind;
use crate::provider::FILE;

/// The oldest libfabric that loads Tidegate, as its interface is numbered.
const OLDEST: (u32, u32) = (1, 17);
/// The line that brings an MPI with libfabric.
const INSTALL: &str = "pip install mpich";
/// The line where there is no launcher.
const FIND: &str = "module load mpich   # or: tidegate doctor /PATH/TO/mpiexec";

/// The launcher and its MPI.
pub fn mpi(facts: &Facts) -> Vec<Verdict> {
    let found = &facts.mpi;
    if let Some(missing) = &found.missing_launcher {
        return vec![no("mpi", format!("{missing} was not found, or cannot be executed"), FIND.to_owned())];
    }
    let Some(launcher) = &found.launcher else {
        let text = "there is no mpiexec on the PATH, as on many login nodes; the rest was looked at without it";
        return vec![no("mpi", text, FIND.to_owned())];
    };
    let launcher = launcher.display();
    let Some(mpi) = &found.mpi else {
        return vec![if found.is_srun {
            let text = format!("{launcher} starts programs of any MPI: name the program, which tells");
            warn("mpi", text, "tidegate doctor srun ./PROGRAM".to_owned())
        } else {
            let text = format!("the MPI of {launcher} was not recognised, so settings for all MPIs are made");
            warn("mpi", text, "tidegate doctor --mpi mpich mpiexec   # or openmpi, impi".to_owned())
        }];
    };
    let title = mpi.title();
    if mpi.lacks_libfabric() {
        let device = mpi.device.as_deref().unwrap_or_default();
        let text = format!("{title} ({launcher}) was built without libfabric (--with-device={device})");
        return vec![no("mpi", text, INSTALL.to_owned())];
    }
    if found.library.is_none() {
        let text = format!("{title} ({launcher}); its library was not found near it, so no job was tried");
        return vec![warn("mpi", text, "tidegate doctor mpiexec -n 2 ./PROGRAM".to_owned())];
    }
    vec![ok("mpi", format!("{title} ({launcher})"))]
}

/// The program, if the user has named one.
pub fn program(facts: &Facts) -> Vec<Verdict> {
    facts.mpi.program.iter().map(|program| of_program(facts, program)).collect()
}

fn of_program(facts: &Facts, program: &Program) -> Verdict {
    let name = &program.name;
    if program.path.is_none() {
        return no("program", format!("{name} was not found, or cannot be executed"), None);
    }
    if !program.missing.is_empty() {
        let text = format!("{name} needs libraries that are not found: {}", program.missing.join(", "));
        let folder = facts.mpi.library.as_ref().and_then(|library| library.parent());
        let is_mpi = program.missing.iter().any(|library| library.starts_with("libmpi"));
        let remedy = folder
            .filter(|_| is_mpi)
            .map(|folder| format!("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", folder.display()));
        return no("program", text, remedy);
    }
    let Some(library) = &program.library else {
        return ok("program", format!("{name} is a script, or does not say which MPI it uses"));
    };
    let kind = program.kind;
    let launcher = facts.mpi.mpi.as_ref().map(|mpi| mpi.kind).filter(|_| !facts.mpi.is_srun);
    match (kind, launcher) {
        (Some(kind), Some(launcher)) if kind != launcher => {
            let text = format!(
                "{name} uses {} ({}), and the launcher is {}'s",
                kind.name(),
                library.display(),
                launcher.name()
            );
            let prefix = library.parent().and_then(|folder| folder.parent());
            let remedy = prefix.map(|prefix| format!("tidegate doctor {}/bin/mpiexec", prefix.display()));
            // MPICH and Intel MPI have one binary interface, and launchers that speak alike.
            bad([kind, launcher].contains(&MpiKind::OpenMpi), "program", text, remedy)
        }
        _ => ok("program", format!("{name} uses {}", library.display())),
    }
}

/// The libfabric that the MPI loads.
pub fn libfabric(facts: &Facts) -> Vec<Verdict> {
    // That an MPI has none has been said.
    let lacks = facts.mpi.mpi.as_ref().is_some_and(|mpi| mpi.lacks_libfabric());
    let Some(answer) = facts.libfabric.as_ref().filter(|_| !lacks) else { return Vec::new() };
    let title = facts.mpi.mpi.as_ref().map_or_else(|| "the MPI".to_owned(), |mpi| mpi.title());
    vec![match answer {
        Ok(found) if found.version < OLDEST => {
            let (major, minor) = found.version;
            let text =
                format!("{title} loads {major}.{minor} ({}); Tidegate needs 1.17 or later", found.path.display());
            no("libfabric", text, INSTALL.to_owned())
        }
        Ok(found) => ok("libfabric", format!("{}.{} ({})", found.version.0, found.version.1, found.path.display())),
        Err(why) => no("libfabric", format!("{title} seems to have none: {why}"), INSTALL.to_owned()),
    }]
}

/// The provider, and whether that libfabric loads it.
pub fn provider(facts: &Facts) -> Vec<Verdict> {
    let folder = match &facts.provider {
        None => return Vec::new(),
        Some(Err(why)) => {
            let text = why.lines().next().unwrap_or_default();
            return vec![no("provider", text, "export TIDEGATE_PROVIDER_DIR=/PATH/TO/lib/tidegate".to_owned())];
        }
        Some(Ok(folder)) => folder,
    };
    let file = folder.join(FILE);
    let file = file.display();
    // It refuses to be loaded with parameters that it does not accept, which has a line of its own.
    let is_refused = facts.refused.is_some();
    let is_loaded = facts.job.as_ref().is_some_and(|job| job.is_good());
    vec![match &facts.libfabric {
        Some(Ok(found)) if found.has_tidegate || is_loaded => ok("provider", format!("{file} is loaded")),
        Some(Ok(_)) if is_refused => ok("provider", format!("{file} is there")),
        Some(Ok(found)) => {
            let text = format!("{} does not load {file}", found.path.display());
            no(
                "provider",
                text,
                format!("FI_LOG_LEVEL=info FI_PROVIDER=tidegate FI_PROVIDER_PATH={} fi_info", folder.display()),
            )
        }
        _ => ok("provider", format!("{file} is there; no libfabric was found that could load it")),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;
    use crate::mpi::Mpi;

    #[test]
    fn a_login_node_without_mpi_is_told_so() {
        let mut facts = healthy();
        facts.mpi.launcher = None;
        let (level, text, remedy) = one(&mpi(&facts));
        assert!(level == Level::No && text.contains("login nodes") && remedy.unwrap().starts_with("module load"));
        facts.mpi.missing_launcher = Some("/x/mpiexec".into());
        assert!(one(&mpi(&facts)).1.starts_with("/x/mpiexec was not found"));
    }

    #[test]
    fn launchers_without_a_known_mpi_work_with_a_word_of_warning() {
        let mut facts = healthy();
        facts.mpi.mpi = None;
        let (level, text, remedy) = one(&mpi(&facts));
        assert!(level == Level::Warn && text.contains("not recognised") && remedy.unwrap().contains("--mpi"));
        facts.mpi.is_srun = true;
        assert!(one(&mpi(&facts)).2.unwrap().contains("srun ./PROGRAM"));
        let mut facts = healthy();
        facts.mpi.library = None;
        assert!(one(&mpi(&facts)).1.contains("no job was tried"));
    }

    #[test]
    fn an_mpi_without_libfabric_is_refused_once() {
        let mut facts = healthy();
        facts.mpi.mpi = Some(Mpi { device: Some("ch4:ucx".into()), ..Mpi::of(MpiKind::Mpich) });
        facts.libfabric = Some(Err("x is no libfabric".into()));
        let (level, text, remedy) = one(&mpi(&facts));
        assert!(level == Level::No && text.contains("--with-device=ch4:ucx") && remedy.as_deref() == Some(INSTALL));
        assert_eq!(libfabric(&facts), []);
    }

    #[test]
    fn libfabric_has_to_be_there_and_new_enough() {
        let mut facts = healthy();
        assert_eq!(one(&libfabric(&facts)).1, "2.3 (/opt/mpich/lib/libfabric.so.1)");
        if let Some(Ok(found)) = &mut facts.libfabric {
            found.version = (1, 16);
        }
        let (level, text, _) = one(&libfabric(&facts));
        assert!(level == Level::No && text.contains("loads 1.16") && text.contains("1.17"), "{text}");
        facts.libfabric = Some(Err("no transport".into()));
        assert_eq!(one(&libfabric(&facts)).1, "MPICH 5.0.2 seems to have none: no transport");
        facts.libfabric = None;
        assert_eq!(libfabric(&facts), []);
    }

    #[test]
    fn a_provider_is_missing_or_not_loaded() {
        let mut facts = healthy();
        assert_eq!(one(&provider(&facts)).1, "/usr/lib/tidegate/libtidegate-fi.so is loaded");
        if let Some(Ok(found)) = &mut facts.libfabric {
            found.has_tidegate = false;
        }
        let (level, text, remedy) = one(&provider(&facts));
        assert!(level == Level::No && text.contains("does not load") && remedy.unwrap().contains("fi_info"));
        facts.refused = Some("FI_TIDEGATE_SLOTS is \"abc\"".into());
        assert_eq!(one(&provider(&facts)).0, Level::Ok, "that has a line of its own");
        facts.libfabric = None;
        assert!(one(&provider(&facts)).1.contains("no libfabric was found"));
        facts.provider = Some(Err("libtidegate-fi.so was not found.\n  /x".into()));
        let (level, text, remedy) = one(&provider(&facts));
        assert!(
            level == Level::No && text.ends_with("not found.") && remedy.unwrap().contains("TIDEGATE_PROVIDER_DIR")
        );
    }

    fn with_program(program: Program) -> (Level, String, Option<String>) {
        let mut facts = healthy();
        facts.mpi.program = Some(Program { name: "./x".into(), ..program });
        one(&super::program(&facts))
    }

    #[test]
    fn a_program_has_to_be_there_with_all_its_libraries_and_of_the_launchers_mpi() {
        let there = || Program { path: Some("/x".into()), ..Program::default() };
        assert_eq!(with_program(Program::default()).0, Level::No);
        assert_eq!(with_program(there()).0, Level::Ok, "a script");
        let (level, _, remedy) = with_program(Program { missing: vec!["libmpi.so.12".into()], ..there() });
        assert_eq!(
            (level, remedy.as_deref()),
            (Level::No, Some("export LD_LIBRARY_PATH=/opt/mpich/lib:$LD_LIBRARY_PATH"))
        );
        assert_eq!(with_program(Program { missing: vec!["libx.so".into()], ..there() }).2, None);
        let of = |kind| with_program(Program { library: Some("/o/lib/libmpi.so".into()), kind: Some(kind), ..there() });
        assert_eq!((of(MpiKind::Mpich).0, of(MpiKind::IntelMpi).0), (Level::Ok, Level::Warn));
        let (level, text, remedy) = of(MpiKind::OpenMpi);
        assert!(
            level == Level::No && text.contains("uses Open MPI") && text.ends_with("launcher is MPICH's"),
            "{text}"
        );
        assert_eq!(remedy.as_deref(), Some("tidegate doctor /o/bin/mpiexec"));
    }
}
