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
    /// Places that were given back.
    free: Vec<PeerId>,
    /// Places that there may be.
    most: u32,
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
        Routes { most, ..Routes::default() }
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
        let place = self.free.pop().or_else(|| {
            let place = PeerId(self.paths.len() as u32);
            (place.0 < self.most).then(|| self.paths.push(None)).map(|()| place)
        })?;
        self.paths[place.0 as usize] = Some(path);
        let (link, peer) = path.parts();
        let places = &mut self.places[link];
        if places.len() <= peer {
            places.resize(peer + 1, None);
        }
        places[peer] = Some(place);
        Some(place)
    }

    /// Whether all places are taken.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.paths.len() as u32 == self.most
    }

    /// The place goes to another.
    pub(super) fn release(&mut self, place: PeerId) -> Option<Path> {
        let path = self.paths.get_mut(place.0 as usize)?.take()?;
        let (link, peer) = path.parts();
        self.places[link][peer] = None;
        self.free.push(place);
        Some(path)
    }
}
