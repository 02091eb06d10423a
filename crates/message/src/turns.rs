//! [`Turns`]: the three kinds of pieces that leave through mailboxes begin in turn, so that none is always late.

/// What leaves through mailboxes in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// Long messages.
    Streams,
    /// Data of reads.
    Reads,
    /// Requests for remote operations.
    Requests,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Turns(usize);

impl Turns {
    /// In which order pieces are sent.
    pub(crate) fn order(&self) -> [Pieces; 3] {
        let mut order = [Pieces::Streams, Pieces::Reads, Pieces::Requests];
        order.rotate_left(self.0);
        order
    }

    /// Some were sent: next time another kind begins.
    pub(crate) fn end_turn(&mut self) {
        self.0 = (self.0 + 1) % 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_pieces_begins_in_turn() {
        let mut turns = Turns::default();
        let firsts: Vec<_> = (0..4)
            .map(|_| {
                let first = turns.order()[0];
                turns.end_turn();
                first
            })
            .collect();
        assert_eq!(firsts, [Pieces::Streams, Pieces::Reads, Pieces::Requests, Pieces::Streams]);
    }
}
