//! Whether this system lets two processes of a job copy between their memories, tried as endpoints try it (`bulk`) but
//! without an endpoint: one process shows a [`ReadableWord`], and another one calls [`read_word`].

use super::bulk::{self, ProbedMemory};
use super::cookie::Cookie;
use crate::secret::random;
use std::io;

/// A random number in the memory of this process, which other processes are permitted to read.
#[derive(Debug)]
pub struct ReadableWord(Cookie);

impl ReadableWord {
    /// Makes the number, and permits reading as an endpoint does. The error: there is no memory.
    pub fn new() -> io::Result<ReadableWord> {
        bulk::permit();
        Cookie::new(random()).map(ReadableWord)
    }

    /// The address at which it is.
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// The number.
    pub fn value(&self) -> u64 {
        self.0.value()
    }
}

/// Reads the word at an address of another process. The error says what the system said, and what would help.
pub fn read_word(pid: u32, address: u64, value: u64) -> Result<(), String> {
    ProbedMemory::probe(pid, address, value).map(|_| ())
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_its_own_word_and_no_other() {
        let word = ReadableWord::new().unwrap();
        let this = std::process::id();
        assert_eq!(read_word(this, word.address(), word.value()), Ok(()));
        assert!(read_word(this, word.address(), word.value() ^ 1).unwrap_err().contains("different containers"));
        assert!(read_word(u32::MAX >> 1, word.address(), word.value()).is_err(), "there is no such process");
    }
}
