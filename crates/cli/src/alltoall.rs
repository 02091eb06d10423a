//! `tidegate run --alltoall`: the two libraries that make MPI_Alltoall and MPI_Alltoallv of an unchanged program go by
//! a technique of bulk-transfer scheduling. One is preloaded into every process, the other is built for one MPI
//! (`bulk/preload.c`, `bulk/alltoall.c`). This program carries their sources and has the MPI's compiler wrapper build
//! them, before the job starts, into a folder that is named after all that they follow from.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::launcher::look_up;
use crate::mpi::{Mpi, MpiKind};
use crate::provider;
use crate::settings::Setting;

/// What is preloaded.
const PRELOAD: &str = "libtidegate-preload.so";
/// What that loads.
const LIBRARY: &str = "libtidegate-alltoall.so";
/// Names the compiler wrapper of the MPI.
const WRAPPER: &str = "TIDEGATE_MPICC";
/// Names a folder with `mpi.h`, for an MPI without a compiler wrapper.
const INCLUDE: &str = "TIDEGATE_MPI_INCLUDE";
/// Names the folder under which libraries are kept.
const CACHE: &str = "XDG_CACHE_HOME";

/// All sources, with their names; those in `C` are compiled into the library.
const SOURCES: [(&str, &str); 11] = [
    ("preload.c", include_str!("../../../bulk/preload.c")),
    ("alltoall.c", include_str!("../../../bulk/alltoall.c")),
    ("agreement.c", include_str!("../../../bulk/agreement.c")),
    ("fortran.c", include_str!("../../../bulk/fortran.c")),
    ("exchange.c", include_str!("../../../bulk/exchange.c")),
    ("receiving.c", include_str!("../../../bulk/receiving.c")),
    ("large_counts.c", include_str!("../../../bulk/large_counts.c")),
    ("alltoall.h", include_str!("../../../bulk/alltoall.h")),
    ("exchange.h", include_str!("../../../bulk/exchange.h")),
    ("exchange_parts.h", include_str!("../../../bulk/exchange_parts.h")),
    ("tidegate_decisions.h", include_str!("../../../bulk/tidegate_decisions.h")),
];
const C: [&str; 5] = ["alltoall.c", "agreement.c", "fortran.c", "exchange.c", "receiving.c"];

/// What the user asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The technique's name.
    pub technique: &'a str,
    /// From which length of a block on, as it was written.
    pub bytes: Option<&'a str>,
    /// Whether the job says at its end how many calls were taken.
    pub report: bool,
}

/// Where the parts are from which the libraries are made.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The MPI, if known.
    pub mpi: Option<&'a Mpi>,
    /// Folders of its programs.
    pub near: &'a [PathBuf],
    /// The folder of the provider, which has the decisions.
    pub provider_dir: &'a Path,
    /// The environment as it is now.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The settings that a job needs for it, once the libraries are there.
pub fn settings(wish: &Wish, place: &Place) -> Result<Vec<Setting>, Failure> {
    let preload = libraries(place)?.join(PRELOAD);
    if preload.as_os_str().as_encoded_bytes().iter().any(|byte| b" :;\t".contains(byte)) {
        return Err(Failure::own(format!(
            "LD_PRELOAD cannot name {}: its name has a space or a colon. Set {CACHE} to another folder",
            preload.display()
        )));
    }
    let mut list = preload.into_os_string();
    if let Some(had) = (place.environment)("LD_PRELOAD").filter(|had| !had.is_empty()) {
        list.push(":");
        list.push(had);
    }
    let mut settings = vec![
        Setting { name: "LD_PRELOAD", value: list, why: "It catches MPI_Alltoall and MPI_Alltoallv." },
        Setting {
            name: "TIDEGATE_ALLTOALL",
            value: wish.technique.into(),
            why: "The technique, chosen on the command line.",
        },
    ];
    if let Some(bytes) = wish.bytes {
        settings.push(Setting {
            name: "TIDEGATE_ALLTOALL_BYTES",
            value: bytes.into(),
            why: "Chosen on the command line.",
        });
    }
    if wish.report {
        settings.push(Setting {
            name: "TIDEGATE_ALLTOALL_REPORT",
            value: "1".into(),
            why: "Rank 0 says at the end how many calls were taken.",
        });
    }
    Ok(settings)
}

/// The folder with both libraries. They are built if they are not there.
fn libraries(place: &Place) -> Result<PathBuf, Failure> {
    let compiler = Compiler::find(place)?;
    let kept = cache(place.environment)?;
    let folder = kept.join(format!("alltoall-{:016x}", compiler.key(place.provider_dir)));
    if is_complete(&folder) {
        return Ok(folder);
    }
    let refused = |error| {
        Failure::own(format!(
            "the library for --alltoall cannot be kept in {}: {error}. Set {CACHE} to a folder that can be written, which \
             all hosts of the job see",
            kept.display()
        ))
    };
    fs::create_dir_all(&kept).map_err(refused)?;
    let work = tempfile::Builder::new().prefix(".making-").tempdir_in(&kept).map_err(refused)?;
    for (name, text) in SOURCES {
        fs::write(work.path().join(name), text).map_err(refused)?;
    }
    compiler.build(work.path(), place.provider_dir)?;
    // Folders of temporary files are private; hosts and users may share these.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(work.path(), open).map_err(refused)?;
    match fs::rename(work.path(), &folder) {
        Ok(()) => _ = work.keep(),
        // Another run has been faster: its libraries are the same.
        Err(_) if is_complete(&folder) => {}
        Err(error) => return Err(refused(error)),
    }
    Ok(folder)
}

fn is_complete(folder: &Path) -> bool {
    [PRELOAD, LIBRARY].iter().all(|name| folder.join(name).is_file())
}

fn cache(environment: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, Failure> {
    let absolute = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(CACHE).or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    folder.map(|folder| folder.join("tidegate")).ok_or_else(|| {
        Failure::own(format!("there is no place for the library for --alltoall: set {CACHE} or HOME to a folder"))
    })
}

/// What compiles for the MPI of the job.
struct Compiler {
    program: PathBuf,
    /// What a compiler wrapper would know: headers and library.
    options: Vec<OsString>,
}

impl Compiler {
    /// The wrapper that the user names, else the one beside the launcher, else a plain compiler where the user names
    /// the headers.
    fn find(place: &Place) -> Result<Self, Failure> {
        let environment = place.environment;
        if let Some(chosen) = environment(WRAPPER).filter(|chosen| !chosen.is_empty()) {
            let program = look_up(&chosen, environment("PATH").as_deref());
            let missing = || Failure::own(format!("{WRAPPER}={} is no program that can be run", chosen.display()));
            return Ok(Compiler { program: program.ok_or_else(missing)?, options: Vec::new() });
        }
        let kind = place.mpi.map(|mpi| mpi.kind);
        let names: &[&str] = match kind {
            Some(MpiKind::IntelMpi) => &["mpiicx", "mpiicc", "mpigcc", "mpicc"],
            Some(MpiKind::OpenMpi) => &["mpicc.openmpi", "mpicc"],
            Some(MpiKind::Mpich) => &["mpicc.mpich", "mpicc"],
            None => &["mpicc"],
        };
        let beside = place.near.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        let program = beside.filter_map(|path| look_up(path.as_os_str(), None)).next();
        if let Some(program) = program {
            return Ok(Compiler { program, options: Vec::new() });
        }
        Self::without_wrapper(place).ok_or_else(|| {
            let title = place.mpi.map_or("this MPI".to_owned(), Mpi::title);
            let looked: String = place.near.iter().map(|folder| format!("\n  {}", folder.display())).collect();
            Failure::own(format!(
                "--alltoall needs the compiler wrapper of {title} to build a small library, and there is no {} beside the \
                 launcher. Install it (with Intel MPI it is part of the development package), or name it in {WRAPPER}. For \
                 Intel MPI a folder with MPICH's mpi.h will do, in {INCLUDE}: the binary interface is the same. Looked \
                 in{looked}",
                names.join(" or ")
            ))
        })
    }

    fn without_wrapper(place: &Place) -> Option<Self> {
        let include = (place.environment)(INCLUDE).map(PathBuf::from).filter(|path| path.join("mpi.h").is_file())?;
        let libraries = place.near.iter().filter_map(|folder| folder.parent());
        let library = libraries
            .flat_map(|prefix| ["lib", "lib/release"].map(|below| prefix.join(below)))
            .find(|folder| folder.join("libmpi.so.12").is_file())?;
        let program = look_up("cc".as_ref(), (place.environment)("PATH").as_deref())?;
        let with = |option: &str, value: &Path| {
            let mut word = OsString::from(option);
            word.push(value);
            word
        };
        let options =
            vec![with("-I", &include), with("-L", &library), with("-Wl,-rpath,", &library), "-l:libmpi.so.12".into()];
        Some(Compiler { program, options })
    }

    /// A number for all that the libraries follow from.
    fn key(&self, provider_dir: &Path) -> u64 {
        let mut hasher = DefaultHasher::new();
        SOURCES.hash(&mut hasher);
        (env!("CARGO_PKG_VERSION"), provider_dir, &self.program, &self.options).hash(&mut hasher);
        // A wrapper that was installed anew may be for another version of the MPI.
        let real = self.program.canonicalize().unwrap_or_else(|_| self.program.clone());
        let facts = real.metadata().ok().map(|facts| (facts.len(), facts.modified().ok()));
        (real, facts).hash(&mut hasher);
        hasher.finish()
    }

    /// Builds both libraries in `folder`, which has the sources.
    fn build(&self, folder: &Path, provider_dir: &Path) -> Result<(), Failure> {
        let has_large_counts = self.compile(folder, &["large_counts.c", "-o", "large_counts"], &[]).is_ok();
        let preload = ["-fPIC", "-shared", "preload.c", "-o", PRELOAD, "-ldl", "-lpthread"];
        let large: &[&str] = if has_large_counts { &["-DTIDEGATE_LARGE_COUNTS"] } else { &[] };
        self.compile(folder, &[large, &preload].concat(), &[])?;
        let with = |option: &str| {
            let mut word = OsString::from(option);
            word.push(provider_dir);
            word
        };
        let decisions = [with("-L"), with("-Wl,-rpath,"), format!("-l:{}", provider::FILE).into()];
        let library = ["-fPIC", "-shared", "-o", LIBRARY, "-ldl", "-lpthread"];
        self.compile(folder, &[&C[..], &library].concat(), &decisions)
    }

    /// Compiles and links; what is not used is not linked, so what is preloaded does not need the MPI.
    fn compile(&self, folder: &Path, words: &[&str], more: &[OsString]) -> Result<(), Failure> {
        let mut command = Command::new(&self.program);
        command.args(["-O2", "-std=gnu11", "-Wl,--as-needed"]).args(words).args(more).args(&self.options);
        let done = command.current_dir(folder).env_remove("LD_PRELOAD").output();
        let done = done.map_err(|error| Failure::own(format!("cannot run {}: {error}", self.program.display())))?;
        if done.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&done.stderr);
        let lines: Vec<_> = said.lines().take(12).collect();
        Err(Failure::own(format!(
            "{} could not build the library for --alltoall; {WRAPPER} names another compiler wrapper. It said:\n{}",
            self.program.display(),
            lines.join("\n")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::write_script;

    /// A wrapper that makes empty files of what it is asked for, and counts.
    fn wrapper(folder: &Path, name: &str) {
        let text = "while [ \"$1\" != -o ]; do shift; done; : > \"$2\"; echo x >> \"$(dirname \"$0\")/calls\"";
        write_script(&folder.join(name), text);
    }

    fn mpi(kind: MpiKind) -> Mpi {
        Mpi { kind, version: Some("5.0".to_owned()), device: None }
    }

    const WISH: Wish = Wish { technique: "tokens", bytes: Some("1M"), report: true };

    #[test]
    fn libraries_are_built_once_and_preloaded_before_what_the_user_preloads() {
        let root = tempfile::tempdir().unwrap();
        let near = [root.path().join("bin")];
        fs::create_dir(&near[0]).unwrap();
        wrapper(&near[0], "mpicc");
        let cache = root.path().join("cache");
        let environment = |name: &str| match name {
            CACHE => Some(cache.clone().into()),
            "LD_PRELOAD" => Some("/x/liba.so".into()),
            _ => None,
        };
        let mpich = mpi(MpiKind::Mpich);
        let place = Place { mpi: Some(&mpich), near: &near, provider_dir: root.path(), environment: &environment };
        for _ in 0..2 {
            let found = settings(&WISH, &place).unwrap();
            let names: Vec<_> = found.iter().map(|setting| setting.name).collect();
            let expected = ["LD_PRELOAD", "TIDEGATE_ALLTOALL", "TIDEGATE_ALLTOALL_BYTES", "TIDEGATE_ALLTOALL_REPORT"];
            assert_eq!(names, expected);
            let list = found[0].value.to_str().unwrap();
            assert!(list.starts_with(cache.to_str().unwrap()) && list.ends_with(":/x/liba.so"), "{list}");
        }
        let calls = fs::read_to_string(near[0].join("calls")).unwrap();
        assert_eq!(calls.lines().count(), 3, "{calls}");
        let kept = fs::read_dir(cache.join("tidegate")).unwrap().count();
        assert_eq!(kept, 1, "nothing half made is left behind");
    }

    #[test]
    fn an_mpi_without_a_wrapper_is_told_what_helps() {
        let root = tempfile::tempdir().unwrap();
        let near = [root.path().join("bin")];
        let intel = mpi(MpiKind::IntelMpi);
        let environment = |name: &str| (name == CACHE).then(|| root.path().into());
        let place = Place { mpi: Some(&intel), near: &near, provider_dir: root.path(), environment: &environment };
        let failure = settings(&WISH, &place).unwrap_err();
        assert_eq!(failure.code, crate::failure::OWN);
        for part in ["Intel MPI 5.0", "mpiicx or mpiicc", WRAPPER, INCLUDE, "/bin"] {
            assert!(failure.to_string().contains(part), "{failure}");
        }
    }

    #[test]
    fn what_the_compiler_says_is_shown() {
        let root = tempfile::tempdir().unwrap();
        let chosen = root.path().join("broken");
        write_script(&chosen, "echo 'mpi.h: not there' >&2; exit 1");
        let environment = |name: &str| match name {
            CACHE => Some(root.path().into()),
            WRAPPER => Some(chosen.clone().into()),
            _ => None,
        };
        let place = Place { mpi: None, near: &[], provider_dir: root.path(), environment: &environment };
        let failure = settings(&WISH, &place).unwrap_err().to_string();
        assert!(failure.contains("mpi.h: not there") && failure.contains(WRAPPER), "{failure}");
        let left = fs::read_dir(root.path().join("tidegate")).unwrap().count();
        assert_eq!(left, 0);
    }
}
