//! `tidegate counters`.

use std::path::Path;
use std::time::SystemTime;

use tidegate_link::{EndpointStats, stats};

use crate::arguments::CountersArguments;
use crate::failure::Failure;
use crate::report::launches;
use crate::report::table::{self, Form};
use crate::report::width::Width;
use crate::report::{Job, Launch, json};

/// Lists the counters, or reports on the pages in a folder.
pub fn counters(arguments: &CountersArguments) -> Result<u8, Failure> {
    match &arguments.dir {
        Some(folder) => report(folder, arguments)?,
        None if arguments.json => super::print_json(&json::counters())?,
        None => super::print(table::counters().as_bytes())?,
    }
    Ok(0)
}

fn report(folder: &Path, arguments: &CountersArguments) -> Result<(), Failure> {
    let refused = |error| Failure::usage(format!("the counter pages in {} cannot be read: {error}", folder.display()));
    let mut pages = stats::read_dir(folder).map_err(refused)?;
    if pages.is_empty() {
        let text = "holds no counter pages: FI_TIDEGATE_STATS_DIR has to name it where the program is started";
        return Err(Failure::usage(format!("{} {text}", folder.display())));
    }
    let running = pages.iter_mut().filter(|page| is_running(page)).map(last_until_now).count();
    let all = Job::new(&pages);
    let launches: Vec<Launch> = launches::split(pages).iter().map(|pages| Launch::of(pages, None)).collect();
    if arguments.json {
        return super::print_json(&json::pages(folder, &all, &launches));
    }
    let form = Form { mpi: None, wall_time: None, ranks: arguments.ranks, width: Width::of(std::io::stdout()) };
    let mut text = table::render_all(&launches, &form);
    if running > 0 {
        let noun = if running == 1 { "endpoint is" } else { "endpoints are" };
        text += &format!("tidegate: {running} {noun} of processes that still run: this is as of now\n");
    }
    super::print(text.as_bytes())
}

/// Whether the process of a page runs: on this host, as far as process ids tell.
fn is_running(page: &EndpointStats) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    !page.ended && page.host == own.trim_end() && Path::new("/proc").join(page.pid.to_string()).exists()
}

fn last_until_now(page: &mut EndpointStats) {
    page.lasts_until(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
}
