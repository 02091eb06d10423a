//! `tidegate export --listen`: metrics over HTTP.
//!
//! Prometheus wants values of the moment at which it asks, so each request makes a look; but requests that come within
//! a second, or within a hundred times the processor time of a look, get the same one, so that no client can make this
//! process busy. Looks are made by one thread. A folder on another machine may take long to answer: then requests are
//! answered by 503 after a while, and the next ones as soon as the look is over.

use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::accept::choose;
use super::exporter::Exporter;
use super::http::{Answer, Request, serve};
use super::text::{Format, render};
use crate::failure::Failure;

/// For how long a look is given to all, at least.
const KEPT_LEAST: Duration = Duration::from_secs(1);
/// How many times its processor time it is given to all.
const KEPT_COSTS: u32 = 100;
/// How long a request waits for a look. Prometheus itself waits ten seconds.
const LOOK_TIME: Duration = Duration::from_secs(8);

/// A look, in both formats.
struct Looked {
    texts: [Arc<str>; 2],
    at: Instant,
    kept: Duration,
}

/// Shared by requests and the thread that looks.
#[derive(Default)]
struct State {
    /// Whether a request waits for a look.
    is_wanted: bool,
    last: Option<Looked>,
}

#[derive(Default)]
struct Looks {
    state: Mutex<State>,
    changed: Condvar,
}

/// Serves metrics at a port, in threads of its own.
///
/// # Errors
/// If no thread can be made.
pub fn start(listener: TcpListener, exporter: Exporter) -> Result<(), Failure> {
    let refused = |error| Failure::own(format!("cannot make a thread: {error}"));
    let looks = Arc::new(Looks::default());
    let of_thread = Arc::clone(&looks);
    thread::Builder::new().name("looks".into()).spawn(move || of_thread.run(exporter)).map_err(refused)?;
    let answer = move |request: &Request| answer(&looks, request);
    thread::Builder::new().name("http".into()).spawn(move || serve(&listener, answer)).map_err(refused)?;
    Ok(())
}

fn answer(looks: &Looks, request: &Request) -> Answer {
    match request.path.as_str() {
        "/metrics" => {
            let format = choose(&request.accept);
            match looks.text(format) {
                Some(body) => Answer { status: "200 OK", media_type: format.media_type(), body },
                None => Answer::line("503 Service Unavailable", "the counter pages of some job take long to be read"),
            }
        }
        "/" => Answer {
            status: "200 OK",
            media_type: "text/html; charset=utf-8",
            body: "<!doctype html><title>tidegate export</title><a href=\"/metrics\">Metrics</a> of MPI jobs over Tidegate\n".into(),
        },
        _ => Answer::line("404 Not Found", "metrics are at /metrics"),
    }
}

impl Looks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whenever a request wants it. The first look is made at once, so that the second can say who waits.
    fn run(&self, mut exporter: Exporter) {
        exporter.look();
        loop {
            let is_idle = |state: &mut State| !state.is_wanted;
            drop(self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner));
            let exported = exporter.look();
            let texts =
                [Format::Prometheus, Format::OpenMetrics].map(|format| render(&exported.families, format).into());
            let mut state = self.lock();
            let kept = KEPT_LEAST.max(exported.cost * KEPT_COSTS);
            state.last = Some(Looked { texts, at: Instant::now(), kept });
            state.is_wanted = false;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The text of a look that is new enough; `None`: none was made in time.
    fn text(&self, format: Format) -> Option<Arc<str>> {
        let place = usize::from(format == Format::OpenMetrics);
        let is_new = |state: &State| state.last.as_ref().is_some_and(|last| last.at.elapsed() < last.kept);
        let mut state = self.lock();
        if !is_new(&state) {
            state.is_wanted = true;
            self.changed.notify_all();
            let wait = self.changed.wait_timeout_while(state, LOOK_TIME, |state| state.is_wanted);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            if state.is_wanted {
                return None;
            }
        }
        state.last.as_ref().map(|last| Arc::clone(&last.texts[place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_within_a_second_get_the_same_look_in_the_format_that_they_want() {
        let looks = Arc::new(Looks::default());
        let of_thread = Arc::clone(&looks);
        thread::spawn(move || of_thread.run(Exporter::new(false)));
        let ask = |path: &str, accept: &str| answer(&looks, &Request { path: path.into(), accept: accept.into() });
        let [plain, again] = [(); 2].map(|()| ask("/metrics", ""));
        assert!(plain.body.contains("# TYPE tidegate_jobs gauge\n") && !plain.body.contains("# EOF"), "{}", plain.body);
        assert!(plain.media_type.contains("0.0.4"));
        let is_late = looks.lock().last.as_ref().unwrap().at.elapsed() >= KEPT_LEAST;
        assert!(is_late || Arc::ptr_eq(&plain.body, &again.body));
        let open = ask("/metrics", "application/openmetrics-text");
        assert!(open.body.ends_with("# EOF\n") && open.media_type.starts_with("application/openmetrics-text"));
        assert!(ask("/", "").body.contains("/metrics") && ask("/other", "").status.starts_with("404"));
    }
}
