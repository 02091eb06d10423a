//! Which pages belong to the same launch: a script under one `tidegate run` may launch several jobs, one after the
//! other or at the same time, and rank 0 of one is not rank 0 of another.
//!
//! Launchers that name their jobs (Open MPI, Slurm) tell. Of others it is known which process has started a rank: one
//! for all ranks of a host, or, under a wrapper, one for each. So such groups are put together again if they may be of
//! one job: as many ranks, no rank twice, alive at the same time.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_link::EndpointStats;

/// What a process that has started a rank is called in a page.
const PARENT: &str = "parent ";

/// Pages that are of one launch.
struct Group {
    pages: Vec<EndpointStats>,
}

impl Group {
    fn is_like(&self, page: &EndpointStats) -> bool {
        let first = &self.pages[0];
        let is_by_name = !first.launch.as_deref().is_some_and(|launch| launch.starts_with(PARENT));
        let is_same_host = is_by_name || first.host == page.host;
        (&first.launch, first.job_size) == (&page.launch, page.job_size) && is_same_host && !self.has_other(page)
    }

    /// Whether a page is of the same rank and another process.
    fn has_other(&self, page: &EndpointStats) -> bool {
        let process = (&page.host, page.pid);
        page.rank.is_some()
            && self.pages.iter().any(|other| other.rank == page.rank && (&other.host, other.pid) != process)
    }

    fn ranks(&self) -> BTreeSet<Option<u32>> {
        self.pages.iter().map(|page| page.rank).collect()
    }

    fn started(&self) -> Duration {
        self.pages.iter().map(|page| page.started).min().unwrap_or_default()
    }

    /// When the last of it closed; `None`: some did not close.
    fn closed(&self) -> Option<Duration> {
        self.pages.iter().map(|page| page.closed).try_fold(Duration::ZERO, |last, closed| Some(last.max(closed?)))
    }

    fn may_be_of_one_job_with(&self, other: &Group) -> bool {
        let is_nameless = |group: &Group| {
            let launch = group.pages[0].launch.as_deref();
            launch.is_none_or(|launch| launch.starts_with(PARENT)) && group.pages.iter().all(|page| page.rank.is_some())
        };
        let begins_before_end = |one: &Group, other: &Group| other.closed().is_none_or(|end| one.started() <= end);
        is_nameless(self)
            && is_nameless(other)
            && self.pages[0].job_size == other.pages[0].job_size
            && self.ranks().is_disjoint(&other.ranks())
            && begins_before_end(self, other)
            && begins_before_end(other, self)
    }
}

/// The pages of each launch, in the order in which they began.
pub fn split(mut pages: Vec<EndpointStats>) -> Vec<Vec<EndpointStats>> {
    pages.sort_by_key(|page| page.started);
    let mut groups: Vec<Group> = Vec::new();
    for page in pages {
        match groups.iter_mut().find(|group| group.is_like(&page)) {
            Some(group) => group.pages.push(page),
            None => groups.push(Group { pages: vec![page] }),
        }
    }
    let mut launches: Vec<Group> = Vec::new();
    for group in groups {
        match launches.iter_mut().find(|launch| launch.may_be_of_one_job_with(&group)) {
            Some(launch) => launch.pages.extend(group.pages),
            None => launches.push(group),
        }
    }
    launches.sort_by_key(Group::started);
    launches.into_iter().map(|launch| launch.pages).collect()
}

/// What was open in launches when they ended has lasted until then. The last one has lasted until `end`, since the
/// epoch; one before it that did not close, until the first began that began after all that is known of it.
pub fn last_until(launches: &mut [Vec<EndpointStats>], end: Duration) {
    let started: Vec<Duration> =
        launches.iter().map(|pages| pages.iter().map(|page| page.started).min().unwrap_or_default()).collect();
    for pages in launches {
        let known = pages.iter().map(|page| page.written.max(page.started)).max().unwrap_or_default();
        let ended = started.iter().copied().filter(|started| *started > known).min().unwrap_or(end).min(end);
        pages.iter_mut().for_each(|page| page.lasts_until(ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(pid: u32, rank: u32, size: u32, launch: &str, lives: (u64, Option<u64>)) -> EndpointStats {
        let mut page = EndpointStats::blank(pid, Some(rank), Some(size));
        page.launch = Some(launch.to_owned());
        page.started = Duration::from_secs(lives.0);
        page.closed = lives.1.map(Duration::from_secs);
        page.ended = page.closed.is_some();
        page
    }

    /// The process ids of each launch.
    fn pids(pages: Vec<EndpointStats>) -> Vec<Vec<u32>> {
        let of = |mut pages: Vec<EndpointStats>| {
            pages.sort_by_key(|page| page.pid);
            pages.iter().map(|page| page.pid).collect()
        };
        split(pages).into_iter().map(of).collect()
    }

    #[test]
    fn two_launches_one_after_the_other_stay_apart() {
        for (first, second) in [("parent 7", "parent 8"), ("job@1", "job@2"), ("job@1", "job@1")] {
            let pages = vec![
                page(21, 0, 2, second, (5, Some(9))),
                page(11, 0, 2, first, (1, Some(4))),
                page(12, 1, 2, first, (1, Some(4))),
                page(22, 1, 2, second, (5, Some(9))),
            ];
            assert_eq!(pids(pages), [[11, 12], [21, 22]], "{first} {second}");
        }
    }

    #[test]
    fn two_launches_at_the_same_time_stay_apart() {
        let pages = vec![
            page(11, 0, 2, "parent 7", (1, None)),
            page(21, 0, 2, "parent 8", (1, None)),
            page(12, 1, 2, "parent 7", (2, None)),
            page(22, 1, 2, "parent 8", (2, None)),
        ];
        assert_eq!(pids(pages), [[11, 12], [21, 22]]);
    }

    #[test]
    fn ranks_of_several_hosts_and_ranks_under_wrappers_are_one_launch() {
        let mut elsewhere = page(12, 1, 3, "parent 9", (1, Some(4)));
        elsewhere.host = "other".into();
        let pages =
            vec![page(11, 0, 3, "parent 7", (1, Some(4))), elsewhere, page(13, 2, 3, "parent 10", (2, Some(4)))];
        assert_eq!(pids(pages), [[11, 12, 13]]);
    }

    #[test]
    fn endpoints_of_a_process_are_of_one_launch() {
        let pages = vec![page(11, 0, 1, "parent 7", (1, Some(4))), page(11, 0, 1, "parent 7", (2, Some(3)))];
        assert_eq!(pids(pages), [[11, 11]]);
    }

    #[test]
    fn what_a_killed_launch_left_open_lasts_until_the_next_begins() {
        let open = |pid, launch, started, written| {
            let mut page = page(pid, 0, 1, launch, (started, None));
            (page.written, page.is_current) = (Duration::from_secs(written), true);
            page.open.receives.push(tidegate_link::stats::OpenReceive {
                from: None,
                tag: None,
                ignore: 0,
                bytes: 0,
                age: Duration::ZERO,
                is_arriving: false,
                is_probe: false,
            });
            page
        };
        let mut launches = split(vec![open(1, "a", 1, 2), open(2, "b", 10, 12)]);
        last_until(&mut launches, Duration::from_secs(20));
        let ages: Vec<u64> = launches.iter().map(|pages| pages[0].open.receives[0].age.as_secs()).collect();
        assert_eq!(ages, [8, 8]);
    }
}
