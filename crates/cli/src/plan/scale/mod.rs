//! A trace for more ranks than it was recorded with: weak scaling, where the pattern is recognised.
//!
//! A trace of 16 ranks does not say what 64 would do. It does if all its messages follow from a rule that has a meaning
//! for any number of ranks: "to the right neighbour in a ring", "to everybody else in turn", "to the rank that differs
//! in bit k". A recogniser ([`RECOGNISERS`]) offers such rules; [`learn`](learn::learn) writes the program of one rank
//! down in them; and then that program, carried out for every rank of the trace, must give the trace back, message by
//! message and dependency by dependency. What it does not give back is the reason why the trace is refused. So a
//! pattern explains all messages, or none.
//!
//! Weak scaling means here: each message keeps its size (where sizes double with each step of a collective, they go on
//! doubling), each process computes as long as one of the trace that has the same place in the pattern, and what is
//! done once for each other rank, or for each bit of a rank, is done once for each of the new ones.
//!
//! * `operation.rs`: what a rank does, in the form in which ranks can be compared, and back into GOAL;
//! * `aim.rs`: rules for the other end of a message, and what loops run over;
//! * `grid.rs`: places in grids;
//! * `program.rs`: a program in such rules, and what a rank of a job does by it;
//! * `learn.rs`: the program of one rank, written down in rules.

mod aim;
mod grid;
mod learn;
mod operation;
mod program;
#[cfg(test)]
mod tests;

use std::fmt;

use tidegate_sim::workload::Trace;

use aim::{Fixed, Geometry};
use learn::{Misfit, Prefers, learn};
use operation::Operation;
use program::{Absent, Program};

/// Ranks below which several patterns are the same: in a ring of three everybody is a neighbour.
const RANKS_LEAST: u32 = 5;

/// A trace for more ranks.
#[derive(Clone, Debug)]
pub struct Scaled {
    /// In GOAL.
    pub text: String,
    /// What was recognised, and how it was continued.
    pub pattern: String,
}

/// Why no recogniser explains a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrecognised {
    /// For each recogniser what it stumbled over.
    pub reasons: Vec<(&'static str, String)>,
}

impl fmt::Display for Unrecognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no pattern explains all messages of the trace:")?;
        self.reasons.iter().try_for_each(|(name, why)| write!(f, "\n  {name}: {why}"))
    }
}

/// What a recogniser offers for so many ranks, the likeliest first; `Err`: why it has nothing for them.
type Offer = fn(ranks: u32, lengths: &[usize]) -> Result<Vec<Geometry>, String>;

/// All recognisers. Each explains besides, between messages of its own, exchanges of everybody with everybody and
/// along the bits of ranks, as collective operations are made of. The first that explains a trace is taken, so those
/// with the fewest rules come first.
const RECOGNISERS: [(&str, Offer); 7] = [
    ("everybody in turn (all-to-all), or along the bits of ranks (hypercube, dissemination)", everybody),
    ("a star around one rank", star),
    ("a binomial tree", tree),
    ("a ring, with constant distances", ring),
    ("neighbours in a grid (torus or mesh, two or three dimensions)", grids),
    ("a ring and a binomial tree", ring_and_tree),
    ("neighbours in a grid and a binomial tree", grids_and_tree),
];

fn everybody(_: u32, _: &[usize]) -> Result<Vec<Geometry>, String> {
    Ok(vec![Geometry { fixed: Fixed::None, tree: None }])
}

fn star(_: u32, lengths: &[usize]) -> Result<Vec<Geometry>, String> {
    Ok(vec![Geometry { fixed: Fixed::Star { root: busiest(lengths) }, tree: None }])
}

fn tree(ranks: u32, lengths: &[usize]) -> Result<Vec<Geometry>, String> {
    with_tree(ranks, vec![Fixed::None], &[0, busiest(lengths)])
}

fn ring(_: u32, _: &[usize]) -> Result<Vec<Geometry>, String> {
    Ok(vec![Geometry { fixed: Fixed::Ring, tree: None }])
}

fn ring_and_tree(ranks: u32, _: &[usize]) -> Result<Vec<Geometry>, String> {
    with_tree(ranks, vec![Fixed::Ring], &[0])
}

fn grids(ranks: u32, _: &[usize]) -> Result<Vec<Geometry>, String> {
    let all = grid::all(ranks);
    if all.is_empty() {
        return Err(format!("{ranks} ranks make no grid of two or three dimensions with at least three ranks in each"));
    }
    Ok(all.into_iter().map(|grid| Geometry { fixed: Fixed::Grid(grid), tree: None }).collect())
}

fn grids_and_tree(ranks: u32, lengths: &[usize]) -> Result<Vec<Geometry>, String> {
    let fixed = grids(ranks, lengths)?.into_iter().map(|geometry| geometry.fixed).collect();
    with_tree(ranks, fixed, &[0])
}

fn with_tree(ranks: u32, fixed: Vec<Fixed>, roots: &[u32]) -> Result<Vec<Geometry>, String> {
    if !ranks.is_power_of_two() {
        return Err(format!("{ranks} ranks are no power of two, whose trees alone are recognised"));
    }
    let with = |fixed: &Fixed| {
        let fixed = fixed.clone();
        roots.iter().map(move |&root| Geometry { fixed: fixed.clone(), tree: Some(root) })
    };
    Ok(fixed.iter().flat_map(with).collect())
}

/// The rank that does most.
fn busiest(lengths: &[usize]) -> u32 {
    let most = lengths.iter().copied().max().unwrap_or(0);
    lengths.iter().position(|length| *length == most).unwrap_or(0) as u32
}

/// The same program for so many ranks.
///
/// # Errors
/// If a receive is for messages of any rank or with any tag, no recogniser explains the trace, or the pattern has no
/// meaning for so many.
pub fn scale(trace: &Trace, ranks: u32) -> Result<Scaled, String> {
    if trace.size() < RANKS_LEAST {
        return Err(format!(
            "a trace of {} ranks does not show its pattern: record it with at least {RANKS_LEAST}, better 16",
            trace.size()
        ));
    }
    let operations = (0..trace.size()).map(|rank| operation::read(trace, rank)).collect::<Result<_, _>>()?;
    let program = recognise(trace, operations).map_err(|why| why.to_string())?;
    let before = program.geometry.fixed.clone();
    let grown = program.grow(ranks)?;
    let shape = match (&before, &grown.geometry.fixed) {
        (Fixed::Grid(before), Fixed::Grid(after)) => format!("; the {before} becomes a {after}"),
        _ => String::new(),
    };
    let all: Vec<Vec<Operation>> = (0..ranks).map(|rank| grown.of_rank(rank)).collect();
    Ok(Scaled { text: operation::write(&all), pattern: format!("{}{shape}", grown.description()) })
}

/// The first program that gives the trace back.
fn recognise(trace: &Trace, mut all: Vec<Vec<Operation>>) -> Result<Program, Unrecognised> {
    recognise_all(trace, &all).or_else(|unrecognised| {
        // An MPI may write into its tags who sends.
        operation::number_tags(&mut all);
        recognise_all(trace, &all).map_err(|_| unrecognised)
    })
}

/// The first program that gives these operations back.
fn recognise_all(trace: &Trace, all: &[Vec<Operation>]) -> Result<Program, Unrecognised> {
    let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
    let mut reasons = Vec::new();
    for (name, offer) in RECOGNISERS {
        let offered = match offer(trace.size(), &lengths) {
            Ok(offered) => offered,
            Err(why) => {
                reasons.push((name, why));
                continue;
            }
        };
        // Of several shapes the one that explained most says why it is none of them.
        let mut nearest: Option<Misfit> = None;
        let attempts =
            |geometry: Geometry| [Prefers::Distances, Prefers::Bits].map(|prefers| (geometry.clone(), prefers));
        for (geometry, prefers) in offered.into_iter().flat_map(attempts) {
            let learnt = learn(all, geometry, prefers).and_then(|program| {
                let mut graph = program.clone();
                graph.absent = Absent::Nobody;
                program.checked(all).or_else(|misfit| graph.checked(all).map_err(|_| misfit))
            });
            match learnt {
                Ok(program) => return Ok(program),
                Err(misfit) if nearest.as_ref().is_none_or(|before| misfit.explained > before.explained) => {
                    nearest = Some(misfit);
                }
                Err(_) => {}
            }
        }
        reasons.extend(nearest.map(|misfit| (name, misfit.why)));
    }
    Err(Unrecognised { reasons })
}
