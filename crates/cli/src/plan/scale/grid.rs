//! Places in grids: rank = row-major index, the last axis fastest, as MPI_Cart_create numbers them.

use std::fmt;

/// How far a neighbour lies along each axis.
pub type Step = [i8; 3];

/// A grid of two or three dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Ranks along each axis.
    pub sizes: Vec<u32>,
    /// Whether the last along an axis is a neighbour of the first: a torus.
    pub wraps: bool,
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u32::to_string).collect();
        write!(f, "{} of {}", if self.wraps { "torus" } else { "mesh" }, sizes.join("x"))
    }
}

impl Grid {
    /// Where a rank lies.
    fn place(&self, rank: u32) -> Vec<u32> {
        let mut rest = rank;
        let mut place: Vec<u32> = self.sizes.iter().rev().map(|size| (rest % size, rest /= size).0).collect();
        place.reverse();
        place
    }

    fn rank(&self, place: &[u32]) -> u32 {
        self.sizes.iter().zip(place).fold(0, |rank, (size, at)| rank * size + at)
    }

    /// The neighbour by a step; `None` beyond the edge of a mesh.
    pub fn neighbour(&self, rank: u32, step: Step) -> Option<u32> {
        let mut place = self.place(rank);
        for ((at, size), by) in place.iter_mut().zip(&self.sizes).zip(step) {
            let moved = i64::from(*at) + i64::from(by);
            let inside = (0..i64::from(*size)).contains(&moved);
            if !inside && !self.wraps {
                return None;
            }
            *at = moved.rem_euclid(i64::from(*size)) as u32;
        }
        Some(self.rank(&place))
    }

    /// The step from one rank to another, if they are neighbours, over corners too.
    pub fn step(&self, rank: u32, peer: u32) -> Option<Step> {
        let mut step = [0; 3];
        for (axis, (from, to)) in self.place(rank).into_iter().zip(self.place(peer)).enumerate() {
            let size = self.sizes[axis];
            step[axis] = match (i64::from(to) - i64::from(from), self.wraps) {
                (by @ -1..=1, _) => by as i8,
                (by, true) if by == 1 - i64::from(size) => 1,
                (by, true) if by == i64::from(size) - 1 => -1,
                _ => return None,
            };
        }
        (step != [0; 3]).then_some(step)
    }

    /// A rank that has all neighbours, if one has: one in the middle.
    pub fn middle(&self) -> u32 {
        self.rank(&self.sizes.iter().map(|size| size / 2).collect::<Vec<_>>())
    }

    /// The rank of this grid whose part one of a larger grid takes over: at an edge one at the same edge.
    pub fn like(&self, larger: &Grid, rank: u32) -> u32 {
        let place = larger.place(rank).into_iter().zip(&larger.sizes).zip(&self.sizes);
        let like = |((at, large), size): ((u32, &u32), &u32)| match self.wraps {
            true => at % size,
            false if at == 0 || *size < 3 => at.min(size - 1),
            false if at + 1 == *large => size - 1,
            false => 1 + (at - 1) % (size - 2),
        };
        self.rank(&place.map(like).collect::<Vec<_>>())
    }

    /// The grid of so many ranks that is most like this one. `None`: none is at least as long along each axis and has
    /// no axis that grows more than four times as much as another.
    pub fn grow(&self, ranks: u32) -> Option<Grid> {
        let growth = |sizes: &[u32]| -> f64 {
            let each = sizes.iter().zip(&self.sizes).map(|(now, before)| f64::from(*now) / f64::from(*before));
            let (least, most) = each.fold((f64::MAX, 0.0_f64), |(least, most), by| (least.min(by), most.max(by)));
            most / least
        };
        let fits = |sizes: &Vec<u32>| sizes.iter().zip(&self.sizes).all(|(now, before)| now >= before);
        let shapes = factorisations(ranks, self.sizes.len()).into_iter().filter(fits);
        let best = shapes.min_by(|one, other| growth(one).total_cmp(&growth(other)))?;
        (growth(&best) <= 4.0).then_some(Grid { sizes: best, wraps: self.wraps })
    }
}

/// All ways to write a number as a product of so many, order counts.
fn factorisations(number: u32, parts: usize) -> Vec<Vec<u32>> {
    if parts == 1 {
        return vec![vec![number]];
    }
    let divisors = (1..=number).filter(|first| number.is_multiple_of(*first));
    let with = |first: u32| {
        factorisations(number / first, parts - 1).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    divisors.flat_map(with).collect()
}

/// All grids of so many ranks with at least three along each axis: with fewer, one side is the other. Those that are
/// most like a square or cube first.
pub fn all(ranks: u32) -> Vec<Grid> {
    let mut shapes: Vec<Vec<u32>> = [2, 3]
        .into_iter()
        .flat_map(|axes| factorisations(ranks, axes))
        .filter(|sizes| sizes.iter().all(|size| *size >= 3))
        .collect();
    shapes.sort_by_key(|sizes| (sizes.len(), sizes.iter().max().copied()));
    let with = |sizes: Vec<u32>| [true, false].map(|wraps| Grid { sizes: sizes.clone(), wraps });
    shapes.into_iter().flat_map(with).collect()
}
