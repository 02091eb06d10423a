//! [`Part`]: which part of a sweep's runs this process does.
//!
//! Tidegate has no scheduler of jobs: a launcher that is there already starts the same command several times, and each
//! process finds out which of them it is. `--part K/N` says so; else the launcher's environment does:
//!
//! | started by | variables |
//! |---|---|
//! | `mpiexec` of MPICH, Intel MPI, Cray; Open MPI; MVAPICH; Flux | a rank and a size, table `LAUNCHERS` |
//! | `srun` | `SLURM_PROCID` of `SLURM_STEP_NUM_TASKS` |
//! | an array of Slurm, Grid Engine, LSF | an index and the range of indices, table `ARRAYS` |
//! | an array of PBS | an index alone; `--part` has to say of how many |
//!
//! * Slurm sets `SLURM_PROCID=0` and `SLURM_NTASKS=16` in the batch script too, where the command runs once. Only in a
//!   step that `srun` has started there is `SLURM_STEP_NUM_TASKS`, so that is what counts.
//! * An `mpiexec` inside a Slurm job may start its daemons by `srun`, so the ranks inherit the variables of a step that
//!   is not theirs. So the launchers of MPIs count before `srun`.
//! * The tasks of an array may start one after the other, and each may use a launcher: then there are parts of parts.
//! * A program of an MPI job may start this command for purposes of its own. So the environment divides nothing where
//!   no folder is named that the parts could share.
//!
//! Tasks of one launcher run at the same time. So those that have done their own runs help the others, and the first
//! one waits for all and prints what came out. Parts that `--part` names, and tasks of arrays, do their own runs alone.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::thread;

use tidegate_link::log::print_line;

use crate::failure::Failure;

/// The K and N of `--part K/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenPart {
    number: u64,
    of: u64,
}

/// Reads the value of `--part`.
///
/// # Errors
/// If that is no part of a whole.
pub fn given(text: &str) -> Result<GivenPart, String> {
    let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    let part = numbers.filter(|(number, of)| (1..=PARTS_MOST).contains(of) && (1..=*of).contains(number));
    let (number, of) =
        part.ok_or_else(|| format!("must be K/N with K from 1 to N, such as 3/16; N at most {PARTS_MOST}"))?;
    Ok(GivenPart { number, of })
}

/// More parts than that are a mistake.
const PARTS_MOST: u64 = 1_000_000;

/// Which part of the runs of a sweep this process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0 on.
    index: u64,
    count: u64,
    /// The option or the variables that say so.
    origin: String,
    /// All parts run at the same time.
    are_together: bool,
    /// How many runs this process should do at the same time, where its launcher leaves it only some processors.
    jobs: Option<usize>,
}

/// Variables of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Part {
    /// Of this process. `has_folder`: the user has named a folder where runs are kept.
    ///
    /// # Errors
    /// If a part has no folder that it shares with others, or variables say what cannot be.
    pub fn find(given: Option<GivenPart>, has_folder: bool) -> Result<Self, Failure> {
        let variables = |name: &str| env::var_os(name);
        match given {
            Some(GivenPart { number, of }) => {
                if of > 1 && !has_folder {
                    return Err(Failure::usage(
                        "--part needs --out DIR: a folder that all parts share, where each keeps what its runs gave",
                    ));
                }
                Ok(Part { index: number - 1, count: of, origin: "--part".to_owned(), ..Part::whole() })
            }
            None if has_folder => Part::of_environment(&variables).map_err(Failure::usage),
            None => {
                let here = Part::of_environment(&variables).ok().filter(|part| part.are_together && part.is_first());
                if let Some(Part { count, origin, .. }) = here {
                    print_line(&format!(
                        "{count} tasks run ({origin}), and each of them shows all runs: with --out DIR they divide the runs"
                    ));
                }
                Ok(Part::whole())
            }
        }
    }

    /// All runs.
    #[must_use]
    pub fn whole() -> Self {
        Part { index: 0, count: 1, origin: String::new(), are_together: false, jobs: None }
    }

    fn of_environment(variables: Variables<'_>) -> Result<Self, String> {
        let task = launched(variables)?;
        let array = in_array(variables)?;
        let jobs = task.as_ref().filter(|task| task.count > 1).map(|_| share_of_processors(variables));
        let are_together = array.is_none() && task.is_some();
        let (array, task) = (array.unwrap_or_default(), task.unwrap_or_default());
        let origin = [&array.origin, &task.origin].map(String::as_str).into_iter().filter(|origin| !origin.is_empty());
        let origin = origin.collect::<Vec<_>>().join(", ");
        let (index, count) = (array.index * task.count + task.index, array.count * task.count);
        Ok(if count == 1 { Part::whole() } else { Part { index, count, origin, are_together, jobs } })
    }

    /// Whether it is all runs.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.count == 1
    }

    /// Whether it is the first of them: it says what one process is enough to say.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.index == 0
    }

    /// Whether the run or search of this number, from 0 on, belongs to it.
    #[must_use]
    pub fn has(&self, number: usize) -> bool {
        number as u64 % self.count == self.index
    }

    /// Whether it does runs of others once its own are done: all parts run at the same time.
    #[must_use]
    pub fn helps(&self) -> bool {
        self.are_together
    }

    /// Whether it waits until all runs are done, by whichever part, and says what came out.
    #[must_use]
    pub fn waits_for_all(&self) -> bool {
        self.is_whole() || (self.are_together && self.is_first())
    }

    /// How many runs go on at the same time: as many as the user said, else as this part has processors.
    #[must_use]
    pub fn jobs(&self, given: Option<u64>) -> usize {
        let all = || thread::available_parallelism().map_or(1, usize::from);
        given.map_or_else(|| self.jobs.unwrap_or_else(all), |jobs| jobs as usize)
    }

    /// As a message names it: `part 2 of 4 (PMI_RANK of PMI_SIZE)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("part {} of {} ({})", self.index + 1, self.count, self.origin)
    }

    /// How the user gets what all parts have found together.
    #[must_use]
    pub fn remedy(&self) -> String {
        let how = match self.origin.as_str() {
            "--part" => "the same command without --part".to_owned(),
            _ => "the same command with --part 1/1".to_owned(),
        };
        format!("{how} prints what came out, and does what is missing")
    }
}

/// One of several tasks.
#[derive(Clone, Debug)]
struct Task {
    index: u64,
    count: u64,
    origin: String,
}

impl Default for Task {
    fn default() -> Self {
        Task { index: 0, count: 1, origin: String::new() }
    }
}

/// Rank and size of launchers of MPIs, and of Flux.
const LAUNCHERS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
];

/// Rank and size of `srun`.
const STEP: (&str, &str) = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS");

/// Those of PMIx: there is no size.
const PMIX: &str = "PMIX_RANK";

/// A variable's whole number.
fn number(variables: Variables<'_>, name: &str) -> Result<Option<u64>, String> {
    let Some(text) = variables(name) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.trim().parse().ok());
    let number = number.filter(|number| *number <= PARTS_MOST);
    number.map(Some).ok_or_else(|| {
        format!("{name} is {}, and should be a whole number up to {PARTS_MOST}: {REMEDY}", text.display())
    })
}

/// The remedy wherever the environment makes no sense.
const REMEDY: &str = "--part K/N says which part this is, and --part 1/1 that it does all runs";

/// The task of a rank and a size. `None`: neither is there.
fn ranked(variables: Variables<'_>, (rank, size): (&str, &str)) -> Result<Option<Task>, String> {
    match (number(variables, rank)?, number(variables, size)?) {
        (None, None) => Ok(None),
        (Some(index), Some(count)) if index < count => {
            Ok(Some(Task { index, count, origin: format!("{rank} of {size}") }))
        }
        (Some(index), Some(count)) => Err(format!("{rank} is {index}, and {size} is {count}: {REMEDY}")),
        (Some(_), None) => Err(format!("{rank} is set, and {size} is not: {REMEDY}")),
        (None, Some(_)) => Err(format!("{size} is set, and {rank} is not: {REMEDY}")),
    }
}

/// Which task of a launcher this is, whose tasks all run at the same time.
fn launched(variables: Variables<'_>) -> Result<Option<Task>, String> {
    let mut found: Option<Task> = None;
    for pair in LAUNCHERS {
        let Some(task) = ranked(variables, pair)? else { continue };
        match &found {
            Some(other) if (other.index, other.count) != (task.index, task.count) => {
                let say = |task: &Task| format!("{} says task {} of {}", task.origin, task.index, task.count);
                return Err(format!("{}, and {}: {REMEDY}", say(other), say(&task)));
            }
            Some(_) => {}
            None => found = Some(task),
        }
    }
    if found.is_some() {
        return Ok(found);
    }
    // In a batch script there is a rank, 0, and no step.
    if variables(STEP.1).is_some() {
        return ranked(variables, STEP);
    }
    match variables(PMIX) {
        Some(_) => Err(format!("{PMIX} is set, and nothing says of how many tasks: {REMEDY}")),
        None => Ok(None),
    }
}

/// An array's variables: the index, the first, the last, the step between two; and values of the index that mean that
/// there is no array.
struct Array {
    index: &'static str,
    first: Option<&'static str>,
    last: &'static str,
    step: &'static str,
    /// How many there are, where they may leave gaps.
    count: Option<&'static str>,
    is_none: &'static str,
}

const ARRAYS: [Array; 3] = [
    Array {
        index: "SLURM_ARRAY_TASK_ID",
        first: Some("SLURM_ARRAY_TASK_MIN"),
        last: "SLURM_ARRAY_TASK_MAX",
        step: "SLURM_ARRAY_TASK_STEP",
        count: Some("SLURM_ARRAY_TASK_COUNT"),
        is_none: "",
    },
    Array {
        index: "SGE_TASK_ID",
        first: Some("SGE_TASK_FIRST"),
        last: "SGE_TASK_LAST",
        step: "SGE_TASK_STEPSIZE",
        count: None,
        is_none: "undefined",
    },
    Array {
        index: "LSB_JOBINDEX",
        first: None,
        last: "LSB_JOBINDEX_END",
        step: "LSB_JOBINDEX_STEP",
        count: None,
        is_none: "0",
    },
];

/// Indices of arrays whose size no variable says: PBS Professional and OpenPBS, Torque.
const ARRAYS_WITHOUT_SIZE: [&str; 2] = ["PBS_ARRAY_INDEX", "PBS_ARRAYID"];

/// Which task of an array this is, whose tasks may run one after the other.
fn in_array(variables: Variables<'_>) -> Result<Option<Task>, String> {
    for array in &ARRAYS {
        let is_there = variables(array.index).is_some_and(|value| value != array.is_none && !value.is_empty());
        if is_there {
            return array.task(variables).map(Some);
        }
    }
    match ARRAYS_WITHOUT_SIZE.iter().find(|name| variables(name).is_some()) {
        Some(name) => Err(format!(
            "{name} is set, and PBS does not say how many tasks the array has: --part ${name}/N says so, if they count \
             from 1 on, and --part 1/1 that this one does all runs"
        )),
        None => Ok(None),
    }
}

impl Array {
    fn task(&self, variables: Variables<'_>) -> Result<Task, String> {
        let Array { index: name, .. } = self;
        let required = |name: &str| number(variables, name)?.ok_or_else(|| format!("{name} is not set: {REMEDY}"));
        let index = required(name)?;
        let first = self.first.map_or(Ok(1), required)?;
        let last = required(self.last)?;
        let step = number(variables, self.step)?.unwrap_or(1).max(1);
        let count = last.saturating_sub(first) / step + 1;
        let has_gaps = match self.count.map(|count| number(variables, count)).transpose()?.flatten() {
            Some(told) => told != count,
            None => false,
        };
        let is_in = Range { start: first, end: last + 1 }.contains(&index) && (index - first).is_multiple_of(step);
        if has_gaps || !is_in {
            return Err(format!(
                "{name} is {index}, and the indices of the array are not evenly spaced from {first} to {last}: {REMEDY}"
            ));
        }
        Ok(Task { index: (index - first) / step, count, origin: (*name).to_owned() })
    }
}

/// How many tasks of the same launcher run on this host.
const ON_THIS_HOST: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"];

/// How many processors one of several tasks on this host has to itself.
fn share_of_processors(variables: Variables<'_>) -> usize {
    let available = thread::available_parallelism().map_or(1, usize::from);
    let number = |name: &str| number(variables, name).ok().flatten().map(|number| number.max(1) as usize);
    if let Some(tasks) = ON_THIS_HOST.iter().find_map(|name| number(name)) {
        // A task that its launcher has bound to processors of its own has those. Tasks that are bound to a socket, or
        // whose job has a part of the host, share them.
        let are_own = processors_online().is_some_and(|online| available.saturating_mul(tasks) <= online);
        return if are_own { available } else { (available / tasks).max(1) };
    }
    // Slurm gives one to each task unless it is told.
    let of_step = number("SLURM_CPUS_PER_TASK").or_else(|| number(STEP.1).map(|_| 1));
    of_step.map_or(available, |each| each.min(available))
}

/// Processors of this host.
fn processors_online() -> Option<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<usize>().ok()? - first.parse::<usize>().ok()? + 1)
    };
    text.trim().split(',').map(range).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `index+1/count`, with `!` where all parts run at the same time; or the text of what is wrong.
    fn found(environment: &str) -> String {
        let pairs: Vec<(&str, &str)> = environment.split(' ').filter_map(|word| word.split_once('=')).collect();
        let variables = |name: &str| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value));
        Part::of_environment(&variables).map_or_else(
            |error| error,
            |part| format!("{}/{}{}", part.index + 1, part.count, if part.are_together { "!" } else { "" }),
        )
    }

    #[test]
    fn environments_say_which_part_this_is() {
        for (environment, part) in [
            ("", "1/1"),
            ("PMI_RANK=2 PMI_SIZE=4 MPI_LOCALNRANKS=4", "3/4!"),
            ("PMI_RANK=0 PMI_SIZE=1", "1/1"),
            ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1", "2/2!"),
            ("MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", "2/2!"),
            ("FLUX_TASK_RANK=7 FLUX_JOB_SIZE=8", "8/8!"),
            // A step of srun, with PMI-2 and with PMIx.
            ("SLURM_PROCID=15 SLURM_NTASKS=16 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=16", "16/16!"),
            ("SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=16 PMI_RANK=3 PMI_SIZE=16", "4/16!"),
            ("SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=16 PMIX_RANK=3", "4/16!"),
            // The batch script, and the shell of salloc in a step of its own.
            ("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=16", "1/1"),
            ("SLURM_PROCID=0 SLURM_NTASKS=16 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1", "1/1"),
            // mpiexec has started a daemon on each of two hosts by srun, and each daemon four ranks.
            ("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 PMI_RANK=6 PMI_SIZE=8", "7/8!"),
            ("SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=15 SLURM_ARRAY_TASK_COUNT=16", "1/16"),
            (
                "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=2 \
                 SLURM_ARRAY_TASK_COUNT=5 SLURM_PROCID=0 SLURM_NTASKS=1",
                "4/5",
            ),
            // Each task of an array starts four by srun.
            (
                "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_COUNT=2 \
                 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4",
                "6/8",
            ),
            ("SGE_TASK_ID=undefined SGE_TASK_FIRST=undefined SGE_TASK_LAST=undefined", "1/1"),
            ("SGE_TASK_ID=5 SGE_TASK_FIRST=1 SGE_TASK_LAST=7 SGE_TASK_STEPSIZE=2", "3/4"),
            ("LSB_JOBINDEX=0 LSB_JOBINDEX_END=0 LSB_JOBINDEX_STEP=0", "1/1"),
            ("LSB_JOBINDEX=4 LSB_JOBINDEX_END=4 LSB_JOBINDEX_STEP=1", "4/4"),
        ] {
            assert_eq!(found(environment), part, "{environment}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (environment, begin) in [
            ("PMI_RANK=4 PMI_SIZE=4", "PMI_RANK is 4, and PMI_SIZE is 4: --part K/N says"),
            ("PMI_RANK=1", "PMI_RANK is set, and PMI_SIZE is not: "),
            ("OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_SIZE is set, and OMPI_COMM_WORLD_RANK is not: "),
            ("PMI_RANK=-1 PMI_SIZE=4", "PMI_RANK is -1, and should be a whole number up to 1000000: "),
            ("PMIX_RANK=1", "PMIX_RANK is set, and nothing says of how many tasks: "),
            (
                "PMI_RANK=1 PMI_SIZE=4 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2",
                "OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE says task 0 of 2, and PMI_RANK of PMI_SIZE says task 1 of 4: ",
            ),
            (
                "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_COUNT=3",
                "SLURM_ARRAY_TASK_ID is 3, and the indices of the array are not evenly spaced from 1 to 7: ",
            ),
            ("PBS_ARRAY_INDEX=3", "PBS_ARRAY_INDEX is set, and PBS does not say how many tasks the array has: "),
            ("PBS_ARRAYID=3", "PBS_ARRAYID is set, and PBS does not say how many tasks the array has: "),
        ] {
            assert!(found(environment).starts_with(begin), "{environment}: {}", found(environment));
        }
    }

    #[test]
    fn parts_are_numbered_from_one_and_are_parts_of_a_whole() {
        assert_eq!(given("3/16"), Ok(GivenPart { number: 3, of: 16 }));
        assert!(
            ["", "3", "0/4", "5/4", "1/0", "a/b", "1/2/3", "1/1000001", "-1/4"].iter().all(|it| given(it).is_err())
        );
        let part = |text| Part::find(Some(given(text).unwrap()), true).unwrap();
        let own: Vec<usize> = (0..10).filter(|run| part("2/4").has(*run)).collect();
        assert_eq!(own, [1, 5, 9]);
        assert!(part("1/1").is_whole() && part("1/1").waits_for_all() && !part("1/2").waits_for_all());
        let error = Part::find(Some(given("1/2").unwrap()), false).unwrap_err();
        assert!(error.to_string().starts_with("--part needs --out DIR"), "{error}");
    }

    #[test]
    fn a_task_uses_its_share_of_the_processors() {
        let share = |environment: &str| {
            let pairs: Vec<(&str, &str)> = environment.split(' ').filter_map(|word| word.split_once('=')).collect();
            let find = |name: &str| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value));
            share_of_processors(&find)
        };
        assert_eq!(share("SLURM_STEP_NUM_TASKS=4"), 1);
        assert_eq!(share("MPI_LOCALNRANKS=1000000"), 1);
        assert_eq!(share("MPI_LOCALNRANKS=1"), share(""));
        assert!(processors_online().is_some_and(|online| online >= share("")));
    }
}
