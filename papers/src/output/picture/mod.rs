//! Pictures of figures, as SVG and PNG, with plotters: `look.rs` says how a series is drawn, `curves.rs` and `bars.rs`
//! draw them; here are the parts that both have: caption, names of the series, panels. The font is part of the program,
//! so pictures are the same everywhere.

mod bars;
mod curves;
mod look;

use std::error::Error;
use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use crate::report::{Figure, Point};
use look::Look;

const FONT: &str = "sans-serif";
/// Pixels around everything.
const MARGIN: i32 = 14;
/// Height of a line of names of series.
const NAMES_HEIGHT: i32 = 20;
/// Width of the piece of line before a name.
const SAMPLE_WIDTH: i32 = 34;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Area<B> = DrawingArea<B, Shift>;
/// The least and the most.
type Range = (f64, f64);

/// What stands above a picture.
#[derive(Clone, Debug, Default)]
pub struct Caption {
    /// What it shows, in large letters.
    pub title: String,
    /// How it was made, below that.
    pub note: String,
}

fn load_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let bytes = include_bytes!("../../../assets/DejaVuSans-subset.ttf");
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
pub fn draw(figure: &Figure, caption: &Caption, path: &Path) -> Result<()> {
    load_font();
    let size = size(figure);
    if path.extension().is_some_and(|ending| ending == "svg") {
        let area = SVGBackend::new(path, size).into_drawing_area();
        draw_on(figure, caption, &area)?;
        area.present()?;
    } else {
        let area = BitMapBackend::new(path, size).into_drawing_area();
        draw_on(figure, caption, &area)?;
        area.present()?;
    }
    Ok(())
}

/// The panels of a figure, in the order of its series; one without a name if it is not divided.
fn panels(figure: &Figure) -> Vec<&str> {
    let mut panels: Vec<&str> = Vec::new();
    for series in &figure.series {
        if !panels.contains(&series.panel.as_str()) {
            panels.push(&series.panel);
        }
    }
    panels
}

/// Rows and columns of panels.
fn grid(figure: &Figure) -> (usize, usize) {
    match panels(figure).len() {
        0 | 1 => (1, 1),
        count @ 2..=3 => (1, count),
        count => (count.div_ceil(2), 2),
    }
}

/// Width and height in pixels.
fn size(figure: &Figure) -> (u32, u32) {
    if !figure.categories.is_empty() {
        return (900, 150 + 36 * figure.categories.len() as u32);
    }
    match grid(figure) {
        (1, 1) => (900, 560),
        (rows, columns) => (100 + 420 * columns as u32, 140 + 340 * rows as u32),
    }
}

fn draw_on<B: DrawingBackend>(figure: &Figure, caption: &Caption, area: &Area<B>) -> Result<()>
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE)?;
    let looks = look::looks(figure);
    area.draw(&Text::new(caption.title.clone(), (MARGIN, MARGIN), (FONT, 19).into_font()))?;
    let grey = RGBColor(90, 90, 90);
    area.draw(&Text::new(caption.note.clone(), (MARGIN, MARGIN + 25), (FONT, 13).into_font().color(&grey)))?;
    let below = |top: i32| area.clone().split_vertically(top).1;
    if figure.categories.is_empty() {
        let line = |look: Look, (x, y): (i32, i32)| {
            look.line(area, &[(x, y), (x + SAMPLE_WIDTH, y)])?;
            Ok(look.mark(area, (x + SAMPLE_WIDTH / 2, y))?)
        };
        let top = names(area, &looks, MARGIN + 46, line)?;
        curves::draw(figure, &looks, area, &below(top))
    } else {
        let bar = |look: Look, (x, y): (i32, i32)| bars::sample(figure, &looks, look, area, (x, y));
        let top = names(area, &looks, MARGIN + 46, bar)?;
        bars::draw(figure, &looks, area, &below(top))
    }
}

/// The names of the series, from the height `y` on, each behind what `sample` draws of it. Returns where they end.
fn names<B: DrawingBackend>(
    area: &Area<B>,
    looks: &[(&str, Look)],
    y: i32,
    sample: impl Fn(Look, (i32, i32)) -> Result<()>,
) -> Result<i32>
where
    B::ErrorType: 'static,
{
    let style = TextStyle::from((FONT, 13).into_font()).pos(Pos::new(HPos::Left, VPos::Center));
    let right = area.dim_in_pixel().0 as i32 - MARGIN;
    let (mut x, mut y) = (MARGIN, y + NAMES_HEIGHT / 2);
    for (name, look) in looks {
        let width = SAMPLE_WIDTH + 6 + area.estimate_text_size(name, &style)?.0 as i32;
        if x > MARGIN && x + width > right {
            (x, y) = (MARGIN, y + NAMES_HEIGHT);
        }
        sample(*look, (x, y))?;
        area.draw(&Text::new((*name).to_owned(), (x + SAMPLE_WIDTH + 6, y), style.clone()))?;
        x += width + 24;
    }
    Ok(y + NAMES_HEIGHT / 2 + 4)
}

fn look_of(looks: &[(&str, Look)], name: &str) -> Option<Look> {
    looks.iter().find(|(other, _)| *other == name).map(|(_, look)| *look)
}

/// The least and the most of some numbers. If there are none, the first is larger than the second.
fn extremes(values: impl Iterator<Item = f64>) -> Range {
    values
        .filter(|value| value.is_finite())
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// The least and the most of some numbers, with room around them.
fn span(values: impl Iterator<Item = f64>, room: f64) -> Range {
    let (low, high) = extremes(values);
    if low > high {
        return (0.0, 1.0);
    }
    let margin = ((high - low) * room).max(high.abs() * 1e-3).max(1e-9);
    (low - margin, high + margin)
}

fn points(figure: &Figure) -> impl Iterator<Item = &Point> + Clone {
    figure.series.iter().flat_map(|series| &series.points)
}

/// What a point reaches from and to.
fn reach(point: &Point) -> [f64; 2] {
    point.range.map_or([point.y; 2], |(least, most)| [least.min(point.y), most.max(point.y)])
}

/// Borders of the values: overheads and shares are read from zero on.
fn borders(figure: &Figure) -> Range {
    let reaches = || points(figure).flat_map(reach);
    let (low, high) = span(reaches(), 0.06);
    match extremes(reaches()).0 {
        least if least >= 0.0 => (0.0, high),
        _ if low > -0.2 * high => (low.min(0.0), high),
        _ => (low, high),
    }
}

fn label(value: &f64) -> String {
    super::text::number(*value)
}
