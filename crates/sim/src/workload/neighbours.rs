//! Exchanges of each process with a few others, which stay the same: halos of a grid, and sparse all-to-alls
//! (`MPI_Neighbor_alltoall`). However many processes a job has, each has few contacts.

use crate::Time;
use crate::buffer::Part;
use crate::random::Random;
use crate::task::Tag;
use crate::workload::Communicator;

/// The pairs of members that exchange messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The members are the points of a grid without edges, as cubic as their number allows, row by row. A member
    /// exchanges messages with the next points in both directions of each dimension, as the parts of a stencil code
    /// exchange their halos.
    Grid {
        /// Of the grid.
        dimensions: u32,
    },
    /// The distances in the circle of all members are drawn once, for all members alike.
    Drawn {
        /// The number of others of each member, an even number; all others where there are no more than that.
        count: u32,
        /// Decides the distances.
        seed: u64,
    },
}

/// The tag of all messages here.
const TAG: Tag = Tag(3);
/// The random stream of distances.
const DISTANCES: u64 = 0x6469_7374;

/// The lengths of a grid of `size` points, the shortest first: of all grids that there are, the one with the least sum.
fn lengths(size: u32, dimensions: u32) -> Vec<u32> {
    cubic(size.max(1), dimensions, 1)
}

/// Rows and columns of a matrix with `size` elements that is as square as it can be; no more rows than columns.
pub fn square(size: u32) -> [u32; 2] {
    let lengths = lengths(size, 2);
    [lengths[0], lengths[1]]
}

/// The same as [`lengths`], of lengths from `least` on.
fn cubic(points: u32, dimensions: u32, least: u32) -> Vec<u32> {
    let is_short = |length: &u32| length.checked_pow(dimensions).is_some_and(|all| all <= points);
    let first =
        (least..).take_while(|_| dimensions > 1).take_while(is_short).filter(|&length| points.is_multiple_of(length));
    let grids = first.map(|length| [vec![length], cubic(points / length, dimensions - 1, length)].concat());
    grids.min_by_key(|grid| grid.iter().map(|&length| u64::from(length)).sum::<u64>()).unwrap_or_else(|| vec![points])
}

impl Neighbours {
    /// The most others that a member of a group exchanges messages with.
    #[must_use]
    pub fn most(self, size: u32) -> u32 {
        let others = size.saturating_sub(1);
        match self {
            Neighbours::Grid { dimensions } => (2 * dimensions).min(others),
            Neighbours::Drawn { count, .. } => count.min(others),
        }
    }

    /// The neighbours of a member of a group, each once, in an order that leads all members to different ones at a
    /// time. A neighbour of the member has the member as a neighbour.
    #[must_use]
    pub fn of(self, member: u32, size: u32) -> Vec<u32> {
        let mut all = match self {
            Neighbours::Grid { dimensions } => on_grid(member, &lengths(size, dimensions)),
            Neighbours::Drawn { count, seed } => {
                let around = |distance: u32| [(member + distance) % size, (member + size - distance) % size];
                distances(size, count / 2, seed).into_iter().flat_map(around).collect()
            }
        };
        let mut seen = std::collections::HashSet::from([member]);
        all.retain(|other| seen.insert(*other));
        all
    }
}

/// The next points of a grid in both directions of each dimension.
fn on_grid(member: u32, lengths: &[u32]) -> Vec<u32> {
    let mut stride = 1;
    let both = lengths.iter().rev().flat_map(|&length| {
        let (at, step) = (member / stride % length, stride);
        stride *= length;
        [(at + 1) % length, (at + length - 1) % length].map(|next| member - at * step + next * step)
    });
    both.collect()
}

/// Different distances to others, as many as `count` says, or all there are. None of them is another one the other way
/// round, and half of the circle, which is the same both ways, is among them only if all are.
fn distances(size: u32, count: u32, seed: u64) -> Vec<u32> {
    let (both_ways, mut random) = (size.saturating_sub(1) / 2, Random::stream(seed, DISTANCES));
    if count > both_ways {
        return (1..=size / 2).collect();
    }
    if count.saturating_mul(2) >= both_ways {
        let drawn = random.permutation(both_ways).into_iter().take(count as usize);
        return drawn.map(|distance| distance + 1).collect();
    }
    let mut drawn = Vec::with_capacity(count as usize);
    while drawn.len() < count as usize {
        let distance = 1 + random.below(both_ways.into()) as u32;
        if !drawn.contains(&distance) {
            drawn.push(distance);
        }
    }
    drawn
}

/// The time per repetition of exchanging messages with all neighbours: all receives are posted, then all sends, and
/// then all are waited for. `into` has room for a message of each.
pub async fn exchange(
    group: &Communicator,
    others: &[u32],
    out: Part,
    into: Part,
    bytes: u64,
    repetitions: u32,
) -> Time {
    let task = group.task();
    let begin = task.now();
    for _ in 0..repetitions {
        let mut requests = Vec::with_capacity(2 * others.len());
        for (place, &other) in (0..).zip(others) {
            requests.push(group.start_receive(other, TAG, into.slice(place * bytes, bytes)).await);
        }
        for &other in others {
            requests.push(group.start_send(other, TAG, out).await);
        }
        task.wait_all(requests).await;
    }
    Time(task.now().since(begin).0 / u64::from(repetitions.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_cubic_as_their_number_allows() {
        assert_eq!(lengths(64, 3), [4, 4, 4]);
        assert_eq!(lengths(16_384, 3), [16, 32, 32]);
        assert_eq!(lengths(65_536, 2), [256, 256]);
        assert_eq!((lengths(24, 3), lengths(13, 2), lengths(1, 3)), (vec![2, 3, 4], vec![1, 13], vec![1, 1, 1]));
        assert_eq!((lengths(108, 3), lengths(68, 3), lengths(12, 2)), (vec![3, 6, 6], vec![2, 2, 17], vec![3, 4]));
    }

    #[test]
    fn the_neighbours_on_a_grid_are_the_next_ones_of_each_dimension() {
        let grid = Neighbours::Grid { dimensions: 2 };
        assert_eq!(grid.of(5, 16), [6, 4, 9, 1]);
        assert_eq!(grid.of(0, 16), [1, 3, 4, 12], "there is no edge");
        assert_eq!(grid.of(0, 4), [1, 2], "both directions lead to the same");
        assert_eq!((grid.of(0, 1), grid.of(3, 5)), (vec![], vec![4, 2]));
    }

    #[test]
    fn whoever_is_a_neighbour_has_it_as_a_neighbour() {
        let drawn = |count| Neighbours::Drawn { count, seed: 5 };
        for neighbours in [Neighbours::Grid { dimensions: 3 }, Neighbours::Grid { dimensions: 2 }, drawn(8), drawn(40)]
        {
            for size in [1, 2, 3, 9, 12, 64, 100] {
                for member in 0..size {
                    let others = neighbours.of(member, size);
                    assert!(others.len() as u32 <= neighbours.most(size) && !others.contains(&member));
                    assert!(others.iter().all(|&other| neighbours.of(other, size).contains(&member)), "{neighbours:?}");
                }
            }
        }
        for (size, count, expected) in
            [(100, 8, 8), (64, 8, 8), (4, 2, 2), (9, 8, 8), (10, 8, 8), (9, 40, 8), (10, 40, 9)]
        {
            for seed in 0..100 {
                assert_eq!(Neighbours::Drawn { count, seed }.of(3, size).len(), expected, "{count} of {size}");
            }
        }
        assert_ne!(drawn(8).of(3, 100), Neighbours::Drawn { count: 8, seed: 6 }.of(3, 100));
    }
}
