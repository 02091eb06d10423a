//! `tidegate export`.

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidegate_link::log::print_line;

use crate::arguments::{ExportArguments, Listen};
use crate::child;
use crate::export::exporter::Exporter;
use crate::export::text::render;
use crate::export::{file, serve};
use crate::failure::Failure;

/// Exports jobs: prints, writes a file once or again and again, or serves them.
pub fn export(arguments: &ExportArguments) -> Result<u8, Failure> {
    let mut exporter = Exporter::new(arguments.ranks);
    if let Some(listen) = &arguments.listen {
        listen_at(listen, exporter)?;
        return Ok(0);
    }
    let format = arguments.format.into();
    let output = arguments.output.as_deref().filter(|output| !super::is_standard_output(output));
    match (output.map(file::target).transpose()?, arguments.every) {
        (Some(path), Some(every)) => file::keep(&path, &mut exporter, every, format, &asked_to_end()?)?,
        (None, Some(_)) => return Err(Failure::usage("--every writes a file again and again: name one")),
        (path, None) => {
            exporter.look();
            thread::sleep(file::FIRST_INTERVAL);
            let text = render(&exporter.look().families, format);
            match path {
                Some(path) => file::write(&path, &text)?,
                None => super::print(text.as_bytes())?,
            }
        }
    }
    Ok(0)
}

fn listen_at(listen: &Listen, exporter: Exporter) -> Result<(), Failure> {
    let failed = |error| Failure::own(format!("cannot listen at {listen}: {error}"));
    let listener = TcpListener::bind((listen.host.as_str(), listen.port)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let end = asked_to_end()?;
    serve::start(listener, exporter)?;
    print_line(&format!("metrics are at http://{address}/metrics"));
    // It ends when the sender goes, too.
    let _ = end.recv();
    Ok(())
}

/// Gets something when this process is asked to end. Signals that were ignored when it started (`nohup`) stay ignored.
fn asked_to_end() -> Result<Receiver<()>, Failure> {
    let caught = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !child::is_ignored(*signal));
    let failed = |error| Failure::own(format!("cannot catch signals: {error}"));
    let mut signals = Signals::new(caught).map_err(failed)?;
    let (tell, end) = channel();
    let work = move || {
        for _ in signals.forever() {
            if tell.send(()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(work).map_err(failed)?;
    Ok(end)
}
