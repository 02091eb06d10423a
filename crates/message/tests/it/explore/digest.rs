//! What tells one state of an endpoint from another.

use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

/// Text that is hashed. Receives and peeks are numbered in order of posting, and a program may peek for ever: what
/// counts is their order, so their ranks stand for the numbers.
#[derive(Default)]
pub struct Digest(String);

impl Digest {
    /// The hash.
    pub fn finish(&self) -> u64 {
        let mut parts = self.0.split("Number(");
        let mut hasher = DefaultHasher::new();
        hasher.write(parts.next().unwrap_or_default().as_bytes());
        let numbered = |part: &'_ str| -> Option<(u64, usize)> {
            let end = part.find(')')?;
            Some((part[..end].parse().ok()?, end))
        };
        let parts: Vec<(u64, &str)> =
            parts.map(|part| numbered(part).map(|(number, end)| (number, &part[end..])).expect("a number")).collect();
        let mut numbers: Vec<u64> = parts.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for (number, rest) in parts {
            hasher.write_usize(numbers.partition_point(|other| *other < number));
            hasher.write(rest.as_bytes());
        }
        hasher.finish()
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        Ok(())
    }
}
