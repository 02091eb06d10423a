//! [`Aim`]: rules for the other end of a message, and [`Domain`]: what loops run over.

use super::grid::{Grid, Step};

/// What messages outside of loops go by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// Nothing: there are none.
    None,
    /// Constant distances in a ring of all ranks.
    Ring,
    /// Steps in a grid.
    Grid(Grid),
    /// One rank, which talks to all others.
    Star {
        /// Which.
        root: u32,
    },
}

/// What the rules of a program mean, for one number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// For messages outside of loops.
    pub fixed: Fixed,
    /// The root of a binomial tree, if there is one.
    pub tree: Option<u32>,
}

/// A rule for the other end of a message, seen from the rank that sends or receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Nobody: computation.
    Nobody,
    /// So far on in the ring; negative: back.
    Distance(i64),
    /// A neighbour in the grid.
    Neighbour(Step),
    /// The middle of the star.
    Root,
    /// The parent in the binomial tree.
    Parent,
    /// In a loop over the others: the k-th after the rank.
    After,
    /// The k-th before it.
    Before,
    /// The k-th of all others.
    Other,
    /// The one whose number differs by exclusive or with k.
    Xor,
    /// In a loop over bits: the one that differs in bit k.
    Bit,
    /// 2^k after the rank.
    AfterBit,
    /// 2^k before it.
    BeforeBit,
    /// In a loop over children: the child of the binomial tree at bit k.
    Child,
}

/// What a loop runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// All other ranks, as 1 to n − 1.
    Others,
    /// The bits of the largest rank, from 0.
    Bits,
    /// The bits at which the rank has children.
    Children,
}

impl Domain {
    /// The rules that messages in such a loop may have.
    pub fn aims(self) -> &'static [Aim] {
        match self {
            Domain::Others => &[Aim::After, Aim::Before, Aim::Other, Aim::Xor],
            Domain::Bits => &[Aim::AfterBit, Aim::BeforeBit, Aim::Bit],
            Domain::Children => &[Aim::Child],
        }
    }

    /// The fewest steps by which a loop is told from messages that only look like it.
    pub fn least(self) -> usize {
        if self == Domain::Children { 2 } else { 3 }
    }
}

impl Geometry {
    /// What a loop of this rank runs over, in its order.
    pub fn elements(&self, domain: Domain, descends: bool, rank: u32, ranks: u32) -> Vec<u32> {
        let bits = ranks.next_power_of_two().trailing_zeros();
        let mut all: Vec<u32> = match domain {
            Domain::Others => (1..ranks).collect(),
            Domain::Bits => (0..bits).collect(),
            Domain::Children => {
                let own = self.in_tree(rank, ranks);
                let below = if own == 0 { bits } else { own.trailing_zeros() };
                (0..below).filter(|bit| own + (1 << bit) < ranks).collect()
            }
        };
        if descends {
            all.reverse();
        }
        all
    }

    /// Which one of the tree's places a rank has; the root is 0.
    fn in_tree(&self, rank: u32, ranks: u32) -> u32 {
        (rank + ranks - self.tree.unwrap_or(0)) % ranks
    }

    /// Whom a rule means, for rank `rank` of `ranks`, in step `k` of a loop. `None`: nobody, so there is no message.
    pub fn peer(&self, aim: Aim, rank: u32, ranks: u32, k: u32) -> Option<u32> {
        let shifted = |by: i64| (i64::from(rank) + by).rem_euclid(i64::from(ranks)) as u32;
        let peer = match aim {
            Aim::Nobody => rank,
            Aim::Distance(by) => shifted(by),
            Aim::Neighbour(step) => match &self.fixed {
                Fixed::Grid(grid) => grid.neighbour(rank, step)?,
                _ => return None,
            },
            Aim::Root => match self.fixed {
                Fixed::Star { root } if root != rank => root,
                _ => return None,
            },
            Aim::Parent => match self.in_tree(rank, ranks) {
                0 => return None,
                own => ((own & (own - 1)) + self.tree?) % ranks,
            },
            Aim::After => shifted(k.into()),
            Aim::Before => shifted(-i64::from(k)),
            Aim::Other => k - u32::from(k <= rank),
            Aim::Xor => rank ^ k,
            Aim::Bit => rank ^ (1 << k),
            Aim::AfterBit => shifted(1 << k),
            Aim::BeforeBit => shifted(-(1 << k)),
            Aim::Child => (self.in_tree(rank, ranks) + (1 << k) + self.tree?) % ranks,
        };
        (peer < ranks).then_some(peer)
    }

    /// The rule outside of loops by which a rank means another.
    pub fn aim_at(&self, peer: u32, rank: u32, ranks: u32) -> Option<Aim> {
        if self.tree.is_some() && self.peer(Aim::Parent, rank, ranks, 0) == Some(peer) {
            return Some(Aim::Parent);
        }
        match &self.fixed {
            Fixed::None => None,
            Fixed::Ring => {
                let on = (i64::from(peer) - i64::from(rank)).rem_euclid(i64::from(ranks));
                // Half the way round, on and back are the same, and in a larger ring they are not.
                let is_half = 2 * on == i64::from(ranks);
                let distance = if 2 * on > i64::from(ranks) { on - i64::from(ranks) } else { on };
                (!is_half).then_some(Aim::Distance(distance))
            }
            Fixed::Grid(grid) => grid.step(rank, peer).map(Aim::Neighbour),
            Fixed::Star { root } => (peer == *root).then_some(Aim::Root),
        }
    }

    /// The ranks whose programs are written down, one for each role ([`role`](Self::role)).
    pub fn roles(&self, lengths: &[usize]) -> Vec<u32> {
        let ranks = lengths.len() as u32;
        match (&self.fixed, self.tree) {
            (Fixed::Star { root }, _) => vec![*root, u32::from(*root == 0)],
            // The second has a parent, and as many children as a rank with a parent may have.
            (_, Some(root)) => vec![root, (root + ranks / 2) % ranks],
            (Fixed::Grid(grid), None) => vec![grid.middle()],
            (_, None) => vec![usual(lengths)],
        }
    }

    /// Which of the roles a rank has.
    pub fn role(&self, rank: u32) -> usize {
        match (&self.fixed, &self.tree) {
            (Fixed::Star { root }, _) | (_, Some(root)) => usize::from(rank != *root),
            _ => 0,
        }
    }

    /// The same for another number of ranks.
    pub fn grow(&self, before: u32, ranks: u32) -> Result<Geometry, String> {
        let fixed = match &self.fixed {
            Fixed::Grid(grid) => Fixed::Grid(grid.grow(ranks).ok_or_else(|| {
                let doubled = before * (1 << grid.sizes.len());
                format!("{ranks} ranks make no grid like the {grid} of the trace: try {doubled}")
            })?),
            fixed => fixed.clone(),
        };
        Ok(Geometry { fixed, tree: self.tree })
    }

    /// The rank of the trace whose part a rank takes over, in this geometry of so many ranks that became `grown`.
    pub fn like(&self, ranks: u32, grown: &Geometry, rank: u32) -> u32 {
        match (&self.fixed, &grown.fixed) {
            (Fixed::Grid(grid), Fixed::Grid(larger)) => grid.like(larger, rank),
            _ => match self.role(rank % ranks) == self.role(rank) {
                true => rank % ranks,
                false => (rank + ranks / 2) % ranks,
            },
        }
    }
}

/// Of those that do most, one for which different rules mean different ranks: neither the first nor the last nor one
/// in the middle.
fn usual(lengths: &[usize]) -> u32 {
    let (most, near) = (lengths.iter().max().copied().unwrap_or(0), lengths.len() / 3);
    let busiest = (0..lengths.len()).filter(|&rank| lengths[rank] == most);
    busiest.min_by_key(|rank| rank.abs_diff(near)).unwrap_or(0) as u32
}
