//! Which MPI library belongs to a launcher, and which MPI a library is.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::mpi::MpiKind;

/// Folders with libraries, seen from the folder above that of the launcher: of packages, wheels, vendors, Debian.
const FOLDERS: [&str; 7] = [
    "lib",
    "lib64",
    "lib/release",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib64/openmpi/lib",
    "lib64/mpich/lib",
];
/// Where the names of libraries begin.
const STARTS: [&str; 2] = ["libmpi.so.", "libmpich.so."];
/// Bytes of a library that are looked through.
const LOOKED_THROUGH: u64 = 256 << 20;

/// The library of this MPI, in a folder near those with programs.
pub fn find(near: &[PathBuf], kind: MpiKind) -> Option<PathBuf> {
    let prefixes = near.iter().filter_map(|folder| folder.parent());
    let folders = prefixes.flat_map(|prefix| FOLDERS.map(|below| prefix.join(below)));
    folders.flat_map(|folder| libraries_in(&folder)).find(|library| kind_of(library) == Some(kind))
}

/// Libraries of any MPI in a folder, in order of name.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        STARTS.iter().any(|start| name.starts_with(start)) && path.is_file()
    };
    let mut found: Vec<PathBuf> = entries.filter(is_one).collect();
    found.sort();
    found
}

/// Which MPI a library is, by texts in it that only this one has. Intel MPI has those of MPICH, too.
pub fn kind_of(library: &Path) -> Option<MpiKind> {
    let mut bytes = Vec::new();
    File::open(library).ok()?.take(LOOKED_THROUGH).read_to_end(&mut bytes).ok()?;
    let marks: [(&[u8], MpiKind); 3] = [
        (b"ompi_mpi_comm_world", MpiKind::OpenMpi),
        (b"I_MPI_FABRICS", MpiKind::IntelMpi),
        (b"MPIR_CVAR_", MpiKind::Mpich),
    ];
    marks.into_iter().find(|(mark, _)| has(&bytes, mark)).map(|(_, kind)| kind)
}

fn has(bytes: &[u8], mark: &[u8]) -> bool {
    let first = mark[0];
    let mut rest = bytes;
    // Most bytes are not the first one of the mark, which a search for one byte passes over quickly.
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        if rest[at..].starts_with(mark) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_the_launchers_mpi_is_taken_where_there_are_several() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib/x86_64-linux-gnu");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("libmpi.so.40", "..ompi_mpi_comm_world.."),
            ("libmpich.so.12", "..MPIR_CVAR_NOLOCAL.."),
            ("libmpi.so.12", "..MPIR_CVAR_X.. I_MPI_FABRICS"),
            ("libmpi.so", "a script of a linker: ompi_mpi_comm_world"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let near = [root.path().join("bin")];
        for (kind, name) in [
            (MpiKind::OpenMpi, "libmpi.so.40"),
            (MpiKind::Mpich, "libmpich.so.12"),
            (MpiKind::IntelMpi, "libmpi.so.12"),
        ] {
            assert_eq!(find(&near, kind), Some(folder.join(name)));
        }
        assert_eq!(find(&[root.path().join("other/bin")], MpiKind::Mpich), None);
        assert_eq!(kind_of(&root.path().join("missing")), None);
    }
}
