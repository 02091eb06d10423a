//! `tidegate run`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_link::EndpointStats;
use tidegate_link::log::print_line;
use tidegate_link::stats::{self, Pages};
use tidegate_link::trouble::{self, Trouble};
use tidegate_message::Counter;

use crate::alltoall::Wish;
use crate::arguments::{Ranks, RunArguments};
use crate::child;
use crate::command::Prepared;
use crate::deaths::{DeathWatch, Deaths};
use crate::failure::{self, Failure};
use crate::folder::StatsFolder;
use crate::hang::watching::HangWatch;
use crate::jobs::Description;
use crate::mpi::{Mpi, MpiKind};
use crate::recording::facts::{self, End, Facts};
use crate::recording::folder::Recorder;
use crate::recording::sampler::{Left, Sampling};
use crate::recording::view::View;
use crate::recording::writer::Bounds;
use crate::report::ending::{Ending, Evidence};
use crate::report::host::{Host, OomKills};
use crate::report::json::{self, RunFacts};
use crate::report::table::{self, Form};
use crate::report::typed::Typed;
use crate::report::usage::{Usage, Used};
use crate::report::verdict::{self, Verdict};
use crate::report::width::Width;
use crate::report::{Job, Launch, launches};
use crate::settings::{self, PASSED_ON, PROVIDER_PATH, STATS_DIR};
use crate::shared_memory;

/// Runs the program, reports, and returns the exit code to end with.
pub fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    run_with(arguments, &[], |_| Ok(None))
}

/// The same with further variables for the program, and something to be done with what it has left: `after`, which
/// returns what the report as JSON is to say of it, by name.
pub fn run_with(
    arguments: &RunArguments,
    variables: &[(&str, OsString)],
    after: impl FnOnce(&Job) -> Result<More, Failure>,
) -> Result<u8, Failure> {
    let wish = arguments.alltoall.map(|technique| Wish {
        technique: technique.name(),
        bytes: arguments.alltoall_bytes.as_deref(),
        report: !arguments.quiet,
    });
    let prepared = Prepared::new(&arguments.tuning, &arguments.command, wish.as_ref())?;
    // The file is opened before the run, so that the user hears of a wrong name now and not after a long run.
    let json_file = arguments.json.as_deref().map(JsonFile::open).transpose()?;
    let overridden = settings::overridden(&arguments.command, &prepared.settings);
    let notice = say_before(arguments, &prepared, &overridden);
    let folder = StatsFolder::create(arguments.shared.as_deref())?;
    folder.describe(&Description::of_this_process(&arguments.command, prepared.mpi.as_ref().map(|mpi| mpi.kind.id())));
    let mut command = command(arguments, &prepared, &folder, variables)?;
    let hangs = HangWatch::start(&arguments.hang, folder.path(), prepared.mpi.as_ref().map(|mpi| mpi.kind.id()))?;
    let deaths = DeathWatch::start(folder.path());
    let mut recording = record(arguments, &prepared, &folder)?;
    let (start, kills) = (Instant::now(), OomKills::now());
    let ended = child::run(&mut command).map_err(|failure| not_started(failure, &mut recording))?;
    let wall_time = start.elapsed();
    let end = tidegate_link::since_epoch();
    let has_hung = hangs.is_some_and(HangWatch::finish);
    let exit_code = child::exit_code(ended.status);
    let (pages, troubles) = left_in(folder);
    let mpi = prepared.mpi.as_ref();
    let recording = recording.map(|recording| (recording, pages.clone()));
    let ending = Ending::new(ended.status, ended.signals);
    let deaths = deaths.map(DeathWatch::finish).filter(|_| ending.may_be_of_a_rank(mpi.map(|mpi| mpi.kind)));
    let (job, launches, verdicts) =
        launches_of(pages, end, mpi, deaths.as_ref(), &ended_facts(arguments, &prepared, wall_time, exit_code));
    let host = if exit_code == 0 { Host::NOTHING } else { look_at_host(&job, kills) };
    // Killed processes cannot remove their segments.
    tidegate_link::reclaim(Path::new(tidegate_link::DIRECTORY));
    let troubles: Vec<Trouble> = troubles.into_iter().map(|trouble| with_ranks(trouble, &launches)).collect();
    let usage =
        Usage { job: &job, mpi, overridden: &overridden, troubles: &troubles, failed: exit_code != 0, host: &host };
    if let Some((recording, pages)) = recording {
        finish(recording, pages, exit_code, &usage, &ending, &launches);
    }
    say(arguments, &usage, &launches, &verdicts, &ending, wall_time);
    // The reason of a failure is looked for at the end of the output.
    notice.iter().filter(|_| exit_code != 0).for_each(|notice| print_line(notice));
    let absent = |launch: &Launch| Usage { job: &launch.job, ..usage }.absent(arguments.shared.as_deref());
    launches.iter().filter_map(absent).for_each(|text| print_line(&text));
    let more = after(&job);
    if let Some(file) = json_file {
        let facts = RunFacts {
            command: &arguments.command,
            mpi,
            settings: &prepared.settings,
            wall_time,
            exit_code,
            ending: &ending,
            usage: &usage,
        };
        let report = with_more(json::run(&job, &launches, &verdicts, &facts), more.as_ref().ok());
        end_well(file.write(&report), exit_code)?;
    }
    end_well(more.map(|_| ()), exit_code)?;
    let has_lost = say_lost(&job);
    Ok(match exit_code {
        _ if has_hung => failure::HUNG,
        0 if has_lost => failure::LOST,
        code => code,
    })
}

/// Says how many messages that counted as sent were lost, if any were, which it returns.
fn say_lost(job: &Job) -> bool {
    let lost = job.spread(Counter::SendsLost).map_or(0, |spread| spread.job);
    if lost > 0 {
        print_line(&format!(
            "{lost} messages that counted as sent never reached their receivers, because endpoints closed first (sends_lost)"
        ));
    }
    lost > 0
}

/// Says what is to be known before the program starts. Returns what is said again if it fails.
fn say_before(arguments: &RunArguments, prepared: &Prepared, overridden: &[&str]) -> Option<String> {
    if arguments.quiet {
        return None;
    }
    prepared.permission().into_iter().for_each(print_line);
    let kind = prepared.mpi.as_ref().map(|mpi| mpi.kind);
    let notice = shared_memory::notice(kind, &arguments.command, &prepared.settings, overridden);
    notice.iter().for_each(|notice| print_line(notice));
    notice
}

/// What this host has to say of a job that failed.
fn look_at_host(job: &Job, kills: OomKills) -> Host {
    let absent = if job.has_other_hosts() { 0 } else { job.absent().0.len() };
    Host::look(Path::new(tidegate_link::DIRECTORY), absent, kills)
}

/// What the processes have left in their folder, which is removed.
fn left_in(folder: StatsFolder) -> (Vec<EndpointStats>, Vec<Trouble>) {
    let pages = stats::read_dir(folder.path()).unwrap_or_else(|error| {
        print_line(&format!("the counter pages cannot be read: {error}"));
        Pages::default()
    });
    if let Some(gap) = pages.gap() {
        print_line(&gap);
    }
    (pages.read, trouble::read_dir(folder.path()))
}

/// What else there is to say in the report as JSON.
type More = Option<(&'static str, Value)>;

/// The report with what else there is to say in it.
fn with_more(mut report: Value, more: Option<&More>) -> Value {
    if let Some(Some((name, value))) = more {
        report[*name] = value.clone();
    }
    report
}

/// A failure of ours ends the command unless the program failed itself, which matters more: then it is only said.
fn end_well(outcome: Result<(), Failure>, exit_code: u8) -> Result<(), Failure> {
    match outcome {
        Err(failure) if exit_code != 0 => {
            print_line(&failure.to_string());
            Ok(())
        }
        outcome => outcome,
    }
}

/// All processes together, and each launch by itself, with its verdict. Operations that were open when they ended have
/// lasted until `end`; `deaths`: the order in which processes ended, where that tells anything.
fn launches_of(
    pages: Vec<EndpointStats>,
    end: Duration,
    mpi: Option<&Mpi>,
    deaths: Option<&Deaths>,
    facts: &Facts,
) -> (Job, Vec<Launch>, Vec<Verdict>) {
    let mut launches = launches::split(pages);
    launches::last_until(&mut launches, end);
    let job = Job::new(&launches.concat());
    let kind = mpi.map(|mpi| mpi.kind);
    let mut told: Vec<Launch> = launches.iter().map(|pages| Launch::of(pages, kind)).collect();
    for (pages, launch) in launches.iter().zip(&mut told) {
        if let (Some(deaths), [first, others @ ..]) = (deaths, &pages[..])
            && others.iter().all(|page| page.host == first.host)
        {
            launch.unclosed.name_first(&first.host, deaths);
        }
    }
    let verdict = |(pages, launch): (&Vec<EndpointStats>, &Launch)| {
        Verdict::of(View::of_pages(facts.clone(), pages, launch.held_up.clone()))
    };
    let verdicts = launches.iter().zip(&told).map(verdict).collect();
    (job, told, verdicts)
}

/// What processes said, with ranks for the process ids in it.
fn with_ranks(trouble: Trouble, launches: &[Launch]) -> Trouble {
    let text = launches.iter().fold(trouble.text, |text, launch| launch.names.with_ranks(&text));
    Trouble { text, ..trouble }
}

/// The program with its environment.
fn command(
    arguments: &RunArguments,
    prepared: &Prepared,
    folder: &StatsFolder,
    variables: &[(&str, OsString)],
) -> Result<process::Command, Failure> {
    let mut command = process::Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    command.envs(prepared.settings.iter().map(|setting| (setting.name, &setting.value)));
    let is_intel = prepared.mpi.as_ref().is_some_and(|mpi| mpi.kind == MpiKind::IntelMpi);
    if let Some(search) = prepared.settings.iter().find(|setting| setting.name == PROVIDER_PATH)
        && arguments.shared.is_some()
        && is_intel
    {
        let refused =
            |error| Failure::own(format!("the providers of {} cannot be linked: {error}", search.value.display()));
        command.env(PROVIDER_PATH, folder.gather_providers(&search.value).map_err(refused)?);
    }
    // Ranks on other hosts may not see the folder.
    let mut stats_dir = OsString::from("?");
    stats_dir.push(folder.path());
    command.env(STATS_DIR, stats_dir);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(list) = prepared.settings.iter().find(|setting| setting.name == PASSED_ON) {
        let names = [STATS_DIR].into_iter().chain(variables.iter().map(|(name, _)| *name));
        let passed_on = names.fold(list.value.to_string_lossy().into_owned(), |list, name| list + ";" + name);
        command.env(PASSED_ON, passed_on);
    }
    // The user has been told of these variables already, so the ranks need not tell again.
    prepared.misspelt.iter().for_each(|misspelt| _ = command.env_remove(&misspelt.name));
    Ok(command)
}

/// The program did not start, so there is nothing to record.
fn not_started(failure: Failure, recording: &mut Option<Sampling>) -> Failure {
    recording.take().into_iter().for_each(Sampling::discard);
    failure
}

/// Ends the recording with the pages as the processes left them. Of several launches, that one is
/// told to be held up which began last of those that are.
fn finish(
    recording: Sampling,
    pages: Vec<EndpointStats>,
    exit_code: u8,
    usage: &Usage,
    ending: &Ending,
    launches: &[Launch],
) {
    let held_up = launches.iter().rev().find_map(|launch| launch.held_up.clone());
    let troubles = usage.troubles.iter().map(|trouble| trouble.text.clone()).collect();
    let left =
        Left { exit_code, signal: ending.signal, failure: failure_of(usage, ending, launches), troubles, held_up };
    if let Some(problem) = recording.finish(pages, left) {
        print_line(&format!("the recording is not complete: {problem}"));
    }
}

/// How the job failed, and why its messages did not go through Tidegate, as far as either is so.
fn failure_of(usage: &Usage, ending: &Ending, launches: &[Launch]) -> facts::Failure {
    let said = ending.text(usage.mpi.map(|mpi| mpi.kind), Evidence::of(launches, usage.host));
    let unclosed = launches.iter().filter(|_| usage.failed).filter_map(|launch| launch.unclosed.text());
    let first_dead = match launches {
        [only] if usage.failed => only.unclosed.first_dead.and_then(|(who, _)| who.rank),
        _ => None,
    };
    let mut reasons = usage.reasons();
    reasons.extend(usage.host.told().into_iter().filter(|_| usage.used() == Used::Messages));
    let was_ended = !ending.signals.is_empty();
    let signal = ending.certain_signal(usage.mpi.map(|mpi| mpi.kind), Evidence::of(launches, usage.host));
    let may_be_killed = !was_ended && signal.as_deref().is_none_or(|signal| signal == "SIGKILL");
    let lack = usage.host.lack(may_be_killed);
    facts::Failure { ends: said.into_iter().chain(unclosed).collect(), was_ended, signal, first_dead, lack, reasons }
}

/// The facts of the run before it begins.
fn facts(arguments: &RunArguments, prepared: &Prepared) -> Facts {
    let settings = prepared.settings.iter();
    let options = own_words(arguments).iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let facts = Facts::new(
        arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        prepared.mpi.as_ref().map(|mpi| mpi.title()),
        settings.map(|setting| (setting.name.to_owned(), setting.value.to_string_lossy().into_owned())).collect(),
        arguments.recording.record_interval,
    );
    Facts { options, ..facts }
}

/// The words of this process before the program.
fn own_words(arguments: &RunArguments) -> Vec<OsString> {
    let own: Vec<OsString> = std::env::args_os().skip(1).collect();
    own[..own.len().saturating_sub(arguments.command.len())].to_vec()
}

/// And when it has ended.
fn ended_facts(arguments: &RunArguments, prepared: &Prepared, wall_time: Duration, exit_code: u8) -> Facts {
    let end = End { exit_code, wall_time_s: wall_time.as_secs_f64(), ..End::default() };
    Facts { end: Some(end), ..facts(arguments, prepared) }
}

/// Begins the recording, if the user wants one.
fn record(arguments: &RunArguments, prepared: &Prepared, folder: &StatsFolder) -> Result<Option<Sampling>, Failure> {
    let Some(dir) = &arguments.recording.record else { return Ok(None) };
    let recorder = Recorder::create(
        dir,
        facts(arguments, prepared),
        Bounds { bytes: arguments.recording.record_most, samples: u64::MAX },
    )?;
    Ok(Some(Sampling::start(recorder, folder.path())))
}

/// Prints the report to standard error, or why there is nothing to report.
fn say(
    arguments: &RunArguments,
    usage: &Usage,
    launches: &[Launch],
    verdicts: &[Verdict],
    ending: &Ending,
    wall_time: Duration,
) {
    let title = usage.mpi.map(|mpi| mpi.title());
    let width = Width::of(std::io::stderr());
    let is_verbose = arguments.verbose || arguments.ranks.is_some();
    let ranks = arguments.ranks.unwrap_or(if is_verbose { Ranks::Auto } else { Ranks::None });
    let form = Form { mpi: title.as_deref(), wall_time: Some(wall_time), ranks, width };
    let mut text = String::new();
    let was_ended = !ending.signals.is_empty();
    let mut ending = ending.text(usage.mpi.map(|mpi| mpi.kind), Evidence::of(launches, usage.host));
    match usage.explain() {
        Some(explanation) => {
            text += &format!("tidegate: {explanation}\n");
            if !usage.job.processes().is_empty() && !arguments.quiet {
                text += &table::heading(usage.job, &form);
            }
            if !arguments.quiet {
                text.extend(launches.iter().map(|launch| table::ending(launch, &form)));
            }
        }
        None if arguments.quiet => return,
        None => {
            let own = own_words(arguments);
            let typed = Typed { own: &own, program: &arguments.command };
            let failure: Vec<String> = match is_verbose {
                true => Vec::new(),
                false => {
                    // Which process ended first says more than how the launcher ended.
                    let texts = |is_named: bool| {
                        let some = launches.iter().filter(move |it| it.unclosed.first_dead.is_some() == is_named);
                        some.filter_map(|it| it.unclosed.text())
                    };
                    texts(true).chain(ending.take()).chain(texts(false)).collect()
                }
            };
            let told = verdict::text(verdicts, usage.job, &form, failure, was_ended, typed, is_verbose);
            text += &match is_verbose {
                true => table::render_all(launches, &form) + "\n" + &told,
                false => told + &launches.iter().map(|it| it.left.text(Ranks::None, width)).collect::<String>(),
            };
            let told: String = usage.told().iter().map(|told| format!("\n  * {told}")).collect();
            if !told.is_empty() {
                text += &format!("\ntidegate: processes said:{told}\n");
            }
            text.extend(usage.host.told().iter().map(|told| format!("tidegate: {told}\n")));
        }
    }
    if let Some(ending) = ending.filter(|_| !arguments.quiet && !launches.is_empty()) {
        text += &width.fit(&format!("tidegate: {ending}\n"));
    }
    // If standard error is closed, there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Where the report goes as JSON.
enum JsonFile<'a> {
    StandardOutput,
    File(&'a Path, File),
}

impl<'a> JsonFile<'a> {
    fn open(path: &'a Path) -> Result<Self, Failure> {
        if super::is_standard_output(path) {
            return Ok(JsonFile::StandardOutput);
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        file.map(|file| JsonFile::File(path, file)).map_err(|error| Failure::write(path, &error))
    }

    fn write(self, value: &serde_json::Value) -> Result<(), Failure> {
        match self {
            JsonFile::StandardOutput => super::print_json(value),
            JsonFile::File(path, file) => {
                replace(file, value).map_err(|error| Failure::own(format!("{}: {error}", path.display())))
            }
        }
    }
}

fn replace(mut file: File, value: &serde_json::Value) -> std::io::Result<()> {
    // A pipe or a device cannot be cut to length, and need not be.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(format!("{value:#}\n").as_bytes())
}
