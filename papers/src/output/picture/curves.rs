//! Curves over numbers, in one panel or several beside each other with the same axes.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::look::Look;
use super::{Area, FONT, Range, Result, borders, extremes, grid, label, look_of, panels, points, span};
use crate::report::{Figure, Series};

/// How dense the colour of a band is.
const BAND: f64 = 0.16;

/// Borders for logarithmic axes, where the abscissas span more than two decades in growing steps, and nothing is zero.
fn logarithmic_borders(figure: &Figure) -> Option<(Range, Range)> {
    let (x, y) = (extremes(points(figure).map(|point| point.x)), extremes(points(figure).map(|point| point.y)));
    let longest = figure.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let grows = x.1 > (longest + 1) as f64 * x.0;
    let suits = grows && x.0 <= x.1 && x.0 > 0.0 && y.0 > 0.0 && x.1 > 100.0 * x.0;
    suits.then_some(((x.0 * 0.8, x.1 * 1.25), (y.0 * 0.8, y.1 * 1.25)))
}

/// An axis of slots, which are read best in steps of 8.
struct Slots(RangedCoordf64);

impl Slots {
    /// `None` where the axis has other numbers.
    fn of(figure: &Figure, (low, high): Range) -> Option<Self> {
        let suits = figure.x_axis.contains("slots") && high - low < 100.0;
        suits.then(|| Slots((low..high).into()))
    }
}

impl Ranged for Slots {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, slots: &f64, limits: (i32, i32)) -> i32 {
        self.0.map(slots, limits)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let range = self.range();
        (0..=16).map(|eighth| f64::from(8 * eighth)).filter(|tick| range.contains(tick)).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.0.range()
    }
}

impl ValueFormatter<f64> for Slots {
    fn format(slots: &f64) -> String {
        label(slots)
    }
}

/// Draws the panels in `body`, which is a part of `area`.
pub(super) fn draw<B: DrawingBackend>(
    figure: &Figure,
    looks: &[(&str, Look)],
    area: &Area<B>,
    body: &Area<B>,
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let (x, y) = (span(points(figure).map(|point| point.x), 0.03), borders(figure));
    for (panel, place) in panels(figure).into_iter().zip(body.split_evenly(grid(figure))) {
        let series: Vec<&Series> = figure.series.iter().filter(|series| series.panel == panel).collect();
        let mut builder = ChartBuilder::on(&place);
        builder.margin(10).margin_right(16).x_label_area_size(44).y_label_area_size(68);
        if !panel.is_empty() {
            builder.caption(panel, (FONT, 14));
        }
        if let Some((x, y)) = logarithmic_borders(figure) {
            let mut chart = builder.build_cartesian_2d((x.0..x.1).log_scale(), (y.0..y.1).log_scale())?;
            mesh(&mut chart, figure)?;
            curves(&chart, &series, looks, area)?;
        } else if let Some(slots) = Slots::of(figure, x) {
            let mut chart = builder.build_cartesian_2d(slots, y.0..y.1)?;
            mesh(&mut chart, figure)?;
            curves(&chart, &series, looks, area)?;
        } else {
            let mut chart = builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?;
            mesh(&mut chart, figure)?;
            curves(&chart, &series, looks, area)?;
        }
    }
    Ok(())
}

fn mesh<'a, B, X, Y>(chart: &mut ChartContext<'a, B, Cartesian2d<X, Y>>, figure: &Figure) -> Result<()>
where
    B: DrawingBackend + 'a,
    B::ErrorType: 'static,
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut style = chart.configure_mesh();
    style.x_desc(&figure.x_axis).y_desc(&figure.y_axis).axis_desc_style((FONT, 14)).label_style((FONT, 12));
    style.x_label_formatter(&label).y_label_formatter(&label).light_line_style(WHITE).draw()?;
    Ok(())
}

/// All bands first, then all lines, then all markers: nothing of a curve is hidden below another one's band.
fn curves<'a, B, X, Y>(
    chart: &ChartContext<'a, B, Cartesian2d<X, Y>>,
    series: &[&Series],
    looks: &[(&str, Look)],
    area: &Area<B>,
) -> Result<()>
where
    B: DrawingBackend + 'a,
    B::ErrorType: 'static,
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let place = |x: f64, y: f64| chart.backend_coord(&(x, y));
    let looked = || series.iter().filter_map(|series| Some((series, look_of(looks, &series.name)?)));
    for (series, look) in looked() {
        let ranges = || series.points.iter().filter_map(|point| Some((point.x, point.range?)));
        let lower = ranges().map(|(x, (least, _))| place(x, least));
        let band: Vec<(i32, i32)> = lower.chain(ranges().rev().map(|(x, (_, most))| place(x, most))).collect();
        let has_area = ranges().any(|(_, (least, most))| most > least);
        if look.dashes.is_none() || ranges().count() == 1 {
            for (x, (least, most)) in ranges() {
                area.draw(&PathElement::new([place(x, least), place(x, most)], look.colour.stroke_width(1)))?;
            }
        } else if has_area {
            area.draw(&Polygon::new(band, look.colour.mix(BAND).filled()))?;
        }
    }
    for (series, look) in looked() {
        let line: Vec<(i32, i32)> = series.points.iter().map(|point| place(point.x, point.y)).collect();
        look.line(area, &line)?;
    }
    let papers_last = looked().filter(|(_, look)| look.dashes.is_some());
    for (series, look) in papers_last.chain(looked().filter(|(_, look)| look.dashes.is_none())) {
        // Where points lie as close as pixels, markers would hide the line.
        let every = series.points.len().div_ceil(40).max(1);
        for point in series.points.iter().step_by(every) {
            look.mark(area, place(point.x, point.y))?;
        }
    }
    Ok(())
}
