//! [`Departing`]: the network's names for peers that have no place any more. The network must not be asked to forget
//! one before it has ended all that it had taken for it.

use super::network::{Network, Route};
use std::collections::VecDeque;
use tidegate_flow::PeerId;

/// A peer that has given its place away.
#[derive(Debug)]
struct Former {
    place: PeerId,
    generation: u16,
    route: Route,
    /// Sendings that the network has not ended.
    outstanding: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Departing {
    waiting: VecDeque<Former>,
    /// Those that wait at most: beyond, the oldest is forgotten too early.
    most: usize,
    over: Vec<Route>,
}

impl Departing {
    /// Nobody departs; at most so many ever will at a time.
    pub fn new(most: usize) -> Departing {
        Departing { waiting: VecDeque::new(), most, over: Vec::new() }
    }

    /// The network has nothing of this route any more.
    pub fn add(&mut self, route: Route) {
        self.over.push(route);
    }

    /// A place is given away; of the peer that had it, the network has so many sendings.
    pub fn add_with_outstanding(&mut self, place: PeerId, generation: u16, route: Route, outstanding: u32) {
        if outstanding == 0 {
            return self.over.push(route);
        }
        if self.waiting.len() >= self.most {
            self.over.extend(self.waiting.pop_front().map(|former| former.route));
        }
        self.waiting.push_back(Former { place, generation, route, outstanding });
    }

    /// A sending has ended to who had this place before.
    pub fn handle_ended(&mut self, place: PeerId, generation: u16) {
        let is_it = |former: &Former| (former.place, former.generation) == (place, generation);
        let Some(at) = self.waiting.iter().position(is_it) else { return };
        self.waiting[at].outstanding -= 1;
        if self.waiting[at].outstanding == 0 {
            self.over.extend(self.waiting.remove(at).map(|former| former.route));
        }
    }

    /// Makes the network forget those that it may.
    pub fn forget(&mut self, network: &mut impl Network) {
        self.over.drain(..).for_each(|route| network.forget(route));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_over_with_the_last_sending() {
        let mut departing = Departing::new(2);
        departing.add_with_outstanding(PeerId(1), 7, Route(1), 2);
        departing.add_with_outstanding(PeerId(2), 0, Route(2), 0);
        departing.handle_ended(PeerId(1), 8);
        departing.handle_ended(PeerId(1), 7);
        assert_eq!(departing.over, [Route(2)]);
        departing.handle_ended(PeerId(1), 7);
        assert_eq!(departing.over, [Route(2), Route(1)]);
        for place in 0..3 {
            departing.add_with_outstanding(PeerId(place), 0, Route(10 + u64::from(place)), 1);
        }
        assert_eq!((departing.waiting.len(), departing.over.last()), (2, Some(&Route(10))), "bounded");
    }
}
