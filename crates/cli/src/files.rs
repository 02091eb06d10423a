//! Files that commands write: whole or not at all, and comma-separated values.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tidegate_link::files::check_replaceable;

/// The folder that a file is in.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Writes a file such that whoever reads it meanwhile finds the old one or the new one: two processes may have results
/// for one folder at the same time.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = folder_of(path);
    let mode = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a file whole, as [`write_whole`] does, that all users may read, whatever the umask of this process is. A link
/// of that name is replaced, not followed.
///
/// # Errors
/// If it cannot be written, or something stands there that is no file.
pub fn write_public(path: &Path, text: &str) -> io::Result<()> {
    check_public(path)?;
    // The draft's name, which `tempfile` tells, differs each time: a failure that lasts would look like a new one.
    let without_name = |error: io::Error| match error.to_string().rsplit_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what.to_owned()),
        None => error,
    };
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(without_name)?;
    file.write_all(text.as_bytes()).map_err(without_name)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether [`write_public`] may replace what stands there: a file, a link or nothing.
///
/// # Errors
/// If it is something else, such as a device.
pub fn check_public(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(facts) if !facts.is_file() && !facts.is_symlink() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file, and only such a file can be replaced as a whole",
        )),
        _ => Ok(()),
    }
}

/// Writes a file that a user has named: a device or a pipe is written to, a file is replaced when all is there, so that
/// a full disk leaves the old one.
///
/// # Errors
/// If it cannot be written.
pub fn write_output(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.exists() && !target.is_file() {
        return fs::write(path, text);
    }
    match write_whole(&target, text) {
        // The file may be ours where the folder is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fs::write(path, text),
        written => written,
    }
}

/// Writes a file under a name that the program has chosen.
///
/// # Errors
/// If it cannot be written, or something stands there that is no file.
pub fn write_chosen(path: &Path, text: &str) -> io::Result<()> {
    check_replaceable(path)?;
    write_whole(path, text)
}

/// Comma-separated values, quoted where they have to be (RFC 4180).
#[must_use]
pub fn csv<'a>(rows: impl IntoIterator<Item = &'a Vec<String>>) -> String {
    let cell = |cell: &String| match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    let line = |row: &Vec<String>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    rows.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_name_at_which_a_pipe_stands_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let said = write_chosen(&path, "text").unwrap_err().to_string();
        assert!(said.starts_with("it is a pipe, not a file: remove it"), "{said}");
        fs::remove_file(&path).unwrap();
        (0..2).for_each(|_| write_chosen(&path, "text").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let rows = [vec!["a,b".to_owned(), "say \"x\"".to_owned(), "plain".to_owned()]];
        assert_eq!(csv(&rows), "\"a,b\",\"say \"\"x\"\"\",plain\n");
    }
}
