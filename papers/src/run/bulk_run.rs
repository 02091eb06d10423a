//! [`BulkRun`]: a case that is a job of bulk transfers on one of B's machines (`tidegate_sim::bulk_machine`), where the
//! other cases are jobs of processes with endpoints.

use std::fmt;

use tidegate_sim::bulk_machine::{self, BarrierKind, BulkJob, BulkParameters, BulkPattern, Proof, Reception, Shape};
use tidegate_sim::{Bulk, Measurement, SimulationError};

/// A job on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkRun {
    pub machine: BulkParameters,
    pub job: BulkJob,
}

impl BulkRun {
    pub fn measure(&self, seed: u64) -> Result<Measurement, SimulationError> {
        let found = bulk_machine::run(&self.machine, &self.job, seed)?;
        let bulk = Bulk {
            bandwidth: found.bandwidth,
            requests: found.requests,
            denials: found.denials,
            senders_most: found.senders_most,
            sending: found.sending,
            receiving: found.receiving,
            busy: found.busy,
        };
        Ok(Measurement { time: found.end.microseconds(), bulk: Some(bulk), ..Measurement::default() })
    }

    pub fn nodes(&self) -> u32 {
        self.machine.shape.nodes()
    }

    /// What takes time: about how many units are sent.
    pub fn size(&self) -> f64 {
        let nodes = f64::from(self.nodes());
        let blocks = match self.job.pattern {
            BulkPattern::CyclicShift { passes } => nodes * (nodes - 1.0) * f64::from(passes),
            BulkPattern::Random { blocks } => nodes * f64::from(blocks),
            BulkPattern::Partners { .. } => nodes,
            BulkPattern::OneWay { .. } => 1.0,
        };
        blocks * (2.0 + (self.job.block_bytes as f64 / f64::from(self.machine.unit_bytes)).ceil())
    }

    /// What is alike in runs that take about as long per unit.
    pub fn kind(&self) -> String {
        format!("{}, {}", self.machine.name, self.job.technique)
    }
}

/// What a machine has that is not as in its set.
fn write_changes(f: &mut fmt::Formatter<'_>, machine: &BulkParameters) -> fmt::Result {
    let sets = BulkParameters::ALL.map(|set| set());
    let Some(usual) = sets.iter().find(|set| set.name == machine.name) else { return Ok(()) };
    if machine.receive_percent != usual.receive_percent {
        write!(f, ", receiving {} %", machine.receive_percent)?;
    }
    if machine.jitter_per_mille != usual.jitter_per_mille {
        write!(f, ", jitter {} per mille", machine.jitter_per_mille)?;
    }
    if machine.change_partner != usual.change_partner {
        write!(f, ", another partner {}", machine.change_partner)?;
    }
    if machine.unit_bytes != usual.unit_bytes {
        write!(f, ", units of {} bytes", machine.unit_bytes)?;
    }
    if machine.send_unit != usual.send_unit {
        write!(f, ", sending {}", machine.send_unit)?;
    }
    if machine.arrival_cells != usual.arrival_cells {
        write!(f, ", {} cells at arrival", machine.arrival_cells)?;
    }
    if (machine.send_signal, machine.receive_signal) != (usual.send_signal, usual.receive_signal) {
        write!(f, ", small messages {} + {}", machine.send_signal, machine.receive_signal)?;
    }
    if machine.proof == Proof::Injected {
        f.write_str(", sent when injected")?;
    }
    match machine.reception {
        _ if machine.reception == usual.reception => {}
        Reception::Polling { every, most } => write!(f, ", looks every {every} for {most}")?,
        Reception::Interrupts => f.write_str(", interrupts")?,
    }
    match machine.barrier {
        _ if machine.barrier == usual.barrier => Ok(()),
        BarrierKind::Hardware(span) => write!(f, ", barrier {span}"),
        BarrierKind::Tree { arity } => write!(f, ", tree of arity {arity}"),
    }
}

impl fmt::Display for BulkRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BulkRun { machine, job } = self;
        match machine.shape {
            Shape::FatTree { .. } => write!(f, "{} of {} nodes", machine.name, self.nodes())?,
            Shape::Mesh { columns, rows } => write!(f, "{} of {columns} x {rows} nodes", machine.name)?,
        }
        write_changes(f, machine)?;
        match job.pattern {
            BulkPattern::CyclicShift { passes } => write!(f, ", {passes} cyclic shifts")?,
            BulkPattern::Random { blocks } => write!(f, ", {blocks} random blocks")?,
            BulkPattern::Partners { bit } => write!(f, ", partners by bit {bit}")?,
            BulkPattern::OneWay { to } => write!(f, ", one way to {to}")?,
        }
        write!(f, " of {} bytes, {}", job.block_bytes, job.technique)?;
        if job.technique == tidegate_bulk::TechniqueName::Booking {
            let (window, requests) = (job.settings.window, job.settings.requests_per_round);
            write!(f, ", window {window}, {requests} requests a round")?;
        }
        if job.watch { f.write_str(", watched") } else { Ok(()) }
    }
}
