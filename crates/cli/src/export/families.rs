//! Jobs as families of metrics.
//!
//! A job is one set of some forty series, whatever its size; ranks have series of their own only where they are wanted
//! (`--ranks`), and pairs of ranks never: Prometheus keeps each series in memory, and each job makes new ones. Which
//! rank is to blame is a value, not a label, for the same reason.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tidegate_message::Aggregate;

use super::collect::{Job, Jobs, Launch};
use super::metrics::{METRICS, Metric, Process};
use super::text::{Family, Kind, Labels, Unit};
use crate::culprit::{Presence, Root};
use crate::top::view::{JobView, Row};

/// Ranks of one user that have series of their own at most.
const RANKS_MOST: usize = 4096;
/// Characters of a label that a job chooses.
const LETTERS_MOST: usize = 64;

/// Where processes are, as labels.
const STATES: [&str; 5] = ["runs", "away", "unknown", "left", "gone"];

/// All families of a look. `with_ranks`: also those of ranks.
pub fn families(jobs: &Jobs, with_ranks: bool) -> Vec<Family> {
    let mut families = of_jobs(&jobs.running);
    let mut ranks_left_out = 0;
    if with_ranks {
        let (of_ranks, left_out) = of_ranks(&jobs.running);
        families.extend(of_ranks);
        ranks_left_out = left_out;
    }
    families.extend(of_exporter(jobs, ranks_left_out));
    families
}

/// Families about the exporter itself, so that "no job" and "no exporter" differ.
fn of_exporter(jobs: &Jobs, ranks_left_out: usize) -> Vec<Family> {
    let gauge = |stem: &str, unit, help: &str| Family::new(stem, Kind::Gauge, unit, help);
    let mut build = Family::new("tidegate_exporter_build", Kind::Info, Unit::None, "The version of tidegate.");
    build.samples.push((vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0));
    vec![
        gauge("tidegate_jobs", Unit::None, "Jobs that run on this host over Tidegate.")
            .alone(jobs.running.len() as f64),
        build,
        gauge("tidegate_exporter_look_timestamp", Unit::Seconds, "When the jobs were looked at, since 1970.")
            .alone(jobs.at.as_secs_f64()),
        gauge("tidegate_exporter_look_cpu", Unit::Seconds, "Processor time of that look.")
            .alone(jobs.cost.as_secs_f64()),
        gauge("tidegate_exporter_jobs_left_out", Unit::None, "Jobs that are not here: their users have too many.")
            .alone(jobs.left_out as f64),
        gauge("tidegate_exporter_ranks_left_out", Unit::None, "Ranks that have no series: their users have too many.")
            .alone(ranks_left_out as f64),
    ]
}

/// Labels that a job's series have in common.
fn labels_of(job: &Job) -> Labels {
    vec![("job_id", job.id.clone()), ("slurm_job_id", job.slurm_job_id.clone()), ("user", job.user.clone())]
}

fn with(labels: &Labels, more: impl IntoIterator<Item = (&'static str, String)>) -> Labels {
    labels.iter().cloned().chain(more).collect()
}

/// A text of a job as a label, cut to a length: another user may have chosen it.
fn short(text: &str) -> String {
    text.chars().take(LETTERS_MOST).collect()
}

fn of_jobs(jobs: &[Job]) -> Vec<Family> {
    let mut all = vec![info(jobs), processes(jobs)];
    let gauge = |stem: &str, unit, help: &str, of: &dyn Fn(&Job) -> Option<f64>| {
        let mut family = Family::new(format!("tidegate_job_{stem}"), Kind::Gauge, unit, help);
        family.samples = jobs.iter().filter_map(|job| Some((labels_of(job), of(job)?))).collect();
        family
    };
    all.extend([
        gauge("start_time", Unit::Seconds, "When the job started, since 1970.", &started),
        gauge("ranks", Unit::None, "Ranks of the job, those on hosts that are not seen included.", &|job| {
            let sizes = job.launches.iter().filter(|launch| launch.is_alive()).map(|launch| launch.view.size as f64);
            Some(sizes.sum())
        }),
        gauge("incomplete", Unit::None, "1 where some pages of counters could not be read, else 0.", &|job| {
            Some(f64::from(u8::from(job.is_incomplete)))
        }),
        gauge("waiting_ranks", Unit::None, "Ranks that waited for another one between the last two looks.", &|job| {
            Some(living(job).map(|view| view.finding.waiting as f64).sum())
        }),
        gauge(
            "held_up_ranks",
            Unit::None,
            "Ranks that one rank, or one circle of ranks, holds up; 0: none does.",
            &|job| Some(root(job).map_or(0.0, |(_, root)| root.holds_up as f64)),
        ),
        gauge("held_up", Unit::Ratio, "The largest part of the time that one of these ranks waited.", &|job| {
            Some(root(job).map_or(0.0, |(_, root)| root.share))
        }),
        gauge("blamed_rank", Unit::None, "The rank that holds up the others; absent where none stands out.", &|job| {
            let (view, root) = root(job)?;
            Some(f64::from(view.rows.get(root.blamed(&view.waits)?)?.rank?))
        }),
    ]);
    let processes: Vec<(&Job, Vec<Process>)> = jobs.iter().map(|job| (job, processes_of(&job.launches))).collect();
    all.extend(METRICS.iter().map(|metric| {
        let end = if metric.aggregate == Aggregate::Sum {
            "all ranks of the job together"
        } else {
            "the largest of any rank of the job"
        };
        let mut family = family_of(metric, "job", end);
        let value = |processes: &[Process]| combine(metric, processes.iter());
        family.samples = processes.iter().map(|(job, processes)| (labels_of(job), value(processes))).collect();
        family
    }));
    all
}

fn family_of(metric: &Metric, level: &str, end: &str) -> Family {
    let help = if end.is_empty() { format!("{}.", metric.help) } else { format!("{}; {end}.", metric.help) };
    Family::new(format!("tidegate_{level}_{}", metric.stem), metric.kind, metric.unit, help)
}

fn combine<'a>(metric: &Metric, processes: impl Iterator<Item = &'a Process<'a>>) -> f64 {
    let values = processes.map(|process| metric.of(process));
    match metric.aggregate {
        Aggregate::Sum => values.sum(),
        Aggregate::Max => values.fold(0.0, f64::max),
    }
}

fn info(jobs: &[Job]) -> Family {
    let help = "What the job is: the name of its program, its MPI, its scheme of flow control.";
    let mut family = Family::new("tidegate_job", Kind::Info, Unit::None, help);
    for job in jobs {
        // The last launch is the one that runs, or ran.
        let view =
            job.launches.iter().rfind(|launch| launch.is_alive()).or(job.launches.last()).map(|launch| &launch.view);
        let row = view.and_then(|view| view.rows.first());
        let of = |of: fn(&Row) -> &str| row.map_or_else(String::new, |row| short(of(row)));
        let mpi = view.and_then(|view| view.mpi.as_deref()).map(short).unwrap_or_default();
        // The words in which a setup is told begin with the scheme.
        let scheme = of(|row| row.setup.split(',').next().unwrap_or_default());
        let more = [("mpi", mpi), ("program", of(|row| &row.program)), ("scheme", scheme)];
        family.samples.push((with(&labels_of(job), more), 1.0));
    }
    family
}

fn processes(jobs: &[Job]) -> Family {
    let help = "Processes of the job that are seen: runs (in MPI, or messages move), away (not in MPI: it computes), \
                unknown, left (MPI, in order), gone (killed).";
    let mut family = Family::new("tidegate_job_processes", Kind::Gauge, Unit::None, help);
    for job in jobs {
        let mut counts = [0_u32; STATES.len()];
        for row in job.launches.iter().flat_map(|launch| &launch.view.rows) {
            counts[match row.presence {
                Presence::Here => 0,
                Presence::Away { .. } => 1,
                Presence::WentOn => 2,
                Presence::Ended => 3,
                Presence::Gone => 4,
            }] += 1;
        }
        let labels = labels_of(job);
        let sample = |(state, count): (&&str, u32)| (with(&labels, [("state", (*state).to_owned())]), f64::from(count));
        family.samples.extend(STATES.iter().zip(counts).map(sample));
    }
    family
}

fn living(job: &Job) -> impl Iterator<Item = &JobView> {
    job.launches.iter().filter(|launch| launch.is_alive()).map(|launch| &launch.view)
}

/// The root that holds up most ranks, with its launch.
fn root(job: &Job) -> Option<(&JobView, &Root)> {
    let first = living(job).filter_map(|view| Some((view, view.finding.roots.first()?)));
    first.max_by_key(|(_, root)| root.holds_up)
}

fn started(job: &Job) -> Option<f64> {
    let of = |launch: &Launch| Some(launch.view.at.saturating_sub(launch.view.runs_for?));
    job.launches.iter().filter_map(of).min().map(|time| time.as_secs_f64())
}

fn processes_of(launches: &[Launch]) -> Vec<Process<'_>> {
    launches.iter().flat_map(|launch| processes_of_view(&launch.view)).collect()
}

fn processes_of_view(view: &JobView) -> Vec<Process<'_>> {
    let oldest = oldest_waits(view);
    view.rows.iter().zip(oldest).map(|(row, oldest_wait)| Process { row, oldest_wait }).collect()
}

/// How long each process has waited: for a rank, or for a message of any rank while none of its messages moves.
fn oldest_waits(view: &JobView) -> Vec<Duration> {
    let of_any = |member: &crate::culprit::Member| {
        let waits = !member.moves && member.presence == Presence::Here;
        member.any.as_ref().filter(|_| waits).map_or(Duration::ZERO, |(_, age)| *age)
    };
    let mut oldest: Vec<Duration> = view.waits.members.iter().map(of_any).collect();
    for wait in &view.waits.waits {
        let known = &mut oldest[wait.waiter];
        *known = (*known).max(wait.open_for.unwrap_or_default());
    }
    oldest
}

/// The families of ranks, and how many ranks are left out. Only launches that go on have ranks.
fn of_ranks(jobs: &[Job]) -> (Vec<Family>, usize) {
    let (mut of_user, mut left_out) = (HashMap::<&str, usize>::new(), 0);
    // A rank may have several processes, one after the other; each series is there once.
    let mut ranks: Vec<(Labels, Vec<Process>)> = Vec::new();
    for job in jobs {
        let count = of_user.entry(&job.user).or_default();
        for (number, launch) in job.launches.iter().enumerate().filter(|(_, launch)| launch.is_alive()) {
            let mut by_rank: BTreeMap<(Option<u32>, u32, &str), Vec<Process>> = BTreeMap::new();
            for process in processes_of_view(&launch.view) {
                let row = process.row;
                let pid = if row.rank.is_some() { 0 } else { row.pid };
                by_rank.entry((row.rank, pid, row.host.as_str())).or_default().push(process);
            }
            for ((rank, pid, host), processes) in by_rank {
                *count += 1;
                if *count > RANKS_MOST {
                    left_out += 1;
                    continue;
                }
                let name = rank.map_or_else(|| format!("p{pid}"), |rank| rank.to_string());
                let more = [("host", short(host)), ("launch", (number + 1).to_string()), ("rank", name)];
                ranks.push((with(&labels_of(job), more), processes));
            }
        }
    }
    let samples = |of: &dyn Fn(&[Process]) -> f64| {
        ranks.iter().map(|(labels, processes)| (labels.clone(), of(processes))).collect::<Vec<_>>()
    };
    let gauge = |stem: &str, help: &str, of: &dyn Fn(&[Process]) -> f64| {
        let family = Family::new(format!("tidegate_rank_{stem}"), Kind::Gauge, Unit::None, help);
        Family { samples: samples(of), ..family }
    };
    let mut families = vec![
        gauge("up", "1 while the process is there, 0 when it has left MPI or was killed.", &|processes| {
            f64::from(u8::from(processes.iter().any(|process| process.row.presence.is_there())))
        }),
        gauge(
            "awaited_by_ranks",
            "Ranks that waited for this one directly between the last two looks.",
            &|processes| processes.iter().map(|process| process.row.awaited_by as f64).sum(),
        ),
    ];
    families.extend(METRICS.iter().map(|metric| Family {
        samples: samples(&|processes| combine(metric, processes.iter())),
        ..family_of(metric, "rank", "")
    }));
    (families, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::text::{Format, render};
    use crate::top::view::tests::example;
    use tidegate_message::Counter;

    /// A job with one launch of [`example`].
    fn job(id: &str, view: JobView) -> Job {
        Job {
            id: id.into(),
            user: "a\"b".into(),
            slurm_job_id: "123".into(),
            pages: "/nowhere".into(),
            launches: vec![Launch { first: 1, view }],
            is_incomplete: true,
        }
    }

    fn values<'a>(families: &'a [Family], name: &str) -> &'a [(Labels, f64)] {
        let found = families.iter().find(|family| family.sample_name() == name);
        &found.unwrap_or_else(|| panic!("{name}")).samples
    }

    fn value(families: &[Family], name: &str) -> f64 {
        let [(_, value)] = values(families, name) else { panic!("{name}") };
        *value
    }

    #[test]
    fn a_job_is_one_value_of_each_metric() {
        let families = families(&Jobs { running: vec![job("7", example(4))], ..Jobs::default() }, false);
        for (name, expected) in [
            ("tidegate_jobs", 1.0),
            ("tidegate_job_messages_sent_total", 4000.0),
            ("tidegate_job_sent_bytes_total", f64::from(4 << 20)),
            // The last rank is gone, and its memory with it.
            ("tidegate_job_receive_memory_used_bytes", f64::from(96 << 20)),
            ("tidegate_job_receive_memory_used_ratio", 0.5),
            ("tidegate_job_ranks", 4.0),
            ("tidegate_job_incomplete", 1.0),
            ("tidegate_job_blamed_rank", 1.0),
            ("tidegate_job_held_up_ranks", 2.0),
            // The receive that is older does not wait: messages of its rank move.
            ("tidegate_job_oldest_wait_seconds", 0.1),
        ] {
            assert_eq!(value(&families, name), expected, "{name}");
        }
        let states = values(&families, "tidegate_job_processes").iter().map(|(_, count)| *count as u32);
        assert_eq!(states.collect::<Vec<_>>(), [3, 0, 0, 0, 1]);
        let text = render(&families, Format::Prometheus);
        let info = "tidegate_job_info{job_id=\"7\",slurm_job_id=\"123\",user=\"a\\\"b\",program=\"a.out\",scheme=\"dynamic\"} 1\n";
        assert!(text.contains(info), "{text}");
        assert!(!text.contains("tidegate_rank_"));
    }

    #[test]
    fn ranks_have_series_of_their_own_where_they_are_wanted() {
        let mut view = example(4);
        // The rank that was started again, and a process that has none.
        view.rows[3].rank = Some(0);
        view.rows[2].rank = None;
        let families = families(&Jobs { running: vec![job("7", view)], ..Jobs::default() }, true);
        let sent = values(&families, "tidegate_rank_messages_sent_total");
        let shown = sent.iter().map(|(labels, value)| (labels.last().unwrap().1.as_str(), *value));
        assert_eq!(shown.collect::<Vec<_>>(), [("p5002", 1000.0), ("0", 2000.0), ("1", 1000.0)]);
        assert_eq!(value(&families, "tidegate_exporter_ranks_left_out"), 0.0);
    }

    #[test]
    fn no_series_is_there_twice_and_one_user_crowds_no_other_out() {
        let mut jobs =
            Jobs { running: vec![job("7", example(RANKS_MOST as u32)), job("8", example(4))], ..Jobs::default() };
        jobs.running.push(Job { user: "other".into(), ..job("9", example(4)) });
        let families = families(&jobs, true);
        for family in &families {
            let labels: std::collections::HashSet<_> = family.samples.iter().map(|(labels, _)| labels).collect();
            assert_eq!(labels.len(), family.samples.len(), "{}", family.sample_name());
        }
        assert_eq!(values(&families, "tidegate_rank_up").len(), RANKS_MOST + 4);
        assert_eq!(value(&families, "tidegate_exporter_ranks_left_out"), 4.0);
        assert_eq!(values(&families, "tidegate_job_ranks").len(), 3, "jobs are there all the same");
    }

    #[test]
    fn what_a_program_is_called_is_cut_and_escaped() {
        let mut view = example(2);
        view.rows[0].program = format!("a\"\\{}", "ä".repeat(300));
        let text =
            render(&families(&Jobs { running: vec![job("7", view)], ..Jobs::default() }, false), Format::OpenMetrics);
        assert!(text.contains(&format!("program=\"a\\\"\\\\{}\"", "ä".repeat(61))), "{text}");
    }

    #[test]
    fn a_script_between_two_launches_is_a_job_without_ranks_whose_counters_stay() {
        let mut view = example(2);
        view.rows.iter_mut().for_each(|row| row.presence = Presence::Ended);
        view.rows[0].counters[Counter::Retries as usize].0 = 7;
        let families = families(&Jobs { running: vec![job("7", view)], ..Jobs::default() }, true);
        assert_eq!(value(&families, "tidegate_job_ranks"), 0.0);
        assert_eq!(value(&families, "tidegate_job_receive_memory_used_bytes"), 0.0);
        assert_eq!(value(&families, "tidegate_job_retries_total"), 7.0);
        assert_eq!(values(&families, "tidegate_rank_up"), []);
    }
}
