//! [`BulkOutcome`]: what came of a run.

use crate::Time;

/// Spans into which the time of a run is cut, where its senders are watched.
const SPANS: usize = 50;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkOutcome {
    /// When the last byte had been taken and the last program had ended.
    pub end: Time,
    /// Bytes of blocks that were delivered.
    pub bytes: u64,
    /// Megabytes per second that a node sent, on average over the nodes and the time.
    pub bandwidth: f64,
    /// Bookings that were asked for, and those of them that were denied.
    pub requests: u64,
    /// See there.
    pub denials: u64,
    /// Units that were sent, small messages among them.
    pub units: u64,
    /// Most blocks that were under way to one receiver at a time, as their senders know.
    pub senders_most: u32,
    /// Shares of the time, mean over all nodes, that processors spent on sending and on receiving.
    pub sending: f64,
    /// See there.
    pub receiving: f64,
    /// Shares of the nodes that had a block under way, in equal spans of the time; empty if that was not wanted.
    pub busy: Vec<f64>,
}

/// What is counted as a run goes on.
#[derive(Debug)]
pub(super) struct Watch {
    pub delivered: u64,
    end: Time,
    pub requests: u64,
    pub denials: u64,
    pub units: u64,
    pub sending: Time,
    pub receiving: Time,
    /// Blocks under way, by receiver and by sender.
    inflow: Vec<u32>,
    outflow: Vec<u32>,
    senders_most: u32,
    /// When senders became busy (true) or idle.
    changes: Option<Vec<(Time, bool)>>,
}

impl Watch {
    pub fn new(nodes: u32, watch: bool) -> Self {
        Watch {
            delivered: 0,
            end: Time::ZERO,
            requests: 0,
            denials: 0,
            units: 0,
            sending: Time::ZERO,
            receiving: Time::ZERO,
            inflow: vec![0; nodes as usize],
            outflow: vec![0; nodes as usize],
            senders_most: 0,
            changes: watch.then(Vec::new),
        }
    }

    pub fn begin_sending(&mut self, from: u32, to: u32, now: Time) {
        let (inflow, outflow) = (&mut self.inflow[to as usize], &mut self.outflow[from as usize]);
        *inflow += 1;
        *outflow += 1;
        self.senders_most = self.senders_most.max(*inflow);
        if *outflow == 1
            && let Some(changes) = &mut self.changes
        {
            changes.push((now, true));
        }
    }

    pub fn end_sending(&mut self, from: u32, to: u32, now: Time) {
        self.inflow[to as usize] -= 1;
        self.outflow[from as usize] -= 1;
        if self.outflow[from as usize] == 0
            && let Some(changes) = &mut self.changes
        {
            changes.push((now, false));
        }
    }

    pub fn deliver(&mut self, bytes: u32, now: Time) {
        self.delivered += u64::from(bytes);
        self.end = now;
    }

    pub fn finish(&mut self, now: Time) {
        self.end = self.end.max(now);
    }

    pub fn outcome(self, nodes: u32) -> BulkOutcome {
        let time = self.end.0.max(1) as f64;
        let share = |span: Time| span.0 as f64 / time / f64::from(nodes);
        BulkOutcome {
            end: self.end,
            bytes: self.delivered,
            bandwidth: self.delivered as f64 / f64::from(nodes) / self.end.microseconds(),
            requests: self.requests,
            denials: self.denials,
            units: self.units,
            senders_most: self.senders_most,
            sending: share(self.sending),
            receiving: share(self.receiving),
            busy: self.changes.as_deref().map_or_else(Vec::new, |changes| busy(changes, self.end, nodes)),
        }
    }
}

/// Shares of the nodes that were busy.
fn busy(changes: &[(Time, bool)], end: Time, nodes: u32) -> Vec<f64> {
    let width = (end.0 / SPANS as u64).max(1);
    let mut spans = vec![0.0; SPANS];
    let (mut at, mut count) = (0, 0_u32);
    for &(time, begins) in changes.iter().chain(std::iter::once(&(end, false))) {
        while at < time.0 {
            let span = ((at / width) as usize).min(SPANS - 1);
            let until = if span == SPANS - 1 { time.0 } else { time.0.min((span as u64 + 1) * width) };
            spans[span] += f64::from(count) * (until - at) as f64;
            at = until;
        }
        count = if begins { count + 1 } else { count.saturating_sub(1) };
    }
    spans.iter().map(|sum| sum / width as f64 / f64::from(nodes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_busy_as_long_as_they_are() {
        let changes = [(Time(0), true), (Time(50), true), (Time(75), false), (Time(100), false)];
        let shares = busy(&changes, Time(100), 2);
        assert_eq!(shares.len(), SPANS);
        assert!((shares[0] - 0.5).abs() < 1e-9 && (shares[30] - 1.0).abs() < 1e-9 && (shares[40] - 0.5).abs() < 1e-9);
    }
}
