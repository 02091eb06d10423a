//! One look at a job: its pages by process, and which of the processes are there.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use tidegate_link::stats;
use tidegate_message::{Aggregate, Counter};

use crate::jobs::now;
use crate::process;
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
    /// Since when, at the latest, no message of it has moved, since the epoch; `None`: this look is the first.
    pub quiet_since: Option<Duration>,
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
            let since = earlier.remove(&seen.identity()).map(|earlier| match seen.has_moved_since(earlier) {
                true => self.at,
                false => earlier.quiet_since.unwrap_or(before.at),
            });
            seen.quiet_since = since;
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
        let values = self.pages.iter().map(|page| page.get(counter));
        match counter.aggregate() {
            Aggregate::Sum => values.fold(0, u64::saturating_add),
            Aggregate::Max => values.max().unwrap_or(0),
        }
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

/// Looks at the pages in a folder, those of each launch by themselves: a script may start several jobs one after the
/// other.
pub fn look(folder: &Path) -> io::Result<Vec<(Option<String>, Look)>> {
    let pages = stats::read_dir(folder)?.into_iter().map(Page::from).collect();
    Ok(by_launch(pages, now(), &Here::new()))
}

/// What is known of the processes of this host.
struct Here {
    host: String,
    host_started: Option<Duration>,
}

impl Here {
    fn new() -> Self {
        Here { host: process::host_name(), host_started: process::host_started() }
    }

    fn exists(&self, page: &Page) -> Option<bool> {
        if !page.host.is_empty() && page.host != self.host {
            return None;
        }
        let Some(found) = process::find(page.pid).filter(|found| !found.is_zombie) else { return Some(false) };
        // One that started after the endpoint opened has got the number of one that is gone.
        let started = self.host_started.map(|host| host + process::ticks(found.started_ticks));
        let is_later = started.zip(page.started).is_some_and(|(process, endpoint)| process > endpoint + ACCURACY);
        Some(!is_later)
    }
}

/// How far the start of a process may seem to lie behind that of its endpoint: the host's start is known in whole
/// seconds.
const ACCURACY: Duration = Duration::from_secs(2);

fn by_launch(pages: Vec<Page>, at: Duration, here: &Here) -> Vec<(Option<String>, Look)> {
    let mut looks: Vec<(Option<String>, Look)> = Vec::new();
    let mut places: HashMap<(Option<String>, Identity), (usize, usize)> = HashMap::new();
    for page in pages {
        let launch = page.launch.clone();
        let exists = here.exists(&page);
        let seen = Seen { pages: vec![page], exists, quiet_since: None };
        let key = (launch.clone(), seen.identity());
        if let Some((look, process)) = places.get(&key) {
            looks[*look].1.processes[*process].pages.extend(seen.pages);
            continue;
        }
        let look = looks.iter().position(|(known, _)| *known == launch).unwrap_or_else(|| {
            looks.push((launch, Look { at, processes: Vec::new() }));
            looks.len() - 1
        });
        places.insert(key, (look, looks[look].1.processes.len()));
        looks[look].1.processes.push(seen);
    }
    looks
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::top::page::tests::page;

    /// A process with one endpoint, that exists.
    pub fn seen(rank: u32, values: &[(Counter, u64)]) -> Seen {
        Seen { pages: vec![page(rank, values)], exists: Some(true), quiet_since: None }
    }

    #[test]
    fn endpoints_of_a_process_come_together_and_launches_stay_apart() {
        let with = |rank, launch: &str, serial| Page { launch: Some(launch.into()), serial, ..page(rank, &[]) };
        let pages = vec![with(0, "a", 0), with(0, "a", 1), with(0, "b", 0), with(1, "a", 0)];
        let looks = by_launch(pages, Duration::from_secs(9), &Here { host: "h".into(), host_started: None });
        let shape: Vec<_> = looks
            .iter()
            .map(|(launch, look)| {
                (launch.as_deref(), look.processes.iter().map(|seen| seen.pages.len()).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(shape, [(Some("a"), vec![2, 1]), (Some("b"), vec![1])]);
    }

    #[test]
    fn who_exists_is_known_on_this_host_only() {
        let here = Here { host: "h".into(), host_started: Some(Duration::ZERO) };
        let this = Page { host: "h".into(), pid: std::process::id(), ..page(0, &[]) };
        assert_eq!(here.exists(&this), Some(true));
        assert_eq!(here.exists(&Page { pid: u32::MAX, ..this.clone() }), Some(false));
        assert_eq!(here.exists(&Page { host: "other".into(), ..this.clone() }), None);
        assert_eq!(
            here.exists(&Page { started: Some(Duration::ZERO), ..this }),
            Some(false),
            "its number is used again"
        );
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
