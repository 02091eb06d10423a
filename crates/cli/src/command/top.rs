//! `tidegate top`.

use std::time::Duration;

use crate::arguments::TopArguments;
use crate::failure::Failure;
use crate::top::screen::terminal;
use crate::top::watch::{Wanted, Watcher, twice};
use crate::top::{json, text};
use crate::{jobs, process};

/// From look to look on the screen.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between the two looks of `--once`.
const ONCE: Duration = Duration::from_millis(500);

/// Shows jobs, or prints them once.
pub fn top(arguments: &TopArguments) -> Result<u8, Failure> {
    let own_slurm = std::env::var("SLURM_JOB_ID").ok();
    let wanted = Wanted { words: arguments.jobs.clone(), slurm: arguments.slurm.clone(), own_slurm };
    let missing = missing(arguments.slurm.as_deref());
    let mut watcher = Watcher::new(wanted)?;
    if !arguments.once {
        terminal::show(watcher, arguments.interval.unwrap_or(INTERVAL), missing)?;
        return Ok(0);
    }
    let update = twice(&mut watcher, arguments.interval.unwrap_or(ONCE));
    if arguments.json {
        super::print_json(&json::jobs(&update.views, update.cost))?;
    } else if update.views.is_empty() {
        super::print(format!("{missing}\n").as_bytes())?;
    } else {
        super::print(text::jobs(&update.views).as_bytes())?;
    }
    Ok(0)
}

/// That there is no job to show, and what to do.
fn missing(slurm: Option<&str>) -> String {
    let jobs = match (slurm, jobs::sees_all()) {
        (Some(slurm), _) => format!("no job with counter pages that is job {slurm} of Slurm"),
        (None, true) => "no job".to_owned(),
        (None, false) => "no job of this user".to_owned(),
    };
    format!(
        "{jobs} runs on {}: one is seen as soon as `tidegate run` starts it, or FI_TIDEGATE_STATS_DIR tells its \
         processes on this host where to write counter pages",
        process::host_name()
    )
}
