//! Metrics in a file, which the textfile collector of the node exporter reads: once, or again and again.
//!
//! A file that is not written any more must not look alive. So it is removed when the writer is asked to end, and when
//! it cannot write a new one. Only SIGKILL and a crash leave it; then `tidegate_exporter_look_timestamp_seconds` in it
//! tells how old it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tidegate_link::log::print_line;

use super::exporter::{Exported, Exporter};
use super::text::{Format, render};
use crate::failure::Failure;
use crate::files::{check_public, write_public};
use crate::top::watch::pause;

/// From the first look to the second, which is the first that is written: that ranks wait takes two looks to see.
pub const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// Its name where a folder is named: the node exporter reads all that end so.
const NAME: &str = "tidegate.prom";

/// The file that the command line means.
///
/// # Errors
/// If it can never be written: something else than a file stands there, or it seems to be a folder that is missing.
pub fn target(named: &Path) -> Result<PathBuf, Failure> {
    let path = if named.is_dir() { named.join(NAME) } else { named.to_owned() };
    check_public(&path).map_err(|error| Failure::write(&path, &error))?;
    if path.extension().is_none() && path.symlink_metadata().is_err() {
        let what = "there is no such folder, and a file is named with its ending, as in tidegate.prom";
        return Err(Failure::usage(format!("{}: {what}", path.display())));
    }
    Ok(path)
}

/// Writes it. Where that fails, an earlier one is removed.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_public(path, text).map_err(|error| {
        remove(path);
        Failure::write(path, &error)
    })
}

/// Writes it in intervals until something comes from `end`, and removes it then.
///
/// # Errors
/// If the first one cannot be written. Later failures are told, and it is tried again.
pub fn keep(
    path: &Path,
    exporter: &mut Exporter,
    every: Duration,
    format: Format,
    end: &Receiver<()>,
) -> Result<(), Failure> {
    let write = |exported: &Exported| write(path, &render(&exported.families, format));
    exporter.look();
    if !ends_within(every.min(FIRST_INTERVAL), end) {
        let mut exported = exporter.look();
        write(&exported)?;
        let mut told = None;
        while !ends_within(pause(every, exported.cost), end) {
            exported = exporter.look();
            let failure = write(&exported).err().map(|failure| failure.to_string());
            if let Some(text) = failure.as_ref().filter(|_| failure != told) {
                print_line(text);
            }
            told = failure;
        }
    }
    remove(path);
    Ok(())
}

fn ends_within(time: Duration, end: &Receiver<()>) -> bool {
    end.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
}

/// Removes it, and nothing that is none of our files: a device may stand there now.
fn remove(path: &Path) {
    if check_public(path).is_err() {
        return;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            print_line(&format!("cannot remove {}, whose metrics are old from now on: {error}", path.display()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_folder_gets_a_file_that_the_node_exporter_takes() {
        let folder = tempfile::tempdir().unwrap();
        let path = target(folder.path()).unwrap();
        assert_eq!(path, folder.path().join("tidegate.prom"));
        assert_eq!(target(&path).unwrap(), path);
        (0..2).for_each(|_| write(&path, "x 1\n").unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        let said = write(Path::new("/dev/null"), "").unwrap_err().to_string();
        assert!(said.contains("/dev/null: it is no regular file"), "{said}");
        let missing = folder.path().join("no/x.prom");
        let said = write(&missing, "").unwrap_err().to_string();
        // A draft's name in it would make each failure of a row look like a new one.
        assert!(said.contains("no/x.prom: ") && said == write(&missing, "").unwrap_err().to_string(), "{said}");
        for named in [Path::new("/dev/null"), &folder.path().join("missing-folder")] {
            assert_eq!(target(named).unwrap_err().code, crate::failure::USAGE, "{}", named.display());
        }
    }

    #[test]
    fn what_is_no_file_of_ours_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("x.prom");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (tell, end) = channel();
        tell.send(()).unwrap();
        let _ = keep(&pipe, &mut Exporter::new(false), Duration::from_secs(1), Format::Prometheus, &end);
        assert!(write(&pipe, "").is_err() && pipe.exists());
    }

    #[test]
    fn it_is_there_until_the_end_and_not_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        let (tell, end) = channel();
        let writer = thread::spawn({
            let path = path.clone();
            move || {
                let mut exporter = Exporter::new(false);
                keep(&path, &mut exporter, Duration::from_millis(20), Format::Prometheus, &end).unwrap();
            }
        });
        while !path.exists() {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(fs::read_to_string(&path).unwrap().contains("\ntidegate_jobs "));
        tell.send(()).unwrap();
        writer.join().unwrap();
        assert!(!path.exists());
    }
}
