//! A group of horizontal bars for each category, with their values, because the names do not fit below a horizontal
//! axis.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::look::{Drawn, Look};
use super::{Area, FONT, Result, SAMPLE_WIDTH, borders, label, look_of};
use crate::report::{Figure, Series, SeriesKind};

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

/// The series that are bars.
fn found(figure: &Figure) -> Vec<&Series> {
    figure.series.iter().filter(|series| series.kind == SeriesKind::Found).collect()
}

/// A bar of the `index`-th series. The first is filled; the others are paler with a border, so that colour is not all
/// that tells them apart.
fn bar<B: DrawingBackend>(area: &Area<B>, look: Look, index: usize, corners: [(i32, i32); 2]) -> Drawn<B> {
    let inside = if index == 0 { look.colour.filled() } else { look.colour.mix(0.4).filled() };
    area.draw(&Rectangle::new(corners, inside))?;
    area.draw(&Rectangle::new(corners, look.colour.stroke_width(1)))
}

/// A small bar to stand before the name of a series.
pub(super) fn sample<B: DrawingBackend>(
    figure: &Figure,
    looks: &[(&str, Look)],
    look: Look,
    area: &Area<B>,
    (x, y): (i32, i32),
) -> Result<()>
where
    B::ErrorType: 'static,
{
    if look.dashes.is_none() {
        return Ok(look.mark(area, (x + SAMPLE_WIDTH / 2, y))?);
    }
    let index = found(figure).iter().position(|series| look_of(looks, &series.name) == Some(look)).unwrap_or(0);
    Ok(bar(area, look, index, [(x, y - 6), (x + SAMPLE_WIDTH, y + 6)])?)
}

/// Draws the bars in `body`, which is a part of `area`. The paper's own values are marks on the bars.
pub(super) fn draw<B: DrawingBackend>(
    figure: &Figure,
    looks: &[(&str, Look)],
    area: &Area<B>,
    body: &Area<B>,
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let (low, high) = borders(figure);
    // Room for the values behind the bars.
    let high = high + 0.08 * (high - low);
    let mut builder = ChartBuilder::on(body);
    builder.margin(10).margin_right(16).x_label_area_size(44).y_label_area_size(110);
    let mut chart = builder.build_cartesian_2d(low..high, Rows(figure.categories.clone()))?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(&figure.y_axis).axis_desc_style((FONT, 14)).label_style((FONT, 12)).light_line_style(WHITE);
    mesh.x_label_formatter(&label).disable_y_mesh().draw()?;
    let found = found(figure);
    let height = 0.8 / found.len().max(1) as f64;
    let middle = |row: f64, index: usize| row - 0.4 + height * (index as f64 + 0.5);
    let text = TextStyle::from((FONT, 11).into_font()).pos(Pos::new(HPos::Left, VPos::Center));
    for (index, series) in found.iter().enumerate() {
        let Some(look) = look_of(looks, &series.name) else { continue };
        for point in &series.points {
            let place = |x: f64, y: f64| chart.backend_coord(&(x, y));
            let row = middle(point.x, index);
            let corners = [place(0.0, row - 0.46 * height), place(point.y, row + 0.46 * height)];
            bar(area, look, index, corners)?;
            let mut end = point.y.max(0.0);
            if let Some((least, most)) = point.range {
                area.draw(&PathElement::new([place(least, row), place(most, row)], BLACK.stroke_width(1)))?;
                end = end.max(most);
            }
            let (x, y) = place(end, row);
            area.draw(&Text::new(label(&point.y), (x + 4, y), text.clone()))?;
        }
    }
    for series in figure.series.iter().filter(|series| series.kind == SeriesKind::Paper) {
        let beside = found.iter().position(|other| other.scheme == series.scheme).unwrap_or(0);
        let Some(look) = look_of(looks, &series.name) else { continue };
        for point in &series.points {
            look.mark(area, chart.backend_coord(&(point.y, middle(point.x, beside))))?;
        }
    }
    Ok(())
}
