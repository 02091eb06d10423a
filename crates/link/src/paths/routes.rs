//! [`Routes`]: which place of the endpoint leads to which place of which link.

use tidegate_flow::PeerId;

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
    /// Where more places are opened as newcomers come: how many of the newcomers' each link has. Together they are as
    /// many as the endpoint has, so a peer that has found a place in a link's table has one here.
    shares: Option<[u32; 2]>,
    /// The link that has said last that few of its places are free: it gets the next that are opened.
    lacking: usize,
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
        Routes { classes: [all, Class::default()], ..Routes::default() }
    }

    /// From now on so many places are open, and so many in the end. Returns both for either link: a link has the peers
    /// of the first class that come by it, and its share of the newcomers; all of them where there will be no more.
    pub(super) fn open(&mut self, open: u32, most: u32) -> [(u32, u32); 2] {
        let planned = self.planned.unwrap_or_default();
        self.classes[usize::from(self.planned.is_some())].end = open;
        let newcomers = open.saturating_sub(planned[0] + planned[1]);
        if self.shares.is_none() && open == most {
            return planned.map(|of_link| (newcomers + of_link, newcomers + of_link));
        }
        let shares = self.shares.get_or_insert([newcomers - newcomers / 2, newcomers / 2]);
        shares[self.lacking] += newcomers.saturating_sub(shares[0] + shares[1]);
        [0, 1].map(|link| planned[link] + shares[link]).map(|of_link| (of_link, of_link + most.saturating_sub(open)))
    }

    /// A link says that few of its places are free.
    pub(super) fn note_lack(&mut self, of: Path) {
        self.lacking = of.parts().0;
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
    fn places_that_are_opened_are_of_the_link_that_lacks_them_and_none_without_one_here() {
        let mut routes = Routes::new(1000);
        routes.divide([2, 1]);
        assert_eq!(routes.open(9, 1000), [(2 + 3, 996), (1 + 3, 995)], "each has half");
        routes.note_lack(Path::Second(PeerId(0)));
        assert_eq!(routes.open(13, 1000), [(2 + 3, 992), (1 + 7, 995)]);
        routes.note_lack(Path::First(PeerId(0)));
        assert_eq!(routes.open(14, 14), [(2 + 4, 6), (1 + 7, 8)], "these were the last");
        let all = (0..6).map(|peer| Path::First(PeerId(peer))).chain((0..8).map(|peer| Path::Second(PeerId(peer))));
        let places: Vec<_> = all.filter_map(|path| routes.admit(path)).collect();
        assert_eq!(places.len(), 14, "there is one for each that a link has");
    }

    #[test]
    fn where_no_more_will_be_opened_all_newcomers_may_come_by_one_link() {
        let mut routes = Routes::new(1000);
        routes.divide([2, 1]);
        assert_eq!(routes.open(9, 9), [(2 + 6, 8), (1 + 6, 7)]);
    }

    #[test]
    fn where_newcomers_have_as_much_as_others_all_peers_are_shared() {
        let mut routes = Routes::new(1000);
        assert_eq!(routes.open(3, 1000), [(2, 999), (1, 998)]);
        assert_eq!(routes.open(1000, 1000), [(999, 999), (1, 1)]);
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
