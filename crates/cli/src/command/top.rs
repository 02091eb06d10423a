//! `tidegate top`.

use std::time::Duration;

use crate::arguments::TopArguments;
use crate::failure::Failure;
use crate::process;
use crate::top::screen::terminal;
use crate::top::watch::{Watcher, twice};
use crate::top::{json, text};

/// From look to look on the screen.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between the two looks of `--once`.
const ONCE: Duration = Duration::from_millis(500);

/// Shows jobs, or prints them once.
pub fn top(arguments: &TopArguments) -> Result<u8, Failure> {
    let mut watcher = Watcher::new(&arguments.jobs)?;
    if !arguments.once {
        terminal::show(watcher, arguments.interval.unwrap_or(INTERVAL))?;
        return Ok(0);
    }
    let update = twice(&mut watcher, arguments.interval.unwrap_or(ONCE));
    if arguments.json {
        super::print_json(&json::jobs(&update.views, update.cost))?;
    } else if update.views.is_empty() {
        super::print(format!("no job of this user runs on {}\n", process::host_name()).as_bytes())?;
    } else {
        super::print(text::jobs(&update.views).as_bytes())?;
    }
    Ok(0)
}
