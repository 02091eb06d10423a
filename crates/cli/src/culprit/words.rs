//! What was found, as a sentence.

use super::{End, Finding, Member, Presence, Root, Wait, Waits};
use std::time::Duration;
use tidegate_message::WaitCause;

/// A ring of up to so many ranks is told rank by rank.
const RING_TOLD: usize = 4;
/// A rank that is away for less than this has only computed a while.
const AWAY_LEAST: Duration = Duration::from_millis(500);

/// How long a rank is away, see [`Presence::Away`].
#[must_use]
pub fn no_call(time: Duration, at_least: bool) -> String {
    format!("has not called MPI for {}{}", if at_least { "at least " } else { "" }, age(time))
}

/// A time as people read it: "250 ms", "4.1 s", "2 min 5 s", "3 h 7 min".
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..100 => format!("{:.1} s", time.as_millis() as f64 / 1000.0),
        100..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// The word for a cause that stands in a table; the sentence has the same one.
pub fn cause_word(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Credits => "credits",
        WaitCause::Mailbox => "mailbox",
        WaitCause::Window => "memory",
        WaitCause::Buffer => "buffers",
        WaitCause::Pull => "pull",
        WaitCause::Message | WaitCause::AnyMessage => "message",
    }
}

/// Who holds up whom most, in words.
pub fn sentence(job: &Waits, finding: &Finding) -> String {
    let Some(root) = finding.roots.first() else { return "no rank holds up another one".to_owned() };
    let mut text = match &root.end {
        End::Rank(rank) => of_rank(job, root, *rank),
        End::Unsent { rank, wait } => of_unsent(job, root, *rank, *wait),
        End::Circle { ranks, ring, odd } => of_circle(job, root, ranks, *ring, *odd),
    };
    text += &and_more(finding);
    text
}

/// The other ends of chains, behind a sentence on the first; empty if there are none.
pub fn and_more(finding: &Finding) -> String {
    let others = finding.roots.get(1..).unwrap_or_default();
    if others.is_empty() {
        return String::new();
    }
    let held: usize = others.iter().map(|root| root.holds_up.max(1)).sum();
    format!(" (and {} more, for {})", others.len(), ranks(held))
}

fn of_rank(job: &Waits, root: &Root, rank: usize) -> String {
    let member = &job.members[rank];
    let name = &member.name;
    let text = format!("{name} holds up {}, {}: {}", ranks(root.holds_up), how_long(root), for_what(root, "it"));
    text + &match member.presence {
        Presence::Gone => "; its process is gone".to_owned(),
        Presence::Ended => "; it has left MPI".to_owned(),
        Presence::Away { time, at_least } if time >= AWAY_LEAST && !member.moves => {
            format!("; it {}{}", no_call(time, at_least), member.doing.clause())
        }
        _ => in_mpi(member),
    }
}

/// What a rank does that is in its MPI and waits for no rank in particular.
fn in_mpi(member: &Member) -> String {
    let any = member.any.as_ref().filter(|(_, time)| !member.moves && *time >= AWAY_LEAST);
    let text = any.map_or_else(String::new, |(receive, time)| {
        format!("; it waits itself, {}, for a message of any rank ({})", age(*time), receive.text)
    });
    match member.unmatched.first() {
        Some(unmatched) if any.is_some() => format!("{text}; no receive of it accepts one with {}", unmatched.text),
        _ => text,
    }
}

/// That a message is there of the rank for whose message a receive waits, and is another one: often a wrong tag.
fn another_is_there(job: &Waits, wait: &Wait) -> String {
    let mut unmatched = job.members[wait.waiter].unmatched.iter();
    let found = unmatched.find(|message| message.from == Some(wait.awaited));
    found.map_or_else(String::new, |message| {
        let (waiter, sender) = (&job.members[wait.waiter].name, &job.members[wait.awaited].name);
        format!("; a message of {sender} with {} is there, which no receive of {waiter} accepts", message.text)
    })
}

/// "rank 3 waits 5.3 s for a message of rank 0 (tag 77)".
fn waits_for_a_message(job: &Waits, wait: &Wait) -> String {
    let (waiter, sender) = (&job.members[wait.waiter].name, &job.members[wait.awaited].name);
    let time = wait.open_for.map_or_else(String::new, |time| format!("{} ", age(time)));
    let what = wait.receive.as_ref().map_or_else(String::new, |receive| format!(" ({})", receive.text));
    format!("{waiter} waits {time}for a message of {sender}{what}")
}

fn of_unsent(job: &Waits, root: &Root, rank: usize, wait: usize) -> String {
    let (name, wait) = (&job.members[rank].name, &job.waits[wait]);
    let mut text = waits_for_a_message(job, wait) + ", which goes on and has not sent it";
    if root.holds_up > 0 {
        text += &format!("; {} wait for {name}", ranks(root.holds_up));
    }
    text + &another_is_there(job, wait)
}

fn of_circle(job: &Waits, root: &Root, members: &[usize], is_ring: bool, odd: Option<usize>) -> String {
    let name = |rank: usize| job.members[rank].name.as_str();
    let Some(odd) = odd.map(|place| &job.waits[place]) else {
        let what = match root.cause {
            WaitCause::Message | WaitCause::AnyMessage => "messages",
            WaitCause::Credits => "credits",
            WaitCause::Mailbox => "room in mailboxes",
            WaitCause::Window => "room in receive memory",
            WaitCause::Buffer => "posted buffers",
            WaitCause::Pull => "long messages to be pulled",
        };
        let all = ranks(members.len());
        let more = root.holds_up.saturating_sub(members.len());
        let more = if more == 0 { String::new() } else { format!(", and {} for them", ranks(more)) };
        return format!("{all} wait for each other, {}, for {what}{more}: none of them stands out", how_long(root));
    };
    let mut text = waits_for_a_message(job, odd);
    if is_ring && members.len() <= RING_TOLD {
        for next in members[2..].iter().chain(&members[..1]) {
            text += &format!(", which waits for {}", name(*next));
        }
    } else {
        text += &format!(", which waits in a circle of {}", ranks(members.len()));
    }
    text += &format!("; {} wait in all", ranks(root.holds_up));
    text + &another_is_there(job, odd)
}

fn how_long(root: &Root) -> String {
    match root.longest {
        Some(longest) if longest >= Duration::from_secs(1) => format!("longest {}", age(longest)),
        _ => format!("up to {:.0} % of the time", root.share * 100.0),
    }
}

fn for_what(root: &Root, whom: &str) -> String {
    let many = root.holds_up != 1;
    let they = if many { "they wait" } else { "it waits" };
    let their = if many { "their" } else { "its" };
    match root.cause {
        WaitCause::Credits => format!("{they} for its credits"),
        WaitCause::Mailbox => format!("{they} for room in its mailbox"),
        WaitCause::Window => format!("{they} for room in its receive memory"),
        WaitCause::Buffer => format!("{they} for its posted buffers"),
        WaitCause::Pull => format!("{they} for {whom} to pull {their} long messages"),
        WaitCause::Message | WaitCause::AnyMessage => format!("{they} for messages from {whom}"),
    }
}

/// "1 rank", "3 ranks".
pub fn ranks(count: usize) -> String {
    if count == 1 { "1 rank".to_owned() } else { format!("{count} ranks") }
}
