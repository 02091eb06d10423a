//! What `tidegate-paper` does.

use std::env;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use tidegate_cli::command::print;
use tidegate_cli::failure::Failure;
use tidegate_cli::part::Part;
use tidegate_cli::progress::Bar;
use tidegate_cli::report::width::Width;
use tidegate_cli::store::{Folder, Reuse};
use tidegate_link::log::print_line;
use tidegate_sim::run_spec::did_you_mean;

use crate::archive::{self, Unpacked};
use crate::arguments::Arguments;
use crate::data::usual_folder;
use crate::experiment::Experiment;
use crate::output::{page, results, terminal};
use crate::report::{Report, Verdict};
use crate::run::CODE;
use crate::workshop::{Scale, Workshop};

/// How to run everything.
const ALL: &str = "`tidegate paper all` all: more than ten hours with two processors, minutes with --quick";

/// Does what the arguments ask.
pub fn paper(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(done) = pack_or_unpack(arguments) {
        return done.map(|()| 0);
    }
    Experiment::load(arguments.papers.as_deref()).map_err(|error| Failure::usage(error.to_string()))?;
    if arguments.pages {
        let folder = arguments.out.clone().or(arguments.papers.clone()).unwrap_or_else(usual_folder);
        results::write_pages(&folder, true).map_err(cannot_write(&folder))?;
        say_page(&folder);
        return Ok(0);
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
    if !arguments.ids.is_empty() {
        let mut checked = experiments.iter().map(|experiment| experiment.figure.check());
        checked.try_for_each(|is_right| is_right.map_err(|error| Failure::usage(error.to_string())))?;
    }
    if arguments.list || arguments.ids.is_empty() {
        if !arguments.list && arguments.is_about_runs() {
            return Err(Failure::usage(format!("no experiment is named: name some, or {ALL}")));
        }
        return list(&experiments, arguments).map(|()| 0);
    }
    let scale = Scale::ALL[usize::from(arguments.quick) + 2 * usize::from(arguments.smallest)];
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
    let ended = workshop.reports(&experiments, |experiment, report| {
        bar.suspend(|| {
            // First, because there may be no room for the files.
            let section = page::section(experiment, &report);
            let width = Width::of(io::stdout());
            let section = if width.breaks_lines { terminal::shown(&section, width.columns) } else { section };
            print(section.as_bytes())?;
            if let Some(folder) = &arguments.out {
                let names = results::write(experiment, &report, folder).map_err(cannot_write(folder))?;
                results::write_pages(folder, false).map_err(cannot_write(folder))?;
                print_line(&format!("wrote to {}: {}", folder.display(), names.join(", ")));
            }
            reports.push(report);
            Ok(())
        })
    });
    bar.clear();
    ended?;
    print(summary(&reports, scale).as_bytes())?;
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

/// Opens the folder where runs are kept before the first run, and says where it is if the user has named none. `None`:
/// it is the user's cache, and cannot be used.
fn open(folder: &Path, arguments: &Arguments) -> Result<Option<Folder>, Failure> {
    let reuse = if arguments.reuse_older { Reuse::AnyCode } else { Reuse::SameCode };
    let opened = Folder::open(folder, reuse, CODE);
    let place = Folder::of(folder).display().to_string();
    if arguments.out.is_some() {
        return opened.map(Some).map_err(cannot_write(folder));
    }
    print_line(&match &opened {
        Ok(_) => format!("runs are kept in {place}; with --out DIR below DIR"),
        Err(error) => format!("runs are not kept, because {place} cannot be used: {error}"),
    });
    Ok(opened.ok())
}

/// Tidegate's folder in the user's cache, if there is one.
fn cache() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("tidegate"))
}

/// With how many seeds every case is run, and the percentage of noise.
///
/// Three are the fewest of which an interval means anything: of three it is 2.5 standard deviations on each side.
fn seeds_and_noise(arguments: &Arguments, scale: Scale) -> (u32, f64) {
    let usual = if arguments.no_noise || scale == Scale::Smallest { 1 } else { 3 };
    let seeds = arguments.seeds.map_or(usual, |seeds| seeds as u32);
    let usual = if seeds > 1 { Workshop::NOISE_PERCENT } else { 0.0 };
    (seeds, if arguments.no_noise { 0.0 } else { arguments.noise.unwrap_or(usual) })
}

fn say_page(folder: &Path) {
    print_line(&format!("{} shows all results in this folder", folder.join("README.md").display()));
}

fn cannot_write(folder: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::own(format!("cannot write to {}: {error}", folder.display()))
}

/// The experiments of these names, in the order of the papers; all if there are none, or if one of them is `all`.
fn chosen(ids: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let are_all = ids.is_empty() || ids.iter().any(|id| id.eq_ignore_ascii_case("all"));
    for id in ids.iter().filter(|_| !are_all) {
        if Experiment::find(id).is_none() {
            let near = did_you_mean(id, Experiment::all().iter().map(|experiment| experiment.id));
            return Err(Failure::usage(format!("there is no experiment {id}{near} (`tidegate paper` lists them all)")));
        }
    }
    let wanted = |experiment: &&Experiment| are_all || ids.iter().any(|id| id.eq_ignore_ascii_case(experiment.id));
    Ok(Experiment::all().iter().filter(wanted).collect())
}

fn list(experiments: &[&Experiment], arguments: &Arguments) -> Result<(), Failure> {
    let mut text = String::new();
    for Experiment { id, title, section, paper, .. } in experiments {
        let place = format!("{} {section}", paper.letter);
        let _ = writeln!(text, "{id:<11} {:<28} {title}", place.trim_start());
    }
    if !arguments.list {
        let _ = writeln!(text, "\n`tidegate paper P-fig4` runs one of them, {ALL}.");
    }
    print(text.as_bytes())
}

fn summary(reports: &[Report], scale: Scale) -> String {
    let facts = || reports.iter().flat_map(|report| &report.facts);
    let [come, differ, implied, left] =
        Verdict::ALL.map(|verdict| facts().filter(|fact| fact.verdict == verdict).count());
    let (all, size) = (facts().count(), if scale == Scale::Full { "full size" } else { "reduced size" });
    format!("{all} statements at {size}: {come} reproduced, {differ} differ, {implied} implied, {left} not run\n")
}
