//! [`Forecast`]: how long the runs that are left will take, learnt from those that ended.

use std::collections::HashMap;
use std::time::Duration;

use crate::run::case::Case;

/// What a run costs beside others: what it is, and how many messages its processes send.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    case: String,
    kind: String,
    messages: f64,
    /// About how many seconds it takes on a usual machine.
    seconds: f64,
}

impl Size {
    pub fn of(case: &Case) -> Self {
        let messages = case.size().max(1.0);
        let seconds = messages * case.seconds_per_message();
        Size { case: case.key().to_owned(), kind: case.kind(), messages, seconds }
    }
}

/// Seconds and messages of the runs that ended.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    seconds: f64,
    messages: f64,
}

impl Pace {
    fn add(&mut self, seconds: f64, messages: f64) {
        self.seconds += seconds;
        self.messages += messages;
    }
}

/// Learns from runs how long others take.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    all: Pace,
    by_kind: HashMap<String, Pace>,
    by_case: HashMap<String, Pace>,
}

impl Forecast {
    /// A run took this long.
    pub fn learn(&mut self, size: &Size, seconds: f64) {
        self.all.add(seconds, size.messages);
        self.by_kind.entry(size.kind.clone()).or_default().add(seconds, size.messages);
        self.by_case.entry(size.case.clone()).or_default().add(seconds, size.messages);
    }

    /// How long these runs take on a usual machine, `jobs` at once.
    pub fn beforehand<'a>(left: impl Iterator<Item = &'a Size>, jobs: usize) -> Duration {
        together(left.map(|size| size.seconds), jobs).unwrap_or_default()
    }

    /// How long these runs take, so many at once; from runs of the same case with other seeds, else of the same
    /// operation and scheme, else from all. `None` while nothing has been learnt.
    pub fn remaining<'a>(&self, left: impl Iterator<Item = &'a Size>, jobs: usize) -> Option<Duration> {
        if self.all.messages <= 0.0 {
            return None;
        }
        let seconds = |size: &Size| {
            let known = self.by_case.get(&size.case).or_else(|| self.by_kind.get(&size.kind)).unwrap_or(&self.all);
            size.messages * known.seconds / known.messages
        };
        together(left.map(seconds), jobs)
    }
}

/// How long runs of these seconds take, `jobs` at once, and no sooner than the longest of them.
fn together(seconds: impl Iterator<Item = f64>, jobs: usize) -> Option<Duration> {
    let (total, longest) = seconds.fold((0.0, 0.0_f64), |(sum, most), each| (sum + each, most.max(each)));
    Duration::try_from_secs_f64((total / jobs.max(1) as f64).max(longest)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(case: &str, kind: &str, messages: f64) -> Size {
        Size { case: case.to_owned(), kind: kind.to_owned(), messages, seconds: messages / 10.0 }
    }

    #[test]
    fn what_is_most_alike_is_the_measure() {
        let mut forecast = Forecast::default();
        let (slow, quick) = (size("a", "alltoall", 100.0), size("b", "barrier", 100.0));
        let remaining = |forecast: &Forecast, of: &[Size], jobs| {
            forecast.remaining(of.iter(), jobs).map(|left| left.as_secs_f64().round() as u64)
        };
        assert_eq!(remaining(&forecast, std::slice::from_ref(&slow), 1), None);
        forecast.learn(&slow, 50.0);
        forecast.learn(&quick, 10.0);
        assert_eq!(remaining(&forecast, std::slice::from_ref(&slow), 1), Some(50));
        assert_eq!(remaining(&forecast, &[size("c", "alltoall", 200.0)], 1), Some(100));
        assert_eq!(remaining(&forecast, &[size("d", "new", 100.0)], 1), Some(30));
        // Two at once; but no sooner than the longest.
        assert_eq!(remaining(&forecast, &[slow.clone(), slow.clone(), quick.clone()], 2), Some(55));
        assert_eq!(remaining(&forecast, &[slow, quick], 2), Some(50));
        assert_eq!(remaining(&forecast, &[], 2), Some(0));
        assert_eq!(Forecast::beforehand([size("c", "new", 100.0), size("d", "new", 50.0)].iter(), 2).as_secs(), 10);
    }
}
