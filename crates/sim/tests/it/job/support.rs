//! Small jobs with real bytes and all checkers on.

use tidegate_flow::{Buffers, SchemeName};
use tidegate_sim::{
    Contents, FlowChoice, NetworkParameters, Outcome, Part, Program, Simulation, SimulationConfig, SimulationError,
    Task, Topology,
};

/// Flow control by its name, slots per peer, credit slots.
pub fn mailbox(scheme: SchemeName, slots_per_peer: u32, credit_slots: u32, piggyback: bool) -> FlowChoice {
    FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, quota_most: None }
}

/// One pool of slots for all senders.
pub fn pool(pool_slots: u32) -> FlowChoice {
    let scheme = SchemeName::Speculative;
    FlowChoice::Posted { scheme, buffers: Buffers { pool_slots, ..Buffers::of(scheme) }, piggyback: false }
}

/// No flow control, every scheme at the smallest legal number of slots, one more, and plenty, and such pools.
pub fn all_flows() -> Vec<FlowChoice> {
    let mut flows = vec![FlowChoice::Unlimited];
    for (slots, credit_slots) in [(2, 1), (3, 1), (64, 2)] {
        for &scheme in SchemeName::WITHOUT_BUFFERS {
            flows.extend([false, true].map(|piggyback| mailbox(scheme, slots, credit_slots, piggyback)));
        }
    }
    flows.extend([1, 5, 64, 4096].map(pool));
    flows
}

/// A job of `size` processes, two to a node, all of them on one switch.
pub fn job(size: u32, flow: FlowChoice) -> SimulationConfig {
    let (nodes, processes_per_node) = if size.is_multiple_of(2) { (size / 2, 2) } else { (size, 1) };
    SimulationConfig {
        topology: Topology::switch(nodes).expect("a legal switch"),
        network: NetworkParameters::extoll(),
        processes_per_node,
        flow,
        contents: Contents::Bytes,
        checks: true,
        blocked_sender: tidegate_sim::BlockedSender::Retrieves,
        ..SimulationConfig::extoll(Topology::switch(1).expect("a legal switch"))
    }
}

/// Runs a job that must succeed.
pub fn run(config: SimulationConfig, program: &impl Program) -> Outcome {
    let what = format!("{} processes, {:?}", config.size(), config.flow);
    try_run(config, program).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Runs a job.
pub fn try_run(config: SimulationConfig, program: &impl Program) -> Result<Outcome, SimulationError> {
    Simulation::new(config, program)?.run()
}

/// Bytes that tell whose they are and where they come from.
pub fn bytes_of(rank: u32, length: u64) -> Vec<u8> {
    (0..length).map(|index| (u64::from(rank) * 37 + index * 11 + index / 256 + 1) as u8).collect()
}

/// New memory that holds them.
pub fn filled(task: &Task, length: u64) -> Part {
    let part = task.allocate(length);
    task.memory().write(part, &bytes_of(task.rank().0, length));
    part
}

/// What lies there.
pub fn read(task: &Task, part: Part) -> Vec<u8> {
    task.memory().read(part).expect("these jobs have bytes")
}

/// The sum, byte by byte, of everybody's `length` bytes.
pub fn sum_of_all(size: u32, length: u64) -> Vec<u8> {
    let mut sum = vec![0u8; length as usize];
    for rank in 0..size {
        for (total, byte) in sum.iter_mut().zip(bytes_of(rank, length)) {
            *total = total.wrapping_add(byte);
        }
    }
    sum
}
