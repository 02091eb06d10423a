//! Raw runs as one compressed file: `--pack` writes it, `--unpack` reads it.
//!
//! The file is called `runs-` and the first 16 digits of its SHA-256, `.tar.gz`. It holds the files below `.runs` and
//! nothing else, in the order of their names, without times and owners: the same runs give the same bytes with the same
//! version of this program. `tar xzf` in a folder of results does the same as `--unpack`, which checks first: the name
//! against the hash, each path (`.runs`, a folder, a file, each of them 16 digits), each length, and that each file is
//! the run that it is called after. Only an archive of which all is right is unpacked.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tidegate_cli::files::write_whole;
use tidegate_cli::store::Folder;
use tidegate_link::log::print_line;
use tidegate_sim::FinishedRun;

/// The folder in the archive.
const FOLDER: &str = ".runs";
/// A block of a tar file.
const BLOCK: usize = 512;
/// Longest file of a run, in bytes, and most of them. Some ten times what the figures have.
const RUN_BYTES_MOST: u64 = 16 << 20;
const RUNS_MOST: usize = 1_000_000;
/// Most bytes of all runs.
const BYTES_MOST: u64 = 4 << 30;

/// Packs the runs that are kept below `folder`; returns where the archive is, which is there too.
///
/// # Errors
/// If there are none, or a file cannot be read or written.
pub fn pack(folder: &Path) -> io::Result<PathBuf> {
    let names = names(folder)?;
    if names.is_empty() {
        let place = Folder::of(folder);
        return Err(io::Error::other(format!("{} holds no runs", place.display())));
    }
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
    for name in &names {
        let bytes = fs::read(folder.join(name))?;
        if let Err(why) = check(name, &bytes) {
            print_line(&format!("{} is left out: {why}", folder.join(name).display()));
            continue;
        }
        packed.write_all(&header(name, bytes.len() as u64))?;
        packed.write_all(&bytes)?;
        packed.write_all(&[0; BLOCK][..padding(bytes.len() as u64) as usize])?;
    }
    packed.write_all(&[0; 2 * BLOCK])?;
    let packed = packed.finish()?;
    let path = folder.join(name_of(&packed));
    let mode = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    file.write_all(&packed)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(path)
}

/// The runs of an archive that [`unpack`] has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// Runs that were not there before.
    pub new: usize,
    /// Runs that were there already, and are left as they were.
    pub known: usize,
}

/// Puts the runs of an archive below `folder`.
///
/// # Errors
/// If anything about the archive is wrong; nothing is written then. Or if a file cannot be written.
pub fn unpack(archive: &Path, folder: &Path) -> io::Result<Unpacked> {
    let packed = fs::read(archive)?;
    let name = name_of(&packed);
    if archive.file_name().is_none_or(|own| own != name.as_str()) {
        let text = format!("it is damaged or has another name: by what is in it it would be called {name}");
        return Err(io::Error::other(text));
    }
    each(&packed, |_, _| Ok(()))?;
    let mut done = Unpacked { new: 0, known: 0 };
    each(&packed, |name, bytes| {
        let path = folder.join(name);
        if path.exists() {
            done.known += 1;
            return Ok(());
        }
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        write_whole(&path, bytes)?;
        done.new += 1;
        Ok(())
    })?;
    Ok(done)
}

/// The files of runs below a folder, in order.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for code in fs::read_dir(Folder::of(folder))? {
        let code = code?;
        if !code.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(code.path())? {
            let file = file?;
            let name = format!("{FOLDER}/{}/{}", code.file_name().display(), file.file_name().display());
            if file.file_type()?.is_file() && digits(&name).is_some() {
                names.push(name);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// The digits of the code and of the key, of the name of a run's file. `None`: it is none.
fn digits(name: &str) -> Option<(&str, &str)> {
    let (code, key) = name.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".json")?.split_once('/')?;
    let are_digits =
        |text: &str| text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (are_digits(code) && are_digits(key)).then_some((code, key))
}

/// Whether a file holds the run that it is called after. Its result is checked when it is used.
fn check(name: &str, bytes: &[u8]) -> Result<(), String> {
    let (code, key) = digits(name).ok_or("no run of Tidegate's has such a name")?;
    let run: FinishedRun<serde_json::Value> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if run.code != code || run.key.digits() != key {
        return Err("it is another run's".to_owned());
    }
    Ok(())
}

/// The name of an archive with these bytes.
fn name_of(packed: &[u8]) -> String {
    let digits: String = Sha256::digest(packed).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("runs-{digits}.tar.gz")
}

/// The number of bytes that fill the last block of a file of this length.
fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK as u64) - bytes
}

/// Where the fields of a header are (POSIX `ustar`): the name, the length, the kind; the rest is always the same.
const NAME: std::ops::Range<usize> = 0..100;
const LENGTH: std::ops::Range<usize> = 124..136;
const SUM: std::ops::Range<usize> = 148..156;

/// The block before a file: only the name and the length differ from file to file.
fn header(name: &str, length: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    // Mode, user, group, length and time, in octal digits; the kind, a regular file; the format's name and version.
    let fields = [(100, "0000644\0"), (108, "0000000\0"), (116, "0000000\0"), (136, "00000000000\0"), (156, "0")];
    for (at, text) in fields.into_iter().chain([(257, "ustar\0"), (263, "00")]) {
        block[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    block[LENGTH].copy_from_slice(format!("{length:011o}\0").as_bytes());
    let sum = sum(&block);
    block[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The sum of a header's bytes, its own field taken for blanks.
fn sum(block: &[u8; BLOCK]) -> u64 {
    let blank = SUM.len() as u64 * u64::from(b' ');
    block.iter().enumerate().filter(|(at, _)| !SUM.contains(at)).map(|(_, byte)| u64::from(*byte)).sum::<u64>() + blank
}

/// The name and the length that a header gives, if it is one that [`header`] writes.
fn entry(block: &[u8; BLOCK]) -> Option<(&str, u64)> {
    let name = str::from_utf8(&block[NAME]).ok()?.trim_end_matches('\0');
    let length = str::from_utf8(&block[LENGTH]).ok()?.trim_end_matches('\0');
    let length = u64::from_str_radix(length, 8).ok()?;
    (NAME.contains(&name.len()) && *block == header(name, length)).then_some((name, length))
}

/// Reads an archive to its end, with each of its runs given to `take`.
fn each(packed: &[u8], mut take: impl FnMut(&str, &str) -> io::Result<()>) -> io::Result<()> {
    let wrong = |why: &str| Err(io::Error::other(format!("it is no archive of runs: {why}")));
    let mut unpacked = GzDecoder::new(packed);
    let (mut block, mut total, mut before) = ([0; BLOCK], 0, String::new());
    for _ in 0..=RUNS_MOST {
        unpacked.read_exact(&mut block)?;
        if block == [0; BLOCK] {
            unpacked.read_exact(&mut block)?;
            let is_end = block == [0; BLOCK] && unpacked.read(&mut [0])? == 0;
            return if is_end { Ok(()) } else { wrong("something follows its end") };
        }
        let Some((name, length)) = entry(&block) else { return wrong("it holds something else") };
        if name <= before.as_str() {
            return wrong("a run is there twice, or in another order");
        }
        total += length;
        if length > RUN_BYTES_MOST || total > BYTES_MOST {
            return wrong("it is larger than all runs of all figures could be");
        }
        let mut bytes = Vec::new();
        unpacked.by_ref().take(length).read_to_end(&mut bytes)?;
        unpacked.read_exact(&mut [0; BLOCK][..padding(length) as usize])?;
        if let Err(why) = check(name, &bytes) {
            return wrong(&format!("{name}: {why}"));
        }
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        take(name, &text)?;
        name.clone_into(&mut before);
    }
    wrong("it holds too many files")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::RunKey;

    /// The text of a run, and its name in an archive.
    fn run(seed: u64) -> (String, String) {
        let key = RunKey { case: "a case".to_owned(), seed, noise_interval_ps: 0, noise_duration_ps: 0 };
        let (code, measurement) = ("0123456789abcdef".to_owned(), seed);
        let name = format!("{FOLDER}/{code}/{}.json", key.digits());
        (name, serde_json::to_string(&FinishedRun { code, key, seconds: 0.5, measurement }).unwrap())
    }

    /// A folder with these files.
    fn folder(files: &[(String, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// An archive, under the name of its hash, with these entries.
    fn archive(folder: &Path, entries: &[(&str, &str)]) -> PathBuf {
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::fast());
        for (name, text) in entries {
            packed.write_all(&header(name, text.len() as u64)).unwrap();
            packed.write_all(text.as_bytes()).unwrap();
            packed.write_all(&[0; BLOCK][..padding(text.len() as u64) as usize]).unwrap();
        }
        packed.write_all(&[0; 2 * BLOCK]).unwrap();
        named(folder, &packed.finish().unwrap())
    }

    fn named(folder: &Path, bytes: &[u8]) -> PathBuf {
        let path = folder.join(name_of(bytes));
        fs::write(&path, bytes).unwrap();
        path
    }

    #[track_caller]
    fn refused(archive: &Path, why: &str) {
        let out = tempfile::tempdir().unwrap();
        let error = unpack(archive, out.path()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0, "nothing is written");
    }

    #[test]
    fn what_is_packed_comes_out_again_and_the_same_runs_give_the_same_bytes() {
        let runs: Vec<(String, String)> = (0..40).map(run).collect();
        let (one, other) = (folder(&runs), folder(&runs.iter().rev().cloned().collect::<Vec<_>>()));
        let junk = format!("{FOLDER}/0123456789abcdef/0123456789abcdef.running");
        fs::write(other.path().join(junk), "host_1").unwrap();
        let packed = [&one, &other].map(|folder| pack(folder.path()).unwrap());
        assert_eq!(packed[0].file_name(), packed[1].file_name());
        assert_eq!(fs::read(&packed[0]).unwrap(), fs::read(&packed[1]).unwrap());
        let out = folder(&runs[..3]);
        assert_eq!(unpack(&packed[0], out.path()).unwrap(), Unpacked { new: 37, known: 3 });
        for (name, text) in &runs {
            assert_eq!(fs::read_to_string(out.path().join(name)).unwrap(), *text);
        }
        assert_eq!(pack(out.path()).unwrap().file_name(), packed[0].file_name());
    }

    #[test]
    fn a_damaged_archive_is_refused_wherever_the_damage_is() {
        let folder = folder(&(0..3).map(run).collect::<Vec<_>>());
        let whole = fs::read(pack(folder.path()).unwrap()).unwrap();
        let name = pack(folder.path()).unwrap();
        for at in (0..whole.len()).step_by(41) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&name, &damaged).unwrap();
            refused(&name, "it is damaged or has another name");
        }
        fs::write(&name, &whole[..whole.len() / 2]).unwrap();
        refused(&name, "it is damaged or has another name");
        // Under the name of its own hash, what is cut short is refused all the same.
        refused(&named(folder.path(), &whole[..whole.len() / 2]), "");
        refused(&named(folder.path(), b"no archive at all"), "");
    }

    /// The hash is no proof of where an archive comes from.
    #[test]
    fn an_archive_with_anything_but_runs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let ((name, text), (other, _)) = (run(1), run(2));
        let code = "0123456789abcdef";
        for bad in ["/etc/passwd", "../x.json", ".runs/../../x", &format!(".runs/{code}/{code}.running"), "x"] {
            refused(&archive(folder.path(), &[(bad, &text)]), "no run of Tidegate's has such a name");
        }
        refused(&archive(folder.path(), &[(&other, &text)]), "it is another run's");
        refused(&archive(folder.path(), &[(&name, "{}")]), &name);
        refused(&archive(folder.path(), &[(&name, &text), (&name, &text)]), "a run is there twice");
        // A link, and a length that is none.
        for (at, byte) in [(156, b'2'), (130, b'9')] {
            let mut block = header(&name, text.len() as u64);
            block[at] = byte;
            let mut packed = GzBuilder::new().write(Vec::new(), Compression::fast());
            packed.write_all(&block).unwrap();
            refused(&named(folder.path(), &packed.finish().unwrap()), "it holds something else");
        }
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::fast());
        packed.write_all(&header(&name, RUN_BYTES_MOST + 1)).unwrap();
        refused(&named(folder.path(), &packed.finish().unwrap()), "it is larger than all runs");
    }
}
