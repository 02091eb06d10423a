//! `tidegate sim`.

mod exchange;
mod fabric;
mod job;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Map, Value, json};

use crate::arguments::SimArguments;
use crate::failure::Failure;
use crate::files::csv;
use crate::parallel::parallel;
use crate::progress::{Bar, Source};
use crate::report::units;
use crate::sharing::{Sharing, Unfinished};
use crate::store::Kept;
use tidegate_link::log::print_line;
use tidegate_sim::RunKey;
use tidegate_sim::goal;
use tidegate_sim::run_spec::{BULK_FIELDS, Draft, FABRIC_FIELDS, FIELDS, Field, File, Sweep};

pub use exchange::{BULK_SCHEMA, EXCHANGE_SCHEMA};
pub use fabric::FABRIC_SCHEMA;
pub use job::SIM_SCHEMA;

/// What is shown of the runs of a file.
struct Shown {
    columns: Vec<String>,
    cells: Vec<Vec<String>>,
    /// What the columns mean.
    notes: String,
    json: Value,
}

/// Why nothing is shown.
enum Ended {
    /// A run failed. This says which one, and why.
    Failed(String),
    /// Other parts have not done theirs, which this says.
    Missing(String),
}

impl<E> Unfinished<E> {
    /// The same, with what is said of a run that failed.
    fn with(self, text: impl FnOnce(usize, E) -> String) -> Ended {
        match self {
            Unfinished::Failed(number, error) => Ended::Failed(text(number, error)),
            Unfinished::Missing(text) => Ended::Missing(text),
        }
    }
}

/// The file that the command needs, as its refusals say it.
const NEEDED: &str =
    "`sim` needs a file in TOML that describes a machine and a job: `tidegate sim --fields` lists what it may say";

/// Why a file of another kind describes no run, and what it is good for.
fn no_description(path: &Path, bytes: &[u8]) -> Option<String> {
    let name = path.file_name().unwrap_or_default().display();
    let replay = "operation = \"trace\" and trace";
    if goal::is_program(bytes) {
        return Some(format!(
            "this is a program, and {NEEDED}. To replay a program: tidegate record -o job.goal mpiexec -n 4 ./{name}, and in the \
             file, under [workload], {replay} = \"job.goal\""
        ));
    }
    if goal::is_compressed(bytes) {
        return Some(format!("this file is compressed, and {NEEDED}"));
    }
    let text = std::str::from_utf8(bytes).ok()?;
    text.lines().any(|line| line.trim_start().starts_with("num_ranks ")).then(|| {
        format!(
            "this is a trace, and {NEEDED}. To replay the trace, write there, under [workload], {replay} = \"{name}\"; \
             `tidegate plan` takes traces as they are"
        )
    })
}

/// Runs what a file describes.
pub fn sim(arguments: &SimArguments) -> Result<u8, Failure> {
    let Some(path) = &arguments.file else {
        return super::print(fields().as_bytes()).map(|()| 0);
    };
    let prints_csv = arguments.csv.as_deref().is_some_and(super::is_standard_output);
    if prints_csv && arguments.json {
        return Err(Failure::usage("--json and --csv - both write to standard output: name a file for one of them"));
    }
    arguments.csv.as_deref().map_or(Ok(()), |file| super::check_output("--csv", file))?;
    let refuse = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    if path.is_dir() {
        return Err(refuse(format!("this is a folder, and {NEEDED}")));
    }
    let bytes = fs::read(path).map_err(|error| refuse(error.to_string()))?;
    if let Some(why) = no_description(path, &bytes) {
        return Err(refuse(why));
    }
    let file = File::read(bytes, path.parent().unwrap_or(Path::new("")))
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let sharing = Sharing::open(arguments.sharing.out.as_deref(), arguments.sharing.part)?;
    let jobs = Sharing::jobs(sharing.as_ref(), arguments.jobs);
    let runner = Runner { jobs, sharing, bar: Bar::new("sim") };
    let shown = match (&file, &arguments.goal) {
        (File::Jobs(sweep), Some(goal)) => return job::write_goal(sweep, goal),
        (other, Some(_)) => {
            return Err(Failure::usage(format!(
                "--goal writes the program of a job, and the file describes {}",
                kind(other)
            )));
        }
        (other @ (File::Fabrics(_) | File::Bulks(_)), None) if arguments.record.is_some() => {
            return Err(Failure::usage(format!("--record records processes, and the file describes {}", kind(other))));
        }
        (File::Jobs(sweep), None) => {
            let recording = arguments.record.as_deref().map(|folder| job::record(sweep, path, folder)).transpose()?;
            job::show(sweep, &runner, recording)
        }
        (File::Fabrics(sweep), None) if sweep.points.iter().any(|(_, fabric)| fabric.exchange.is_some()) => {
            exchange::show(sweep, &runner)
        }
        (File::Fabrics(sweep), None) => fabric::show(sweep, &runner),
        (File::Bulks(sweep), None) => exchange::show_bulk(sweep, &runner),
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(Ended::Failed(failure)) => return Err(Failure::own(format!("{}: {failure}", path.display()))),
        Err(Ended::Missing(text)) => {
            print_line(&text);
            return Ok(0);
        }
    };
    let comma_separated = || csv(std::iter::once(&shown.columns).chain(&shown.cells));
    if let Some(file) = arguments.csv.as_deref().filter(|_| !prints_csv) {
        super::write_file(file, &comma_separated())?;
    }
    if prints_csv {
        super::print(comma_separated().as_bytes())?;
    } else if arguments.json {
        super::print_json(&shown.json)?;
    } else {
        super::print(shown.table().as_bytes())?;
    }
    if let Some(sharing) = &runner.sharing {
        print_line(&sharing.found_all(&runner.bar));
    }
    Ok(0)
}

impl Shown {
    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let is_time: Vec<bool> = self.columns.iter().map(|column| column.ends_with(MICROSECONDS)).collect();
        table.set_header(self.columns.iter().map(|column| column.strip_suffix(MICROSECONDS).unwrap_or(column)));
        for cells in &self.cells {
            let each = cells.iter().zip(&is_time);
            table.add_row(each.map(|(cell, is_time)| if *is_time { with_unit(cell) } else { cell.clone() }));
        }
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        format!("{}\n\n{}", lines.join("\n"), self.notes)
    }
}

/// Behind the name of a column of times, in files for programs.
const MICROSECONDS: &str = " (us)";

/// A number of microseconds as people read it: `1.69 s`. A text that is no number stays as it is.
fn with_unit(microseconds: &str) -> String {
    microseconds.parse::<f64>().map_or_else(|_| microseconds.to_owned(), units::microseconds)
}

/// Does runs, with a bar that says how they get on.
struct Runner {
    /// The number of runs at a time.
    jobs: usize,
    /// Where they are kept, if they are.
    sharing: Option<Sharing>,
    bar: Bar,
}

impl Runner {
    /// The results of all these runs, in their order. `key` gives the key under which a run is kept.
    fn each<T: Sync, M: Kept + Send, E: Send>(
        &self,
        runs: &[T],
        key: impl Fn(&T) -> RunKey + Sync,
        run: impl Fn(&T) -> Result<M, E> + Sync,
    ) -> Result<Vec<M>, Unfinished<E>> {
        let done = match &self.sharing {
            Some(sharing) => sharing.each(self.jobs, &self.bar, runs, key, run),
            None => {
                self.bar.expect(runs.len());
                let done = parallel(self.jobs, runs, |one| {
                    let done = run(one);
                    self.bar.finish("", Source::Done);
                    done
                });
                let numbered = done.into_iter().enumerate();
                numbered.map(|(number, done)| done.map_err(|error| Unfinished::Failed(number, error))).collect()
            }
        };
        self.bar.clear();
        done
    }
}

/// The key of a run that has no processes, hence no noise: `case` has all its fields.
fn key(case: String, seed: u64) -> RunKey {
    RunKey { case: format!("sim {case}"), seed, noise_interval_ps: 0, noise_duration_ps: 0 }
}

/// The values of a run's axes by their names, for JSON.
fn axes_of<D: Draft>(sweep: &Sweep<D>, values: &[String]) -> Map<String, Value> {
    sweep.axes.iter().cloned().zip(values.iter().map(|value| json!(value))).collect()
}

/// What a file describes that has no jobs of processes.
fn kind(file: &File) -> &'static str {
    match file {
        File::Jobs(_) => "a job",
        File::Fabrics(sweep) if sweep.points.iter().any(|(_, fabric)| fabric.exchange.is_some()) => {
            "an exchange of all nodes of a network"
        }
        File::Fabrics(_) => "a network under load",
        File::Bulks(_) => "bulk transfers",
    }
}

/// The fields of all kinds of files.
fn fields() -> String {
    let jobs = "A file describes jobs, by the tables up to [run] …\n\n";
    let fabrics = "\n… or, by these tables and no others, a network of thousands of nodes under load, or, with any field of \
                   [exchange], an exchange of all its nodes …\n\n";
    let bulks =
        "\n… or, by this table alone, bulk transfers on a machine whose nodes receive more slowly than they send.\n\n";
    [jobs, &listed(FIELDS), fabrics, &listed(FABRIC_FIELDS), bulks, &listed(BULK_FIELDS)].concat()
}

/// The fields of files of one kind.
fn listed<D: Draft>(fields: &[Field<D>]) -> String {
    let mut text = String::new();
    let mut section = "";
    for field in fields {
        if field.section != section {
            let _ = writeln!(text, "{}[{}]", if section.is_empty() { "" } else { "\n" }, field.section);
            section = field.section;
        }
        let default = if field.default.is_empty() { String::new() } else { format!(" [{}]", field.default) };
        let _ = writeln!(text, "{:<26} {}{default}", field.name, field.help);
    }
    text
}
