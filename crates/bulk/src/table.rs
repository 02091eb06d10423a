//! The table of all techniques: names, when a piece counts as sent, help.

use crate::technique::interface::{Completion, Event, Part, Step, Technique};
use crate::technique::{bandwidth_matching, barriers, booking, in_order, interleave, receiver_tokens, tokens};
use crate::{Booked, Node};
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use tidegate_flow::Instant;

/// Makes of one row per technique (`variant "name", type, completion, "help"`) the names and the dispatch.
macro_rules! table {
    ($($name:ident $word:literal, $technique:ty, $completion:ident, $help:literal;)+) => {
        /// A technique by its short name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TechniqueName {
            $(#[doc = $help] $name,)+
        }

        impl TechniqueName {
            /// Every technique, the simplest first.
            pub const ALL: &[TechniqueName] = &[$(TechniqueName::$name,)+];

            /// The short name, as users write it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(TechniqueName::$name => $word,)+ }
            }

            /// One line of help.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(TechniqueName::$name => $help,)+ }
            }

            /// When its pieces count as sent.
            #[must_use]
            pub const fn completion(self) -> Completion {
                match self { $(TechniqueName::$name => Completion::$completion,)+ }
            }
        }

        /// The state of the technique that was chosen.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Chosen {
            $($name($technique),)+
        }

        impl Chosen {
            pub(crate) fn new(name: TechniqueName, part: Part) -> Self {
                match name { $(TechniqueName::$name => Chosen::$name(<$technique>::new(part)),)+ }
            }

            pub(crate) fn step(&mut self, now: Instant) -> Step {
                match self { $(Chosen::$name(technique) => technique.step(now),)+ }
            }

            pub(crate) fn handle(&mut self, event: Event) {
                match self { $(Chosen::$name(technique) => technique.handle(event),)+ }
            }
        }
    };
}

table! {
    InOrder "in_order", in_order::InOrder, Local, "one block after the other";
    Interleave "interleave", interleave::Interleave, Local, "pieces for different receivers in turn";
    BandwidthMatching "bandwidth_matching", bandwidth_matching::BandwidthMatching, Local,
        "no faster than a receiver takes pieces from the network";
    Barriers "barriers", barriers::Barriers, Delivered, "a cyclic shift with a barrier behind each round";
    Tokens "tokens", tokens::Tokens, Delivered, "a cyclic shift whose senders pass on the right to send to a receiver";
    ReceiverTokens "receiver_tokens", receiver_tokens::ReceiverTokens, Delivered,
        "receivers let in one sender at a time, in the order of their requests";
    Booking "booking", booking::Booking, Delivered, "senders book rounds with their receivers as they go";
}

impl Chosen {
    pub(crate) fn holds_token(&self, of: Node) -> bool {
        match self {
            Chosen::Tokens(tokens) => tokens.holds(of),
            _ => false,
        }
    }

    pub(crate) fn bookings(&self) -> Vec<Booked> {
        match self {
            Chosen::Booking(booking) => booking.booked(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for TechniqueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no technique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTechnique(String);

impl fmt::Display for UnknownTechnique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no technique; there are", self.0)?;
        for (place, name) in TechniqueName::ALL.iter().enumerate() {
            write!(f, "{} {name}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Error for UnknownTechnique {}

impl FromStr for TechniqueName {
    type Err = UnknownTechnique;

    fn from_str(word: &str) -> Result<Self, UnknownTechnique> {
        let found = TechniqueName::ALL.iter().find(|name| name.name() == word);
        found.copied().ok_or_else(|| UnknownTechnique(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for name in TechniqueName::ALL {
            assert_eq!(name.name().parse(), Ok(*name));
        }
        let error = "bookings".parse::<TechniqueName>().unwrap_err().to_string();
        assert!(error.contains("bookings") && error.contains("receiver_tokens, booking"), "{error}");
    }
}
