//! Files of ours in folders to which other users may write: pages of counters, troubles, traces, recordings, segments.
//!
//! In such a folder another user may have put something else under a name of ours: a pipe, at which opening waits
//! without end; a link, which leads to another file of this user, or to one that only root may read; a file that says
//! whatever that user likes. So every file of ours is opened here. Opening follows no link and waits for nothing; only
//! then is it looked at what has been opened, so that nothing can be exchanged between the look and the use.
//!
//! - A file to write to is new, or is this user's and has this one name ([`create_new`], [`open_own`]).
//! - A file to read is this user's or that of the folder's owner: whoever owns the folder can put into it what they
//!   like anyway. Root that reads a user's folder so sees the user's files; and a folder that all may write to shows
//!   each reader the reader's own ([`open_left`]).
//!
//! A file with a second name (a hard link) is refused as well: it may be any file of this user's. Segments are the
//! exception, see `OPEN_FLAGS` and `shm/life.rs`: other users cannot open them, nor write their names; a second name
//! would only be a way to keep them from use.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// With these, opening follows no link, waits for no writer or reader of a pipe, and takes no terminal.
pub(crate) const OPEN_FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
/// The remedy against something that another user has put in the place of a file.
const REMEDY: &str = "remove it, or name a folder that other users cannot write to";
/// Files of one process and kind that a folder may have: finding the next free number is bounded.
const NUMBERS_MOST: u32 = 1 << 16;

/// This user.
fn user() -> u32 {
    // SAFETY: `geteuid` has no preconditions.
    unsafe { libc::geteuid() }
}

/// A file that was opened with [`OPEN_FLAGS`] is a regular one and belongs to this user. Errors say what it is instead.
pub(crate) fn check_own(file: &File) -> io::Result<()> {
    check_owner(file, &[user()])
}

fn check_owner(file: &File, owners: &[u32]) -> io::Result<()> {
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(refused(&format!("it is {}, not a file", kind(facts.file_type()))));
    }
    if !owners.contains(&facts.uid()) {
        return Err(refused(&format!("it belongs to user {}, not to user {}", facts.uid(), owners[0])));
    }
    Ok(())
}

/// The file has no second name.
fn check_single(file: &File) -> io::Result<()> {
    match file.metadata()?.nlink() {
        0 | 1 => Ok(()),
        names => Err(refused(&format!("it has {names} names (hard links)"))),
    }
}

/// An error with its remedy.
fn refused(fault: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{fault}: {REMEDY}"))
}

fn kind(file: FileType) -> &'static str {
    match file {
        file if file.is_dir() => "a folder",
        file if file.is_fifo() => "a pipe",
        file if file.is_socket() => "a socket",
        file if file.is_symlink() => "a link",
        file if file.is_file() => "a file",
        _ => "a device",
    }
}

/// Opens a file and says what stands there if it is none.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(OPEN_FLAGS).open(path).map_err(|error| match error.raw_os_error() {
        // A link; a socket, or a pipe that has no reader; a folder that was to be written to.
        Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => match fs::symlink_metadata(path) {
            Ok(facts) => refused(&format!("it is {}, not a file", kind(facts.file_type()))),
            Err(_) => error,
        },
        _ => error,
    })
}

/// Opens a file that a process of this user, or of the folder's owner, has left, to read it.
///
/// # Errors
/// There is none; it cannot be opened; it is something else, or of another user.
pub fn open_left(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = open(File::options().read(true), path)?;
    check_owner(&file, &[user(), fs::metadata(folder)?.uid()])?;
    check_single(&file)?;
    Ok(file)
}

/// Reads at most so many bytes of a file, as [`open_left`] opens it. Of a longer file the rest is left out.
///
/// # Errors
/// As [`open_left`], or reading fails.
pub fn read_left(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_left(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file of this user to append to it.
///
/// # Errors
/// There is none; it cannot be opened; it is something else, or of another user.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open(File::options().append(true), path)?;
    check_own(&file)?;
    check_single(&file)?;
    Ok(file)
}

/// Makes a new file to read and write. Other users may read it as far as the process lets them (`umask`).
///
/// # Errors
/// Something has that name, and the error says what; the folder is missing, full, or not ours to write to.
pub fn create_new(path: &Path) -> io::Result<File> {
    let opened = open(File::options().read(true).write(true).create_new(true), path);
    opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let kind = fs::symlink_metadata(path).map_or("something", |facts| kind(facts.file_type()));
            io::Error::new(ErrorKind::AlreadyExists, format!("{kind} stands there already: {REMEDY}"))
        }
        _ => error,
    })
}

/// Gives a file the name `path`, in place of an earlier file of that name. (A link or a pipe that stands there is
/// replaced too, and not followed.)
///
/// # Errors
/// Those of `rename`. Where a folder stands there, the error says so.
pub fn replace(path: &Path, by: &Path) -> io::Result<()> {
    fs::rename(by, path).map_err(|error| check_replaceable(path).err().unwrap_or(error))
}

/// Whether a file may be written under this name: a regular file stands there, or nothing. The name was chosen by us,
/// and not by the user, who may well mean a pipe.
///
/// # Errors
/// Something else stands there.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if !facts.is_file() => Err(refused(&format!("it is {}, not a file", kind(facts.file_type())))),
        _ => Ok(()),
    }
}

/// The same error, with the name of its file.
pub fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Makes a new file `<pid>-<number><suffix>` of this process in a folder, for this user alone, with the first number
/// that nothing there has. Returns the number as well.
///
/// # Errors
/// The folder is missing, full, or not ours to write to; it has such files with all numbers.
pub(crate) fn create_numbered(folder: &Path, suffix: &str) -> io::Result<(File, u32)> {
    let pid = std::process::id();
    for number in 0..NUMBERS_MOST {
        let path = folder.join(format!("{pid}-{number}{suffix}"));
        match open(File::options().read(true).write(true).create_new(true).mode(0o600), &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, number)),
        }
    }
    let text = format!("it has all files {pid}-0{suffix} to {pid}-{}{suffix}: empty it", NUMBERS_MOST - 1);
    Err(io::Error::new(ErrorKind::AlreadyExists, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{chown, symlink};
    use std::path::PathBuf;
    use std::process::Command;

    /// A folder of a test, which is removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tidegate-files-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            fs::write(self.0.join(name), text).unwrap();
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn said(outcome: io::Result<File>) -> String {
        outcome.expect_err("it is refused").to_string()
    }

    /// Everything that another user can put in the place of a file, and what is said of it.
    fn impostors(folder: &Folder) -> Vec<(PathBuf, &'static str)> {
        let [pipe, link, second, inside] = ["pipe", "link", "second", "inside"].map(|name| folder.0.join(name));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let precious = folder.file("precious", "precious");
        symlink(&precious, &link).unwrap();
        fs::hard_link(&precious, &second).unwrap();
        fs::create_dir(&inside).unwrap();
        vec![
            (pipe, "it is a pipe, not a file"),
            (link, "it is a link, not a file"),
            (second, "it has 2 names"),
            (inside, "it is a folder, not a file"),
            ("/dev/zero".into(), "it is a device, not a file"),
        ]
    }

    #[test]
    fn what_is_no_file_of_ours_is_refused_at_once_and_left_as_it_is() {
        let folder = Folder::new("impostors");
        for (path, fault) in impostors(&folder) {
            for said in [said(open_left(&path)), said(open_own(&path))] {
                assert!(said.starts_with(fault) && said.contains("remove it, or name a folder"), "{path:?}: {said}");
            }
            let error = create_new(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{path:?}");
            assert!(error.to_string().contains(" stands there already: remove it"), "{path:?}: {error}");
            assert_eq!(check_replaceable(&path).is_ok(), fault.starts_with("it has"), "{path:?}");
        }
        // A pipe that somebody reads can be opened for writing, and is refused all the same.
        let pipe = folder.0.join("pipe");
        let _reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
        assert!(said(open_own(&pipe)).starts_with("it is a pipe"));
        assert_eq!(fs::read_to_string(folder.0.join("precious")).unwrap(), "precious");
    }

    #[test]
    fn a_file_replaces_what_has_its_name_and_follows_nothing_but_a_folder_stays() {
        let folder = Folder::new("replaced");
        for (path, fault) in impostors(&folder).into_iter().filter(|(path, _)| path.starts_with(&folder.0)) {
            let fresh = folder.file("fresh", "fresh");
            match replace(&path, &fresh) {
                Ok(()) => assert_eq!(fs::read_to_string(&path).unwrap(), "fresh", "{path:?}"),
                Err(error) => assert!(path.is_dir() && error.to_string().starts_with(fault), "{path:?}: {error}"),
            }
        }
        assert_eq!(fs::read_to_string(folder.0.join("precious")).unwrap(), "precious");
        let error = named(Path::new("a/b"), refused("it is a pipe")).to_string();
        assert!(error.starts_with("a/b: it is a pipe: remove it"), "{error}");
    }

    #[test]
    fn a_file_of_another_user_is_read_in_that_users_folder_only() {
        let folder = Folder::new("users");
        let path = folder.file("page", "text");
        assert_eq!(read_left(&path, 3).unwrap(), b"tex");
        if chown(&path, Some(65534), None).is_err() {
            return eprintln!("SKIPPED: only root makes files of another user");
        }
        let refusal = said(open_left(&path));
        assert!(refusal.starts_with("it belongs to user 65534, not to user 0"), "{refusal}");
        assert!(said(open_own(&path)).starts_with("it belongs to user 65534"));
        chown(&folder.0, Some(65534), None).unwrap();
        assert_eq!(read_left(&path, 100).unwrap(), b"text");
        assert!(said(open_own(&path)).starts_with("it belongs to user 65534"), "it is not ours to write to");
    }

    #[test]
    fn new_files_take_the_first_number_that_nothing_has() {
        let folder = Folder::new("numbers");
        let pid = std::process::id();
        symlink(folder.0.join("target"), folder.0.join(format!("{pid}-0.x"))).unwrap();
        folder.file(&format!("{pid}-1.x"), "");
        let (mut file, number) = create_numbered(&folder.0, ".x").unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!((number, file.metadata().unwrap().mode() & 0o777), (2, 0o600));
        assert_eq!(fs::read_to_string(folder.0.join(format!("{pid}-2.x"))).unwrap(), "text");
        assert!(!folder.0.join("target").exists(), "links are not followed");
    }
}
