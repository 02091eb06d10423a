//! A figure's pictures.

use tidegate_sim::{Estimate, FlowChoice};

use super::BadFigure;
use super::definition::{PictureOf, SeriesOf};
use super::points::{Point, Points, abscissa, combinations, grouped, named, titled};
use super::select::{Keys, both, key, selecting};
use crate::report::{self, Figure, REFERENCE, Series, SeriesKind};

/// The picture with its curves, of the runs of that name if they are not named otherwise.
pub fn drawn(picture: &PictureOf, runs: Option<&String>, points: &Points) -> Result<Figure, BadFigure> {
    let mut repeated: Vec<SeriesOf> = picture.series.clone();
    repeated.iter_mut().filter(|_| runs.is_some()).for_each(|of| of.numbers.runs = runs.cloned());
    let measured = |of: &&SeriesOf| !of.numbers.of.is_empty();
    if !picture.series_by.is_empty() {
        let mut places = Vec::new();
        for of in repeated.iter().filter(measured) {
            places.extend(points.places(of.numbers.runs.as_deref(), &of.numbers.r#where)?);
        }
        let groups = combinations(places, &picture.series_by)?;
        let of_group = |group: &Keys| {
            let mut series = repeated.clone();
            series.iter_mut().for_each(|of| of.numbers.r#where = both(&of.numbers.r#where, &selecting(group)));
            series
        };
        repeated = groups.iter().flat_map(of_group).collect();
    }
    let (mut series, mut all, mut categories) = (Vec::new(), Vec::new(), Vec::new());
    for of in &repeated {
        if measured(&of) {
            all.extend(points.chosen(of.numbers.runs.as_deref(), &of.numbers.r#where)?);
        }
        let found = curves(of, points, picture.bars.then_some(&mut categories));
        series.extend(found.map_err(|error| BadFigure(format!("series `{}`: {error}", of.name)))?);
    }
    if !picture.mean_panel.is_empty() {
        series.splice(0..0, means(&series, &picture.mean_panel));
    }
    let text = |text: &str| {
        if repeated.iter().any(|of| measured(&of)) { titled(text, &all) } else { named(text, &Keys::new()) }
    };
    Ok(Figure {
        name: text(&picture.name)?,
        title: text(&picture.title)?,
        x_axis: text(&picture.x_axis)?,
        y_axis: text(&picture.y_axis)?,
        series,
        categories,
        is_computed: !all.is_empty() && all.iter().all(|point| point.is_computed),
        ..Figure::default()
    })
}

/// The geometric means of curves of one name over all panels, at each abscissa where all of these have a point.
fn means(series: &[Series], panel: &str) -> Vec<Series> {
    let (mut means, mut panels): (Vec<Series>, Vec<&str>) = (Vec::new(), Vec::new());
    series.iter().filter(|of| of.kind == SeriesKind::Found).for_each(|of| panels.push(&of.panel));
    panels.sort_unstable();
    panels.dedup();
    for first in series {
        if means.iter().any(|known| known.name == first.name) {
            continue;
        }
        let alike: Vec<&Series> = series.iter().filter(|other| other.name == first.name).collect();
        if alike.len() < panels.len() {
            continue;
        }
        let mean = |point: &report::Point| {
            let each: Option<Vec<f64>> = alike.iter().map(|series| series.at(point.x)).collect();
            Some((point.x, (each?.iter().map(|y| y.ln()).sum::<f64>() / alike.len() as f64).exp()))
        };
        let points = Series::new("", first.points.iter().filter_map(mean)).points;
        means.push(Series { points, panel: panel.to_owned(), ..first.clone() });
    }
    means
}

fn curves(of: &SeriesOf, points: &Points, mut categories: Option<&mut Vec<String>>) -> Result<Vec<Series>, BadFigure> {
    let kind = match (&of.computed, of.bound) {
        (Some(_), _) => SeriesKind::Found,
        (None, false) => SeriesKind::Paper,
        (None, true) => SeriesKind::Bound,
    };
    let given: Vec<(f64, f64)> = match &of.computed {
        Some(function) => crate::special::curve(function, points)?,
        None => of.paper.iter().map(|[x, y]| (*x, *y)).collect(),
    };
    let given_in = |keys: &Keys| {
        let series = Series::new(named(&of.name, keys)?, given.iter().copied());
        Ok(Series { kind, panel: named(&of.panel, keys)?, scheme: of.scheme.clone(), ..series })
    };
    if !given.is_empty() && of.by.is_empty() {
        return Ok(vec![given_in(&Keys::new())?]);
    }
    let groups = grouped(points.places(of.numbers.runs.as_deref(), &of.numbers.r#where)?, &of.by)?;
    if !given.is_empty() {
        return groups.iter().map(|(_, group)| given_in(&group[0].keys)).collect();
    }
    let mut curves = Vec::new();
    for (_, group) in groups {
        let mut places: Vec<(f64, Vec<Estimate>)> = Vec::new();
        for point in group.iter().filter(|point| point.absent.is_none() && !(of.ended_only && point.is_cut())) {
            let x = match &mut categories {
                Some(categories) => category(&key(&point.keys, &of.x)?.text, categories),
                None => abscissa(point, &of.x)?,
            };
            let estimate = points.estimate(&of.numbers, point)?;
            match places.iter_mut().find(|place| place.0 == x) {
                Some(place) => place.1.push(estimate),
                None => places.push((x, vec![estimate])),
            }
        }
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let drawn = places.iter().map(|(x, each)| report::Point::of(*x, &Estimate::mean_of(each)));
        let keys = &group[0].keys;
        let mut series = Series { panel: named(&of.panel, keys)?, ..Series::of(named(&of.name, keys)?, drawn) };
        style(&mut series, of, &group);
        curves.push(series);
    }
    Ok(curves)
}

/// The place of a category, a new one if it has none yet.
fn category(text: &str, categories: &mut Vec<String>) -> f64 {
    let place = categories.iter().position(|known| known == text).unwrap_or_else(|| {
        categories.push(text.to_owned());
        categories.len() - 1
    });
    place as f64
}

fn style(series: &mut Series, of: &SeriesOf, group: &[&Point]) {
    let of_flow = |flow: FlowChoice| match flow {
        FlowChoice::Unlimited => (REFERENCE.to_owned(), false),
        FlowChoice::Mailbox { scheme, piggyback, .. } | FlowChoice::Posted { scheme, piggyback, .. } => {
            (scheme.to_string(), piggyback)
        }
    };
    let flows: Vec<(String, bool)> = group.iter().filter_map(|point| point.flow.map(of_flow)).collect();
    if let Some(flow) = flows.first().filter(|first| flows.iter().all(|flow| flow.0 == first.0)) {
        (series.scheme, series.piggyback) = flow.clone();
    }
    let wanted = of.scheme.trim_start_matches('-');
    if !of.scheme.is_empty() && series.scheme != wanted {
        (series.scheme, series.piggyback) = (wanted.to_owned(), false);
    }
    series.piggyback = of.piggyback.unwrap_or(series.piggyback);
}
