//! The scheme of an endpoint, made of the [table](super::table): each call goes to it without a detour.

use super::interface::Scheme;
#[cfg(debug_assertions)]
use super::refuse_third;
use super::table::{SchemeName, table};
use super::{dynamic, growing, none, preposted, rnr, shared_window, speculative, static_credits};
use crate::{Config, Regions};

macro_rules! chosen {
    ($dollar:tt
        offered { $($name:ident $word:literal, $scheme:ty, $lends:ident, $help:literal;)+ }
        offered with buffers { $($buf_name:ident $buf_word:literal, $buf_scheme:ty, $buf_lends:ident, $buf_help:literal;)+ }
        offered with a pool { $($pool_name:ident $pool_word:literal, $pool_scheme:ty, $pool_lends:ident, $pool_help:literal;)+ }
        for tests { $($test_name:ident $test_word:literal, $test_scheme:ty, $test_lends:ident, $test_help:literal;)+ }
    ) => {
        /// The scheme chosen. Which one is said in a byte of its own: each packet asks six times, and where the
        /// compiler may hide the answer in a field of the scheme, each question takes five instructions more. Schemes
        /// with buffers, and those for tests, are called out of line, so that the others' short answers stay in line:
        /// else a short message takes forty instructions more.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(clippy::large_enum_variant, reason = "an endpoint has one, and each call reads it")]
        pub(crate) enum Chosen {
            $($name($scheme),)+
            $($pool_name($pool_scheme),)+
            Other(Other),
        }

        /// A scheme with buffers, or one for tests, which is in debug builds only.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[allow(clippy::large_enum_variant, reason = "an endpoint has one, and each call reads it")]
        pub(crate) enum Other {
            $(#[cfg(debug_assertions)] $test_name($test_scheme),)+
            $($buf_name($buf_scheme),)+
        }

        impl Chosen {
            pub(crate) fn new(config: &Config, regions: Regions) -> Self {
                match config.scheme {
                    $(SchemeName::$name => Chosen::$name(Scheme::new(config, regions)),)+
                    $(SchemeName::$pool_name => Chosen::$pool_name(Scheme::new(config, regions)),)+
                    $(#[cfg(debug_assertions)] SchemeName::$test_name => Chosen::Other(Other::$test_name(Scheme::new(config, regions))),)+
                    $(SchemeName::$buf_name => Chosen::Other(Other::$buf_name(Scheme::new(config, regions))),)+
                }
            }

            pub(crate) fn name(&self) -> SchemeName {
                match self {
                    $(Chosen::$name(_) => SchemeName::$name,)+
                    $(Chosen::$pool_name(_) => SchemeName::$pool_name,)+
                    $(#[cfg(debug_assertions)] Chosen::Other(Other::$test_name(_)) => SchemeName::$test_name,)+
                    $(Chosen::Other(Other::$buf_name(_)) => SchemeName::$buf_name,)+
                }
            }
        }

        /// Calls a method of the scheme chosen.
        macro_rules! of_chosen {
            ($chosen:expr, $method:ident($dollar($argument:expr),*)) => {
                match $chosen {
                    $(Chosen::$name(scheme) => Scheme::$method(scheme, $dollar($argument),*),)+
                    $(Chosen::$pool_name(scheme) => Scheme::$method(scheme, $dollar($argument),*),)+
                    Chosen::Other(other) => out_of_line(|| match other {
                        $(#[cfg(debug_assertions)] Other::$test_name(scheme) => Scheme::$method(scheme, $dollar($argument),*),)+
                        $(Other::$buf_name(scheme) => Scheme::$method(scheme, $dollar($argument),*),)+
                    }),
                }
            };
        }
    };
}

/// Does it in a function of its own.
#[cold]
#[inline(never)]
pub(crate) fn out_of_line<R>(act: impl FnOnce() -> R) -> R {
    act()
}

table!(chosen);

#[allow(clippy::single_component_path_imports, reason = "without it other files do not see the macro")]
pub(crate) use of_chosen;
