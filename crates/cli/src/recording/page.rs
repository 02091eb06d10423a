//! What a page of counters becomes in a recording. What a page has beyond its counters is used in this file only.

use std::time::Duration;

use tidegate_link::EndpointStats;
use tidegate_link::stats::{PeerWait, WaitCause};
use tidegate_message::{Counter, WayTimes};

use crate::mpi::MpiKind;
use crate::report::launches;
use crate::{tag, top};

use super::Values;
use super::facts::{EndpointFacts, Posted};
use super::rows::{EndpointRows, OpenCounts, OpenKind, OpenRow, WaitRow};

/// What tells the endpoint of a page from all others.
pub type Key = u64;

/// That of a page.
#[must_use]
pub fn key(page: &EndpointStats) -> Key {
    page.endpoint
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
        id: page.endpoint,
        host: page.host.clone(),
        launch: page.launch.clone(),
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

/// Lets what was open when the pages were written last go on until now: waits that have not ended count in full.
pub fn until_now(pages: &mut [EndpointStats]) {
    let now = tidegate_link::since_epoch();
    pages.iter_mut().for_each(|page| page.lasts_until(now));
}

/// Who holds up whom, in a sentence: of several launches, in the one that began last of those where anybody does.
#[must_use]
pub fn held_up(pages: &[EndpointStats]) -> Option<String> {
    let all: Vec<EndpointStats> = pages.to_vec();
    let launches = launches::split(all);
    launches.iter().rev().find_map(|pages| top::at_the_end(pages, None))
}

/// What is no counter.
#[must_use]
pub fn rows(page: &EndpointStats) -> EndpointRows {
    let open = &page.open;
    let mpi = page.mpi.as_deref().and_then(MpiKind::of_id);
    let row = |kind, peer, (tag, ignore), bytes, age: Duration, waits_for: Option<WaitCause>| {
        let tag = tag::decode(mpi, tag, ignore);
        OpenRow { kind, peer, tag, bytes, age_ns: nanoseconds(age), waits_for }
    };
    let receives = open.receives.iter();
    let mut rows: Vec<OpenRow> = receives
        .map(|open| row(OpenKind::Receive, open.from, (open.tag, open.ignore), open.bytes, open.age(), None))
        .collect();
    let sends = open.sends.iter();
    rows.extend(
        sends.map(|open| row(OpenKind::Send, Some(open.to), (open.tag, 0), open.bytes, open.age(), open.waits_for)),
    );
    let unexpected = open.unexpected.iter();
    rows.extend(
        unexpected.map(|open| row(OpenKind::Unexpected, Some(open.from), (open.tag, 0), open.bytes, open.age(), None)),
    );
    EndpointRows {
        ended: page.ended,
        lived_ns: nanoseconds(page.lived()),
        bulk: page.bulk.clone(),
        ways: ways(page),
        waits: page.open.waits.iter().map(wait).collect(),
        open: rows,
        open_in_all: OpenCounts {
            receives: open.receives_in_all,
            sends: open.sends_in_all,
            unexpected: open.unexpected_in_all,
        },
    }
}

fn ways(page: &EndpointStats) -> Vec<[u32; 2]> {
    let times = page.open.way_times;
    let is_measured = times.iter().any(|times| *times != WayTimes::default());
    times.iter().filter(|_| is_measured).map(|times| [times.asked, times.read]).collect()
}

fn wait(wait: &PeerWait) -> WaitRow {
    WaitRow {
        peer: wait.peer,
        cause: wait.cause,
        count: wait.count,
        waited_ns: nanoseconds(wait.in_all()),
        goes_on: wait.open_for().is_some(),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
