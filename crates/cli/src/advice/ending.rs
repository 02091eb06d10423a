//! What was lost, and what was not finished.

use tidegate_message::Counter;

use super::{Point, count, names, of_job, of_process, time};
use crate::culprit::LASTED_AT_THE_END;
use crate::recording::folder::LAST_FILE;
use crate::recording::rows::{OpenKind, UNTAGGED};
use crate::recording::view::{Open, View};

/// The name of a point: nobody sent anything.
pub const NOTHING_SENT: &str = "nothing_sent";

/// And: it does not cover the whole run.
pub const INCOMPLETE: &str = "incomplete";

/// And: something was lost.
pub const LOST: &str = "lost";
/// And: something was not finished.
pub const UNFINISHED: &str = "unfinished";

/// No message went through Tidegate.
pub fn nothing_sent(run: &View) -> Option<Point> {
    let counters = [Counter::PacketsSent, Counter::MessagesSelf, Counter::RmaOperations, Counter::AtomicOperations];
    counters.iter().all(|counter| run.job(*counter) == 0).then(|| Point {
        id: NOTHING_SENT,
        headline: match run.processes.is_empty() {
            true => "no process used Tidegate".to_owned(),
            false => "no message went through Tidegate".to_owned(),
        },
        text: why_nothing(run),
        options: Vec::new(),
        evidence: vec![of_job(run, Counter::PacketsSent)],
    })
}

fn why_nothing(run: &View) -> String {
    let reasons = run.facts.end.as_ref().map_or(&[][..], |end| &end.failure.reasons);
    let what = match run.processes.is_empty() {
        true => "No process opened an endpoint of Tidegate, so there is nothing to say of flow control",
        false => "No message went through Tidegate, so there is nothing to say of flow control",
    };
    match reasons {
        [] => format!("{what}: what `tidegate run` printed says why that may be."),
        reasons => format!("{what}. {}", reasons.join(" ")),
    }
}

/// The recording does not cover the whole run.
pub fn incomplete(run: &View) -> Option<Point> {
    let covered = time(run.sampled_ns);
    let text = match &run.facts.end {
        None => format!("The recording goes on, or was cut off: what follows is of the first {covered}."),
        Some(end) => {
            let damaged = run.is_torn.then_some("its samples are damaged");
            let Some(why) = end.stopped.as_deref().or(damaged) else { return without_last(run) };
            format!("The recording is not complete ({why}): what follows is of the first {covered}.")
        }
    };
    let headline = format!("only the first {covered} of the run were recorded");
    Some(Point { id: INCOMPLETE, headline, text, options: Vec::new(), evidence: Vec::new() })
}

/// The recording has lost the file that says who waited for whom.
fn without_last(run: &View) -> Option<Point> {
    run.lacks_last.then(|| Point {
        id: INCOMPLETE,
        headline: format!("{LAST_FILE} of the recording is missing"),
        text: format!(
            "The recording is not complete ({LAST_FILE} is missing): which ranks waited for which, and what was not finished \
             at the end, is not known."
        ),
        options: Vec::new(),
        evidence: Vec::new(),
    })
}

/// Messages or processes were lost.
pub fn lost(run: &View) -> Option<Point> {
    let (lost, died) = (run.job(Counter::SendsLost), run.job(Counter::PeersDied));
    if lost + died == 0 {
        return None;
    }
    let mut text = String::new();
    if died > 0 {
        text += &format!("Processes saw peers die while they were connected ({} times). ", count(died));
    }
    if lost > 0 {
        text += &format!("{} messages that counted as sent never reached their receivers. ", count(lost));
    }
    text += "No setting of flow control helps against that: look at why processes ended early.";
    let evidence = vec![of_job(run, Counter::SendsLost), of_job(run, Counter::PeersDied)];
    let headline = match (lost, died) {
        (0, _) => "processes died while others were connected with them".to_owned(),
        (lost, 0) => format!("{} messages that counted as sent never arrived", count(lost)),
        (lost, _) => format!("processes died, and {} messages that counted as sent never arrived", count(lost)),
    };
    Some(Point { id: LOST, headline, text, options: Vec::new(), evidence })
}

/// Whether processes that were seen to die did so because a signal came for the whole job, and no message was lost.
pub fn died_of_the_end(run: &View) -> bool {
    run.job(Counter::SendsLost) == 0 && run.facts.end.as_ref().is_some_and(|end| end.failure.was_ended)
}

/// The job did not end in order, and something was not finished.
pub fn unfinished(run: &View) -> Option<Point> {
    if run.all_ended || run.is_interrupted() && run.open.is_empty() {
        return None;
    }
    // Untagged receives are the MPI's own: it posts buffers for what may come.
    let is_mpis = |open: &Open| open.row.kind == OpenKind::Receive && open.row.tag == UNTAGGED;
    let lasted = |open: &Open| u128::from(open.row.age_ns) >= LASTED_AT_THE_END.as_nanos();
    let counts = |open: &Open| (run.held_up.is_some() || lasted(open)) && !is_mpis(open);
    let oldest = |kind: OpenKind| run.open.iter().find(|open| open.row.kind == kind && counts(open));
    let (text, open) = match (oldest(OpenKind::Send), oldest(OpenKind::Receive)) {
        (Some(send), _) if send.row.waits_for.is_some() => (of_send(run, send), send),
        (_, Some(receive)) => (of_receive(run, receive), receive),
        (Some(send), None) => (of_send(run, send), send),
        (None, None) => return None,
    };
    // Who looked at the processes then could follow the chains of their waits.
    let headline = run.held_up.as_ref().map_or_else(
        || "the job did not end in order, and messages were still open".to_owned(),
        |who| format!("at the end {who}"),
    );
    let text = run.held_up.as_ref().map_or(text, |who| format!("At the end {who}: look there first."));
    let evidence = vec![super::Evidence {
        name: match open.row.kind {
            OpenKind::Receive => "open receive",
            OpenKind::Send => "open send",
            OpenKind::Unexpected => "unexpected message",
        }
        .to_owned(),
        of: run.processes[open.process].label.clone(),
        value: time(open.row.age_ns),
    }];
    let also = of_process(run, open.process, Counter::DelayNanoseconds);
    Some(Point { id: UNFINISHED, headline, text, options: Vec::new(), evidence: [evidence, vec![also]].concat() })
}

fn of_send(run: &View, send: &Open) -> String {
    let label = |process: usize| run.processes[process].label.as_str();
    let to = send.peer.map_or_else(|| "a process that left no counters".to_owned(), |peer| label(peer).to_owned());
    let waits = send
        .row
        .waits_for
        .map_or_else(String::new, |cause| format!(", which waited for {}", crate::recording::rows::words(cause)));
    format!(
        "At the end a send of {} to {to} ({}) had not ended for {}{waits}: look at what {to} did instead of receiving.",
        label(send.process),
        send.row.tag,
        time(send.row.age_ns),
    )
}

fn of_receive(run: &View, receive: &Open) -> String {
    let label = |process: usize| run.processes[process].label.as_str();
    let waiting = run.open.iter().filter(|open| open.row.kind == OpenKind::Receive);
    let mut ranks: Vec<usize> = waiting.map(|open| open.process).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let others: Vec<&str> = ranks.iter().filter(|rank| **rank != receive.process).map(|rank| label(*rank)).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" ({} had open receives, too)", names(others.into_iter())),
    };
    let from = receive.peer.map_or_else(|| "from any process".to_owned(), |peer| format!("of {}", label(peer)));
    let sent = receive.peer.is_some_and(|peer| {
        run.open
            .iter()
            .any(|open| open.process == peer && open.row.kind == OpenKind::Send && open.peer == Some(receive.process))
    });
    let why = match (receive.peer, sent) {
        (Some(peer), false) => format!("and {} had no unfinished send to it", label(peer)),
        (Some(peer), true) => format!("while {} had an unfinished send to it", label(peer)),
        (None, _) => "and none that matched had come".to_owned(),
    };
    format!(
        "At the end {} had waited for {} for a message {from} ({}), {why}{others}: look at who was to send it.",
        label(receive.process),
        time(receive.row.age_ns),
        receive.row.tag,
    )
}
