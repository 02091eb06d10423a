//! Times into the costs of a simulated machine.

use super::alone::{Alone, PACKETS};
use super::pair::Exchange;

/// The median of some times, and the two quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of all lies below.
    pub low: f64,
    /// Half of all.
    pub median: f64,
    /// Three quarters.
    pub high: f64,
}

impl Spread {
    /// Of some times; all 0 if there are none.
    #[must_use]
    pub fn of(times: &[f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * sorted.len().saturating_sub(1) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            match (sorted.get(below), sorted.get(above)) {
                (Some(low), Some(high)) => low + (high - low) * place.fract(),
                _ => 0.0,
            }
        };
        Spread { low: at(0.25), median: at(0.5), high: at(0.75) }
    }
}

/// A straight line through points: what is paid once, and for each unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// At nothing.
    pub once: f64,
    /// For each unit.
    pub each: f64,
}

impl Line {
    /// By least squares of the relative errors, so that the short messages count as much as the long ones. Neither part
    /// is below nothing: where the best line has such a one, it is the best of those through the origin, or level.
    #[must_use]
    pub fn through(points: &[(f64, f64)]) -> Self {
        let (mut weights, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(at, value) in points {
            let weight = 1.0 / value.max(1e-9).powi(2);
            weights += weight;
            x += weight * at;
            y += weight * value;
            xx += weight * at * at;
            xy += weight * at * value;
        }
        let each = (weights * xy - x * y) / (weights * xx - x * x).max(1e-30);
        let once = (y - each * x) / weights.max(1e-30);
        match (once < 0.0, each < 0.0) {
            (true, _) => Line { once: 0.0, each: xy / xx.max(1e-30) },
            (_, true) => Line { once: y / weights.max(1e-30), each: 0.0 },
            _ => Line { once, each },
        }
    }
}

/// The least share of the calls of a burst that a message that is waited for is taken to cost.
const CALLS_LEAST: f64 = 0.2;

/// What was measured of bursts: bytes, packets, and the times of [`Pair::burst`](super::Pair::burst).
pub type Bursts = Vec<(usize, u32, [Vec<f64>; 3])>;

/// The costs, in nanoseconds, and rates in bytes per nanosecond.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Of sends: `send_call` and `send_packet`.
    pub send: Line,
    /// `receive_call`.
    pub receive_call: Spread,
    /// Of receives: `complete_message` and `retrieve_packet`.
    pub take: Line,
    /// `poll`.
    pub poll: Spread,
    /// From the sender's last step to the receiver's first.
    pub latency: f64,
    /// A packet crosses from one processor to the other, while others do: `extraction`.
    pub crossing: f64,
    /// What starts or ends a bulk transfer.
    pub bulk_call: f64,
    /// Rate of bulk data.
    pub bulk_bandwidth: f64,
    /// Rate of copies.
    pub copy_bandwidth: f64,
    /// Rate of combining.
    pub combine_bandwidth: f64,
    /// Of taking and of counting a credit, each.
    pub credit: f64,
    /// Of a control packet, in addition.
    pub credit_packet: f64,
    /// Of one under `dynamic`, in addition to that.
    pub dynamic_packet: f64,
}

/// Finds the costs.
#[must_use]
pub fn fit(bursts: &Bursts, poll: &[f64], exchanges: &[(Exchange, Vec<f64>)], alone: &Alone) -> Costs {
    let median = |times: &[f64]| Spread::of(times).median;
    let line = |which: usize| {
        let points: Vec<_> =
            bursts.iter().map(|(_, packets, times)| (f64::from(*packets), median(&times[which]))).collect();
        Line::through(&points)
    };
    let (mut send, mut take) = (line(0), line(2));
    let posts: Vec<f64> = bursts.iter().flat_map(|(.., times)| times[1].iter().copied()).collect();
    let receive_call = Spread::of(&posts);
    let poll = Spread::of(poll);
    let pingpong = |wanted: usize| {
        let found = exchanges.iter().find(|(exchange, _)| *exchange == Exchange::Pingpong { bytes: wanted });
        found.map_or(0.0, |(_, times)| median(times))
    };
    // A message of nothing: everything but the way. On average half a look passes before it is seen; the receiver posts
    // its next receive on the way, too.
    let work = send.once + send.each + take.once + take.each + receive_call.median + poll.median / 2.0;
    let latency = (pingpong(0) - work).max(0.0);
    // Where a burst, which nobody reads meanwhile, costs more than a message that is answered at once, its calls are
    // made to fit: messages that are waited for count more.
    let calls = send.once + take.once;
    let shrunk = (1.0 - (work - pingpong(0)).max(0.0) / calls.max(1e-9)).max(CALLS_LEAST);
    (send.once, take.once) = (send.once * shrunk, take.once * shrunk);
    let stream = exchanges.iter().find(|(exchange, _)| *exchange == Exchange::Stream { bytes: 2048, window: 64 });
    let crossing = stream.map_or(0.0, |(_, times)| median(times) / PACKETS);
    let long: Vec<(f64, f64)> = exchanges
        .iter()
        .filter_map(|(exchange, times)| match exchange {
            Exchange::Pingpong { bytes } if *bytes > 2048 => Some((*bytes as f64, median(times))),
            _ => None,
        })
        .collect();
    let bulk = Line::through(&long);
    // A request to send comes, the data is fetched, and an answer goes back, which the sender waits for.
    let bulk_call = ((bulk.once - pingpong(0)) / 2.0).max(0.0);
    let rate = |times: &[f64]| Alone::COPIED as f64 / median(times).max(1.0);
    let [few_static, few_dynamic] = &alone.few;
    let [many_static, many_dynamic] = &alone.many;
    let packet = send.each + take.each;
    // Between few slots and many, messages differ by their control packets and by nothing else.
    let each = |few: &super::alone::Credits, many: &super::alone::Credits| {
        let packets = few.control_packets - many.control_packets;
        if packets > 0.1 { (median(&few.times) - median(&many.times)) / packets } else { packet }
    };
    let of_static = each(few_static, many_static);
    let credit_packet = ((of_static - packet) / 2.0).max(0.0);
    let dynamic_packet = (each(few_dynamic, many_dynamic) - of_static).max(0.0);
    let with_credits = median(&many_static.times) - many_static.control_packets * of_static;
    let credit = ((with_credits - median(&alone.none)) / PACKETS / 2.0).max(0.0);
    Costs {
        send,
        receive_call,
        take,
        poll,
        latency,
        crossing,
        bulk_call,
        bulk_bandwidth: 1.0 / bulk.each.max(1e-3),
        copy_bandwidth: rate(&alone.copy),
        combine_bandwidth: rate(&alone.combine),
        credit,
        credit_packet,
        dynamic_packet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 10.0, 37.0].map(|x| (x, 50.0 + 12.0 * x)).to_vec();
        let line = Line::through(&points);
        assert!((line.once - 50.0).abs() < 1e-6 && (line.each - 12.0).abs() < 1e-6, "{line:?}");
    }

    #[test]
    fn no_part_of_a_line_is_below_nothing() {
        let steep = Line::through(&[(1.0, 1.0), (2.0, 10.0)]);
        assert!(steep.once == 0.0 && steep.each > 1.0, "{steep:?}");
        let falling = Line::through(&[(1.0, 10.0), (2.0, 5.0)]);
        assert!(falling.each == 0.0 && (5.0..10.0).contains(&falling.once), "{falling:?}");
    }

    #[test]
    fn a_spread_has_the_quartiles() {
        assert_eq!(Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]), Spread { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(Spread::of(&[]), Spread { low: 0.0, median: 0.0, high: 0.0 });
    }

    #[test]
    fn costs_of_a_made_up_machine_are_found_again() {
        let bursts: Bursts = [(0, 1), (500, 10), (2048, 37)]
            .map(|(bytes, packets)| {
                let packets_of = f64::from(packets);
                (bytes, packets, [vec![40.0 + 6.0 * packets_of], vec![30.0], vec![70.0 + 9.0 * packets_of]])
            })
            .to_vec();
        let work = 40.0 + 6.0 + 70.0 + 9.0 + 30.0 + 10.0;
        let pingpong = |bytes: usize| (Exchange::Pingpong { bytes }, vec![work + 100.0]);
        let bulk = |bytes: usize| (Exchange::Pingpong { bytes }, vec![work + 100.0 + 2.0 * 300.0 + bytes as f64 / 5.0]);
        let stream = (Exchange::Stream { bytes: 2048, window: 64 }, vec![37.0 * 12.0]);
        let exchanges = [pingpong(0), bulk(16 << 10), bulk(1 << 20), stream];
        let credits = |control: f64, each: f64| super::super::alone::Credits {
            times: vec![37.0 * 15.0 + 37.0 * 4.0 + control * each],
            control_packets: control,
        };
        let alone = Alone {
            copy: vec![(1 << 20) as f64 / 8.0],
            combine: vec![(1 << 20) as f64 / 2.0],
            none: vec![37.0 * 15.0],
            many: [credits(0.5, 35.0), credits(0.5, 45.0)],
            few: [credits(6.0, 35.0), credits(8.0, 45.0)],
        };
        let costs = fit(&bursts, &[20.0], &exchanges, &alone);
        let near = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 0.01 * wanted, "{found} for {wanted}: {costs:?}")
        };
        near(costs.send.once, 40.0);
        near(costs.send.each, 6.0);
        near(costs.take.each, 9.0);
        near(costs.latency, 100.0);
        near(costs.crossing, 12.0);
        near(costs.bulk_call, 300.0);
        near(costs.bulk_bandwidth, 5.0);
        near(costs.copy_bandwidth, 8.0);
        // 35 ns are a packet sent and taken (15) and twice the credit's own cost.
        near(costs.credit_packet, 10.0);
        near(costs.dynamic_packet, 10.0);
        near(costs.credit, 2.0);
        // Half a round trip that takes 20 ns less than all that it is made of: the two calls, 110 ns, give way.
        let quicker =
            [(Exchange::Pingpong { bytes: 0 }, vec![work - 20.0]), exchanges[1].clone(), exchanges[2].clone()];
        let costs = fit(&bursts, &[20.0], &quicker, &alone);
        near(costs.send.once + costs.take.once, 90.0);
        assert_eq!(costs.latency, 0.0);
    }
}
