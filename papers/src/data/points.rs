//! [`Points`]: what was measured at each point of a figure's grids, and numbers taken from it.

use std::collections::BTreeMap;

use tidegate_sim::run_spec::did_you_mean;
use tidegate_sim::{Estimate, FlowChoice, Measurement, SimulationError};

use super::BadFigure;
use super::absent::Absent;
use super::definition::{Selection, ValueOf};
use super::expression::{BadExpression, Expression};
use super::grid::Grid;
use super::measures;
use super::select::{Key, Take, is_chosen};
use super::text::Named;
use crate::run::case::Case;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// A point with its runs.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its value on each axis.
    pub keys: BTreeMap<String, Key>,
    /// With every seed; of a point that is computed one that stands for none.
    pub runs: Runs,
    /// Those that it is compared with.
    pub reference: Option<Runs>,
    /// Its flow control, if it is a job.
    pub flow: Option<FlowChoice>,
    /// Whether nothing was run: what is measured there are its keys.
    pub is_computed: bool,
    /// Why it is left out: then it counts only where tables and pictures have places for it.
    pub absent: Option<Absent>,
}

impl Point {
    /// Whether a run was ended before its programs had: then it has taken longer than it says.
    pub fn is_cut(&self) -> bool {
        self.runs.0.iter().any(|run| run.cut_us.is_some())
    }
}

/// The points of all grids, by the grid's name.
#[derive(Clone, Debug, Default)]
pub struct Points(BTreeMap<String, Vec<Point>>);

/// Which points a number is of.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    pub runs: Option<&'a str>,
    pub selection: &'a Selection,
    pub beside: &'a Selection,
}

impl Points {
    /// Runs all points.
    pub fn run(workshop: &Workshop<'_>, grids: &BTreeMap<String, Grid>) -> Result<Self, SimulationError> {
        let mut cases = Vec::new();
        for place in grids.values().flat_map(|grid| &grid.places) {
            cases.extend(place.case.clone());
            cases.extend(place.reference.clone());
        }
        let mut runs = workshop.run(&cases)?.into_iter();
        let mut next = || runs.next().expect("a result for every case");
        let mut points = BTreeMap::new();
        for (name, grid) in grids {
            let of = grid.places.iter().map(|place| Point {
                keys: place.keys.clone(),
                flow: place.case.as_ref().and_then(Case::flow),
                runs: place.case.as_ref().map_or_else(Runs::none, |_| next()),
                reference: place.reference.as_ref().map(|_| next()),
                is_computed: place.case.is_none() && place.absent.is_none(),
                absent: place.absent,
            });
            points.insert(name.clone(), of.collect());
        }
        Ok(Points(points))
    }

    /// All points of a grid; of the only one, if none is named.
    pub fn of(&self, runs: Option<&str>) -> Result<&[Point], BadExpression> {
        match (runs, self.0.len()) {
            (Some(name), _) => self.0.get(name).map(Vec::as_slice).ok_or_else(|| {
                BadExpression(format!(
                    "there are no runs {name}{}",
                    did_you_mean(name, self.0.keys().map(String::as_str))
                ))
            }),
            (None, 1) => Ok(self.0.values().next().map_or(&[], Vec::as_slice)),
            (None, _) => Err(BadExpression("there are several kinds of runs: `runs` says which are meant".to_owned())),
        }
    }

    /// Those of a slice that are not left out.
    pub fn chosen(&self, slice: Slice<'_>) -> Result<Vec<&Point>, BadExpression> {
        let mut chosen = self.places(slice)?;
        chosen.retain(|point| point.absent.is_none());
        Ok(chosen)
    }

    /// All of a slice, with those that are left out.
    pub fn places(&self, slice: Slice<'_>) -> Result<Vec<&Point>, BadExpression> {
        let mut chosen = Vec::new();
        for point in self.of(slice.runs)? {
            if is_chosen(&point.keys, slice.selection)? {
                chosen.push(point);
            }
        }
        Ok(chosen)
    }

    /// The point that differs from this one by these values of axes.
    fn beside(&self, runs: Option<&str>, point: &Point, change: &Selection) -> Result<Option<&Point>, BadExpression> {
        if change.is_empty() {
            return Ok(None);
        }
        for other in self.of(runs)?.iter().filter(|other| other.absent.is_none()) {
            let is_changed = |axis: &String, key: &Key| change.contains_key(key.of.as_ref().unwrap_or(axis));
            let mut alike = point.keys.iter().filter(|(axis, key)| !is_changed(axis, key));
            if is_chosen(&other.keys, change)? && alike.all(|(axis, key)| other.keys.get(axis) == Some(key)) {
                return Ok(Some(other));
            }
        }
        Err(BadExpression(format!("no point is beside {:?} with {change:?}", texts(&point.keys))))
    }

    /// An expression at a point, with each seed.
    pub fn estimate(&self, slice: Slice<'_>, point: &Point, of: &str) -> Result<Estimate, BadExpression> {
        let expression = Expression::parse(of)?;
        let beside = self.beside(slice.runs, point, slice.beside)?;
        let mut each = Vec::new();
        for seed in 0..point.runs.0.len() {
            let lookup = |name: &str| measured(point, beside, seed, name).map(|value| vec![value]);
            each.push(expression.evaluate(&lookup)?.first().copied().unwrap_or(f64::NAN));
        }
        Ok(Estimate::new(each))
    }

    /// The numbers of a value.
    pub fn value(&self, value: &ValueOf) -> Result<Named, BadFigure> {
        if let Some(function) = &value.computed {
            return crate::special::computed(function, self, value).map_err(BadFigure);
        }
        if !value.numbers.is_empty() {
            return Ok(Named { keys: Vec::new(), numbers: value.numbers.clone() });
        }
        let of =
            value.of.as_deref().ok_or_else(|| BadFigure("a value has `of`, `numbers` or `computed`".to_owned()))?;
        let take = value.take.as_deref().map_or(Ok(Take::Mean), Take::parse)?;
        let slice = Slice { runs: value.runs.as_deref(), selection: &value.r#where, beside: &value.beside };
        let of_seeds = value.of_seeds.as_deref().map(Take::parse).transpose()?;
        let number = |point: &Point, along: &Option<String>| -> Result<(f64, f64), BadFigure> {
            let each = self.estimate(slice, point, of)?;
            let y = of_seeds.map_or(each.mean(), |take| take.of(&numbered(each.each())));
            Ok((place(point, along)?, y))
        };
        let mut named = Named::default();
        for (name, points) in grouped(self.chosen(slice)?, &value.each)? {
            let numbers: Result<Vec<(f64, f64)>, BadFigure> = match &value.first {
                None => points.iter().map(|point| number(point, &value.along)).collect(),
                Some(first) => {
                    let take = first.take.as_deref().map_or(Ok(Take::Mean), Take::parse)?;
                    let of_part = |(_, part): (String, Vec<&Point>)| {
                        let numbers: Result<Vec<_>, BadFigure> =
                            part.iter().map(|point| number(point, &first.along)).collect();
                        Ok((place(part[0], &value.along)?, taken(take, &numbers?, first.along.is_some())))
                    };
                    grouped(points, &first.each)?.into_iter().map(of_part).collect()
                }
            };
            named.keys.push(name);
            named.numbers.push(taken(take, &numbers?, value.along.is_some()));
        }
        Ok(named)
    }
}

/// Where along an axis a point is.
fn place(point: &Point, along: &Option<String>) -> Result<f64, BadExpression> {
    along.as_ref().map_or(Ok(0.0), |axis| Ok(key(&point.keys, axis)?.number.unwrap_or(f64::NAN)))
}

/// Points by the values of some axes, in the order in which these come.
pub fn grouped<'a>(points: Vec<&'a Point>, axes: &[String]) -> Result<Vec<(String, Vec<&'a Point>)>, BadExpression> {
    let mut groups: Vec<(String, Vec<&Point>)> = Vec::new();
    for point in points {
        let name = joined(&point.keys, axes)?;
        match groups.iter_mut().find(|group| group.0 == name) {
            Some(group) => group.1.push(point),
            None => groups.push((name, vec![point])),
        }
    }
    Ok(groups)
}

/// All combinations of the values of some axes, in the order in which points have them; one without any for no axes.
pub fn combinations(points: &[&Point], axes: &[String]) -> Result<Vec<BTreeMap<String, Key>>, BadExpression> {
    let mut all: Vec<BTreeMap<String, Key>> = Vec::new();
    for point in points {
        let mut keys = BTreeMap::new();
        for axis in axes {
            keys.insert(axis.clone(), key(&point.keys, axis)?.clone());
        }
        if !all.iter().any(|known| texts(known) == texts(&keys)) {
            all.push(keys);
        }
    }
    Ok(all)
}

/// Numbers with their places in the list.
fn numbered(numbers: &[f64]) -> Vec<(f64, f64)> {
    numbers.iter().enumerate().map(|(place, number)| (place as f64, *number)).collect()
}

/// One number of many; of several at one place along the axis the mean counts.
fn taken(take: Take, points: &[(f64, f64)], is_along: bool) -> f64 {
    if is_along { take.of(&merged(points)) } else { take.of(points) }
}

/// Points by place, ascending; of several at one place the mean.
fn merged(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut places: Vec<f64> = points.iter().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mean = |place: f64| {
        let at: Vec<f64> = points.iter().filter(|point| point.0 == place).map(|point| point.1).collect();
        at.iter().sum::<f64>() / at.len().max(1) as f64
    };
    places.into_iter().map(|place| (place, mean(place))).collect()
}

/// The value of an axis.
pub fn key<'a>(keys: &'a BTreeMap<String, Key>, axis: &str) -> Result<&'a Key, BadExpression> {
    keys.get(axis).ok_or_else(|| {
        BadExpression(format!("there is no axis {axis}{}", did_you_mean(axis, keys.keys().map(String::as_str))))
    })
}

/// The values of some axes, in one text.
pub fn joined(keys: &BTreeMap<String, Key>, axes: &[String]) -> Result<String, BadExpression> {
    let each: Result<Vec<&str>, _> = axes.iter().map(|axis| key(keys, axis).map(|key| key.text.as_str())).collect();
    Ok(each?.join(" "))
}

/// A text in which `{axis}` stands for the value of an axis.
pub fn named(text: &str, keys: &BTreeMap<String, Key>) -> String {
    keys.iter().fold(text.to_owned(), |text, (axis, key)| text.replace(&format!("{{{axis}}}"), &key.text))
}

/// The keys that all points have in common.
pub fn common(points: &[&Point]) -> BTreeMap<String, Key> {
    let mut keys = points.first().map(|point| point.keys.clone()).unwrap_or_default();
    keys.retain(|axis, key| points.iter().all(|point| point.keys.get(axis) == Some(&*key)));
    keys
}

fn texts(keys: &BTreeMap<String, Key>) -> BTreeMap<&str, &str> {
    keys.iter().map(|(axis, key)| (axis.as_str(), key.text.as_str())).collect()
}

/// What a name stands for at a point, with one seed.
fn measured(point: &Point, beside: Option<&Point>, seed: usize, name: &str) -> Result<f64, BadExpression> {
    let of = |runs: &Runs, name: &str| {
        let run: Option<&Measurement> = runs.0.get(seed).map(std::convert::AsRef::as_ref);
        run.map_or(Ok(f64::NAN), |run| measures::value(run, name))
    };
    if let Some(name) = name.strip_prefix("matched_") {
        let reference = point.reference.as_ref().and_then(|runs| runs.0.get(seed)).zip(point.runs.0.get(seed));
        return reference.map_or(Ok(f64::NAN), |(reference, run)| measures::matched(run, reference, name));
    }
    if name == "flow.slots_per_peer" {
        let Some(FlowChoice::Mailbox { slots_per_peer, .. }) = point.flow else { return Ok(0.0) };
        return Ok(slots_per_peer.into());
    }
    if name == "seeds" {
        return Ok(point.runs.0.len() as f64);
    }
    if let Some(axis) = name.strip_prefix("axis.") {
        return Ok(key(&point.keys, axis)?.number.unwrap_or(f64::NAN));
    }
    if let Some(name) = name.strip_prefix("beside.") {
        let beside =
            beside.ok_or_else(|| BadExpression(format!("beside.{name}: `beside` says which point that is")))?;
        return measured(beside, None, seed, name);
    }
    if let Some(name) = name.strip_prefix("reference.") {
        let reference = point.reference.as_ref();
        let reference =
            reference.ok_or_else(|| BadExpression(format!("reference.{name}: the runs have no `reference`")))?;
        return of(reference, name);
    }
    if point.is_computed {
        return Ok(key(&point.keys, name)?.number.unwrap_or(f64::NAN));
    }
    if let Some(whole) = measures::written_out(name) {
        let lookup = |name: &str| measured(point, beside, seed, name).map(|value| vec![value]);
        return Ok(Expression::parse(whole)?.evaluate(&lookup)?.first().copied().unwrap_or(f64::NAN));
    }
    of(&point.runs, name)
}

/// The abscissa of a point: arithmetic over its axes.
pub fn abscissa(point: &Point, x: &str) -> Result<f64, BadExpression> {
    let number = |axis: &str| {
        let key = key(&point.keys, axis)?;
        key.number
            .map(|number| vec![number])
            .ok_or_else(|| BadExpression(format!("{axis} = {} is no number", key.text)))
    };
    Ok(Expression::parse(x)?.evaluate(&number)?.first().copied().unwrap_or(f64::NAN))
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;

    use super::*;

    /// Points of runs `all` with these values on the axes `job` and `window`, and the times of each seed.
    pub fn points(each: &[(&str, &str, &[f64])]) -> Points {
        let point = |(job, window, times): &(&str, &str, &[f64])| {
            let axes = [("job", job), ("window", window)];
            let run = |time: &f64| Arc::new(Measurement { time: *time, ..Measurement::default() });
            Point {
                keys: axes.map(|(axis, text)| (axis.to_owned(), Key::new(*text))).into(),
                runs: Runs(times.iter().map(run).collect()),
                reference: None,
                flow: None,
                is_computed: false,
                absent: None,
            }
        };
        Points(BTreeMap::from([("all".to_owned(), each.iter().map(point).collect())]))
    }

    fn value(text: &str) -> Named {
        let points = points(&[
            ("lu", "8", &[10.0, 12.0]),
            ("lu", "16", &[20.0, 24.0]),
            ("cg", "8", &[5.0, 5.0]),
            ("cg", "16", &[5.0, 6.0]),
        ]);
        points.value(&toml::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn a_number_is_made_of_points_in_one_step_or_in_two() {
        assert_eq!(value("of = 'time_us'").numbers, [(11.0 + 22.0 + 5.0 + 5.5) / 4.0]);
        let each = value("of = 'time_us'\neach = ['job']\ntake = 'max'");
        assert_eq!((each.keys, each.numbers), (vec!["lu".to_owned(), "cg".to_owned()], vec![22.0, 5.5]));
        let spread = value("of = 'time_us'\ntake = 'max'\nfirst = { each = ['job'], take = 'min' }");
        assert_eq!(spread.numbers, [11.0]);
        let along = value("of = 'time_us'\ntake = 'argmax'\nalong = 'window'\nfirst = { each = ['window'] }");
        assert_eq!(along.numbers, [16.0]);
    }

    #[test]
    fn seeds_of_a_point_can_count_for_more_than_their_mean() {
        assert_eq!(value("of = 'time_us'\neach = ['job']\ntake = 'max'\nof_seeds = 'spread'").numbers.len(), 2);
        assert_eq!(value("of = 'time_us'\nwhere = { job = 'lu', window = 16 }\nof_seeds = 'max'").numbers, [24.0]);
    }
}
