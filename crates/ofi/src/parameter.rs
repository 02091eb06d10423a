//! The parameters `FI_TIDEGATE_*`: one table of name, default, what is allowed and meaning. `fi_info -g tidegate` lists
//! it.
//!
//! The command `tidegate` reads the same table: it checks options and environment before any process starts, and says
//! what the provider would say.

use crate::bindings::FI_LOG_CORE;
use crate::launcher::Job;
use crate::loader::Loader;
use crate::log;
use crate::lower::Choice;
use std::ffi::CString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_link::{
    BOUNCE_BUFFERS_MOST, BulkChoice, CREDIT_SLOTS_MOST, DEFAULT_BOUNCE_BUFFERS, NAMES, SLOTS_PER_PEER_MOST,
};
use tidegate_message::flow::{Config, ConfigError, SchemeName};

/// What the names of all variables begin with.
pub(crate) const PREFIX: &str = "FI_TIDEGATE_";

/// One row of the table.
#[derive(Debug)]
struct Parameter {
    name: &'static str,
    default: &'static str,
    allowed: &'static str,
    help: &'static str,
}

const SCHEME: Parameter =
    Parameter { name: "scheme", default: "dynamic", allowed: SchemeName::CHOICES, help: SchemeName::HELP };
const SLOTS: Parameter = Parameter {
    name: "slots",
    default: "64",
    allowed: "a number of slots up to 16777215, at least twice FI_TIDEGATE_CREDIT_SLOTS",
    help: "Slots of 64 bytes in the mailbox per peer, credit slots included: it takes slots * peers * 64 bytes. The same in \
           all processes of a job",
};
const CREDIT_SLOTS: Parameter = Parameter {
    name: "credit_slots",
    default: "2",
    allowed: "a number of slots up to 65535, at least 1 (with scheme none also 0) and at most half of FI_TIDEGATE_SLOTS",
    help: "How many of these slots are reserved for credit packets. The same in all processes of a job",
};
const PIGGYBACK: Parameter = Parameter {
    name: "piggyback",
    default: "on",
    allowed: "on or off",
    help: "Whether credits return on data packets that have room. The same in all processes of a job",
};
const EAGER_SIZE: Parameter = Parameter {
    name: "eager_size",
    default: "2k",
    allowed: "bytes from 0 to 1M, with suffix k or M if wanted",
    help: "Bytes of the longest message that is sent through the mailbox at once; the receiver pulls longer ones",
};
const RX_MEMORY: Parameter = Parameter {
    name: "rx_memory",
    default: "64M, or the smallest that is legal if that is more",
    allowed: "bytes from 0 to 1T, with suffix k, M, G or T if wanted; at least what mailbox and book-keeping need",
    help: "Most memory that an endpoint takes on behalf of its senders: mailbox, book-keeping, and messages that no receive waits \
           for; what finds no room there is deferred: it waits with its sender",
};
const PEERS: Parameter = Parameter {
    name: "peers",
    default: "ranks of the job as the launcher tells, else the number of addresses that fi_av_open is told, plus 16",
    allowed: "a number of processes from 1 to 1048575",
    help: "How many other processes may exchange messages with this one over its life",
};
const BULK: Parameter = Parameter {
    name: "bulk",
    default: "auto",
    allowed: "auto, direct, bounced or mailbox",
    help: "How long messages travel: copied once between the processes' memories (direct), through bounce buffers in shared memory \
           (bounced), packet by packet (mailbox), or directly where a trial at connection works and measurements of \
           the first messages find it faster than bounce buffers (auto)",
};
const BOUNCE_BUFFERS: Parameter = Parameter {
    name: "bounce_buffers",
    default: "32",
    allowed: "a number of bounce buffers from 0 to 32768",
    help: "Bounce buffers of 32 KiB per process, through which long messages travel with FI_TIDEGATE_BULK auto and bounced",
};
const SPIN: Parameter = Parameter {
    name: "spin",
    default: "many if the ranks fit the processors, else few",
    allowed: "a number of polls from 0 to 4294967295",
    help: "Polls that find nothing before progress gives the processor to another process",
};
const CLOSE_TIMEOUT: Parameter = Parameter {
    name: "close_timeout",
    default: "300",
    allowed: "seconds from 0 to 86400",
    help: "How long closing an endpoint waits, in seconds, until living peers have taken what was sent to them; what they have not taken by \
           then is lost, and reported",
};
const STATS_DIR: Parameter = Parameter {
    name: "stats_dir",
    default: "none",
    allowed: "an existing folder that this user may write to, with ? before it one that may be missing on some hosts",
    help: "Folder where each endpoint keeps its counters in a small file; with ? before it, processes that have no such \
           folder keep none. `tidegate run` sets it",
};

const FABRIC: Parameter = Parameter {
    name: "fabric",
    default: "auto",
    allowed: "auto, none, or a provider of libfabric, with /DOMAIN behind it if wanted: tcp, tcp/eth0, verbs;ofi_rxm",
    help: "What reaches processes of other hosts: a provider and, as its domain, an interface (fi_info lists them), nothing, \
           or, with auto, tcp if the launcher says that the job has ranks on other hosts. The same provider in all processes of a job",
};

const TABLE: [&Parameter; 13] = [
    &SCHEME,
    &SLOTS,
    &CREDIT_SLOTS,
    &PIGGYBACK,
    &EAGER_SIZE,
    &RX_MEMORY,
    &PEERS,
    &BULK,
    &BOUNCE_BUFFERS,
    &SPIN,
    &CLOSE_TIMEOUT,
    &STATS_DIR,
    &FABRIC,
];

/// All parameters with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// See `FI_TIDEGATE_SCHEME`.
    pub scheme: SchemeName,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of these, for credit packets.
    pub credit_slots: u32,
    /// See `FI_TIDEGATE_PIGGYBACK`.
    pub piggyback: bool,
    /// Longest eager message in bytes.
    pub eager_bytes: usize,
    /// The bound on receive memory in bytes, if the user said.
    pub receive_memory: Option<usize>,
    /// Peers, if the user said.
    pub peers: Option<u32>,
    /// See `FI_TIDEGATE_BULK`.
    pub bulk: BulkChoice,
    /// Bounce buffers per process.
    pub bounce_buffers: u32,
    /// Empty polls before yielding, if the user said.
    pub spin: Option<u32>,
    /// How long closing waits for peers to take what was sent to them.
    pub close_timeout: Duration,
    /// Folder for counters.
    pub stats_dir: Option<PathBuf>,
    /// What reaches other hosts.
    pub fabric: Choice,
    /// What the launcher told.
    pub job: Job,
}

/// Registers the table with libfabric.
pub(crate) fn register(loader: &Loader) {
    for Parameter { name, default, allowed, help } in TABLE {
        let help = format!("{help}. Allowed: {allowed} (default: {default})");
        let (Ok(name), Ok(help)) = (CString::new(*name), CString::new(help)) else { continue };
        loader.define_parameter(&name, &help);
    }
}

/// Reads and checks all parameters. The error names parameter, value, and what is allowed.
pub(crate) fn read(loader: &Loader) -> Result<Settings, String> {
    let settings = Settings::parse(|name| loader.parameter(&CString::new(name).ok()?));
    let settings = settings.map_err(|refusal| refusal.to_string())?;
    log::info(FI_LOG_CORE, || format!("settings: {settings:?}"));
    Ok(settings)
}

/// Why a value, or several together, cannot be used.
#[derive(Debug)]
pub enum Refusal {
    /// The value of one parameter.
    Value(Misfit),
    /// Values that flow control cannot work with together.
    Combination(ConfigError),
}

/// A value that a parameter does not take.
#[derive(Debug)]
pub struct Misfit {
    parameter: &'static Parameter,
    value: String,
}

impl Misfit {
    /// What the parameter takes instead.
    pub fn remedy(&self) -> String {
        let Parameter { default, allowed, .. } = self.parameter;
        format!("must be {allowed} (default: {default})")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Value(misfit) => {
                write!(f, "{} is \"{}\", but {}", variable(misfit.parameter.name), misfit.value, misfit.remedy())
            }
            Refusal::Combination(error) => f.write_str(&error.named(&NAMES)),
        }
    }
}

/// The environment variable of a parameter.
pub fn variable(name: &str) -> String {
    PREFIX.to_owned() + &name.to_uppercase()
}

/// The environment variables of all parameters.
pub fn variables() -> impl Iterator<Item = String> {
    TABLE.iter().map(|parameter| variable(parameter.name))
}

/// Whether the parameter takes this value, whatever the others are.
pub fn check(name: &str, value: &str) -> Result<(), Misfit> {
    Settings::each(|asked| (asked == name).then(|| value.to_owned())).map(|_| ())
}

/// The bound on receive memory unless the user says otherwise, in bytes.
const RECEIVE_MEMORY: usize = 64 << 20;
/// Peers that find room beside those that the launcher or the application has told of: spawned processes, tools.
const PEERS_SPARE: u32 = 16;
/// The link's header field for a peer has 20 bits.
const PEERS_MOST: u32 = 0xf_ffff;

impl Settings {
    /// The bound on receive memory in bytes, `least` being the smallest that is legal. A value that the user gave is
    /// returned as it is: the endpoint refuses it if it is too small.
    pub fn receive_memory(&self, least: usize) -> usize {
        self.receive_memory.unwrap_or(RECEIVE_MEMORY.max(least))
    }

    /// The configuration of flow control. `expected` is how many addresses the application expects in its address
    /// vector; it counts where the launcher does not tell the number of ranks.
    pub fn flow(&self, expected: usize) -> Config {
        let expected = u32::try_from(expected).unwrap_or(PEERS_MOST).max(1);
        let known = self.job.size.unwrap_or(expected);
        let peers = self.peers.unwrap_or(known.saturating_add(PEERS_SPARE).min(PEERS_MOST));
        Config { piggyback: self.piggyback, ..Config::new(self.scheme, peers, self.slots_per_peer, self.credit_slots) }
    }
}

impl Settings {
    /// Reads and checks all parameters. `value_of` returns the text of a parameter by its name in the table, such as
    /// `slots`. An empty text counts as not set.
    pub fn parse(value_of: impl Fn(&str) -> Option<String>) -> Result<Settings, Refusal> {
        let settings = Settings::each(value_of).map_err(Refusal::Value)?;
        // Flow control checks the values that depend on each other.
        settings.flow(1).regions().map_err(Refusal::Combination)?;
        Ok(settings)
    }

    /// Checks every parameter by itself.
    fn each(value_of: impl Fn(&str) -> Option<String>) -> Result<Settings, Misfit> {
        let get = |parameter: &Parameter| value_of(parameter.name).filter(|text| !text.is_empty());
        Ok(Settings {
            scheme: scheme(get(&SCHEME))?,
            slots_per_peer: number(&SLOTS, get(&SLOTS), 1..=SLOTS_PER_PEER_MOST)?.unwrap_or(64),
            credit_slots: number(&CREDIT_SLOTS, get(&CREDIT_SLOTS), 0..=CREDIT_SLOTS_MOST)?.unwrap_or(2),
            piggyback: choose(&PIGGYBACK, get(&PIGGYBACK), &SWITCH)?,
            eager_bytes: bytes(&EAGER_SIZE, get(&EAGER_SIZE), 1 << 20)?.unwrap_or(2 << 10),
            receive_memory: bytes(&RX_MEMORY, get(&RX_MEMORY), 1 << 40)?,
            peers: number(&PEERS, get(&PEERS), 1..=PEERS_MOST)?,
            bulk: choose(&BULK, get(&BULK), &BULKS)?,
            bounce_buffers: number(&BOUNCE_BUFFERS, get(&BOUNCE_BUFFERS), 0..=BOUNCE_BUFFERS_MOST)?
                .unwrap_or(DEFAULT_BOUNCE_BUFFERS),
            spin: number(&SPIN, get(&SPIN), 0..=u32::MAX)?,
            close_timeout: Duration::from_secs(
                number(&CLOSE_TIMEOUT, get(&CLOSE_TIMEOUT), 0..=86_400)?.unwrap_or(300).into(),
            ),
            stats_dir: folder(&STATS_DIR, get(&STATS_DIR))?,
            fabric: fabric(get(&FABRIC))?,
            job: Job::from_environment(),
        })
    }
}

fn scheme(text: Option<String>) -> Result<SchemeName, Misfit> {
    let Some(text) = text else { return Ok(SchemeName::Dynamic) };
    text.trim().to_lowercase().parse().map_err(|_| refuse(&SCHEME, &text))
}

fn fabric(text: Option<String>) -> Result<Choice, Misfit> {
    let Some(text) = text else { return Ok(Choice::Auto) };
    text.parse().map_err(|()| refuse(&FABRIC, &text))
}

const BULKS: [(&str, BulkChoice); 4] = [
    ("auto", BulkChoice::Auto),
    ("direct", BulkChoice::Direct),
    ("bounced", BulkChoice::Bounced),
    ("mailbox", BulkChoice::Mailbox),
];
const SWITCH: [(&str, bool); 8] = [
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
fn choose<T: Copy>(parameter: &'static Parameter, text: Option<String>, choices: &[(&str, T)]) -> Result<T, Misfit> {
    let Some(text) = text else { return Ok(choices[0].1) };
    let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
    found.map(|(_, choice)| *choice).ok_or_else(|| refuse(parameter, &text))
}

fn number(
    parameter: &'static Parameter,
    text: Option<String>,
    range: core::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    let value = text.trim().parse().ok().filter(|value| range.contains(value));
    value.map(Some).ok_or_else(|| refuse(parameter, &text))
}

fn bytes(parameter: &'static Parameter, text: Option<String>, most: usize) -> Result<Option<usize>, Misfit> {
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

fn folder(parameter: &'static Parameter, text: Option<String>) -> Result<Option<PathBuf>, Misfit> {
    let Some(text) = text else { return Ok(None) };
    let (path, may_be_missing) = text.strip_prefix('?').map_or((&text[..], false), |path| (path, true));
    match (Path::new(path).is_dir(), may_be_missing) {
        (true, _) => Ok(Some(path.into())),
        (false, true) => Ok(None),
        (false, false) => Err(refuse(parameter, &text)),
    }
}

#[cfg(test)]
impl Default for Settings {
    fn default() -> Self {
        Settings::parse(|_| None).expect("defaults are allowed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings, String> {
        Settings::parse(|asked| (asked == name).then(|| value.to_owned())).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn defaults_are_those_in_the_table() {
        let settings = Settings::parse(|_| None).unwrap();
        assert_eq!(settings.scheme, SchemeName::Dynamic);
        assert_eq!((settings.slots_per_peer, settings.credit_slots, settings.eager_bytes), (64, 2, 2048));
        for parameter in [&SCHEME, &SLOTS, &CREDIT_SLOTS, &PIGGYBACK, &EAGER_SIZE, &BULK] {
            assert_eq!(with(parameter.name, parameter.default).unwrap(), settings, "{}", parameter.name);
        }
    }

    #[test]
    fn values_are_understood() {
        assert_eq!(with("scheme", "Static").unwrap().scheme, SchemeName::Static);
        assert!(!with("piggyback", "off").unwrap().piggyback);
        assert_eq!(with("eager_size", "16K").unwrap().eager_bytes, 16384);
        assert_eq!(with("eager_size", "0").unwrap().eager_bytes, 0);
        assert_eq!(with("rx_memory", "16M").unwrap().receive_memory, Some(16 << 20));
        assert_eq!(with("bulk", "mailbox").unwrap().bulk, BulkChoice::Mailbox);
        assert_eq!(with("bulk", "bounced").unwrap().bulk, BulkChoice::Bounced);
        assert_eq!(
            (with("bounce_buffers", "0").unwrap().bounce_buffers, with("bulk", "auto").unwrap().bounce_buffers),
            (0, 32)
        );
        assert_eq!(with("spin", "0").unwrap().spin, Some(0));
        assert_eq!(with("stats_dir", "/").unwrap().stats_dir, Some(PathBuf::from("/")));
        assert_eq!(with("stats_dir", "?/").unwrap().stats_dir, Some(PathBuf::from("/")));
        assert_eq!(with("stats_dir", "?/no/such/folder").unwrap().stats_dir, None);
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_allowed() {
        let said = with("scheme", "fast").unwrap_err();
        assert_eq!(said, "FI_TIDEGATE_SCHEME is \"fast\", but must be one of none, static, dynamic (default: dynamic)");
        for (name, value) in [
            ("slots", "-1"),
            ("slots", "many"),
            ("credit_slots", "-1"),
            ("piggyback", "maybe"),
            ("eager_size", "2G"),
            ("eager_size", "k"),
            ("eager_size", "1x"),
            ("peers", "0"),
            ("peers", "1048576"),
            ("rx_memory", "2T"),
            ("rx_memory", "64 MB of it"),
            ("bulk", "fast"),
            ("bounce_buffers", "32769"),
            ("spin", "1.5"),
            ("stats_dir", "/no/such/folder"),
        ] {
            let said = with(name, value).unwrap_err();
            assert!(said.contains(&format!("FI_TIDEGATE_{} is \"{value}\"", name.to_uppercase())), "{said}");
        }
    }

    #[test]
    fn a_value_that_others_make_impossible_is_a_value_all_the_same() {
        assert!(check("slots", "3").is_ok() && with("slots", "3").is_err());
        let misfit = check("slots", "abc").unwrap_err();
        assert_eq!(
            misfit.remedy(),
            "must be a number of slots up to 16777215, at least twice FI_TIDEGATE_CREDIT_SLOTS (default: 64)"
        );
    }

    #[test]
    fn slots_that_flow_control_refuses_are_an_error() {
        for value in ["0", "63"] {
            let said = with("credit_slots", value).unwrap_err();
            assert!(said.contains(&format!("FI_TIDEGATE_CREDIT_SLOTS={value}")), "{said}");
        }
    }

    #[test]
    fn peers_follow_the_user_then_the_launcher_then_the_application() {
        let mut settings = Settings::parse(|_| None).unwrap();
        settings.job.size = None;
        assert_eq!(settings.flow(4).peers, 20);
        assert_eq!(settings.flow(0).peers, 17);
        settings.job.size = Some(8);
        assert_eq!(settings.flow(4).peers, 24);
        settings.peers = Some(3);
        assert_eq!(settings.flow(4).peers, 3);
    }
}
