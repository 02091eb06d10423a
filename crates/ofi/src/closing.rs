//! `fi_close` of an endpoint. Peers are told first. What the application believes sent then leaves, as long as those
//! live whom it is for and `FI_TIDEGATE_CLOSE_TIMEOUT` is not over; what is left after that is lost, and said to be.
//! The domain's lock is free between two looks, and all endpoints of the domain make progress: the receiver may be one
//! of them.

use crate::bindings::FI_LOG_EP_CTRL;
use crate::endpoint::Endpoint;
use crate::errno::{Errno, Result};
use crate::lock::Entered;
use crate::log;
use core::ffi::c_int;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tidegate_message::{Counter, Link};

/// Time between two complaints that closing takes long.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);
/// Looks in vain before a closing thread sleeps between two of them.
const LOOKS_BEFORE_SLEEP: u32 = 1000;
/// How long it sleeps.
const NAP: Duration = Duration::from_millis(1);

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Everything has left.
    Over,
    /// Something happened.
    Moved,
    /// Nothing happened.
    Still,
}

/// Closes an endpoint for its peers and takes it out of all lists. Bounded whatever peers do.
pub fn close(endpoint: &Arc<Endpoint>) -> Result {
    let begun = Instant::now();
    let timeout = endpoint.domain.settings.close_timeout;
    let mut complain_at = begun + COMPLAINT_INTERVAL;
    let mut still = 0;
    enter(endpoint, |entered| endpoint.begin_closing(entered))?;
    loop {
        let look = enter(endpoint, |entered| endpoint.look_at_unsent(entered))?;
        let now = Instant::now();
        if look == Look::Over || now.duration_since(begun) >= timeout {
            return enter(endpoint, |entered| endpoint.leave(look == Look::Over, entered)).map(|()| 0);
        }
        if now >= complain_at {
            complain_at += COMPLAINT_INTERVAL;
            enter(endpoint, |entered| endpoint.complain(timeout - now.duration_since(begun), entered))?;
        }
        still = if look == Look::Still { still + 1 } else { 0 };
        match still {
            0 => {}
            1..LOOKS_BEFORE_SLEEP => thread::yield_now(),
            _ => thread::sleep(NAP),
        }
    }
}

/// One visit to the endpoint's domain.
fn enter<T>(endpoint: &Endpoint, body: impl FnOnce(&mut Entered) -> T) -> Result<T> {
    let mut found = None;
    let outcome = endpoint.domain.enter(|entered| {
        found = Some(body(entered));
        Ok(0)
    });
    found.filter(|_| outcome == 0).ok_or(Errno(-outcome as c_int))
}

impl Endpoint {
    fn begin_closing(&self, entered: &mut Entered) {
        if let Some(active) = &mut self.state.get(entered).active {
            active.engine.begin_closing();
        }
    }

    /// Lets the whole domain make progress, and looks whether anything is left to send.
    fn look_at_unsent(&self, entered: &mut Entered) -> Look {
        let mut moved = false;
        for endpoint in self.domain.state.get(entered).endpoints.clone() {
            moved |= endpoint.progress(entered);
        }
        moved |= self.progress_without_queues(entered);
        match &self.state.get(entered).active {
            Some(active) if active.engine.has_unsent() => [Look::Still, Look::Moved][usize::from(moved)],
            _ => Look::Over,
        }
    }

    /// Progress though the application has not read what is in its queues: nobody may read them any more.
    fn progress_without_queues(&self, entered: &mut Entered) -> bool {
        if !self.waits_for_reader(entered) {
            return false;
        }
        let Some(active) = &mut self.state.get(entered).active else { return false };
        let moved = active.engine.progress(tidegate_link::now());
        while active.engine.poll_completion().is_some() {}
        moved
    }

    fn complain(&self, left: Duration, entered: &mut Entered) {
        let Some(active) = &self.state.get(entered).active else { return };
        log::trouble(
            FI_LOG_EP_CTRL,
            &format!(
                "{} waits with closing for up to {} s more (FI_TIDEGATE_CLOSE_TIMEOUT): peers have not taken all its messages. They \
                 do when they receive, when they close, or when they end",
                active.own,
                left.as_secs()
            ),
        );
    }

    /// Leaves all lists, and gives up what has not left.
    fn leave(self: &Arc<Self>, all_has_left: bool, entered: &mut Entered) {
        self.abandon_unsent(all_has_left, entered);
        if let Some(active) = &mut self.state.get(entered).active
            && let Ok(descriptor) = active.engine.link_mut().wake_fd()
        {
            self.wait_queues().for_each(|queue| queue.remove_wake(descriptor));
        }
        self.leave_lists(entered);
        self.state.get(entered).active = None;
    }

    /// What has not left ends with an error, as far as its queue has room for errors, and is counted and told.
    fn abandon_unsent(&self, all_has_left: bool, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        active.engine.abandon_unsent();
        let own = active.own;
        let lost = active.engine.link().counters().get(Counter::SendsLost);
        self.report_abandoned(entered);
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
