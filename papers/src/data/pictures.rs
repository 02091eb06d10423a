//! A figure's pictures.

use std::collections::BTreeMap;

use tidegate_sim::{Estimate, FlowChoice};

use super::BadFigure;
use super::definition::{PictureOf, SeriesOf};
use super::points::{Point, Points, Slice, abscissa, combinations, common, grouped, key, named};
use super::select::{Key, both, selecting};
use crate::report::{self, AsPoint, Figure, REFERENCE, Series, SeriesKind, Spread};

/// The picture with its curves.
pub fn drawn(picture: &PictureOf, points: &Points) -> Result<Figure, BadFigure> {
    let mut categories = Vec::new();
    let (mut series, mut all) = (Vec::new(), Vec::new());
    let repeated = repeated(picture, points)?;
    for of in &repeated {
        if !of.of.is_empty() {
            all.extend(points.chosen(slice(of))?);
        }
        series.extend(
            curves(of, points, picture.bars.then_some(&mut categories))
                .map_err(|error| BadFigure(format!("picture {}, series \"{}\": {error}", picture.name, of.name)))?,
        );
    }
    let spread = if picture.series.iter().any(|of| of.extremes) { Spread::Extremes } else { Spread::default() };
    Ok(Figure {
        name: named(&picture.name, &common(&all)),
        title: named(&picture.title, &common(&all)),
        x_axis: picture.x_axis.clone(),
        y_axis: picture.y_axis.clone(),
        series,
        spread,
        categories,
        is_computed: !all.is_empty() && all.iter().all(|point| point.is_computed),
    })
}

/// The series, each of them once for each value of some axes.
fn repeated(picture: &PictureOf, points: &Points) -> Result<Vec<SeriesOf>, BadFigure> {
    if picture.series_by.is_empty() {
        return Ok(picture.series.clone());
    }
    let mut all = Vec::new();
    for of in picture.series.iter().filter(|of| !of.of.is_empty()) {
        all.extend(points.places(slice(of))?);
    }
    let groups = combinations(&all, &picture.series_by)?;
    let of_group = |group: &BTreeMap<String, Key>, of: &SeriesOf| SeriesOf {
        r#where: both(&of.r#where, &selecting(group)),
        ..of.clone()
    };
    Ok(groups.iter().flat_map(|group| picture.series.iter().map(move |of| of_group(group, of))).collect())
}

/// The points that a series is of.
fn slice(of: &SeriesOf) -> Slice<'_> {
    Slice { runs: of.runs.as_deref(), selection: &of.r#where, beside: &of.beside }
}

/// The curves that a series describes.
fn curves(of: &SeriesOf, points: &Points, mut categories: Option<&mut Vec<String>>) -> Result<Vec<Series>, BadFigure> {
    if let Some(function) = &of.computed {
        let found = crate::special::curve(function, points).map_err(BadFigure)?;
        return Ok(vec![Series::new(&of.name, found).in_panel(&of.panel)]);
    }
    let paper = || Series::paper(&of.name, &of.scheme, of.paper.iter().map(|[x, y]| (*x, *y)));
    if !of.paper.is_empty() && of.by.is_empty() {
        return Ok(vec![paper().in_panel(&of.panel)]);
    }
    let slice = slice(of);
    let groups = grouped(points.places(slice)?, &of.by)?;
    if !of.paper.is_empty() {
        let panels = groups.iter().map(|(_, group)| named(&of.panel, &group[0].keys));
        return Ok(panels.map(|panel| paper().in_panel(panel)).collect());
    }
    let mut curves = Vec::new();
    for (_, group) in groups {
        let mut places: Vec<(f64, Vec<Estimate>)> = Vec::new();
        for point in group.iter().filter(|point| point.absent.is_none() && !(of.ended_only && point.is_cut())) {
            let x = match &mut categories {
                Some(categories) => category(&key(&point.keys, &of.x)?.text, categories),
                None => abscissa(point, &of.x)?,
            };
            let estimate = points.estimate(slice, point, &of.of)?;
            match places.iter_mut().find(|place| place.0 == x) {
                Some(place) => place.1.push(estimate),
                None => places.push((x, vec![estimate])),
            }
        }
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let drawn = places.iter().map(|(x, each)| at(*x, each, of.extremes));
        let first = group[0];
        let mut series = Series::of(named(&of.name, &first.keys), drawn).in_panel(named(&of.panel, &first.keys));
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

/// A point of a curve, the mean of what stands at its place.
fn at(x: f64, each: &[Estimate], extremes: bool) -> report::Point {
    let mut point = Estimate::mean_of(each).point(x);
    if extremes {
        let means = each.iter().map(Estimate::mean);
        let bounds =
            means.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), mean| (least.min(mean), most.max(mean)));
        point.range = Some(bounds);
    }
    point
}

/// How a curve is drawn: as that of its scheme.
fn style(series: &mut Series, of: &SeriesOf, group: &[&Point]) {
    let of_flow = |flow: FlowChoice| match flow {
        FlowChoice::Unlimited => (REFERENCE.to_owned(), false),
        FlowChoice::Mailbox { scheme, piggyback, .. } | FlowChoice::Posted { scheme, piggyback, .. } => {
            (scheme.to_string(), piggyback)
        }
    };
    let mut flows = group.iter().filter_map(|point| point.flow.map(of_flow));
    if let Some((scheme, piggyback)) = flows.next()
        && flows.all(|other| other.0 == scheme)
    {
        (series.scheme, series.piggyback) = (scheme, piggyback);
    }
    match of.scheme.as_str() {
        "" => {}
        "-" => (series.scheme, series.piggyback) = (String::new(), false),
        scheme if series.scheme == scheme => {}
        scheme => (series.scheme, series.piggyback) = (scheme.to_owned(), false),
    }
    series.piggyback = of.piggyback.unwrap_or(series.piggyback);
    series.kind = SeriesKind::Found;
}
