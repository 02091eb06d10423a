//! The NAS Parallel Benchmarks as patterns: who sends how much to whom, in which order, and how long they compute.
//!
//! They are written from the published structure of the MPI programs (NPB 3.3; Bailey et al., RNR-94-007, and the
//! sources' own operation counts). Left out: input and output, the verification, and what its few messages carry.
//!
//! | file | who |
//! |---|---|
//! | `is.rs` | IS: integer sort: buckets to everybody |
//! | `ft.rs` | FT: Fourier transform: transposes of the whole |
//! | `lu.rs` | LU: wavefronts over a grid of processes, a short message per plane |
//! | `cg.rs` | CG: conjugate gradients: rows exchanged, then a transpose; many scalars |
//! | `mg.rs` | MG: multigrid: faces on all levels, from words to tens of kilobytes |
//! | `multipartition.rs` | BT and SP: faces, then sweeps forward and back along three axes |
//!
//! A process computes for what the benchmark's operation count gives it of each iteration, at a rate that is a
//! parameter: the papers tell no times.

mod cg;
mod ft;
mod is;
mod lu;
mod mg;
mod multipartition;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use super::Communicator;
use super::collective::{Alltoall, alltoall};
use crate::Time;
use crate::buffer::Part;
use crate::task::Tag;

/// Which of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Benchmark {
    /// Integer sort.
    Is,
    /// Fourier transform.
    Ft,
    /// Lower-upper symmetric Gauss-Seidel.
    Lu,
    /// Conjugate gradients.
    Cg,
    /// Multigrid.
    Mg,
    /// Block tridiagonal solver.
    Bt,
    /// Scalar pentadiagonal solver.
    Sp,
}

impl Benchmark {
    /// All of them, in the order of L's table 1.
    pub const ALL: [Benchmark; 7] =
        [Benchmark::Is, Benchmark::Ft, Benchmark::Lu, Benchmark::Cg, Benchmark::Mg, Benchmark::Bt, Benchmark::Sp];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Is => "is",
            Benchmark::Ft => "ft",
            Benchmark::Lu => "lu",
            Benchmark::Cg => "cg",
            Benchmark::Mg => "mg",
            Benchmark::Bt => "bt",
            Benchmark::Sp => "sp",
        }
    }
}

impl FromStr for Benchmark {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == name);
        known.ok_or_else(|| format!("`{name}` is none of is, ft, lu, cg, mg, bt, sp"))
    }
}

/// The size of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The smaller one.
    A,
    /// The next larger one.
    B,
    /// The one for large jobs.
    C,
}

impl FromStr for Class {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "A" | "a" => Ok(Class::A),
            "B" | "b" => Ok(Class::B),
            "C" | "c" => Ok(Class::C),
            _ => Err(format!("`{name}` is none of the classes A, B and C")),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::A => "A",
            Class::B => "B",
            Class::C => "C",
        })
    }
}

/// What is changed of a benchmark's pattern, to see what decides what comes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variation {
    /// Nothing.
    #[default]
    AsPublished,
    /// MG: without the reductions by which processes agree on the points of the input, which are most of its messages
    /// where there are many processes and few iterations.
    InputGiven,
    /// LU: a process computes for the interior points that it has, as the program's loops do, and not as much as every
    /// other.
    InteriorPoints,
    /// LU: an edge that may not leave yet waits as a copy, and its sender goes on. Work is by interior points.
    EdgesCopied,
    /// Before anything else, everybody sends a word to everybody, all at once.
    WordsAtFirst,
    /// FT: a transpose's sends and receives are all started at once, instead of in pairs.
    TransposeAtOnce,
}

/// A benchmark, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nas {
    /// Which.
    pub benchmark: Benchmark,
    /// Of which size.
    pub class: Class,
    /// Iterations, without those that warm up; `None`: as many as the class has. With 0 of them IS, CG, BT and SP are
    /// timed in the one that else warms up.
    pub iterations: Option<u32>,
    /// Millions of operations that a process does in a second.
    pub rate: f64,
    /// What is changed.
    pub variation: Variation,
}

impl Nas {
    /// As many processes as can run it: a power of two from 8 on; for BT and SP a square, from 16 on. FT divides its
    /// grid along one axis, which is written for up to 64 here. The others go as far as their programs do, to 1,024 at
    /// most: LU wants four points along an edge of each process's part, BT and SP three.
    ///
    /// # Errors
    /// If `processes` are not; the text says what is allowed.
    pub fn check(&self, processes: u32) -> Result<(), String> {
        let allowed: &[u32] = match (self.benchmark, self.class) {
            (Benchmark::Bt | Benchmark::Sp, Class::A) => &[16, 36, 64, 256],
            (Benchmark::Bt | Benchmark::Sp, _) => &[16, 36, 64, 256, 1024],
            (Benchmark::Ft, _) => &[8, 16, 32, 64],
            (Benchmark::Lu, Class::A | Class::B) => &[8, 16, 32, 64, 128, 256],
            _ => &[8, 16, 32, 64, 128, 256, 512, 1024],
        };
        if allowed.contains(&processes) {
            return Ok(());
        }
        let list = allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        Err(format!("{} runs on {list} processes, not on {processes}", self.benchmark.name().to_uppercase()))
    }

    /// Iterations, without those that warm up.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations.unwrap_or(match (self.benchmark, self.class) {
            (Benchmark::Is, _) => 10,
            (Benchmark::Ft, Class::A) => 6,
            (Benchmark::Mg, Class::A) => 4,
            (Benchmark::Ft | Benchmark::Mg, Class::B | Class::C) => 20,
            (Benchmark::Lu, _) => 250,
            (Benchmark::Cg, Class::A) => 15,
            (Benchmark::Cg, Class::B | Class::C) => 75,
            (Benchmark::Bt, _) => 200,
            (Benchmark::Sp, _) => 400,
        })
    }

    /// Millions of operations of an iteration, all processes together, as the benchmarks' sources count them.
    #[must_use]
    pub fn operations(&self) -> f64 {
        let cube = |edge: f64, cubic: f64, square: f64, linear: f64| {
            (cubic * edge.powi(3) - square * edge.powi(2) + linear * edge) / 1e6
        };
        let edge = f64::from(self.edge());
        match (self.benchmark, self.class) {
            (Benchmark::Is, class) => is::keys(class) as f64 / 1e6,
            (Benchmark::Ft, class) => {
                let points = ft::points(class) as f64;
                points * (5.23518 + 7.21113 * points.ln()) / 1e6
            }
            (Benchmark::Lu, _) => cube(edge, 1984.77, 10923.3, 27770.9),
            (Benchmark::Cg, class) => {
                let (rows, nonzeros) = cg::rows_and_nonzeros(class);
                let per_row = nonzeros * (nonzeros + 1.0);
                2.0 * rows * (3.0 + per_row + 25.0 * (5.0 + per_row) + 3.0) / 1e6
            }
            (Benchmark::Mg, _) => 58.0 * edge.powi(3) / 1e6,
            (Benchmark::Bt, _) => cube(edge, 3478.8, 17655.7, 28023.7),
            (Benchmark::Sp, _) => cube(edge, 881.174, 4683.91, 11484.5),
        }
    }

    /// Points along an edge of the grid, where it is a cube.
    fn edge(&self) -> u32 {
        match (self.benchmark, self.class) {
            (Benchmark::Mg, class) => 1 << mg::finest(class),
            (_, Class::A) => 64,
            (_, Class::B) => 102,
            (_, Class::C) => 162,
        }
    }

    /// What each of so many processes computes in an iteration.
    fn time(&self, processes: u32) -> Time {
        let seconds = self.operations() / f64::from(processes) / self.rate;
        Time::from_nanoseconds((seconds * 1e9) as u64)
    }

    /// Runs the part of one process; the group is [legal](Self::check). Records as the sample `nas` the time in
    /// microseconds without what comes before the first timed iteration.
    pub async fn run(&self, world: &Communicator) {
        let time = self.timed(world).await;
        world.task().record("nas", 0, time.microseconds());
    }

    /// The same; returns that time and records nothing.
    pub async fn timed(&self, world: &Communicator) -> Time {
        if self.variation == Variation::WordsAtFirst {
            let bytes = 4 * u64::from(world.size());
            let (out, into) = (world.task().allocate(bytes), world.task().allocate(bytes));
            alltoall(world, Alltoall::Posted, out, into, 4).await;
        }
        let begin = match self.benchmark {
            Benchmark::Is => is::run(self, world).await,
            Benchmark::Ft => ft::run(self, world).await,
            Benchmark::Lu => lu::run(self, world).await,
            Benchmark::Cg => cg::run(self, world).await,
            Benchmark::Mg => mg::run(self, world).await,
            Benchmark::Bt => multipartition::run(self, world, &multipartition::BT).await,
            Benchmark::Sp => multipartition::run(self, world, &multipartition::SP).await,
        };
        world.task().now().since(begin)
    }
}

/// A part of a span of time.
fn share(span: Time, part: f64) -> Time {
    Time((span.0 as f64 * part) as u64)
}

/// Receives from one member what another one gets at the same time: the receive is posted, the message sent, then the
/// receive waited for.
async fn swap(group: &Communicator, to: u32, out: Part, from: u32, into: Part, tag: Tag) {
    let incoming = group.start_receive(from, tag, into).await;
    group.send(to, tag, out).await;
    group.task().wait(incoming).await;
}

/// So many of `whole` that the `index`th of `parts` parts has, where the first get the remainder.
fn part_of(whole: u32, parts: u32, index: u32) -> u32 {
    whole / parts + u32::from(index < whole % parts)
}
