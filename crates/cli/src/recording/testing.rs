//! Recordings that tests make up.

use tidegate_message::Counter;

use super::facts::EndpointFacts;
use super::rows::{EndpointRows, Last, OpenKind, OpenRow, WaitRow};
use super::samples::{self, Encoder, Reader};
use super::view::{Recording, View};
use super::{RECORDING_SCHEMA, Values, folder};
use tidegate_link::stats::WaitCause;

/// A recording under construction: one endpoint for each rank, whose id is its rank and 1.
pub struct Made {
    bytes: Vec<u8>,
    encoder: Encoder,
    /// What was run; 10 s.
    pub facts: super::facts::Facts,
    /// What was seen last.
    pub last: Last,
}

/// Counters, of which these are not 0.
pub fn values(pairs: &[(Counter, u64)]) -> Values {
    let mut values = [0; Counter::COUNT];
    pairs.iter().for_each(|(counter, value)| values[*counter as usize] = *value);
    values
}

/// An endpoint under `dynamic`.
pub fn endpoint(rank: u32) -> EndpointFacts {
    EndpointFacts {
        rank: Some(rank),
        pid: 1000 + rank,
        id: u64::from(rank) + 1,
        host: "here".to_owned(),
        program: "a.out".to_owned(),
        scheme: "dynamic".to_owned(),
        slots_per_peer: 64,
        credit_slots: 2,
        piggyback: true,
        peers: 20,
        ..EndpointFacts::default()
    }
}

impl Made {
    /// So many ranks.
    pub fn new(ranks: u32) -> Self {
        Made::of((0..ranks).map(endpoint))
    }

    /// These endpoints.
    pub fn of(endpoints: impl Iterator<Item = EndpointFacts>) -> Self {
        let mut bytes = samples::file_header();
        let mut number = 0;
        for facts in endpoints {
            bytes.extend(samples::endpoint_record(&facts));
            number += 1;
        }
        let rows = EndpointRows { ended: true, bulk: "direct".to_owned(), ..EndpointRows::default() };
        let last = Last { schema: RECORDING_SCHEMA.to_owned(), at_ns: 0, endpoints: vec![rows; number], held_up: None };
        let mut facts = folder::tests::facts();
        facts.interval_ns = 1_000_000_000;
        Made { bytes, encoder: Encoder::default(), facts, last }
    }

    /// A sample, at so many seconds.
    pub fn sample(&mut self, seconds: f64, values: &[Values]) {
        self.bytes.extend(self.encoder.sample((seconds * 1e9) as u64, values));
    }

    /// Sends of one rank waited for another.
    pub fn wait(&mut self, from: u32, to: u32, cause: WaitCause, seconds: f64) {
        let waited_ns = (seconds * 1e9) as u64;
        let row = WaitRow { peer: Some(u64::from(to) + 1), cause, count: 3, waited_ns, goes_on: false };
        self.last.endpoints[from as usize].waits.push(row);
    }

    /// Something of a rank is not finished.
    pub fn open(&mut self, rank: u32, kind: OpenKind, peer: Option<u32>, waits_for: Option<WaitCause>, seconds: f64) {
        let rows = &mut self.last.endpoints[rank as usize];
        rows.ended = false;
        rows.open.push(OpenRow {
            kind,
            peer: peer.map(|peer| u64::from(peer) + 1),
            tag: "tag 7".to_owned(),
            bytes: 8,
            age_ns: (seconds * 1e9) as u64,
            waits_for,
        });
    }

    /// What a reader makes of it.
    pub fn recording(&self) -> Recording {
        Recording::new(self.facts.clone(), Reader::new(self.bytes.clone()).unwrap(), self.last.clone())
    }

    /// With one sample at the end, the view of it.
    pub fn view(mut self, values: &[Values]) -> View {
        self.sample(10.0, values);
        self.recording().view
    }
}
