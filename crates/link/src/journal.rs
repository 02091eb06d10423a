//! A file that its process appends to by mapping it, part by part: what was written is there however the process ends,
//! and writing makes no system call but one for each part.
//!
//! Layout: a page of 64-bit words (see `Word`; the rest is the caller's), then the bytes that were appended. How many
//! these are stands in the page, and is stored after them: a reader never sees a record that is half there. Words and
//! what records are made of have the byte order of this machine, as the other files here.

use crate::files::{create_numbered, open_left};
use crate::shm::memory_map::{self, Access, Mapping, PAGE_MOST};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Marks a journal; the last byte is the version of the layout.
const MAGIC: u64 = u64::from_be_bytes(*b"TIDEJNL\x01");
/// Bytes in front of what is appended, a page.
const HEAD_BYTES: usize = PAGE_MOST;
/// Bytes that are mapped at a time.
const PART_BYTES: usize = 1 << 20;
/// Words of the page that belong to the caller.
pub const WORDS: usize = 32;

/// The words of the page that are the journal's.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    Magic,
    /// Bytes that have been appended.
    Length,
    /// Whether something was to be appended that found no room.
    IsCut,
    /// The first of the caller's.
    First,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    head: Mapping,
    part: Mapping,
    /// Where the part begins, among the bytes that are appended.
    part_at: usize,
    length: usize,
    most: usize,
}

// SAFETY: a mapping belongs to the process and not to a thread, and the journal alone has pointers into its own.
unsafe impl Send for Journal {}

/// There is no room for what was to be appended: the bound is reached, or the disk is full. Nothing of it was written,
/// and the journal takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Journal {
    /// Makes a new file `<pid>-<n><suffix>` in the folder, which takes at most so many bytes. `words` describe it.
    ///
    /// # Errors
    /// The folder is missing, full, or not ours to write to.
    pub fn create(folder: &Path, suffix: &str, most: usize, words: &[u64]) -> io::Result<Journal> {
        let (file, _) = create_numbered(folder, suffix)?;
        memory_map::allocate(&file, 0..HEAD_BYTES + PART_BYTES)?;
        let head = Mapping::new(&file, 0, HEAD_BYTES, Access::Write)?;
        let part = Mapping::new(&file, HEAD_BYTES, PART_BYTES, Access::Write)?;
        let journal = Journal { file, head, part, part_at: 0, length: 0, most };
        assert!(words.len() <= WORDS, "words of a journal's page");
        for (index, word) in words.iter().enumerate() {
            journal.word(Word::First as usize + index).store(*word, Ordering::Relaxed);
        }
        journal.word(Word::Magic as usize).store(MAGIC, Ordering::Release);
        Ok(journal)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: inside a live mapping; an atomic.
        unsafe { self.head.value::<AtomicU64>(index * 8).as_ref() }
    }

    /// Appends these bytes, as a whole or not at all.
    ///
    /// # Errors
    /// [`Full`], from the first time on for ever.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.most - self.length {
            return Err(self.cut());
        }
        let (begin, end) = (self.length, self.part_at + PART_BYTES);
        let here = bytes.len().min(end - begin);
        self.put(&bytes[..here]);
        if here < bytes.len() {
            if self.map_next().is_err() {
                self.length = begin;
                return Err(self.cut());
            }
            self.put(&bytes[here..]);
        }
        // The bytes are there before the length says so, also for a reader of the file after this process was killed.
        self.word(Word::Length as usize).store(self.length as u64, Ordering::Release);
        Ok(())
    }

    /// Copies bytes that fit into the part that is mapped.
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let at = self.length - self.part_at;
        assert!(bytes.len() <= PART_BYTES - at, "outside the part");
        let part = self.part.slice::<AtomicU64>(0, PART_BYTES / 8).cast::<u8>();
        // SAFETY: inside a live mapping, as just checked. Nobody else maps this file: readers read it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), part.as_ptr().add(at), bytes.len()) };
        self.length += bytes.len();
    }

    /// Maps the part that follows the one that is full.
    #[cold]
    fn map_next(&mut self) -> io::Result<()> {
        let at = self.part_at + PART_BYTES;
        memory_map::allocate(&self.file, HEAD_BYTES + at..HEAD_BYTES + at + PART_BYTES)?;
        self.part = Mapping::new(&self.file, HEAD_BYTES + at, PART_BYTES, Access::Write)?;
        self.part_at = at;
        Ok(())
    }

    /// Nothing is appended any more.
    #[cold]
    fn cut(&mut self) -> Full {
        self.word(Word::IsCut as usize).store(1, Ordering::Relaxed);
        self.most = self.length;
        Full
    }
}

/// What a process left in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What was appended.
    pub bytes: Vec<u8>,
    /// Whether something found no room, so that what follows is missing.
    pub is_cut: bool,
    words: Vec<u64>,
}

impl Left {
    /// Reads a journal; `None`: its process ended before it had begun one.
    ///
    /// # Errors
    /// It cannot be read, or is no journal of this version.
    pub fn read(path: &Path) -> io::Result<Option<Left>> {
        let mut file = open_left(path)?;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        let words: Vec<u64> = head.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        match word(Word::Magic as usize) {
            MAGIC => {}
            0 => return Ok(None),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "not a trace of this version of tidegate")),
        }
        let own = Word::First as usize..Word::First as usize + WORDS;
        let Some(own) = words.get(own) else {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file has lost its end, and all that was recorded",
            ));
        };
        let (mut bytes, length) = (Vec::new(), word(Word::Length as usize));
        file.take(length).read_to_end(&mut bytes)?;
        // A copy may have lost its end, too.
        let is_cut = word(Word::IsCut as usize) != 0 || bytes.len() as u64 != length;
        Ok(Some(Left { bytes, is_cut, words: own.to_vec() }))
    }

    /// A word of the description.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder of this test, and the path of the first journal in it.
    fn folder(name: &str) -> (std::path::PathBuf, std::path::PathBuf) {
        let folder = std::env::temp_dir().join(format!("tidegate-journal-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let first = folder.join(format!("{}-0.x", std::process::id()));
        (folder, first)
    }

    #[test]
    fn what_was_appended_is_read_while_the_journal_is_open() {
        let (folder, path) = folder("open");
        let mut journal = Journal::create(&folder, ".x", 4 * PART_BYTES, &[7, 8]).unwrap();
        let mut expected = Vec::new();
        // Records that cross from one part into the next, twice.
        for number in 0..3000_u32 {
            let record = vec![number as u8; 700];
            journal.append(&record).unwrap();
            expected.extend(record);
        }
        let left = Left::read(&path).unwrap().unwrap();
        assert_eq!((left.word(0), left.word(1), left.is_cut), (7, 8, false));
        assert!(left.bytes == expected && expected.len() > PART_BYTES);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_finds_no_room_is_left_out_as_a_whole_and_with_it_all_that_follows() {
        let (folder, path) = folder("full");
        let mut journal = Journal::create(&folder, ".x", 100, &[]).unwrap();
        journal.append(&[1; 60]).unwrap();
        assert_eq!(journal.append(&[2; 60]), Err(Full));
        assert_eq!(journal.append(&[3; 1]), Err(Full), "else something would be missing in the middle");
        let left = Left::read(&path).unwrap().unwrap();
        assert_eq!((left.bytes, left.is_cut), (vec![1; 60], true));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_has_lost_its_end_is_cut() {
        let (folder, path) = folder("short");
        let mut journal = Journal::create(&folder, ".x", 1000, &[5]).unwrap();
        journal.append(&[1; 60]).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in (8..HEAD_BYTES).step_by(HEAD_BYTES / 4096).chain(HEAD_BYTES..HEAD_BYTES + 60) {
            fs::write(&path, &whole[..length]).unwrap();
            match Left::read(&path) {
                Ok(left) => {
                    let left = left.unwrap();
                    assert_eq!(
                        (left.bytes.len() + HEAD_BYTES, left.is_cut, left.word(0)),
                        (length.max(HEAD_BYTES), true, 5)
                    );
                }
                Err(error) => {
                    assert!(length < HEAD_BYTES && error.kind() == io::ErrorKind::UnexpectedEof, "{length}: {error}")
                }
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn other_files_are_refused_and_unfinished_ones_passed_over() {
        let (folder, path) = folder("other");
        fs::write(&path, "something else, of more than a few bytes").unwrap();
        assert!(Left::read(&path).is_err());
        fs::write(&path, [0; 5000]).unwrap();
        assert_eq!(Left::read(&path).unwrap(), None);
        fs::write(&path, "").unwrap();
        assert_eq!(Left::read(&path).unwrap(), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
