//! The loop that reads keys, takes looks, and draws when something has changed.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{Action, Screen};
use crate::failure::Failure;
use crate::top::watch::{Update, Watcher, start};

/// How often to see whether a look has come in.
const TICK: Duration = Duration::from_millis(50);

/// Shows jobs until the user has seen enough. `missing`: what to say where there is none.
pub fn show(watcher: Watcher, interval: Duration, missing: String) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "`tidegate top` needs a terminal, and standard input or output is none: `tidegate top --once` prints one look",
        ));
    }
    let failed = |error: io::Error| Failure::own(format!("the terminal cannot be used: {error}"));
    let ended = Arc::new(AtomicBool::new(false));
    listen_to_signals(&ended).map_err(failed)?;
    let (ask, told) =
        start(watcher, interval).map_err(|error| Failure::own(format!("no thread for the looks: {error}")))?;
    let mut screen = Screen::new(interval, missing, &|name| std::env::var(name).ok());
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let done = run(&mut terminal, &mut screen, &ask, &told, &ended);
    ratatui::restore();
    match done {
        // A terminal that has gone away is no failure of ours.
        Err(_) if ended.load(Ordering::Relaxed) => Ok(()),
        done => done.map_err(failed),
    }
}

/// Exit codes of a program that a signal ends begin above this.
const OF_SIGNALS: i32 = 128;

/// Signals set `ended`, so that the terminal is given back in order. A terminal that is gone is not: reading from it
/// never ends (crossterm reads again where there is nothing left to read), so a hang-up ends the process there and
/// then, and so does a second signal.
fn listen_to_signals(ended: &Arc<AtomicBool>) -> io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGHUP, OF_SIGNALS + SIGHUP, always)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, OF_SIGNALS + signal, Arc::clone(ended))?;
        signal_hook::flag::register(signal, Arc::clone(ended))?;
    }
    Ok(())
}

fn run(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    ask: &Sender<()>,
    told: &Receiver<Update>,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut is_stale = true;
    while !ended.load(Ordering::Relaxed) {
        if is_stale {
            terminal.draw(|frame| screen.draw(frame))?;
        }
        is_stale = event::poll(TICK)?;
        // All that has come in, so that keys which are held down do not fall behind.
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match screen.handle_key(key) {
                    Action::None => {}
                    // If the thread is gone, the loop below notices.
                    Action::Look => _ = ask.send(()),
                    Action::Quit => return Ok(()),
                },
                _ => {}
            }
        }
        loop {
            match told.try_recv() {
                Ok(update) => screen.update(update),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(io::Error::other("the thread that looks has ended")),
            }
            is_stale = true;
        }
    }
    Ok(())
}
