//! What went wrong in a process, left beside its counters so that `tidegate run` can say it at the end: a launcher may
//! lose what the process has printed, or bury it under its own messages.
//!
//! A file per process, a line per text. It is named like a page of counters, `<pid>-<n>`: with the first number at
//! which nothing stands, or a file of an earlier process of this user that had the same id.

use crate::files::{create_numbered, open_own, read_left};
use crate::plain::plain;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

const SUFFIX: &str = ".troubles";
/// What is read of one process at most, in bytes. The provider says 64 texts at most.
const BYTES_MOST: u64 = 1 << 16;
/// Numbers at which a process looks for its file before it makes one.
const NUMBERS_TRIED: u32 = 16;

/// One thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What the processes said.
    pub text: String,
    /// How many of them said it.
    pub processes: usize,
}

/// Leaves a text of this process in the folder. Errors: the folder is missing, full, or not ours to write to.
pub fn leave(folder: &Path, text: &str) -> io::Result<()> {
    let path = |number: u32| folder.join(format!("{}-{number}{SUFFIX}", std::process::id()));
    let own = (0..NUMBERS_TRIED).find_map(|number| open_own(&path(number)).ok());
    let mut file = own.map_or_else(|| create_numbered(folder, SUFFIX).map(|(file, _)| file), Ok)?;
    file.write_all((text.replace('\n', " ") + "\n").as_bytes())
}

/// What all processes left in the folder: each text once, those of most processes first. What cannot be read is passed
/// over.
pub fn read_dir(folder: &Path) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(SUFFIX)).collect();
    files.sort_unstable();
    for bytes in files.iter().filter_map(|path| read_left(path, BYTES_MOST).ok()) {
        for text in String::from_utf8_lossy(&bytes).lines().map(plain) {
            match troubles.iter_mut().find(|trouble| trouble.text == text) {
                Some(trouble) => trouble.processes += 1,
                None => troubles.push(Trouble { text, processes: 1 }),
            }
        }
    }
    // Stable: what is as frequent stays in order.
    troubles.sort_by_key(|trouble| std::cmp::Reverse(trouble.processes));
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fi_tidegate(7): "Tidegate writes there into files that it has made itself, and follows no links and waits for no
    /// pipes."
    #[test]
    fn links_and_pipes_in_place_of_the_file_are_neither_written_nor_waited_for_nor_read() {
        let folder = std::env::temp_dir().join(format!("tidegate-troubles-impostors-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [link, pipe, precious, device] =
            ["0", "1", "precious", "7"].map(|name| folder.join(format!("{}-{name}{SUFFIX}", std::process::id())));
        fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        leave(&folder, "one").unwrap();
        leave(&folder, "two").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        fs::remove_file(&precious).unwrap();
        let texts: Vec<String> = read_dir(&folder).into_iter().map(|trouble| trouble.text).collect();
        assert_eq!((texts, fs::read_dir(&folder).unwrap().count()), (vec!["one".into(), "two".into()], 4));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_text_of_another_process_speaks_to_the_terminal() {
        let folder = std::env::temp_dir().join(format!("tidegate-troubles-plain-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("1-0.troubles"), "a\u{1b}[31m\u{9b}1m\r\u{202e}\n").unwrap();
        let found = read_dir(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found[0].text, "a\u{fffd}[31m\u{fffd}1m\u{fffd}\u{fffd}");
    }

    #[test]
    fn texts_of_many_processes_come_together() {
        let folder = std::env::temp_dir().join(format!("tidegate-troubles-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        leave(&folder, "rare\nin two lines").unwrap();
        leave(&folder, "common").unwrap();
        fs::write(folder.join("1-0.troubles"), "common\n").unwrap();
        fs::write(folder.join("1-0.counters"), "no trouble\n").unwrap();
        let found = read_dir(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let said = |text: &str, processes| Trouble { text: text.to_owned(), processes };
        assert_eq!(found, [said("common", 2), said("rare in two lines", 1)]);
        assert_eq!(read_dir(&folder), []);
    }
}
