//! [`Curve`]: one pattern of traffic with one kind of flow control, over the size of the mailbox: what most figures
//! consist of.

use tidegate_sim::{Estimate, FlowChoice, Measurement, SimulationError};

use crate::report::{AsPoint, Figure, REFERENCE, Series};
use crate::run::case::Case;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// A curve to be measured.
pub(crate) struct Line {
    pub name: String,
    /// What is run; its own flow control does not matter.
    pub case: Case,
    /// Flow control by the number of slots per peer.
    pub flow: Box<dyn Fn(u32) -> FlowChoice>,
    /// The sizes, ascending.
    pub slots: Vec<u32>,
}

/// A measured curve.
pub(crate) struct Curve {
    pub name: String,
    pub slots: Vec<u32>,
    /// The same without flow control.
    pub reference: Runs,
    /// By slots.
    pub measured: Vec<Runs>,
    /// Of the fewest slots, hence of all but for their number.
    flow: FlowChoice,
}

/// Measures all lines, their runs side by side.
pub(crate) fn measure(workshop: &Workshop<'_>, lines: Vec<Line>) -> Result<Vec<Curve>, SimulationError> {
    let mut cases = Vec::new();
    for line in &lines {
        cases.push(line.case.reference());
        cases.extend(line.slots.iter().map(|&slots| Case { flow: (line.flow)(slots), ..line.case.clone() }));
    }
    let mut results = workshop.run(&cases)?.into_iter();
    let curve = |line: Line| {
        let reference = results.next().expect("a result for every case");
        let measured = results.by_ref().take(line.slots.len()).collect();
        let flow = (line.flow)(line.slots.first().copied().unwrap_or(64));
        Curve { name: line.name, slots: line.slots, reference, measured, flow }
    };
    Ok(lines.into_iter().map(curve).collect())
}

impl Curve {
    /// A value at every point, from each run and the reference with the same seed.
    pub fn estimates(&self, value: impl Fn(&Measurement, &Measurement) -> f64) -> Vec<(u32, Estimate)> {
        let each = self.measured.iter().map(|runs| runs.paired(&self.reference, &value));
        self.slots.iter().copied().zip(each).collect()
    }

    /// The means of these values over the seeds.
    pub fn values(&self, value: impl Fn(&Measurement, &Measurement) -> f64) -> Vec<(u32, f64)> {
        self.estimates(value).into_iter().map(|(slots, estimate)| (slots, estimate.mean())).collect()
    }

    /// For a picture.
    pub fn series(&self, value: impl Fn(&Measurement, &Measurement) -> f64) -> Series {
        let points = self.estimates(value).into_iter().map(|(slots, estimate)| estimate.point(f64::from(slots)));
        let (scheme, piggyback) = match self.flow {
            FlowChoice::Unlimited => (REFERENCE.to_owned(), false),
            FlowChoice::Mailbox { scheme, piggyback, .. } | FlowChoice::Posted { scheme, piggyback, .. } => {
                (scheme.to_string(), piggyback)
            }
        };
        Series { scheme, piggyback, ..Series::of(&self.name, points) }
    }

    /// Overhead in percent, by slots.
    pub fn overheads(&self) -> Vec<(u32, f64)> {
        self.values(|each, reference| each.overhead(reference))
    }

    /// Delayed sends in percent, by slots.
    pub fn delays(&self) -> Vec<(u32, f64)> {
        self.values(|each, _| 100.0 * each.delayed)
    }
}

/// Mean of the values whose slots are as wanted; 0 if there are none.
pub(crate) fn mean(values: &[(u32, f64)], wanted: impl Fn(u32) -> bool) -> f64 {
    let wanted: Vec<f64> = values.iter().filter(|(slots, _)| wanted(*slots)).map(|(_, value)| *value).collect();
    wanted.iter().sum::<f64>() / wanted.len().max(1) as f64
}

/// The value at exactly this number of slots.
pub(crate) fn at(values: &[(u32, f64)], slots: u32) -> Option<f64> {
    values.iter().find(|(at, _)| *at == slots).map(|(_, value)| *value)
}

/// A figure over the size of the mailbox.
pub(crate) fn figure(name: &str, title: &str, y_axis: &str, series: Vec<Series>) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x_axis: "receive buffer (slots per process)".to_owned(),
        y_axis: y_axis.to_owned(),
        series,
        ..Figure::default()
    }
}
