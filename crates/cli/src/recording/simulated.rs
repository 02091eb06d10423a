//! [`SimulatedRun`]: the recording of a simulated run, in simulated time.

use std::collections::BTreeMap;
use std::path::Path;

use tidegate_link::log::print_line;
use tidegate_sim::{FlowChoice, Look, Outcome, Rank, RankWait, Simulation, SimulationConfig, SimulationError, Time};

use super::facts::{Clock, End, EndpointFacts, Facts, Posted};
use super::folder::Recorder;
use super::rows::{EndpointRows, Last, WaitRow};
use super::writer::Bounds;
use super::{RECORDING_SCHEMA, Values};
use crate::failure::Failure;

/// From one sample to the next at the start. How long a run takes is not known beforehand: the interval doubles.
const INTERVAL_NS: u64 = 1_000;
/// A report shows at most some hundreds of columns.
const BOUNDS: Bounds = Bounds { bytes: 64 << 20, samples: 2_000 };

/// A recording under way.
#[derive(Debug)]
pub struct SimulatedRun {
    recorder: Recorder,
    processes: usize,
    /// Why nothing is recorded any more.
    stopped: Option<String>,
}

impl SimulatedRun {
    /// Begins to record a run of `program` as `config` has it; `command`: what the user typed.
    ///
    /// # Errors
    /// As [`Recorder::create`].
    pub fn create(
        folder: &Path,
        command: Vec<String>,
        config: &SimulationConfig,
        program: &str,
    ) -> Result<Self, Failure> {
        let facts = Facts {
            options: Vec::new(),
            schema: RECORDING_SCHEMA.to_owned(),
            tidegate_version: env!("CARGO_PKG_VERSION").to_owned(),
            clock: Clock::Simulated,
            command,
            mpi: None,
            environment: BTreeMap::new(),
            host: format!("a {}", config.topology),
            processors: None,
            started_s: super::now_s(),
            interval_ns: INTERVAL_NS,
            end: None,
        };
        let refused = |error| Failure::own(format!("--record={}: {error}", folder.display()));
        let mut recorder = Recorder::create(folder, facts, BOUNDS)?;
        for rank in 0..config.size() {
            recorder.add_endpoint(&endpoint(rank, config, program)).map_err(refused)?;
        }
        Ok(SimulatedRun { recorder, processes: config.size() as usize, stopped: None })
    }

    /// Runs the simulation to its end, and records it.
    ///
    /// # Errors
    /// As the simulation fails. The recording is finished in any case.
    pub fn run(mut self, simulation: Simulation) -> Result<Outcome, SimulationError> {
        let mut at = Time::ZERO;
        let outcome = simulation.run_watched(Time::ZERO, &mut |look| {
            at = look.at;
            self.look(&look)
        });
        let mut end = End { interval_ns: self.recorder.interval_ns(), ..End::default() };
        let rows = EndpointRows { bulk: "simulated".to_owned(), ..EndpointRows::default() };
        let mut endpoints = vec![rows; self.processes];
        match &outcome {
            Ok(outcome) => {
                let values: Vec<Values> = outcome.processes.iter().map(|process| process.counters).collect();
                // Credits may be on their way after the last program has ended.
                at = at.max(outcome.time);
                self.record(at, &values);
                end.wall_time_s = outcome.time.seconds();
                for (rows, process) in endpoints.iter_mut().zip(&outcome.processes) {
                    rows.ended = outcome.cut.is_none();
                    rows.waits = process.waits.iter().map(wait).collect();
                }
            }
            Err(error) => (end.wall_time_s, end.exit_code, end.troubles) = (at.seconds(), 125, vec![error.to_string()]),
        }
        let last =
            Last { schema: RECORDING_SCHEMA.to_owned(), at_ns: at.instant().as_nanos(), endpoints, held_up: None };
        // The report says what is missing.
        end.stopped = self.stopped.or(self.recorder.write_last(&last).err().map(|error| error.to_string()));
        if let Err(error) = self.recorder.finish(end) {
            print_line(&format!("the recording is not complete: {error}"));
        }
        outcome
    }

    /// Takes a sample; returns when the next is to be taken.
    fn look(&mut self, look: &Look) -> Time {
        let values: Vec<Values> = look.counters().collect();
        self.record(look.at, &values);
        match self.stopped {
            Some(_) => Time::NEVER,
            None => look.at + Time::from_nanoseconds(self.recorder.interval_ns()),
        }
    }

    fn record(&mut self, at: Time, values: &[Values]) {
        if self.stopped.is_none()
            && let Err(error) = self.recorder.add_sample(at.instant().as_nanos(), values)
        {
            self.stopped = Some(format!("nothing could be written any more: {error}"));
        }
    }
}

fn wait(wait: &RankWait) -> WaitRow {
    WaitRow {
        peer: wait.rank.map(id),
        cause: wait.cause,
        count: wait.count,
        waited_ns: wait.waited.instant().as_nanos(),
        goes_on: false,
    }
}

/// What others call the endpoint of a rank.
fn id(rank: Rank) -> u64 {
    u64::from(rank.0) + 1
}

/// What is said of a rank's endpoint.
fn endpoint(rank: u32, config: &SimulationConfig, program: &str) -> EndpointFacts {
    let node = rank / config.processes_per_node.max(1);
    let node = config.nodes.as_ref().and_then(|nodes| nodes.get(node as usize)).map_or(node, |node| node.0);
    let mut facts = EndpointFacts {
        rank: Some(rank),
        pid: rank,
        job_size: Some(config.size()),
        id: id(Rank(rank)),
        host: format!("node {node}"),
        program: program.to_owned(),
        scheme: "unlimited".to_owned(),
        peers: config.peers.unwrap_or(config.size().saturating_sub(1)),
        ..EndpointFacts::default()
    };
    match config.flow {
        FlowChoice::Unlimited => {}
        FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, .. } => {
            facts.scheme = scheme.name().to_owned();
            (facts.slots_per_peer, facts.credit_slots, facts.piggyback) = (slots_per_peer, credit_slots, piggyback);
        }
        FlowChoice::Posted { scheme, buffers, piggyback } => {
            (facts.scheme, facts.piggyback) = (scheme.name().to_owned(), piggyback);
            let (pool_first, pool_most) = match scheme.lends().is_pool_of_slots() {
                true => (buffers.pool_slots, buffers.pool_slots),
                false => (buffers.pool_first, buffers.pool_most),
            };
            facts.posted = Some(Posted {
                packets: buffers.packets,
                each: buffers.per_connection,
                most: buffers.per_connection_most,
                pool_first,
                pool_most,
            });
        }
    }
    facts
}
