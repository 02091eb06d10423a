//! Families of metrics, and how they are written: Prometheus' text format 0.0.4, or OpenMetrics 1.0.0.
//!
//! Both have a line for each value, `name{label="value"} 12`. They differ in what stands above: OpenMetrics names a
//! counter in its HELP and TYPE lines without `_total`, tells the unit, knows `info`, and ends with `# EOF`.

use std::fmt::Write as _;

/// A text format that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Its media type, as HTTP names it.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The kind of a family's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only ever grows while its labels last.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Always 1: its labels are what it tells.
    Info,
}

/// The unit of a family's values, as names end by Prometheus' conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// From 0 to 1.
    Ratio,
}

impl Unit {
    fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Seconds => Some("seconds"),
            Unit::Bytes => Some("bytes"),
            Unit::Ratio => Some("ratio"),
        }
    }
}

/// Names and values of labels. An empty value is the same as no label, so it is left out.
pub type Labels = Vec<(&'static str, String)>;

/// Values of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The name without unit and without `_total`.
    pub stem: String,
    /// The kind of the values.
    pub kind: Kind,
    /// In which unit.
    pub unit: Unit,
    /// Their meaning, in one sentence.
    pub help: String,
    /// The values. No two have the same labels.
    pub samples: Vec<(Labels, f64)>,
}

impl Family {
    /// A family without values.
    pub fn new(stem: impl Into<String>, kind: Kind, unit: Unit, help: impl Into<String>) -> Self {
        Family { stem: stem.into(), kind, unit, help: help.into(), samples: Vec::new() }
    }

    /// The same with one value that has no labels.
    #[must_use]
    pub fn alone(mut self, value: f64) -> Self {
        self.samples.push((Labels::new(), value));
        self
    }

    /// The name as OpenMetrics calls the family.
    fn name(&self) -> String {
        let unit = self.unit.name().map_or_else(String::new, |unit| format!("_{unit}"));
        format!("{}{unit}", self.stem)
    }

    /// The name of its values, by which queries ask for them.
    pub fn sample_name(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Info => "_info",
        };
        format!("{}{suffix}", self.name())
    }
}

/// Writes families. Those without values are left out.
pub fn render(families: &[Family], format: Format) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        push_head(&mut text, family, format);
        let name = family.sample_name();
        for (labels, value) in &family.samples {
            text.push_str(&name);
            push_labels(&mut text, labels);
            // The shortest digits that mean this number: both formats take them. Nothing here is infinite. (The sum of
            // no values is minus zero, which this makes plain.)
            let _ = writeln!(text, " {}", value + 0.0);
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn push_head(text: &mut String, family: &Family, format: Format) {
    let (name, kind) = match (format, family.kind) {
        (Format::OpenMetrics, Kind::Counter) => (family.name(), "counter"),
        (Format::OpenMetrics, Kind::Gauge) => (family.name(), "gauge"),
        (Format::OpenMetrics, Kind::Info) => (family.name(), "info"),
        (Format::Prometheus, Kind::Counter) => (family.sample_name(), "counter"),
        // There is no kind for constants.
        (Format::Prometheus, Kind::Gauge | Kind::Info) => (family.sample_name(), "gauge"),
    };
    let _ = writeln!(text, "# HELP {name} {}", escaped(&family.help, format == Format::OpenMetrics));
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit.name()) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

fn push_labels(text: &mut String, labels: &Labels) {
    let mut before = '{';
    for (name, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(text, "{before}{name}=\"{}\"", escaped(value, true));
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
}

/// Text between quotes, or at the end of a line.
fn escaped(text: &str, quotes_too: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if quotes_too => escaped.push_str("\\\""),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Vec<Family> {
        let labels = |value: &str| vec![("id", value.to_owned()), ("empty", String::new())];
        let mut sent = Family::new("x_sent", Kind::Counter, Unit::Bytes, "Bytes \\ of \"all\"\nranks.");
        sent.samples = vec![(labels("a\"b\\c\nd"), 1e16), (labels("2"), 0.25), (labels("0"), -0.0)];
        let mut info = Family::new("x_job", Kind::Info, Unit::None, "A job.");
        info.samples = vec![(labels("7"), 1.0)];
        let empty = Family::new("x_none", Kind::Gauge, Unit::None, "None.");
        let jobs = Family::new("x_jobs", Kind::Gauge, Unit::None, "Jobs.").alone(3.0);
        vec![sent, info, empty, jobs]
    }

    #[test]
    fn the_text_format_names_counters_by_their_values() {
        let expected = r##"# HELP x_sent_bytes_total Bytes \\ of "all"\nranks.
# TYPE x_sent_bytes_total counter
x_sent_bytes_total{id="a\"b\\c\nd"} 10000000000000000
x_sent_bytes_total{id="2"} 0.25
x_sent_bytes_total{id="0"} 0
# HELP x_job_info A job.
# TYPE x_job_info gauge
x_job_info{id="7"} 1
# HELP x_jobs Jobs.
# TYPE x_jobs gauge
x_jobs 3
"##;
        assert_eq!(render(&families(), Format::Prometheus), expected);
    }

    #[test]
    fn openmetrics_names_families_tells_units_and_ends() {
        let expected = r##"# HELP x_sent_bytes Bytes \\ of \"all\"\nranks.
# TYPE x_sent_bytes counter
# UNIT x_sent_bytes bytes
x_sent_bytes_total{id="a\"b\\c\nd"} 10000000000000000
x_sent_bytes_total{id="2"} 0.25
x_sent_bytes_total{id="0"} 0
# HELP x_job A job.
# TYPE x_job info
x_job_info{id="7"} 1
# HELP x_jobs Jobs.
# TYPE x_jobs gauge
x_jobs 3
# EOF
"##;
        assert_eq!(render(&families(), Format::OpenMetrics), expected);
        assert_eq!(render(&[], Format::OpenMetrics), "# EOF\n");
    }
}
