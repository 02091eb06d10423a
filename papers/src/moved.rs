//! Whether figures that have become files are what they were: the same runs, the same numbers, the same outcomes.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use tidegate_sim::{FinishedRun, Measurement, RunClaim, RunKey, RunStore};

use crate::experiment::Experiment;
use crate::figures;
use crate::progress::Silent;
use crate::report::{Figure, Report, Table};
use crate::run::CODE;
use crate::workshop::{Scale, Workshop};

/// Those that are files and still have their code.
fn moved() -> Vec<(&'static Experiment, &'static Experiment)> {
    let old = figures::ALL.iter();
    let pairs = old.filter_map(|old| Experiment::find(old.id).filter(|new| new.is_file()).map(|new| (old, new)));
    let only = std::env::var("MOVED").unwrap_or_default();
    pairs.filter(|(old, _)| only.is_empty() || only.split(',').any(|id| id == old.id)).collect()
}

fn keys(workshop: &Workshop<'_>, experiment: &Experiment) -> BTreeSet<String> {
    workshop.plan_of(experiment).iter().map(|case| case.spec_key().unwrap()).collect()
}

#[test]
fn each_runs_what_it_ran() {
    let mut wrong = Vec::new();
    for (old, new) in moved() {
        for scale in [Scale::Full, Scale::Quick, Scale::Smallest] {
            let workshop = Workshop::new(scale, 1, Some(1), &Silent).with_seeds(3).with_noise(2.5);
            let (before, after) = (keys(&workshop, old), keys(&workshop, new));
            for (what, ones, others) in [("no more", &before, &after), ("new", &after, &before)] {
                for key in ones.difference(others).take(2) {
                    wrong.push(format!("{} {}: {what}: {key}", old.id, scale.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_finds_what_it_found() {
    let mut wrong = Vec::new();
    for (old, new) in moved() {
        let workshop = Workshop::new(Scale::Smallest, 1, Some(2), &Silent).with_seeds(2).with_noise(2.5);
        let before = old.run(&workshop).unwrap();
        match new.run(&workshop) {
            Ok(after) => {
                wrong.extend(differences(&before, &after).into_iter().map(|what| format!("{}: {what}", old.id)))
            }
            Err(error) => wrong.push(format!("{}: {error}", old.id)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn differences(before: &Report, after: &Report) -> Vec<String> {
    let mut wrong = Vec::new();
    let facts = |report: &Report| {
        report
            .facts
            .iter()
            .map(|fact| (fact.statement.clone(), fact.verdict, fact.by_seed.clone(), fact.paper.clone()))
            .collect::<Vec<_>>()
    };
    for (one, other) in facts(before).iter().zip(&facts(after)) {
        if one != other {
            wrong.push(format!("fact {one:?}\n    is now {other:?}"));
        }
    }
    if before.facts.len() != after.facts.len() {
        wrong.push(format!("{} facts, now {}", before.facts.len(), after.facts.len()));
    }
    for (one, other) in
        before.facts.iter().zip(&after.facts).filter(|(one, other)| one.explanation != other.explanation)
    {
        wrong.push(format!(
            "the explanation of \"{}\": {}\n    is now {}",
            one.statement, one.explanation, other.explanation
        ));
    }
    for (one, other) in before.facts.iter().zip(&after.facts).filter(|(one, other)| one.here != other.here) {
        eprintln!("here: {}\n now: {}\n", one.here, other.here);
    }
    for one in &before.figures {
        match after.figures.iter().find(|other| other.name == one.name) {
            Some(other) => wrong.extend(of_figures(one, other)),
            None => wrong.push(format!("there is no picture {}", one.name)),
        }
    }
    for one in &before.tables {
        match after.tables.iter().find(|other| other.name == one.name) {
            Some(other) => wrong.extend(of_tables(one, other)),
            None => wrong.push(format!("there is no table {}", one.name)),
        }
    }
    wrong
}

fn of_figures(one: &Figure, other: &Figure) -> Vec<String> {
    let mut wrong = Vec::new();
    let head = |figure: &Figure| {
        [&figure.title, &figure.x_axis, &figure.y_axis]
            .map(String::clone)
            .into_iter()
            .chain(figure.categories.clone())
            .collect::<Vec<_>>()
    };
    if head(one) != head(other) || one.spread != other.spread {
        wrong.push(format!("picture {}: {:?} is now {:?}", one.name, head(one), head(other)));
    }
    if one.series.len() != other.series.len() {
        wrong.push(format!("picture {}: {} curves, now {}", one.name, one.series.len(), other.series.len()));
    }
    for (a, b) in one.series.iter().zip(&other.series) {
        let style = |series: &crate::report::Series| {
            (series.name.clone(), series.panel.clone(), series.scheme.clone(), series.piggyback, series.kind)
        };
        if style(a) != style(b) {
            wrong.push(format!("picture {}: {:?} is now {:?}", one.name, style(a), style(b)));
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
        let same = a.points.len() == b.points.len()
            && a.points.iter().zip(&b.points).all(|(a, b)| {
                near(a.x, b.x)
                    && near(a.y, b.y)
                    && a.range.is_some() == b.range.is_some()
                    && a.range.zip(b.range).is_none_or(|(a, b)| near(a.0, b.0) && near(a.1, b.1))
            });
        if !same {
            let shown = |series: &crate::report::Series| {
                series.points.iter().map(|point| format!("{}:{:.4}", point.x, point.y)).collect::<Vec<_>>().join(" ")
            };
            wrong.push(format!("picture {}, {}: {}\n    is now {}", one.name, a.name, shown(a), shown(b)));
        }
    }
    wrong
}

fn of_tables(one: &Table, other: &Table) -> Vec<String> {
    if one == other {
        return Vec::new();
    }
    let mut wrong = vec![];
    if (&one.title, &one.columns) != (&other.title, &other.columns) {
        wrong.push(format!(
            "table {}: {:?} {:?}\n    is now {:?} {:?}",
            one.name, one.title, one.columns, other.title, other.columns
        ));
    }
    for (a, b) in one.rows.iter().zip(&other.rows).filter(|(a, b)| a != b).take(3) {
        wrong.push(format!("table {}: {a:?}\n    is now {b:?}", one.name));
    }
    if one.rows.len() != other.rows.len() {
        wrong.push(format!("table {}: {} rows, now {}", one.name, one.rows.len(), other.rows.len()));
    }
    wrong
}

/// The runs of docs/paper, by the keys that they have as files.
struct Published {
    runs: HashMap<(String, u64), Measurement>,
    missing: Mutex<Vec<String>>,
}

impl RunStore for Published {
    fn load(&self, key: &RunKey) -> Option<FinishedRun> {
        let measurement = self.runs.get(&(key.case.clone(), key.seed)).cloned().unwrap_or_else(|| {
            self.missing.lock().unwrap().push(format!("{} with seed {}", key.case, key.seed));
            Measurement { time: 1.0, ..Measurement::default() }
        });
        Some(FinishedRun { code: CODE.to_owned(), key: key.clone(), seconds: 0.0, measurement })
    }

    fn claim(&self, _: &RunKey) -> Option<Box<dyn RunClaim>> {
        None
    }
}

fn published(id: &str) -> Option<Report> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/paper");
    let mut folders = vec![folder.clone()];
    folders
        .extend(fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()));
    let text = folders.iter().find_map(|folder| fs::read(folder.join(format!("{id}.json"))).ok())?;
    serde_json::from_slice(&text).ok()
}

/// What a figure finds with the published runs.
fn found_again(old: &Experiment, new: &Experiment, published: &Report) -> Result<Report, String> {
    let scale =
        [Scale::Full, Scale::Quick, Scale::Smallest].into_iter().find(|scale| scale.name() == published.scale).unwrap();
    let workshop = || {
        let all = Workshop::new(scale, published.seed, Some(1), &Silent).with_seeds(published.seeds);
        all.with_noise(published.noise_percent)
    };
    // Some runs that differ have the same text. They were published in the order in which they are asked for.
    let mut keys: HashMap<String, Vec<String>> = HashMap::new();
    for case in workshop().plan_of(old) {
        let (of_text, key) = (keys.entry(case.to_string()).or_default(), case.spec_key().unwrap());
        if !of_text.contains(&key) {
            of_text.push(key);
        }
    }
    let (mut runs, mut counts) = (HashMap::new(), HashMap::new());
    for run in &published.runs {
        let nth: &mut usize = counts.entry((&run.case, run.seed)).or_default();
        if let Some(key) = keys.get(&run.case).and_then(|keys| keys.get(*nth)) {
            runs.insert((key.clone(), run.seed), run.measurement.clone());
        }
        *nth += 1;
    }
    let store = Published { runs, missing: Mutex::default() };
    let found = new.run(&workshop().with_store(&store)).map_err(|error| error.to_string())?;
    let missing = store.missing.into_inner().unwrap();
    if missing.is_empty() {
        return Ok(Report { code: published.code.clone(), older_runs: published.older_runs.clone(), ..found });
    }
    Err(format!("{} runs were never published, such as {}", missing.len(), missing[0]))
}

#[test]
fn each_finds_what_was_published() {
    let mut wrong = Vec::new();
    for (old, new) in moved() {
        let Some(published) = published(old.id) else { continue };
        match found_again(old, new, &published) {
            Ok(found) => {
                wrong.extend(differences(&published, &found).into_iter().map(|what| format!("{}: {what}", old.id)));
                if let Some(folder) = std::env::var_os("PUBLISH") {
                    let stem = new.file_stem().unwrap();
                    let folder = Path::new(&folder).join(stem.parent().unwrap().file_name().unwrap());
                    fs::create_dir_all(&folder).unwrap();
                    let name = stem.file_name().unwrap().to_str().unwrap();
                    fs::write(folder.join(format!("{name}.csv")), crate::record::written(&found).unwrap()).unwrap();
                }
            }
            Err(error) => wrong.push(format!("{}: {error}", old.id)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
