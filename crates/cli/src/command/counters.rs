//! `tidegate counters`.

use std::path::Path;

use tidegate_link::log::print_line;
use tidegate_link::{EndpointStats, since_epoch, stats};

use crate::arguments::CountersArguments;
use crate::failure::Failure;
use crate::process::Here;
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
    let found = stats::read_dir(folder).map_err(refused)?;
    let (gap, mut pages) = (found.gap(), found.read);
    match gap {
        Some(gap) if pages.is_empty() => return Err(Failure::usage(gap)),
        Some(gap) => print_line(&gap),
        None if pages.is_empty() => {
            let text = "holds no counter pages: FI_TIDEGATE_STATS_DIR has to name it where the program is started";
            return Err(Failure::usage(format!("{} {text}", folder.display())));
        }
        None => {}
    }
    let here = Here::as_of_now();
    let is_running =
        |page: &EndpointStats| !page.ended && here.exists(&page.host, page.pid, Some(page.started)) == Some(true);
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

fn last_until_now(page: &mut EndpointStats) {
    page.lasts_until(since_epoch());
}
