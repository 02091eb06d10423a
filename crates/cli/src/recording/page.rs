//! What a page of counters becomes in a recording. What a page has beyond its counters is used in this file only.

use tidegate_link::EndpointStats;
use tidegate_message::Counter;

use super::Values;
use super::facts::{EndpointFacts, Posted};
use super::rows::EndpointRows;

/// What tells the endpoint of a page from all others.
pub type Key = (u32, u32, Option<u32>);

/// That of a page.
#[must_use]
pub fn key(page: &EndpointStats) -> Key {
    (page.pid, page.serial, page.rank)
}

/// The counters of a page.
#[must_use]
pub fn values(page: &EndpointStats) -> Values {
    std::array::from_fn(|index| page.get(Counter::ALL[index]))
}

/// What is said of the endpoint once.
#[must_use]
pub fn facts(page: &EndpointStats) -> EndpointFacts {
    EndpointFacts {
        rank: page.rank,
        pid: page.pid,
        serial: page.serial,
        job_size: page.job_size,
        id: 0,
        host: String::new(),
        launch: None,
        program: page.program.clone(),
        scheme: page.scheme.name().to_owned(),
        slots_per_peer: page.slots_per_peer,
        credit_slots: page.credit_slots,
        piggyback: page.piggyback,
        peers: page.peers,
        posted: page.posted.map(|posted| Posted {
            packets: posted.packets,
            each: posted.each,
            most: posted.most,
            pool_first: posted.pool_first,
            pool_most: posted.pool_most,
        }),
    }
}

/// What is no counter.
#[must_use]
pub fn rows(page: &EndpointStats) -> EndpointRows {
    EndpointRows { bulk: page.bulk.clone(), ..EndpointRows::default() }
}
