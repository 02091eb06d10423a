//! A receive that waits, and where it stands.

use crate::collections::index::TagKey;
use crate::collections::list::Links;
use crate::collections::slab::Key;
use crate::envelope::{Number, Pattern};
use crate::operation::Context;
use std::fmt;

/// Where the message of a posted receive goes.
#[derive(Debug)]
pub(crate) enum Place<B> {
    Single(B),
    Multi(Key),
}

/// A receive that waits for a message.
pub(crate) struct Posted<B> {
    pub(crate) number: Number,
    pub(crate) pattern: Pattern,
    pub(crate) context: Context,
    pub(crate) report: bool,
    pub(crate) place: Place<B>,
    /// Its class and key, while it is indexed.
    pub(super) class: u8,
    pub(super) key: TagKey,
    pub(super) links: Links,
}

impl<B> Posted<B> {
    #[inline(always)]
    pub(crate) fn new(number: Number, pattern: Pattern, context: Context, report: bool, place: Place<B>) -> Self {
        Posted { number, pattern, context, report, place, class: 0, key: 0, links: Links::default() }
    }
}

/// Without what follows from the list.
impl<B: fmt::Debug> fmt::Debug for Posted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Posted { number, pattern, context, report, place, .. } = self;
        f.debug_tuple("Posted").field(number).field(pattern).field(context).field(report).field(place).finish()
    }
}
