//! [`Transfers`]: what the link was asked to copy and has not ended, whose each is, and what can end only with them.
//!
//! A transfer touches the application's memory until it has ended. So where an operation or a receive is over before,
//! since its peer is gone, the application is not told yet: the completion waits here for the last of its transfers
//! that the link cannot stop.

use crate::collections::slab::{Key, Slab};
use crate::completion::{Completion, Failure};
use crate::matching::Matched;
use tidegate_flow::PeerId;

/// Who asked the link for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOwner {
    /// A pull.
    Pull(Key),
    /// A send that is written into its receiver's memory, and the receiver's name for it.
    Send(Key, u32),
    /// A remote operation.
    Operation(Key),
}

/// What is over but for its transfers.
#[derive(Debug)]
pub(crate) enum Ending<B> {
    /// A receive that matched and does not get its message.
    Receive(Matched<B>, Failure),
    /// A remote operation.
    Operation(Completion),
}

/// What the end of a transfer means.
#[derive(Debug)]
pub(crate) enum Ended<B> {
    /// A part of a pull or an operation that goes on: whose it is, and how many bytes the transfer was of. Whether they
    /// are in place its status says.
    Part(TransferOwner, usize),
    /// The last transfer of what was over otherwise.
    Last(Ending<B>),
}

/// Whose a transfer is now.
#[derive(Clone, Copy, Debug)]
enum Whose {
    Of(TransferOwner),
    Held(Key),
}

#[derive(Debug)]
struct Transfer {
    whose: Whose,
    bytes: usize,
}

#[derive(Debug)]
struct HeldEnding<B> {
    ending: Ending<B>,
    peer: PeerId,
    /// Transfers that have not ended.
    left: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Transfers<B> {
    running: Slab<Transfer>,
    held: Slab<HeldEnding<B>>,
}

impl<B> Transfers<B> {
    pub(crate) fn new() -> Self {
        Transfers { running: Slab::new(), held: Slab::new() }
    }

    /// The link is asked to copy so many bytes. Returns the name of the transfer.
    pub(crate) fn begin(&mut self, owner: TransferOwner, bytes: usize) -> Key {
        self.running.insert(Transfer { whose: Whose::Of(owner), bytes })
    }

    /// The transfers of this owner.
    pub(crate) fn of(&self, owner: TransferOwner) -> Vec<Key> {
        match self.running.len() {
            0 => Vec::new(),
            _ => self.running.keys_where(|transfer| matches!(transfer.whose, Whose::Of(of) if of == owner)),
        }
    }

    /// A transfer has ended, or was stopped. `None`: there is none of this name, or something else ends with others.
    pub(crate) fn end(&mut self, transfer: Key) -> Option<Ended<B>> {
        let Transfer { whose, bytes } = self.running.remove(transfer)?;
        match whose {
            Whose::Of(owner) => Some(Ended::Part(owner, bytes)),
            Whose::Held(key) => {
                let held = self.held.get_mut(key)?;
                held.left -= 1;
                (held.left == 0).then(|| self.held.remove(key)).flatten().map(|held| Ended::Last(held.ending))
            }
        }
    }

    /// What is over with `peer` ends with the last of these transfers.
    pub(crate) fn hold(&mut self, transfers: &[Key], peer: PeerId, ending: Ending<B>) {
        let key = self.held.insert(HeldEnding { ending, peer, left: transfers.len() });
        for &transfer in transfers {
            if let Some(transfer) = self.running.get_mut(transfer) {
                transfer.whose = Whose::Held(key);
            }
        }
    }

    /// How many have not ended.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// How many completions wait for their transfers.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether any completion that waits here names this peer.
    pub(crate) fn holds_any_of(&self, peer: PeerId) -> bool {
        self.held.len() > 0 && !self.held.keys_where(|held| held.peer == peer).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::Operation;
    use crate::operation::Context;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);

    fn lost() -> Completion {
        Completion::remote(Context(1), Operation::Read, 8, Err(Failure::Canceled))
    }

    #[test]
    fn transfers_are_of_those_who_asked_for_them_and_end_once() {
        let mut transfers = Transfers::<Bytes>::new();
        let (pull, operation) = (TransferOwner::Pull(Key(1)), TransferOwner::Operation(Key(1)));
        let [first, second] = [pull, operation].map(|owner| transfers.begin(owner, 5));
        assert_eq!((transfers.of(pull), transfers.of(operation)), (vec![first], vec![second]));
        assert!(matches!(transfers.end(first), Some(Ended::Part(owner, 5)) if owner == pull));
        assert!(transfers.end(first).is_none() && transfers.of(pull).is_empty());
    }

    #[test]
    fn what_is_over_ends_with_the_last_of_its_transfers() {
        let mut transfers = Transfers::<Bytes>::new();
        let owner = TransferOwner::Operation(Key(1));
        let running = [5, 6, 7].map(|bytes| transfers.begin(owner, bytes));
        transfers.hold(&running[..2], A, Ending::Operation(lost()));
        assert_eq!((transfers.of(owner), transfers.held()), (vec![running[2]], 1));
        assert!(transfers.holds_any_of(A) && !transfers.holds_any_of(PeerId(1)));
        assert!(transfers.end(running[1]).is_none(), "another still runs");
        let Some(Ended::Last(Ending::Operation(completion))) = transfers.end(running[0]) else { panic!("it is over") };
        assert_eq!((completion, transfers.held(), transfers.holds_any_of(A)), (lost(), 0, false));
    }
}
