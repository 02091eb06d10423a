//! What texts of parameters mean, each by itself.

use super::rows::{FABRIC, PORTS, Parameter, SCHEME, TRACE_DIR, TRACE_MOST};
use crate::lower::{Choice, Ports};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_link::BulkChoice;
use tidegate_message::flow::{Growth, SchemeName};

/// A value that a parameter does not take.
#[derive(Debug)]
pub struct Misfit {
    pub(super) parameter: &'static Parameter,
    pub(super) value: String,
}

impl Misfit {
    /// What the parameter takes instead.
    pub fn remedy(&self) -> String {
        let Parameter { default, allowed, .. } = self.parameter;
        format!("must be {allowed} (default: {default})")
    }
}

/// Who makes progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// The application, by its calls.
    Calls,
    /// And a thread of ours while the application leaves something to do and does not call.
    #[default]
    OnDemand,
    /// A thread of ours beside it, also where the application does not ask for one (`FI_PROGRESS_AUTO`).
    Thread,
}

impl Progress {
    /// Why automatic progress of data is refused where the user allows no thread ([`Calls`](Self::Calls)).
    pub const NO_THREAD: &str = "the application asks for automatic progress of data (FI_PROGRESS_AUTO), which takes a \
                                 thread, and FI_TIDEGATE_PROGRESS=calls allows none: leave that variable out";
}

/// The least bytes of a chunk, and the most.
pub(super) const CHUNK_BYTES: core::ops::RangeInclusive<usize> = 4 << 10..=1 << 30;
/// Where the trace of a process goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// The folder.
    pub folder: PathBuf,
    /// Bytes at most.
    pub most: usize,
}

/// The bytes that a trace may be bounded to.
const TRACE_BYTES: core::ops::RangeInclusive<usize> = 4 << 10..=1 << 40;
/// The bound unless the user says otherwise.
const TRACE_BYTES_USUAL: usize = 64 << 20;

/// Where the trace goes, if there is to be one.
pub(super) fn trace(get: impl Fn(&Parameter) -> Option<OsString>) -> Result<Option<TraceSettings>, Misfit> {
    let most = get(&TRACE_MOST).map(|text| text.to_string_lossy().into_owned());
    let most = bytes_within(&TRACE_MOST, most, TRACE_BYTES)?.unwrap_or(TRACE_BYTES_USUAL);
    Ok(folder(&TRACE_DIR, get(&TRACE_DIR))?.map(|folder| TraceSettings { folder, most }))
}

/// The scheme; `has_shares`: whether the user has said how large the shares of peers are or how their credits return,
/// which the default knows nothing of.
pub(super) fn scheme(text: Option<String>, has_shares: bool) -> Result<SchemeName, Misfit> {
    let Some(text) = text else {
        return Ok(if has_shares { SchemeName::Dynamic } else { SchemeName::Speculative });
    };
    text.trim().to_lowercase().parse().map_err(|_| refuse(&SCHEME, &text))
}

pub(super) fn fabric(text: Option<String>) -> Result<Choice, Misfit> {
    let Some(text) = text else { return Ok(Choice::Auto) };
    text.parse().map_err(|()| refuse(&FABRIC, &text))
}

pub(super) fn ports(text: Option<String>) -> Result<Option<Ports>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|()| refuse(&PORTS, &text))
}

pub(super) const BULKS: [(&str, BulkChoice); 4] = [
    ("auto", BulkChoice::Auto),
    ("direct", BulkChoice::Direct),
    ("bounced", BulkChoice::Bounced),
    ("mailbox", BulkChoice::Mailbox),
];
pub(super) const GROWTHS: [(&str, Growth); 2] = [("linear", Growth::Linear), ("exponential", Growth::Exponential)];
pub(super) const RENDEZVOUSES: [(&str, bool); 2] = [("chunked", false), ("single", true)];
pub(super) const PROGRESSES: [(&str, Progress); 3] =
    [("on_demand", Progress::OnDemand), ("calls", Progress::Calls), ("thread", Progress::Thread)];
pub(super) const SWITCH: [(&str, bool); 8] = [
    ("on", true),
    ("1", true),
    ("yes", true),
    ("true", true),
    ("off", false),
    ("0", false),
    ("no", false),
    ("false", false),
];

fn refuse(parameter: &'static Parameter, value: &str) -> Misfit {
    Misfit { parameter, value: value.to_owned() }
}

/// One of a few words; the first is the default.
pub(super) fn choose<T: Copy>(
    parameter: &'static Parameter,
    text: Option<String>,
    choices: &[(&str, T)],
) -> Result<T, Misfit> {
    let Some(text) = text else { return Ok(choices[0].1) };
    let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
    found.map(|(_, choice)| *choice).ok_or_else(|| refuse(parameter, &text))
}

pub(super) fn number(
    parameter: &'static Parameter,
    text: Option<String>,
    range: core::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    let value = text.trim().parse().ok().filter(|value| range.contains(value));
    value.map(Some).ok_or_else(|| refuse(parameter, &text))
}

pub(super) fn bytes(parameter: &'static Parameter, text: Option<String>, most: usize) -> Result<Option<usize>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match trimmed[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => None,
    };
    let value = digits.trim().parse::<usize>().ok().zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    value.filter(|&value| value <= most).map(Some).ok_or_else(|| refuse(parameter, &text))
}

/// The same within a range.
pub(super) fn bytes_within(
    parameter: &'static Parameter,
    text: Option<String>,
    range: core::ops::RangeInclusive<usize>,
) -> Result<Option<usize>, Misfit> {
    let value = bytes(parameter, text.clone(), *range.end())?;
    match value {
        Some(value) if !range.contains(&value) => Err(refuse(parameter, &text.unwrap_or_default())),
        value => Ok(value),
    }
}

pub(super) fn folder(parameter: &'static Parameter, text: Option<OsString>) -> Result<Option<PathBuf>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    let (path, may_be_missing) =
        text.as_bytes().strip_prefix(b"?").map_or((text.as_bytes(), false), |path| (path, true));
    let path = Path::new(OsStr::from_bytes(path));
    match (path.is_dir(), may_be_missing) {
        (true, _) => Ok(Some(path.into())),
        (false, true) => Ok(None),
        (false, false) => Err(refuse(parameter, &text.to_string_lossy())),
    }
}

/// Seconds, down to a thousandth of one, or `never`, which is no time at all.
pub(super) fn seconds_or_never(
    parameter: &'static Parameter,
    text: Option<String>,
) -> Result<Option<Option<Duration>>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    if text.trim().eq_ignore_ascii_case("never") {
        return Ok(Some(None));
    }
    let seconds = text.trim().parse::<f64>().ok().filter(|value| (0.001..=1e6).contains(value));
    seconds.map(|seconds| Some(Some(Duration::from_secs_f64(seconds)))).ok_or_else(|| refuse(parameter, &text))
}

/// Milliseconds, down to a hundredth of one.
pub(super) fn milliseconds(
    parameter: &'static Parameter,
    text: Option<String>,
    range: core::ops::RangeInclusive<Duration>,
) -> Result<Option<Duration>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    let milliseconds = text.trim().parse::<f64>().ok().filter(|value| (0.0..1e6).contains(value));
    let value = milliseconds.map(|value| Duration::from_micros((value * 1000.0).round() as u64));
    value.filter(|value| range.contains(value)).map(Some).ok_or_else(|| refuse(parameter, &text))
}
