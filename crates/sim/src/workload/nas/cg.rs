//! CG, conjugate gradients: the matrix is divided among a grid of processes. Each product of matrix and vector is
//! summed along a row of them, in log₂(columns) exchanges, and then exchanged with the transposed process; each scalar
//! product is summed along the row, too, by messages of 8 bytes.

use super::{Class, Nas, share, swap};
use crate::Time;
use crate::task::Tag;
use crate::workload::Communicator;

/// Rows of the matrix, and nonzero elements as the operation count has them.
pub(super) fn rows_and_nonzeros(class: Class) -> (f64, f64) {
    match class {
        Class::A => (14_000.0, 11.0),
        Class::B => (75_000.0, 13.0),
        Class::C => (150_000.0, 15.0),
    }
}

/// Steps of the inner iteration.
const STEPS: u32 = 25;

/// One process's view of the grid.
struct Grid {
    /// Partners along the row, the farthest first.
    row: Vec<u32>,
    transposed: u32,
}

impl Grid {
    fn new(me: u32, size: u32) -> Grid {
        // As many rows as columns, or half as many.
        let rows = 1_u32 << (size.ilog2() / 2);
        let columns = size / rows;
        let (row, column) = (me / columns, me % columns);
        let partners = (0..columns.ilog2()).map(|step| {
            let block = columns >> step;
            row * columns + (column + block / 2) % block + column / block * block
        });
        let transposed = if rows == columns {
            me % rows * rows + me / rows
        } else {
            2 * (me / 2 % rows * rows + me / 2 / rows) + me % 2
        };
        Grid { row: partners.collect(), transposed }
    }
}

/// What a process sends: vectors, and one or two scalars.
struct Exchange<'a> {
    world: &'a Communicator,
    grid: Grid,
    vector: u64,
}

impl Exchange<'_> {
    async fn swap(&self, partner: u32, bytes: u64, tag: u64) {
        let task = self.world.task();
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        swap(self.world, partner, out, partner, into, Tag(tag)).await;
    }

    /// The product of matrix and vector: sums along the row, then the transposed process's part.
    async fn product(&self) {
        for partner in self.grid.row.iter().rev() {
            self.swap(*partner, self.vector, 1).await;
        }
        if self.grid.transposed != self.world.me() {
            self.swap(self.grid.transposed, self.vector, 2).await;
        }
    }

    /// Sums one or two scalars along the row.
    async fn scalars(&self, count: u64) {
        for partner in &self.grid.row {
            self.swap(*partner, 8 * count, 3).await;
        }
    }
}

pub(super) async fn run(nas: &Nas, world: &Communicator) -> Time {
    let (task, size) = (world.task(), world.size());
    let grid = Grid::new(world.me(), size);
    let columns = 1 << grid.row.len();
    let vector = rows_and_nonzeros(nas.class).0 as u64 * 8 / columns;
    let exchange = Exchange { world, grid, vector };
    let step = share(nas.time(size), 1.0 / f64::from(STEPS + 1));
    let mut begin = task.now();
    for iteration in 0..=nas.iterations() {
        if iteration == 1 {
            begin = task.now();
        }
        exchange.scalars(1).await;
        for _ in 0..STEPS {
            task.compute(step).await;
            exchange.product().await;
            exchange.scalars(1).await;
            exchange.scalars(1).await;
        }
        task.compute(step).await;
        exchange.product().await;
        exchange.scalars(1).await;
        exchange.scalars(2).await;
    }
    begin
}
