//! [`Paths`]: two links behind one endpoint, which together are a link: it reaches some peers by the first and the
//! others by the second. Of three, the second is `Paths` again.
//!
//! Each link has a table of peers of its own. The endpoint's places are given out here, at first contact, and each
//! leads to one link and to a place there. A peer has one path as long as it has its place: packets of a pair keep
//! their order only within a link.
//!
//! Where there is no second link ([`Paths::alone`]), the endpoint's places are those of the first, and nothing is
//! looked up.
//!
//! Both links must have room for all that flow control lends: any peer may come by either. A peer that comes when all
//! of the endpoint's places are taken is told that nobody reads what it writes, and does not try again. Where more
//! places are opened as newcomers come, it waits in the link for one.

use routes::Routes;
use std::time::Duration;
use tidegate_flow::{Config, Header, PAYLOAD_BYTES, Packet, PeerId, Placement, Posting};
use tidegate_message::{
    Access, Arrival, BatchPiece, Bounce, BounceBuffers, Capabilities, Closing, Counters, Departure, Fill, Link,
    LinkEvent, Medium, PeerMemory, PeerNames, RemoteMemory, SenderWrites, Span, TransferId, TransferStatus, WriteError,
};

pub use routes::Path;

/// Two links that are one. See the module.
#[derive(Debug)]
pub struct Paths<A, B> {
    first: A,
    second: Option<B>,
    routes: Routes,
    /// Of the peers that the endpoint was planned for, how many may come by the first link, where some may come by the
    /// second; see [`with_share`](Self::with_share).
    share: Option<u32>,
    /// Whether the second link is asked first for the next packet.
    is_seconds_turn: bool,
    /// Whether the last packet came by the second link.
    is_seconds: bool,
}

/// Does something by the link that leads to a peer; something else if none does.
macro_rules! by_path {
    ($paths:expr, $peer:expr, $link:ident, $place:ident => $does:expr, else $nobody:expr) => {
        match ($paths.path($peer), &mut $paths.second) {
            (Some(Path::First($place)), _) => {
                let $link = &mut $paths.first;
                $does
            }
            (Some(Path::Second($place)), Some($link)) => $does,
            _ => $nobody,
        }
    };
}

mod carrying;
mod places;
mod routes;

impl<A: Link, B: Link<Buffer = A::Buffer>> Paths<A, B> {
    /// Two links for an endpoint that was made for so many peers. Bounce buffers and counters are those of the first.
    pub fn new(first: A, second: B, peers: u32) -> Self {
        let routes = Routes::new(peers);
        Paths { first, second: Some(second), routes, share: None, is_seconds_turn: false, is_seconds: false }
    }

    /// Where newcomers have less than the peers that the endpoint was planned for: how many of those are expected by
    /// the first link; the others are by the second. A peer that finds its share taken is a newcomer. Without this,
    /// each link has half of them.
    pub fn with_share(self, of_first: u32) -> Self {
        Paths { share: Some(of_first), ..self }
    }

    /// One link only.
    pub fn alone(first: A) -> Self {
        let routes = Routes::default();
        Paths { first, second: None, routes, share: None, is_seconds_turn: false, is_seconds: false }
    }

    /// The first link.
    #[inline]
    pub fn first(&mut self) -> &mut A {
        &mut self.first
    }

    /// The first link, to look at.
    #[inline]
    pub fn look_at_first(&self) -> &A {
        &self.first
    }

    /// The second link, if there is one.
    #[inline]
    pub fn second(&mut self) -> Option<&mut B> {
        self.second.as_mut()
    }

    /// The second link, to look at.
    #[inline]
    pub fn look_at_second(&self) -> Option<&B> {
        self.second.as_ref()
    }

    /// The path to a peer, if the place is taken.
    #[inline]
    pub fn path(&self, peer: PeerId) -> Option<Path> {
        if self.second.is_none() { Some(Path::First(peer)) } else { self.routes.path(peer) }
    }

    fn release_from_second(&mut self, peer: PeerId) {
        if let Some(second) = &mut self.second {
            second.release(peer);
        }
    }

    fn retrieve_from_first(&mut self) -> Option<Arrival> {
        let arrival = retrieve_from(&mut self.first, &mut self.routes, Path::First)?;
        self.is_seconds = false;
        Some(arrival)
    }

    fn retrieve_from_second(&mut self) -> Option<Arrival> {
        let arrival = retrieve_from(self.second.as_mut()?, &mut self.routes, Path::Second)?;
        self.is_seconds = true;
        Some(arrival)
    }

    /// The links take turns.
    #[inline(never)]
    fn retrieve_in_turn(&mut self) -> Option<Arrival> {
        self.is_seconds_turn = !self.is_seconds_turn;
        match self.is_seconds_turn {
            true => self.retrieve_from_first().or_else(|| self.retrieve_from_second()),
            false => self.retrieve_from_second().or_else(|| self.retrieve_from_first()),
        }
    }

    /// `fill` is called through a pointer, so that the short way alone has a copy of it.
    #[inline(never)]
    fn write_by_path(
        &mut self,
        to: PeerId,
        count: u32,
        fill: &mut dyn FnMut(&mut [Packet], Placement),
    ) -> Result<u32, WriteError> {
        let nobody = || WriteError::Unreachable(format!("there is no peer {}", to.0));
        by_path!(self, to, link, peer => link.write(peer, count, fill), else Err(nobody()))
    }

    #[inline(never)]
    fn poll_events(&mut self) -> Option<LinkEvent> {
        while let Some(event) = self.first.poll_event() {
            if let Some(event) = self.translate(event, Path::First) {
                return Some(event);
            }
        }
        while let Some(event) = self.second.as_mut().and_then(B::poll_event) {
            if let Some(event) = self.translate(event, Path::Second) {
                return Some(event);
            }
        }
        None
    }

    /// What the endpoint is told of an event of one of the links: nothing of a peer that has no place. When such a peer
    /// departs, its place in the link's own table is given back here.
    fn translate(&mut self, event: LinkEvent, path: fn(PeerId) -> Path) -> Option<LinkEvent> {
        let place = |peer| self.routes.find(path(peer));
        match event {
            LinkEvent::TransferEnded(..) | LinkEvent::LimitReached => Some(event),
            LinkEvent::PlacesLow => {
                self.routes.note_lack(path(PeerId(0)));
                Some(event)
            }
            LinkEvent::WriteFailed(peer, why) => Some(LinkEvent::WriteFailed(place(peer)?, why)),
            LinkEvent::Refused(peer) => place(peer).map(LinkEvent::Refused),
            LinkEvent::Closing(peer) => place(peer).map(LinkEvent::Closing),
            LinkEvent::Departed(Departure { peer, orderly, name }) => match place(peer) {
                Some(peer) => Some(LinkEvent::Departed(Departure { peer, orderly, name })),
                None => {
                    match path(peer) {
                        Path::First(peer) => self.first.release(peer),
                        Path::Second(peer) => self.release_from_second(peer),
                    }
                    None
                }
            },
        }
    }
}

/// The next packet of a link, with its source as the endpoint's place. A peer that finds no place there is released.
fn retrieve_from<L: Link>(link: &mut L, routes: &mut Routes, path: fn(PeerId) -> Path) -> Option<Arrival> {
    loop {
        let Arrival { source, packet } = link.retrieve()?;
        match routes.admit(path(source)) {
            Some(source) => return Some(Arrival { source, packet }),
            None => {
                // Not released, the peer would wait for an answer for ever.
                link.release(source);
            }
        }
    }
}

impl<A: Link, B: Link<Buffer = A::Buffer>> Medium for Paths<A, B> {
    type Buffer = A::Buffer;
}

impl<A: Link, B: Link<Buffer = A::Buffer>> PeerMemory for Paths<A, B> {
    fn capabilities(&mut self, peer: PeerId) -> Capabilities {
        match (self.path(peer), &mut self.second) {
            (Some(Path::First(peer)), _) => self.first.capabilities(peer),
            // The bounce buffers are the first link's.
            (Some(Path::Second(peer)), Some(second)) => {
                Capabilities { shares_bounce_buffers: false, ..second.capabilities(peer) }
            }
            _ => Capabilities::default(),
        }
    }

    fn expose(&mut self, peer: PeerId, memory: &Self::Buffer, pieces: &mut [Span]) -> u64 {
        by_path!(self, peer, link, peer => link.expose(peer, memory, pieces), else 0)
    }

    fn hide(&mut self, peer: PeerId, key: u64) {
        by_path!(self, peer, link, peer => link.hide(peer, key), else ())
    }

    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut Self::Buffer,
        offset: usize,
    ) -> TransferStatus {
        let nobody = TransferStatus::Unreachable;
        by_path!(self, peer, link, peer => link.read_peer(id, peer, from, into, offset), else nobody)
    }

    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[RemoteMemory],
        from: &Self::Buffer,
        offset: usize,
    ) -> TransferStatus {
        let nobody = TransferStatus::Unreachable;
        by_path!(self, peer, link, peer => link.write_peer(id, peer, to, from, offset), else nobody)
    }

    fn read_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<Self::Buffer>]) {
        by_path!(self, peer, link, peer => link.read_pieces(peer, pieces), else ())
    }

    fn write_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<Self::Buffer>]) {
        by_path!(self, peer, link, peer => link.write_pieces(peer, pieces), else ())
    }

    fn cancel_transfer(&mut self, peer: PeerId, id: TransferId) -> bool {
        by_path!(self, peer, link, peer => link.cancel_transfer(peer, id), else true)
    }

    fn time_reading(&self) -> Duration {
        self.first.time_reading() + self.second.as_ref().map_or(Duration::ZERO, B::time_reading)
    }

    fn find_region(
        &mut self,
        peer: PeerId,
        key: u64,
        offset: u64,
        length: u64,
        access: Access,
    ) -> Option<(RemoteMemory, Access)> {
        by_path!(self, peer, link, peer => link.find_region(peer, key, offset, length, access), else None)
    }
}

impl<A: Link, B: Link<Buffer = A::Buffer>> Bounce for Paths<A, B> {
    fn bounce_buffers(&self) -> BounceBuffers {
        self.first.bounce_buffers()
    }

    fn fill_bounce_buffer(&mut self, buffer: usize, from: &Self::Buffer, offset: usize, length: usize) {
        self.first.fill_bounce_buffer(buffer, from, offset, length);
    }

    fn drain_bounce_buffer(
        &mut self,
        peer: PeerId,
        buffer: usize,
        into: &mut Self::Buffer,
        offset: usize,
        length: usize,
    ) -> bool {
        match self.path(peer) {
            Some(Path::First(peer)) => self.first.drain_bounce_buffer(peer, buffer, into, offset, length),
            _ => false,
        }
    }

    fn time_draining(&self) -> Duration {
        self.first.time_draining()
    }
}

impl<A: Link, B: Link<Buffer = A::Buffer>> Closing for Paths<A, B> {
    fn tell_closing(&mut self) {
        self.first.tell_closing();
        if let Some(second) = &mut self.second {
            second.tell_closing();
        }
    }

    fn has_unsent(&self) -> bool {
        self.first.has_unsent() || self.second.as_ref().is_some_and(B::has_unsent)
    }

    fn has_unsent_to(&self, peer: PeerId) -> bool {
        match self.path(peer) {
            Some(Path::First(peer)) => self.first.has_unsent_to(peer),
            Some(Path::Second(peer)) => self.second.as_ref().is_some_and(|second| second.has_unsent_to(peer)),
            None => false,
        }
    }

    fn for_each_unsent(&self, look: &mut dyn FnMut(Header)) {
        self.first.for_each_unsent(look);
        if let Some(second) = &self.second {
            second.for_each_unsent(look);
        }
    }

    fn say_goodbye(&mut self) {
        self.first.say_goodbye();
        if let Some(second) = &mut self.second {
            second.say_goodbye();
        }
    }

    fn flush(&mut self) -> bool {
        let is_first_over = self.first.flush();
        self.second.as_mut().is_none_or(B::flush) && is_first_over
    }
}

impl<A: Link, B: Link<Buffer = A::Buffer>> PeerNames for Paths<A, B> {
    fn lacks_places(&self) -> bool {
        match &self.second {
            None => self.first.lacks_places(),
            Some(second) => self.routes.is_full() || self.first.lacks_places() || second.lacks_places(),
        }
    }

    fn begin_record(&mut self, peer: PeerId, record: PeerId) {
        by_path!(self, peer, link, place => link.begin_record(place, record), else ());
    }

    fn end_record(&mut self, record: PeerId) {
        self.first.end_record(record);
        if let Some(second) = &mut self.second {
            second.end_record(record);
        }
    }

    fn identity(&self, peer: PeerId) -> Option<u64> {
        match self.path(peer)? {
            Path::First(peer) => self.first.identity(peer),
            Path::Second(peer) => self.second.as_ref()?.identity(peer),
        }
    }

    fn note_death(&mut self, identity: u64) {
        self.first.note_death(identity);
    }
}

impl<A: Link, B: Link<Buffer = A::Buffer>> SenderWrites for Paths<A, B> {}

impl<A: Link, B: Link<Buffer = A::Buffer>> Link for Paths<A, B> {
    #[inline(always)]
    fn write(&mut self, to: PeerId, count: u32, fill: impl Fill) -> Result<u32, WriteError> {
        match self.second {
            None => self.first.write(to, count, fill),
            Some(_) => {
                // Moved, so that what fills may stay in registers where there is one link.
                let mut fill = fill;
                self.write_by_path(to, count, &mut |packets: &mut [Packet], placement| fill.fill(packets, placement))
            }
        }
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let mut arrival = Arrival::none();
        self.retrieve_into(&mut arrival).then_some(arrival)
    }

    #[inline(always)]
    fn retrieve_into(&mut self, place: &mut Arrival) -> bool {
        match self.second {
            None => self.first.retrieve_into(place),
            Some(_) => self.retrieve_in_turn().map(|arrival| *place = arrival).is_some(),
        }
    }

    fn retrieve_following(&mut self, first: &Header, into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        match &mut self.second {
            Some(second) if self.is_seconds => second.retrieve_following(first, into),
            _ => self.first.retrieve_following(first, into),
        }
    }

    /// A pool is one for each link.
    fn post(&mut self, posting: Posting) {
        match (posting.peer(), &mut self.second) {
            (_, None) => self.first.post(posting),
            (None, Some(second)) => {
                self.first.post(posting);
                second.post(posting);
            }
            (Some(peer), Some(_)) => by_path!(self, peer, link, place => link.post(posting.of_peer(place)), else ()),
        }
    }

    #[inline(always)]
    fn is_quiet(&mut self) -> bool {
        if !self.first.is_quiet() {
            return false;
        }
        match &mut self.second {
            Some(second) => second.is_quiet(),
            None => true,
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<LinkEvent> {
        match self.second {
            None => self.first.poll_event(),
            Some(_) => self.poll_events(),
        }
    }

    /// What a second link takes, its mailbox among it, it says itself.
    fn bookkeeping_bytes(flow: &Config) -> usize {
        A::bookkeeping_bytes(flow) + B::bookkeeping_bytes(flow)
    }

    fn tell_window(&mut self, bytes: u32) {
        self.first.tell_window(bytes);
        if let Some(second) = &mut self.second {
            second.tell_window(bytes);
        }
    }

    fn tell_newcomers(&mut self, planned: PeerId, bytes: u32) {
        let Some(second) = &mut self.second else { return self.first.tell_newcomers(planned, bytes) };
        let of_first = self.share.unwrap_or(planned.0 / 2).min(planned.0);
        let of_second = planned.0 - of_first;
        self.first.tell_newcomers(PeerId(of_first), bytes);
        second.tell_newcomers(PeerId(of_second), bytes);
        self.routes.divide([of_first, of_second]);
    }

    /// Newcomers by either link take places of the endpoint, so neither has more of them than the endpoint.
    fn open_places(&mut self, open: u32, most: u32) {
        let Some(second) = &mut self.second else { return self.first.open_places(open, most) };
        let [of_first, of_second] = self.routes.open(open, most);
        self.first.open_places(of_first.0, of_first.1);
        second.open_places(of_second.0, of_second.1);
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        by_path!(self, peer, link, peer => link.window(peer), else None)
    }

    fn must_greet(&mut self, peer: PeerId) -> bool {
        by_path!(self, peer, link, peer => link.must_greet(peer), else false)
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        by_path!(self, peer, link, place => link.quarantine(place), else format!("peer {}", peer.0))
    }

    fn release(&mut self, peer: PeerId) {
        if self.second.is_none() {
            return self.first.release(peer);
        }
        match self.routes.release(peer) {
            Some(Path::First(peer)) => self.first.release(peer),
            Some(Path::Second(peer)) => self.release_from_second(peer),
            None => {}
        }
    }

    fn counters(&self) -> &Counters {
        self.first.counters()
    }
}
