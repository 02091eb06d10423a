//! Which receive got which send.
//!
//! Messages of one endpoint to one other that have the same tag do not overtake: the first sent goes to the first
//! receive that was posted, of those that got such messages. So of each such channel sends and receives are paired in
//! order. A message whose other end is missing, because its rank is, or was killed, or recorded no more, is left out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::job::Job;
use super::left::{Process, Way};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Messages that have both ends.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sends whose receive is missing.
    pub sends_cut: u64,
    /// Their bytes.
    pub sends_cut_bytes: u64,
    /// Receives that got a message whose send is missing.
    pub receives_cut: u64,
    /// Pairs whose ends do not agree on the length, so that at least one is wrong.
    pub disagreements: u64,
}

/// Sender and receiver, each with its endpoint, and the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Channel {
    from: (usize, u64),
    to: (usize, u64),
    tag: Option<u64>,
}

/// Operations of a channel: by process, then place in its list.
#[derive(Clone, Debug, Default)]
struct Ends {
    sends: Vec<usize>,
    receives: Vec<usize>,
}

/// Finds the other end of each operation, and gives tags to pairs: small numbers, in order of first use.
pub fn pair(job: &mut Job) -> Pairs {
    let (channels, mut pairs) = channels(job);
    let mut tags = Tags::default();
    for (channel, ends) in &channels {
        let (sender, receiver) = (channel.from.0, channel.to.0);
        let in_order = starts_in_order(&job.processes[sender], &ends.sends)
            && starts_in_order(&job.processes[receiver], &ends.receives);
        let shared = tags.of(channel);
        for (send, receive) in ends.sends.iter().zip(&ends.receives) {
            // What is not started in the order in which it matched is told apart by its tag.
            let tag = if in_order { shared } else { tags.new_one() };
            let agree = join(job, (sender, *send), (receiver, *receive), tag);
            pairs.disagreements += u64::from(!agree);
        }
    }
    for process in &job.processes {
        for operation in &process.operations {
            let bytes = operation.message.map_or(0, |message| message.bytes);
            match (operation.way, operation.partner, operation.message) {
                (Way::Send, Some(_), _) => (pairs.messages, pairs.bytes) = (pairs.messages + 1, pairs.bytes + bytes),
                (Way::Send, None, _) => {
                    pairs.sends_cut += 1;
                    pairs.sends_cut_bytes += bytes;
                }
                (Way::Receive, None, Some(_)) => pairs.receives_cut += 1,
                (Way::Receive, ..) => {}
            }
        }
    }
    pairs
}

/// The channels in order of first use, each with its sends and receives in the order in which they match.
fn channels(job: &Job) -> (Vec<(Channel, Ends)>, Pairs) {
    let places = job.places();
    let (mut channels, mut known) = (Vec::<(Channel, Ends)>::new(), HashMap::<Channel, usize>::new());
    for (index, process) in job.processes.iter().enumerate() {
        let mut order: Vec<usize> = (0..process.operations.len()).collect();
        order.sort_by_key(|at| process.operations[*at].number);
        for at in order {
            let operation = &process.operations[at];
            let Some(message) = operation.message else { continue };
            let place = process.peers.get(message.peer as usize).and_then(|place| places.get(place));
            let Some(other) = place else { continue };
            let own = (index, operation.endpoint);
            let channel = match operation.way {
                Way::Send => Channel { from: own, to: *other, tag: message.tag },
                Way::Receive => Channel { from: *other, to: own, tag: message.tag },
            };
            let number = *known.entry(channel).or_insert_with(|| {
                channels.push((channel, Ends::default()));
                channels.len() - 1
            });
            let ends = &mut channels[number].1;
            if operation.way == Way::Send { ends.sends.push(at) } else { ends.receives.push(at) }
        }
    }
    (channels, Pairs::default())
}

/// Whether the process starts these operations in the order of the list. Its list of operations has the order of
/// starts, but for claims of messages that were found before.
fn starts_in_order(process: &Process, operations: &[usize]) -> bool {
    operations.is_sorted_by_key(|at| (process.operations[*at].number, *at)) && operations.is_sorted()
}

/// Makes two operations the ends of one message. Returns whether they agree on its length; the sender knows it.
fn join(job: &mut Job, send: (usize, usize), receive: (usize, usize), tag: u64) -> bool {
    let bytes = |end: (usize, usize)| job.processes[end.0].operations[end.1].message.map(|message| message.bytes);
    let (sent, received) = (bytes(send), bytes(receive));
    for (end, other) in [(send, receive), (receive, send)] {
        let operation = &mut job.processes[end.0].operations[end.1];
        (operation.partner, operation.tag) = (Some(other), tag);
        if let (Some(message), Some(sent)) = (&mut operation.message, sent) {
            message.bytes = sent;
        }
    }
    sent == received
}

/// Tags of the trace.
#[derive(Debug, Default)]
struct Tags {
    known: HashMap<(u64, u64, Option<u64>), u64>,
    next: u64,
}

impl Tags {
    /// The tag of a channel: the same for the same tag of the job between endpoints of the same numbers.
    fn of(&mut self, channel: &Channel) -> u64 {
        match self.known.entry((channel.from.1, channel.to.1, channel.tag)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                self.next += 1;
                *place.insert(self.next - 1)
            }
        }
    }

    /// A tag that nothing else has.
    fn new_one(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::left::tests::{message, process};
    use tidegate_fi::trace::format::{Message, Record};

    fn send(number: u64, to: u64, tag: u64, bytes: u64) -> Record {
        Record::Send { number, message: Message { bytes, ..message(to, tag) } }
    }

    fn met(number: u64, from: u64, tag: u64, bytes: u64) -> Record {
        Record::Met { number, message: Message { bytes, ..message(from, tag) } }
    }

    /// A job of these ranks, and what came of pairing.
    fn pair_up(ranks: &[Vec<Record>]) -> (Job, Pairs) {
        let size = ranks.len() as u32;
        let processes = ranks.iter().zip(0..).map(|(records, rank)| process(rank, size, records)).collect();
        let mut job = Job::all(processes).remove(0);
        let pairs = pair(&mut job);
        (job, pairs)
    }

    /// Whose operations, by number, the receives of a rank got.
    fn partners(job: &Job, rank: usize) -> Vec<Option<(usize, usize)>> {
        let receives = job.processes[rank].operations.iter().filter(|operation| operation.way == Way::Receive);
        receives.map(|operation| operation.partner).collect()
    }

    #[test]
    fn messages_of_one_tag_go_to_receives_in_the_order_in_which_they_were_posted() {
        // The second receive has its message first: it is short.
        let (job, pairs) = pair_up(&[
            vec![send(0, 1, 5, 9000), send(1, 1, 5, 8), send(2, 1, 6, 1)],
            vec![
                Record::Receive { number: 0 },
                Record::Receive { number: 1 },
                Record::Receive { number: 2 },
                met(2, 0, 5, 8),
                met(0, 0, 6, 1),
                met(1, 0, 5, 9000),
            ],
        ]);
        assert_eq!(partners(&job, 1), [Some((0, 2)), Some((0, 0)), Some((0, 1))]);
        assert_eq!(pairs, Pairs { messages: 3, bytes: 9009, ..Pairs::default() });
    }

    #[test]
    fn a_claim_matches_by_when_its_message_was_found() {
        // Number 0 looked and found the first message; number 1 got the second; then the first was received.
        let (job, pairs) = pair_up(&[
            vec![send(0, 1, 5, 100), send(1, 1, 5, 8)],
            vec![Record::Receive { number: 1 }, met(1, 0, 5, 8), Record::Receive { number: 0 }, met(0, 0, 5, 100)],
        ]);
        assert_eq!(partners(&job, 1), [Some((0, 1)), Some((0, 0))]);
        assert_eq!(pairs.disagreements, 0);
        let tags: Vec<u64> = job.processes[1].operations.iter().map(|operation| operation.tag).collect();
        assert_ne!(tags[0], tags[1], "in a replay the one posted first would get the first message");
    }

    #[test]
    fn what_has_no_other_end_is_counted_and_has_no_partner() {
        let (job, pairs) = pair_up(&[
            vec![send(0, 1, 5, 8), send(1, 1, 5, 30), send(2, 1, 5, 4)],
            vec![
                Record::Receive { number: 0 },
                met(0, 0, 5, 8),
                Record::Receive { number: 1 },
                Record::Receive { number: 2 },
                met(2, 0, 9, 1),
            ],
        ]);
        assert_eq!(partners(&job, 1), [Some((0, 0)), None, None]);
        let expected =
            Pairs { messages: 1, bytes: 8, sends_cut: 2, sends_cut_bytes: 34, receives_cut: 1, disagreements: 0 };
        assert_eq!(pairs, expected);
    }

    #[test]
    fn of_two_lengths_the_senders_counts() {
        let (job, pairs) = pair_up(&[vec![send(0, 1, 5, 8)], vec![Record::Receive { number: 0 }, met(0, 0, 5, 9)]]);
        assert_eq!((pairs.disagreements, pairs.bytes), (1, 8));
        assert_eq!(job.processes[1].operations[0].message.map(|message| message.bytes), Some(8));
    }
}
