//! BT and SP: both solve systems along three axes in turn over a *multipartition*: of n = c² processes each has c
//! cells, one in each layer of every axis, so that all always have work. In an iteration a process exchanges faces with
//! its six neighbours, then along each axis sends a cell's edge on c − 1 times, forward and back.

use super::{Nas, share};
use crate::Time;
use crate::task::Tag;
use crate::workload::Communicator;
use crate::workload::collective::{Allreduce, allreduce};

/// Bytes of what two layers of a point's five unknowns take in a face.
const FACE_POINT_BYTES: u64 = 2 * 5 * 8;
/// What the sweeps are of an iteration's computation; the rest is the right-hand side. An assumption.
const SWEEPS_SHARE: f64 = 0.7;

/// In what the two differ.
pub(super) struct Form {
    /// Numbers of eight bytes per point of a cell's edge, forward and back.
    forward: u64,
    back: u64,
    /// Points along a cell's edge: those of the largest cell and one, or the mean.
    is_padded: bool,
}

/// BT sends blocks of 5 × 5 and a right-hand side, then the solution.
pub(super) const BT: Form = Form { forward: 30, back: 5, is_padded: true };
/// SP sends 22 numbers, then 10.
pub(super) const SP: Form = Form { forward: 22, back: 10, is_padded: false };

impl Form {
    /// Bytes of a face, and of an edge forward and back. Where cells differ, the mean.
    fn bytes(&self, points: u32, cells: u32) -> [u64; 3] {
        let mean = f64::from(points) / f64::from(cells);
        let face = mean * mean * FACE_POINT_BYTES as f64 * f64::from(cells - 1);
        let edge = if self.is_padded { f64::from(points / cells + 1) } else { mean };
        let of = |numbers: u64| (edge * edge * 8.0 * numbers as f64) as u64;
        [face as u64, of(self.forward), of(self.back)]
    }
}

/// The neighbours along the three axes: behind, and before.
fn neighbours(me: u32, cells: u32) -> [(u32, u32); 3] {
    let (p, q) = (me % cells, me / cells);
    let rank = |p: u32, q: u32| p % cells + cells * (q % cells);
    let less = cells - 1;
    [
        (rank(p + 1, q), rank(p + less, q)),
        (rank(p, q + 1), rank(p, q + less)),
        (rank(p + less, q + 1), rank(p + 1, q + less)),
    ]
}

pub(super) async fn run(nas: &Nas, world: &Communicator, form: &Form) -> Time {
    let (task, size) = (world.task(), world.size());
    let cells = size.isqrt();
    let [face, forward, back] = form.bytes(nas.edge(), cells);
    let neighbours = neighbours(world.me(), cells);
    let faces: Vec<_> = (0..12).map(|_| task.allocate(face)).collect();
    let edge = task.allocate(forward.max(back));
    let (norm, sum) = (task.allocate(40), task.allocate(40));
    let time = nas.time(size);
    let stage = share(time, SWEEPS_SHARE / 6.0 / f64::from(cells));
    let mut begin = task.now();
    for iteration in 0..=nas.iterations() {
        if iteration == 1 {
            begin = task.now();
        }
        task.compute(share(time, 1.0 - SWEEPS_SHARE)).await;
        let mut requests = Vec::new();
        for (axis, (behind, before)) in neighbours.into_iter().enumerate() {
            for (side, from) in [behind, before].into_iter().enumerate() {
                let tag = Tag((2 * axis + 1 - side) as u64);
                requests.push(world.start_receive(from, tag, faces[2 * axis + side]).await);
            }
        }
        for (axis, (behind, before)) in neighbours.into_iter().enumerate() {
            for (side, to) in [behind, before].into_iter().enumerate() {
                requests.push(world.start_send(to, Tag((2 * axis + side) as u64), faces[6 + 2 * axis + side]).await);
            }
        }
        task.wait_all(requests).await;
        for (axis, (behind, before)) in neighbours.into_iter().enumerate() {
            for (to, from, bytes) in [(behind, before, forward), (before, behind, back)] {
                let (tag, part) = (Tag(10 + axis as u64), edge.slice(0, bytes));
                let mut sending = None;
                for number in 0..cells {
                    // A cell's own part is computed while the edge of the one before it is on its way.
                    let coming = if number > 0 { Some(world.start_receive(from, tag, part).await) } else { None };
                    task.compute(share(stage, 0.5)).await;
                    task.wait_all(sending.take().into_iter().chain(coming)).await;
                    task.compute(share(stage, 0.5)).await;
                    if number + 1 < cells {
                        sending = Some(world.start_send(to, tag, part).await);
                    }
                }
            }
        }
    }
    allreduce(world, Allreduce::RecursiveDoubling, norm, sum).await;
    begin
}
