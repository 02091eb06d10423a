//! [`Look`]: how a series is drawn. A scheme of flow control has one colour, one dash and one marker in all figures.

use crate::report::{Figure, Series, SeriesKind};

type Colour = [u8; 3];

/// Schemes, and what is compared with, which has none: colours that people who do not tell red from green tell apart
/// (Okabe and Ito), a brown, black and a grey; dashes as SVG has them; and paths of markers around a point.
const SCHEMES: [(&str, Colour, &str, &str); 9] = [
    ("static", [0, 114, 178], "", "m-3.5 -3.5h7v7h-7z"),
    ("dynamic", [213, 94, 0], "9 4", "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"),
    ("none", [0, 158, 115], "5 5", "m0 -5l4.5 8h-9z"),
    ("rnr", [204, 121, 167], "9 4 2 4", "m0 -5l5 5l-5 5l-5 -5z"),
    ("preposted", [230, 159, 0], "16 4", "m0 5l4.5 -8h-9z"),
    ("growing", [86, 180, 233], "2 3", "m-1.5 -1.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3z"),
    ("shared_window", [120, 72, 28], "12 3 2 3 2 3", "m-5 0l2.5 -4.3h5l2.5 4.3l-2.5 4.3h-5z"),
    ("speculative", [0, 0, 0], "6 2", "m-5 -1l10 0l-8 6l3 -10l3 10z"),
    ("reference", GREY, "2 6", "m-5 -1.5h10v3h-10z"),
];
const GREY: Colour = [90, 90, 90];
const CROSS: &str = "m-7 -7l14 14m0 -14l-14 14";

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    colour: Colour,
    /// `None`: points without a line.
    pub dashes: Option<&'static str>,
    /// Empty: a line without points.
    marker: &'static str,
    /// The marker's inside is white: credits ride on data packets.
    is_hollow: bool,
}

/// The names of a figure's series, each once, with their looks. Several of one scheme are shades of its colour.
pub fn looks(figure: &Figure) -> Vec<(&str, Look)> {
    let mut entries: Vec<&Series> = Vec::new();
    for series in &figure.series {
        if entries.iter().all(|entry| entry.name != series.name) {
            entries.push(series);
        }
    }
    let kind = |series: &Series| (series.scheme.clone(), series.piggyback, series.kind);
    let look = |(index, series): (usize, &&Series)| {
        let alike: Vec<usize> = (0..entries.len()).filter(|&other| kind(entries[other]) == kind(series)).collect();
        let nth = alike.iter().position(|&other| other == index).unwrap_or(0);
        of_series(series, nth, alike.len())
    };
    entries.iter().map(|series| series.name.as_str()).zip(entries.iter().enumerate().map(look)).collect()
}

/// The look of the `nth` of `count` series that are alike.
fn of_series(series: &Series, nth: usize, count: usize) -> Look {
    let (round, place) = (nth / SCHEMES.len(), nth % SCHEMES.len());
    let (_, mut colour, mut dashes, _) = SCHEMES[place];
    let mut marker = SCHEMES[(place + 3 * round) % SCHEMES.len()].3;
    if round > 0 {
        colour = shade(colour, 0.0);
    }
    if let Some(&(_, own, of_scheme, shape)) = SCHEMES.iter().find(|(scheme, ..)| *scheme == series.scheme) {
        dashes = of_scheme;
        (colour, marker) =
            if count == 1 { (own, shape) } else { (shade(own, nth as f64 / (count - 1) as f64), marker) };
    }
    let is_hollow = series.piggyback;
    match series.kind {
        SeriesKind::Paper => Look { colour: shade(colour, 0.0), dashes: None, marker: CROSS, is_hollow: false },
        SeriesKind::Bound => Look { colour: GREY, dashes: Some("3 3"), marker: "", is_hollow: false },
        SeriesKind::Found if is_hollow && dashes.is_empty() => Look { colour, dashes: Some("18 3"), marker, is_hollow },
        SeriesKind::Found => Look { colour, dashes: Some(dashes), marker, is_hollow },
    }
}

fn shade(colour: Colour, share: f64) -> Colour {
    colour.map(|part| {
        let (dark, light) = (0.55 * f64::from(part), 0.45 * f64::from(part) + 0.55 * 255.0);
        (dark + share * (light - dark)).round() as u8
    })
}

impl Look {
    pub fn colour(&self) -> String {
        let [red, green, blue] = self.colour;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// The marker around a place, as an element of SVG.
    pub fn mark(&self, (x, y): (f64, f64)) -> String {
        let (marker, colour) = (self.marker, self.colour());
        let inside = if self.is_hollow { "#fff" } else { &colour };
        let width = if marker == CROSS { 2 } else { 1 };
        format!("<path d=\"M{x:.1} {y:.1}{marker}\" fill=\"{inside}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n")
    }

    pub fn line(&self, places: &[(f64, f64)]) -> String {
        let Some(dashes) = self.dashes.filter(|_| !places.is_empty()) else { return String::new() };
        let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let (points, colour) = (points(places), self.colour());
        format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\n")
    }
}

pub fn points(places: &[(f64, f64)]) -> String {
    places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(series: Vec<Series>) -> Figure {
        Figure { series, ..Figure::default() }
    }

    #[test]
    fn every_scheme_has_a_colour_a_dash_and_a_marker_of_its_own() {
        let all = figure(tidegate_flow::SchemeName::OFFERED.iter().map(|name| Series::new(name.name(), [])).collect());
        let looks: Vec<Look> = looks(&all).into_iter().map(|(_, look)| look).collect();
        for (nth, one) in looks.iter().enumerate() {
            for other in &looks[..nth] {
                assert!(one.colour != other.colour && one.dashes != other.dashes && one.marker != other.marker);
            }
        }
    }

    #[test]
    fn a_scheme_looks_the_same_wherever_it_stands() {
        let one = figure(vec![Series::new("dynamic", []), Series::new("static", [])]);
        let other = figure(vec![Series::new("static, 64 slots", []), Series::new("reference", [])]);
        let (one, other) = (looks(&one), looks(&other));
        assert_eq!(one[1].1, other[0].1);
        let riding = Series { piggyback: true, ..Series::new("static", []) };
        let riding = looks(&figure(vec![riding])).remove(0).1;
        assert_eq!((riding.colour, riding.marker), (one[1].1.colour, one[1].1.marker));
        assert!(riding.is_hollow && riding.dashes != one[1].1.dashes, "a hollow marker and other dashes");
    }

    #[test]
    fn several_series_of_a_scheme_are_shades_with_different_markers() {
        let of = |name: &str| Series { scheme: "static".to_owned(), ..Series::new(name, []) };
        let figure = figure(vec![
            of("1"),
            of("2"),
            Series { kind: SeriesKind::Paper, ..of("P") },
            Series { panel: "beside".to_owned(), ..of("1") },
        ]);
        let looks = looks(&figure);
        assert_eq!(looks.iter().map(|look| look.0).collect::<Vec<_>>(), ["1", "2", "P"]);
        assert!(looks[0].1.colour != looks[1].1.colour && looks[0].1.marker != looks[1].1.marker);
        assert_eq!((looks[2].1.dashes, looks[2].1.marker), (None, CROSS));
    }
}
