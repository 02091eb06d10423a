//! [`Routes`]: which place of the endpoint leads to which place of which link.

use tidegate_flow::PeerId;
use tidegate_message::PLACES_AHEAD;

/// By which link a peer is reached, and its place in that link's table of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// By the first link.
    First(PeerId),
    /// By the second link.
    Second(PeerId),
}

/// The endpoint's places, and where each leads.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// By place of the endpoint.
    paths: Vec<Option<Path>>,
    /// By place of either link: the place of the endpoint.
    places: [Vec<Option<PeerId>>; 2],
    /// Places of each class.
    classes: [Class; 2],
    /// How many peers of each link are of the first class; `None`: all. A link tells its peers how much is set aside
    /// for them by their places in its table, and the endpoint goes by its own places: so the first class in the one
    /// has to be the first class in the other.
    planned: Option<[u32; 2]>,
    /// How many places may be open in the end.
    most: u32,
    /// A newcomer came when few places were free.
    is_low: bool,
}

/// Places of the endpoint of one class: those that it was planned for, or newcomers'.
#[derive(Debug, Default)]
struct Class {
    /// Places that were given back.
    free: Vec<PeerId>,
    /// The first that was never given out, and the first that belongs to it no more.
    next: u32,
    end: u32,
}

impl Class {
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.next == self.end
    }

    /// How many of its places are free.
    fn left(&self) -> usize {
        self.free.len() + (self.end - self.next) as usize
    }

    fn take(&mut self) -> Option<PeerId> {
        self.free.pop().or_else(|| {
            let place = PeerId(self.next);
            (self.next < self.end).then(|| self.next += 1).map(|()| place)
        })
    }
}

impl Path {
    /// Which of the two links, and the place in its table.
    fn parts(self) -> (usize, usize) {
        match self {
            Path::First(peer) => (0, peer.0 as usize),
            Path::Second(peer) => (1, peer.0 as usize),
        }
    }
}

impl Routes {
    /// None yet; so many places there may be.
    pub(super) fn new(most: u32) -> Self {
        let all = Class { end: most, ..Class::default() };
        Routes { classes: [all, Class::default()], most, ..Routes::default() }
    }

    /// From now on so many places are open, and so many in the end. Returns both for either link: a link has the peers
    /// of the first class that come by it, and all newcomers may.
    pub(super) fn open(&mut self, open: u32, most: u32) -> [(u32, u32); 2] {
        let planned = self.planned.unwrap_or_default();
        let of_newcomers = planned[0] + planned[1];
        self.classes[usize::from(self.planned.is_some())].end = open;
        (self.most, self.is_low) = (most, false);
        planned.map(|of_link| [open, most].map(|places| places.saturating_sub(of_newcomers) + of_link).into())
    }

    /// How many places are open.
    pub(super) fn open_places(&self) -> u32 {
        self.classes[usize::from(self.planned.is_some())].end
    }

    /// Whether more places may be opened.
    pub(super) fn may_open(&self) -> bool {
        self.open_places() < self.most
    }

    /// Whether few places were free when a newcomer came, since the last call.
    #[inline(always)]
    pub(super) fn poll_low(&mut self) -> bool {
        // Asked at each poll: nothing is written where nothing is told.
        let is_low = self.is_low;
        if is_low {
            self.is_low = false;
        }
        is_low
    }

    /// Before the first place is given out: of each link this number of peers is of the first class.
    pub(super) fn divide(&mut self, planned: [u32; 2]) {
        let [first, second] = &mut self.classes;
        let end = first.end.min(planned[0] + planned[1]);
        *second = Class { next: end, end: first.end, ..Class::default() };
        (first.end, self.planned) = (end, Some(planned));
    }

    pub(super) fn path(&self, place: PeerId) -> Option<Path> {
        self.paths.get(place.0 as usize).copied().flatten()
    }

    pub(super) fn find(&self, path: Path) -> Option<PeerId> {
        let (link, peer) = path.parts();
        self.places[link].get(peer).copied().flatten()
    }

    /// The place that leads to `path`, a new one if there is none. `None`: all are taken.
    pub(super) fn admit(&mut self, path: Path) -> Option<PeerId> {
        if let Some(place) = self.find(path) {
            return Some(place);
        }
        let (link, peer) = path.parts();
        let is_newcomer = self.planned.is_some_and(|planned| peer >= planned[link] as usize);
        let class = &mut self.classes[usize::from(is_newcomer)];
        let may_be_more = is_newcomer || self.planned.is_none();
        self.is_low |= may_be_more && class.end < self.most && class.left() < PLACES_AHEAD as usize;
        let place = class.take()?;
        if self.paths.len() <= place.0 as usize {
            self.paths.resize(place.0 as usize + 1, None);
        }
        self.paths[place.0 as usize] = Some(path);
        let places = &mut self.places[link];
        if places.len() <= peer {
            places.resize(peer + 1, None);
        }
        places[peer] = Some(place);
        Some(place)
    }

    /// Whether a peer that comes next may find no place.
    pub(super) fn is_full(&self) -> bool {
        self.classes[0].is_full() || self.planned.is_some() && self.classes[1].is_full()
    }

    /// The place goes to another.
    pub(super) fn release(&mut self, place: PeerId) -> Option<Path> {
        let path = self.paths.get_mut(place.0 as usize)?.take()?;
        let (link, peer) = path.parts();
        self.places[link][peer] = None;
        self.classes[usize::from(place.0 >= self.classes[0].end)].free.push(place);
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_place_and_a_place_one_path_until_it_is_released() {
        let mut routes = Routes::new(2);
        let (shared, network) = (Path::First(PeerId(7)), Path::Second(PeerId(7)));
        assert_eq!((routes.admit(shared), routes.admit(network)), (Some(PeerId(0)), Some(PeerId(1))));
        assert_eq!((routes.admit(shared), routes.path(PeerId(1))), (Some(PeerId(0)), Some(network)));
        let third = Path::First(PeerId(8));
        assert_eq!((routes.admit(third), routes.find(third)), (None, None), "all places are taken");
        assert_eq!(
            (routes.release(PeerId(0)), routes.release(PeerId(0)), routes.path(PeerId(0))),
            (Some(shared), None, None)
        );
        assert_eq!((routes.admit(third), routes.find(shared), routes.path(PeerId(9))), (Some(PeerId(0)), None, None));
    }

    #[test]
    fn places_are_opened_for_newcomers_by_either_link_and_asked_for_when_few_are_free() {
        const OPEN: u32 = 3 + PLACES_AHEAD;
        let mut routes = Routes::new(1000);
        routes.divide([2, 1]);
        assert_eq!(routes.open(OPEN, 1000), [(OPEN - 1, 999), (OPEN - 2, 998)]);
        assert_eq!((routes.admit(Path::First(PeerId(0))), routes.poll_low()), (Some(PeerId(0)), false));
        let newcomer = |number| Path::Second(PeerId(1 + number));
        assert_eq!((routes.admit(newcomer(0)), routes.poll_low()), (Some(PeerId(3)), false), "all were free");
        assert_eq!((routes.admit(newcomer(1)), routes.poll_low(), routes.poll_low()), (Some(PeerId(4)), true, false));
        let last = (2..PLACES_AHEAD + 1).filter_map(|number| routes.admit(newcomer(number))).last();
        assert_eq!((last, routes.poll_low()), (Some(PeerId(OPEN - 1)), true), "one finds none, and that is told");
        assert_eq!(
            (routes.may_open(), routes.open(OPEN + 1, OPEN + 1)[1], routes.may_open()),
            (true, (OPEN - 1, OPEN - 1), false)
        );
        assert_eq!(
            (routes.admit(Path::First(PeerId(2))), routes.poll_low()),
            (Some(PeerId(OPEN)), false),
            "the last of all"
        );
    }

    #[test]
    fn where_newcomers_have_as_much_as_others_places_are_asked_for_as_well() {
        let mut routes = Routes::new(1000);
        assert_eq!(routes.open(2, 1000), [(2, 1000); 2]);
        assert_eq!((routes.admit(Path::First(PeerId(0))), routes.poll_low()), (Some(PeerId(0)), true));
        routes.open(1000, 1000);
        assert_eq!((routes.admit(Path::Second(PeerId(0))), routes.poll_low()), (Some(PeerId(1)), false));
    }

    #[test]
    fn the_first_peers_of_each_link_are_those_that_the_endpoint_was_planned_for() {
        let mut routes = Routes::new(6);
        routes.divide([2, 1]);
        let places = |routes: &mut Routes, path: fn(PeerId) -> Path| {
            [0, 1, 2, 3].map(|peer| routes.admit(path(PeerId(peer))).map(|place| place.0))
        };
        assert_eq!(places(&mut routes, Path::Second), [Some(0), Some(3), Some(4), Some(5)]);
        assert!(routes.is_full(), "a newcomer finds no place");
        assert_eq!(places(&mut routes, Path::First), [Some(1), Some(2), None, None]);
        for (place, next) in [(0, Path::Second(PeerId(0))), (4, Path::First(PeerId(2)))] {
            assert!(routes.release(PeerId(place)).is_some() && routes.path(PeerId(place)).is_none());
            assert_eq!(routes.admit(next), Some(PeerId(place)), "a place goes to one of the same class");
        }
    }
}
