//! `fi_close` of an endpoint. Peers are told first. Then messages that the application believes sent go on leaving, as
//! long as their receivers live and `FI_TIDEGATE_CLOSE_TIMEOUT` is not over. Messages that have not left by then are
//! lost, and the user is told so. The domain's lock is free between two looks at what is left, and all endpoints of the
//! domain make progress, because a receiver may be one of them.

use crate::addressing::reach;
use crate::border::bindings::FI_LOG_EP_CTRL;
use crate::border::caller;
use crate::border::errno::{Errno, Result};
use crate::border::log;
use crate::objects::active::Active;
use crate::objects::endpoint::Endpoint;
use crate::threads::domain_lock::Entered;
use crate::threads::waits::{CLOSE_NAP, CLOSE_POLLS_BEFORE_NAP, COMPLAINT_INTERVAL, FLUSH_MOST, FLUSH_NAP};
use core::ffi::c_int;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tidegate_message::{Closing, Counter, Link};

/// As many peers does the line name.
const NAMED_MOST: usize = 4;

/// What a look at the messages that have not left has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    /// Everything has left.
    Over,
    /// Something happened.
    Moved,
    /// Nothing happened.
    Still,
}

/// Closes an endpoint for its peers and takes it out of all lists. This takes a bounded time, whatever peers do.
pub fn close(endpoint: &Arc<Endpoint>) -> Result {
    if endpoint.domain.is_inherited() {
        // Where a thread was inside when the process forked, or may have been, nothing can be touched: all of it stays
        // until the child ends.
        endpoint.domain.enter_inherited(|entered| {
            endpoint.leave_to_parent(entered);
            Ok(0)
        });
        return Ok(0);
    }
    let begun = Instant::now();
    let timeout = endpoint.domain.settings.close_timeout;
    let mut complain_at = begun + COMPLAINT_INTERVAL;
    let mut still = 0;
    enter(endpoint, |entered| endpoint.begin_closing(entered))?;
    loop {
        let flushed = enter(endpoint, |entered| endpoint.look_at_unsent(entered))?;
        let now = Instant::now();
        if flushed == Flushed::Over || now.duration_since(begun) >= timeout {
            enter(endpoint, |entered| endpoint.say_goodbye(flushed == Flushed::Over, entered))?;
            flush(endpoint, now + FLUSH_MOST)?;
            let (active, thread) = enter(endpoint, |entered| endpoint.leave(entered))?;
            // Outside of the domain: this waits for peers that copy to or from our memory.
            drop(active);
            if let Some(await_thread) = thread {
                await_thread();
            }
            return Ok(0);
        }
        if now >= complain_at {
            complain_at += COMPLAINT_INTERVAL;
            enter(endpoint, |entered| endpoint.complain(timeout - now.duration_since(begun), entered))?;
        }
        still = if flushed == Flushed::Still { still + 1 } else { 0 };
        match still {
            0 => {}
            1..CLOSE_POLLS_BEFORE_NAP => thread::yield_now(),
            _ => thread::sleep(CLOSE_NAP),
        }
    }
}

/// Waits until the last words to peers of other hosts have been acknowledged, or their time is over.
fn flush(endpoint: &Endpoint, end: Instant) -> Result<()> {
    while !enter(endpoint, |entered| endpoint.flush(entered))? && Instant::now() < end {
        thread::sleep(FLUSH_NAP);
    }
    Ok(())
}

/// Runs `body` inside the endpoint's domain, and returns what it returns.
fn enter<T>(endpoint: &Endpoint, body: impl FnOnce(&mut Entered) -> T) -> Result<T> {
    let mut found = None;
    let outcome = endpoint.domain.enter(|entered| {
        found = Some(body(entered));
        Ok(0)
    });
    found.filter(|_| outcome == 0).ok_or(Errno(-outcome as c_int))
}

/// Peers as a line names them: the first few, and how many others there are.
fn listed(names: &[String]) -> String {
    match names {
        [] => "its peers".to_owned(),
        [name] => name.clone(),
        _ if names.len() <= NAMED_MOST => {
            format!("{} and {}", names[..names.len() - 1].join(", "), names[names.len() - 1])
        }
        _ => {
            let others = names.len() - NAMED_MOST;
            let word = if others == 1 { "other" } else { "others" };
            format!("{} and {others} {word}", names[..NAMED_MOST].join(", "))
        }
    }
}

impl Endpoint {
    /// Lets go of an endpoint that a forked child has inherited. It is its parent's: mailbox, connections and messages
    /// that wait are not touched, since the parent goes on with them.
    fn leave_to_parent(self: &Arc<Self>, entered: &mut Entered) {
        self.leave_lists(entered);
        self.state.get(entered).active = None;
    }

    fn begin_closing(&self, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        // A program of MPI may count on sends whose requests it has freed.
        match caller::mpi() {
            Some(_) => active.engine.begin_closing_after_sends(),
            None => active.engine.begin_closing(),
        }
    }

    /// Lets the whole domain make progress, and looks whether anything is left to send.
    fn look_at_unsent(&self, entered: &mut Entered) -> Flushed {
        let mut moved = self.domain.progress_all(entered);
        moved |= self.progress_without_queues(entered);
        match &self.state.get(entered).active {
            Some(active) if active.engine.has_unsent() => [Flushed::Still, Flushed::Moved][usize::from(moved)],
            _ => Flushed::Over,
        }
    }

    /// Makes progress although the receive queue is full of unsolicited completions, because nobody may read it any
    /// more.
    fn progress_without_queues(&self, entered: &mut Entered) -> bool {
        if !self.waits_for_reader(entered) {
            return false;
        }
        let Some(active) = &mut self.state.get(entered).active else { return false };
        let moved = active.engine.progress(tidegate_link::now());
        self.report_solicited(entered);
        moved
    }

    fn complain(&self, left: Duration, entered: &mut Entered) {
        let Some(active) = &self.state.get(entered).active else { return };
        let links = active.engine.link();
        let names: Vec<_> = active.engine.unsent_peers().filter_map(|peer| reach::name_of(links, peer)).collect();
        log::trouble(
            FI_LOG_EP_CTRL,
            &format!(
                "{} waits with closing for up to {} s more (FI_TIDEGATE_CLOSE_TIMEOUT), because not all its messages \
                 have been taken by {}. A peer takes them when it receives, closes or ends",
                active.own,
                left.as_secs().max(1),
                listed(&names)
            ),
        );
    }

    /// Gives up the messages that have not left, and says goodbye to all peers.
    fn say_goodbye(&self, all_has_left: bool, entered: &mut Entered) {
        self.abandon_unsent(all_has_left, entered);
        if let Some(active) = &mut self.state.get(entered).active {
            active.engine.link_mut().say_goodbye();
        }
    }

    /// Sends what is left of the goodbye. Returns whether that is over.
    fn flush(&self, entered: &mut Entered) -> bool {
        self.state.get(entered).active.as_mut().is_none_or(|active| active.engine.link_mut().flush())
    }

    /// Takes the endpoint out of all lists. The caller drops what it was, and, if it was the domain's last one, so that
    /// our thread ends, calls what is returned: both outside of the domain.
    fn leave(self: &Arc<Self>, entered: &mut Entered) -> (Option<Active>, Option<impl FnOnce() + use<>>) {
        self.remove_own_wakes(entered);
        if let Some(active) = &mut self.state.get(entered).active {
            reach::count(active.engine.link());
            active.observe_last();
        }
        self.leave_lists(entered);
        let active = self.state.get(entered).active.take();
        let is_last = self.domain.state.get(entered).endpoints.is_empty();
        let thread = self.domain.progress_thread.as_ref().filter(|_| is_last);
        (active, thread.and_then(|thread| thread.end()))
    }

    /// Ends the sends that have not left with an error. The user is told how many messages are lost.
    fn abandon_unsent(&self, all_has_left: bool, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        active.engine.abandon_unsent();
        let own = active.own;
        let lost = active.engine.link().counters().get(Counter::SendsLost);
        self.report_solicited(entered);
        if lost > 0 {
            let timeout = self.domain.settings.close_timeout.as_secs();
            let cause = match all_has_left {
                true => "their receivers closed or ended without having received them".to_owned(),
                false => format!("their receivers had not taken them after FI_TIDEGATE_CLOSE_TIMEOUT={timeout} s"),
            };
            log::trouble(FI_LOG_EP_CTRL, &format!("{own} has lost {lost} messages that it had sent: {cause}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_peers_are_named_and_the_others_counted() {
        let names: Vec<String> = (1..=6).map(|pid| format!("pid {pid}")).collect();
        let said = [0, 1, 2, 4, 5, 6].map(|count| listed(&names[..count]));
        let four = "pid 1, pid 2, pid 3";
        assert_eq!(said[..3], ["its peers", "pid 1", "pid 1 and pid 2"]);
        assert_eq!(
            said[3..],
            [" and pid 4", ", pid 4 and 1 other", ", pid 4 and 2 others"].map(|rest| format!("{four}{rest}"))
        );
    }
}
