//! Pictures of figures as SVG: `look.rs` says how a series is drawn, `axis.rs` where numbers are; here are caption,
//! names of the series, panels with curves, and bars.

mod axis;
mod look;

use std::fmt::Write;

use super::text::number;
use crate::report::{Figure, Point, Series, SeriesKind};
use axis::Axis;
use look::Look;

const MARGIN: f64 = 14.0;
/// Width of the piece of line before the name of a series.
const SAMPLE_WIDTH: f64 = 34.0;
/// Lines of a panel that are nowhere further apart, in percent, do not differ.
const APART_LEAST: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn middle(&self) -> (f64, f64) {
        ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0)
    }
}

#[derive(Default)]
struct Drawing(String);

impl Drawing {
    /// A text that begins, has its middle or ends at a place (`anchor`: `start`, `middle`, `end`).
    fn text(&mut self, place: (f64, f64), size: u32, anchor: &str, text: &str) {
        self.turned(place, size, anchor, "", text);
    }

    fn turned(&mut self, (x, y): (f64, f64), size: u32, anchor: &str, more: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{more}>{text}</text>"
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let points = look::points(&[from, to]);
        let _ = writeln!(self.0, "<polyline points=\"{points}\" stroke=\"{colour}\"/>");
    }

    fn across(&mut self, axis: &Axis, area: Area) {
        for (tick, label) in &axis.ticks {
            let x = axis.place(*tick, area.left, area.right);
            self.line((x, area.top), (x, area.bottom), "#ddd");
            self.text((x, area.bottom + 16.0), 12, "middle", label);
        }
        self.line((area.left, area.bottom), (area.right, area.bottom), "#000");
        self.text((area.middle().0, area.bottom + 36.0), 14, "middle", &axis.title);
    }

    fn upwards(&mut self, axis: &Axis, area: Area) {
        for (tick, label) in &axis.ticks {
            let y = axis.place(*tick, area.bottom, area.top);
            self.line((area.left, y), (area.right, y), "#ddd");
            self.text((area.left - 6.0, y + 4.0), 12, "end", label);
        }
        self.line((area.left, area.top), (area.left, area.bottom), "#000");
        let (x, y) = (area.left - 50.0, area.middle().1);
        self.turned((x, y), 14, "middle", &format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""), &axis.title);
    }

    /// A bar of the `nth` series, paler behind the first, so that colour is not all that tells them apart.
    fn bar(&mut self, look: &Look, nth: usize, (left, right): (f64, f64), (top, bottom): (f64, f64)) {
        let (x, width, height) = (left.min(right), (right - left).abs(), bottom - top);
        let (colour, opacity) = (look.colour(), if nth == 0 { "1" } else { "0.4" });
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\" \
             fill-opacity=\"{opacity}\" stroke=\"{colour}\"/>"
        );
    }
}

/// A figure as SVG, with a title above it, and below that how it was made.
pub fn drawn(figure: &Figure, title: &str, note: &str) -> String {
    let looks = look::looks(figure);
    let (panels, left_out) = panels(figure);
    let columns = if panels.len() < 4 { panels.len().max(1) } else { 2 };
    let is_divided = panels.len() > 1 && figure.categories.is_empty();
    let width = if is_divided { 100.0 + 420.0 * columns as f64 } else { 900.0 };
    let mut drawing = Drawing::default();
    drawing.text((MARGIN, MARGIN + 16.0), 19, "start", title);
    let mut top = MARGIN + 38.0;
    let not_drawn = format!("not drawn, because lines differ by less than {APART_LEAST} %: {}", left_out.join(", "));
    for line in [note, &not_drawn].iter().take(if left_out.is_empty() { 1 } else { 2 }) {
        drawing.turned((MARGIN, top), 13, "start", " fill=\"#5a5a5a\"", line);
        top += 17.0;
    }
    let top = names(&mut drawing, figure, &looks, width, top);
    let bottom = if figure.categories.is_empty() {
        let (wide, high) = ((width - 2.0 * MARGIN) / columns as f64, if is_divided { 340.0 } else { 480.0 });
        for (nth, panel) in panels.iter().enumerate() {
            let (left, top) = (MARGIN + (nth % columns) as f64 * wide, top + (nth / columns) as f64 * high);
            let (right, bottom) = (left + wide - 14.0, top + high - 46.0);
            let area = Area { left: left + 62.0, top: top + 24.0, right, bottom };
            curves(&mut drawing, figure, panel, &looks, area);
        }
        top + panels.len().div_ceil(columns).max(1) as f64 * high
    } else {
        let bottom = top + 36.0 * figure.categories.len() as f64;
        bars(&mut drawing, figure, &looks, Area { left: 124.0, top: top + 4.0, right: width - 24.0, bottom });
        bottom + 44.0
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{bottom:.0}\" \
         viewBox=\"0 0 {width} {bottom:.0}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
        drawing.0
    )
}

/// The panels that are drawn, those of all or of a mean first; and those whose lines do not differ.
fn panels(figure: &Figure) -> (Vec<&str>, Vec<&str>) {
    let mut panels: Vec<&str> = Vec::new();
    for series in &figure.series {
        if !panels.contains(&series.panel.as_str()) {
            panels.push(&series.panel);
        }
    }
    panels.sort_by_key(|panel| !(panel.starts_with("all") || panel.starts_with("mean")));
    let (flat, drawn): (Vec<&str>, Vec<&str>) = panels.iter().partition(|panel| is_flat(figure, panel));
    if drawn.is_empty() { (panels, Vec::new()) } else { (drawn, flat) }
}

/// Whether a panel has several curves, and they are alike wherever two of them have a point.
fn is_flat(figure: &Figure, panel: &str) -> bool {
    let series = || figure.series.iter().filter(|series| series.panel == panel);
    let is_alike = |x: f64| {
        let (least, most) = extremes(series().filter_map(|series| series.at(x)));
        most - least <= APART_LEAST / 100.0 * least.abs()
    };
    series().count() > 1 && series().flat_map(|series| &series.points).all(|point| is_alike(point.x))
}

/// The names of the series, each behind a piece of its line. Returns where they end.
fn names(drawing: &mut Drawing, figure: &Figure, looks: &[(&str, Look)], width: f64, top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top + 4.0);
    for (name, look) in looks {
        let wide = SAMPLE_WIDTH + 6.0 + 7.6 * name.chars().count() as f64;
        if x > MARGIN && x + wide > width - MARGIN {
            (x, y) = (MARGIN, y + 20.0);
        }
        if figure.categories.is_empty() || look.dashes.is_none() {
            drawing.0.push_str(&look.line(&[(x, y), (x + SAMPLE_WIDTH, y)]));
            drawing.0.push_str(&look.mark((x + SAMPLE_WIDTH / 2.0, y)));
        } else {
            let nth = found(figure).iter().position(|series| series.name == *name).unwrap_or(0);
            drawing.bar(look, nth, (x, x + SAMPLE_WIDTH), (y - 6.0, y + 6.0));
        }
        drawing.text((x + SAMPLE_WIDTH + 6.0, y + 4.5), 13, "start", name);
        x += wide + 20.0;
    }
    y + 14.0
}

fn look_of<'a>(looks: &'a [(&str, Look)], series: &Series) -> Option<&'a Look> {
    looks.iter().find(|(name, _)| *name == series.name).map(|(_, look)| look)
}

fn curves(drawing: &mut Drawing, figure: &Figure, panel: &str, looks: &[(&str, Look)], area: Area) {
    let (x, y) = axes(figure);
    drawing.text((area.middle().0, area.top - 8.0), 14, "middle", panel);
    drawing.across(&x, area);
    drawing.upwards(&y, area);
    let place = |at_x: f64, at_y: f64| (x.place(at_x, area.left, area.right), y.place(at_y, area.bottom, area.top));
    let of_panel = figure.series.iter().filter(|series| series.panel == panel);
    let series: Vec<_> = of_panel.filter_map(|series| Some((series, look_of(looks, series)?))).collect();
    // All bands first, then all lines, then all markers: nothing of a curve is hidden below another one's band.
    for (series, look) in &series {
        band(drawing, series, look, &place);
    }
    for (series, look) in &series {
        let places: Vec<(f64, f64)> = series.points.iter().map(|point| place(point.x, point.y)).collect();
        drawing.0.push_str(&look.line(&places));
    }
    let (ours, papers): (Vec<_>, Vec<_>) = series.iter().partition(|(_, look)| look.dashes.is_some());
    for (series, look) in ours.into_iter().chain(papers) {
        // Where points lie as close as pixels, markers would hide the line.
        let every = series.points.len().div_ceil(40).max(1);
        for point in series.points.iter().step_by(every) {
            drawing.0.push_str(&look.mark(place(point.x, point.y)));
        }
    }
}

/// How far the points of a curve spread: a band, or lines where there is one point or no curve.
fn band(drawing: &mut Drawing, series: &Series, look: &Look, place: &dyn Fn(f64, f64) -> (f64, f64)) {
    let ranges =
        series.points.iter().filter_map(|point| Some((place(point.x, point.range?.0), place(point.x, point.range?.1))));
    let (lower, upper): (Vec<_>, Vec<_>) = ranges.unzip();
    if look.dashes.is_none() || lower.len() == 1 {
        lower.into_iter().zip(upper).for_each(|(least, most)| drawing.line(least, most, &look.colour()));
    } else if lower != upper {
        let around: Vec<(f64, f64)> = lower.into_iter().chain(upper.into_iter().rev()).collect();
        let (points, colour) = (look::points(&around), look.colour());
        let _ = writeln!(drawing.0, "<polygon points=\"{points}\" fill=\"{colour}\" fill-opacity=\"0.16\"/>");
    }
}

/// The axes of all panels of a figure. They are logarithmic where the abscissas span more than two decades in growing
/// steps, and nothing is zero; multiples are, where they span more than one.
fn axes(figure: &Figure) -> (Axis, Axis) {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let (x, y) = (extremes(points().map(|point| point.x)), extremes(points().map(|point| point.y)));
    let mut drawn: Vec<f64> = points().map(|point| point.x).collect();
    drawn.sort_by(f64::total_cmp);
    drawn.dedup();
    let longest = figure.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let grows = x.1 > (longest + 1) as f64 * x.0 && x.1 > 100.0 * x.0;
    let is_logarithmic = grows && x.0 <= x.1 && x.0 > 0.0 && y.0 > 0.0;
    let are_multiples = figure.y_axis.contains("(1: ") && y.0 > 0.0 && y.1 > 10.0 * y.0;
    let wide = |(low, high): (f64, f64)| (low * 0.8, high * 1.25);
    let across = if is_logarithmic { wide(x) } else { span(x, 0.03) };
    let upwards = if is_logarithmic || are_multiples { wide(y) } else { borders(figure) };
    (
        Axis::new(&figure.x_axis, across, is_logarithmic, &drawn),
        Axis::new(&figure.y_axis, upwards, is_logarithmic || are_multiples, &[]),
    )
}

/// The least and the most of some numbers. If there are none, the first is larger than the second.
fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

fn span((low, high): (f64, f64), room: f64) -> (f64, f64) {
    if low > high {
        return (0.0, 1.0);
    }
    let margin = ((high - low) * room).max(high.abs() * 1e-3).max(1e-9);
    (low - margin, high + margin)
}

/// Borders of the values: overheads and shares are read from zero on.
fn borders(figure: &Figure) -> (f64, f64) {
    let reach =
        |point: &Point| point.range.map_or([point.y; 2], |(least, most)| [least.min(point.y), most.max(point.y)]);
    let least_and_most = extremes(figure.series.iter().flat_map(|series| &series.points).flat_map(reach));
    let (low, high) = span(least_and_most, 0.06);
    (if least_and_most.0 >= 0.0 { 0.0 } else { low }, high)
}

fn found(figure: &Figure) -> Vec<&Series> {
    figure.series.iter().filter(|series| series.kind == SeriesKind::Found).collect()
}

/// Horizontal bars for each category, because their names do not fit below a horizontal axis.
fn bars(drawing: &mut Drawing, figure: &Figure, looks: &[(&str, Look)], area: Area) {
    let (low, high) = borders(figure);
    // Room for the values behind the bars.
    let axis = Axis::new(&figure.y_axis, (low, high + 0.08 * (high - low)), false, &[]);
    drawing.across(&axis, area);
    let found = found(figure);
    let row = (area.bottom - area.top) / figure.categories.len() as f64;
    let height = 0.8 * row / found.len().max(1) as f64;
    let at = |value: f64| axis.place(value, area.left, area.right);
    for (nth, category) in figure.categories.iter().enumerate() {
        drawing.text((area.left - 8.0, area.top + row * (nth as f64 + 0.5) + 4.0), 12, "end", category);
    }
    for (nth, series) in found.iter().enumerate() {
        let Some(look) = look_of(looks, series) else { continue };
        for point in &series.points {
            let y = area.top + row * (point.x + 0.1) + height * (nth as f64 + 0.5);
            drawing.bar(look, nth, (at(0.0), at(point.y)), (y - 0.46 * height, y + 0.46 * height));
            let (least, most) = point.range.unwrap_or((point.y, point.y));
            drawing.line((at(least), y), (at(most), y), "#000");
            drawing.text((at(point.y.max(most).max(0.0)) + 4.0, y + 4.0), 11, "start", &number(point.y));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(panels: &[(&str, f64)]) -> Figure {
        let both = |(panel, factor): &(&str, f64)| {
            let of = |name: &str, factor: f64| {
                let series = Series::new(name, [(8.0, factor), (64.0, 1.0)]);
                Series { panel: (*panel).to_owned(), ..series }
            };
            [of("static", 1.0), of("dynamic", *factor)]
        };
        Figure { series: panels.iter().flat_map(both).collect(), y_axis: "slots".to_owned(), ..Figure::default() }
    }

    #[test]
    fn means_come_first_and_panels_without_a_difference_are_named_and_not_drawn() {
        let figure = figure(&[("LU", 3.0), ("CG", 1.01), ("mean of all", 2.0)]);
        assert_eq!(panels(&figure), (vec!["mean of all", "LU"], vec!["CG"]));
        let svg = drawn(&figure, "A < B", "full size");
        assert!(svg.contains("A &lt; B") && svg.contains("less than 2 %: CG</text>"), "{svg}");
        assert_eq!(svg.matches(">static</text>").count(), 1, "one name for all panels");
    }

    #[test]
    fn a_figure_whose_panels_are_all_alike_is_drawn() {
        assert_eq!(panels(&figure(&[("LU", 1.0), ("CG", 1.0)])), (vec!["LU", "CG"], vec![]));
    }
}
