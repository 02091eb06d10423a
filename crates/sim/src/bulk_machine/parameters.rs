//! [`BulkParameters`]: every number of a machine whose nodes take units from the network more dearly than they put
//! them in, and the three sets for the machines of B (Brewer, Gauthier, Fox, Schuett).
//!
//! Where a number comes from: *sourced* is in B or in the sources that its notes name; *remembered* is what the
//! literature of these machines says as far as we remember, not verified; *fitted* is chosen so that statements of B
//! come out; *assumed* is the rest.

use crate::{Bandwidth, Time};

/// How nodes are wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A tree of groups of four with so many levels, at most three, and two links upwards for each of a router's
    /// four below: of the bandwidth of a node's link its group of 4 has half per node, its group of 16 a quarter. Which
    /// of the ways upwards a unit takes is random.
    FatTree {
        /// Levels.
        levels: u8,
    },
    /// A mesh; units go along the row first.
    Mesh {
        /// Nodes in a row.
        columns: u16,
        /// Rows.
        rows: u16,
    },
}

impl Shape {
    /// How many nodes there are.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        match self {
            Shape::FatTree { levels } => 1 << (2 * levels as u32),
            Shape::Mesh { columns, rows } => columns as u32 * rows as u32,
        }
    }
}

/// How a node notices what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It looks whenever it has put so many units into the network, when it cannot put in more, and when it has nothing
    /// to send. Then it takes all that is there, so that the network cannot fill up for ever.
    Polling {
        /// Units between two looks.
        every: u32,
        /// Units that it takes at a look, as long as it has something to send and room for that.
        most: u32,
    },
    /// What arrives interrupts it between any two units.
    Interrupts,
}

/// Who moves the bytes of a unit into the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The processor writes them to the interface; then their memory is free.
    Processor,
    /// The processor starts an engine, which moves them from memory as the network takes them.
    Engine,
}

/// The barrier of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// A network of its own: all pass it this long after the last has entered.
    Hardware(Time),
    /// A tree of small messages, each node with so many children at most.
    Tree {
        /// So many.
        arity: u32,
    },
}

/// When the sender of a block counts it as sent, where a technique wants it delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// When a small message of the receiver has come, which has taken all of it. A variant of ours.
    Acknowledged,
    /// When its last unit is in the network (B §3.1: "when it finishes sending"). This is what all three machines have.
    Injected,
}

/// A machine. See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkParameters {
    /// Its name.
    pub name: &'static str,
    /// How nodes are wired.
    pub shape: Shape,
    /// Rate of each direction of a link between routers.
    pub link_bandwidth: Bandwidth,
    /// Rate of a node's link to its router, and back.
    pub node_bandwidth: Bandwidth,
    /// What a hop takes beside the bytes.
    pub hop_latency: Time,
    /// A unit crosses the network in cells of so many bytes; a link is its own from the first to the last of them.
    pub cell_bytes: u32,
    /// Cells that fit into the buffer at a link's end.
    pub buffer_cells: u16,
    /// Cells that fit into a node's interface for what arrives.
    pub arrival_cells: u16,
    /// Units that wait in a node's interface to leave.
    pub departure_units: u32,
    /// Data of a unit: B's injection size.
    pub unit_bytes: u32,
    /// Bytes of a unit on the wire beside its data.
    pub header_bytes: u32,
    /// What a unit of data costs its sender's processor.
    pub send_unit: Time,
    /// Who moves its bytes.
    pub mover: Mover,
    /// What a whole unit takes its receiver's processor, in percent of what it takes to send it (bytes that an engine
    /// moves included).
    pub receive_percent: u32,
    /// What a unit of data costs more, its sender and its receiver each, if the unit before was for or from another
    /// node: what is kept of that transfer has to be fetched.
    pub change_partner: Time,
    /// What a small message costs its sender.
    pub send_signal: Time,
    /// What a small message costs its receiver.
    pub receive_signal: Time,
    /// How arrivals are noticed.
    pub reception: Reception,
    /// The barrier.
    pub barrier: BarrierKind,
    /// When a block counts as delivered.
    pub proof: Proof,
    /// How much longer a block takes its sender than nothing but its units would, at random: between nothing and twice
    /// so many thousandths, drawn for each block (caches, translations, the operating system).
    pub jitter_per_mille: u32,
}

impl BulkParameters {
    /// The Thinking Machines CM-5 of B.
    ///
    /// * Sourced: 64 nodes; 20 MB/s for a node's link; 20, 10 and 5 MB/s per node within groups of 4, of 16, and
    ///   beyond; packets of 16 bytes of data and 4 more; polling; a barrier network, 4 µs. About 15 MB/s of data were
    ///   reached with regular blocks; that is not met: nodes that take a packet in 1.07 µs are idle most of the time
    ///   while the tree is full, and then there is no receiver bottleneck at all.
    /// * Remembered: 1.6 µs to send an active message, 1.7 to receive it; a latency of 6 µs: six hops of 1 µs.
    /// * Fitted: the ratio of receiving to sending a packet of a block, to what barriers gain.
    /// * Assumed: the jitter, which B-fig5-7 varies; the buffers; that a node looks for arrivals after each packet that
    ///   it sends, and takes all.
    #[must_use]
    pub const fn cm5() -> Self {
        BulkParameters {
            name: "cm5",
            shape: Shape::FatTree { levels: 3 },
            link_bandwidth: Bandwidth::from_megabytes(20),
            node_bandwidth: Bandwidth::from_megabytes(20),
            hop_latency: Time::ZERO,
            cell_bytes: 20,
            buffer_cells: 4,
            arrival_cells: 8,
            departure_units: 4,
            unit_bytes: 16,
            header_bytes: 4,
            send_unit: Time::from_nanoseconds(1_600),
            mover: Mover::Processor,
            receive_percent: 140,
            change_partner: Time::ZERO,
            send_signal: Time::from_nanoseconds(1_600),
            receive_signal: Time::from_nanoseconds(1_700),
            reception: Reception::Polling { every: 1, most: u32::MAX },
            barrier: BarrierKind::Hardware(Time::from_microseconds(4)),
            proof: Proof::Injected,
            jitter_per_mille: 10,
        }
    }

    /// The Intel Paragon of B.
    ///
    /// * Sourced: 8 nodes; a mesh with 175 MB/s each way; units of 8 KiB; polling; starting the engine is very dear.
    /// * Remembered: 140 MB/s for long messages, which is the rate of a node's link here and not met one way: the
    ///   receiver's processor takes 1.4 times as long for each byte, so 70 MB/s arrive; 40 ns a hop; active messages
    ///   that take their sender 1.4 to 2.2 µs.
    /// * Fitted: the ratio, the room at arrival (half a unit).
    /// * Assumed: the jitter, the start (25 µs), the form of the mesh, the other buffers, the arity.
    #[must_use]
    pub const fn paragon() -> Self {
        BulkParameters {
            name: "paragon",
            shape: Shape::Mesh { columns: 4, rows: 2 },
            link_bandwidth: Bandwidth::from_megabytes(175),
            node_bandwidth: Bandwidth::from_megabytes(140),
            hop_latency: Time::from_nanoseconds(40),
            cell_bytes: 512,
            buffer_cells: 2,
            arrival_cells: 8,
            departure_units: 1,
            unit_bytes: 8 << 10,
            header_bytes: 16,
            send_unit: Time::from_nanoseconds(25_000),
            mover: Mover::Engine,
            receive_percent: 140,
            change_partner: Time::ZERO,
            send_signal: Time::from_nanoseconds(1_800),
            receive_signal: Time::from_nanoseconds(2_200),
            reception: Reception::Polling { every: 1, most: u32::MAX },
            barrier: BarrierKind::Tree { arity: 2 },
            proof: Proof::Injected,
            jitter_per_mille: 20,
        }
    }

    /// The MIT Alewife machine of B.
    ///
    /// * Sourced: 4 nodes, a mesh, interrupts, an engine that moves data, fast traps.
    /// * Remembered: 20 MHz; 45 MB/s per link and direction; a null active message in 102 cycles, and 0.8 per hop.
    /// * Fitted: the ratio, the room at arrival (one unit).
    /// * Assumed: the jitter; how the 102 cycles are divided; units of 512 bytes (B chose for each curve
    ///   one below its breaking point, and does not give them); what starting the engine costs; the other buffers.
    #[must_use]
    pub const fn alewife() -> Self {
        BulkParameters {
            name: "alewife",
            shape: Shape::Mesh { columns: 2, rows: 2 },
            link_bandwidth: Bandwidth::from_megabytes(45),
            node_bandwidth: Bandwidth::from_megabytes(45),
            hop_latency: Time::from_nanoseconds(40),
            cell_bytes: 64,
            buffer_cells: 2,
            arrival_cells: 8,
            departure_units: 1,
            unit_bytes: 512,
            header_bytes: 8,
            send_unit: Time::from_nanoseconds(2_000),
            mover: Mover::Engine,
            receive_percent: 110,
            change_partner: Time::ZERO,
            send_signal: Time::from_nanoseconds(2_040),
            receive_signal: Time::from_nanoseconds(3_060),
            reception: Reception::Interrupts,
            barrier: BarrierKind::Tree { arity: 2 },
            proof: Proof::Injected,
            jitter_per_mille: 20,
        }
    }

    /// The three.
    pub const ALL: [fn() -> BulkParameters; 3] = [Self::cm5, Self::paragon, Self::alewife];

    /// Bytes on the wire of a unit with so much data.
    pub(super) const fn wire_bytes(&self, data: u32) -> u32 {
        data + self.header_bytes
    }

    /// Bytes on the wire of a small message: B's active messages are one packet with four words.
    pub(super) const fn signal_bytes(&self) -> u32 {
        16 + self.header_bytes
    }

    /// What a unit takes its sender, from the processor's first instruction until the next unit can begin, if the
    /// network takes all.
    #[must_use]
    pub fn sending(&self, data: u32) -> Time {
        match self.mover {
            Mover::Processor => self.send_unit,
            Mover::Engine => self.send_unit + self.node_bandwidth.time_of(self.wire_bytes(data)),
        }
    }

    /// What a unit takes its receiver's processor: the part before the first byte, and that of each byte on the wire,
    /// in picoseconds.
    #[must_use]
    pub fn receiving(&self) -> (Time, u64) {
        let of = |picoseconds: u64| picoseconds * u64::from(self.receive_percent) / 100;
        let per_byte = match self.mover {
            Mover::Processor => 0,
            Mover::Engine => of(1_000_000_000_000 / self.node_bandwidth.0),
        };
        (Time(of(self.send_unit.0)), per_byte)
    }

    /// The time that a receiver's processor needs for each byte of whole units, in picoseconds: `bandwidth_matching`
    /// keeps to it.
    #[must_use]
    pub fn extraction(&self) -> u64 {
        let (first, per_byte) = self.receiving();
        (first.0 + per_byte * u64::from(self.wire_bytes(self.unit_bytes))) / u64::from(self.unit_bytes)
    }
}
