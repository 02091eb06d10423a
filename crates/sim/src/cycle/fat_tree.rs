//! [`FatTree`]: a folded Clos network of routers that all have the same number of ports.
//!
//! **Wires.** With k = `radix` / 2, a router below the top has k ports down and k ports up, one at the top has all of
//! its ports down: 2 kᴸ nodes for L levels. A router of level l is named by the prefix of the nodes below it (their
//! numbers without the last l + 1 digits) and by l digits that say which of the equal routers above these nodes it is.
//! Port u up leads to the router with u as a further digit.
//!
//! **Ways.** Up to the first router below which the receiver lies, then down, where there is one way only. Each port up
//! will do: minimal routing takes the one that the receiver's number names, so that all ways to one node meet as low as
//! possible; Valiant's takes a random one at each level; adaptive routing takes the least occupied one.
//!
//! **No deadlock.** A packet goes up, turns once, and goes down: ports up by level, then ports down by level, are
//! classes of buffers that it climbs. Each channel is enough by itself, so a packet keeps the one that it began with.

use super::layout::{Far, LayoutError, Routing};
use super::packet::Journey;
use crate::Random;

/// The shape of a fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Ports of a router; even.
    pub radix: u32,
    /// Levels of routers.
    pub levels: u32,
}

impl FatTree {
    /// Whether this can be wired.
    ///
    /// # Errors
    /// If it cannot, the error says why.
    pub fn check(&self) -> Result<(), LayoutError> {
        if self.radix < 2 || !self.radix.is_multiple_of(2) {
            return Err(LayoutError::Radix(self.radix));
        }
        if self.levels == 0 || self.levels > 20 {
            return Err(LayoutError::Levels(self.levels));
        }
        Ok(())
    }

    fn half(&self) -> u32 {
        self.radix / 2
    }

    fn power(&self, exponent: u32) -> u32 {
        self.half().pow(exponent)
    }

    /// Nodes, without overflow.
    pub(super) fn nodes(&self) -> u64 {
        (0..self.levels).fold(2_u64, |nodes, _| nodes.saturating_mul(u64::from(self.half())))
    }

    /// Routers of a level; the top has half as many as the others.
    fn routers_of(&self, level: u32) -> u32 {
        let top = self.power(self.levels - 1);
        if level + 1 == self.levels { top } else { 2 * top }
    }

    pub(super) fn routers(&self) -> u32 {
        (0..self.levels).map(|level| self.routers_of(level)).sum()
    }

    /// The level of a router, and its number there.
    fn level_of(&self, router: u32) -> (u32, u32) {
        let each = 2 * self.power(self.levels - 1);
        (router / each, router % each)
    }

    fn number(&self, level: u32, prefix: u32, upper: u32) -> u32 {
        level * 2 * self.power(self.levels - 1) + prefix * self.power(level) + upper
    }

    pub(super) fn place_of(&self, node: u32) -> (u32, u32) {
        if self.levels == 1 { (0, node) } else { (node / self.half(), node % self.half()) }
    }

    /// Whether a link ends at the top.
    pub(super) fn is_global(&self, router: u32, port: u32) -> bool {
        let (level, _) = self.level_of(router);
        level + 1 == self.levels || (level + 2 == self.levels && port >= self.half())
    }

    pub(super) fn far(&self, router: u32, port: u32) -> Far {
        let half = self.half();
        let (level, index) = self.level_of(router);
        let (prefix, upper) = (index / self.power(level), index % self.power(level));
        let is_top = level + 1 == self.levels;
        if is_top || port < half {
            if level == 0 {
                return Far::Node(if is_top { port } else { prefix * half + port });
            }
            let below = self.power(level - 1);
            let lower_prefix = if is_top { port } else { prefix * half + port };
            let router = self.number(level - 1, lower_prefix, upper % below);
            return Far::Router { router, port: half + upper / below };
        }
        let above = level + 1;
        let (next_prefix, digit) = if above + 1 == self.levels { (0, prefix) } else { (prefix / half, prefix % half) };
        let upper = upper + (port - half) * self.power(level);
        Far::Router { router: self.number(above, next_prefix, upper), port: digit }
    }

    /// Where a packet goes from here.
    #[inline]
    pub(super) fn route(
        &self,
        router: u32,
        journey: &Journey,
        routing: Routing,
        occupied: impl Fn(u32) -> u32,
        random: &mut Random,
    ) -> u32 {
        let half = self.half();
        let (level, index) = self.level_of(router);
        let size = self.power(level);
        if level + 1 == self.levels {
            return journey.to / size;
        }
        if journey.to / size / half == index / size {
            return journey.to / size % half;
        }
        let first = match routing {
            Routing::Minimal => return half + journey.to / size % half,
            Routing::Valiant | Routing::Adaptive { .. } => random.below(u64::from(half)) as u32,
        };
        if routing == Routing::Valiant {
            return half + first;
        }
        let from_first = (0..half).map(|step| half + (first + step) % half);
        from_first.min_by_key(|&port| occupied(port)).unwrap_or(half)
    }
}
