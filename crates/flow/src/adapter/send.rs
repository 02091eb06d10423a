//! [`SendQueue`]: messages of one connection on their way, in order, until the receiver's adapter has accepted them.
//!
//! When one is refused ("receiver not ready"), the receiver drops all behind it, and the queue waits for the timer;
//! then everything goes again, from the refused message on (L §4.1). Messages are numbered, so that the receiver knows
//! which it expects. A buffer that is posted while the timer runs changes nothing.

use std::collections::VecDeque;

/// See the module. `M`: what is kept of a message so that it can be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SendQueue<M> {
    /// The number of the first message.
    first: u32,
    messages: VecDeque<M>,
    /// How many of them have been sent since the last refusal.
    sent: usize,
    /// The first was refused, and the timer has not run out.
    is_refused: bool,
}

impl<M> Default for SendQueue<M> {
    fn default() -> Self {
        SendQueue { first: 0, messages: VecDeque::new(), sent: 0, is_refused: false }
    }
}

impl<M> SendQueue<M> {
    /// Messages that have not been accepted.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether all have been accepted.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a message.
    pub fn push(&mut self, message: M) {
        self.messages.push_back(message);
    }

    /// The next message to send, and its number, unless the timer runs.
    pub fn next_to_send(&self) -> Option<(u32, &M)> {
        let message = self.messages.get(self.sent)?;
        (!self.is_refused).then(|| (self.first.wrapping_add(self.sent as u32), message))
    }

    /// That message has left.
    pub fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// The receiver has accepted the message of this number. Returns it; `None`: no such message is under way.
    pub fn handle_accepted(&mut self, number: u32) -> Option<M> {
        if number != self.first || self.sent == 0 {
            return None;
        }
        self.first = self.first.wrapping_add(1);
        self.sent -= 1;
        self.messages.pop_front()
    }

    /// The receiver has refused the message of this number. Returns whether the timer is to be started.
    pub fn handle_refused(&mut self, number: u32) -> bool {
        if number != self.first || self.sent == 0 || self.is_refused {
            return false;
        }
        self.is_refused = true;
        true
    }

    /// The timer has run out: everything from the refused message on is to be sent again.
    pub fn handle_timeout(&mut self) {
        if std::mem::take(&mut self.is_refused) {
            self.sent = 0;
        }
    }

    /// Whether the timer runs.
    pub fn is_waiting(&self) -> bool {
        self.is_refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all that may be sent; returns numbers and messages.
    fn send(queue: &mut SendQueue<char>) -> Vec<(u32, char)> {
        let mut sent = Vec::new();
        while let Some((number, &message)) = queue.next_to_send() {
            sent.push((number, message));
            queue.note_sent();
        }
        sent
    }

    #[test]
    fn everything_from_a_refused_message_on_goes_again_after_the_timer() {
        let mut queue = SendQueue::default();
        "abc".chars().for_each(|message| queue.push(message));
        assert_eq!(send(&mut queue), [(0, 'a'), (1, 'b'), (2, 'c')]);
        assert_eq!(queue.handle_accepted(0), Some('a'));
        assert!(queue.handle_refused(1));
        queue.push('d');
        assert_eq!((send(&mut queue), queue.is_waiting()), (vec![], true));
        queue.handle_timeout();
        assert_eq!(send(&mut queue), [(1, 'b'), (2, 'c'), (3, 'd')]);
        assert_eq!([1, 2, 3].map(|number| queue.handle_accepted(number)), [Some('b'), Some('c'), Some('d')]);
        assert!(queue.is_empty());
    }

    #[test]
    fn answers_for_messages_that_are_not_the_first_under_way_change_nothing() {
        let mut queue = SendQueue::default();
        queue.push('a');
        let before = queue.clone();
        assert_eq!((queue.handle_accepted(0), queue.handle_refused(0)), (None, false), "it has not been sent");
        send(&mut queue);
        assert_eq!((queue.handle_accepted(1), queue.handle_refused(1)), (None, false));
        assert!(queue.handle_refused(0) && !queue.handle_refused(0), "the timer runs once");
        queue.handle_timeout();
        assert_eq!(queue, before);
    }
}
