//! What `tidegate-paper` does.

use std::env;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use tidegate_cli::command::{print, print_json};
use tidegate_cli::failure::Failure;
use tidegate_cli::part::Part;
use tidegate_cli::progress::Bar;
use tidegate_cli::store::{Folder, Reuse};
use tidegate_link::log::print_line;
use tidegate_sim::{NoStore, RunStore};

use crate::archive::{self, Unpacked};
use crate::arguments::Arguments;
use crate::data::Figures;
use crate::experiment::Experiment;
use crate::output::times::{self, Times};
use crate::output::{files, overview, page, text};
use crate::report::{Report, Verdict};
use crate::run::CODE;
use crate::workshop::{Scale, Stopped, Workshop};

/// Version of the JSON of `tidegate paper --json`.
pub const PAPER_SCHEMA: &str = "tidegate-paper/3";

/// How to run everything.
const ALL: &str = "`tidegate paper all` all: more than ten hours with two processors, minutes with --quick";

/// Does what the arguments ask.
pub fn paper(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(done) = pack_or_unpack(arguments) {
        return done.map(|()| 0);
    }
    Experiment::load(arguments.papers.as_deref()).map_err(|error| Failure::usage(error.to_string()))?;
    if arguments.overview {
        let folder = arguments.papers.clone().unwrap_or_else(Figures::usual_folder);
        overview::write(&folder).map_err(cannot_write(&folder))?;
        print_line(&format!("{} shows what comes out", folder.join("README.md").display()));
        return Ok(0);
    }
    if let (true, Some(folder)) = (arguments.redraw, &arguments.out) {
        return redraw(folder).map(|()| 0);
    }
    run(arguments)
}

/// Makes or reads an archive of runs, if that is what the arguments ask for.
fn pack_or_unpack(arguments: &Arguments) -> Option<Result<(), Failure>> {
    if let Some(folder) = &arguments.pack {
        let failed = |error| Failure::own(format!("cannot pack the runs in {}: {error}", folder.display()));
        return Some(
            archive::pack(folder).map_err(failed).and_then(|path| print(format!("{}\n", path.display()).as_bytes())),
        );
    }
    let (Some(file), Some(folder)) = (&arguments.unpack, &arguments.out) else { return None };
    let done = archive::unpack(file, folder);
    Some(match done {
        Ok(Unpacked { new, known }) => {
            let place = Folder::of(folder).display().to_string();
            print_line(&format!("{new} runs were put into {place}, {known} were there already"));
            Ok(())
        }
        Err(error) => Err(Failure::own(format!("cannot unpack {}: {error}", file.display()))),
    })
}

/// Runs experiments, or lists them where none is named.
fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let experiments = chosen(&arguments.ids)?;
    if arguments.list || arguments.ids.is_empty() {
        if !arguments.list && arguments.is_about_runs() {
            return Err(Failure::usage(format!("no experiment is named: name some, or {ALL}")));
        }
        return list(&experiments, arguments).map(|()| 0);
    }
    let scale = match (arguments.quick, arguments.smallest) {
        (_, true) => Scale::Smallest,
        (true, _) => Scale::Quick,
        _ => Scale::Full,
    };
    let bar = Bar::new("paper");
    let part = Part::find(arguments.part, arguments.out.is_some())?;
    let workshop = Workshop::new(scale, arguments.seed, Some(part.jobs(arguments.jobs)), &bar);
    let (seeds, noise) = seeds_and_noise(arguments, scale);
    let workshop = workshop.with_seeds(seeds).with_noise(noise);
    let needs_runs = experiments.iter().any(|experiment| experiment.is_simulated());
    let kept_in = arguments.out.clone().or_else(|| cache().filter(|_| needs_runs));
    if kept_in.is_none() && needs_runs {
        print_line("runs are not kept, because neither XDG_CACHE_HOME nor HOME names a folder");
    }
    let store = kept_in.as_ref().map_or(Ok(None), |folder| open(folder, arguments))?;
    let workshop = match &store {
        Some(store) => workshop.with_store(store),
        None => workshop,
    };
    if is_for_others(&workshop, &experiments, &part, &bar, kept_in.as_deref())? {
        return Ok(0);
    }
    let mut reports = Vec::new();
    let ended = workshop.reports(&experiments, |report| {
        let times = Times::new(workshop.jobs(), workshop.take_times());
        bar.suspend(|| {
            // First, because there may be no room for the files.
            if !arguments.json {
                let search =
                    times.search().map_or(String::new(), |sentence| format!("\n  {}: {sentence}\n", report.id));
                print(format!("{}{search}\n", text::report(&report)).as_bytes())?;
            }
            if let Some(folder) = &arguments.out {
                write(&report, folder)?;
                times::write(folder, &report.id, &times).map_err(cannot_write(folder))?;
                page::write(folder).map_err(cannot_write(folder))?;
            }
            Ok(())
        })?;
        reports.push(report);
        Ok(())
    });
    bar.clear();
    ended.map_err(|stopped| match stopped {
        Stopped::Failed(id, error) => Failure::own(format!("{id} failed: {error}")),
        Stopped::Taker(failure) => failure,
    })?;
    if arguments.json {
        print_json(&json!({ "schema": PAPER_SCHEMA, "experiments": reports }))?;
    } else {
        print(summary(&reports, scale).as_bytes())?;
    }
    if let Some(folder) = kept_in.filter(|_| store.is_some()) {
        let (done, kept) = bar.counts();
        print_line(&format!("{done} runs were done, {kept} had been kept in {}", Folder::of(&folder).display()));
    }
    if let Some(folder) = &arguments.out {
        say_page(folder);
    }
    Ok(0)
}

/// Does one part of the runs. Whether the reports are for other parts to make, which is said.
fn is_for_others(
    workshop: &Workshop<'_>,
    experiments: &[&'static Experiment],
    part: &Part,
    bar: &Bar,
    folder: Option<&Path>,
) -> Result<bool, Failure> {
    let Some(folder) = folder.filter(|_| !part.is_whole()) else { return Ok(false) };
    let missing =
        workshop.do_part(experiments, part).map_err(|error| Failure::own(format!("a run failed: {error}")))?;
    let next = match missing {
        Some(0) => return Ok(false),
        Some(missing) => format!("{missing} runs are missing: when all parts have ended, {}", part.remedy()),
        None => "part 1 prints what came out".to_owned(),
    };
    bar.clear();
    let ((done, kept), place) = (bar.counts(), Folder::of(folder));
    let part = part.in_words();
    print_line(&format!("{part}: {done} runs were done, {kept} had been kept in {}; {next}", place.display()));
    Ok(true)
}

/// Opens the folder where runs are kept before the first run, so that the user hears of a wrong name now and not after
/// hours. Says where it is if the user has named none. `None`: it is the user's cache, and cannot be used.
fn open(folder: &Path, arguments: &Arguments) -> Result<Option<Folder>, Failure> {
    let reuse = if arguments.reuse_older { Reuse::AnyCode } else { Reuse::SameCode };
    let opened = Folder::open(folder, reuse, CODE);
    let place = Folder::of(folder).display().to_string();
    match opened {
        Ok(_) if arguments.out.is_none() => print_line(&format!("runs are kept in {place}; with --out DIR below DIR")),
        Err(error) if arguments.out.is_none() => {
            print_line(&format!("runs are not kept, because {place} cannot be used: {error}"));
            return Ok(None);
        }
        _ => {}
    }
    opened.map(Some).map_err(cannot_write(folder))
}

/// Tidegate's folder in the user's cache, if there is one.
fn cache() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("tidegate"))
}

/// With how many seeds every case is run, and the percentage of noise.
///
/// Three, the fewest of which an interval means anything: the 95 % confidence interval of a mean of three is 2.5
/// standard deviations wide on each side, of five 1.2. At full size three take some six hours with two processors.
/// Without noise a seed decides little (where pairs begin amid a program, in figures 6 and 7), so there is one.
fn seeds_and_noise(arguments: &Arguments, scale: Scale) -> (u32, f64) {
    let usual = match scale {
        _ if arguments.no_noise => 1,
        Scale::Full | Scale::Quick => 3,
        Scale::Smallest => 1,
    };
    let seeds = arguments.seeds.map_or(usual, |seeds| seeds as u32);
    let noise = match arguments.noise {
        _ if arguments.no_noise => 0.0,
        Some(percent) => percent,
        None if seeds > 1 => Workshop::NOISE_PERCENT,
        None => 0.0,
    };
    (seeds, noise)
}

/// Writes the files of a report, and says which.
fn write(report: &Report, folder: &Path) -> Result<(), Failure> {
    let names = files::write(report, folder).map_err(cannot_write(folder))?;
    print_line(&format!("wrote to {}: {}", folder.display(), names.join(", ")));
    Ok(())
}

fn say_page(folder: &Path) {
    print_line(&format!("{} shows all results in this folder", folder.join("README.md").display()));
}

fn cannot_write(folder: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::own(format!("cannot write to {}: {error}", folder.display()))
}

/// Makes all files of the folder anew from its JSON reports, their statements judged anew from the runs that they hold.
fn redraw(folder: &Path) -> Result<(), Failure> {
    let reports = files::read(folder).map_err(|error| Failure::own(error.to_string()))?;
    if reports.is_empty() {
        return Err(Failure::own(format!("{} holds no results of `tidegate paper --out`", folder.display())));
    }
    let has_runs = Folder::of(folder).is_dir();
    let kept =
        has_runs.then(|| Folder::open(folder, Reuse::AnyCode, CODE)).transpose().map_err(cannot_write(folder))?;
    let kept: &dyn RunStore = kept.as_ref().map_or(&NoStore, |kept| kept);
    for report in reports {
        let experiment = Experiment::find(&report.id);
        match experiment.map(|experiment| experiment.judge(&report, kept)) {
            Some(Ok(judged)) => write(&judged, folder)?,
            Some(Err(why)) => {
                print_line(&format!("{} keeps its statements, which are not judged anew: {why}", report.id));
                write(&report, folder)?;
            }
            None => write(&report, folder)?,
        }
    }
    page::write(folder).map_err(cannot_write(folder))?;
    say_page(folder);
    Ok(())
}

/// The experiments of these names, in the order of the papers; all if there are none, or if one of them is `all`.
fn chosen(ids: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let are_all = ids.is_empty() || ids.iter().any(|id| id.eq_ignore_ascii_case("all"));
    for id in ids.iter().filter(|_| !are_all) {
        if Experiment::find(id).is_none() {
            let near = Experiment::all().iter().map(|experiment| experiment.id);
            let near = near.max_by(|one, other| likeness(id, one).total_cmp(&likeness(id, other))).unwrap_or_default();
            let hint = format!("there is no experiment {id}; did you mean {near}? `tidegate paper` lists them all");
            return Err(Failure::usage(hint));
        }
    }
    let wanted = |experiment: &&Experiment| are_all || ids.iter().any(|id| id.eq_ignore_ascii_case(experiment.id));
    Ok(Experiment::all().iter().filter(wanted).collect())
}

fn likeness(one: &str, other: &str) -> f64 {
    strsim::jaro_winkler(&one.to_lowercase(), &other.to_lowercase())
}

fn list(experiments: &[&Experiment], arguments: &Arguments) -> Result<(), Failure> {
    if arguments.json {
        let each = |experiment: &&Experiment| json!({ "id": experiment.id, "title": experiment.title, "section": experiment.section });
        return print_json(&json!({
            "schema": PAPER_SCHEMA, "experiments": experiments.iter().map(each).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::new();
    for experiment in experiments {
        let _ = writeln!(
            text,
            "{:<11} {:<28} {}",
            experiment.id,
            format!("{} {}", experiment.paper(), experiment.section).trim_start(),
            experiment.title
        );
    }
    if !arguments.list {
        let _ = writeln!(text, "\n`tidegate paper P-fig4` runs one of them, {ALL}.");
    }
    print(text.as_bytes())
}

fn summary(reports: &[Report], scale: Scale) -> String {
    let facts = || reports.iter().flat_map(|report| &report.facts);
    let count = |verdict| facts().filter(|fact| fact.verdict == verdict).count();
    let size = if scale == Scale::Full { "full size" } else { "reduced size" };
    format!(
        "{} statements at {size}: {} reproduced, {} differ, {} implied, {} not run\n",
        facts().count(),
        count(Verdict::Reproduced),
        count(Verdict::Differs),
        count(Verdict::Implied),
        count(Verdict::NotRun),
    )
}
