//! Which pages belong to the same launch: a script under one `tidegate run` may launch several jobs, one after the
//! other or at the same time, and rank 0 of one is not rank 0 of another.
//!
//! Launchers that name their jobs (Open MPI, Slurm) tell. Of others it is known which process has started a rank: one
//! for all ranks of a host, or, under a wrapper, one for each. So such groups are put together again if they may be of
//! one job: as many ranks, no rank twice, alive at the same time.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_link::EndpointStats;

/// What a process that has started a rank is called in a page.
const PARENT: &str = "parent ";

/// What is known of an endpoint, as far as it says to which launch it belongs.
pub trait Member {
    /// What tells the launch from others.
    fn launch(&self) -> Option<&str>;
    /// The host and number of the process.
    fn process(&self) -> (&str, u32);
    /// The rank of the process, if known.
    fn rank(&self) -> Option<u32>;
    /// Ranks of the job, if known.
    fn job_size(&self) -> Option<u32>;
    /// When it opened, since the epoch; zero if that is not known.
    fn started(&self) -> Duration;
    /// When it closed; `None`: it did not, or that is not known.
    fn closed(&self) -> Option<Duration>;
}

impl Member for EndpointStats {
    fn launch(&self) -> Option<&str> {
        self.launch.as_deref()
    }

    fn process(&self) -> (&str, u32) {
        (&self.host, self.pid)
    }

    fn rank(&self) -> Option<u32> {
        self.rank
    }

    fn job_size(&self) -> Option<u32> {
        self.job_size
    }

    fn started(&self) -> Duration {
        self.started
    }

    fn closed(&self) -> Option<Duration> {
        self.closed
    }
}

/// Endpoints that are of one launch, by their places.
struct Group {
    members: Vec<usize>,
    /// The first endpoint of each rank, and the last of them that has none.
    ranks: HashMap<Option<u32>, usize>,
    started: Duration,
    /// When the last of it closed; `None`: some did not close.
    closed: Option<Duration>,
}

impl Group {
    fn of(at: usize, member: &impl Member) -> Self {
        let (started, closed) = (member.started(), member.closed());
        Group { members: vec![at], ranks: [(member.rank(), at)].into(), started, closed }
    }

    fn add(&mut self, other: Group) {
        self.members.extend(other.members);
        other.ranks.into_iter().for_each(|(rank, at)| _ = self.ranks.entry(rank).or_insert(at));
        self.started = self.started.min(other.started);
        self.closed = self.closed.zip(other.closed).map(|(one, other)| one.max(other));
    }

    fn is_like<M: Member>(&self, all: &[M], member: &M) -> bool {
        let first = &all[self.members[0]];
        let is_by_name = !first.launch().is_some_and(|launch| launch.starts_with(PARENT));
        let is_same_host = is_by_name || first.process().0 == member.process().0;
        let is_of_other = || {
            let known = member.rank().and_then(|_| self.ranks.get(&member.rank()));
            known.is_some_and(|at| all[*at].process() != member.process())
        };
        (first.launch(), first.job_size()) == (member.launch(), member.job_size()) && is_same_host && !is_of_other()
    }

    fn may_be_of_one_job_with<M: Member>(&self, all: &[M], other: &Group) -> bool {
        let is_nameless = |group: &Group| {
            let launch = all[group.members[0]].launch();
            launch.is_none_or(|launch| launch.starts_with(PARENT)) && !group.ranks.contains_key(&None)
        };
        let begins_before_end = |one: &Group, other: &Group| other.closed.is_none_or(|end| one.started <= end);
        let size = |group: &Group| all[group.members[0]].job_size();
        let (few, many) = if self.ranks.len() < other.ranks.len() { (self, other) } else { (other, self) };
        size(self) == size(other)
            && is_nameless(self)
            && is_nameless(other)
            && !few.ranks.keys().any(|rank| many.ranks.contains_key(rank))
            && begins_before_end(self, other)
            && begins_before_end(other, self)
    }
}

/// The endpoints of each launch, in the order in which they began.
pub fn split<M: Member>(mut all: Vec<M>) -> Vec<Vec<M>> {
    all.sort_by_key(Member::started);
    let mut groups: Vec<Group> = Vec::new();
    // Most groups of a large job are of other processes' ranks: only those with the same name are looked at.
    let mut named: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
    for (at, member) in all.iter().enumerate() {
        let of_name = named.entry(member.launch()).or_default();
        let known = of_name.iter().copied().find(|group| groups[*group].is_like(&all, member));
        let alone = Group::of(at, member);
        match known {
            Some(group) => groups[group].add(alone),
            None => {
                of_name.push(groups.len());
                groups.push(alone);
            }
        }
    }
    let mut launches: Vec<Group> = Vec::new();
    for group in groups {
        match launches.iter_mut().find(|launch| launch.may_be_of_one_job_with(&all, &group)) {
            Some(launch) => launch.add(group),
            None => launches.push(group),
        }
    }
    launches.sort_by_key(|launch| launch.started);
    let mut all: Vec<Option<M>> = all.into_iter().map(Some).collect();
    let take = |launch: Group| launch.members.into_iter().filter_map(|at| all[at].take()).collect();
    launches.into_iter().map(take).collect()
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
                since: Duration::ZERO,
                is_arriving: false,
                is_probe: false,
            });
            page
        };
        let mut launches = split(vec![open(1, "a", 1, 2), open(2, "b", 10, 12)]);
        last_until(&mut launches, Duration::from_secs(20));
        let ages: Vec<u64> = launches.iter().map(|pages| pages[0].open.receives[0].age().as_secs()).collect();
        assert_eq!(ages, [8, 8]);
    }
}
