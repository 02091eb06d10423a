//! The parameters `FI_TIDEGATE_*`: one table of name, default, what is allowed and meaning. `fi_info -g tidegate` lists
//! it.
//!
//! The command `tidegate` reads the same table: it checks options and environment before any process starts, and says
//! what the provider would say.

pub mod launcher;
pub(crate) mod limits;
pub mod misspelling;

use crate::border::bindings::FI_LOG_CORE;
use crate::border::loader::Loader;
use crate::border::log;
use crate::lower::Choice;
pub use crate::lower::Ports;
use crate::parameter::launcher::Job;
use std::ffi::{CString, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_link::fabric::Chunking;
use tidegate_link::{
    BOUNCE_BUFFERS_MOST, BulkChoice, CREDIT_SLOTS_MOST, DEFAULT_BOUNCE_BUFFERS, DEFAULT_SEND_BUFFERS, NAMES,
    SEND_BUFFERS_MOST, SLOTS_PER_PEER_MOST,
};
use tidegate_message::flow::{ConfigError, SchemeName};

mod buffers;
mod chunks;
mod newcomers;
mod peers;
mod rows;
pub mod sizes;
mod values;

pub use buffers::BufferSettings;
pub use chunks::ChunkSettings;
use peers::PEERS_MOST;
use rows::*;
use values::*;
pub use values::{Misfit, Progress, TraceSettings};

/// What the names of all variables begin with.
pub(crate) const PREFIX: &str = "FI_TIDEGATE_";

/// All parameters with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// See `FI_TIDEGATE_SCHEME`.
    pub scheme: SchemeName,
    /// Mailbox slots per peer, credit slots included, if the user said.
    pub slots_per_peer: Option<u32>,
    /// Of these, for credit packets.
    pub credit_slots: u32,
    /// See `FI_TIDEGATE_PIGGYBACK`.
    pub piggyback: bool,
    /// What was said of posted buffers.
    pub buffers: BufferSettings,
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
    /// Send buffers of a process.
    pub send_buffers: u32,
    /// How long messages are taken out of their senders' memories.
    pub chunks: ChunkSettings,
    /// Who makes progress.
    pub progress: Progress,
    /// Empty polls before yielding, if the user said.
    pub spin: Option<u32>,
    /// How long closing waits for peers to take what was sent to them.
    pub close_timeout: Duration,
    /// Folder for counters.
    pub stats_dir: Option<PathBuf>,
    /// The trace, if there is to be one.
    pub trace: Option<TraceSettings>,
    /// What reaches other hosts.
    pub fabric: Choice,
    /// The ports at which that may listen, if the user said.
    pub ports: Option<Ports>,
    /// What the launcher told.
    pub job: Job,
    /// Memory that the processes of this node may use together, in bytes, where the system says.
    pub node_memory: Option<u64>,
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

/// Who makes progress, as far as the user's choice is one that there is.
pub(crate) fn progress(loader: &Loader) -> Progress {
    let chosen = CString::new(PROGRESS.name).ok().and_then(|name| loader.parameter(&name));
    let chosen = chosen.map(|text| text.to_string_lossy().into_owned());
    choose(&PROGRESS, chosen.filter(|text| !text.is_empty()), &PROGRESSES).unwrap_or_default()
}

/// Why a value, or several together, cannot be used.
#[derive(Debug)]
pub enum Refusal {
    /// The value of one parameter.
    Value(Misfit),
    /// Values that flow control cannot work with together.
    Combination(ConfigError),
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
    Settings::each(|asked| (asked == name).then(|| value.into())).map(|_| ())
}

/// The most chunks that may be under way: as many reads a network is opened for.
const CHUNKS_MOST_MOST: u32 = 1024;

impl Settings {
    /// Reads and checks all parameters. `value_of` returns the text of a parameter by its name in the table, such as
    /// `slots`. An empty text counts as not set.
    pub fn parse(value_of: impl Fn(&str) -> Option<OsString>) -> Result<Settings, Refusal> {
        let settings = Settings::each(value_of).map_err(Refusal::Value)?;
        // Flow control checks the values that depend on each other.
        settings.flow(1, |_| 0).0.regions().map_err(Refusal::Combination)?;
        Ok(settings)
    }

    /// Checks every parameter by itself.
    fn each(value_of: impl Fn(&str) -> Option<OsString>) -> Result<Settings, Misfit> {
        let raw = |parameter: &Parameter| value_of(parameter.name).filter(|text| !text.is_empty());
        let get = |parameter: &Parameter| raw(parameter).map(|text| text.to_string_lossy().into_owned());
        let usual = Chunking::default();
        let has_shares = [&SLOTS, &CREDIT_SLOTS, &PIGGYBACK].into_iter().any(|parameter| raw(parameter).is_some());
        Ok(Settings {
            scheme: scheme(get(&SCHEME), has_shares)?,
            slots_per_peer: number(&SLOTS, get(&SLOTS), 1..=SLOTS_PER_PEER_MOST)?,
            credit_slots: number(&CREDIT_SLOTS, get(&CREDIT_SLOTS), 0..=CREDIT_SLOTS_MOST)?.unwrap_or(2),
            piggyback: choose(&PIGGYBACK, get(&PIGGYBACK), &SWITCH)?,
            buffers: BufferSettings::read(get)?,
            eager_bytes: bytes(&EAGER_SIZE, get(&EAGER_SIZE), 1 << 20)?.unwrap_or(2 << 10),
            receive_memory: bytes(&RX_MEMORY, get(&RX_MEMORY), 1 << 40)?,
            peers: number(&PEERS, get(&PEERS), 1..=PEERS_MOST)?,
            bulk: choose(&BULK, get(&BULK), &BULKS)?,
            bounce_buffers: number(&BOUNCE_BUFFERS, get(&BOUNCE_BUFFERS), 0..=BOUNCE_BUFFERS_MOST)?
                .unwrap_or(DEFAULT_BOUNCE_BUFFERS),
            send_buffers: number(&SEND_BUFFERS, get(&SEND_BUFFERS), 0..=SEND_BUFFERS_MOST)?
                .unwrap_or(DEFAULT_SEND_BUFFERS),
            chunks: ChunkSettings {
                is_single: choose(&RENDEZVOUS, get(&RENDEZVOUS), &RENDEZVOUSES)?,
                bytes: bytes_within(&CHUNK_SIZE, get(&CHUNK_SIZE), CHUNK_BYTES)?,
                in_flight: number(&CHUNKS_IN_FLIGHT, get(&CHUNKS_IN_FLIGHT), 1..=CHUNKS_MOST_MOST)?
                    .unwrap_or(usual.per_peer as u32),
                most: number(&rows::CHUNKS_MOST, get(&rows::CHUNKS_MOST), 1..=CHUNKS_MOST_MOST)?
                    .unwrap_or(usual.shared as u32),
            },
            progress: choose(&PROGRESS, get(&PROGRESS), &PROGRESSES)?,
            spin: number(&SPIN, get(&SPIN), 0..=u32::MAX)?,
            close_timeout: Duration::from_secs(
                number(&CLOSE_TIMEOUT, get(&CLOSE_TIMEOUT), 0..=86_400)?.unwrap_or(300).into(),
            ),
            stats_dir: folder(&STATS_DIR, raw(&STATS_DIR))?,
            trace: trace(raw)?,
            fabric: fabric(get(&FABRIC))?,
            ports: ports(get(&PORTS))?,
            job: Job::of_process(),
            node_memory: tidegate_link::node_memory(),
        })
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
    use std::os::unix::ffi::OsStringExt;
    use tidegate_message::flow::Buffers;

    fn with(name: &str, value: &str) -> Result<Settings, String> {
        Settings::parse(|asked| (asked == name).then(|| value.into())).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn defaults_are_those_in_the_table() {
        let settings = Settings::parse(|_| None).unwrap();
        assert_eq!(settings.scheme, SchemeName::Speculative);
        assert_eq!((settings.slots_per_peer, settings.credit_slots, settings.eager_bytes), (None, 2, 2048));
        assert!(SCHEME.default.starts_with("speculative; dynamic where "), "{}", SCHEME.default);
        for parameter in [&EAGER_SIZE, &BULK, &RENDEZVOUS, &PROGRESS, &CHUNKS_IN_FLIGHT, &rows::CHUNKS_MOST] {
            assert_eq!(with(parameter.name, parameter.default).unwrap(), settings, "{}", parameter.name);
        }
        for parameter in [&CREDIT_SLOTS, &PIGGYBACK] {
            let shares = Settings { scheme: SchemeName::Dynamic, ..settings.clone() };
            assert_eq!(with(parameter.name, parameter.default).unwrap(), shares, "{}", parameter.name);
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
        assert_eq!(with("progress", "thread").unwrap().progress, Progress::Thread);
        assert_eq!(with("stats_dir", "/").unwrap().stats_dir, Some(PathBuf::from("/")));
        assert_eq!(with("stats_dir", "?/").unwrap().stats_dir, Some(PathBuf::from("/")));
        assert_eq!(with("stats_dir", "?/no/such/folder").unwrap().stats_dir, None);
        let folder = PathBuf::from("/");
        assert_eq!(with("trace_dir", "?/").unwrap().trace, Some(TraceSettings { folder, most: 64 << 20 }));
        assert_eq!(with("trace_dir", "?/no/such/folder").unwrap().trace, None);
    }

    #[test]
    fn folders_may_have_names_that_are_no_text() {
        let name = OsString::from_vec(
            [b"tidegate-\xff-", &std::process::id().to_le_bytes().map(|byte| byte | 0x80)[..]].concat(),
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let of = |asked: &str| {
            let mut value = OsString::from("?");
            value.push(&folder);
            ["stats_dir", "trace_dir"].contains(&asked).then_some(value)
        };
        let settings = Settings::parse(of);
        std::fs::remove_dir(&folder).unwrap();
        let settings = settings.unwrap();
        assert_eq!(
            (settings.stats_dir.as_ref(), settings.trace.map(|trace| trace.folder)),
            (Some(&folder), Some(folder.clone()))
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_allowed() {
        let said = with("scheme", "fast").unwrap_err();
        assert_eq!(
            said,
            "FI_TIDEGATE_SCHEME is \"fast\", but must be one of none, static, dynamic, rnr, preposted, growing, shared_window, speculative (default: speculative; dynamic where FI_TIDEGATE_SLOTS, FI_TIDEGATE_CREDIT_SLOTS or FI_TIDEGATE_PIGGYBACK is set)"
        );
        for (name, value) in [
            ("buffers", "0"),
            ("buffers", "16384"),
            ("buffers_most", "32768"),
            ("buffer_size", "0"),
            ("buffer_size", "65k"),
            ("credit_threshold", "0"),
            ("growth", "fast"),
            ("retry_timer", "0.009"),
            ("retry_timer", "655.37"),
            ("retry_timer", "NaN"),
            ("retry_timer", "1 ms"),
            ("quiet_after", "0"),
            ("quiet_after", "soon"),
            ("pool_first", "0"),
            ("pool_most", "524289"),
            ("pool_slots", "0"),
            ("pool_slots", "16777217"),
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
            ("send_buffers", "65537"),
            ("spin", "1.5"),
            ("progress", "auto"),
            ("rendezvous", "double"),
            ("chunk_size", "4095"),
            ("chunk_size", "2g"),
            ("chunks_in_flight", "0"),
            ("chunks_in_flight", "1025"),
            ("chunks_most", "0"),
            ("stats_dir", "/no/such/folder"),
            ("trace_dir", "/no/such/folder"),
            ("trace_most", "4095"),
            ("trace_most", "2t"),
            ("ports", "40000"),
            ("ports", "0-100"),
            ("ports", "40010-40000"),
        ] {
            let said = with(name, value).unwrap_err();
            let row = TABLE.iter().find(|row| row.name == name).unwrap();
            let expected = format!("FI_TIDEGATE_{} is \"{value}\", but must be {}", name.to_uppercase(), row.allowed);
            assert!(said.contains(&expected), "{said}");
        }
    }

    #[test]
    fn choosing_a_scheme_needs_no_other_option_and_one_option_makes_room_for_itself() {
        let buffers = |pairs: &[(&str, &str)]| {
            let value_of =
                |asked: &str| pairs.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).into());
            Settings::parse(value_of)
                .map(|settings| settings.flow(1, |_| 0).0.buffers)
                .map_err(|refusal| refusal.to_string())
        };
        for scheme in SchemeName::WITH_BUFFERS {
            assert_eq!(buffers(&[("scheme", scheme.name())]), Ok(Buffers::of(*scheme)));
        }
        let some = buffers(&[("scheme", "growing"), ("buffers", "200")]).unwrap();
        assert_eq!((some.per_connection, some.per_connection_most), (200, 200));
        let some = buffers(&[("scheme", "shared_window"), ("pool_most", "4")]).unwrap();
        assert_eq!((some.pool_first, some.pool_most), (4, 4));
        let some = buffers(&[("scheme", "shared_window"), ("pool_first", "8192")]).unwrap();
        assert_eq!((some.pool_first, some.pool_most), (8192, 8192));
        let some = buffers(&[("scheme", "rnr"), ("retry_timer", "0.01"), ("buffer_size", "64k")]).unwrap();
        assert_eq!((some.retry_timer, some.packets), (Duration::from_micros(10), 1171));
        let quiet_after = |text| buffers(&[("scheme", "growing"), ("quiet_after", text)]).unwrap().quiet_after;
        assert_eq!((quiet_after("0.5"), quiet_after("never")), (Some(Duration::from_millis(500)), None));
        let refusal = buffers(&[("scheme", "growing"), ("buffers", "10"), ("buffers_most", "9")]).unwrap_err();
        assert_eq!(refusal, "FI_TIDEGATE_BUFFERS_MOST=9 is not allowed: choose from 10 to 32767");
        let refusal = buffers(&[("scheme", "shared_window"), ("pool_first", "9"), ("pool_most", "8")]).unwrap_err();
        assert_eq!(refusal, "FI_TIDEGATE_POOL_FIRST=9 is not allowed: choose from 1 to 8");
    }

    #[test]
    fn a_value_that_others_make_impossible_is_a_value_all_the_same() {
        assert!(check("slots", "3").is_ok() && with("slots", "3").is_err());
        let misfit = check("slots", "abc").unwrap_err();
        assert_eq!(
            misfit.remedy(),
            format!(
                "must be a number of slots up to 16777215, at least twice FI_TIDEGATE_CREDIT_SLOTS (default: {})",
                SLOTS.default
            )
        );
    }

    #[test]
    fn slots_that_flow_control_refuses_are_an_error() {
        let said = with("credit_slots", "0").unwrap_err();
        assert!(said.contains("FI_TIDEGATE_CREDIT_SLOTS=0"), "{said}");
        let both = |asked: &str| match asked {
            "scheme" => Some("static".into()),
            "credit_slots" => Some("63".into()),
            _ => None,
        };
        let said = Settings::parse(both).unwrap_err().to_string();
        assert!(said.contains("FI_TIDEGATE_CREDIT_SLOTS=63"), "{said}");
        assert!(with("credit_slots", "63").is_ok(), "slots make room for them");
    }

    #[test]
    fn peers_follow_the_user_then_the_launcher_then_the_application() {
        let mut settings = Settings { node_memory: None, ..Settings::default() };
        let of = |settings: &Settings, addresses| {
            let flow = settings.flow(addresses, |_| 0).0;
            (flow.planned(), flow.expected_peers)
        };
        settings.job.size = None;
        assert_eq!(of(&settings, 100), (116, Some(116)));
        settings.job.size = Some(100);
        assert_eq!(of(&settings, 4), (256, Some(99)));
        for scheme in [SchemeName::Preposted, SchemeName::Growing] {
            settings.scheme = scheme;
            assert_eq!(of(&settings, 4).0, 116, "{scheme}: a place each costs many buffers");
        }
        settings.peers = Some(3);
        assert_eq!(of(&settings, 4), (3, None));
    }

    #[test]
    fn slots_follow_the_user_then_the_job_and_give_way_to_a_bound_on_memory() {
        let mut settings = Settings { node_memory: None, scheme: SchemeName::Dynamic, ..Settings::default() };
        settings.job.size = Some(8);
        const EACH: usize = 1 << 20;
        let slots = |settings: &Settings| settings.flow(4, |flow| flow.slots_per_peer as usize * EACH).0.slots_per_peer;
        assert_eq!(slots(&settings), 552);
        settings.receive_memory = Some(552 * EACH);
        assert_eq!(slots(&settings), 552);
        settings.receive_memory = Some(552 * EACH - 1);
        assert_eq!(slots(&settings), 16);
        settings.slots_per_peer = Some(20);
        assert_eq!(slots(&settings), 20);
    }

    #[test]
    fn a_pool_gives_way_to_a_bound_on_memory() {
        let mut settings = Settings { node_memory: None, ..Settings::default() };
        let pool = |settings: &Settings| settings.flow(4, |flow| flow.buffers.pool_slots as usize).0.buffers.pool_slots;
        assert_eq!(pool(&settings), 4096);
        settings.receive_memory = Some(4095);
        assert_eq!(pool(&settings), 256);
        settings.buffers.pool_slots = Some(5000);
        assert_eq!(pool(&settings), 5000);
    }

    #[test]
    fn numbers_of_shares_are_for_the_scheme_that_has_them() {
        for (name, value) in [("slots", "16"), ("credit_slots", "1"), ("piggyback", "off")] {
            assert_eq!(with(name, value).unwrap().scheme, SchemeName::Dynamic, "{name}");
        }
        let both = |asked: &str| match asked {
            "scheme" => Some("speculative".into()),
            "slots" => Some("16".into()),
            _ => None,
        };
        assert_eq!(Settings::parse(both).unwrap().scheme, SchemeName::Speculative);
    }
}
