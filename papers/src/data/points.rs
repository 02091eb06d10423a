//! [`Points`]: what was measured at each point of a figure's grids, and numbers taken from it.

use std::collections::BTreeMap;

use tidegate_sim::run_spec::did_you_mean;
use tidegate_sim::{Estimate, FlowChoice, Measurement};

use super::definition::{Numbers, Selection, ValueOf};
use super::grid::{Absent, Grids};
use super::measures;
use super::select::{Key, Keys, Take, is_chosen, joined, key, shown};
use super::text::Named;
use super::{BadFigure, expression, known};
use crate::run::Case;
use crate::workshop::{Runs, Scale};

#[derive(Clone, Debug)]
pub struct Point {
    pub keys: Keys,
    /// With every seed; of a point that is computed one that stands for none.
    pub runs: Runs,
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

/// The points of a form, by the name of their runs.
#[derive(Clone, Debug)]
pub struct Points {
    by_runs: BTreeMap<String, Vec<Point>>,
    pub scale: Scale,
    /// With how many seeds each of them was run.
    pub seeds: u32,
}

impl Points {
    /// The points of grids, with the runs of their cases in the order of [`cases`](super::grid::cases).
    pub fn new(grids: &Grids, runs: Vec<Runs>, scale: Scale, seeds: u32) -> Self {
        let mut runs = runs.into_iter();
        let mut next = || runs.next().expect("a result for every case");
        let mut by_runs = BTreeMap::new();
        for (name, grid) in grids {
            let of = grid.iter().map(|place| Point {
                keys: place.keys.clone(),
                flow: place.case.as_ref().and_then(Case::flow),
                runs: place.case.as_ref().map_or_else(Runs::none, |_| next()),
                reference: place.reference.as_ref().map(|_| next()),
                is_computed: place.case.is_none() && place.absent.is_none(),
                absent: place.absent,
            });
            by_runs.insert(name.clone(), of.collect());
        }
        Points { by_runs, scale, seeds }
    }

    /// All points of a grid; of the only one, if none is named.
    pub fn of(&self, runs: Option<&str>) -> Result<&[Point], BadFigure> {
        match (runs, self.by_runs.len()) {
            (Some(name), _) => known(&self.by_runs, "runs", name).map(Vec::as_slice),
            (None, 1) => Ok(self.by_runs.values().next().map_or(&[], Vec::as_slice)),
            (None, _) => Err("there are several kinds of runs: say which are meant with runs = \"NAME\"".into()),
        }
    }

    pub fn chosen(&self, runs: Option<&str>, selection: &Selection) -> Result<Vec<&Point>, BadFigure> {
        let mut chosen = self.places(runs, selection)?;
        chosen.retain(|point| point.absent.is_none());
        Ok(chosen)
    }

    /// All of a selection, with those that are left out.
    pub fn places(&self, runs: Option<&str>, selection: &Selection) -> Result<Vec<&Point>, BadFigure> {
        let mut chosen = Vec::new();
        for point in self.of(runs)? {
            if is_chosen(&point.keys, selection)? {
                chosen.push(point);
            }
        }
        Ok(chosen)
    }

    /// The point that differs from this one by these values of axes.
    fn beside(&self, runs: Option<&str>, point: &Point, change: &Selection) -> Result<Option<&Point>, BadFigure> {
        if change.is_empty() {
            return Ok(None);
        }
        for other in self.chosen(runs, change)? {
            let is_changed = |axis: &String, key: &Key| change.contains_key(key.of.as_ref().unwrap_or(axis));
            let mut alike = point.keys.iter().filter(|(axis, key)| !is_changed(axis, key));
            if alike.all(|(axis, key)| other.keys.get(axis) == Some(key)) {
                return Ok(Some(other));
            }
        }
        let texts = point.keys.values().map(|key| key.text.as_str()).collect::<Vec<_>>();
        let change = shown(change);
        Err(BadFigure(format!("beside = {{ {change} }}: no point differs from {} by that alone", texts.join(", "))))
    }

    /// What numbers are made of at a point, with each seed.
    pub fn estimate(&self, numbers: &Numbers, point: &Point) -> Result<Estimate, BadFigure> {
        let beside = self.beside(numbers.runs.as_deref(), point, &numbers.beside)?;
        let of_seed = |seed| expression::number(&numbers.of, &|name| measured(point, beside, seed, name));
        let each = (0..point.runs.0.len()).map(of_seed);
        Ok(Estimate::new(each.collect::<Result<Vec<f64>, _>>()?))
    }

    pub fn value(&self, value: &ValueOf) -> Result<Named, BadFigure> {
        if let Some(function) = &value.computed {
            return crate::special::computed(function, self, value);
        }
        let numbers = &value.numbers_of;
        let mut named = Named { keys: Vec::new(), numbers: value.numbers.clone() };
        if !named.numbers.is_empty() {
            return Ok(named);
        } else if numbers.of.is_empty() {
            return Err(BadFigure("a value has a field of, numbers or computed".to_owned()));
        }
        for (name, points) in grouped(self.chosen(numbers.runs.as_deref(), &numbers.r#where)?, &value.each)? {
            named.keys.push(name);
            named.numbers.push(self.number(value, value, points)?);
        }
        Ok(named)
    }

    /// One number of several points, in the way of a value or of what it does `first`.
    fn number(&self, value: &ValueOf, way: &ValueOf, points: Vec<&Point>) -> Result<f64, BadFigure> {
        let Numbers { take, along, .. } = &way.numbers_of;
        let of_point = |point: &Point| -> Result<(f64, f64), BadFigure> {
            let each = self.estimate(&value.numbers_of, point)?;
            let seeds: Vec<(f64, f64)> = (0..).map(f64::from).zip(each.each().iter().copied()).collect();
            Ok((place(point, along)?, value.of_seeds.of(&seeds)))
        };
        let each: Vec<(f64, f64)> = match &way.first {
            None => points.into_iter().map(of_point).collect::<Result<_, _>>()?,
            Some(first) => {
                let parts = grouped(points, &first.each)?.into_iter();
                let of_part = |(_, part): (String, Vec<&Point>)| {
                    Ok::<_, BadFigure>((place(part[0], along)?, self.number(value, first, part)?))
                };
                parts.map(of_part).collect::<Result<_, _>>()?
            }
        };
        Ok(taken(*take, &each, along.is_some()))
    }
}

pub fn place(point: &Point, along: &Option<String>) -> Result<f64, BadFigure> {
    along.as_ref().map_or(Ok(0.0), |axis| Ok(key(&point.keys, axis)?.number.unwrap_or(f64::NAN)))
}

/// Points by the values of some axes, in the order in which these come.
pub fn grouped<'a>(points: Vec<&'a Point>, axes: &[String]) -> Result<Vec<(String, Vec<&'a Point>)>, BadFigure> {
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
pub fn combinations(points: Vec<&Point>, axes: &[String]) -> Result<Vec<Keys>, BadFigure> {
    let of = |point: &Point| axes.iter().map(|axis| (axis.clone(), point.keys[axis].clone())).collect();
    Ok(grouped(points, axes)?.iter().map(|(_, group)| of(group[0])).collect())
}

/// One number of many; of several at one place along the axis the mean counts.
fn taken(take: Take, points: &[(f64, f64)], is_along: bool) -> f64 {
    if !is_along {
        return take.of(points);
    }
    let mut places: Vec<f64> = points.iter().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mean = |place: f64| {
        let at: Vec<(f64, f64)> = points.iter().filter(|point| point.0 == place).copied().collect();
        (place, Take::default().of(&at))
    };
    take.of(&places.into_iter().map(mean).collect::<Vec<_>>())
}

/// A text in which `{axis}` stands for the value of an axis.
pub fn replaced(text: &str, keys: &Keys) -> String {
    keys.iter().fold(text.to_owned(), |text, (axis, key)| text.replace(&format!("{{{axis}}}"), &key.text))
}

/// The same text, in which no other braces may stand.
pub fn named(text: &str, keys: &Keys) -> Result<String, BadFigure> {
    let replaced = replaced(text, keys);
    let Some((_, rest)) = replaced.split_once('{') else { return Ok(replaced) };
    let (axis, known) = (rest.split('}').next().unwrap_or(rest), keys.keys().map(String::as_str));
    let near = did_you_mean(axis, known);
    Err(BadFigure(format!("`{text}`: braces stand for an axis that has one value here, and {axis} is none{near}")))
}

/// A text of all of some points. Where a form has none, it is nowhere shown, and stays as it is.
pub fn titled(text: &str, points: &[&Point]) -> Result<String, BadFigure> {
    let Some(first) = points.first() else { return Ok(text.to_owned()) };
    let is_common = |(axis, key): &(&String, &Key)| points.iter().all(|point| point.keys.get(*axis) == Some(*key));
    let common = first.keys.iter().filter(is_common).map(|(axis, key)| (axis.clone(), key.clone()));
    named(text, &common.collect())
}

/// What a name stands for at a point, with one seed.
fn measured(point: &Point, beside: Option<&Point>, seed: usize, name: &str) -> Result<f64, BadFigure> {
    let run = |runs: &Runs| -> Option<std::sync::Arc<Measurement>> { runs.0.get(seed).cloned() };
    let of = |runs: &Runs, name: &str| run(runs).map_or(Ok(f64::NAN), |run| measures::value(&run, name));
    if let Some(name) = name.strip_prefix("matched_") {
        let both = point.reference.as_ref().and_then(run).zip(run(&point.runs));
        return both.map_or(Ok(f64::NAN), |(reference, run)| measures::matched(&run, &reference, name));
    }
    if name == "flow.slots_per_peer" {
        let Some(FlowChoice::Mailbox { slots_per_peer, .. }) = point.flow else { return Ok(0.0) };
        return Ok(slots_per_peer.into());
    }
    if name == "flow.pool_slots" {
        return Ok(match point.flow {
            Some(FlowChoice::Posted { scheme, buffers, .. }) if scheme.lends().is_pool_of_slots() => {
                buffers.pool_slots.into()
            }
            _ => 0.0,
        });
    }
    if name == "seeds" {
        return Ok(point.runs.0.len() as f64);
    }
    if let Some(axis) = name.strip_prefix("axis.") {
        return Ok(key(&point.keys, axis)?.number.unwrap_or(f64::NAN));
    }
    if let Some(name) = name.strip_prefix("beside.") {
        let missing =
            || BadFigure(format!("`beside.{name}`: say which point that is with beside = {{ AXIS = VALUE }}"));
        return measured(beside.ok_or_else(missing)?, None, seed, name);
    }
    if let Some(name) = name.strip_prefix("reference.") {
        let missing = || BadFigure(format!("`reference.{name}`: the runs have no table called reference"));
        return of(point.reference.as_ref().ok_or_else(missing)?, name);
    }
    if point.is_computed {
        return Ok(key(&point.keys, name)?.number.unwrap_or(f64::NAN));
    }
    match measures::SHORT.iter().find(|(short, _)| *short == name) {
        Some((_, whole)) => expression::number(whole, &|name| measured(point, beside, seed, name)),
        None => of(&point.runs, name),
    }
}

/// The abscissa of a point: arithmetic over its axes.
pub fn abscissa(point: &Point, x: &str) -> Result<f64, BadFigure> {
    expression::number(x, &|axis| {
        let key = key(&point.keys, axis)?;
        key.number.ok_or_else(|| BadFigure(format!("{axis} = {} is no number", key.text)))
    })
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
        let by_runs = BTreeMap::from([("all".to_owned(), each.iter().map(point).collect())]);
        Points { by_runs, scale: Scale::Full, seeds: 1 }
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
