//! Waits for credits, full mailboxes, posted buffers: what helps depends on the scheme.

use tidegate_fi::parameter::sizes::{LEAST_POOL, SLOTS};
use tidegate_flow::{Buffers, ReceiverResource, SchemeName};
use tidegate_message::Counter;

use super::{
    Evidence, MESSAGES_MATTER, Point, SHARE_MATTERS, bytes, count, of_job, of_process, percent, sends, share, time,
};
use crate::recording::view::View;
use tidegate_link::stats::WaitCause;

/// Waits that go to at most this share of the pairs that could wait are those of few.
const FEW_PAIRS: f64 = 0.25;
/// Waits that go to at least this share are those of all with all.
const MOST_PAIRS: f64 = 0.75;
/// A setting that the user made is said to cost where a process waited for this part of its time.
const SETTING_COSTS: f64 = 0.05;
/// The fewest slots for a peer that Tidegate chooses by itself.
const FEWEST_CHOSEN: u32 = 16;

fn scheme(run: &View) -> Option<SchemeName> {
    run.processes.first()?.facts.scheme.parse().ok()
}

/// Sends waited for credits.
pub fn credits(run: &View) -> Option<Point> {
    let scheme = scheme(run)?;
    let (at, longest) = run.most(Counter::DelayNanoseconds)?;
    let has_no_credits = matches!(scheme.lends(), ReceiverResource::Nothing | ReceiverResource::PoolSlots);
    if has_no_credits || share(run, longest) < SHARE_MATTERS {
        return None;
    }
    let (delayed, messages) = (run.job(Counter::SendsDelayed), messages(run));
    let found = format!(
        "{} of {} messages had to wait for credits, those of {} for {} {} of {}.",
        sends(delayed),
        count(messages),
        run.processes[at].label,
        time(longest),
        // Sends to several receivers wait at the same time.
        if longest > run.duration_ns { "together in a run" } else { "of a run" },
        time(run.duration_ns),
    );
    let evidence = vec![
        of_job(run, Counter::SendsDelayed),
        of_process(run, at, Counter::DelayNanoseconds),
        of_job(run, Counter::CreditPackets),
        of_job(run, Counter::MailboxBytes),
    ];
    let (remedy, options, mut more) = match scheme.lends().posts_buffers() {
        true => buffers_for_credits(run, scheme),
        false => slots(run, scheme),
    };
    more.extend(evidence);
    let headline = waited_for_credits(run, at, longest);
    Some(Point { id: "credits", headline, text: format!("{found} {remedy}"), options, evidence: more })
}

fn waited_for_credits(run: &View, at: usize, longest: u64) -> String {
    let label = &run.processes[at].label;
    match longest > run.duration_ns {
        true => format!("sends waited for credits, those of {label} for several receivers at a time"),
        false => format!("sends waited for credits, those of {label} {} of the time", percent(share(run, longest))),
    }
}

/// Whether senders have fewer slots than any job gets that does not ask for that.
pub fn has_few_slots(run: &View) -> bool {
    let lends = scheme(run).map(SchemeName::lends);
    let of_slots = matches!(lends, Some(ReceiverResource::FixedSlots | ReceiverResource::MovingSlots));
    of_slots && run.processes.iter().any(|process| process.facts.slots_per_peer < FEWEST_CHOSEN)
}

/// The slots of the pool for all senders, if there is one.
fn pool(run: &View) -> Option<u32> {
    let is_pool = scheme(run)?.lends() == ReceiverResource::PoolSlots;
    is_pool.then(|| run.processes[0].facts.posted.unwrap_or_default().pool_most)
}

/// Few slots, and sends that waited: whatever else holds up the job, more slots cost little and help.
pub fn few_slots(run: &View) -> Option<Point> {
    let (at, longest) = run.most(Counter::DelayNanoseconds)?;
    if run.processes[at].part(longest, run) < SETTING_COSTS {
        return None;
    }
    if let Some(slots) = pool(run).filter(|slots| *slots < LEAST_POOL) {
        let full = run.job(Counter::MailboxFull);
        return (full > 0).then(|| empty_pools(run, full, slots));
    }
    if !has_few_slots(run) {
        return None;
    }
    let slots = run.processes.iter().map(|process| process.facts.slots_per_peer).min().unwrap_or(0);
    let (long, more, least) = long_messages(run);
    let wanted = u64::from(SLOTS).max(least);
    let text = format!(
        "{long}Each sender has {slots} slots at its receiver, credit packets included, and sends waited for credits, those \
         of {} for {}. That makes a job slow in which many send to one, or one sends many: --slots {SLOTS} gives as many \
         as is usual, and without --slots Tidegate chooses by the number of ranks.",
        run.processes[at].label,
        time(longest),
    );
    let mut evidence = vec![
        Evidence { name: "slots per peer".into(), of: "job".into(), value: count(slots.into()) },
        of_job(run, Counter::SendsDelayed),
        of_process(run, at, Counter::DelayNanoseconds),
    ];
    evidence.extend(more);
    let headline = format!("{slots} slots for each sender are few: {}", waited_for_credits(run, at, longest));
    Some(Point { id: "few_slots", headline, text, options: vec![format!("--slots {wanted}")], evidence })
}

fn messages(run: &View) -> u64 {
    run.processes.iter().map(|process| process.messages()).fold(0, u64::saturating_add)
}

/// That a message takes more packets than a sender has slots for, as a sentence before others, with the number of slots
/// that would hold it.
fn long_messages(run: &View) -> (String, Option<Evidence>, u64) {
    let facts = &run.processes[0].facts;
    let data = facts.slots_per_peer.saturating_sub(facts.credit_slots);
    // Credit packets are the only packets that belong to no message.
    let of_data = run.job(Counter::PacketsSent).saturating_sub(run.job(Counter::CreditPackets));
    let packets = of_data.div_ceil(messages(run).max(1));
    if packets <= u64::from(data) {
        return (String::new(), None, 0);
    }
    let text = format!(
        "A message takes {} packets in the mean, and a sender has {} for data at each receiver, so it cannot leave at \
         once. ",
        count(packets),
        some(data, "slot"),
    );
    let evidence = Evidence { name: "packets per message".into(), of: "job".into(), value: count(packets) };
    (text, Some(evidence), (packets + u64::from(facts.credit_slots)).next_power_of_two())
}

/// More slots, or another scheme for the same ones.
fn slots(run: &View, scheme: SchemeName) -> (String, Vec<String>, Vec<Evidence>) {
    let facts = &run.processes[0].facts;
    let slots = facts.slots_per_peer;
    let mut evidence = vec![Evidence { name: "slots per peer".into(), of: "job".into(), value: count(slots.into()) }];
    let (mut text, more, least) = long_messages(run);
    evidence.extend(more);
    let wanted = (u64::from(slots) * 2).max(least);
    let each = run.most(Counter::MailboxBytes).map_or(0, |(_, bytes)| bytes);
    let more = each / u64::from(slots.max(1)) * wanted.saturating_sub(slots.into());
    let by_slots = format!(
        "--slots {wanted} lets as many more packets be under way and takes {} more memory in each process; the counters do \
         not tell how many are enough, so compare a run with it.",
        bytes(more)
    );
    let spread = spread(run);
    let mut options = vec![format!("--slots {wanted}")];
    if scheme.lends() == ReceiverResource::FixedSlots && spread.is_none_or(|spread| spread <= FEW_PAIRS) {
        text += match spread {
            Some(_) => {
                "Few pairs of processes waited, so slots of the others lay idle: --scheme dynamic moves them to \
                        those that send, in the same memory. "
            }
            None => {
                "If each process sends to few others at a time, --scheme dynamic moves the slots there, in the same \
                     memory. "
            }
        };
        options.insert(0, "--scheme dynamic".to_owned());
    } else if scheme.lends() == ReceiverResource::MovingSlots && spread.is_some_and(|spread| spread >= MOST_PAIRS) {
        text += "Nearly all pairs of processes waited, and where all send to all at once --scheme static is often better \
                 with the same memory (docs/schemes.md). ";
        options.insert(0, "--scheme static".to_owned());
    }
    if let Some(spread) = spread {
        let value = percent(spread);
        evidence.push(Evidence { name: "pairs that waited, of all that could".into(), of: "job".into(), value });
    }
    (text + &by_slots, options, evidence)
}

/// The share of pairs of processes between which sends waited for credits; `None` if no waits of pairs were recorded.
fn spread(run: &View) -> Option<f64> {
    let waited = run.waits.iter().filter(|wait| wait.cause == WaitCause::Credits && wait.to.is_some()).count();
    let number = run.processes.len();
    (waited > 0 && number > 2).then(|| waited as f64 / (number * (number - 1)) as f64)
}

/// More buffers for senders whose credits were used up.
fn buffers_for_credits(run: &View, scheme: SchemeName) -> (String, Vec<String>, Vec<Evidence>) {
    let posted = run.processes[0].facts.posted.unwrap_or_default();
    let denied = run.job(Counter::GrowthsDenied);
    if scheme.lends().may_grow() && denied > 0 {
        let wanted = u64::from(posted.most) * 2;
        let text = format!(
            "{} times a connection was to get more buffers and all {} times the peers were posted: --buffers-most {wanted} \
             allows twice as many.",
            count(denied),
            posted.most
        );
        return (text, vec![format!("--buffers-most {wanted}")], vec![of_job(run, Counter::GrowthsDenied)]);
    }
    let wanted = u64::from(posted.each) * 2;
    let start = if scheme.lends().may_grow() { "begins with" } else { "posts" };
    let text = format!(
        "Each sender had {} posted at its receiver {}: --buffers {wanted} {start} twice as many, and twice the memory for \
         them.",
        some(posted.each, "buffer"),
        if scheme.lends().may_grow() { "at the start" } else { "all the time" },
    );
    let evidence = Evidence { name: "buffers per peer".into(), of: "job".into(), value: count(posted.each.into()) };
    (text, vec![format!("--buffers {wanted}")], vec![evidence])
}

/// Packets found mailboxes full, which no credits kept them from.
pub fn full_mailboxes(run: &View) -> Option<Point> {
    let full = run.job(Counter::MailboxFull);
    let packets = run.job(Counter::PacketsSent);
    let longest = run.most(Counter::DelayNanoseconds).map_or(0, |(_, most)| most);
    let matters = share(run, longest) >= SHARE_MATTERS || full as f64 >= MESSAGES_MATTER * packets.max(1) as f64;
    let lends = scheme(run)?.lends();
    if !matches!(lends, ReceiverResource::Nothing | ReceiverResource::PoolSlots) || full == 0 || !matters {
        return None;
    }
    if let Some(slots) = pool(run) {
        return Some(empty_pools(run, full, slots));
    }
    let wanted = u64::from(run.processes[0].facts.slots_per_peer) * 2;
    let (at, _) = run.most(Counter::MailboxPeak)?;
    let text = format!(
        "Under --scheme none {} packets found their receiver's mailbox full and were tried again, and whoever filled it \
         held up all others. --scheme dynamic keeps a share for each sender; --slots {wanted} makes mailboxes twice as \
         large.",
        count(full)
    );
    let evidence = vec![
        of_job(run, Counter::MailboxFull),
        of_job(run, Counter::PacketsSent),
        of_process(run, at, Counter::MailboxPeak),
    ];
    let options = vec!["--scheme dynamic".to_owned(), format!("--slots {wanted}")];
    let headline = format!("mailboxes were full {} times, which no credits prevent", count(full));
    Some(Point { id: "mailbox_full", headline, text, options, evidence })
}

/// Senders found no slot in the pool of their receiver, and waited until they were invited.
fn empty_pools(run: &View, full: u64, slots: u32) -> Point {
    let wanted = (u64::from(slots) * 2).max(LEAST_POOL.into());
    let remedy = if slots < LEAST_POOL {
        format!("That is few: --pool-slots {wanted} gives as many as Tidegate chooses at least.")
    } else {
        format!("--pool-slots {wanted} makes pools twice as large. Where receivers are slow that hardly helps.")
    };
    let text = format!(
        "{} times a sender found none of the {} of its receiver's pool free, and waited until it was invited. {remedy}",
        count(full),
        some(slots, "slot"),
    );
    let evidence = vec![of_job(run, Counter::MailboxFull), of_job(run, Counter::PacketsSent)];
    let headline = format!("pools were full {} times: a pool has {}", count(full), some(slots, "slot"));
    Point { id: "mailbox_full", headline, text, options: vec![format!("--pool-slots {wanted}")], evidence }
}

/// Messages found no posted buffer, and a process waited long for that. With fewer buffers than are usual any refusal
/// will do: how many there are in a time depends on how often the processes run.
pub fn costly_refusals(run: &View) -> Option<Point> {
    let (at, longest) = run.most(Counter::DelayNanoseconds)?;
    let has_few = run.processes[0].facts.posted.unwrap_or_default().each < Buffers::of(scheme(run)?).per_connection;
    let least = if has_few { 0.0 } else { MESSAGES_MATTER };
    refusals_of(run, least).filter(|_| run.processes[at].part(longest, run) >= SETTING_COSTS)
}

/// Messages found no posted buffer and were sent again when the retry timer had run out.
pub fn refusals(run: &View) -> Option<Point> {
    refusals_of(run, MESSAGES_MATTER)
}

/// The same, if at least this part of the messages was refused.
fn refusals_of(run: &View, least: f64) -> Option<Point> {
    let scheme = scheme(run)?;
    let (refused, messages) = (run.job(Counter::Refusals), messages(run));
    let has_buffers = scheme.lends().posts_buffers() && !scheme.lends().is_pool_of_slots();
    if !has_buffers || (refused as f64) < least * messages.max(1) as f64 || refused == 0 {
        return None;
    }
    let posted = run.processes[0].facts.posted.unwrap_or_default();
    let (remedy, options) = match scheme.lends() {
        ReceiverResource::PoolBuffers if run.job(Counter::LimitEvents) > 0 => {
            let wanted = (u64::from(posted.pool_first) * 4).min(posted.pool_most.into()).max(1);
            let text = format!(
                "The pool began with {} and grew {} times: --pool-first {wanted} begins with more.",
                some(posted.pool_first, "buffer"),
                count(run.job(Counter::LimitEvents))
            );
            (text, vec![format!("--pool-first {wanted}")])
        }
        ReceiverResource::PoolBuffers => {
            let wanted = u64::from(posted.pool_most) * 2;
            let text = format!("The pool has {}: --pool-most {wanted} allows more.", some(posted.pool_most, "buffer"));
            (text, vec![format!("--pool-most {wanted}")])
        }
        _ => {
            // As many as are usual, or twice as many as these.
            let wanted = match Buffers::of(scheme).per_connection {
                usual if usual > posted.each => usual,
                _ => posted.each.saturating_mul(2),
            };
            let text = format!(
                "Each sender has {} at its receiver{}: --buffers {wanted} posts more. Under --scheme dynamic senders know \
                 what is free, and nothing is refused; a pool for all senders, --scheme shared_window, takes the memory \
                 where it is needed.",
                some(posted.each, "buffer"),
                if scheme.lends().may_grow() { " at the start" } else { "" },
            );
            (text, vec![format!("--buffers {wanted}"), "--scheme dynamic".to_owned()])
        }
    };
    let text = format!(
        "Messages found no posted buffer {} times, for {} messages in all, and each time waited for the retry timer. {remedy}",
        count(refused),
        count(messages)
    );
    let evidence = [Counter::Refusals, Counter::Retries, Counter::LimitEvents, Counter::BuffersAdded];
    let evidence = evidence.map(|counter| of_job(run, counter)).to_vec();
    let headline = format!("messages were refused {} times for want of a posted buffer", count(refused));
    Some(Point { id: "refusals", headline, text, options, evidence })
}

/// So many slots or buffers.
fn some(number: u32, noun: &str) -> String {
    format!("{} {noun}{}", count(number.into()), if number == 1 { "" } else { "s" })
}
