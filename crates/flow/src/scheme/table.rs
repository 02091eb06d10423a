//! The table of all schemes: names, what receivers lend, help. Provider, command line, simulator and checkers read it.

use std::fmt;
use std::str::FromStr;

/// One row per scheme: `variant "name", type in this folder, what it lends, "help"`, handed to a macro that makes
/// something of them. Those `offered` show in help and errors; of these, those `with buffers` are called out of line
/// (see `chosen.rs`), and those `with a pool` lend slots to no sender in particular. Those `for tests` are not in
/// released code.
macro_rules! table {
    ($make:ident) => {
        $make! { $
            offered {
                None "none", none::NoFlowControl, Nothing, "the back-pressure of full mailboxes alone";
                Static "static", static_credits::Static, FixedSlots, "every sender owns an equal share of the slots for good";
                Dynamic "dynamic", dynamic::Dynamic, MovingSlots, "slots move to the senders that use them";
            }
            offered with buffers {
                Rnr "rnr", rnr::Rnr, Buffers, "posted buffers for each connection; what finds none is refused and sent again";
                Preposted "preposted", preposted::Preposted, CreditedBuffers,
                    "posted buffers for each connection, and a credit for each";
                Growing "growing", growing::Growing, GrowingBuffers,
                    "the same, and connections whose messages have to wait get more buffers";
                SharedWindow "shared_window", shared_window::SharedWindow, PoolBuffers,
                    "posted buffers in one pool, as many as bursts have shown to be needed";
            }
            offered with a pool {
                Speculative "speculative", speculative::Speculative, PoolSlots,
                    "one pool of slots for all senders, who send at once; what finds no slot stays where it is until it is invited";
            }
            for tests {
                RefuseThird "refuse_third", refuse_third::RefuseThird, Nothing,
                    "for tests, every third packet is refused and tried again after a while";
            }
        }
    };
}
pub(super) use table;

/// What a receiver lends to its senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverResource {
    /// Nothing: every slot of the mailbox takes data, and whoever writes has to look whether there is room.
    Nothing,
    /// To each sender its share of the slots of one mailbox, for good, by credits: a packet that a credit covers finds
    /// room. Some of the slots are kept for the packets that return credits (P eq. 2).
    FixedSlots,
    /// The same, but the shares move to the senders that use them.
    MovingSlots,
    /// To each sender buffers that hold a message each. Nobody counts them but the receiver's adapter, which refuses
    /// what finds none.
    Buffers,
    /// The same, and each sender has a credit for each of its buffers.
    CreditedBuffers,
    /// The same, and a sender whose messages have to wait gets more buffers.
    GrowingBuffers,
    /// One pool of buffers to all senders.
    PoolBuffers,
    /// One pool of slots to all senders: buffers that hold a packet each. A sender that finds none is invited when
    /// there are some.
    PoolSlots,
}

impl ReceiverResource {
    /// Whether receivers post buffers that hold a message each, instead of lending slots.
    pub const fn posts_buffers(self) -> bool {
        self.is_pool() || self.is_of_connections() || self.is_pool_of_slots()
    }

    /// Whether each connection has posted buffers of its own.
    pub const fn is_of_connections(self) -> bool {
        matches!(self, ReceiverResource::Buffers | ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers)
    }

    /// Whether all connections share one pool of posted buffers.
    pub const fn is_pool(self) -> bool {
        matches!(self, ReceiverResource::PoolBuffers)
    }

    /// Whether all senders share one pool of slots.
    pub const fn is_pool_of_slots(self) -> bool {
        matches!(self, ReceiverResource::PoolSlots)
    }

    /// Whether a peer has nothing of its own at a receiver: all senders share one pool.
    pub const fn shares_a_pool(self) -> bool {
        self.is_pool() || self.is_pool_of_slots()
    }

    /// Whether a short message that finds no credit is announced and fetched like a long one (L §4.2), so that its send
    /// waits for its receive.
    pub const fn announces_short_messages(self) -> bool {
        matches!(self, ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers)
    }

    /// Whether connections begin with few posted buffers and get more.
    pub const fn may_grow(self) -> bool {
        matches!(self, ReceiverResource::GrowingBuffers)
    }

    /// Whether packets of credits return what receivers lend.
    pub const fn has_credits(self) -> bool {
        !matches!(
            self,
            ReceiverResource::Nothing
                | ReceiverResource::Buffers
                | ReceiverResource::PoolBuffers
                | ReceiverResource::PoolSlots
        )
    }
}

/// Makes the names, and what is said of each.
macro_rules! names {
    (@words $first:literal $(, $word:literal)*) => { concat!("one of ", $first $(, ", ", $word)*) };
    (@helps $first:literal $first_help:literal $(, $word:literal $help:literal)*) => {
        concat!($first, ": ", $first_help $(, "; ", $word, ": ", $help)*)
    };
    ($dollar:tt
        offered { $($name:ident $word:literal, $scheme:ty, $lends:ident, $help:literal;)+ }
        offered with buffers { $($buf_name:ident $buf_word:literal, $buf_scheme:ty, $buf_lends:ident, $buf_help:literal;)+ }
        offered with a pool { $($pool_name:ident $pool_word:literal, $pool_scheme:ty, $pool_lends:ident, $pool_help:literal;)+ }
        for tests { $($test_name:ident $test_word:literal, $test_scheme:ty, $test_lends:ident, $test_help:literal;)+ }
    ) => {
        /// A scheme by its short name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SchemeName {
            $(#[doc = $help] $name,)+
            $(#[doc = $buf_help] $buf_name,)+
            $(#[doc = $pool_help] $pool_name,)+
            $(#[cfg(debug_assertions)] #[doc = $test_help] $test_name,)+
        }

        impl SchemeName {
            /// Every scheme, the simplest first, those for tests last. The place in this list is the scheme's number
            /// in files.
            pub const ALL: &[SchemeName] =
                &[$(SchemeName::$name,)+ $(SchemeName::$buf_name,)+ $(SchemeName::$pool_name,)+ $(#[cfg(debug_assertions)] SchemeName::$test_name,)+];
            /// Those whose receivers lend slots, or nothing.
            pub const WITHOUT_BUFFERS: &[SchemeName] =
                &[$(SchemeName::$name,)+ $(#[cfg(debug_assertions)] SchemeName::$test_name,)+];
            /// Those whose receivers post buffers.
            pub const WITH_BUFFERS: &[SchemeName] = &[$(SchemeName::$buf_name,)+];
            /// Those whose receivers have one pool of slots.
            pub const WITH_A_POOL: &[SchemeName] = &[$(SchemeName::$pool_name,)+];
            /// Those that users choose from.
            pub const OFFERED: &[SchemeName] =
                &[$(SchemeName::$name,)+ $(SchemeName::$buf_name,)+ $(SchemeName::$pool_name,)+];
            /// "one of …": the schemes that users choose from, for help and errors.
            pub const CHOICES: &str = names!(@words $($word,)+ $($buf_word,)+ $($pool_word),+);
            /// The help of each that is offered.
            pub const HELP: &str = names!(@helps $($word $help,)+ $($buf_word $buf_help,)+ $($pool_word $pool_help),+);

            /// The short name, as users write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SchemeName::$name => $word,)+
                    $(#[cfg(debug_assertions)] SchemeName::$test_name => $test_word,)+
                    $(SchemeName::$buf_name => $buf_word,)+
                    $(SchemeName::$pool_name => $pool_word,)+
                }
            }

            /// One line of help.
            pub const fn help(self) -> &'static str {
                match self {
                    $(SchemeName::$name => $help,)+
                    $(#[cfg(debug_assertions)] SchemeName::$test_name => $test_help,)+
                    $(SchemeName::$buf_name => $buf_help,)+
                    $(SchemeName::$pool_name => $pool_help,)+
                }
            }

            /// What receivers lend under it.
            pub const fn lends(self) -> ReceiverResource {
                match self {
                    $(SchemeName::$name => ReceiverResource::$lends,)+
                    $(#[cfg(debug_assertions)] SchemeName::$test_name => ReceiverResource::$test_lends,)+
                    $(SchemeName::$buf_name => ReceiverResource::$buf_lends,)+
                    $(SchemeName::$pool_name => ReceiverResource::$pool_lends,)+
                }
            }
        }
    };
}

table!(names);

impl fmt::Display for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SchemeName {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        let found = Self::ALL.iter().find(|scheme| scheme.name() == name);
        found.copied().ok_or_else(|| UnknownScheme(name.to_owned()))
    }
}

/// A name that no scheme has. `Display` says which there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScheme(pub String);

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not a scheme: choose {}", self.0, SchemeName::CHOICES)
    }
}

impl std::error::Error for UnknownScheme {}
