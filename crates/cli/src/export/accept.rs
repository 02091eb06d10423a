//! Which format a client wants that says what it accepts (RFC 9110, section 12.5.1).

use super::text::Format;

/// The format for the value of an `Accept` line: OpenMetrics where the client prefers it to plain text or likes both
/// the same, else the text format, also for clients that accept neither: an answer helps more than a refusal.
pub fn choose(accept: &str) -> Format {
    let mut open_metrics = 0.0_f64;
    // How well the most precise of the ranges fits that plain text falls into.
    let mut plain = (0, 0.0_f64);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<(String, &str)> = parts.filter_map(parameter).collect();
        let value = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let quality = value("q").map_or(1.0, quality);
        let is_version = |version: &str| value("version").is_none_or(|wanted| wanted == version);
        let precision = match media.as_str() {
            "application/openmetrics-text" if is_version("1.0.0") => {
                open_metrics = open_metrics.max(quality);
                continue;
            }
            "text/plain" if is_version("0.0.4") => 3,
            "text/*" => 2,
            "*/*" => 1,
            _ => continue,
        };
        if precision > plain.0 || precision == plain.0 && quality > plain.1 {
            plain = (precision, quality);
        }
    }
    match open_metrics > 0.0 && open_metrics >= plain.1 {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    }
}

fn parameter(text: &str) -> Option<(String, &str)> {
    let (name, value) = text.split_once('=')?;
    Some((name.trim().to_ascii_lowercase(), value.trim().trim_matches('"')))
}

fn quality(text: &str) -> f64 {
    text.parse().ok().filter(|quality| (0.0..=1.0).contains(quality)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_and_browsers_get_what_they_prefer() {
        let two = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                   text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let three = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
                     text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, format) in [
            (two, Format::OpenMetrics),
            (three, Format::OpenMetrics),
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Format::Prometheus),
            ("text/plain;version=0.0.4", Format::Prometheus),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8", Format::OpenMetrics),
            ("application/openmetrics-text;q=0.4, text/plain;q=0.5", Format::Prometheus),
            ("application/openmetrics-text;q=0.4, text/plain;q=0.3, */*;q=0.9", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Format::Prometheus),
            ("application/openmetrics-text;q=0, image/png", Format::Prometheus),
            ("application/openmetrics-text;q=nan", Format::Prometheus),
            (";;,,=;q=,application/vnd.google.protobuf", Format::Prometheus),
        ] {
            assert_eq!(choose(accept), format, "{accept}");
        }
    }
}
