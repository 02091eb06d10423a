//! [`Packet`]: a packet under way, and [`Packets`], the memory of all of them.

/// Where no packet or queue is meant.
pub(crate) const NONE: u32 = u32::MAX;

/// How far a packet has come on its way, as far as routing has to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It follows the shortest way. As long as it is where it began, it may still leave that.
    #[default]
    Direct,
    /// It goes to an intermediate group first.
    Diverted,
}

/// What routing knows of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Journey {
    /// The node that sent it.
    pub from: u32,
    /// The node that it is for.
    pub to: u32,
    /// The intermediate group that it may take; [`NONE`] if there is no such group.
    pub via: u32,
    /// How far it has come.
    pub stage: Stage,
    /// Which of several equal channels it uses all along.
    pub lane: u8,
}

/// A packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Its way.
    pub journey: Journey,
    /// Its length.
    pub flits: u16,
    /// How many of the receiver's packets have been sunk, as this packet tells it.
    pub credits: u16,
    /// A full queue on its way has marked it (FECN).
    pub is_marked: bool,
    /// It tells its receiver that a packet of the receiver was marked (BECN).
    pub tells_mark: bool,
    /// When its sender had it ready.
    pub born: u64,
    /// When its head arrived where it is.
    pub head_at: u64,
    /// The queue in which it is, or the node that it has reached: see `Engine`.
    pub place: u32,
    /// The packet behind it in the same queue.
    pub next: u32,
    /// What its sender knows it by.
    pub label: u32,
    is_alive: bool,
}

impl Packet {
    /// A packet of so many flits, ready in cycle `born`.
    pub fn new(from: u32, to: u32, flits: u16, born: u64, label: u32) -> Self {
        Packet { journey: Journey { from, to, ..Journey::default() }, flits, born, label, ..Packet::default() }
    }
}

/// All packets; places of those that have arrived are used again.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    all: Vec<Packet>,
    free: u32,
    alive: u64,
}

impl Packets {
    pub fn new() -> Self {
        Packets { all: Vec::new(), free: NONE, alive: 0 }
    }

    /// Keeps a packet; returns its number.
    pub fn insert(&mut self, packet: Packet) -> u32 {
        let packet = Packet { is_alive: true, next: NONE, ..packet };
        self.alive += 1;
        if self.free == NONE {
            self.all.push(packet);
            return (self.all.len() - 1) as u32;
        }
        let number = self.free;
        self.free = std::mem::replace(&mut self.all[number as usize], packet).next;
        number
    }

    /// Forgets a packet; returns what it was.
    pub fn remove(&mut self, number: u32) -> Packet {
        let packet = self.all[number as usize];
        assert!(packet.is_alive, "a packet is removed once");
        self.all[number as usize] = Packet { next: self.free, ..Packet::default() };
        self.free = number;
        self.alive -= 1;
        packet
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.alive
    }

    /// Those that are under way.
    #[cfg(test)]
    pub fn alive(&self) -> impl Iterator<Item = &Packet> {
        self.all.iter().filter(|packet| packet.is_alive)
    }
}

impl std::ops::Index<u32> for Packets {
    type Output = Packet;
    fn index(&self, number: u32) -> &Packet {
        &self.all[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Packets {
    fn index_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.all[number as usize]
    }
}
