//! Values with units, as files have them: `1.4 us`, `2 KiB`, `850 MB/s`.

use crate::{Bandwidth, Time};

/// The number and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '_').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// The value of `text` in the smallest of the units.
fn scaled(text: &str, units: &[(&str, f64)], example: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let names = || units.iter().map(|unit| unit.0).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
    let problem = || format!("a value such as \"{example}\" is needed, with one of the units {}", names());
    let factor = units.iter().find(|known| known.0 == unit).map(|known| known.1).ok_or_else(problem)?;
    let value: f64 = number.replace('_', "").parse().map_err(|_| problem())?;
    let scaled = (value * factor).round();
    // Beyond 2⁵³ a float no longer holds every whole number; "nan" is no number at all.
    if !(0.0..=9e15).contains(&scaled) {
        return Err(format!("{text} is not from 0 to 9e15 of the smallest unit"));
    }
    Ok(scaled as u64)
}

/// The longest span of time that one step of a simulated machine may take. With longer ones the end of a long run lies
/// beyond what the clock can tell.
const STEP_MOST: Time = Time(1_000_000_000_000);
/// The slowest rate, in bytes per second, for the same reason.
const RATE_LEAST: u64 = 1_000_000;
/// Most bytes around the payload of one packet, for the same reason.
const OVERHEAD_MOST: u64 = 1 << 16;
/// Most bytes of a frame: the sizes of packets are counted in 32 bits.
const FRAME_MOST: u64 = 1 << 30;

/// A span of time.
pub fn time(text: &str) -> Result<Time, String> {
    let units = [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("µs", 1e6), ("ms", 1e9), ("s", 1e12)];
    scaled(text, &units, "1.4 us").map(Time)
}

/// What one step of a machine takes.
pub fn step(text: &str) -> Result<Time, String> {
    match time(text)? {
        time if time > STEP_MOST => Err("at most 1 s is allowed for one step of a machine".to_owned()),
        time => Ok(time),
    }
}

/// A number of bytes; without a unit, bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let binary = [("", 1.0), ("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
    let decimal = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9)];
    scaled(text, &[binary.as_slice(), &decimal].concat(), "2 KiB")
}

/// A rate of data.
pub fn rate(text: &str) -> Result<Bandwidth, String> {
    let units = [("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("Mbit/s", 1.25e5), ("Gbit/s", 1.25e8)];
    match scaled(text, &units, "1 GB/s")? {
        rate if rate < RATE_LEAST => Err("a rate of at least 1 MB/s is needed".to_owned()),
        rate => Ok(Bandwidth(rate)),
    }
}

/// A rate of data, or none that limits anything.
pub fn rate_or_unlimited(text: &str) -> Result<Bandwidth, String> {
    if text == "unlimited" { Ok(Bandwidth(u64::MAX)) } else { rate(text) }
}

/// Bytes around the payload of a packet, from `least` on.
pub fn overhead(text: &str, least: u32) -> Result<u32, String> {
    few_bytes(text, least, OVERHEAD_MOST, "64 KiB")
}

/// Bytes of a frame.
pub fn frame(text: &str) -> Result<u32, String> {
    few_bytes(text, 1, FRAME_MOST, "1 GiB")
}

/// Bytes within bounds.
pub fn few_bytes(text: &str, least: u32, most: u64, most_in_words: &str) -> Result<u32, String> {
    match bytes(text)? {
        bytes if bytes < u64::from(least) => Err(format!("at least {least} B is needed")),
        bytes if bytes > most => Err(format!("at most {most_in_words} is allowed")),
        bytes => Ok(bytes as u32),
    }
}

/// Whole numbers of some size.
pub trait Whole: TryFrom<u64> {
    /// The largest of them.
    const MOST: u64;
}

impl Whole for u8 {
    const MOST: u64 = u8::MAX as u64;
}
impl Whole for u16 {
    const MOST: u64 = u16::MAX as u64;
}
impl Whole for u32 {
    const MOST: u64 = u32::MAX as u64;
}
impl Whole for u64 {
    const MOST: u64 = u64::MAX;
}

/// A whole number from `least` on.
pub fn number_from<T: Whole>(text: &str, least: u64) -> Result<T, String> {
    let problem = || format!("a whole number from {least} to {} is needed", T::MOST);
    let value: u64 = text.trim().replace('_', "").parse().map_err(|_| problem())?;
    if value < least { Err(problem()) } else { T::try_from(value).map_err(|_| problem()) }
}

/// A whole number.
pub fn number<T: Whole>(text: &str) -> Result<T, String> {
    number_from(text, 0)
}

/// A whole number from 1 on.
pub fn positive<T: Whole>(text: &str) -> Result<T, String> {
    number_from(text, 1)
}

/// A whole number from 2 on that is even.
pub fn even(text: &str) -> Result<u32, String> {
    let value: u32 = number_from(text, 2).map_err(|_| "an even number from 2 to 4294967294 is needed".to_owned())?;
    match value.is_multiple_of(2) {
        true => Ok(value),
        false => Err(format!("an even number is needed, such as {}", value - 1)),
    }
}

/// A share in per cent, in thousandths: `1 %`, `0.1 %`.
pub fn per_mille(text: &str) -> Result<u32, String> {
    let problem = || "a share from 0.1 % to 100 %, in tenths of a per cent, such as \"1 %\", is needed".to_owned();
    let (number, unit) = split(text);
    let per_mille = number.parse::<f64>().map_err(|_| problem())? * 10.0;
    if unit != "%" || !(1.0..=1000.0).contains(&per_mille) || (per_mille - per_mille.round()).abs() > 1e-6 {
        return Err(problem());
    }
    Ok(per_mille.round() as u32)
}

/// Yes or no.
pub fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        _ => Err("true or false is needed".to_owned()),
    }
}

/// One of some words.
pub fn word<'a>(text: &str, known: &[&'a str]) -> Result<&'a str, String> {
    let found = known.iter().copied().find(|known| *known == text);
    found.ok_or_else(|| {
        format!("one of {} is needed{}", known.join(", "), super::file::did_you_mean(text, known.iter().copied()))
    })
}

/// Whole numbers with something between them: `4x4x4`.
pub fn numbers<T: Whole>(text: &str, between: char) -> Result<Vec<T>, String> {
    let each: Result<_, String> = text.split(between).map(|part| number(part)).collect();
    each.map_err(|problem| format!("{problem}, or several with `{between}` between them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        assert_eq!(time("1.4 us"), Ok(Time(1_400_000)));
        assert_eq!(time("86.9ns"), Ok(Time(86_900)));
        assert_eq!(bytes("2 KiB"), Ok(2048));
        assert_eq!(bytes("1_000"), Ok(1000));
        assert_eq!(rate("8 Gbit/s"), Ok(Bandwidth(1_000_000_000)));
        assert_eq!(numbers::<u16>("4x4x2", 'x'), Ok(vec![4, 4, 2]));
    }

    #[test]
    fn a_wrong_unit_is_refused_with_an_example() {
        assert!(time("3 meters").unwrap_err().contains("1.4 us"));
        assert!(time("3").unwrap_err().contains("ns"), "a time needs a unit");
        assert!(rate("1 GB").unwrap_err().contains("GB/s"));
        assert!(rate("0 MB/s").unwrap_err().contains("at least 1 MB/s"));
        assert!(number::<u8>("300").unwrap_err().contains("from 0 to 255"));
        assert!(positive::<u16>("0").unwrap_err().contains("from 1 to 65535"));
        assert!(per_mille("5").unwrap_err().contains("1 %"));
        assert!(step("2 s").unwrap_err().contains("at most 1 s"));
        assert!(word("dynamc", &["static", "dynamic"]).unwrap_err().contains("did you mean dynamic?"));
    }
}
