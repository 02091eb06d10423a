//! Follows chains of waits to where they end.
//!
//! The simple idea: who is waited for most is to blame. It fails where ranks wait in a row: the second of a pipeline is
//! waited for as long as the last, which alone is slow. The next idea, to follow each wait to a rank that waits for
//! nobody, fails where everybody waits a little: a slow receiver also waits now and then for those that wait for it, so
//! that all make one circle.
//!
//! So a rank *passes the blame on* only if it waits itself for at least half of the time that somebody waits for it,
//! and only to those for whom it waits at least half as long as for any ([`PASSES_ON`]). What is left is cut into
//! circles (strongly connected components), and the chains end at those that no wait leaves.
//!
//! A receive that nobody serves ends a chain, too: its sender goes on with other messages and nobody else waits nearly
//! as long for one of it. Without this rule the sender would be blamed, which does what its program says.

use super::{End, Finding, Member, Presence, Root, Wait, Waits};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;
use tidegate_message::WaitCause;

/// Waits for less of the time than this are left out.
const SHARE_LEAST: f64 = 0.02;
/// A rank that waits for at least this part of the time that others wait for it passes the blame on; and of its own
/// waits, those count that are at least this part of its longest.
const PASSES_ON: f64 = 0.5;
/// A receive that has waited for this long is not served, if its sender goes on.
const UNSENT_AFTER: Duration = Duration::from_secs(1);
/// Ranks that a sender serves in turn wait for about the same time: one that waits this many times as long as all
/// others is not one of them.
const SERVED_WITHIN: u32 = 10;
/// A receive that has waited for less is one of many that a rank posts on its way.
const STUCK_AFTER: Duration = Duration::from_millis(100);
/// For so many ends of chains it is counted who waits for them; the others are left out.
const ENDS_MOST: usize = 64;

/// A rank that waits for another for whatever cause.
#[derive(Clone, Copy, Debug)]
struct Link {
    waiter: usize,
    awaited: usize,
    /// Part of the time, all causes together, at most 1.
    share: f64,
}

/// Finds who holds up the others.
pub fn find(job: &Waits) -> Finding {
    let size = job.members.len();
    let unsent = unsent(job);
    let links = links(job);
    let own = strongest(size, &links, |link| link.waiter);
    let waiting = own.iter().filter(|share| **share >= SHARE_LEAST).count();
    let kept = passed_on(job, &links, &own, &unsent);
    let circles = circles(size, &kept);
    let mut ends: Vec<(f64, Vec<usize>)> = ends(size, &kept, &circles, &unsent);
    ends.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    ends.truncate(ENDS_MOST);
    let incoming = incoming(size, &kept);
    let mut roots: Vec<Root> =
        ends.into_iter().map(|(_, ranks)| root(job, ranks, &own, &kept, &incoming, &unsent)).collect();
    roots.sort_by(|one, other| {
        let order = other.weight.total_cmp(&one.weight).then(other.longest.cmp(&one.longest));
        order.then(first(&one.end).cmp(&first(&other.end)))
    });
    Finding { roots, waiting }
}

/// The first rank of an end.
fn first(end: &End) -> usize {
    match end {
        End::Rank(rank) | End::Unsent { rank, .. } => *rank,
        End::Circle { ranks, .. } => ranks[0],
    }
}

/// Each pair once.
fn links(job: &Waits) -> Vec<Link> {
    let size = job.members.len();
    let is_sound = |wait: &&Wait| wait.waiter != wait.awaited && wait.waiter < size && wait.awaited < size;
    let mut links: Vec<Link> = job
        .waits
        .iter()
        .filter(is_sound)
        .map(|wait| Link { waiter: wait.waiter, awaited: wait.awaited, share: wait.share.clamp(0.0, 1.0) })
        .collect();
    links.sort_by_key(|link| (link.waiter, link.awaited));
    links.dedup_by(|next, kept| {
        let same = (next.waiter, next.awaited) == (kept.waiter, kept.awaited);
        if same {
            kept.share = (kept.share + next.share).min(1.0);
        }
        same
    });
    links.retain(|link| link.share >= SHARE_LEAST);
    links
}

/// The largest share of the links of each rank, which is at one end of them.
fn strongest(size: usize, links: &[Link], end: impl Fn(&Link) -> usize) -> Vec<f64> {
    let mut most = vec![0.0_f64; size];
    for link in links {
        let cell = &mut most[end(link)];
        *cell = cell.max(link.share);
    }
    most
}

/// The two longest waits of different ranks for a message of the same one.
#[derive(Clone, Copy, Default)]
struct Longest {
    waiter: usize,
    age: Duration,
    second: Duration,
}

impl Longest {
    fn add(&mut self, waiter: usize, age: Duration) {
        if waiter == self.waiter {
            self.age = self.age.max(age);
        } else if age > self.age {
            *self = Longest { waiter, age, second: self.age };
        } else {
            self.second = self.second.max(age);
        }
    }

    /// The longest of any rank but this.
    fn of_others(&self, waiter: usize) -> Duration {
        if waiter == self.waiter { self.second } else { self.age }
    }
}

/// For each rank, its wait for a message which is not sent although its sender goes on.
fn unsent(job: &Waits) -> Vec<Option<usize>> {
    let size = job.members.len();
    let is_message = |wait: &Wait| wait.cause == WaitCause::Message && wait.awaited < size && wait.waiter < size;
    let mut longest = vec![Longest::default(); size];
    for wait in job.waits.iter().filter(|wait| is_message(wait)) {
        longest[wait.awaited].add(wait.waiter, wait.open_for.unwrap_or_default());
    }
    let goes_on = |member: &Member| member.moves && member.presence.is_there();
    let mut unsent = vec![None; size];
    for (place, wait) in job.waits.iter().enumerate().filter(|(_, wait)| is_message(wait)) {
        let is_old = wait.open_for.is_some_and(|age| age >= UNSENT_AFTER);
        let is_stuck = !job.members[wait.waiter].moves;
        let others = longest[wait.awaited].of_others(wait.waiter);
        let is_alone = wait.open_for.is_some_and(|age| others < age / SERVED_WITHIN);
        if is_old && is_stuck && is_alone && goes_on(&job.members[wait.awaited]) {
            unsent[wait.waiter].get_or_insert(place);
        }
    }
    unsent
}

/// The links by which blame goes on.
fn passed_on(job: &Waits, links: &[Link], own: &[f64], unsent: &[Option<usize>]) -> Vec<Link> {
    let awaited = strongest(job.members.len(), links, |link| link.awaited);
    let is_kept = |link: &&Link| {
        let waiter = link.waiter;
        unsent[waiter].is_none()
            && !matches!(job.members[waiter].presence, Presence::Gone | Presence::Ended)
            && own[waiter] >= PASSES_ON * awaited[waiter]
            && link.share >= PASSES_ON * own[waiter]
    };
    links.iter().filter(is_kept).copied().collect()
}

/// For each rank, the links that end at it.
fn incoming(size: usize, links: &[Link]) -> Vec<Vec<usize>> {
    let mut incoming = vec![Vec::new(); size];
    for (place, link) in links.iter().enumerate() {
        incoming[link.awaited].push(place);
    }
    incoming
}

/// The number of the circle of each rank; a rank in no circle has one for itself. (Tarjan's strongly connected
/// components, without recursion: chains may be as long as a job.)
fn circles(size: usize, links: &[Link]) -> Vec<usize> {
    let mut first_link = vec![links.len(); size + 1];
    for (place, link) in links.iter().enumerate().rev() {
        first_link[link.waiter] = place;
    }
    let of = |rank: usize| first_link[rank]..links.len();
    const NONE: usize = usize::MAX;
    let (mut order, mut low, mut circle) = (vec![NONE; size], vec![0; size], vec![NONE; size]);
    let (mut open, mut next, mut circle_count) = (Vec::new(), 0, 0);
    for start in 0..size {
        if order[start] != NONE {
            continue;
        }
        let mut path = vec![(start, of(start).start)];
        while let Some((rank, place)) = path.last_mut() {
            let (rank, here) = (*rank, *place);
            if order[rank] == NONE {
                (order[rank], low[rank]) = (next, next);
                next += 1;
                open.push(rank);
            }
            if let Some(link) = links.get(here).filter(|link| link.waiter == rank) {
                *place += 1;
                match order[link.awaited] {
                    NONE => path.push((link.awaited, of(link.awaited).start)),
                    seen if circle[link.awaited] == NONE => low[rank] = low[rank].min(seen),
                    _ => {}
                }
                continue;
            }
            if low[rank] == order[rank] {
                while let Some(member) = open.pop() {
                    circle[member] = circle_count;
                    if member == rank {
                        break;
                    }
                }
                circle_count += 1;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                low[*before] = low[*before].min(low[rank]);
            }
        }
    }
    circle
}

/// The circles and ranks at which chains end, each with the sum of the shares of those that wait for it directly.
fn ends(size: usize, links: &[Link], circles: &[usize], unsent: &[Option<usize>]) -> Vec<(f64, Vec<usize>)> {
    let count = circles.iter().max().map_or(0, |most| most + 1);
    let mut ends: Vec<(f64, Vec<usize>)> = vec![(0.0, Vec::new()); count];
    let (mut leaves, mut is_awaited) = (vec![false; count], vec![false; count]);
    for rank in 0..size {
        ends[circles[rank]].1.push(rank);
        is_awaited[circles[rank]] |= unsent[rank].is_some();
    }
    for link in links {
        let (from, to) = (circles[link.waiter], circles[link.awaited]);
        is_awaited[to] = true;
        leaves[from] |= from != to;
        ends[to].0 += link.share;
    }
    let mut number = 0;
    ends.retain(|_| {
        number += 1;
        is_awaited[number - 1] && !leaves[number - 1]
    });
    ends
}

/// What to say of an end of chains.
fn root(
    job: &Waits,
    ranks: Vec<usize>,
    own: &[f64],
    links: &[Link],
    incoming: &[Vec<usize>],
    unsent: &[Option<usize>],
) -> Root {
    let is_circle = ranks.len() > 1;
    let mut reached = reached(&ranks, links, incoming);
    if !is_circle {
        reached.retain(|rank| *rank != ranks[0]);
    }
    let is_end = mask(job.members.len(), &ranks);
    let direct: Vec<&Wait> = job.waits.iter().filter(|wait| is_end.get(wait.awaited) == Some(&true)).collect();
    let by_cause =
        |cause: WaitCause| direct.iter().filter(|wait| wait.cause == cause).map(|wait| wait.share).sum::<f64>();
    let cause = WaitCause::ALL
        .iter()
        .copied()
        .reduce(|most, cause| if by_cause(cause) > by_cause(most) { cause } else { most });
    let mut found = Root {
        end: End::Rank(ranks[0]),
        holds_up: reached.len(),
        held: Vec::new(),
        weight: reached.iter().map(|rank| own[*rank]).sum(),
        cause: cause.unwrap_or(WaitCause::Message),
        longest: direct.iter().filter_map(|wait| wait.open_for).max(),
        share: direct.iter().map(|wait| wait.share).fold(0.0, f64::max),
    };
    reached.sort_unstable();
    found.held = reached;
    if is_circle {
        found.end = circle(job, ranks, &is_end, links);
    } else if let Some(wait) = unsent[ranks[0]] {
        found.end = End::Unsent { rank: ranks[0], wait };
        if found.held.is_empty() {
            // It holds up itself alone.
            let wait = &job.waits[wait];
            (found.longest, found.share, found.weight) = (wait.open_for, wait.share, wait.share);
        }
    }
    found
}

/// Which of `size` ranks are among `ranks`.
fn mask(size: usize, ranks: &[usize]) -> Vec<bool> {
    let mut mask = vec![false; size];
    ranks.iter().for_each(|rank| mask[*rank] = true);
    mask
}

/// All ranks from which a chain leads to one of `ranks`, those included.
fn reached(ranks: &[usize], links: &[Link], incoming: &[Vec<usize>]) -> Vec<usize> {
    let mut is_seen = mask(incoming.len(), ranks);
    let mut reached = ranks.to_vec();
    let mut next = 0;
    while let Some(rank) = reached.get(next).copied() {
        next += 1;
        for waiter in incoming[rank].iter().map(|place| links[*place].waiter) {
            if !is_seen[waiter] {
                is_seen[waiter] = true;
                reached.push(waiter);
            }
        }
    }
    reached
}

/// A circle, from the rank on whose wait is unlike those of all others: where ranks wait in a collective call for one
/// that waits for a message of its own, their receives are alike, and its receive is not.
fn circle(job: &Waits, mut ranks: Vec<usize>, is_in: &[bool], links: &[Link]) -> End {
    // By their words: some MPIs have the rank of the sender among the bits of a tag.
    let mut alike: HashMap<&str, usize> = HashMap::new();
    for receive in job.waits.iter().filter_map(|wait| wait.receive.as_ref()) {
        *alike.entry(&receive.text).or_default() += 1;
    }
    let is_inside = |wait: &Wait| {
        let is_kept =
            links.binary_search_by_key(&(wait.waiter, wait.awaited), |link| (link.waiter, link.awaited)).is_ok();
        is_kept && is_in.get(wait.waiter) == Some(&true) && is_in.get(wait.awaited) == Some(&true)
    };
    let inside = job.waits.iter().enumerate().filter(|(_, wait)| is_inside(wait));
    // Ranks that go on wait for one message after the other, and none of these is what holds them up.
    let lasts = |wait: &Wait| !job.members[wait.waiter].moves && wait.open_for.is_none_or(|age| age >= STUCK_AFTER);
    let oddness = |(place, wait): (usize, &Wait)| {
        let receive = wait.receive.as_ref().filter(|_| lasts(wait))?;
        // One of a collective call is what many others wait in, even if none of them is in the circle.
        Some((!receive.is_of_all, Reverse(alike[receive.text.as_str()]), wait.open_for, Reverse(place)))
    };
    let odd = inside.filter_map(oddness).max().map(|(.., place)| place.0);
    let start = odd.map_or(ranks[0], |place| job.waits[place].waiter);
    let only_next = |rank: usize| {
        let own = &links[links.partition_point(|link| link.waiter < rank)..];
        let mut inside = own.iter().take_while(|link| link.waiter == rank).filter(|link| is_in[link.awaited]);
        inside.next().map(|link| link.awaited).filter(|_| inside.next().is_none())
    };
    let mut ring = vec![start];
    while ring.len() < ranks.len()
        && let Some(next) = only_next(ring[ring.len() - 1]).filter(|next| *next != start)
    {
        ring.push(next);
    }
    let is_ring = ring.len() == ranks.len() && only_next(ring[ring.len() - 1]) == Some(start);
    if is_ring {
        ranks = ring;
    }
    End::Circle { ranks, ring: is_ring, odd }
}
