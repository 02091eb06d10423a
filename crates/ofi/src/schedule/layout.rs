//! The structs of `bulk/tidegate_decisions.h`. All numbers have fixed sizes; padding is named.

use tidegate_bulk::{Action, Event, Node, Piece, SIGNAL_BYTES, Settings, Signal, Step};

/// `struct tidegate_bulk_block`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CBlock {
    pub(super) to: u32,
    pub(super) reserved: u32,
    pub(super) bytes: u64,
}

/// `struct tidegate_bulk_settings`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CSettings {
    unit: u64,
    picoseconds_per_byte: u64,
    seed: u64,
    outstanding: u32,
    window: u32,
    rounds_per_barrier: u32,
    requests_per_round: u32,
}

impl From<Settings> for CSettings {
    fn from(settings: Settings) -> Self {
        let Settings { unit, outstanding, picoseconds_per_byte, window, rounds_per_barrier, requests_per_round, seed } =
            settings;
        CSettings { unit, picoseconds_per_byte, seed, outstanding, window, rounds_per_barrier, requests_per_round }
    }
}

impl From<CSettings> for Settings {
    fn from(settings: CSettings) -> Self {
        let CSettings { unit, picoseconds_per_byte, seed, outstanding, window, rounds_per_barrier, requests_per_round } =
            settings;
        Settings { unit, outstanding, picoseconds_per_byte, window, rounds_per_barrier, requests_per_round, seed }
    }
}

/// `struct tidegate_bulk_piece`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CPiece {
    pub(super) block: u32,
    pub(super) to: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl From<Piece> for CPiece {
    fn from(piece: Piece) -> Self {
        CPiece { block: piece.block, to: piece.to.0, offset: piece.offset, bytes: piece.bytes }
    }
}

/// `struct tidegate_bulk_step`: what to do. Which fields mean something follows from `kind`; the others are 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CStep {
    pub(super) kind: u32,
    pub(super) peer: u32,
    pub(super) piece: CPiece,
    pub(super) signal: [u8; SIGNAL_BYTES],
    pub(super) until: u64,
    pub(super) work_left: u32,
    pub(super) reserved: u32,
}

pub(super) const COPY: u32 = 0;
pub(super) const SEND: u32 = 1;
pub(super) const SIGNAL: u32 = 2;
pub(super) const ENTER: u32 = 3;
pub(super) const WAIT: u32 = 4;
pub(super) const WAIT_UNTIL: u32 = 5;
pub(super) const FINISHED: u32 = 6;

impl From<Step> for CStep {
    fn from(step: Step) -> Self {
        let none = CStep::default();
        match step {
            Step::Do(Action::Copy(piece)) => CStep { kind: COPY, peer: piece.to.0, piece: piece.into(), ..none },
            Step::Do(Action::Send(piece)) => CStep { kind: SEND, peer: piece.to.0, piece: piece.into(), ..none },
            Step::Do(Action::Signal { to, signal }) => {
                CStep { kind: SIGNAL, peer: to.0, signal: signal.emit(), ..none }
            }
            Step::Do(Action::Enter { work_left }) => CStep { kind: ENTER, work_left: work_left.into(), ..none },
            Step::Wait => CStep { kind: WAIT, ..none },
            Step::WaitUntil(until) => CStep { kind: WAIT_UNTIL, until: until.as_nanos(), ..none },
            Step::Finished => CStep { kind: FINISHED, ..none },
        }
    }
}

/// `struct tidegate_bulk_event`: what has happened. Which fields mean something follows from `kind`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CEvent {
    pub(super) kind: u32,
    pub(super) peer: u32,
    pub(super) piece: CPiece,
    pub(super) signal: [u8; SIGNAL_BYTES],
    pub(super) work_left: u32,
    pub(super) reserved: u32,
}

pub(super) const SENT: u32 = 0;
pub(super) const ARRIVED: u32 = 1;
pub(super) const SIGNALLED: u32 = 2;
pub(super) const PASSED: u32 = 3;
pub(super) const LOST: u32 = 4;

impl CEvent {
    /// The event, none if there is no such one.
    pub(super) fn read(&self) -> Option<Event> {
        let CPiece { block, to, offset, bytes } = self.piece;
        let peer = Node(self.peer);
        match self.kind {
            SENT => Some(Event::Sent(Piece { block, to: Node(to), offset, bytes })),
            ARRIVED => Some(Event::Arrived { from: peer }),
            SIGNALLED => Some(Event::Signalled { from: peer, signal: Signal::parse(&self.signal)? }),
            PASSED => Some(Event::Passed { work_left: self.work_left != 0 }),
            LOST => Some(Event::Lost(peer)),
            _ => None,
        }
    }
}

// C's compilers lay these structs out in the same sizes: `bulk/tidegate_decisions.h` asserts the same numbers.
const _: () = {
    assert!(size_of::<CBlock>() == 16);
    assert!(size_of::<CSettings>() == 40);
    assert!(size_of::<CPiece>() == 24);
    assert!(size_of::<CStep>() == 72);
    assert!(size_of::<CEvent>() == 64);
};
