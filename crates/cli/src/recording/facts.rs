//! `recording.json`: what was run, and how it ended; and what is said once of each endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text;

/// What is known of a run besides its counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// [`RECORDING_SCHEMA`](super::RECORDING_SCHEMA).
    pub schema: String,
    /// The version that recorded.
    #[serde(deserialize_with = "text::one")]
    pub tidegate_version: String,
    /// Which time it is.
    pub clock: Clock,
    /// The program and its arguments.
    #[serde(deserialize_with = "text::list")]
    pub command: Vec<String>,
    /// The words of `tidegate` before them, without its name: `run --slots 4`. Empty where they are not known.
    #[serde(default, deserialize_with = "text::list")]
    pub options: Vec<String>,
    /// The MPI with its version, if recognised.
    #[serde(default, deserialize_with = "text::perhaps")]
    pub mpi: Option<String>,
    /// The settings that were made for it.
    #[serde(deserialize_with = "text::map")]
    pub environment: BTreeMap<String, String>,
    /// The host of the recorder.
    #[serde(deserialize_with = "text::one")]
    pub host: String,
    /// Processors that this host has for the run, if that is known.
    #[serde(default)]
    pub processors: Option<u32>,
    /// When it began, in seconds since the epoch.
    pub started_s: f64,
    /// From one sample to the next at the start, in nanoseconds.
    pub interval_ns: u64,
    /// How it ended; `None` while it goes on, and for ever if the recorder was killed.
    pub end: Option<End>,
}

/// Which time a recording tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// That of the world.
    Real,
    /// That of a simulation.
    Simulated,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The program's exit code, as a shell sees it.
    pub exit_code: u8,
    /// The signal that ended the program itself, if one did; where it ended a rank only, the launcher's code may tell.
    #[serde(default)]
    pub signal: Option<i32>,
    /// How the job failed.
    #[serde(default)]
    pub failure: Failure,
    /// How long it ran, in seconds.
    pub wall_time_s: f64,
    /// From one sample to the next at the end, in nanoseconds.
    pub interval_ns: u64,
    /// How often the counters were looked at, samples included that were left out later.
    pub looks: u64,
    /// The processor's time of all looks together, in nanoseconds.
    pub looks_ns: u64,
    /// Why there are no samples from some moment on, if that is so.
    #[serde(default, deserialize_with = "text::perhaps")]
    pub stopped: Option<String>,
    /// What processes said.
    #[serde(deserialize_with = "text::list")]
    pub troubles: Vec<String>,
}

/// The text of `tidegate run` on a job that failed, or whose messages did not go through Tidegate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// How the program ended and which processes did not close, in sentences without full stops. Empty: it ended well.
    #[serde(deserialize_with = "text::list")]
    pub ends: Vec<String>,
    /// Whether a signal came for the whole job: then the reason is what held it up before.
    pub was_ended: bool,
    /// The name of the signal that ended the program or one of its ranks, if that is certain.
    #[serde(deserialize_with = "text::perhaps")]
    pub signal: Option<String>,
    /// The rank that ended first, if that is certain.
    pub first_dead: Option<u32>,
    /// The thing of which the host had too little, in a few words.
    #[serde(deserialize_with = "text::perhaps")]
    pub lack: Option<String>,
    /// Why no message went through Tidegate, and what the host says: whole sentences.
    #[serde(deserialize_with = "text::list")]
    pub reasons: Vec<String>,
}

/// What is said of an endpoint once, at its first sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointFacts {
    /// Rank of its process in its job, if known.
    pub rank: Option<u32>,
    /// Its process.
    pub pid: u32,
    /// Which of its process's endpoints it is, from 0.
    pub serial: u32,
    /// Ranks of the job, if known.
    pub job_size: Option<u32>,
    /// What other endpoints call it; 0 if unknown.
    pub id: u64,
    /// The host of its process.
    #[serde(deserialize_with = "text::one")]
    pub host: String,
    /// What tells launches in one script apart, if known.
    #[serde(default, deserialize_with = "text::perhaps")]
    pub launch: Option<String>,
    /// Name of the program.
    #[serde(deserialize_with = "text::one")]
    pub program: String,
    /// Flow control; `unlimited` in simulations without.
    #[serde(deserialize_with = "text::one")]
    pub scheme: String,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of those, for credit packets.
    pub credit_slots: u32,
    /// Whether credits ride on data packets.
    pub piggyback: bool,
    /// Peers that may connect.
    pub peers: u32,
    /// Posted buffers, where the scheme has such.
    pub posted: Option<Posted>,
}

/// How buffers were posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Posted {
    /// Packets that a buffer holds.
    pub packets: u32,
    /// For each sender at the start, without a pool.
    pub each: u32,
    /// `growing`: at most, times the peers.
    pub most: u32,
    /// `shared_window`: in the pool at the start.
    pub pool_first: u32,
    /// `shared_window`: in the pool at most.
    pub pool_most: u32,
}

impl Facts {
    /// Of a run on this host that begins now.
    #[must_use]
    pub fn new(
        command: Vec<String>,
        mpi: Option<String>,
        environment: BTreeMap<String, String>,
        interval: Duration,
    ) -> Self {
        Facts {
            schema: super::RECORDING_SCHEMA.to_owned(),
            tidegate_version: env!("CARGO_PKG_VERSION").to_owned(),
            clock: Clock::Real,
            command,
            options: Vec::new(),
            mpi,
            environment,
            processors: std::thread::available_parallelism().ok().map(|number| number.get() as u32),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            started_s: super::now_s(),
            interval_ns: interval.as_nanos() as u64,
            end: None,
        }
    }

    /// What was run, as a user would type it.
    #[must_use]
    pub fn command_line(&self) -> String {
        tidegate_link::plain(&crate::quote::line(&self.command))
    }

    /// The share of one processor that reading the counters took, if the recording was finished.
    #[must_use]
    pub fn cost_share(&self) -> Option<f64> {
        let end = self.end.as_ref().filter(|_| self.clock == Clock::Real)?;
        let wall = end.wall_time_s * 1e9;
        (wall > 0.0).then(|| end.looks_ns as f64 / wall)
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::tests::facts;

    #[test]
    fn no_control_character_of_a_command_reaches_a_terminal() {
        let mut facts = facts();
        facts.command = vec!["a\u{1b}[2J".to_owned()];
        assert!(!facts.command_line().contains('\u{1b}'), "{}", facts.command_line());
    }

    #[test]
    fn a_run_that_claims_to_have_taken_for_ever_costs_nothing() {
        let mut facts = facts();
        assert_eq!(facts.cost_share(), Some(0.001));
        facts.end.as_mut().unwrap().wall_time_s = 1e300;
        assert!(facts.cost_share().is_some_and(|share| share < 1e-9));
        facts.end.as_mut().unwrap().wall_time_s = -1.0;
        assert_eq!(facts.cost_share(), None);
    }
}
