//! [`Process`]: what one process left of its course, message by message.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::Path;

use tidegate_fi::trace::format::{Decoder, Message, Record};
use tidegate_fi::trace::process::{SUFFIX, UNKNOWN, VERSION, Word};
use tidegate_link::Address;
use tidegate_link::files::named;
use tidegate_link::journal::Left;

use tidegate_sim::goal::WORK_MOST;

/// The address of an endpoint, as bytes.
pub type Place = [u8; Address::BYTES];

/// What one process did.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its number in the system.
    pub pid: u64,
    /// Its rank, if the launcher told.
    pub rank: Option<u32>,
    /// Ranks of its job, if the launcher told.
    pub job_size: Option<u32>,
    /// When its trace began, in nanoseconds since 1970.
    pub begun: u64,
    /// Whether other processes have started it.
    pub is_spawned: bool,
    /// Its endpoints.
    pub endpoints: Vec<Place>,
    /// The endpoints that it has exchanged messages with, itself included where it has.
    pub peers: Vec<Place>,
    /// Its sends, and its receives that were posted.
    pub operations: Vec<Operation>,
    /// What it did, in order.
    pub course: Vec<Step>,
    /// Operations on the memory of peers, which are in no course.
    pub remote_operations: u64,
    /// Bytes that they moved.
    pub remote_bytes: u64,
    /// Why what came later is missing, if it is.
    pub end: End,
}

/// How a process's recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// With its process.
    #[default]
    Whole,
    /// The bound on its size was reached, or the disk was full.
    Full,
    /// What comes next cannot be understood.
    Damaged,
}

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It computes, for so many nanoseconds.
    Compute(u64),
    /// It starts an operation, by its place in the list.
    Start(usize),
    /// It waits for the end of one.
    Wait(usize),
}

/// Which end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It sends the message.
    Send,
    /// It receives it.
    Receive,
}

/// A send or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Send or receive.
    pub way: Way,
    /// Its place in the order in which the process started its operations, in which receives match; messages of one
    /// buffer share one.
    pub number: u64,
    /// The process's endpoint.
    pub endpoint: u64,
    /// What it sends, or what it received; `None`: nothing came.
    pub message: Option<Message>,
    /// The other end, once it is found: a process of the job, and an operation there.
    pub partner: Option<(usize, usize)>,
    /// The tag in the trace, once it is given.
    pub tag: u64,
}

/// Reads what processes left in the folder, in order of rank, then of their beginning.
///
/// # Errors
/// The folder or a file in it cannot be read, or a file is of another version.
pub fn read_dir(folder: &Path) -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(SUFFIX) {
            continue;
        }
        let named = |error: io::Error| named(&path, error);
        if let Some(left) = Left::read(&path).map_err(named)? {
            processes.push(Process::of(&left).map_err(named)?);
        }
    }
    processes.sort_by_key(|process| (process.rank.unwrap_or(u32::MAX), process.begun, process.pid));
    Ok(processes)
}

impl Process {
    fn of(left: &Left) -> io::Result<Process> {
        let word = |word: Word| left.word(word as usize);
        if word(Word::Version) != VERSION {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a trace of another version of tidegate"));
        }
        let known = |value: u64| u32::try_from(value).ok().filter(|_| value != UNKNOWN);
        let process = Process {
            pid: word(Word::Pid),
            rank: known(word(Word::Rank)),
            job_size: known(word(Word::JobSize)),
            begun: word(Word::Begun),
            is_spawned: word(Word::IsSpawned) != 0,
            end: if left.is_cut { End::Full } else { End::Whole },
            ..Process::default()
        };
        Ok(process.with(Decoder::new(&left.bytes)))
    }

    /// The process with what the records say.
    fn with(self, records: Decoder) -> Process {
        let mut reading = Reading { process: self, endpoint: 0, open: HashMap::new(), course: Vec::new() };
        for record in records {
            match record {
                // Nobody computes for months between two calls.
                Err(_) | Ok(Record::Compute(WORK_MOST..)) => {
                    reading.process.end = End::Damaged;
                    break;
                }
                Ok(record) => reading.add(record),
            }
        }
        reading.finish()
    }
}

/// A step before it is known how many messages a buffer has taken.
#[derive(Clone, Copy, Debug)]
enum Draft {
    Step(Step),
    /// A buffer is posted, by the number of its operation.
    Buffer(u64),
}

/// What is known of an operation that is not over.
#[derive(Clone, Debug)]
enum Open {
    One(usize),
    Buffer {
        endpoint: u64,
        /// Its messages, in order.
        met: Vec<usize>,
        /// Those of them that the application does not know of.
        unread: VecDeque<usize>,
    },
}

struct Reading {
    process: Process,
    endpoint: u64,
    open: HashMap<u64, Open>,
    course: Vec<Draft>,
}

impl Reading {
    fn add(&mut self, record: Record) {
        match record {
            Record::Opened(place) => {
                self.endpoint = self.process.endpoints.len() as u64;
                self.process.endpoints.push(place);
            }
            Record::Endpoint(endpoint) => self.endpoint = endpoint,
            Record::Peer(place) => self.process.peers.push(place),
            Record::Compute(nanoseconds) => self.course.push(Draft::Step(Step::Compute(nanoseconds))),
            Record::Send { number, message } => self.start(Way::Send, number, Some(message)),
            Record::Receive { number } => self.start(Way::Receive, number, None),
            Record::Buffer { number } => {
                let (met, unread) = (Vec::new(), VecDeque::new());
                self.open.insert(number, Open::Buffer { endpoint: self.endpoint, met, unread });
                self.course.push(Draft::Buffer(number));
            }
            Record::Met { number, message } => self.meet(number, message),
            Record::Read { number } => self.read(number),
            Record::Remote { bytes } => {
                self.process.remote_operations += 1;
                self.process.remote_bytes += bytes;
            }
        }
    }

    fn start(&mut self, way: Way, number: u64, message: Option<Message>) {
        let at = self.push(Operation { way, number, endpoint: self.endpoint, message, partner: None, tag: 0 });
        self.open.insert(number, Open::One(at));
        self.course.push(Draft::Step(Step::Start(at)));
    }

    fn push(&mut self, operation: Operation) -> usize {
        self.process.operations.push(operation);
        self.process.operations.len() - 1
    }

    fn meet(&mut self, number: u64, message: Message) {
        let at = self.process.operations.len();
        match self.open.get_mut(&number) {
            Some(Open::One(at)) => self.process.operations[*at].message = Some(message),
            Some(Open::Buffer { endpoint, met, unread }) => {
                let (way, endpoint, message) = (Way::Receive, *endpoint, Some(message));
                met.push(at);
                unread.push_back(at);
                self.push(Operation { way, number, endpoint, message, partner: None, tag: 0 });
            }
            None => {}
        }
    }

    fn read(&mut self, number: u64) {
        let over = match self.open.get_mut(&number) {
            Some(Open::One(at)) => {
                let at = *at;
                self.open.remove(&number);
                Some(at)
            }
            Some(Open::Buffer { unread, .. }) => unread.pop_front(),
            None => None,
        };
        self.course.extend(over.map(|at| Draft::Step(Step::Wait(at))));
    }

    /// Where a buffer was posted there is a receive for each message that it took.
    fn finish(self) -> Process {
        let Reading { mut process, open, course, .. } = self;
        for draft in course {
            match (draft, &open) {
                (Draft::Step(step), _) => process.course.push(step),
                (Draft::Buffer(number), open) => {
                    if let Some(Open::Buffer { met, .. }) = open.get(&number) {
                        process.course.extend(met.iter().map(|at| Step::Start(*at)));
                    }
                }
            }
        }
        process
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tidegate_fi::trace::format::Encoder;

    /// An endpoint's address for tests.
    pub fn place(number: u8) -> Place {
        [number; Address::BYTES]
    }

    /// A process of a job of so many that left these records, behind those of its endpoint and of all ranks as peers.
    pub fn process(rank: u32, size: u32, records: &[Record]) -> Process {
        let mut encoder = Encoder::default();
        let first = [Record::Opened(place(rank as u8))];
        let peers = (0..size).map(|peer| Record::Peer(place(peer as u8)));
        let all = first.into_iter().chain(peers).chain(records.iter().copied());
        let bytes: Vec<u8> = all.flat_map(|record| encoder.encode(&record).bytes().to_vec()).collect();
        let begun = u64::from(rank);
        let process = Process { rank: Some(rank), job_size: Some(size), begun, ..Process::default() };
        process.with(Decoder::new(&bytes))
    }

    /// A message of 8 bytes.
    pub fn message(peer: u64, tag: u64) -> Message {
        Message { peer, bytes: 8, tag: Some(tag) }
    }

    #[test]
    fn a_course_has_what_was_started_computed_and_waited_for() {
        let message = message(1, 5);
        let process = process(
            0,
            2,
            &[
                Record::Receive { number: 0 },
                Record::Send { number: 1, message },
                Record::Read { number: 1 },
                Record::Met { number: 0, message },
                Record::Compute(7),
                Record::Read { number: 0 },
                Record::Remote { bytes: 30 },
            ],
        );
        let steps = [Step::Start(0), Step::Start(1), Step::Wait(1), Step::Compute(7), Step::Wait(0)];
        assert_eq!(process.course, steps);
        let [receive, send] = [0, 1].map(|at| process.operations[at]);
        assert_eq!((receive.way, receive.message), (Way::Receive, Some(message)));
        assert_eq!((send.way, send.message), (Way::Send, Some(message)));
        assert_eq!((process.remote_operations, process.remote_bytes, process.end), (1, 30, End::Whole));
    }

    #[test]
    fn a_buffer_is_as_many_receives_as_it_took_messages_where_it_was_posted() {
        let (first, second) = (message(1, 5), message(1, 6));
        let process = process(
            0,
            2,
            &[
                Record::Buffer { number: 0 },
                Record::Compute(1),
                Record::Met { number: 0, message: first },
                Record::Met { number: 0, message: second },
                Record::Read { number: 0 },
            ],
        );
        assert_eq!(process.course, [Step::Start(0), Step::Start(1), Step::Compute(1), Step::Wait(0)]);
        assert_eq!(process.operations[1].message, Some(second));
    }

    #[test]
    fn what_comes_before_damage_counts() {
        let mut encoder = Encoder::default();
        let mut bytes = encoder.encode(&Record::Compute(3)).bytes().to_vec();
        bytes.push(0);
        let process = Process::default().with(Decoder::new(&bytes));
        assert_eq!((process.course, process.end), (vec![Step::Compute(3)], End::Damaged));
        // 584 years became a number that wraps in picoseconds.
        let mut encoder = Encoder::default();
        let bytes = [3, u64::MAX, 5].map(|span| encoder.encode(&Record::Compute(span)).bytes().to_vec()).concat();
        let process = Process::default().with(Decoder::new(&bytes));
        assert_eq!((process.course, process.end), (vec![Step::Compute(3)], End::Damaged));
    }
}
