//! Arguments of `tidegate export`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use crate::export::text::Format;

pub(super) const EXPORT_HELP: &str = "\
Exit code: 0, also when a signal ended it; 2 wrong usage; 125 the file cannot be written, or the port is taken.

Examples:
  tidegate export                          (once, to standard output)
  tidegate export --every 15s /var/lib/prometheus/node-exporter
  tidegate export --listen 9909            (http://localhost:9909/metrics)

docs/monitor.md has the metrics, a dashboard for Grafana, and rules for alerts.";

/// Arguments of `tidegate export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The file; a folder stands for the file tidegate.prom in it, - for standard output [default: -]
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,

    /// Write the file again and again until a signal comes, and remove it then; as in 15s or 1min
    #[arg(long, value_name = "TIME", value_parser = every, requires = "output")]
    pub every: Option<Duration>,

    /// Serve the metrics at this port by HTTP, at /metrics, to this host alone unless an address is named
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = listen, conflicts_with_all = ["output", "every", "format"])]
    pub listen: Option<Listen>,

    /// Add metrics of each rank to those of each job
    #[arg(long)]
    pub ranks: bool,

    /// The format of the file; by HTTP each client gets the one that it asks for
    #[arg(long, value_enum, default_value_t = FormatName::Prometheus)]
    pub format: FormatName,
}

/// A text format on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Prometheus' text format 0.0.4, which the node exporter reads
    Prometheus,
    /// OpenMetrics 1.0.0
    Openmetrics,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Prometheus => Format::Prometheus,
            FormatName::Openmetrics => Format::OpenMetrics,
        }
    }
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An address or a name of this host.
    pub host: String,
    /// The port; 0: any that is free.
    pub port: u16,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

fn listen(text: &str) -> Result<Listen, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", text));
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() {
        return Err(format!("0.0.0.0:{port} is for all hosts, {port} alone for this one"));
    }
    let port =
        port.parse().map_err(|_| "must be a port from 0 to 65535, or an address, a colon and a port".to_owned())?;
    Ok(Listen { host: host.to_owned(), port })
}

/// From file to file.
fn every(text: &str) -> Result<Duration, String> {
    let time = super::recording::interval(text).ok().filter(|time| *time >= Duration::from_secs(1));
    time.ok_or_else(|| "must be a time from 1s to 60min, as in 15s or 1min".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Cli, Command};
    use clap::Parser;

    fn export(words: &[&str]) -> Result<ExportArguments, clap::Error> {
        Cli::try_parse_from([&["tidegate", "export"], words].concat()).map(|cli| match cli.command {
            Command::Export(arguments) => arguments,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn addresses_have_a_port_and_are_this_host_unless_they_say_otherwise() {
        for (text, shown) in [
            ("9909", "127.0.0.1:9909"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:65535", "localhost:65535"),
        ] {
            assert_eq!(export(&["--listen", text]).unwrap().listen.unwrap().to_string(), shown);
        }
        for text in ["x", "65536", "host:", "1.2.3.4", "-1", "[::1]"] {
            let error = export(&[&format!("--listen={text}")]).unwrap_err().to_string();
            assert!(error.contains("must be a port from 0 to 65535"), "{text}: {error}");
        }
        let error = export(&["--listen", ":9909"]).unwrap_err().to_string();
        assert!(error.contains("0.0.0.0:9909 is for all hosts"), "{error}");
    }

    #[test]
    fn files_are_written_once_or_in_intervals() {
        let arguments = export(&["--every", "1min", "x.prom"]).unwrap();
        assert_eq!((arguments.every, arguments.format), (Some(Duration::from_secs(60)), FormatName::Prometheus));
        for (words, names) in [
            (&["--every", "15s"][..], "<FILE|DIR>"),
            (&["--every", "10ms", "x"], "must be a time from 1s to 60min"),
            (&["--listen", "1", "x"], "cannot be used with"),
            (&["--format", "json"], "openmetrics"),
        ] {
            let error = export(words).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(names), "{error}");
        }
    }
}
