//! Receives in a collective call of all ranks that accept messages of any: they wait for the ranks that are not in that
//! call. (Open MPI's barrier of few ranks has such.)

use std::collections::HashMap;
use std::time::Duration;

use super::{Member, Presence, Receive, Wait, Waits};
use tidegate_message::WaitCause;

/// The waits for ranks that are not in a call. Where no other rank is in it, it is not known whether others have been.
/// `share`: which part of the time a wait of this age is.
pub fn absent(job: &Waits, share: &dyn Fn(Duration) -> f64) -> Vec<Wait> {
    let of_all = |receive: &&Receive| receive.is_of_all;
    let of_any = |member: &Member| member.any.as_ref().map(|(receive, _)| receive).filter(of_all).cloned();
    let any: Vec<Option<Receive>> = job.members.iter().map(of_any).collect();
    // By what the receives of a call accept: the ranks in it, and whether any of them waits for a rank by its name.
    let mut calls: HashMap<&str, (Vec<bool>, bool)> = HashMap::new();
    for (place, receive) in any.iter().enumerate() {
        let Some(receive) = receive else { continue };
        calls.entry(&receive.text).or_insert_with(|| (vec![false; any.len()], false)).0[place] = true;
    }
    for wait in &job.waits {
        let call = wait.receive.as_ref().and_then(|receive| calls.get_mut(receive.text.as_str()));
        if let Some((inside, has_named)) = call {
            (inside[wait.waiter], *has_named) = (true, true);
        }
    }
    let mut absent = Vec::new();
    for (waiter, member) in job.members.iter().enumerate() {
        let Some((receive, age)) = member.any.as_ref().filter(|(receive, _)| receive.is_of_all) else { continue };
        if member.moves || member.presence != Presence::Here {
            continue;
        }
        let Some((inside, true)) = calls.get(receive.text.as_str()) else { continue };
        let others = (0..inside.len()).filter(|place| !inside[*place]);
        absent.extend(others.map(|awaited| Wait {
            waiter,
            awaited,
            cause: WaitCause::Message,
            share: share(*age),
            open_for: Some(*age),
            receive: Some(receive.clone()),
        }));
    }
    absent
}
