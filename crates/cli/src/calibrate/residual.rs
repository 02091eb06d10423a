//! The same exchanges on the simulated machine, beside the measured ones.

use std::fmt;
use std::path::Path;

use tidegate_sim::workload::{Communicator, point_to_point};
use tidegate_sim::{Simulation, SimulationConfig, Task};

use super::fit::Spread;
use super::pair::Exchange;
use tidegate_sim::run_spec::{File, Scenario};

/// An exchange, measured and simulated.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// Which.
    pub exchange: Exchange,
    /// Its median, in nanoseconds.
    pub measured: f64,
    /// In nanoseconds.
    pub simulated: f64,
}

impl Residual {
    /// By which share the simulated time is longer.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.simulated / self.measured.max(1.0) - 1.0
    }
}

impl fmt::Display for Residual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Residual { exchange, measured, simulated } = self;
        let error = 100.0 * self.error();
        write!(f, "{:<24} measured {measured:>9.0} ns, simulated {simulated:>9.0} ns, {error:+.0} %", exchange.name())
    }
}

/// Why the measurements are not to be relied on, if a quarter of the exchanges or more take more than twice or less
/// than half as long when they are simulated: no machine is like that.
#[must_use]
pub fn doubt(residuals: &[Residual]) -> Option<String> {
    let is_off = |residual: &&Residual| !(-0.5..=1.0).contains(&residual.error());
    let (off, all) = (residuals.iter().filter(is_off).count(), residuals.len());
    (off > 0 && 4 * off >= all).then(|| {
        format!(
            "{off} of {all} exchanges do not fit the others by a factor of two and more, as where other programs use the \
             processors meanwhile: measure again when they do not, for plans with these numbers mean nothing"
        )
    })
}

/// Simulates the exchanges on the machine of a file.
///
/// # Errors
/// If the file is none, or a run fails.
pub fn residuals(file: &str, measured: &[(Exchange, Vec<f64>)]) -> Result<Vec<Residual>, String> {
    let sweep = match File::read(file.into(), Path::new("")).map_err(|error| error.to_string())? {
        File::Jobs(sweep) => sweep,
        File::Fabrics(_) | File::Bulks(_) => return Err("it describes no job".to_owned()),
    };
    let Some((_, Scenario { config, .. })) = sweep.points.first() else { return Err("it describes no run".to_owned()) };
    let one = |(exchange, times): &(Exchange, Vec<f64>)| {
        let simulated = simulate(config, *exchange).map_err(|error| error.to_string())?;
        Ok(Residual { exchange: *exchange, measured: Spread::of(times).median, simulated })
    };
    measured.iter().map(one).collect()
}

/// Nanoseconds of half a round trip, or of a message.
fn simulate(config: &SimulationConfig, exchange: Exchange) -> Result<f64, tidegate_sim::SimulationError> {
    let program = move |task: Task| async move {
        let world = Communicator::world(&task);
        let partner = 1 - world.me();
        let time = match exchange {
            Exchange::Pingpong { bytes } => point_to_point::pingpong(&world, partner, bytes as u64, 50).await,
            Exchange::Stream { bytes, window } => {
                let calls = point_to_point::Calls::NonBlocking;
                point_to_point::stream(&world, partner, bytes as u64, window as u32, calls, 50).await
            }
        };
        task.record("time", 0, time.nanoseconds());
    };
    let outcome = Simulation::new(config.clone(), &program)?.run()?;
    let times: Vec<f64> = outcome.samples_of("time").map(|sample| sample.value).collect();
    Ok(times.iter().sum::<f64>() / times.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_that_do_not_fit_together_are_doubted() {
        let of = |errors: &[f64]| {
            let one = |error: &f64| Residual {
                exchange: Exchange::Pingpong { bytes: 8 },
                measured: 1000.0,
                simulated: 1000.0 * (1.0 + error),
            };
            doubt(&errors.iter().map(one).collect::<Vec<_>>())
        };
        assert_eq!(of(&[0.1, -0.3, 0.9, -0.49, 0.0, 3.0]), None);
        let busy = of(&[1.6, -0.99, -0.95, 0.0, 0.2]).expect("three of five are off");
        assert!(busy.starts_with("3 of 5 exchanges do not fit the others"), "{busy}");
    }
}
