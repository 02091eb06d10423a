//! What the network between hosts did.

use tidegate_message::Counter;

use super::{MESSAGES_MATTER, Point, count, of_job, of_process, percent};
use crate::recording::view::View;

/// Batches were sent again, because the network had lost them.
pub fn resent(run: &View) -> Option<Point> {
    let (sent, resent) = (run.job(Counter::BatchesSent), run.job(Counter::BatchesResent));
    if resent == 0 || (resent as f64) < MESSAGES_MATTER * sent as f64 {
        return None;
    }
    let (at, _) = run.most(Counter::BatchesResent)?;
    let text = format!(
        "Of {} batches to other hosts {} were sent again ({}), most of them by {}: the network loses them or breaks \
         connections, which no flow control mends.",
        count(sent),
        count(resent),
        percent(resent as f64 / sent.max(1) as f64),
        run.processes[at].label,
    );
    let evidence = vec![
        of_job(run, Counter::BatchesSent),
        of_job(run, Counter::BatchesResent),
        of_process(run, at, Counter::BatchesResent),
    ];
    let headline =
        format!("the network lost {} of what was sent to other hosts", percent(resent as f64 / sent.max(1) as f64));
    Some(Point { id: "network_resends", headline, text, options: Vec::new(), evidence })
}
