//! Jobs as Slurm numbers them.
//!
//! Slurm tells each process of a job its numbers by the environment, and the provider has written them into the page of
//! each rank that `srun` has started, as that which tells its launch from others. Both are read here, so no page needs
//! a word of its own for them.

/// The variables by which Slurm tells a process its job.
pub const VARIABLES: &[&str] = &["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"];

/// The job of Slurm that a process belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmJob {
    /// Its number: `SLURM_JOB_ID`.
    pub id: String,
    /// The number of the step in it, where that is known.
    step: Option<String>,
    /// Of an array: the array's number and the task's, `1234_7`.
    task: Option<String>,
}

impl SlurmJob {
    /// As the environment of a process says.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| variable(name).filter(|value| is_number(value));
        let task = number("SLURM_ARRAY_JOB_ID").zip(number("SLURM_ARRAY_TASK_ID"));
        Some(SlurmJob {
            id: number("SLURM_JOB_ID")?,
            step: number("SLURM_STEP_ID"),
            task: task.map(|(array, task)| format!("{array}_{task}")),
        })
    }

    /// As a page names the launch of its rank: `1234.0`, or with PMIx `slurm.pmix.1234.0`.
    pub fn from_launch(launch: &str) -> Option<Self> {
        let (id, step) = launch.strip_prefix("slurm.pmix.").unwrap_or(launch).split_once('.')?;
        let are_numbers = is_number(id) && is_number(step);
        are_numbers.then(|| SlurmJob { id: id.to_owned(), step: Some(step.to_owned()), task: None })
    }

    /// The same with the task of an array, if another way to know the job tells it.
    pub fn or_task_of(self, other: SlurmJob) -> Self {
        let task = self.task.or(other.task.filter(|_| other.id == self.id));
        SlurmJob { task, ..self }
    }

    /// Whether a user means this job by a word: its number, that of a step in it, or a task of an array, as `squeue`
    /// shows them.
    pub fn is_meant(&self, word: &str) -> bool {
        let step = self.step.as_ref().map(|step| format!("{}.{step}", self.id));
        *word == self.id || Some(word) == step.as_deref() || Some(word) == self.task.as_deref()
    }
}

/// Whether a text is a number as Slurm writes them.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A job of Slurm as the command line names it, checked.
pub fn word(text: &str) -> Result<String, String> {
    let is_one = |separator| text.split_once(separator).is_some_and(|(one, other)| is_number(one) && is_number(other));
    match is_number(text) || is_one('.') || is_one('_') {
        true => Ok(text.to_owned()),
        false => Err("not a job of Slurm: its number as squeue shows it, 1234, a step of it, 1234.0, or a task of an \
                      array, 1234_7"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<SlurmJob> {
        SlurmJob::from_variables(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn a_job_is_meant_by_its_number_its_step_or_its_task() {
        let job = of(&[
            ("SLURM_JOB_ID", "1234"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_ARRAY_JOB_ID", "1230"),
            ("SLURM_ARRAY_TASK_ID", "4"),
        ]);
        let job = job.unwrap();
        assert!(["1234", "1234.0", "1230_4"].iter().all(|word| job.is_meant(word)));
        assert!(["123", "1234.1", "1230", "1230_5", ""].iter().all(|word| !job.is_meant(word)));
        assert_eq!(of(&[("SLURM_STEP_ID", "0")]), None);
        assert_eq!(of(&[("SLURM_JOB_ID", "a\u{1b}[2J")]), None);
    }

    #[test]
    fn a_page_tells_the_job_that_srun_has_started() {
        for launch in ["1234.0", "slurm.pmix.1234.0"] {
            assert!(SlurmJob::from_launch(launch).is_some_and(|job| job.id == "1234" && job.is_meant("1234.0")));
        }
        for launch in ["parent 7", "1234", "prterun-a-1@1", "", ".", "1.2.3"] {
            assert_eq!(SlurmJob::from_launch(launch), None, "{launch}");
        }
    }

    #[test]
    fn words_that_are_none_are_refused() {
        assert!(["1234", "1234.0", "1234_7"].iter().all(|text| word(text).is_ok()));
        assert!(["", "x", "1234.", "1234_x", "-1"].iter().all(|text| word(text).is_err()));
    }
}
