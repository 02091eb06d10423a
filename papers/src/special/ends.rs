//! P §2: whether a job ends in which one process is slow, with and without flow control.

use tidegate_sim::{Noise, SimulationError};

use super::{Known, number};
use crate::data::{BadFigure, Keys};
use crate::run::Case;

/// Four nodes of 16 processes; each process sends 60 messages to a partner, as does that to it. One process takes 30 µs
/// longer for each packet that it retrieves.
fn job(scheme: &str, slots: u32, slow_per_mille: u32) -> String {
    format!(
        "[machine]
         slow_per_mille = {slow_per_mille}
         slow_delay = \"30 us\"
         [network]
         sizes = \"2x2\"
         [flow]
         scheme = \"{scheme}\"
         slots_per_peer = {slots}
         [workload]
         operation = \"pairs\"
         repetitions = 60
         window = 4"
    )
}

/// Whether it ends (1) or stops for ever (0), how many processes wait for ever, and at which millisecond it ended or
/// stopped. Seed 1, no noise.
pub(super) fn does_it(keys: &Keys) -> Known {
    let scheme = keys.get("scheme").map_or("", |key| key.text.as_str());
    let text = job(scheme, number(keys, "slots_per_peer")?, number(keys, "slow_per_mille")?);
    let fields = text.parse::<toml::Table>().map_err(|error| BadFigure(error.to_string()))?;
    let case = Case::of_fields(&fields).map_err(|error| BadFigure(error.to_string()))?;
    let [ends, waiting, ms] = match case.measure(1, Noise::default()) {
        Ok(measured) => [1.0, 0.0, measured.time / 1000.0],
        Err(SimulationError::Deadlock(stuck)) => [0.0, stuck.waiters.len() as f64, stuck.at.microseconds() / 1000.0],
        Err(error) => return Err(BadFigure(error.to_string())),
    };
    let known = [("ends", format!("{ends:.0}")), ("waiting", format!("{waiting:.0}")), ("ms", format!("{ms:.2}"))];
    let outcome = if ends > 0.0 { "ends" } else { "stops for ever" };
    Ok(known.into_iter().chain([("outcome", outcome.to_owned())]).collect())
}
