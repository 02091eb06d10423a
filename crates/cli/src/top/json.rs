//! One look for programs: `tidegate top --once --json`. The schema is documented in tidegate(1); a change that breaks
//! readers raises the number in [`TOP_SCHEMA`]. Units are in the names.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_message::Counter;

use crate::culprit::{End, Presence, Root};
use crate::process;
use crate::top::view::{JobView, Oldest, Row};

/// Name and version of the schema of `tidegate top --once --json`.
pub const TOP_SCHEMA: &str = "tidegate-top/2";

/// All jobs. `cost`: processor time of the last look.
pub fn jobs(views: &[JobView], cost: Duration) -> Value {
    json!({
        "schema": TOP_SCHEMA,
        "tidegate_version": env!("CARGO_PKG_VERSION"),
        "host": process::host_name(),
        "look_s": cost.as_secs_f64(),
        "jobs": views.iter().map(job).collect::<Vec<_>>(),
    })
}

fn seconds(time: Option<Duration>) -> Value {
    time.map_or(Value::Null, |time| json!(time.as_secs_f64()))
}

fn job(view: &JobView) -> Value {
    let waits = view.waits.waits.iter().map(|wait| {
        json!({
            "waiter": who(view, wait.waiter),
            "awaited": who(view, wait.awaited),
            "cause": wait.cause.name(),
            "share": wait.share,
            "open_s": seconds(wait.open_for),
            "receive": wait.receive.as_ref().map(|receive| &receive.text),
        })
    });
    json!({
        "id": view.id,
        "user": view.user,
        "slurm_job": view.slurm.as_ref().map(|job| &job.id),
        "command": view.command,
        "mpi": view.mpi,
        "setup": view.setup,
        "host": view.host,
        "is_running": if view.has_ended { Some(false) } else { view.is_running },
        "runs_for_s": seconds(view.runs_for),
        "interval_s": seconds(view.span),
        "ranks": view.size,
        "processes_alive": view.alive(),
        "processes_gone": view.gone(),
        "trouble": view.trouble,
        "sentence": view.sentence,
        "waiting": view.finding.waiting,
        "roots": view.finding.roots.iter().map(|found| root(view, found)).collect::<Vec<_>>(),
        "waits": waits.collect::<Vec<_>>(),
        "processes": view.rows.iter().map(|row| process_of(view, row)).collect::<Vec<_>>(),
    })
}

/// A process as others name it.
fn who(view: &JobView, place: usize) -> Value {
    let row = &view.rows[place];
    json!({ "rank": row.rank, "pid": row.pid, "host": row.host })
}

fn root(view: &JobView, root: &Root) -> Value {
    let (kind, ranks) = match &root.end {
        End::Rank(rank) => ("rank", vec![*rank]),
        End::Unsent { rank, .. } => ("unsent", vec![*rank]),
        End::Circle { ranks, .. } => ("circle", ranks.clone()),
    };
    json!({
        "kind": kind,
        "who": ranks.iter().map(|rank| who(view, *rank)).collect::<Vec<_>>(),
        "holds_up": root.holds_up,
        "cause": root.cause.name(),
        "longest_s": seconds(root.longest),
        "share": root.share,
    })
}

fn process_of(view: &JobView, row: &Row) -> Value {
    let away = match row.presence {
        Presence::Away { time, .. } => Some(time),
        _ => None,
    };
    let counters: Map<String, Value> = Counter::ALL
        .iter()
        .map(|counter| (counter.name().to_owned(), json!(row.counters[*counter as usize].0)))
        .collect();
    let rates = row.rates.map(|rates| {
        json!({
            "messages_per_s": rates.messages,
            "bytes_sent_per_s": rates.sent,
            "bytes_received_per_s": rates.received,
            "refused_per_s": rates.refused,
            "batches_resent_per_s": rates.resent,
        })
    });
    let wait = row.wait.as_ref().map(|wait| {
        json!({
            "for": who(view, wait.awaited),
            "cause": wait.cause.name(),
            "share": wait.share,
            "open_s": seconds(wait.open_for),
        })
    });
    json!({
        "rank": row.rank,
        "pid": row.pid,
        "host": row.host,
        "program": row.program,
        "state": row.state.name(),
        "culprit": row.blame.is_some(),
        "away_s": seconds(away),
        "queued_share": row.queued,
        "doing": row.doing.name(),
        "rates": rates,
        "waits": wait,
        "awaited_by": row.awaited_by,
        "receive_memory_bytes": { "held": row.memory.held, "peak": row.memory.peak, "bound": row.memory.bound },
        "receives": oldest(&row.receive),
        "sends": oldest(&row.send),
        "unmatched": oldest(&row.unexpected),
        "open": row.open,
        "counters": counters,
    })
}

fn oldest(oldest: &Oldest) -> Value {
    json!({
        "count": oldest.in_all,
        "oldest": oldest.text.as_ref().map(|(text, age)| json!({ "text": text, "age_s": age.as_secs_f64() })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::view::tests::example;

    #[test]
    fn a_program_reads_who_holds_up_whom_and_all_counters() {
        let value = jobs(&[example(4)], Duration::from_millis(2));
        assert_eq!((value["schema"].as_str(), value["look_s"].as_f64()), (Some(TOP_SCHEMA), Some(0.002)));
        let job = &value["jobs"][0];
        assert_eq!(job["roots"][0]["who"][0]["rank"], 1);
        assert_eq!((&job["roots"][0]["holds_up"], &job["processes_gone"]), (&json!(2), &json!(1)));
        assert_eq!((&job["waits"][0]["waiter"]["rank"], &job["waits"][0]["cause"]), (&json!(0), &json!("credits")));
        let process = &job["processes"][2];
        assert_eq!(process["rates"]["messages_per_s"], 1000.0);
        assert_eq!(process["receives"]["oldest"]["age_s"], 11.0);
        assert_eq!(process["counters"].as_object().unwrap().len(), Counter::COUNT);
        let of =
            |field: &str| job["processes"].as_array().unwrap().iter().map(|row| row[field].clone()).collect::<Vec<_>>();
        assert_eq!(of("state"), ["waits", "runs", "waits", "gone"]);
        assert_eq!(of("culprit"), [false, true, false, false]);
        let ended = JobView { is_running: Some(true), has_ended: true, ..example(4) };
        assert_eq!(jobs(&[ended], Duration::ZERO)["jobs"][0]["is_running"], false, "it ended between two looks");
    }
}
