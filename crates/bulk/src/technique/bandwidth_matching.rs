//! [`BandwidthMatching`]: a constant limit of the sender's rate to that at which a receiver takes pieces from the
//! network (B §1.1). It relieves a receiver of one sender that is too fast; against many senders it does nothing.

use crate::technique::in_order::InOrder;
use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::{Piece, Settings};
use tidegate_flow::Instant;

/// See the module. Blocks go in order, in pieces of one unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BandwidthMatching {
    blocks: InOrder,
    /// The block whose pieces go out, and how much of it has gone.
    block: Option<(Piece, u64)>,
    /// The piece that is under way.
    under_way: Option<Piece>,
    /// When the receiver has taken the last piece.
    next: Instant,
    settings: Settings,
}

impl BandwidthMatching {
    pub(crate) fn new(part: Part) -> Self {
        let settings = Settings { outstanding: 1, ..part.settings };
        let blocks = InOrder::new(Part { settings, ..part });
        BandwidthMatching { blocks, block: None, under_way: None, next: Instant::default(), settings }
    }

    /// The block that goes out now.
    fn block(&mut self, now: Instant) -> Result<(Piece, u64), Step> {
        if let Some(block) = self.block {
            return Ok(block);
        }
        match self.blocks.step(now) {
            Step::Do(Action::Send(piece)) => {
                self.block = Some((piece, 0));
                Ok((piece, 0))
            }
            other => Err(other),
        }
    }
}

impl Technique for BandwidthMatching {
    fn step(&mut self, now: Instant) -> Step {
        if self.under_way.is_some() {
            return Step::Wait;
        }
        let (block, gone) = match self.block(now) {
            Ok(block) => block,
            Err(step) => return step,
        };
        if now < self.next {
            return Step::WaitUntil(self.next);
        }
        let bytes = self.settings.unit.min(block.bytes - gone);
        let piece = Piece { offset: block.offset + gone, bytes, ..block };
        self.block = Some((block, gone + bytes));
        self.under_way = Some(piece);
        self.next = now + self.settings.time_for(bytes);
        Step::Do(Action::Send(piece))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(piece) if self.under_way == Some(piece) => {
                self.under_way = None;
                if let Some((block, gone)) = self.block
                    && gone == block.bytes
                {
                    self.block = None;
                    self.blocks.handle(Event::Sent(block));
                }
            }
            Event::Lost(node) => {
                self.blocks.handle(event);
                if self.block.is_some_and(|(block, _)| block.to == node) {
                    self.block = None;
                    self.under_way = None;
                }
            }
            _ => {}
        }
    }
}
