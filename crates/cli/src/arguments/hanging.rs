//! Options of `tidegate run` about jobs that hang.

use std::time::Duration;

use clap::Args;

/// The longest time that `--hang-after` takes: a week.
const LONGEST_S: f64 = 604_800.0;

/// When a job counts as hanging, and what is done then.
#[derive(Debug, Args)]
pub struct HangOptions {
    /// When no message of the job has moved for this long, say which rank waits for which and why; 0: never
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = quiet_time, help_heading = "Hangs")]
    pub hang_after: Duration,

    /// End such a job, with exit code 123, if all its processes wait in their MPI and for each other alone; not for
    /// programs that test for messages until a time, a file or another thread ends that
    #[arg(long, help_heading = "Hangs")]
    pub hang_exit: bool,
}

/// Seconds without a message; 0 stands for never.
fn quiet_time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds == 0.0 || (1.0..=LONGEST_S).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "must be seconds from 1 to 604800, or 0 for never".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_time_is_zero_or_at_least_a_second() {
        assert_eq!(quiet_time("0"), Ok(Duration::ZERO));
        assert_eq!(quiet_time("2.5"), Ok(Duration::from_millis(2500)));
        for text in ["", "0.5", "-1", "604801", "60s", "nan", "inf"] {
            assert!(quiet_time(text).is_err(), "{text}");
        }
    }
}
