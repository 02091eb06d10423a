//! What went wrong in a process, left beside its counters so that `tidegate run` can say it at the end: a launcher may
//! lose what the process has printed, or bury it under its own messages.
//!
//! A file per process, a line per text. It is named like a page of counters, `<pid>-<n>`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const SUFFIX: &str = ".troubles";
/// What is read of one process at most, in bytes. The provider says 64 texts at most.
const BYTES_MOST: usize = 1 << 16;

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
    let path = folder.join(format!("{}-0{SUFFIX}", std::process::id()));
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all((text.replace('\n', " ") + "\n").as_bytes())
}

/// What all processes left in the folder: each text once, those of most processes first. What cannot be read is passed
/// over.
pub fn read_dir(folder: &Path) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(SUFFIX)).collect();
    files.sort_unstable();
    for bytes in files.iter().filter_map(|path| fs::read(path).ok()) {
        for text in String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MOST)]).lines() {
            match troubles.iter_mut().find(|trouble| trouble.text == text) {
                Some(trouble) => trouble.processes += 1,
                None => troubles.push(Trouble { text: text.to_owned(), processes: 1 }),
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
