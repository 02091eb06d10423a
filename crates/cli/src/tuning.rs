//! [`Tuning`]: the options that set parameters of the provider.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use tidegate_fi::parameter::{self, variable};
use tidegate_flow::SchemeName;

/// What both `run` and `env` take. What is not given stays as the environment says, else at the provider's default.
#[derive(Debug, Default, Args)]
pub struct Tuning {
    /// Flow control [default: speculative; dynamic with --slots, --credit-slots or --piggyback]
    #[arg(long, value_parser = scheme(), help_heading = "Flow control")]
    pub scheme: Option<SchemeName>,

    /// Mailbox slots of 64 bytes for each other rank (with --peers for each peer), credit slots included: dynamic,
    /// static, none [default: 64 while the mailbox takes 256 KiB to 1 MiB, else more or fewer, at least 16; static: 64]
    #[arg(long, value_name = "N", value_parser = value_of("slots"), help_heading = "Flow control")]
    pub slots: Option<String>,

    /// Slots per peer reserved for credit packets: dynamic, static, none [default: 2]
    #[arg(long, value_name = "N", value_parser = value_of("credit_slots"), help_heading = "Flow control")]
    pub credit_slots: Option<String>,

    /// Whether credits ride on data packets: dynamic, static [default: on]
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, help_heading = "Flow control")]
    pub piggyback: Option<Switch>,

    /// Posted buffers of each sender at the start: rnr, preposted, growing [default: 100; growing: 1]
    #[arg(long, value_name = "N", value_parser = value_of("buffers"), help_heading = "Posted buffers")]
    pub buffers: Option<String>,

    /// Posted buffers at most, times peers, which share them: growing [default: 100, or --buffers if that is more]
    #[arg(long, value_name = "N", value_parser = value_of("buffers_most"), help_heading = "Posted buffers")]
    pub buffers_most: Option<String>,

    /// Longest message that a posted buffer holds, in bytes [default: 2k]
    #[arg(long, value_name = "BYTES", value_parser = value_of("buffer_size"), help_heading = "Posted buffers")]
    pub buffer_size: Option<String>,

    /// Credits owed that leave in a packet of their own: preposted, growing [default: 5]
    #[arg(long, value_name = "N", value_parser = value_of("credit_threshold"), help_heading = "Posted buffers")]
    pub credit_threshold: Option<String>,

    /// By how much senders whose messages wait get more buffers: growing [default: linear]
    #[arg(long, value_name = "linear|exponential", value_parser = value_of("growth"), help_heading = "Posted buffers")]
    pub growth: Option<String>,

    /// Seconds that a sender keeps buffers that it does not need, or never to take them: growing [default: 1]
    #[arg(long, value_name = "S|never", value_parser = value_of("quiet_after"), help_heading = "Posted buffers")]
    pub quiet_after: Option<String>,

    /// Milliseconds until a message that found no posted buffer is tried again [default: 0.64]
    #[arg(long, value_name = "MS", value_parser = value_of("retry_timer"), help_heading = "Posted buffers")]
    pub retry_timer: Option<String>,

    /// Buffers that all senders share, at the start: shared_window [default: 8, or --pool-most if that is less]
    #[arg(long, value_name = "N", value_parser = value_of("pool_first"), help_heading = "Posted buffers")]
    pub pool_first: Option<String>,

    /// The same at most [default: 4096, or --pool-first if that is more]
    #[arg(long, value_name = "N", value_parser = value_of("pool_most"), help_heading = "Posted buffers")]
    pub pool_most: Option<String>,

    /// Mailbox slots of 64 bytes for all senders together: speculative [default: 4096, or 256 where --rx-memory leaves
    /// no room for that]
    #[arg(long, value_name = "N", value_parser = value_of("pool_slots"), help_heading = "Flow control")]
    pub pool_slots: Option<String>,

    /// Largest message sent through the mailbox, in bytes; k and M mean 1024 and 1024² [default: 2k]
    #[arg(long, value_name = "BYTES", value_parser = value_of("eager_size"), help_heading = "Flow control")]
    pub eager_size: Option<String>,

    /// Bound on the memory for messages that wait to be received, mailbox included, in bytes; k, M, G, T are powers of
    /// 1024 [default: 64M; at most an eighth of the node's memory for all ranks on it]
    #[arg(long, value_name = "BYTES", value_parser = value_of("rx_memory"), help_heading = "Flow control")]
    pub rx_memory: Option<String>,

    /// Peers that may connect to one endpoint: endpoints of other processes [default: 4 for each rank of the job and 16
    /// more, at least 64, while that takes little memory; ranks + 16 in any case; and up to 512 newcomers, or
    /// some 3,000 where all share a pool]
    #[arg(long, value_name = "N", value_parser = value_of("peers"), help_heading = "Flow control")]
    pub peers: Option<String>,

    /// How the data of long messages travels [default: auto]
    #[arg(long, value_enum, help_heading = "Flow control")]
    pub bulk: Option<Bulk>,

    /// Bounce buffers of 32 KiB per process, for long messages [default: 32]
    #[arg(long, value_name = "N", value_parser = value_of("bounce_buffers"), help_heading = "Flow control")]
    pub bounce_buffers: Option<String>,

    /// Send buffers of 16 KiB per process, for messages of 97 bytes to 16 KiB on one host [default: 32]
    #[arg(long, value_name = "N", value_parser = value_of("send_buffers"), help_heading = "Flow control")]
    pub send_buffers: Option<String>,

    /// Take long messages out of their senders' memories in chunks, or all at once [default: chunked]
    #[arg(long, value_name = "chunked|single", value_parser = value_of("rendezvous"), help_heading = "Long messages")]
    pub rendezvous: Option<String>,

    /// Bytes of a chunk [default: 256k between hosts, 1m in shared memory]
    #[arg(long, value_name = "BYTES", value_parser = value_of("chunk_size"), help_heading = "Long messages")]
    pub chunk_size: Option<String>,

    /// Chunks of one sender that a receiver has asked for at a time, between hosts [default: 8]
    #[arg(long, value_name = "N", value_parser = value_of("chunks_in_flight"), help_heading = "Long messages")]
    pub chunks_in_flight: Option<String>,

    /// The same of all senders together [default: 64]
    #[arg(long, value_name = "N", value_parser = value_of("chunks_most"), help_heading = "Long messages")]
    pub chunks_most: Option<String>,

    /// Of an earlier version: the provider says that it has no effect any more.
    #[arg(long, hide = true)]
    pub bulk_order: Option<String>,

    /// As `bulk_order`.
    #[arg(long, hide = true)]
    pub bulk_senders: Option<String>,

    /// As `bulk_order`.
    #[arg(long, hide = true)]
    pub bulk_quantum: Option<String>,

    /// As `bulk_order`.
    #[arg(long, hide = true)]
    pub bulk_stall: Option<String>,

    /// What makes progress: calls, or a thread as well, while sends wait or for all [default: on_demand]
    #[arg(long, value_name = "on_demand|calls|thread", value_parser = value_of("progress"), help_heading = "Long messages")]
    pub progress: Option<String>,

    /// Ports at which the network between hosts listens, one for each endpoint of a host: what a firewall has to let
    /// in [default: any that is free]
    #[arg(long, value_name = "LOW-HIGH", value_parser = value_of("ports"), help_heading = "Several hosts")]
    pub ports: Option<String>,

    /// The MPI to set up
    #[arg(long, value_enum, default_value_t = MpiChoice::Auto, help_heading = "Environment")]
    pub mpi: MpiChoice,

    /// Folder that holds libtidegate-fi.so [default: found near this command]
    #[arg(long, value_name = "DIR", env = "TIDEGATE_PROVIDER_DIR", hide_env_values = true, value_hint = ValueHint::DirPath,
          help_heading = "Environment")]
    pub provider_dir: Option<PathBuf>,
}

/// The names of flow control schemes, with their help. Schemes for tests are accepted and not shown.
fn scheme() -> impl TypedValueParser<Value = SchemeName> {
    let words = SchemeName::ALL.iter().map(|scheme| {
        PossibleValue::new(scheme.name()).help(scheme.help()).hide(!SchemeName::OFFERED.contains(scheme))
    });
    PossibleValuesParser::new(words).map(|word| word.parse().expect("only names of schemes are let through"))
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Switch {
    On,
    Off,
}

/// How the bytes of long messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bulk {
    /// Direct where the system allows it and it is found to be faster, else bounced
    Auto,
    /// The receiver reads the sender's memory
    Direct,
    /// In large pieces through bounce buffers in shared memory
    Bounced,
    /// In packets through the mailbox
    Mailbox,
}

/// An MPI, or the wish to have it recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MpiChoice {
    /// Recognise it from the launcher
    #[default]
    Auto,
    /// MPICH and what derives from it
    Mpich,
    /// Open MPI 4.1 or later
    Openmpi,
    /// Intel MPI
    Impi,
}

/// Checks a value as the provider does, so that a value which it would not accept is refused in the same words.
pub(crate) fn value_of(name: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| match parameter::check(name, text) {
        // To the provider an empty variable is an unset one.
        Ok(()) if !text.is_empty() => Ok(text.to_owned()),
        Ok(()) => Err("a value is needed".to_owned()),
        Err(misfit) => Err(with_options(&misfit.remedy(), |_| true)),
    }
}

/// A sentence on parameters, with the option in the place of the variable where `is_option` says so of its name.
pub(crate) fn with_options(text: &str, is_option: impl Fn(&str) -> bool) -> String {
    let command = Tuning::augment_args(clap::Command::new(""));
    let mut options: Vec<(String, &str)> = command
        .get_arguments()
        .filter_map(|option| option.get_long())
        .map(|long| (variable(&long.replace('-', "_")), long))
        .filter(|(variable, _)| is_option(variable))
        .collect();
    // The name of one may be the beginning of another's.
    options.sort_by_key(|(variable, _)| std::cmp::Reverse(variable.len()));
    options.iter().fold(text.to_owned(), |text, (variable, long)| text.replace(variable.as_str(), &format!("--{long}")))
}

impl Tuning {
    /// The provider's parameters that the options ask for, in the order of the help.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let word = |value: clap::builder::PossibleValue| value.get_name().to_owned();
        let mut parameters = Vec::new();
        let mut set = |name, value: Option<String>| parameters.extend(value.map(|value| (name, value)));
        set("FI_TIDEGATE_SCHEME", self.scheme.map(|scheme| scheme.to_string()));
        set("FI_TIDEGATE_SLOTS", self.slots.clone());
        set("FI_TIDEGATE_CREDIT_SLOTS", self.credit_slots.clone());
        set("FI_TIDEGATE_PIGGYBACK", self.piggyback.and_then(|v| v.to_possible_value()).map(word));
        set("FI_TIDEGATE_BUFFERS", self.buffers.clone());
        set("FI_TIDEGATE_BUFFERS_MOST", self.buffers_most.clone());
        set("FI_TIDEGATE_BUFFER_SIZE", self.buffer_size.clone());
        set("FI_TIDEGATE_CREDIT_THRESHOLD", self.credit_threshold.clone());
        set("FI_TIDEGATE_GROWTH", self.growth.clone());
        set("FI_TIDEGATE_QUIET_AFTER", self.quiet_after.clone());
        set("FI_TIDEGATE_RETRY_TIMER", self.retry_timer.clone());
        set("FI_TIDEGATE_POOL_FIRST", self.pool_first.clone());
        set("FI_TIDEGATE_POOL_MOST", self.pool_most.clone());
        set("FI_TIDEGATE_POOL_SLOTS", self.pool_slots.clone());
        set("FI_TIDEGATE_EAGER_SIZE", self.eager_size.clone());
        set("FI_TIDEGATE_RX_MEMORY", self.rx_memory.clone());
        set("FI_TIDEGATE_PEERS", self.peers.clone());
        set("FI_TIDEGATE_BULK", self.bulk.and_then(|v| v.to_possible_value()).map(word));
        set("FI_TIDEGATE_BOUNCE_BUFFERS", self.bounce_buffers.clone());
        set("FI_TIDEGATE_SEND_BUFFERS", self.send_buffers.clone());
        set("FI_TIDEGATE_RENDEZVOUS", self.rendezvous.clone());
        set("FI_TIDEGATE_CHUNK_SIZE", self.chunk_size.clone());
        set("FI_TIDEGATE_CHUNKS_IN_FLIGHT", self.chunks_in_flight.clone());
        set("FI_TIDEGATE_CHUNKS_MOST", self.chunks_most.clone());
        set("FI_TIDEGATE_BULK_ORDER", self.bulk_order.clone());
        set("FI_TIDEGATE_BULK_SENDERS", self.bulk_senders.clone());
        set("FI_TIDEGATE_BULK_QUANTUM", self.bulk_quantum.clone());
        set("FI_TIDEGATE_BULK_STALL", self.bulk_stall.clone());
        set("FI_TIDEGATE_PROGRESS", self.progress.clone());
        set("FI_TIDEGATE_PORTS", self.ports.clone());
        parameters
    }
}
