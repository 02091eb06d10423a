//! One receiver of P, fed packet by packet: the worked example of `static` (P figure 3), and what `dynamic` makes of
//! senders that differ in their rates, or do not (P §6.4, §6.5.2).

use tidegate_flow::{Activity, Config, FlowControl, Instant, Packet, PacketKind, PeerId, SchemeName, Violation};

use super::{Known, number};
use crate::data::{BadFigure, Keys};

/// The other side of a pair, and the one receiver of several senders.
const RECEIVER: PeerId = PeerId(0);
/// Packets of the senders of [`at_rates`], of which the second half is measured.
const PACKETS: u32 = 40_000;

fn data() -> Packet {
    Packet::new(PacketKind::Data, 0, 0)
}

fn told(violation: Violation) -> BadFigure {
    violation.to_string().into()
}

/// Sender and receiver of P figure 3, with what is counted there.
struct Pair {
    sender: FlowControl,
    receiver: FlowControl,
    /// Credit packets that the receiver sent and the sender has not retrieved.
    waiting: Vec<Packet>,
    credit_packets: u32,
}

impl Pair {
    fn new(quota: u32, credit_slots: u32) -> Result<Self, BadFigure> {
        let config = Config::new(SchemeName::Static, 1, quota + credit_slots, credit_slots);
        let new = || FlowControl::new(&config).map_err(|error| error.to_string());
        Ok(Pair { sender: new()?, receiver: new()?, waiting: Vec::new(), credit_packets: 0 })
    }

    /// The sender sends all that its credits allow, which lie in the receiver's mailbox then. Returns how many.
    fn send_all(&mut self) -> u32 {
        let mut sent = 0;
        while self.sender.credits(RECEIVER) > 0 {
            self.sender.request(RECEIVER, 1, Instant::default()).into_credits().spend();
            sent += 1;
        }
        sent
    }

    /// The receiver retrieves packets one by one, until it has sent `until` credit packets in all or `most` are
    /// retrieved. Returns how many it retrieved.
    fn retrieve(&mut self, until: u32, most: u32) -> Result<u32, BadFigure> {
        let mut retrieved = 0;
        while retrieved < most && self.credit_packets < until {
            self.receiver.handle_retrieved(RECEIVER, &data()).map_err(told)?;
            retrieved += 1;
            while let Some(control) = self.receiver.poll_control() {
                self.waiting.push(control.packet);
                self.credit_packets += 1;
            }
        }
        Ok(retrieved)
    }

    /// The fate of a sender that looks at its mailbox only when its last credit is spent, the worst case: it works, it
    /// stops because no credit packet comes (deadlock), or more of them wait for it than it has slots for
    /// (overflow). The receiver keeps up.
    fn fate(&mut self, credit_slots: u32) -> Result<&'static str, BadFigure> {
        for _ in 0..1000 {
            let sent = self.send_all();
            if sent == 0 {
                return Ok("deadlock");
            }
            self.retrieve(u32::MAX, sent)?;
            if self.waiting.len() > credit_slots as usize {
                return Ok("overflow");
            }
            while !self.waiting.is_empty() {
                self.free_one()?;
            }
        }
        Ok("works")
    }

    /// The sender retrieves one credit packet. Returns the credits in it.
    fn free_one(&mut self) -> Result<u32, BadFigure> {
        let packet = self.waiting.remove(0);
        self.sender.handle_retrieved(RECEIVER, &packet).map_err(told)?;
        Ok(packet.credits())
    }
}

/// The fate of a running sender with that quota under `static`.
pub(super) fn fate(quota: u32, credit_slots: u32) -> Result<&'static str, BadFigure> {
    Pair::new(quota, credit_slots)?.fate(credit_slots)
}

/// P figure 3: a quota of 20 and 2 credit slots, from the sender's first packet to the third credit packet.
pub(super) fn worked_example() -> Known {
    let mut pair = Pair::new(20, 2)?;
    let threshold = pair.receiver.inspect().peers[0].thresholds[0];
    let filled = pair.send_all();
    let first = pair.retrieve(1, filled)?;
    let second = first + pair.retrieve(2, filled - first)?;
    let more = pair.retrieve(3, filled - second)?;
    let packets_of_two = pair.credit_packets;
    let returned = pair.free_one()?;
    let resumed = pair.send_all();
    let third = pair.retrieve(3, resumed)?;
    let known = [
        ("threshold", threshold),
        ("filled", filled),
        ("first", first),
        ("second", second),
        ("more", more),
        ("packets_of_two", packets_of_two),
        ("returned", returned),
        ("resumed", resumed),
        ("third", third),
        ("packets_in_all", pair.credit_packets),
    ];
    Ok(known.into_iter().map(|(name, number)| (name, number.to_string())).collect())
}

/// Senders of one receiver under `dynamic`, all with the same slots.
struct Senders {
    receiver: FlowControl,
    senders: Vec<FlowControl>,
    /// Whether victims of thefts that keep some quota are moved to the front of low, and not of medium.
    victims_to_low: bool,
}

impl Senders {
    fn quotas(&self) -> Vec<u32> {
        self.receiver.inspect().peers.iter().map(|peer| peer.intended_quota).collect()
    }

    /// A sender sends a packet, which is retrieved at once, as are all control packets that follow. Returns whether it
    /// had a credit.
    fn send(&mut self, from: usize) -> Result<bool, BadFigure> {
        let sender = &mut self.senders[from];
        if sender.credits(RECEIVER) == 0 {
            return Ok(false);
        }
        sender.request(RECEIVER, 1, Instant::default()).into_credits().spend();
        let before = if self.victims_to_low { self.quotas() } else { Vec::new() };
        self.receiver.handle_retrieved(PeerId(from as u32), &data()).map_err(told)?;
        self.demote(&before);
        while let Some(control) = self.receiver.poll_control() {
            let peer = control.to;
            let sender = &mut self.senders[peer.0 as usize];
            sender.handle_retrieved(RECEIVER, &control.packet).map_err(told)?;
            while let Some(answer) = sender.poll_control() {
                self.receiver.handle_retrieved(peer, &answer.packet).map_err(told)?;
            }
        }
        Ok(true)
    }

    /// Moves those that have lost quota since `before` from medium to the front of low.
    fn demote(&mut self, before: &[u32]) {
        let quotas = self.quotas();
        for (peer, before) in (0..).map(PeerId).zip(before) {
            let is_victim = quotas[peer.0 as usize] < *before;
            if is_victim && self.receiver.inspect().activity(peer) == Some(Activity::Medium) {
                self.receiver.move_to_low(peer);
            }
        }
    }
}

/// P §6.4: senders whose packets come at `rates`, a number each, as evenly as that goes, `burst` in a row; with
/// `thefts = no` nothing is stolen, and with `victims = low` victims are moved there.
pub(super) fn at_rates(keys: &Keys) -> Known {
    let text = |name: &str| keys.get(name).map_or("", |key| key.text.as_str());
    let rates: Vec<u32> = text("rates").split(' ').filter_map(|rate| rate.parse().ok()).collect();
    let (slots, burst, credit_slots) = (number(keys, "slots")?, number(keys, "burst")?, 2);
    let plain = Config::new(SchemeName::Dynamic, rates.len() as u32, slots, credit_slots);
    let quota_most = (text("thefts") == "no").then_some(slots - credit_slots);
    let receiver = FlowControl::new(&Config { quota_most, ..plain }).map_err(|error| error.to_string())?;
    let of_sender = Config::new(SchemeName::Dynamic, 1, slots, credit_slots);
    let sender = || FlowControl::new(&of_sender).map_err(|error| error.to_string());
    let senders = rates.iter().map(|_| sender()).collect::<Result<Vec<_>, _>>()?;
    let mut world = Senders { receiver, senders, victims_to_low: text("victims") == "low" };
    let all: u32 = rates.iter().sum();
    let (mut due, mut sums, mut turns) = (vec![0_i64; rates.len()], vec![0_u64; rates.len()], 0);
    let (mut half, mut stalled, mut sent) = (world.receiver.tally(), 0_u32, 0);
    for turn in 0..PACKETS / burst {
        if turn == PACKETS / burst / 2 {
            (half, stalled, sent) = (world.receiver.tally(), 0, 0);
        }
        for (due, rate) in due.iter_mut().zip(&rates) {
            *due += i64::from(*rate);
        }
        let next = (0..rates.len()).max_by_key(|&sender| (due[sender], rates.len() - sender)).unwrap_or(0);
        due[next] -= i64::from(all);
        for _ in 0..burst {
            let has_sent = world.send(next)?;
            stalled += u32::from(!has_sent);
            sent += u32::from(has_sent);
        }
        if turn >= PACKETS / burst / 2 {
            turns += 1;
            sums.iter_mut().zip(world.quotas()).for_each(|(sum, quota)| *sum += u64::from(quota));
        }
    }
    let tally = world.receiver.tally();
    let means: Vec<f64> = sums.iter().map(|&sum| sum as f64 / f64::from(turns.max(1))).collect();
    Ok(summary(
        &rates,
        &means,
        [tally.steals - half.steals, tally.monitoring_points - half.monitoring_points],
        stalled,
        sent,
    ))
}

/// The numbers of a world of [`at_rates`]: thefts and monitoring points per 1,000 packets, quotas of the fastest and
/// the slowest senders, and how far quotas are from the ratio of rates, as a share of the data region that others
/// should have.
fn summary(
    rates: &[u32],
    means: &[f64],
    [steals, points]: [u64; 2],
    stalled: u32,
    sent: u32,
) -> Vec<(&'static str, String)> {
    let (all_rates, all_quotas) = (f64::from(rates.iter().sum::<u32>()), means.iter().sum::<f64>());
    let of_rate = |rate: u32| {
        let chosen = rates.iter().zip(means).filter(|(own, _)| **own == rate);
        let (sum, count) = chosen.fold((0.0, 0.0), |(sum, count), (_, mean)| (sum + mean, count + 1.0));
        sum / count
    };
    let (most, least) = (rates.iter().max().copied().unwrap_or(1), rates.iter().min().copied().unwrap_or(1));
    let apart = rates.iter().zip(means).map(|(&rate, mean)| (mean / all_quotas - f64::from(rate) / all_rates).abs());
    let middle = rates.iter().copied().find(|&rate| rate != most && rate != least).unwrap_or(most);
    let each = 1000.0 / f64::from(sent.max(1));
    vec![
        ("steals", format!("{:.3}", steals as f64 * each)),
        ("points", format!("{:.3}", points as f64 * each)),
        ("stalled", format!("{:.3}", f64::from(stalled) * each)),
        ("quota_most", format!("{:.2}", of_rate(most))),
        ("quota_middle", format!("{:.2}", of_rate(middle))),
        ("quota_least", format!("{:.2}", of_rate(least))),
        ("misplaced", format!("{:.2}", 50.0 * apart.sum::<f64>())),
    ]
}
