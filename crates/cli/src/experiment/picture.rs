//! Pictures of figures, as SVG and PNG, with plotters. The font is part of the program, so pictures are the same
//! everywhere.

use std::error::Error;
use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use tidegate_sim::experiment::{Figure, Point};

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 540);
const FONT: &str = "sans-serif";
/// Colours that people who do not tell red from green can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
    RGBColor(150, 110, 60),
];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn load_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let bytes = include_bytes!("../../assets/DejaVuSans-subset.ttf");
        for style in [FontStyle::Normal, FontStyle::Bold] {
            // This fails only if the bytes are no font; a test draws with them.
            let _ = register_font(FONT, style, bytes);
        }
    });
}

/// Writes `figure` to `path`, whose ending says which kind: `svg` or `png`.
///
/// # Errors
/// If the file cannot be written.
pub fn draw(figure: &Figure, note: &str, path: &Path) -> Result<()> {
    load_font();
    if path.extension().is_some_and(|ending| ending == "svg") {
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        draw_on(figure, note, &area)?;
        area.present()?;
    } else {
        let area = BitMapBackend::new(path, SIZE).into_drawing_area();
        draw_on(figure, note, &area)?;
        area.present()?;
    }
    Ok(())
}

/// The least and the most of some numbers. If there are none, the first is larger than the second.
fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|value| value.is_finite())
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// The least and the most of some numbers, with room around them.
fn span(values: impl Iterator<Item = f64>, room: f64) -> (f64, f64) {
    let (low, high) = extremes(values);
    if low > high {
        return (0.0, 1.0);
    }
    let margin = ((high - low) * room).max(high.abs() * 1e-3).max(1e-9);
    (low - margin, high + margin)
}

fn borders(figure: &Figure) -> ((f64, f64), (f64, f64)) {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let ends = |point: &Point| {
        [point.y, point.range.map_or(point.y, |range| range.0), point.range.map_or(point.y, |range| range.1)]
    };
    let (low, high) = span(points().flat_map(ends), 0.06);
    // Overheads and shares are read from zero on.
    let low = if low > -0.2 * high { low.min(0.0) } else { low };
    (span(points().map(|point| point.x), 0.02), (low, high))
}

/// Borders for logarithmic axes, where the abscissas span more than two decades and nothing is zero.
fn logarithmic_borders(figure: &Figure) -> Option<((f64, f64), (f64, f64))> {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let (x, y) = (extremes(points().map(|point| point.x)), extremes(points().map(|point| point.y)));
    let suits = x.0 <= x.1 && x.0 > 0.0 && y.0 > 0.0 && x.1 > 100.0 * x.0;
    suits.then_some(((x.0 * 0.8, x.1 * 1.25), (y.0 * 0.8, y.1 * 1.25)))
}

fn draw_on<B: DrawingBackend>(figure: &Figure, note: &str, area: &DrawingArea<B, Shift>) -> Result<()>
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE)?;
    let (x, y) = borders(figure);
    let logarithmic = logarithmic_borders(figure);
    let caption = if note.is_empty() { figure.title.clone() } else { format!("{} ({note})", figure.title) };
    let mut builder = ChartBuilder::on(area);
    builder.caption(caption, (FONT, 20)).margin(14).x_label_area_size(46).y_label_area_size(72);
    if !figure.categories.is_empty() {
        bars(&mut builder, figure, y)?;
    } else if let Some((x, y)) = logarithmic {
        let corner = free_corner(figure, x, y, f64::ln);
        let mut chart = builder.build_cartesian_2d((x.0..x.1).log_scale(), (y.0..y.1).log_scale())?;
        mesh(&mut chart.configure_mesh(), figure)?;
        lines(&mut chart, figure, corner)?;
    } else {
        let corner = free_corner(figure, x, y, |value| value);
        let mut chart = builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        mesh(&mut chart.configure_mesh(), figure)?;
        lines(&mut chart, figure, corner)?;
    }
    Ok(())
}

/// The corner that the lines cross least, for the names of the series; the upper right one if others are no better.
/// `x` and `y` are the borders, `scale` is that of both axes.
fn free_corner(figure: &Figure, x: (f64, f64), y: (f64, f64), scale: fn(f64) -> f64) -> SeriesLabelPosition {
    /// Number of parts into which a line between two points is divided to see where it runs.
    const STEPS: u32 = 16;
    use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
    let share = |value: f64, (low, high): (f64, f64)| (scale(value) - scale(low)) / (scale(high) - scale(low));
    let place = |point: &Point| (share(point.x, x), share(point.y, y));
    let spots: Vec<(f64, f64)> = figure
        .series
        .iter()
        .flat_map(|series| series.points.windows(2))
        .map(|pair| (place(&pair[0]), place(&pair[1])))
        .flat_map(|(from, to)| {
            (0..=STEPS).map(move |step| {
                let part = f64::from(step) / f64::from(STEPS);
                (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1))
            })
        })
        .collect();
    // About what a name takes, and the names one below the other.
    let (width, height) = (0.4, 0.06 + 0.045 * figure.series.len() as f64);
    let crossed = |is_right: bool, is_upper: bool| {
        let inside = |&&(x, y): &&(f64, f64)| {
            (if is_right { 1.0 - x } else { x }) < width && (if is_upper { 1.0 - y } else { y }) < height
        };
        spots.iter().filter(inside).count()
    };
    let corners =
        [(UpperRight, true, true), (UpperLeft, false, true), (LowerRight, true, false), (LowerLeft, false, false)];
    let corners = corners.map(|(corner, is_right, is_upper)| (corner, crossed(is_right, is_upper)));
    corners.into_iter().min_by_key(|(_, crossed)| *crossed).map_or(UpperRight, |(corner, _)| corner)
}

/// Categories, one below the other, with their names at the side: row 0 reaches from -0.5 to 0.5.
struct Rows(Vec<String>);

impl Ranged for Rows {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, row: &f64, (bottom, top): (i32, i32)) -> i32 {
        top + ((row + 0.5) / self.0.len() as f64 * f64::from(bottom - top)) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0..self.0.len()).map(|row| row as f64).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        -0.5..self.0.len() as f64 - 0.5
    }
}

impl ValueFormatter<f64> for Rows {
    fn format(row: &f64) -> String {
        label(row)
    }

    fn format_ext(&self, row: &f64) -> String {
        self.0.get(*row as usize).cloned().unwrap_or_default()
    }
}

/// A group of horizontal bars for each category, because the names do not fit below a horizontal axis.
fn bars<B>(builder: &mut ChartBuilder<'_, '_, B>, figure: &Figure, values: (f64, f64)) -> Result<()>
where
    B: DrawingBackend,
    B::ErrorType: 'static,
{
    let mut chart =
        builder.y_label_area_size(104).build_cartesian_2d(values.0..values.1, Rows(figure.categories.clone()))?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(&figure.y_axis).axis_desc_style((FONT, 15)).label_style((FONT, 13)).light_line_style(WHITE);
    mesh.x_label_formatter(&label).disable_y_mesh().draw()?;
    let height = 0.8 / figure.series.len().max(1) as f64;
    for (index, series) in figure.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let top = move |row: f64| row - 0.4 + height * index as f64;
        let bar =
            |point: &Point| Rectangle::new([(0.0, top(point.x)), (point.y, top(point.x) + height)], colour.filled());
        chart
            .draw_series(series.points.iter().map(bar))?
            .label(&series.name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], colour.filled()));
    }
    names_of_series(&mut chart, SeriesLabelPosition::UpperRight)
}

fn label(value: &f64) -> String {
    super::text::number(*value)
}

fn mesh<B, X, Y>(style: &mut plotters::chart::MeshStyle<'_, '_, X, Y, B>, figure: &Figure) -> Result<()>
where
    B: DrawingBackend,
    B::ErrorType: 'static,
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    style.x_desc(&figure.x_axis).y_desc(&figure.y_axis).axis_desc_style((FONT, 15)).label_style((FONT, 13));
    style.x_label_formatter(&label).y_label_formatter(&label).light_line_style(WHITE).draw()?;
    Ok(())
}

fn lines<'a, B, X, Y>(
    chart: &mut ChartContext<'a, B, Cartesian2d<X, Y>>,
    figure: &Figure,
    corner: SeriesLabelPosition,
) -> Result<()>
where
    B: DrawingBackend + 'a,
    B::ErrorType: 'static,
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (index, series) in figure.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let line = series.points.iter().map(|point| (point.x, point.y));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(&series.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)));
        let bars = series.points.iter().filter_map(|point| {
            let (least, most) = point.range?;
            Some(PathElement::new([(point.x, least), (point.x, most)], colour.mix(0.45).stroke_width(1)))
        });
        chart.draw_series(bars)?;
        chart.draw_series(series.points.iter().map(|point| Circle::new((point.x, point.y), 3, colour.filled())))?;
    }
    names_of_series(chart, corner)
}

fn names_of_series<'a, B, X, Y>(
    chart: &mut ChartContext<'a, B, Cartesian2d<X, Y>>,
    corner: SeriesLabelPosition,
) -> Result<()>
where
    B: DrawingBackend + 'a,
    B::ErrorType: 'static,
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    chart
        .configure_series_labels()
        .position(corner)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .label_font((FONT, 13))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::experiment::Series;

    #[test]
    fn names_stand_where_no_line_is() {
        let corner = |ys: [f64; 3]| {
            let points = [0.0, 5.0, 10.0].into_iter().zip(ys);
            let figure = Figure {
                name: String::new(),
                title: String::new(),
                x_axis: String::new(),
                y_axis: String::new(),
                series: vec![Series::new("", points)],
                categories: Vec::new(),
            };
            format!("{:?}", free_corner(&figure, (0.0, 10.0), (0.0, 10.0), |value| value))
        };
        assert_eq!(corner([9.0, 4.0, 1.0]), "UpperRight");
        assert_eq!(corner([1.0, 4.0, 9.9]), "UpperLeft");
        assert_eq!(corner([9.9, 9.9, 9.9]), "LowerRight");
        assert_eq!(corner([5.0, 5.0, 5.0]), "UpperRight");
    }
}
