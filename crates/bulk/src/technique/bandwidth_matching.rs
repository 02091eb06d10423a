//! [`BandwidthMatching`]: a constant limit of the sender's rate to that at which a receiver takes pieces from the
//! network (B §1.1). It relieves a receiver of one sender that is too fast; against many senders it does nothing.

use crate::Settings;
use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::technique::sending::{After, Sending};
use tidegate_flow::Instant;

/// See the module. Blocks go in order, in pieces of one unit, one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BandwidthMatching {
    sending: Sending,
    /// When the receiver has taken the last piece.
    next: Instant,
    settings: Settings,
}

impl BandwidthMatching {
    pub(crate) fn new(part: Part) -> Self {
        let settings = part.settings;
        let sending = Sending::new(part, After::Block, settings.unit, 1);
        BandwidthMatching { sending, next: Instant::default(), settings }
    }
}

impl Technique for BandwidthMatching {
    fn step(&mut self, now: Instant) -> Step {
        if self.sending.can_send() && now < self.next {
            return Step::WaitUntil(self.next);
        }
        let step = self.sending.step();
        if let Step::Do(Action::Send(piece)) = step {
            self.next = now + self.settings.time_for(piece.bytes);
        }
        step
    }

    fn handle(&mut self, event: Event) {
        self.sending.handle(event);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, Block, Event, Exchange, Node, Settings, Step, TechniqueName};
    use tidegate_flow::Instant;

    #[test]
    fn a_piece_begins_when_the_receiver_has_had_time_for_the_one_before() {
        let blocks = [1, 2].map(|to| Block { to: Node(to), bytes: 10 });
        let settings = Settings { unit: 6, picoseconds_per_byte: 2_000, ..Settings::default() };
        let mut exchange = Exchange::new(TechniqueName::BandwidthMatching, Node(0), 3, &blocks, &settings);
        // Pieces of 6, 4, 6 and 4 bytes: 12 ns for one of 6, 8 for one of 4, whoever gets it.
        for (begins, length) in [(0, 6), (12, 4), (20, 6), (32, 4)] {
            if let Some(early) = u64::checked_sub(begins, 1) {
                let waits = exchange.step(Instant::from_nanos(early));
                assert_eq!(waits, Step::WaitUntil(Instant::from_nanos(begins)));
            }
            let step = exchange.step(Instant::from_nanos(begins));
            let Step::Do(Action::Send(piece)) = step else { panic!("{step:?} at {begins} ns") };
            assert_eq!(piece.bytes, length);
            assert_eq!(exchange.step(Instant::from_nanos(begins + 100)), Step::Wait, "it is under way");
            exchange.handle(Event::Sent(piece));
        }
        assert_eq!(exchange.step(Instant::from_nanos(33)), Step::Finished);
    }
}
