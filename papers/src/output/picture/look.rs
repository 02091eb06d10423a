//! [`Look`]: how a series is drawn. A scheme of flow control has one colour, one dash and one marker in all figures.

use plotters::prelude::*;

use crate::report::{Figure, Series, SeriesKind};

/// Colours that people who do not tell red from green can tell apart (Okabe and Ito).
const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const GREY: RGBColor = RGBColor(90, 90, 90);
/// Of series that are no scheme's.
const OTHERS: [RGBColor; 4] =
    [RGBColor(204, 121, 167), RGBColor(230, 159, 0), RGBColor(86, 180, 233), RGBColor(150, 110, 60)];

/// Pixels of a dash and of the gap behind it, in turn; empty: a line without gaps.
pub type Dashes = &'static [i32];
const DASHED: Dashes = &[9, 4];
const DOTTED: Dashes = &[2, 4];
const DASH_DOTTED: Dashes = &[9, 4, 2, 4];
const LONG_DASHED: Dashes = &[16, 4];
const SHORT_DASHED: Dashes = &[5, 5];

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Square,
    Circle,
    Triangle,
    Diamond,
    Down,
    /// The paper's own points, and nothing else.
    Cross,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub colour: RGBColor,
    /// `None`: points without a line.
    pub dashes: Option<Dashes>,
    pub marker: Marker,
    /// The marker's inside is white: credits ride on data packets. Then the dashes are others too.
    pub is_hollow: bool,
}

/// That of a scheme, without or with piggybacking.
fn of_scheme(scheme: &str, piggyback: bool) -> Option<(RGBColor, Dashes, Marker)> {
    Some(match (scheme, piggyback) {
        ("static", false) => (BLUE, &[], Marker::Square),
        ("static", true) => (BLUE, LONG_DASHED, Marker::Square),
        ("dynamic", false) => (VERMILION, DASHED, Marker::Circle),
        ("dynamic", true) => (VERMILION, DASH_DOTTED, Marker::Circle),
        ("none", _) => (GREEN, SHORT_DASHED, Marker::Triangle),
        ("reference", _) => (GREY, DOTTED, Marker::Diamond),
        _ => return None,
    })
}

/// The names of a figure's series, each once, with their looks: series of one name in several panels look the same.
/// Where several series are one scheme's, they are shades of its colour with different markers.
pub fn looks(figure: &Figure) -> Vec<(&str, Look)> {
    let mut entries: Vec<&Series> = Vec::new();
    for series in &figure.series {
        if entries.iter().all(|entry| entry.name != series.name) {
            entries.push(series);
        }
    }
    let is_alike = |one: &Series, other: &Series| {
        (&one.scheme, one.piggyback, one.kind) == (&other.scheme, other.piggyback, other.kind)
    };
    let look = |index: usize| {
        let series = entries[index];
        let alike: Vec<usize> = (0..entries.len()).filter(|&other| is_alike(entries[other], series)).collect();
        let nth = alike.iter().position(|&other| other == index).unwrap_or(0);
        (series.name.as_str(), of_series(series, nth, alike.len()))
    };
    (0..entries.len()).map(look).collect()
}

/// The look of the `nth` of `count` series that are alike.
fn of_series(series: &Series, nth: usize, count: usize) -> Look {
    const MARKERS: [Marker; 5] = [Marker::Square, Marker::Circle, Marker::Triangle, Marker::Diamond, Marker::Down];
    let any_marker = MARKERS[nth % MARKERS.len()];
    let (colour, dashes, marker) = match of_scheme(&series.scheme, series.piggyback) {
        Some((colour, dashes, marker)) if count == 1 => (colour, dashes, marker),
        Some((colour, dashes, _)) => (shade(colour, nth as f64 / (count - 1) as f64), dashes, any_marker),
        None => {
            let dashes = [&[], DASHED, DASH_DOTTED, DOTTED][nth % 4];
            (OTHERS[nth % OTHERS.len()], dashes, any_marker)
        }
    };
    if series.kind == SeriesKind::Paper {
        return Look { colour: shade(colour, 0.0), dashes: None, marker: Marker::Cross, is_hollow: false };
    }
    Look { colour, dashes: Some(dashes), marker, is_hollow: series.piggyback }
}

/// From dark (0) to light (1).
fn shade(colour: RGBColor, share: f64) -> RGBColor {
    let one = |part: u8| {
        let (dark, light) = (0.55 * f64::from(part), 0.45 * f64::from(part) + 0.55 * 255.0);
        (dark + share * (light - dark)).round() as u8
    };
    RGBColor(one(colour.0), one(colour.1), one(colour.2))
}

impl Look {
    /// Its marker around a place, in pixels.
    pub fn mark<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
        (x, y): (i32, i32),
    ) -> Drawn<B> {
        const R: i32 = 4;
        let inside = if self.is_hollow { WHITE.filled() } else { self.colour.filled() };
        let line = self.colour.stroke_width(if self.marker == Marker::Cross { 2 } else { 1 });
        if self.marker == Marker::Cross {
            const WIDE: i32 = R + 3;
            area.draw(&PathElement::new([(x - WIDE, y - WIDE), (x + WIDE, y + WIDE)], line))?;
            return area.draw(&PathElement::new([(x - WIDE, y + WIDE), (x + WIDE, y - WIDE)], line));
        }
        if self.marker == Marker::Circle {
            area.draw(&Circle::new((x, y), R, inside))?;
            return area.draw(&Circle::new((x, y), R, line));
        }
        let corners: &[(i32, i32)] = match self.marker {
            Marker::Triangle => &[(0, -R - 1), (R, R - 1), (-R, R - 1)],
            Marker::Down => &[(0, R + 1), (R, 1 - R), (-R, 1 - R)],
            Marker::Diamond => &[(0, -R - 1), (R + 1, 0), (0, R + 1), (-R - 1, 0)],
            _ => &[(1 - R, 1 - R), (R - 1, 1 - R), (R - 1, R - 1), (1 - R, R - 1)],
        };
        let mut around: Vec<(i32, i32)> = corners.iter().map(|&(right, down)| (x + right, y + down)).collect();
        area.draw(&Polygon::new(around.clone(), inside))?;
        around.push(around[0]);
        area.draw(&PathElement::new(around, line))
    }

    /// A line through places, in pixels, with its dashes.
    pub fn line<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
        places: &[(i32, i32)],
    ) -> Drawn<B> {
        let style = self.colour.stroke_width(2);
        match self.dashes {
            None => Ok(()),
            Some([]) => area.draw(&PathElement::new(places.to_vec(), style)),
            Some(dashes) => {
                for dash in dashed(places, dashes) {
                    area.draw(&PathElement::new(dash, style))?;
                }
                Ok(())
            }
        }
    }
}

/// What drawing returns.
pub type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// The pieces of a line that its dashes show.
fn dashed(places: &[(i32, i32)], dashes: Dashes) -> Vec<Vec<(i32, i32)>> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let (mut index, mut left) = (0, f64::from(dashes[0]));
    for pair in places.windows(2) {
        let (from, to) = ((f64::from(pair[0].0), f64::from(pair[0].1)), (f64::from(pair[1].0), f64::from(pair[1].1)));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let at = |way: f64| {
            let share = if length > 0.0 { way / length } else { 0.0 };
            ((from.0 + share * (to.0 - from.0)).round() as i32, (from.1 + share * (to.1 - from.1)).round() as i32)
        };
        let mut way = 0.0;
        if index % 2 == 0 && piece.is_empty() {
            piece.push(at(0.0));
        }
        while way + left < length {
            way += left;
            // A dash ends here, or a gap.
            piece.push(at(way));
            if index % 2 == 0 {
                pieces.push(std::mem::take(&mut piece));
            }
            index = (index + 1) % dashes.len();
            left = f64::from(dashes[index]);
        }
        left -= length - way;
        if index % 2 == 0 {
            piece.push(at(length));
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(series: Vec<Series>) -> Figure {
        Figure { series, ..Figure::default() }
    }

    #[test]
    fn a_scheme_looks_the_same_wherever_it_stands() {
        let one = figure(vec![Series::new("dynamic", []), Series::new("static", [])]);
        let other = figure(vec![Series::new("static, 64 slots", []), Series::new("reference", [])]);
        let (one, other) = (looks(&one), looks(&other));
        assert_eq!(one[1].1, other[0].1);
        assert!(one[0].1.colour != one[1].1.colour && one[0].1.dashes != one[1].1.dashes);
        assert!(one[0].1.marker != one[1].1.marker);
        let riding = Series { piggyback: true, ..Series::new("static", []) };
        let riding = looks(&figure(vec![riding])).remove(0).1;
        assert_eq!((riding.colour, riding.marker), (one[1].1.colour, one[1].1.marker));
        assert!(
            riding.is_hollow && riding.dashes != one[1].1.dashes,
            "piggybacking is a hollow marker and other dashes"
        );
    }

    #[test]
    fn several_series_of_a_scheme_are_shades_with_different_markers() {
        let of = |name: &str| Series { scheme: "static".to_owned(), ..Series::new(name, []) };
        let figure = figure(vec![of("1"), of("2"), Series::paper("P", "static", []), of("1").in_panel("beside")]);
        let looks = looks(&figure);
        assert_eq!(looks.iter().map(|look| look.0).collect::<Vec<_>>(), ["1", "2", "P"]);
        assert!(looks[0].1.colour != looks[1].1.colour && looks[0].1.marker != looks[1].1.marker);
        assert_eq!((looks[2].1.dashes, looks[2].1.marker), (None, Marker::Cross));
    }

    #[test]
    fn dashes_go_on_around_corners() {
        let pieces = dashed(&[(0, 0), (10, 0), (10, 10)], &[6, 2]);
        assert_eq!(pieces, [vec![(0, 0), (6, 0)], vec![(8, 0), (10, 0), (10, 4)], vec![(10, 6), (10, 10)]]);
        assert_eq!(dashed(&[(3, 3)], &[6, 2]), Vec::<Vec<(i32, i32)>>::new());
    }
}
