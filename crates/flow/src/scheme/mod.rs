//! [`Scheme`]: what one kind of flow control has to say; and the table of all kinds. A scheme is one file (or folder)
//! that implements the trait, and one row of the table: everything else reads names, help and what is lent from here.

pub(crate) mod dynamic;
mod none;
mod refuse_third;
pub(crate) mod static_credits;

use crate::{Answer, Config, Control, Credits, Inspection, Instant, Packet, PeerId, Regions, Violation};
use std::fmt;
use std::str::FromStr;

/// What a receiver lends to its senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lends {
    /// Nothing: every slot of the mailbox takes data, and whoever writes has to look whether there is room.
    Nothing,
    /// To each sender its share of the slots of one mailbox, for good, by credits: a packet that a credit covers finds
    /// room. Some of the slots are kept for the packets that return credits (P eq. 2).
    FixedSlots,
    /// The same, but the shares move to the senders that use them.
    MovingSlots,
}

/// The decisions of one kind of flow control, for one endpoint in both of its roles. The defaults are those of `none`:
/// everybody may always send. [`FlowControl`](crate::FlowControl) says when each method is called.
pub(crate) trait Scheme {
    /// The initial state. A scheme never allocates after this.
    fn new(config: &Config, regions: Regions) -> Self;

    /// May up to `wanted` data packets leave for `to`?
    #[inline]
    fn request(&mut self, _to: PeerId, wanted: u32, _now: Instant) -> Answer {
        Answer::Packets(Credits::new(wanted))
    }

    /// Credits that were granted and not used.
    #[inline]
    fn give_back(&mut self, _to: PeerId, credits: Credits) {
        credits.into_count();
    }

    /// The packet that the first of these credits was for found no buffer at `to`; the others were not used. The packet
    /// is still with the caller, who asks again.
    fn handle_refused(&mut self, to: PeerId, credits: Credits, _now: Instant) {
        self.give_back(to, credits);
    }

    /// A data packet is about to leave: credits may ride on it.
    #[inline]
    fn piggyback(&mut self, _to: PeerId, _packet: &mut Packet) {}

    /// A packet was retrieved. Returns the credits gained towards its sender. Data is all there is where nothing is
    /// lent.
    #[inline]
    fn handle_retrieved(&mut self, _from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if packet.header.is_plain_data() { Ok(0) } else { Err(Violation::Unexpected) }
    }

    /// The next control packet to write.
    #[inline]
    fn poll_control(&mut self) -> Option<Control> {
        None
    }

    /// Whether the scheme acts on time.
    #[inline]
    fn is_timed(&self) -> bool {
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Does what was due until `now`.
    #[inline]
    fn handle_timeout(&mut self, _now: Instant) {}

    /// A peer towards which sends that wait may go on, because time has passed.
    #[inline]
    fn poll_ready(&mut self) -> Option<PeerId> {
        None
    }

    /// Back to the initial state towards one peer.
    fn reset(&mut self, _peer: PeerId) {}

    /// Packets that may leave for `to` now.
    #[inline]
    fn credits(&self, _to: PeerId) -> u32 {
        u32::MAX
    }

    /// Bytes of heap.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Fills in what the scheme has of a state that is shown.
    fn inspect(&self, _into: &mut Inspection) {}
}

/// Makes of the table: the names, what is said of each, and the value that holds the scheme chosen.
macro_rules! schemes {
    (@words $first:literal $(, $word:literal)*) => { concat!("one of ", $first $(, ", ", $word)*) };
    (@helps $first:literal $first_help:literal $(, $word:literal $help:literal)*) => {
        concat!($first, ": ", $first_help $(, "; ", $word, ": ", $help)*)
    };
    ($dollar:tt
        offered { $($name:ident $word:literal, $scheme:ty, $lends:ident, $help:literal;)+ }
        for tests { $($test_name:ident $test_word:literal, $test_scheme:ty, $test_lends:ident, $test_help:literal;)+ }
    ) => {
        /// A scheme by its short name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SchemeName {
            $(#[doc = $help] $name,)+
            $(#[doc = $test_help] $test_name,)+
        }

        impl SchemeName {
            /// Every scheme, the simplest first, those for tests last. The place in this list is the scheme's number in
            /// files.
            pub const ALL: &[SchemeName] = &[$(SchemeName::$name,)+ $(SchemeName::$test_name,)+];
            /// Those that users choose from.
            pub const OFFERED: &[SchemeName] = &[$(SchemeName::$name,)+];
            /// "one of …", for whoever asks what may be chosen.
            pub const CHOICES: &str = schemes!(@words $($word),+);
            /// The help of each that is offered.
            pub const HELP: &str = schemes!(@helps $($word $help),+);

            /// The short name, as users write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SchemeName::$name => $word,)+
                    $(SchemeName::$test_name => $test_word,)+
                }
            }

            /// One line of help.
            pub const fn help(self) -> &'static str {
                match self {
                    $(SchemeName::$name => $help,)+
                    $(SchemeName::$test_name => $test_help,)+
                }
            }

            /// What receivers lend under it.
            pub const fn lends(self) -> Lends {
                match self {
                    $(SchemeName::$name => Lends::$lends,)+
                    $(SchemeName::$test_name => Lends::$test_lends,)+
                }
            }
        }

        /// The scheme of an endpoint: each call goes to it without a detour.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub(crate) enum Chosen {
            $($name($scheme),)+
            $($test_name($test_scheme),)+
        }

        impl Chosen {
            pub(crate) fn new(config: &Config, regions: Regions) -> Self {
                match config.scheme {
                    $(SchemeName::$name => Chosen::$name(Scheme::new(config, regions)),)+
                    $(SchemeName::$test_name => Chosen::$test_name(Scheme::new(config, regions)),)+
                }
            }

            pub(crate) fn name(&self) -> SchemeName {
                match self {
                    $(Chosen::$name(_) => SchemeName::$name,)+
                    $(Chosen::$test_name(_) => SchemeName::$test_name,)+
                }
            }
        }

        /// Calls a method of the scheme chosen.
        macro_rules! of_chosen {
            ($chosen:expr, $method:ident($dollar($argument:expr),*)) => {
                match $chosen {
                    $(Chosen::$name(scheme) => Scheme::$method(scheme, $dollar($argument),*),)+
                    $(Chosen::$test_name(scheme) => Scheme::$method(scheme, $dollar($argument),*),)+
                }
            };
        }
    };
}
schemes! { $
    offered {
        None "none", none::NoFlowControl, Nothing, "the back-pressure of full mailboxes alone";
        Static "static", static_credits::Static, FixedSlots, "every sender owns an equal share of the slots for good";
        Dynamic "dynamic", dynamic::Dynamic, MovingSlots, "slots move to the senders that use them";
    }
    for tests {
        RefuseThird "refuse_third", refuse_third::RefuseThird, Nothing, "for tests, every third packet is refused and tried again after a while";
    }
}

#[allow(clippy::single_component_path_imports, reason = "without it other files do not see the macro")]
pub(crate) use of_chosen;

impl SchemeName {
    /// Whether packets of credits return what receivers lend.
    pub fn has_credits(self) -> bool {
        self.lends() != Lends::Nothing
    }
}

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
