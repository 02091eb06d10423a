//! [`Network`]: links with finite buffers, through which units go as trains of cells (wormholes). A link belongs to a
//! unit from its first cell to its last; a full buffer stops the link before it, and so on back to the sender.

use std::collections::VecDeque;

use super::Happening;
use super::parameters::BulkParameters;
use super::wiring::{LinkNumber, Way, Wiring};
use crate::{EventQueue, Time};

/// A part of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub unit: u32,
    pub bytes: u32,
    pub is_first: bool,
    pub is_last: bool,
    /// How many links it has crossed.
    hop: u8,
}

/// What a node hears of its network.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice {
    /// A cell is there to be taken, and there was none before.
    Arrived(u32),
    /// A unit has left this node, all of it.
    Left(u32, u32),
}

/// Where cells wait: at the end of a link, or, numbered behind all links, in a node.
type Source = u16;

#[derive(Debug)]
struct Link {
    picoseconds_per_byte: u64,
    capacity: usize,
    /// At its end.
    buffer: VecDeque<Cell>,
    crossing: Option<Cell>,
    /// Where the unit comes from that has the link.
    owner: Option<Source>,
    /// Where units wait that want it, in their order.
    waiting: VecDeque<Source>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Network {
    pub wiring: Wiring,
    links: Vec<Link>,
    outboxes: Vec<VecDeque<Cell>>,
    /// By unit.
    ways: Vec<Way>,
    hop_latency: Time,
    cell_bytes: u32,
    pub notices: Vec<Notice>,
}

type Queue = EventQueue<Happening>;

impl Network {
    pub fn new(parameters: &BulkParameters) -> Self {
        let wiring = Wiring::new(parameters.shape);
        let link = |number: u32| {
            let number = number as LinkNumber;
            let rate = if wiring.is_of_node(number) { parameters.node_bandwidth } else { parameters.link_bandwidth };
            let is_last = wiring.node_at_end(number).is_some();
            Link {
                picoseconds_per_byte: 1_000_000_000_000 / rate.0,
                capacity: if is_last { parameters.arrival_cells } else { parameters.buffer_cells }.into(),
                buffer: VecDeque::new(),
                crossing: None,
                owner: None,
                waiting: VecDeque::new(),
            }
        };
        Network {
            wiring,
            links: (0..wiring.links()).map(link).collect(),
            outboxes: (0..parameters.shape.nodes()).map(|_| VecDeque::new()).collect(),
            ways: Vec::new(),
            hop_latency: parameters.hop_latency,
            cell_bytes: parameters.cell_bytes,
            notices: Vec::new(),
        }
    }

    /// A unit is in the node's interface, to leave.
    pub fn send(&mut self, node: u32, unit: u32, bytes: u32, way: Way, now: Time, queue: &mut Queue) {
        let place = unit as usize;
        if self.ways.len() <= place {
            self.ways.resize(place + 1, way);
        }
        self.ways[place] = way;
        let cells = bytes.div_ceil(self.cell_bytes);
        let outbox = &mut self.outboxes[node as usize];
        let was_empty = outbox.is_empty();
        for nth in 0..cells {
            let bytes = self.cell_bytes.min(bytes - nth * self.cell_bytes);
            outbox.push_back(Cell { unit, bytes, is_first: nth == 0, is_last: nth + 1 == cells, hop: 0 });
        }
        if was_empty {
            self.offer((self.links.len() as u32 + node) as Source, now, queue);
        }
    }

    /// The next cell that has come to a node.
    pub fn arrived(&self, node: u32) -> Option<Cell> {
        self.links[usize::from(self.wiring.last_to(node))].buffer.front().copied()
    }

    /// The node takes it.
    pub fn take(&mut self, node: u32, now: Time, queue: &mut Queue) {
        let link = self.wiring.last_to(node);
        self.links[usize::from(link)].buffer.pop_front();
        self.advance(link, now, queue);
    }

    /// A cell has crossed a link.
    pub fn crossed(&mut self, link: LinkNumber, now: Time, queue: &mut Queue) {
        let of = &mut self.links[usize::from(link)];
        if let Some(cell) = of.crossing.take() {
            of.buffer.push_back(Cell { hop: cell.hop + 1, ..cell });
        }
        if of.buffer.len() == 1 {
            match self.wiring.node_at_end(link) {
                Some(node) => self.notices.push(Notice::Arrived(node)),
                None => self.offer(link, now, queue),
            }
        }
        self.advance(link, now, queue);
    }

    fn waiting_at(&mut self, source: Source) -> &mut VecDeque<Cell> {
        let links = self.links.len();
        match usize::from(source).checked_sub(links) {
            Some(node) => &mut self.outboxes[node],
            None => &mut self.links[usize::from(source)].buffer,
        }
    }

    /// A cell is now the first of those that wait at `source`: it wants the next link.
    fn offer(&mut self, source: Source, now: Time, queue: &mut Queue) {
        if let Some(cell) = self.waiting_at(source).front().copied() {
            let next = self.ways[cell.unit as usize].at(cell.hop);
            if cell.is_first {
                self.links[usize::from(next)].waiting.push_back(source);
            }
            self.advance(next, now, queue);
        }
    }

    /// The next cell crosses a link, if it is free and there is room at its end.
    fn advance(&mut self, link: LinkNumber, now: Time, queue: &mut Queue) {
        let of = &mut self.links[usize::from(link)];
        if of.crossing.is_some() || of.buffer.len() >= of.capacity {
            return;
        }
        if of.owner.is_none() {
            of.owner = of.waiting.pop_front();
        }
        let Some(source) = of.owner else { return };
        let Some(cell) = self.waiting_at(source).pop_front() else { return };
        let of = &mut self.links[usize::from(link)];
        of.crossing = Some(cell);
        if cell.is_last {
            of.owner = None;
        }
        let span = Time(of.picoseconds_per_byte * u64::from(cell.bytes)) + self.hop_latency;
        queue.schedule(now + span, Happening::Crossed(link));
        self.offer(source, now, queue);
        match usize::from(source).checked_sub(self.links.len()) {
            Some(node) if cell.is_last => self.notices.push(Notice::Left(node as u32, cell.unit)),
            Some(_) => {}
            None => self.advance(source, now, queue),
        }
    }
}
