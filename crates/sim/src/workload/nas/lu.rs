//! LU: two triangular sweeps over a grid of processes. A process waits for a plane from its two upstream neighbours,
//! computes, and sends the plane's edge to its two downstream neighbours: a short message per plane and neighbour, that
//! nothing answers until the sweep back. Then all exchange faces. This one-way traffic is what credits starve on.

use super::{Nas, Variation, part_of, share};
use crate::Time;
use crate::buffer::Part;
use crate::task::Tag;
use crate::workload::Communicator;
use crate::workload::collective::{Allreduce, allreduce};

/// Unknowns of a point, each of eight bytes.
const POINT_BYTES: u64 = 5 * 8;
/// Layers of a face that neighbours exchange.
const LAYERS: u64 = 2;
/// Exchanges of faces before the first iteration: for the right-hand side's fixed part, and for the first one.
const FACES_BEFORE: u32 = 2;
/// What the sweeps are of an iteration's computation; the rest is the right-hand side. An assumption.
const SWEEPS_SHARE: f64 = 0.6;

/// A neighbour, with the bytes of an edge of a plane, and of a face, that lies towards it.
#[derive(Clone, Copy)]
struct Neighbour {
    rank: u32,
    edge: Part,
    face: Part,
    /// Where what comes from it goes.
    into: Part,
}

pub(super) async fn run(nas: &Nas, world: &Communicator) -> Time {
    let (task, size) = (world.task(), world.size());
    // As many columns as rows, or twice as many.
    let across = 1_u32 << size.ilog2().div_ceil(2);
    let down = size / across;
    let (row, column) = (world.me() % across, world.me() / across);
    let points = nas.edge();
    let (width, height) = (part_of(points, across, row), part_of(points, down, column));
    let neighbour = |is_there: bool, rank: u32, length: u32| {
        let edge = POINT_BYTES * u64::from(length);
        let face = edge * LAYERS * u64::from(points);
        is_there.then(|| {
            let (out, into) = (task.allocate(face), task.allocate(face));
            Neighbour { rank, edge: out.slice(0, edge), face: out, into }
        })
    };
    let me = world.me();
    let before =
        [neighbour(row > 0, me.wrapping_sub(1), height), neighbour(column > 0, me.wrapping_sub(across), width)];
    let behind = [neighbour(row + 1 < across, me + 1, height), neighbour(column + 1 < down, me + across, width)];
    let (norms, sums) = (task.allocate(POINT_BYTES), task.allocate(POINT_BYTES));
    let part = interior(points, (across, row)) * interior(points, (down, column));
    let time = of_process(nas, size, part);
    let planes = points - 2;
    let plane = share(time, SWEEPS_SHARE / 2.0 / f64::from(planes));

    for _ in 0..FACES_BEFORE {
        faces(world, before, behind).await;
    }
    allreduce(world, Allreduce::RecursiveDoubling, norms, sums).await;
    let begin = task.now();
    for _ in 0..nas.iterations() {
        let mut copies = Vec::new();
        for (upstream, downstream, tag) in [(before, behind, Tag(1)), (behind, before, Tag(2))] {
            for _ in 0..planes {
                for from in upstream.into_iter().flatten() {
                    world.receive(from.rank, tag, from.into.slice(0, from.edge.length)).await;
                }
                task.compute(plane).await;
                for to in downstream.into_iter().flatten() {
                    match nas.variation {
                        Variation::EdgesCopied => copies.push(world.start_send(to.rank, tag, to.edge).await),
                        _ => world.send(to.rank, tag, to.edge).await,
                    }
                }
            }
        }
        task.wait_all(copies).await;
        task.compute(share(time, 1.0 - SWEEPS_SHARE)).await;
        faces(world, before, behind).await;
    }
    allreduce(world, Allreduce::RecursiveDoubling, norms, sums).await;
    begin
}

/// Points along one axis that the loops of the `index`th of so many processes cover: those on the grid's surface are
/// left out (`ist`, `iend`, `jst`, `jend` of NPB's `subdomain.f`).
fn interior(points: u32, (parts, index): (u32, u32)) -> u32 {
    part_of(points, parts, index) - u32::from(index == 0) - u32::from(index + 1 == parts)
}

/// The time that a process with so many interior points of each plane computes in an iteration: the same as every
/// other, or its part of the time of all.
fn of_process(nas: &Nas, size: u32, interior: u32) -> Time {
    let (time, plane) = (nas.time(size), f64::from(nas.edge() - 2).powi(2));
    match nas.variation {
        Variation::InteriorPoints | Variation::EdgesCopied => share(time, f64::from(interior * size) / plane),
        _ => time,
    }
}

/// Exchanges the faces along one axis, then along the other.
async fn faces(world: &Communicator, before: [Option<Neighbour>; 2], behind: [Option<Neighbour>; 2]) {
    let task = world.task();
    for axis in 0..2 {
        let both = [before[axis], behind[axis]];
        let mut coming = Vec::new();
        for from in both.into_iter().flatten() {
            coming.push(world.start_receive(from.rank, Tag(3), from.into).await);
        }
        for to in both.into_iter().flatten() {
            world.send(to.rank, Tag(3), to.face).await;
        }
        task.wait_all(coming).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::nas::{Benchmark, Class};

    /// With eight processes those at the ends of the long side have 465 points of each plane, the others 496.
    #[test]
    fn interior_points_of_all_processes_are_those_of_a_plane() {
        let part = |rank: u32| interior(64, (4, rank % 4)) * interior(64, (2, rank / 4));
        let parts: Vec<u32> = (0..8).map(part).collect();
        assert_eq!(parts, [465, 496, 496, 465, 465, 496, 496, 465]);
        assert_eq!(parts.iter().sum::<u32>(), 62 * 62);
        let lu =
            |variation| Nas { benchmark: Benchmark::Lu, class: Class::A, iterations: None, rate: 300.0, variation };
        let equal = of_process(&lu(Variation::AsPublished), 8, 465);
        let of = |part| of_process(&lu(Variation::InteriorPoints), 8, part).0 as f64 / equal.0 as f64;
        assert!((of(496) / of(465) - 496.0 / 465.0).abs() < 1e-6, "{} {}", of(496), of(465));
        assert!((parts.iter().map(|&part| of(part)).sum::<f64>() - 8.0).abs() < 1e-6, "all compute as much as before");
    }
}
