//! Asks the libfabric of an MPI, in the environment of a job and in a process of its own, which networks it offers: a
//! library of others may print, abort or hang.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tidegate_fi::diagnosis::{self, MpiLibrary, loaded_libraries, networks};

use super::super::facts::{Libfabric, Taken};
use crate::child::answer;
use crate::mpi::MpiKind;
use crate::settings::Setting;

/// How long libfabric may take: providers look for hardware.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where the answer begins, behind all that libraries print.
const MARK: &str = "tidegate-doctor-libfabric ";

/// Asks the file `loaded`, which ranks are known to load, else the libfabric to which the MPI library leads. The error
/// says why nothing is known.
pub fn ask(
    library: &Path,
    loaded: Option<&Path>,
    kind: Option<MpiKind>,
    settings: &[Setting],
) -> Result<Libfabric, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    let mut command = Command::new(this);
    command.envs(settings.iter().map(|setting| (setting.name, &setting.value)));
    command.args(["doctor", "--as-probe"]).arg(library);
    command.args(loaded.map(|loaded| loaded.as_os_str()).into_iter().chain(kind.map(|kind| kind.id().as_ref())));
    let text = answer(&mut command, PATIENCE)
        .ok_or_else(|| format!("libfabric did not answer within {} s", PATIENCE.as_secs()))?;
    let line = text.rsplit_once(MARK).map(|(_, line)| line.trim());
    let said = || text.lines().next().unwrap_or("it said nothing").to_owned();
    serde_json::from_str(line.unwrap_or_default())
        .unwrap_or_else(|_| Err(format!("the process that asked libfabric has ended: {}", said())))
}

/// The process that asks: `words` are the MPI library, then a libfabric or the MPI's short name. Returns its exit code.
pub fn probe(words: &[PathBuf]) -> u8 {
    let fabric = std::env::var("FI_TIDEGATE_FABRIC").ok();
    let found = match words {
        [_, loaded] if loaded.is_absolute() => Ok(loaded.clone()),
        [library, ..] => libfabric_of(library, words.get(1).and_then(|kind| MpiKind::of_id(kind.to_str()?))),
        [] => Err("no library was named".to_owned()),
    };
    let answer = found.and_then(|path| look(path, fabric.as_deref()));
    let text = serde_json::to_string(&answer).expect("plain values");
    u8::from(stdout().write_all(format!("\n{MARK}{text}\n").as_bytes()).is_err())
}

fn look(path: PathBuf, fabric: Option<&str>) -> Result<Libfabric, String> {
    let found = networks(&path, fabric)?;
    let taken = |taken: diagnosis::Taken| Taken {
        provider: taken.provider,
        domain: taken.domain,
        speed: taken.speed.map(|speed| speed.to_string()),
        faster: taken.faster.map(|faster| (faster.name, faster.speed.to_string())),
    };
    Ok(Libfabric {
        path,
        version: found.version,
        has_tidegate: found.has_tidegate,
        taken: found.taken.map(|found| found.map(taken)),
    })
}

/// The libfabric that an MPI library loads: what comes with it, else what Open MPI's transport or Intel MPI load later.
fn libfabric_of(library: &Path, kind: Option<MpiKind>) -> Result<PathBuf, String> {
    MpiLibrary::load(library)?;
    let loaded = || loaded_libraries("libfabric").into_iter().next();
    if let Some(path) = loaded() {
        return Ok(path);
    }
    let folder = library.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    match kind {
        Some(MpiKind::OpenMpi) => {
            let transport = transports(&folder).into_iter().next().ok_or("Open MPI has no transport mca_mtl_ofi.so")?;
            // It needs libfabric, so the loader loads both.
            MpiLibrary::load(&transport)?;
            loaded().ok_or_else(|| format!("{} loads no libfabric", transport.display()))
        }
        Some(MpiKind::IntelMpi) => {
            let root = std::env::var_os("I_MPI_ROOT").map(PathBuf::from);
            let near = [&folder, folder.parent().unwrap_or(&folder)].map(Path::to_owned);
            let prefixes = root.into_iter().chain(near);
            let below = ["libfabric.so.1", "opt/mpi/libfabric/lib/libfabric.so.1", "libfabric/lib/libfabric.so.1"];
            let mut files = prefixes.flat_map(|prefix| below.map(|below| prefix.join(below)));
            files.find(|file| file.exists()).ok_or_else(|| "Intel MPI's libfabric.so.1 was not found".to_owned())
        }
        // It may contain libfabric.
        _ => Ok(library.to_owned()),
    }
}

/// Open MPI's transports over libfabric, below the folder of its library.
fn transports(folder: &Path) -> Vec<PathBuf> {
    let below = [folder.join("openmpi"), folder.join("openmpi/lib")];
    let folders = below.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let inner = folders.map(|entry| entry.path()).filter(|path| path.is_dir());
    let all = below.iter().cloned().chain(inner).chain([folder.to_owned()]);
    all.map(|folder| folder.join("mca_mtl_ofi.so")).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_found_where_distributions_put_them() {
        let root = tempfile::tempdir().unwrap();
        for below in ["openmpi", "openmpi/lib/openmpi3"] {
            let folder = root.path().join(below);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("mca_mtl_ofi.so"), "").unwrap();
        }
        assert_eq!(transports(root.path()).len(), 2);
        assert_eq!(transports(&root.path().join("none")), [] as [PathBuf; 0]);
    }
}
