//! Messages that are carried beside packets: whole, in one way, instead of being announced and read.
//!
//! The sender's batches bring a message in one part or two, and behind them the packet that says what it is; the
//! endpoint takes the message when it handles that packet. Messages and these packets are in the same order, each once,
//! since both come in batches that are in sequence.
//!
//! Memory: the sender has paid for the message out of what the receiver has set aside for it (its window), so what
//! waits here of one peer is no more than that window less what is stored of that peer. A peer that sends more has
//! broken the protocol.

use super::stream::CARRIED_ALONE_MOST;
use super::wire::Load;
use std::collections::VecDeque;

/// What a message costs here beside its bytes. An endpoint charges a sender more for each.
const COST_EACH: usize = 96;

/// Places for messages that are kept.
const PLACES_KEPT: usize = 16;

/// What has come from one peer and waits for the packets that say what it is.
#[derive(Debug, Default)]
pub struct Loading {
    whole: VecDeque<Vec<u8>>,
    /// The message of which parts have come, with the bytes that it still lacks.
    begun: Option<(Vec<u8>, usize)>,
    /// What all of them cost.
    cost: usize,
}

/// No correct peer has sent this part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong;

impl Loading {
    /// Adds a part. `most`: what all messages that wait may cost.
    pub fn add(&mut self, load: Load, part: &[u8], most: usize) -> Result<(), Wrong> {
        let left = load.part as usize + load.rest as usize;
        let mut message = match self.begun.take() {
            Some((message, lacking)) if lacking == left => message,
            Some(_) => return Err(Wrong),
            None if left > CARRIED_ALONE_MOST || self.cost + left + COST_EACH > most => return Err(Wrong),
            None => {
                self.cost += left + COST_EACH;
                Vec::with_capacity(left)
            }
        };
        message.extend_from_slice(part);
        match load.rest as usize {
            0 => self.whole.push_back(message),
            rest => self.begun = Some((message, rest)),
        }
        Ok(())
    }

    /// What all that wait cost, in bytes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Bytes of the message whose packet comes next, if it is whole.
    pub fn next_length(&self) -> Option<usize> {
        self.whole.front().map(Vec::len)
    }

    /// The message whose packet has come.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let message = self.whole.pop_front()?;
        self.cost -= message.len() + COST_EACH;
        if self.whole.is_empty() {
            self.whole.shrink_to(PLACES_KEPT);
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(part: u32, rest: u32) -> Load {
        Load { part, rest }
    }

    #[test]
    fn parts_become_the_message_again_and_messages_keep_their_order() {
        let mut loading = Loading::default();
        assert_eq!(loading.add(load(2, 3), &[1, 2], 1000), Ok(()));
        assert_eq!(loading.take(), None, "it is not whole");
        assert_eq!(loading.add(load(3, 0), &[3, 4, 5], 1000), Ok(()));
        assert_eq!(loading.add(load(1, 0), &[6], 1000), Ok(()));
        assert_eq!([loading.take(), loading.take(), loading.take()], [Some(vec![1, 2, 3, 4, 5]), Some(vec![6]), None]);
        assert_eq!(loading.cost(), 0);
    }

    #[test]
    fn nobody_makes_us_keep_more_than_the_window_or_a_message_that_does_not_fit_itself() {
        let most = 2 * (100 + COST_EACH);
        let mut loading = Loading::default();
        assert_eq!(loading.add(load(100, 0), &[0; 100], most), Ok(()));
        assert_eq!(loading.add(load(100, 0), &[0; 100], most), Ok(()));
        assert_eq!(loading.add(load(1, 0), &[0], most), Err(Wrong), "the window is full");
        loading.take();
        assert_eq!(loading.add(load(10, 20), &[0; 10], most), Ok(()));
        assert_eq!(loading.add(load(10, 11), &[0; 10], most), Err(Wrong), "it lacked 20 bytes");
        let mut loading = Loading::default();
        assert_eq!(loading.add(load(1, CARRIED_ALONE_MOST as u32), &[0], usize::MAX), Err(Wrong), "it is too long");
        assert_eq!(loading.add(load(u32::MAX, u32::MAX), &[0], usize::MAX), Err(Wrong));
    }
}
