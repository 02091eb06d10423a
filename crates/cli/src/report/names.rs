//! What endpoints, which pages name by random ids, are called in a report: ranks, where they are known.

use std::collections::HashMap;

use tidegate_link::EndpointStats;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Its process id.
    pub pid: u32,
}

impl Who {
    /// `rank 3`, or `pid 4711` where the rank is not known.
    pub fn label(self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("pid {}", self.pid),
        }
    }
}

/// Processes by the ids of their endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(HashMap<u64, Who>);

impl Names {
    /// The processes that have left these pages.
    pub fn of(pages: &[EndpointStats]) -> Names {
        Names(pages.iter().map(|page| (page.endpoint, Who { rank: page.rank, pid: page.pid })).collect())
    }

    /// Whose an endpoint is, if its page is here.
    pub fn find(&self, endpoint: u64) -> Option<Who> {
        self.0.get(&endpoint).copied()
    }

    /// What it is called.
    pub fn label(&self, endpoint: u64) -> String {
        self.find(endpoint).map_or_else(|| "a rank without counters here".to_owned(), Who::label)
    }

    /// A text of a process in which others are named by their process ids, with their ranks.
    pub fn with_ranks(&self, text: &str) -> String {
        let mut told = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("pid ") {
            let (before, behind) = rest.split_at(at);
            let digits = behind[4..].bytes().take_while(u8::is_ascii_digit).count();
            let (name, after) = behind.split_at(4 + digits);
            told += before;
            let pid = name[4..].parse::<u32>().ok();
            let known = self.0.values().find(|who| Some(who.pid) == pid && who.rank.is_some());
            told += &known.map_or_else(|| name.to_owned(), |who| format!("{} ({name})", who.label()));
            rest = after;
        }
        told + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_ids_in_texts_get_their_ranks() {
        let names = Names([(7, Who { rank: Some(3), pid: 471 }), (8, Who { rank: None, pid: 9 })].into());
        let text = "pid 471 has lost messages to pid 4711 and pid 9, pid 471";
        let expected = "rank 3 (pid 471) has lost messages to pid 4711 and pid 9, rank 3 (pid 471)";
        assert_eq!(names.with_ranks(text), expected);
        assert_eq!((names.label(7), names.label(8)), ("rank 3".to_owned(), "pid 9".to_owned()));
        assert_eq!(names.with_ranks("pid "), "pid ");
    }
}
