//! Phrases of reports: in pages, in pictures.

use crate::report::{Figure, Report};

/// A number with two decimals below 10, one below 1000, and none from there on; trailing zeros are left out.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0..10.0 => 2,
        10.0..1000.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Size, seeds and noise of a report; a size that is not full is written in capitals, so that it is not overlooked.
pub fn scale(report: &Report) -> String {
    let scale = if report.scale == "full" { "full".to_owned() } else { report.scale.to_uppercase() };
    let seeds = if report.seeds > 1 { format!(", {} seeds", report.seeds) } else { String::new() };
    let percent = report.noise_percent;
    let noise = if percent > 0.0 { format!(", {} % noise", number(percent)) } else { String::new() };
    format!("{scale} size{seeds}{noise}")
}

/// What these seeds and this noise mean, and whether other code did some of the runs: sentences, or nothing.
pub fn method(report: &Report) -> String {
    let Report { noise_percent, seeds, older_runs, code, .. } = report;
    let (time, percent) = (number(10.0 * noise_percent), number(*noise_percent));
    let versions: Vec<String> = older_runs.iter().map(|(code, runs)| format!("{code} ({runs} runs)")).collect();
    let noise = format!(
        " Processes are interrupted for {time} µs after every ms of work, on average ({percent} % of the time)."
    );
    let means = format!(
        " Every number is the mean over {seeds} seeds, of overheads the mean of the ratios between runs with the same seed."
    );
    let older = format!(
        " Version {code} of the simulator wrote this; some runs were kept from other versions, and used because that was \
         asked for: {}.",
        versions.join(", ")
    );
    let all = [(*noise_percent > 0.0, noise), (*seeds > 1, means), (!versions.is_empty(), older)];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence).collect()
}

/// What stands above a picture: the title with the paper's number of the figure, and how it was made.
pub fn caption(report: &Report, figure: &Figure) -> (String, String) {
    let numbered = [("fig", "Figure"), ("table", "Table")].into_iter().find_map(|(start, word)| {
        let number = figure.name.strip_prefix(start)?.split('-').next()?;
        number.starts_with(|digit: char| digit.is_ascii_digit()).then(|| format!("{word} {number}: {}", figure.title))
    });
    let title = numbered.unwrap_or_else(|| figure.title.clone());
    if figure.is_computed {
        return (title, "computed, not run".to_owned());
    }
    let mut note = scale(report);
    if report.seeds > 1 {
        note.push_str("; means");
    }
    if figure.categories.is_empty() && figure.series.iter().any(|series| series.piggyback) {
        note.push_str("; hollow: credits ride on data packets");
    }
    if figure.series.iter().flat_map(|series| &series.points).any(|point| point.range.is_some()) {
        note.push_str(if figure.categories.is_empty() { "; bands: " } else { "; whiskers: " });
        note.push_str(if figure.has_extremes { "least to most" } else { "95 % confidence interval of the mean" });
    }
    (title, note)
}
