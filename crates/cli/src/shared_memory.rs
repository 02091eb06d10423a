//! Programs that ask MPI who shares memory with them, under an MPI that must not know.
//!
//! MPICH has one table of nodes. It decides by it both which messages go through its own shared memory and which ranks
//! `MPI_COMM_TYPE_SHARED` puts together (`MPIR_build_nodemap`, `src/util/mpir_nodemap.c`; `MPIDIU_avt_init` takes
//! `is_local` from it). There is no setting for the one without the other: where a provider is to carry the messages
//! within a host, MPIR_CVAR_NOLOCAL makes each rank a node of its own.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::launcher::look_up;
use crate::mpi::MpiKind;
use crate::settings::Setting;

/// The variable that makes each rank a node of its own.
pub const NOLOCAL: &str = "MPIR_CVAR_NOLOCAL";
/// Functions by which programs find or make what ranks of a node share. In Fortran they are in small letters, with more
/// behind them.
const FUNCTIONS: [&str; 2] = ["MPI_Comm_split_type", "MPI_Win_allocate_shared"];
/// The longest table of names that is looked at.
const NAMES_MOST: u64 = 64 << 20;

/// What to say of a command whose program refers to these functions, if its MPI takes each rank for a node of its own.
pub fn notice(mpi: Option<MpiKind>, command: &[OsString], settings: &[Setting], overridden: &[&str]) -> Option<String> {
    let is_set = settings.iter().any(|setting| setting.name == NOLOCAL) && !overridden.contains(&NOLOCAL);
    if mpi != Some(MpiKind::Mpich) || !is_set {
        return None;
    }
    let search = std::env::var_os("PATH");
    let of = |word: &OsString| {
        let found = functions(&look_up(word, search.as_deref())?);
        (!found.is_empty()).then(|| text(&word.to_string_lossy(), &found))
    };
    command.iter().find_map(of)
}

fn text(program: &str, functions: &[&str]) -> String {
    format!(
        "{} refers to {}: so that Tidegate carries its messages, MPICH takes each rank for a node of its own \
         ({NOLOCAL}=1). MPI_COMM_TYPE_SHARED then gives communicators of one rank, and MPI_Win_allocate_shared over more ends the \
         program. `mpiexec -genv {NOLOCAL} 0` leaves messages within a host to MPICH; Tidegate carries those between hosts.",
        tidegate_link::plain(program),
        functions.join(" and ")
    )
}

/// Which of the functions a program refers to; none if it is no program, or linked in another way.
fn functions(program: &Path) -> Vec<&'static str> {
    let names = dynamic_names(program).unwrap_or_default();
    let refers = |function: &&str| {
        names.split(|&byte| byte == 0).any(|name| {
            // The profiling interface has the same names with a P before them.
            let name = name.strip_prefix(b"P").unwrap_or(name);
            name.get(..function.len()).is_some_and(|start| start.eq_ignore_ascii_case(function.as_bytes()))
        })
    };
    FUNCTIONS.into_iter().filter(refers).collect()
}

/// Kinds of parts of a program in the tables of ELF: what is mapped, and where its dynamic entries are.
const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
/// Kinds of dynamic entries: the address of the names, and their bytes.
const NAMES: u64 = 5;
const NAMES_BYTES: u64 = 10;

/// A part of a program, as its table has it.
struct Part {
    kind: u64,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// The table of names of a dynamically linked program: those that it takes from libraries, and those that it offers.
fn dynamic_names(program: &Path) -> Option<Vec<u8>> {
    let file = File::open(program).ok()?;
    let read = |at: u64, bytes: u64| {
        let mut part = vec![0; usize::try_from(bytes.min(NAMES_MOST)).ok()?];
        file.read_exact_at(&mut part, at).ok().map(|()| part)
    };
    let head = read(0, 64)?;
    // ELF of 64 bits, little-endian.
    if head[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let (at, each, count) = (number(&head, 32, 8)?, number(&head, 54, 2)?, number(&head, 56, 2)?);
    let parts = parts(&read(at, each * count)?, usize::try_from(each).ok()?);
    let dynamic = parts.iter().find(|part| part.kind == DYNAMIC)?;
    let entries = read(dynamic.offset, dynamic.bytes)?;
    let value_of = |kind: u64| {
        let entry = entries.chunks_exact(16).find(|entry| number(entry, 0, 8) == Some(kind));
        entry.and_then(|entry| number(entry, 8, 8))
    };
    let (address, bytes) = (value_of(NAMES)?, value_of(NAMES_BYTES)?);
    parts.iter().filter(|part| part.kind == LOAD).find_map(|part| {
        let inside = address.checked_sub(part.address).filter(|inside| *inside < part.bytes)?;
        read(part.offset.checked_add(inside)?, bytes)
    })
}

/// The parts of a program, by their table, of whose rows each has so many bytes.
fn parts(table: &[u8], each: usize) -> Vec<Part> {
    let part = |row: &[u8]| {
        let (kind, offset) = (number(row, 0, 4)?, number(row, 8, 8)?);
        Some(Part { kind, offset, address: number(row, 16, 8)?, bytes: number(row, 32, 8)? })
    };
    table.chunks_exact(each.max(1)).filter_map(part).collect()
}

/// A number of so many bytes at a place, the lowest byte first.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(size)?)?;
    Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::write_script;
    use std::fs;
    use std::path::PathBuf;

    /// A program that takes these names from libraries, as far as the reader looks at it.
    fn program(folder: &Path, names: &[&str]) -> PathBuf {
        let table: Vec<u8> = [""].iter().chain(names).flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
        let mut file = vec![0; 64 + 2 * 56];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        let mut put =
            |at: usize, value: u64, size: usize| file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        put(32, 64, 8);
        put(54, 56, 2);
        put(56, 2, 2);
        // The file is mapped 0x1000 higher than it lies; behind the headers lie three dynamic entries and the names.
        let (dynamic, strings) = (176, 176 + 48);
        for (at, value, size) in
            [(64, 1, 4), (72, 0, 8), (80, 0x1000, 8), (96, 4096, 8), (120, 2, 4), (128, dynamic, 8), (152, 48, 8)]
        {
            put(at, value, size);
        }
        for (tag, value) in [(5, 0x1000 + strings), (10, table.len() as u64), (0, 0)] {
            file.extend([tag.to_owned(), value].map(u64::to_le_bytes).concat());
        }
        file.extend(table);
        let path = folder.join(format!("program-{}", names.len()));
        write_script(&path, "");
        fs::write(&path, file).unwrap();
        path
    }

    #[test]
    fn programs_that_refer_to_shared_memory_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let of = |names: &[&str]| functions(&program(folder.path(), names));
        assert_eq!(of(&["MPI_Init", "MPI_Comm_split_type"]), ["MPI_Comm_split_type"]);
        assert_eq!(of(&["mpi_win_allocate_shared_cptr_", "x", "PMPI_Comm_split_type"]), FUNCTIONS);
        assert_eq!(of(&["MPI_Comm_split", "my_MPI_Comm_split_type", "MPI_Win_allocate", ""]), [""; 0]);
    }

    #[test]
    fn what_is_no_program_refers_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        write_script(&script, "echo MPI_Comm_split_type");
        assert_eq!(functions(&script), [""; 0]);
        let whole = fs::read(program(folder.path(), &["MPI_Comm_split_type"])).unwrap();
        for length in 0..whole.len() {
            fs::write(&script, &whole[..length]).unwrap();
            assert_eq!(functions(&script), [""; 0], "cut to {length} bytes");
        }
        // Numbers that lead nowhere are read as nothing.
        for at in (32..whole.len() - 4).step_by(4) {
            let mut wrong = whole.clone();
            wrong[at..at + 4].fill(0xff);
            fs::write(&script, wrong).unwrap();
            let _ = functions(&script);
        }
    }

    #[test]
    fn only_an_mpich_whose_ranks_are_nodes_is_spoken_of() {
        let folder = tempfile::tempdir().unwrap();
        let words = [OsString::from("mpiexec"), program(folder.path(), &["MPI_Win_allocate_shared"]).into()];
        let setting = [Setting { name: NOLOCAL, value: "1".into(), why: "" }];
        let said = notice(Some(MpiKind::Mpich), &words, &setting, &[]).unwrap();
        assert!(said.contains("program-1 refers to MPI_Win_allocate_shared: so that"), "{said}");
        assert!(said.contains("`mpiexec -genv MPIR_CVAR_NOLOCAL 0`"), "{said}");
        assert_eq!(notice(Some(MpiKind::OpenMpi), &words, &setting, &[]), None);
        assert_eq!(notice(None, &words, &setting, &[]), None);
        assert_eq!(notice(Some(MpiKind::Mpich), &words, &setting, &[NOLOCAL]), None);
        assert_eq!(notice(Some(MpiKind::Mpich), &words[..1], &setting, &[]), None);
    }
}
