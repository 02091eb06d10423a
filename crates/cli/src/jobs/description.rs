//! [`Description`]: what a run tells of its job, in a file of the folder of its pages.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_link::files::read_left;

use super::slurm::{self, SlurmJob};
use crate::process;
use crate::recording::text;

/// The description's name in the folder.
pub(super) const FILE: &str = "job.json";
/// A longer description is none of ours. Other users write those that root reads, and each byte may become ten of
/// memory.
const BYTES_MOST: u64 = 48 << 10;
/// As many bytes and words of a command are told. (A command may have 2 MiB.)
const COMMAND_MOST: usize = 4 << 10;
const WORDS_MOST: usize = 1024;
/// What a run tells of its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// The program and its arguments.
    #[serde(deserialize_with = "text::list")]
    pub command: Vec<String>,
    /// The MPI's id, if recognised.
    #[serde(deserialize_with = "text::perhaps")]
    pub mpi: Option<String>,
    /// The host of the run.
    #[serde(deserialize_with = "text::one")]
    pub host: String,
    /// The process of the run there.
    pub pid: u32,
    /// When that process started, in ticks since its host did.
    pub pid_started_ticks: u64,
    /// When the job started, in seconds since the epoch.
    pub started_s: f64,
    /// Where the pages are.
    #[serde(with = "any_path")]
    pub pages: PathBuf,
    /// The variables that say which job of Slurm it is.
    #[serde(deserialize_with = "text::map")]
    pub slurm: BTreeMap<String, String>,
}

/// A command, cut where it is so long that reading it would cost others something.
fn as_told(command: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words = Vec::new();
    let mut left = COMMAND_MOST;
    for mut word in command {
        if word.len() > left || words.len() + 1 == WORDS_MOST {
            word.truncate((0..=left.min(word.len())).rfind(|at| word.is_char_boundary(*at)).unwrap_or(0));
            words.push(word + "…");
            break;
        }
        left -= word.len();
        words.push(word);
    }
    words
}

/// A path as text, or as its bytes where it is none.
mod any_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let bytes = || Form::Bytes(path.as_os_str().as_bytes().to_vec());
        path.to_str().map_or_else(bytes, |text| Form::Text(text.to_owned())).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(from)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl Description {
    /// What this process is about to run.
    pub fn of_this_process(command: &[OsString], mpi: Option<&str>) -> Self {
        let pid = std::process::id();
        Description {
            command: as_told(command.iter().map(|word| word.to_string_lossy().into_owned())),
            mpi: mpi.map(str::to_owned),
            host: process::host_name(),
            pid,
            pid_started_ticks: process::find(pid).map_or(0, |process| process.started_ticks),
            started_s: tidegate_link::since_epoch().as_secs_f64(),
            pages: PathBuf::new(),
            slurm: slurm::VARIABLES.iter().filter_map(|name| Some(((*name).into(), env::var(name).ok()?))).collect(),
        }
    }

    /// The job of Slurm in which its run is.
    pub fn slurm_job(&self) -> Option<SlurmJob> {
        SlurmJob::from_variables(|name| self.slurm.get(name).cloned())
    }

    /// Leaves the description in a folder. `pages`: where the pages are.
    pub fn write_in(&self, folder: &Path, pages: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(&Description { pages: pages.to_owned(), ..self.clone() })?;
        // Under another name first, so that nobody reads half of it.
        let draft = folder.join("job.json.new");
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?.write_all(&text)?;
        fs::rename(draft, folder.join(FILE))
    }

    pub(super) fn read_in(folder: &Path) -> Option<Self> {
        let told: Description = serde_json::from_slice(&read_left(&folder.join(FILE), BYTES_MOST).ok()?).ok()?;
        let slurm = told.slurm.into_iter().filter(|(name, _)| slurm::VARIABLES.contains(&name.as_str())).collect();
        Some(Description { command: as_told(told.command), slurm, ..told })
    }

    /// Whether the process of the run exists; `None` if it is on another host.
    pub fn is_running(&self) -> Option<bool> {
        let is_it = |process: process::Process| process.is_alive() && process.started_ticks == self.pid_started_ticks;
        (self.host == process::host_name()).then(|| process::find(self.pid).is_some_and(is_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_of_another_user_costs_little_memory() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let read = |command: Vec<String>, slurm: BTreeMap<String, String>| {
            let told = Description { command, slurm, pid: 7, ..Description::default() };
            fs::write(folder.join(FILE), serde_json::to_vec(&told).unwrap()).unwrap();
            Description::read_in(folder)
        };
        let told = read(vec![String::new(); 10_000], [("X".into(), "y".into())].into()).unwrap();
        assert_eq!((told.command.len(), told.slurm.len(), told.pid), (WORDS_MOST, 0, 7));
        assert!(read(vec![String::new(); BYTES_MOST as usize], BTreeMap::new()).is_none());
        // What a run tells of the longest command that there may be is read.
        let long = vec![OsString::from("\u{1}".repeat(2 << 20))];
        let told = Description::of_this_process(&long, None);
        told.write_in(folder, folder).unwrap();
        let read = Description::read_in(folder).unwrap();
        assert!(read.command[0].ends_with('…') && read.command[0].len() <= 4 * COMMAND_MOST);
    }
}
