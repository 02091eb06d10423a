//! One look at a job: its pages by process, and which of the processes are there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::time::Duration;

use tidegate_link::{EndpointStats, plain, since_epoch, stats};
use tidegate_message::Counter;

use crate::process::{self, Here, Process};
use crate::report::launches;
use crate::top::page::Page;

/// What the pages of a folder said at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// When, since the epoch.
    pub at: Duration,
    /// The processes, in order of rank, then process id.
    pub processes: Vec<Seen>,
}

/// A process with its endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its endpoints; there is at least one.
    pub pages: Vec<Page>,
    /// Whether the process exists; `None` on another host.
    pub exists: Option<bool>,
    /// What its system says of it, if it exists on this host.
    pub process: Option<Process>,
    /// Since when, at the latest, no message of it has moved, since the epoch; `None`: this look is the first.
    pub quiet_since: Option<Duration>,
    /// The same since when it has not written its pages, by the clock of the looks: that of another host may differ.
    pub silent_since: Option<Duration>,
}

/// What tells processes of a folder apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Host; empty if unknown.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// Rank; a number may be used again.
    pub rank: Option<u32>,
}

impl Look {
    /// Takes over from the look before since when processes are quiet.
    pub fn follow(&mut self, before: &Look) {
        let mut earlier: HashMap<Identity, &Seen> =
            before.processes.iter().map(|seen| (seen.identity(), seen)).collect();
        for seen in &mut self.processes {
            let Some(earlier) = earlier.remove(&seen.identity()) else { continue };
            let since = |changed: bool, known: Option<Duration>| match changed {
                true => Some(self.at),
                false => known.or(Some(before.at)),
            };
            seen.quiet_since = since(seen.has_moved_since(earlier), earlier.quiet_since);
            seen.silent_since = since(seen.written() != earlier.written(), earlier.silent_since);
        }
    }
}

impl Seen {
    /// The first endpoint, which stands for the process where all of them say the same.
    pub fn first(&self) -> &Page {
        &self.pages[0]
    }

    /// What tells it from other processes.
    pub fn identity(&self) -> Identity {
        let page = self.first();
        Identity { host: page.host.clone(), pid: page.pid, rank: page.rank }
    }

    /// A counter over all endpoints.
    pub fn get(&self, counter: Counter) -> u64 {
        counter.within_process().of(self.pages.iter().map(|page| page.get(counter)))
    }

    /// When it last wrote what is open, since the epoch, by the clock of its host.
    pub fn written(&self) -> Option<Duration> {
        self.pages.iter().filter_map(|page| page.written).max()
    }

    /// Whether all endpoints were closed in order.
    pub fn has_ended(&self) -> bool {
        self.pages.iter().all(|page| page.ended)
    }

    /// Whether messages of it moved since `before`.
    pub fn has_moved_since(&self, before: &Seen) -> bool {
        const MESSAGES: [Counter; 5] = [
            Counter::MessagesEager,
            Counter::MessagesRendezvous,
            Counter::MessagesSelf,
            Counter::BytesSent,
            Counter::BytesReceived,
        ];
        MESSAGES.into_iter().any(|counter| self.get(counter) != before.get(counter))
    }
}

/// One launch of a folder: a script may start several, one after the other or at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The endpoint that opened first, by which the launch is known again.
    pub first: u64,
    /// What its pages said.
    pub look: Look,
}

/// What is in a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The launches, in the order in which they began.
    pub launches: Vec<Launch>,
    /// That some pages cannot be read, and why.
    pub gap: Option<String>,
}

/// Looks at the pages in a folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn look(folder: &Path) -> io::Result<Found> {
    let pages = stats::read_dir(folder)?;
    // Names of files in another user's folder may hold anything.
    let gap = pages.gap().map(|gap| plain(&gap));
    Ok(Found { gap, launches: by_launch(pages.read, since_epoch(), &Here::as_of_now()) })
}

fn by_launch(pages: Vec<EndpointStats>, at: Duration, here: &Here) -> Vec<Launch> {
    let find = |page: &EndpointStats| {
        let found = here.find(&page.host, page.pid, Some(page.started));
        (found.map(|found| found.is_some() || process::is_hidden(page.pid)), found.flatten())
    };
    let launch = |mut pages: Vec<EndpointStats>| {
        let first = pages.first().map_or(0, |page| page.endpoint);
        pages.sort_by_key(|page| (page.rank.unwrap_or(u32::MAX), page.pid, page.serial));
        Launch { first, look: Look { at, processes: by_process(pages, find) } }
    };
    launches::split(pages).into_iter().map(launch).collect()
}

/// A launch that has ended, as it was at the last sign of any of its processes. Those count as gone whose death others
/// have noticed.
pub fn last_look(pages: &[EndpointStats]) -> Look {
    let dead: Vec<u64> = pages.iter().filter_map(|page| page.first_dead).collect();
    let exists = |page: &EndpointStats| (Some(!dead.contains(&page.endpoint)), None);
    let at = pages.iter().map(|page| page.polled.max(page.started)).max().unwrap_or_default();
    Look { at, processes: by_process(pages.to_vec(), exists) }
}

/// `find`: whether a process exists, and what its system says of it, as far as that is known.
fn by_process(
    pages: Vec<EndpointStats>,
    find: impl Fn(&EndpointStats) -> (Option<bool>, Option<Process>),
) -> Vec<Seen> {
    let mut processes: Vec<Seen> = Vec::new();
    let mut places: HashMap<Identity, usize> = HashMap::new();
    for page in pages {
        let (exists, process) = find(&page);
        let pages = vec![Page::from(page)];
        let seen = Seen { pages, exists, process, quiet_since: None, silent_since: None };
        match places.entry(seen.identity()) {
            Entry::Occupied(known) => processes[*known.get()].pages.extend(seen.pages),
            Entry::Vacant(new) => {
                new.insert(processes.len());
                processes.push(seen);
            }
        }
    }
    processes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::top::page::tests::page;

    /// A process with one endpoint, that exists.
    pub fn seen(rank: u32, values: &[(Counter, u64)]) -> Seen {
        Seen {
            pages: vec![page(rank, values)],
            exists: Some(true),
            process: None,
            quiet_since: None,
            silent_since: None,
        }
    }

    /// How many endpoints each process of each launch has.
    fn shape(pages: Vec<EndpointStats>) -> Vec<Vec<usize>> {
        let launches = by_launch(pages, Duration::from_secs(9), &Here::as_of_now());
        let sizes = |launch: &Launch| launch.look.processes.iter().map(|seen| seen.pages.len()).collect();
        launches.iter().map(sizes).collect()
    }

    fn of_launch(rank: u32, launch: &str, started: u64, serial: u32) -> EndpointStats {
        let mut page = EndpointStats::blank(10 * started as u32 + rank, Some(rank), Some(2));
        (page.launch, page.started, page.serial) = (Some(launch.into()), Duration::from_secs(started), serial);
        page
    }

    #[test]
    fn endpoints_of_a_process_come_together_and_launches_stay_apart() {
        let pages =
            vec![of_launch(0, "b", 2, 0), of_launch(0, "a", 1, 0), of_launch(0, "a", 1, 1), of_launch(1, "a", 1, 0)];
        assert_eq!(shape(pages), [vec![2, 1], vec![1]]);
    }

    #[test]
    fn ranks_that_several_processes_have_started_are_one_launch() {
        // Under a wrapper script, or on two hosts, a launcher that does not name its jobs starts each rank otherwise.
        let mut elsewhere = of_launch(1, "parent 9", 1, 0);
        elsewhere.host = "other".into();
        assert_eq!(shape(vec![of_launch(0, "parent 7", 1, 0), elsewhere]), [[1, 1]]);
        assert_eq!(shape(vec![of_launch(0, "parent 7", 1, 0), of_launch(1, "parent 8", 1, 0)]), [[1, 1]]);
        assert_eq!(shape(vec![of_launch(0, "parent 7", 1, 0), of_launch(0, "parent 8", 1, 1)]), [[1], [1]]);
    }

    #[test]
    fn it_is_remembered_since_when_a_process_is_quiet() {
        let look = |at: u64, sent: u64| Look {
            at: Duration::from_secs(at),
            processes: vec![seen(0, &[(Counter::BytesSent, sent)])],
        };
        let mut looks = [look(1, 5), look(2, 5), look(3, 6), look(4, 6), look(5, 6)];
        for next in 1..looks.len() {
            let (before, now) = looks.split_at_mut(next);
            now[0].follow(&before[next - 1]);
        }
        let since = looks.map(|look| look.processes[0].quiet_since.map(|time| time.as_secs()));
        assert_eq!(since, [None, Some(1), Some(3), Some(3), Some(3)]);
    }

    #[test]
    fn counters_of_endpoints_add_up_or_the_largest_counts() {
        let mut both = seen(0, &[(Counter::BytesSent, 5), (Counter::MailboxPeak, 7)]);
        both.pages.push(page(0, &[(Counter::BytesSent, 6), (Counter::MailboxPeak, 3)]));
        assert_eq!((both.get(Counter::BytesSent), both.get(Counter::MailboxPeak)), (11, 7));
        assert!(both.has_moved_since(&seen(0, &[(Counter::BytesSent, 10)])));
        assert!(!both.has_moved_since(&seen(0, &[(Counter::BytesSent, 11)])));
    }
}
