//! Configuration of flow control and what follows from it (P eq. 2).

use crate::buffers::{BufferField, Buffers, UnfitBuffers};
use crate::{ReceiverResource, SchemeName};
use std::fmt;

/// Most peers an endpoint may have: a packet names its sender in 20 bits.
pub const PEERS_MAX: u32 = (1 << 20) - 1;

/// Most slots a mailbox may have (64 GiB): counters of slots, credits and packets then never overflow.
pub const MAILBOX_SLOTS_MAX: u32 = 1 << 30;

/// What the user chooses. Every process of a job must choose alike, but for how many peers it has and expects, and,
/// where slots move or are not lent at all, how many slots it has for each: then those are its own affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The scheme.
    pub scheme: SchemeName,
    /// Peers that may send to this endpoint, itself excluded. 0 is a job of one process.
    pub peers: u32,
    /// How many of these are expected to come, the first. Under `dynamic` they share the data region at the start, and
    /// whoever comes beyond them has its static slots, and earns what others do not use. `None`: all. Nothing else
    /// depends on it, and other schemes do not look at it, but that `none` has the mailbox that `dynamic` has.
    pub expected_peers: Option<u32>,
    /// How many of the peers, the last, are newcomers: there are more than the endpoint was planned for when they come,
    /// such as many processes that are spawned at once. Flow control makes no difference between them and others that
    /// are not expected. An endpoint keeps little memory for messages of a newcomer, so that room for many newcomers,
    /// who may never come, takes little from others.
    pub newcomers: u32,
    /// How many of the newcomers, the last, have no place when the endpoint opens. Their places are opened while the
    /// endpoint runs, when newcomers need them and memory is there that pays for them. There are none where a peer has
    /// slots or buffers of its own, since a mailbox does not grow.
    pub later: u32,
    /// Mailbox slots per peer, credit slots included; of a peer that is not expected there are as few as are legal.
    pub slots_per_peer: u32,
    /// Of those, slots reserved for credit packets. Without meaning under `none`.
    pub credit_slots: u32,
    /// Whether credits ride on data packets (P §5.4).
    pub piggyback: bool,
    /// Most data slots that one sender may earn under `dynamic` (P §7.4.1, fig. 26), at least its equal share. `None`:
    /// all that others do not use.
    pub quota_most: Option<u32>,
    /// How receivers post buffers, under the schemes that lend buffers. Those take as much memory as this says, and
    /// slots per peer mean nothing to them.
    pub buffers: Buffers,
}

impl Config {
    /// The plain form: no credits ride on data packets, and nothing caps what a sender may earn.
    pub const fn new(scheme: SchemeName, peers: u32, slots_per_peer: u32, credit_slots: u32) -> Self {
        Config {
            scheme,
            peers,
            expected_peers: None,
            newcomers: 0,
            later: 0,
            slots_per_peer,
            credit_slots,
            piggyback: false,
            quota_most: None,
            buffers: Buffers::of(scheme),
        }
    }
}

/// How the mailbox divides. All counts are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    /// Slots of the whole mailbox.
    pub mailbox: u32,
    /// Slots of the data region, over all peers.
    pub data: u32,
    /// Slots of the credit region, over all peers.
    pub credit: u32,
    /// The share of the data region of an expected peer, rounded down.
    pub quota: u32,
}

/// A refused configuration. Its text names the number to change and what it may be; [`named`](ConfigError::named) says
/// it with the names of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// More peers than a packet header can name.
    TooManyPeers {
        /// `Config::peers`.
        peers: u32,
    },
    /// No slot for credit packets: credits could never come back.
    NoCreditSlots,
    /// Fewer slots per peer than the scheme needs (P eq. 2).
    TooFewSlots {
        /// `Config::slots_per_peer`.
        slots_per_peer: u32,
        /// `Config::credit_slots`; 0 under `none`.
        credit_slots: u32,
        /// The smallest legal number of slots per peer.
        least: u64,
    },
    /// More slots than [`MAILBOX_SLOTS_MAX`].
    MailboxTooLarge {
        /// `Config::slots_per_peer`.
        slots_per_peer: u32,
        /// `Config::peers`.
        peers: u32,
        /// The largest legal number of slots per peer with so many peers.
        most: u32,
    },
    /// A data region, given by itself, that is smaller than the credit region (P eq. 2).
    DataRegionTooSmall {
        /// Slots of the data region.
        data: u32,
        /// Slots of the credit region, the least that is legal.
        credit: u32,
    },
    /// A number of [`Config::buffers`] that makes no sense.
    Buffers(UnfitBuffers),
    /// More buffers than fit into [`MAILBOX_SLOTS_MAX`] slots.
    TooManyBuffers {
        /// Buffers that the endpoint would have at most.
        buffers: u64,
        /// [`Buffers::packets`].
        packets: u32,
        /// The field to lower.
        field: BufferField,
        /// How many buffers are allowed.
        most: u64,
    },
}

/// What the numbers of a configuration are called where a product lets its users set them.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// [`Config::slots_per_peer`].
    pub slots: &'static str,
    /// [`Config::credit_slots`].
    pub credit_slots: &'static str,
    /// [`Config::peers`].
    pub peers: &'static str,
    /// The bound on receive memory.
    pub receive_memory: &'static str,
    /// Fields of [`Config::buffers`].
    pub buffers: fn(BufferField) -> &'static str,
}

impl Names {
    /// As the fields are called here.
    pub const FIELDS: Names = Names {
        slots: "slots_per_peer",
        credit_slots: "credit_slots",
        peers: "peers",
        receive_memory: "receive_memory",
        buffers: BufferField::name,
    };
}

impl ConfigError {
    /// The text of the error, with the names by which users know the numbers.
    pub fn named(&self, names: &Names) -> String {
        let Names { slots, credit_slots: credits, peers: of_peers, .. } = names;
        match *self {
            ConfigError::TooManyPeers { peers } => {
                format!("{of_peers}={peers} is too many: at most {PEERS_MAX} peers are allowed")
            }
            ConfigError::NoCreditSlots => {
                format!("{credits}=0 is too few: at least 1 slot per peer is needed, or credits could not come back")
            }
            ConfigError::TooFewSlots { slots_per_peer, credit_slots: 0, least } => {
                format!("{slots}={slots_per_peer} is too few: at least {least} per peer is needed")
            }
            ConfigError::TooFewSlots { slots_per_peer, credit_slots, least } => format!(
                "{slots}={slots_per_peer} is too few: with {credits}={credit_slots} at least {least} per peer are needed, \
                 so that there are as many slots for data as for credits"
            ),
            ConfigError::MailboxTooLarge { slots_per_peer, peers, most } => format!(
                "{slots}={slots_per_peer} is too many: with {peers} peers ({of_peers}) at most {most} per peer are allowed"
            ),
            ConfigError::DataRegionTooSmall { data, credit } => {
                format!("a data region of {data} slots is too small: the credit region alone has {credit}")
            }
            ConfigError::Buffers(unfit) => unfit.named((names.buffers)(unfit.field)),
            ConfigError::TooManyBuffers { buffers, packets, field, most } => format!(
                "{}: {buffers} buffers of {packets} packets are too many: with so many {of_peers} an endpoint may have \
                 at most {most}",
                (names.buffers)(field)
            ),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&Names::FIELDS))
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// The regions, or why the configuration is refused (P eq. 2).
    ///
    /// Where slots are lent `data region ≥ credit region ≥ 1 slot per peer` must hold; a scheme that lends nothing has
    /// no credit region and gives every slot to data, so that schemes compare at equal memory.
    pub fn regions(&self) -> Result<Regions, ConfigError> {
        let &Config { scheme, peers, slots_per_peer, credit_slots, .. } = self;
        if peers > PEERS_MAX {
            return Err(ConfigError::TooManyPeers { peers });
        }
        let credit_slots = match scheme.lends() {
            ReceiverResource::Nothing => 0,
            ReceiverResource::FixedSlots | ReceiverResource::MovingSlots if credit_slots == 0 => {
                return Err(ConfigError::NoCreditSlots);
            }
            ReceiverResource::FixedSlots | ReceiverResource::MovingSlots => credit_slots,
            _ => return self.regions_of_buffers(),
        };
        let least = (2 * u64::from(credit_slots)).max(1);
        if u64::from(slots_per_peer) < least {
            return Err(ConfigError::TooFewSlots { slots_per_peer, credit_slots, least });
        }
        let most = MAILBOX_SLOTS_MAX / peers.max(1);
        if slots_per_peer > most {
            return Err(ConfigError::MailboxTooLarge { slots_per_peer, peers, most });
        }
        let expected = self.expected();
        let mailbox = slots_per_peer * expected + self.slots_of_unexpected() * (peers - expected);
        let credit = credit_slots * peers;
        Ok(Regions { mailbox, data: mailbox - credit, credit, quota: slots_per_peer - credit_slots })
    }

    /// How many peers the endpoint was planned for: all but the newcomers.
    pub fn planned(&self) -> u32 {
        self.peers.saturating_sub(self.newcomers)
    }

    /// How many peers have places when the endpoint opens.
    pub fn at_opening(&self) -> u32 {
        self.peers.saturating_sub(self.later)
    }

    /// How many peers share the data region at the start.
    pub fn expected(&self) -> u32 {
        match self.scheme.lends() {
            ReceiverResource::FixedSlots => self.peers,
            _ => self.expected_peers.unwrap_or(self.peers).min(self.peers),
        }
    }

    /// Slots of a peer that is not expected: as many as are legal at least, and no more than of one that is.
    fn slots_of_unexpected(&self) -> u32 {
        self.credit_slots.saturating_mul(2).clamp(1, self.slots_per_peer)
    }

    /// The field to lower where posted buffers take too much memory; `None`: the scheme lends none.
    pub fn buffers_field(&self) -> Option<BufferField> {
        self.scheme.lends().posts_buffers().then(|| self.buffers_most().1)
    }

    /// Buffers that an endpoint has at most, posted or full, and the field that says so; 0 under schemes that lend
    /// none.
    fn buffers_most(&self) -> (u64, BufferField) {
        let (peers, buffers) = (u64::from(self.peers), &self.buffers);
        match self.scheme.lends() {
            ReceiverResource::PoolBuffers => (buffers.pool_bound().into(), BufferField::PoolMost),
            ReceiverResource::PoolSlots => (buffers.pool_slots.into(), BufferField::PoolSlots),
            ReceiverResource::GrowingBuffers => {
                (peers * u64::from(buffers.per_connection_most), BufferField::PerConnectionMost)
            }
            ReceiverResource::Buffers | ReceiverResource::CreditedBuffers => {
                (peers * u64::from(buffers.per_connection), BufferField::PerConnection)
            }
            ReceiverResource::Nothing | ReceiverResource::FixedSlots | ReceiverResource::MovingSlots => {
                (0, BufferField::PerConnection)
            }
        }
    }

    /// The regions of a scheme that lends buffers: room for all buffers there can be, and none beside them, because
    /// credit packets take buffers like any message.
    fn regions_of_buffers(&self) -> Result<Regions, ConfigError> {
        self.buffers.check(self.scheme).map_err(ConfigError::Buffers)?;
        let packets = self.buffers.packets;
        let (buffers, field) = self.buffers_most();
        let buffers = if self.peers == 0 { 0 } else { buffers };
        let most = u64::from(MAILBOX_SLOTS_MAX / packets);
        if buffers > most {
            return Err(ConfigError::TooManyBuffers { buffers, packets, field, most });
        }
        let slots = buffers as u32 * packets;
        Ok(Regions { mailbox: slots, data: slots, credit: 0, quota: slots.checked_div(self.peers).unwrap_or(0) })
    }

    /// The regions when the data region has `data` slots in all instead of `slots_per_peer − credit_slots` per peer,
    /// for explorers: the smallest worlds in which something is stolen have slots that do not divide evenly. Buffers
    /// are not slots: schemes that lend buffers have as many as before.
    ///
    /// The product has no use for it. P §7.2 gives the share of peers that are reached through shared memory to the
    /// others; but an endpoint learns which path leads to a peer at the first contact, when its mailboxes have their
    /// size. Instead each path has a mailbox of its own with room for all: a packet of a neighbour never takes a slot
    /// from a peer on another host.
    #[doc(hidden)]
    pub fn regions_with_data(&self, data: u32) -> Result<Regions, ConfigError> {
        let even = self.regions()?;
        if self.scheme.lends().posts_buffers() {
            return Ok(even);
        }
        let mailbox = u64::from(even.credit) + u64::from(data);
        if data < even.credit {
            return Err(ConfigError::DataRegionTooSmall { data, credit: even.credit });
        }
        if mailbox > u64::from(MAILBOX_SLOTS_MAX) {
            let most = MAILBOX_SLOTS_MAX / self.peers.max(1);
            return Err(ConfigError::MailboxTooLarge { slots_per_peer: self.slots_per_peer, peers: self.peers, most });
        }
        let expected = self.expected();
        let shared = data.saturating_sub(self.credit_slots * (self.peers - expected));
        let quota = shared.checked_div(expected).unwrap_or(even.quota);
        Ok(Regions { mailbox: mailbox as u32, data, credit: even.credit, quota })
    }
}
