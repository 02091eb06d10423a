//! [`Refusal`]: fields whose values do not fit together, in the words of the file.
//!
//! The crates below name what they refuse by their own names. Here the errors get those of the file: its tables and
//! fields, and by these [`Sweep::read`](super::Sweep::read) finds the line.

use crate::{NetworkError, SetupError, SimulationError, TopologyError};
use tidegate_flow::{BufferField, ConfigError, Names, UnfitBuffers};
use tidegate_message::EndpointError;

use super::fields::FIELDS;
use super::file::Field;
use super::job::JobDraft;

/// A field by its table and its name.
pub type FieldName = (&'static str, &'static str);

/// A combination of values that is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The fields that decide it. The error stands where the first of them stands that the file has.
    pub fields: Vec<FieldName>,
    /// What is wrong, and the remedy.
    pub what: String,
    /// How many bytes `[flow] memory` needs at least, where it is too little.
    pub needs_bytes: Option<u64>,
}

/// What the numbers of flow control are called in a file.
const NAMES: Names = Names {
    slots: "[flow] slots_per_peer",
    credit_slots: "[flow] credit_slots",
    peers: "[flow] peers; without it all other processes are",
    receive_memory: "[flow] receive_memory",
    buffers: buffer_field,
};

/// What a number of posted buffers is called in a file.
const fn buffer_field(field: BufferField) -> &'static str {
    match field {
        BufferField::Packets => "[flow] buffer_bytes (in packets)",
        BufferField::PerConnection => "[flow] buffers",
        BufferField::PerConnectionMost => "[flow] buffers_most",
        BufferField::CreditThreshold => "[flow] credit_threshold",
        BufferField::QuietAfter => "[flow] quiet_after",
        BufferField::RetryTimer => "[flow] retry_timer",
        BufferField::PoolFirst => "[flow] pool_first",
        BufferField::PoolMost => "[flow] pool_most",
        BufferField::RefusalsMost => "[flow] refusals_most",
        BufferField::PoolSlots => "[flow] pool_slots",
    }
}

/// The field of a file.
fn named_in_file(field: BufferField) -> FieldName {
    let name = buffer_field(field).strip_prefix("[flow] ").and_then(|name| name.split(' ').next());
    ("flow", name.unwrap_or_default())
}

/// What decides how many processes there are.
const PROCESSES: [FieldName; 3] = [("machine", "processes_per_node"), ("network", "sizes"), ("machine", "nodes")];

impl Refusal {
    pub fn new(fields: &[FieldName], what: String) -> Self {
        Refusal { fields: fields.to_vec(), what, needs_bytes: None }
    }

    /// A refusal whose text names the fields that decide it between backticks, the most important one first.
    pub fn naming<D>(text: &str, fields: &[Field<D>]) -> Self {
        let (what, fields) = fields_named(text, fields);
        Refusal { fields, what, needs_bytes: None }
    }

    /// A refusal of a topology.
    pub fn of_topology(error: &TopologyError) -> Self {
        Refusal::new(&[("network", "sizes"), ("network", "topology")], format!("[network] sizes: {error}"))
    }

    /// A refusal of a whole configuration. Errors that only a run can give name no fields.
    pub fn of_simulation(error: &SimulationError) -> Self {
        match error {
            SimulationError::Config(error) => of_setup(error),
            SimulationError::Endpoint(error) => of_endpoint(error),
            SimulationError::Network(error) => of_network(error),
            other => Refusal::new(&[], with_tables(&other.to_string())),
        }
    }
}

fn of_setup(error: &SetupError) -> Refusal {
    let named: &[FieldName] = match error {
        SetupError::NoProcesses | SetupError::TooManyProcesses { .. } => &PROCESSES,
        SetupError::NoSuchNode { .. } => &[("machine", "nodes"), ("network", "sizes"), ("network", "topology")],
        SetupError::NodeNamedTwice { .. } => &[("machine", "nodes")],
        SetupError::NoiseTooOften => &[("machine", "noise_interval")],
        SetupError::NoiseWithoutInterval => &[("machine", "noise_duration")],
        SetupError::EagerTooLarge { .. } => &[("flow", "eager")],
    };
    let what = match error {
        SetupError::EagerTooLarge { .. } => format!("[flow] eager: {error}"),
        SetupError::TooManyProcesses { .. } => format!("{} ([network] sizes)", with_tables(&error.to_string())),
        _ => with_tables(&error.to_string()),
    };
    Refusal::new(named, what)
}

fn of_endpoint(error: &EndpointError) -> Refusal {
    let slots = [("flow", "slots_per_peer"), ("flow", "credit_slots")];
    let peers = [&[("flow", "peers")], &PROCESSES[..]].concat();
    let fields = match error {
        EndpointError::Flow(ConfigError::NoCreditSlots) => vec![("flow", "credit_slots")],
        EndpointError::Flow(ConfigError::TooFewSlots { .. } | ConfigError::DataRegionTooSmall { .. }) => slots.to_vec(),
        EndpointError::Flow(ConfigError::MailboxTooLarge { .. }) => [&slots[..1], &peers].concat(),
        EndpointError::Flow(ConfigError::TooManyPeers { .. }) => peers,
        EndpointError::Flow(
            ConfigError::Buffers(UnfitBuffers { field, .. }) | ConfigError::TooManyBuffers { field, .. },
        ) => {
            vec![named_in_file(*field)]
        }
        EndpointError::ReceiveMemoryTooSmall { buffers, .. } => {
            let sizes = buffers.map_or(slots[0], named_in_file);
            [&[("flow", "receive_memory"), sizes], &peers[..]].concat()
        }
    };
    Refusal::new(&fields, error.named(&NAMES))
}

fn of_network(error: &NetworkError) -> Refusal {
    let channels = ("network", "virtual_channels");
    let topology = [("network", "topology"), ("network", "sizes")];
    let buffers = [("network", "channel_buffer_packets"), ("network", "injection_buffer_packets")];
    match error {
        NetworkError::VirtualChannels { given, multiple_of } => Refusal::new(
            &[channels, topology[0]],
            format!(
                "[network] virtual_channels = {given}: this [network] topology avoids deadlock with {multiple_of} \
                 channels per lane, so give a multiple of {multiple_of}"
            ),
        ),
        // The numbers of the network have the names of their fields, some with a unit behind.
        NetworkError::Zero(name) => {
            let known = |field: &&Field<JobDraft>| field.section == "network" && name.starts_with(field.name);
            let fields: Vec<FieldName> =
                FIELDS.iter().find(known).into_iter().map(|field| (field.section, field.name)).collect();
            Refusal::new(&fields, format!("[network] {error}"))
        }
        NetworkError::TooLarge => Refusal::new(
            &[topology[1], channels, buffers[0], buffers[1], ("network", "extraction_buffer_packets")],
            format!(
                "[network] {error} ([network] sizes, virtual_channels, channel_buffer_packets, \
                 injection_buffer_packets, extraction_buffer_packets)"
            ),
        ),
    }
}

/// Puts the table before each field of a job that a text names between backticks.
fn with_tables(text: &str) -> String {
    fields_named(text, FIELDS).0
}

/// Puts the table before each of these fields that a text names between backticks; and the fields, in the text's order.
fn fields_named<D>(text: &str, fields: &[Field<D>]) -> (String, Vec<FieldName>) {
    let (mut what, mut named) = (text.to_owned(), Vec::new());
    for field in fields {
        let quoted = format!("`{}`", field.name);
        if let Some(place) = text.find(&quoted) {
            what = what.replace(&quoted, &format!("[{}] {}", field.section, field.name));
            named.push((place, (field.section, field.name)));
        }
    }
    named.sort_unstable();
    (what, named.into_iter().map(|(_, name)| name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_between_backticks_get_their_table() {
        assert_eq!(with_tables("raise `peers`, or so"), "raise [flow] peers, or so");
        assert_eq!(with_tables("a `word`"), "a `word`");
    }

    #[test]
    fn every_number_of_the_network_that_is_zero_is_a_field() {
        for name in ["link_bandwidth", "packet_granule_bytes", "virtual_channels", "extraction_buffer_packets"] {
            let refusal = Refusal::of_simulation(&SimulationError::Network(NetworkError::Zero(name)));
            assert_eq!(refusal.fields.len(), 1, "{name}");
            assert!(refusal.what.starts_with(&format!("[network] {name}")), "{}", refusal.what);
        }
    }
}
