//! [`Task`]: what a program sees of its process, and [`Program`]s themselves.
//!
//! A program is an `async` function over a [`Task`]: straight-line code that the compiler turns into a small state
//! machine. Nothing of it runs by itself. The process polls the program when what it waits for has happened, takes the
//! one call that the program left behind, carries it out on its endpoint, and polls again. Every call yields, so the
//! time that it costs passes between two calls as it does in a real process.

use std::cell::{Ref, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use tidegate_message::Counter;

use crate::Time;
use crate::buffer::{Memory, Part};
use crate::flight::Rank;

/// What one process runs.
pub type Run = Pin<Box<dyn Future<Output = ()>>>;

/// What a job runs: one program for all its processes, which tell themselves apart by their rank.
///
/// Every function from a [`Task`] to a future is one: `|task: Task| async move { … }`.
pub trait Program {
    /// The program of one process.
    fn start(&self, task: Task) -> Run;
}

impl<F, R> Program for F
where
    F: Fn(Task) -> R,
    R: Future<Output = ()> + 'static,
{
    fn start(&self, task: Task) -> Run {
        Box::pin(self(task))
    }
}

/// What tells messages of one pair apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(pub u64);

/// Which tags a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagFilter {
    /// All.
    Any,
    /// One.
    Is(Tag),
}

impl From<Tag> for TagFilter {
    fn from(tag: Tag) -> Self {
        TagFilter::Is(tag)
    }
}

impl TagFilter {
    /// Whether it accepts a tag.
    #[must_use]
    pub fn accepts(self, tag: Tag) -> bool {
        self == TagFilter::Any || self == TagFilter::Is(tag)
    }
}

impl fmt::Display for TagFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TagFilter::Any => f.write_str("any tag"),
            TagFilter::Is(tag) => write!(f, "tag {}", tag.0),
        }
    }
}

/// Whose messages a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Anybody's.
    Any,
    /// One process's.
    Rank(Rank),
}

impl From<Rank> for Sender {
    fn from(rank: Rank) -> Self {
        Sender::Rank(rank)
    }
}

/// A send or receive that was started and has to be waited for.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an operation that nobody waits for leaves its end unknown"]
pub struct Request(u32);

/// What came of a send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The sender of a message received; the receiver of one sent.
    pub peer: Rank,
    /// The message's tag.
    pub tag: Tag,
    /// Bytes.
    pub length: u64,
}

/// A number that a program noted.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Who.
    pub rank: Rank,
    /// When.
    pub at: Time,
    /// What it is, as the program calls it.
    pub label: &'static str,
    /// Which of those: an iteration, a peer.
    pub index: u64,
    /// The number.
    pub value: f64,
}

/// What a program asks of its process. There is at most one at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Send { to: Rank, tag: Tag, part: Part, operation: u32 },
    Receive { from: Sender, tag: TagFilter, part: Part, operation: u32 },
    Compute(Time),
    Copy { from: Part, to: Part },
    Combine { from: Part, into: Part },
    Credits(Rank),
    Counter(Counter),
}

/// What an operation is, as the report of a deadlock names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Send { to: Rank, tag: Tag },
    Receive { from: Sender, tag: TagFilter },
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Free,
    Active(Aim),
    Done(Delivery),
}

/// What has to happen before the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// The process carries out its call.
    Call,
    For(u32),
    /// Any active operation ends.
    Any,
}

/// What a program and its process share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Time,
    call: Option<Call>,
    /// What a call returned.
    pub(crate) answer: u64,
    waiting: Waiting,
    operations: Vec<Operation>,
    free: Vec<u32>,
    /// Operations that ended since the program last looked for any.
    ended: usize,
    pub(crate) samples: Vec<Sample>,
    allocated: u64,
}

impl State {
    /// Whether a poll would get the program any further.
    pub(crate) fn is_ready(&self) -> bool {
        match self.waiting {
            Waiting::Call => true,
            Waiting::For(operation) => matches!(self.operations[operation as usize], Operation::Done(_)),
            Waiting::Any => self.ended > 0,
        }
    }

    /// The call that the program left behind.
    pub(crate) fn take_call(&mut self) -> Option<Call> {
        self.call.take()
    }

    /// An operation ended. A receive's delivery says whose message it got.
    pub(crate) fn complete(&mut self, operation: u32, delivery: Delivery) {
        let place = &mut self.operations[operation as usize];
        debug_assert!(matches!(place, Operation::Active(_)), "operation {operation} ended twice");
        *place = Operation::Done(delivery);
        self.ended += 1;
    }

    /// What `operation` is for.
    pub(crate) fn aim(&self, operation: u32) -> Option<Aim> {
        match self.operations.get(operation as usize)? {
            Operation::Active(aim) => Some(*aim),
            Operation::Free | Operation::Done(_) => None,
        }
    }

    /// The operations that the program waits for, none if it does not wait.
    pub(crate) fn awaited(&self) -> Vec<Aim> {
        match self.waiting {
            Waiting::Call => Vec::new(),
            Waiting::For(operation) => self.aim(operation).into_iter().collect(),
            Waiting::Any => (0..self.operations.len() as u32).filter_map(|operation| self.aim(operation)).collect(),
        }
    }

    /// An operation whose end the program waits for, if there is one that has not ended.
    pub(crate) fn next_awaited(&self) -> Option<u32> {
        match self.waiting {
            Waiting::Call => None,
            Waiting::For(operation) => Some(operation),
            Waiting::Any => (0..self.operations.len() as u32).find(|operation| self.aim(*operation).is_some()),
        }
    }

    fn start(&mut self, aim: Aim) -> u32 {
        let operation = Operation::Active(aim);
        if let Some(index) = self.free.pop() {
            self.operations[index as usize] = operation;
            return index;
        }
        self.operations.push(operation);
        (self.operations.len() - 1) as u32
    }

    fn take_done(&mut self, index: u32) -> Option<Delivery> {
        let Operation::Done(delivery) = self.operations[index as usize] else { return None };
        self.operations[index as usize] = Operation::Free;
        self.free.push(index);
        Some(delivery)
    }
}

/// What a program sees of its process. Clones are the same process.
#[derive(Clone, Debug)]
pub struct Task {
    rank: Rank,
    size: u32,
    /// The largest message, in bytes, whose send never waits for its receive.
    unreceived_most: u64,
    memory: Memory,
    state: Rc<RefCell<State>>,
}

impl Task {
    pub(crate) fn new(rank: Rank, size: u32, unreceived_most: u64, memory: Memory) -> Self {
        let state = State {
            now: Time::ZERO,
            call: None,
            answer: 0,
            waiting: Waiting::Call,
            operations: Vec::new(),
            free: Vec::new(),
            ended: 0,
            samples: Vec::new(),
            allocated: 0,
        };
        Task { rank, size, unreceived_most, memory, state: Rc::new(RefCell::new(state)) }
    }

    pub(crate) fn state(&self) -> &RefCell<State> {
        &self.state
    }

    pub(crate) fn look(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    /// Which process this is.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Processes of the job.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether the send of a message of `bytes` bytes always ends before its receive is posted. The send of a longer
    /// one waits for its receive, and under schemes that announce short messages without credits that of any message
    /// may. So two processes that both wait for such a send before they receive wait for ever, as in MPI.
    #[must_use]
    pub fn sends_unreceived(&self, bytes: u64) -> bool {
        bytes <= self.unreceived_most
    }

    /// The process's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.state.borrow().now
    }

    /// The process's memory, to fill it and to look at it where it has bytes.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// New memory, filled with zeros.
    #[must_use]
    pub fn allocate(&self, bytes: u64) -> Part {
        let mut state = self.state.borrow_mut();
        let part = Part { offset: state.allocated, length: bytes };
        state.allocated += bytes;
        self.memory.grow_to(part);
        part
    }

    /// Notes a number, for [`Outcome::samples`](crate::Outcome::samples).
    pub fn record(&self, label: &'static str, index: u64, value: f64) {
        let mut state = self.state.borrow_mut();
        let sample = Sample { rank: self.rank, at: state.now, label, index, value };
        state.samples.push(sample);
    }

    /// Leaves a call behind and goes on when the process has carried it out.
    async fn call(&self, call: Call) -> u64 {
        {
            let mut state = self.state.borrow_mut();
            debug_assert!(state.call.is_none(), "one call at a time: a program awaits each before the next");
            state.call = Some(call);
            state.waiting = Waiting::Call;
        }
        poll_fn(|_| {
            let state = self.state.borrow();
            if state.call.is_some() { Poll::Pending } else { Poll::Ready(state.answer) }
        })
        .await
    }

    /// Starts to send `part` (`MPI_Isend`).
    pub async fn start_send(&self, to: Rank, tag: Tag, part: Part) -> Request {
        let operation = self.state.borrow_mut().start(Aim::Send { to, tag });
        self.call(Call::Send { to, tag, part, operation }).await;
        Request(operation)
    }

    /// Starts to receive into `part` (`MPI_Irecv`). A longer message is an error that ends the run.
    pub async fn start_receive(&self, from: impl Into<Sender>, tag: impl Into<TagFilter>, part: Part) -> Request {
        let (from, tag) = (from.into(), tag.into());
        let operation = self.state.borrow_mut().start(Aim::Receive { from, tag });
        self.call(Call::Receive { from, tag, part, operation }).await;
        Request(operation)
    }

    /// Waits until an operation has ended.
    pub async fn wait(&self, request: Request) -> Delivery {
        poll_fn(|_| {
            let mut state = self.state.borrow_mut();
            match state.take_done(request.0) {
                Some(delivery) => Poll::Ready(delivery),
                None => {
                    state.waiting = Waiting::For(request.0);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits until all of them have ended.
    pub async fn wait_all(&self, requests: impl IntoIterator<Item = Request>) {
        for request in requests {
            self.wait(request).await;
        }
    }

    /// Waits until one of them has ended, and takes it out of the list (the last one takes its place). Returns its
    /// former place and what came of it. Waits for ever if the list is empty.
    pub async fn wait_any(&self, requests: &mut Vec<Request>) -> (usize, Delivery) {
        poll_fn(|_| {
            let mut state = self.state.borrow_mut();
            let is_done = |request: &Request| matches!(state.operations[request.0 as usize], Operation::Done(_));
            if let Some(index) = requests.iter().position(is_done) {
                let delivery = state.take_done(requests.swap_remove(index).0).expect("it was found done");
                return Poll::Ready((index, delivery));
            }
            state.ended = 0;
            state.waiting = Waiting::Any;
            Poll::Pending
        })
        .await
    }

    /// Sends `part`, and goes on when it may be changed again (`MPI_Send`).
    pub async fn send(&self, to: Rank, tag: Tag, part: Part) {
        let request = self.start_send(to, tag, part).await;
        self.wait(request).await;
    }

    /// Receives into `part` (`MPI_Recv`).
    pub async fn receive(&self, from: impl Into<Sender>, tag: impl Into<TagFilter>, part: Part) -> Delivery {
        let request = self.start_receive(from, tag, part).await;
        self.wait(request).await
    }

    /// Computes for so long, and looks at no message meanwhile.
    pub async fn compute(&self, span: Time) {
        self.call(Call::Compute(span)).await;
    }

    /// Copies within the process's memory.
    pub async fn copy(&self, from: Part, to: Part) {
        self.call(Call::Copy { from, to }).await;
    }

    /// Adds `from` to `into`, byte by byte: what reductions reduce with.
    pub async fn combine(&self, from: Part, into: Part) {
        self.call(Call::Combine { from, into }).await;
    }

    /// Credits held towards `to`: `u32::MAX` without flow control, 0 if there was no contact yet. Costs no time.
    pub async fn credits(&self, to: Rank) -> u32 {
        self.call(Call::Credits(to)).await as u32
    }

    /// A counter of the process's endpoint as it stands. Costs no time.
    pub async fn counter(&self, counter: Counter) -> u64 {
        self.call(Call::Counter(counter)).await
    }
}
