//! The searches for all schemes at the same time.

use std::thread;

use tidegate_flow::SchemeName;
use tidegate_sim::{FlowChoice, SimulationConfig, SimulationError};

use super::choice::{Choice, TRIALS_MOST, Wish, all_amounts, choose, each};
use super::estimate::Expected;
use super::runs::{Outcomes, Runs};

/// The purpose of the searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Of each scheme, the setting to recommend.
    Recommendation,
    /// The outcome of every amount, without a bound on memory.
    EveryAmount,
}

/// Runs the trace with ample memory, says how many runs follow, and does the searches. Each scheme waits for its own
/// runs one after the other.
///
/// # Errors
/// If a run fails, or a scheme has no setting that is legal; the text says which.
pub fn search(
    runs: &Runs<'_>,
    machine: &SimulationConfig,
    schemes: &[SchemeName],
    wish: &Wish,
    aim: Aim,
    announce: &dyn Fn(Expected),
) -> Result<(Outcomes, Vec<Choice>), String> {
    let unlimited = SimulationConfig { flow: FlowChoice::Unlimited, receive_memory: None, ..machine.clone() };
    let before = runs.tally.time();
    let failed = |error: SimulationError| {
        let is_deadlock = matches!(error, SimulationError::Deadlock(_));
        let advice = runs.trace.advice_on_deadlock().filter(|_| is_deadlock);
        format!(
            "with ample memory, a run failed: {error}{}",
            advice.map_or_else(String::new, |advice| format!("\n{advice}"))
        )
    };
    let ample = runs.measure(&unlimited).map_err(failed)?;
    let settings = |scheme: SchemeName| match aim {
        Aim::EveryAmount => all_amounts(machine, scheme, wish).map(|all| all.len()),
        Aim::Recommendation => Ok(TRIALS_MOST),
    };
    let all: usize = schemes.iter().map(|&scheme| settings(scheme)).sum::<Result<usize, String>>()?;
    let seeds = runs.seeds as usize;
    let at_once = runs.permits.count().min(schemes.len() * seeds);
    announce(Expected::new(all, seeds, runs.tally.time().saturating_sub(before), at_once));
    runs.bar.expect(all * seeds);
    let choices: Result<Vec<Vec<Choice>>, String> = thread::scope(|scope| {
        let one = |scheme: SchemeName| match aim {
            Aim::EveryAmount => each(runs, machine, &ample, scheme, wish),
            Aim::Recommendation => choose(runs, machine, &ample, scheme, wish).map(|choice| vec![choice]),
        };
        let under_way: Vec<_> = schemes.iter().map(|&scheme| scope.spawn(move || one(scheme))).collect();
        under_way
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    Ok((ample, choices?.concat()))
}
