//! MG, multigrid: V-cycles over grids of 256³ (class C: 512³) down to 2³ points. After each operator, on each level,
//! neighbours along three axes exchange faces, from 135 KB on the finest grid to single words on the coarsest, where a
//! part of the processes has no points and rests. The few messages by which those get theirs again are left out.

use super::{Class, Nas, Variation, share};
use crate::Time;
use crate::task::Tag;
use crate::workload::Communicator;
use crate::workload::collective::{Allreduce, allreduce};

/// The finest level: of 2⁸ points along each axis, in class C 2⁹. The coarsest is 1.
pub(super) fn finest(class: Class) -> u32 {
    match class {
        Class::A | Class::B => 8,
        Class::C => 9,
    }
}

/// Exchanges of faces on the finest level beside the cycles: of the input, twice, and of the first residual.
const EXCHANGES_BEFORE: u32 = 3;

/// Points of the input that have the greatest values, and as many that have the least.
const CHARGES: u32 = 10;

/// Agrees on the input: for each of its points on the value, and on who has it and where. First all values and then all
/// places, which for flow control is as good as one after the other.
async fn input(nas: &Nas, world: &Communicator) {
    if nas.variation == Variation::InputGiven {
        return;
    }
    for bytes in [8, 16] {
        let (mine, all) = (world.task().allocate(bytes), world.task().allocate(bytes));
        for _ in 0..2 * CHARGES {
            allreduce(world, Allreduce::RecursiveDoubling, mine, all).await;
        }
    }
}

/// The two norms of a grid.
async fn norms(world: &Communicator) {
    let (mine, all) = (world.task().allocate(8), world.task().allocate(8));
    for _ in 0..2 {
        allreduce(world, Allreduce::RecursiveDoubling, mine, all).await;
    }
}

/// One process's place among all.
struct Place {
    /// Processes along each axis, and which of them this is.
    processes: [u32; 3],
    at: [u32; 3],
}

impl Place {
    fn new(me: u32, size: u32) -> Place {
        let bits = size.ilog2();
        let processes = [1 << (bits / 3), 1 << ((bits + 1) / 3), 1 << bits.div_ceil(3)];
        let at = [me % processes[0], me / processes[0] % processes[1], me / processes[0] / processes[1]];
        Place { processes, at }
    }

    fn rank(&self, at: [u32; 3]) -> u32 {
        at[0] + self.processes[0] * (at[1] + self.processes[1] * at[2])
    }

    /// Processes between two that have points of a level, along an axis.
    fn stride(&self, axis: usize, level: u32) -> u32 {
        (self.processes[axis] >> level).max(1)
    }

    /// Whether this process has points of a level.
    fn is_alive(&self, level: u32) -> bool {
        (0..3).all(|axis| self.at[axis].is_multiple_of(self.stride(axis, level)))
    }

    /// Points along each axis.
    fn points(&self, level: u32) -> [u64; 3] {
        self.processes.map(|processes| u64::from(((1_u32 << level) / processes).max(1)))
    }

    /// The neighbour along an axis, in a circle.
    fn neighbour(&self, axis: usize, level: u32, is_behind: bool) -> u32 {
        let (count, stride) = (self.processes[axis], self.stride(axis, level));
        let mut at = self.at;
        at[axis] = (at[axis] + if is_behind { stride } else { count - stride }) % count;
        self.rank(at)
    }
}

/// Bytes of a face across an axis: with the border along axes that were exchanged before.
fn face_bytes(points: [u64; 3], axis: usize) -> u64 {
    let [x, y, z] = points;
    8 * match axis {
        0 => y * z,
        1 => (x + 2) * z,
        _ => (x + 2) * (y + 2),
    }
}

/// Exchanges faces on a level.
async fn exchange(world: &Communicator, place: &Place, level: u32) {
    if !place.is_alive(level) {
        return;
    }
    let task = world.task();
    for axis in 0..3 {
        let bytes = face_bytes(place.points(level), axis);
        let tag = |is_behind: bool| Tag(2 * axis as u64 + u64::from(is_behind));
        let mut coming = Vec::new();
        for is_behind in [false, true] {
            let from = place.neighbour(axis, level, is_behind);
            coming.push(world.start_receive(from, tag(!is_behind), task.allocate(bytes)).await);
        }
        for is_behind in [true, false] {
            let to = place.neighbour(axis, level, is_behind);
            world.send(to, tag(is_behind), task.allocate(bytes)).await;
        }
        task.wait_all(coming).await;
    }
}

/// One V-cycle, and the residual behind it. `time` is what all its operators on the finest level take.
async fn cycle(world: &Communicator, place: &Place, finest: u32, time: Time) {
    let task = world.task();
    // An operator on a level takes an eighth of what it takes on the next finer one. Of those on the finest, there are
    // four: restriction, residual, smoother, and the residual behind the cycle.
    let operator = |level: u32| share(time, 0.25 * 0.125_f64.powi((finest - level) as i32));
    for level in (1..finest).rev() {
        task.compute(operator(level + 1)).await;
        exchange(world, place, level).await;
    }
    task.compute(operator(1)).await;
    exchange(world, place, 1).await;
    for level in 2..=finest {
        for _ in 0..2 {
            task.compute(operator(level)).await;
            exchange(world, place, level).await;
        }
    }
    task.compute(operator(finest)).await;
    exchange(world, place, finest).await;
}

pub(super) async fn run(nas: &Nas, world: &Communicator) -> Time {
    let task = world.task();
    let place = Place::new(world.me(), world.size());
    let finest = finest(nas.class);
    // The finest level has seven eighths of all operators' points.
    let time = share(nas.time(world.size()), 0.875);
    input(nas, world).await;
    for _ in 0..EXCHANGES_BEFORE {
        exchange(world, &place, finest).await;
        norms(world).await;
    }
    cycle(world, &place, finest, time).await;
    input(nas, world).await;
    let begin = task.now();
    for _ in 0..nas.iterations() {
        cycle(world, &place, finest, time).await;
    }
    norms(world).await;
    begin
}
