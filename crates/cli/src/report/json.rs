//! The report for programs. The schema is documented in tidegate(1); a change that breaks readers raises the number in
//! [`RUN_SCHEMA`]. Units are in the names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_link::Chunk;
use tidegate_link::trouble::Trouble;
use tidegate_message::Counter;

use crate::mpi::Mpi;
use crate::report::ending::Ending;
use crate::report::names::Who;
use crate::report::table::aggregate_name;
use crate::report::usage::Usage;
use crate::report::verdict::Verdict;
use crate::report::{Job, Launch, Process, units, ways};
use crate::settings::Setting;

/// Name and version of the schema of `tidegate run --json`.
pub const RUN_SCHEMA: &str = "tidegate-run/1";
/// Name and version of the schema of `tidegate env --json`.
pub const ENV_SCHEMA: &str = "tidegate-env/1";
/// Name and version of the schema of `tidegate counters --json`.
pub const COUNTERS_SCHEMA: &str = "tidegate-counters/1";

/// Name and version of the schema of `tidegate counters DIR --json`.
pub const PAGES_SCHEMA: &str = "tidegate-pages/1";

/// What is known of a run besides its counters.
pub struct RunFacts<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// The MPI, if recognised.
    pub mpi: Option<&'a Mpi>,
    /// The environment it got.
    pub settings: &'a [Setting],
    /// How long it ran.
    pub wall_time: Duration,
    /// What it exited with, as a shell sees it.
    pub exit_code: u8,
    /// How it ended.
    pub ending: &'a Ending,
    /// Whether its messages went through Tidegate.
    pub usage: &'a Usage<'a>,
}

/// The report of a run. `job`: all processes of all launches.
pub fn run(job: &Job, launches: &[Launch], verdicts: &[Verdict], facts: &RunFacts) -> Value {
    let command: Vec<_> = facts.command.iter().map(|word| word.to_string_lossy()).collect();
    json!({
        "schema": RUN_SCHEMA,
        "tidegate_version": env!("CARGO_PKG_VERSION"),
        "command": command,
        "mpi": mpi(facts.mpi),
        "environment": environment(facts.settings),
        "wall_time_s": facts.wall_time.as_secs_f64(),
        "exit_code": facts.exit_code,
        "ended": facts.ending.json(),
        "host": facts.usage.host.json(),
        "used": facts.usage.used().id(),
        "reasons": facts.usage.reasons(),
        "troubles": facts.usage.troubles.iter().map(trouble).collect::<Vec<_>>(),
        "ranks_absent": job.absent().0,
        "job": job_counters(job),
        "launches": launches.iter().zip(verdicts).map(judged).collect::<Vec<_>>(),
        "processes": processes(launches),
    })
}

/// A launch with what there is to say of it.
fn judged((one, verdict): (&Launch, &Verdict)) -> Value {
    let mut told = launch(one);
    told["verdict"] = verdict.json();
    told
}

/// The report on the pages of a folder.
pub fn pages(folder: &Path, job: &Job, launches: &[Launch]) -> Value {
    json!({
        "schema": PAGES_SCHEMA,
        "tidegate_version": env!("CARGO_PKG_VERSION"),
        "folder": folder.to_string_lossy(),
        "job": job_counters(job),
        "launches": launches.iter().map(launch).collect::<Vec<_>>(),
        "processes": processes(launches),
    })
}

fn launch(launch: &Launch) -> Value {
    let programs: BTreeSet<&str> = launch.job.processes().iter().map(|process| process.program.as_str()).collect();
    json!({
        "programs": programs,
        "processes": launch.job.processes().len(),
        "ranks_absent": launch.job.absent().0,
        "job": job_counters(&launch.job),
        "ended": launch.unclosed.json(),
        "open": launch.left.json(),
        "held_up": launch.held_up,
    })
}

/// The processes of all launches, in order of rank.
fn processes(launches: &[Launch]) -> Vec<Value> {
    let all = launches
        .iter()
        .enumerate()
        .flat_map(|(number, launch)| launch.job.processes().iter().map(move |process| (number, launch, process)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(number, _, process)| (process.rank.unwrap_or(u32::MAX), *number, process.pid));
    all.into_iter().map(|(number, launch, one)| process(number, launch, one)).collect()
}

/// The settings for an MPI.
pub fn env(found: Option<&Mpi>, settings: &[Setting]) -> Value {
    json!({ "schema": ENV_SCHEMA, "mpi": mpi(found), "environment": environment(settings) })
}

/// The table of counters.
pub fn counters() -> Value {
    let counters: Vec<_> = Counter::ALL
        .iter()
        .map(|counter| {
            json!({
                "name": counter.name(),
                "unit": units::name(counter.unit()),
                "over_ranks": aggregate_name(*counter),
                "meaning": counter.help(),
            })
        })
        .collect();
    json!({ "schema": COUNTERS_SCHEMA, "counters": counters })
}

fn trouble(trouble: &Trouble) -> Value {
    json!({ "text": trouble.text, "processes": trouble.processes })
}

fn mpi(mpi: Option<&Mpi>) -> Value {
    mpi.map_or(Value::Null, |mpi| json!({ "name": mpi.kind.id(), "version": mpi.version }))
}

fn environment(settings: &[Setting]) -> Value {
    settings
        .iter()
        .map(|setting| (setting.name.to_owned(), json!(setting.value.to_string_lossy())))
        .collect::<Map<_, _>>()
        .into()
}

fn job_counters(job: &Job) -> Value {
    let spreads = Counter::ALL.iter().filter_map(|counter| Some((*counter, job.spread(*counter)?)));
    let values = spreads.map(|(counter, spread)| {
        let most = &job.processes()[spread.max_at];
        let value = json!({
            "job": spread.job,
            "min": spread.min,
            "median": spread.median,
            "max": spread.max,
            "max_rank": most.rank,
            "max_pid": most.pid,
        });
        (counter.name().to_owned(), value)
    });
    values.collect::<Map<_, _>>().into()
}

/// Bytes; `null` where there are no chunks, or long messages are taken whole.
fn chunk(chunk: Option<Chunk>) -> Option<u64> {
    match chunk? {
        Chunk::Bytes(bytes) => Some(bytes),
        Chunk::Whole => None,
    }
}

fn process(launch_number: usize, launch: &Launch, process: &Process) -> Value {
    let counters = Counter::ALL.iter().map(|counter| (counter.name().to_owned(), json!(process.get(*counter))));
    let setup = &process.setup;
    let posted = setup.posted.map(|posted| {
        json!({
            "packets": posted.packets,
            "buffers": posted.each,
            "buffers_most": posted.most,
            "pool_first": posted.pool_first,
            "pool_most": posted.pool_most,
        })
    });
    json!({
        "rank": process.rank,
        "pid": process.pid,
        "host": process.host,
        "launch": launch_number,
        "job_size": process.job_size,
        "program": process.program,
        "endpoints": process.endpoints,
        "scheme": setup.scheme.name(),
        "slots_per_peer": setup.slots_per_peer,
        "credit_slots": setup.credit_slots,
        "piggyback": setup.piggyback,
        "peers": setup.peers,
        "expected_peers": setup.expected_peers,
        "chosen": json!({ "slots": setup.chosen.slots, "receive_memory": setup.chosen.memory }),
        "posted_buffers": posted,
        "bulk": setup.bulk,
        "long_messages": ways::json(process),
        "network": Some(&setup.network).filter(|network| !network.is_empty()),
        "spin_polls": setup.spin,
        "chunk_bytes": chunk(setup.chunk),
        "chunk_between_hosts_bytes": chunk(setup.chunk_between_hosts),
        "waits": launch.waits.json_of(Who { rank: process.rank, pid: process.pid }),
        "counters": counters.collect::<Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::MpiKind;
    use crate::recording::testing::{Made, values};
    use crate::report::host::Host;
    use crate::report::tests::{job, launch_of, process};

    #[test]
    fn a_run_reads_back_as_documented() {
        let job = job(vec![process(0, &[(Counter::PacketsSent, 3)]), process(1, &[(Counter::PacketsSent, u64::MAX)])]);
        let settings = [Setting { name: "FI_PROVIDER", value: "tidegate".into(), why: "" }];
        let mpi = Mpi { kind: MpiKind::Mpich, version: Some("5.0.2".into()), device: None };
        let troubles = [Trouble { text: "odd".into(), processes: 2 }];
        let usage =
            Usage { job: &job, mpi: None, overridden: &[], troubles: &troubles, failed: true, host: &Host::NOTHING };
        let facts = RunFacts {
            usage: &usage,
            command: &["mpiexec".into(), "x".into()],
            mpi: Some(&mpi),
            settings: &settings,
            wall_time: Duration::from_millis(1500),
            exit_code: 137,
            ending: &Ending { signal: Some(9), ..Ending::default() },
        };
        let launches = [launch_of(job.clone())];
        let verdicts = [Verdict::of(Made::new(2).view(&[values(&[]), values(&[])]))];
        let value: Value = serde_json::from_str(&run(&job, &launches, &verdicts, &facts).to_string()).unwrap();
        assert_eq!(value["ended"]["signal_name"], "SIGKILL (signal 9)");
        assert_eq!((&value["launches"][0]["processes"], &value["processes"][0]["launch"]), (&json!(2), &json!(0)));
        assert_eq!(value["launches"][0]["open"]["receives"], 0);
        assert_eq!(value["launches"][0]["verdict"]["headline"], "no message went through Tidegate");
        assert_eq!(value["schema"], "tidegate-run/1");
        assert_eq!(value["command"], json!(["mpiexec", "x"]));
        assert_eq!(value["mpi"], json!({ "name": "mpich", "version": "5.0.2" }));
        assert_eq!(value["environment"], json!({ "FI_PROVIDER": "tidegate" }));
        assert_eq!((&value["wall_time_s"], &value["exit_code"]), (&json!(1.5), &json!(137)));
        assert_eq!((&value["used"], &value["reasons"]), (&json!("messages"), &json!([])));
        assert_eq!(value["troubles"], json!([{ "text": "odd", "processes": 2 }]));
        let sent = &value["job"]["packets_sent"];
        assert_eq!(
            (&sent["min"], &sent["max"], &sent["max_rank"], &sent["max_pid"]),
            (&json!(3), &json!(u64::MAX), &json!(1), &json!(1001))
        );
        let second = &value["processes"][1];
        assert_eq!((&second["spin_polls"], &second["chunk_bytes"]), (&json!(2000), &json!(1 << 20)));
        assert_eq!(second["chunk_between_hosts_bytes"], Value::Null);
        assert_eq!(
            (&second["rank"], &second["scheme"], &second["piggyback"]),
            (&json!(1), &json!("dynamic"), &json!(true))
        );
        for counter in Counter::ALL {
            assert!(value["job"][counter.name()]["median"].is_u64(), "{}", counter.name());
            assert!(second["counters"][counter.name()].is_u64(), "{}", counter.name());
        }
    }

    #[test]
    fn a_run_without_endpoints_says_so() {
        let none = job(Vec::new());
        let usage = Usage {
            job: &none,
            mpi: None,
            overridden: &["FI_PROVIDER"],
            troubles: &[],
            failed: false,
            host: &Host::NOTHING,
        };
        let facts = RunFacts {
            command: &[],
            mpi: None,
            settings: &[],
            wall_time: Duration::ZERO,
            exit_code: 0,
            ending: &Ending::default(),
            usage: &usage,
        };
        let value = run(&none, &[], &[], &facts);
        assert_eq!(value["used"], "nothing");
        assert_eq!(value["reasons"], json!(["The command line itself sets FI_PROVIDER: leave that out."]));
        assert_eq!((&value["mpi"], &value["job"], &value["processes"]), (&Value::Null, &json!({}), &json!([])));
    }

    #[test]
    fn names_of_counters_carry_their_units() {
        for counter in Counter::ALL {
            let (name, unit) = (counter.name(), units::name(counter.unit()));
            assert!(unit == "count" || name.contains(unit), "{name} is in {unit}");
        }
    }
}
