//! [`Recording`]: whether calls write the trace of their process ([`On`]) or not ([`Off`]).
//!
//! The calls that transfer are functions with a parameter of this trait, and there are two tables of each kind; a
//! domain's settings decide which one an object gets when it is opened. So `Off` costs nothing at all, not even a
//! branch. What comes back takes one: the tickets of recorded operations have a flag ([`RECORDED`]) that makes their
//! ends take the same slower way as those of claims and multi-receives, for which there is a branch anyway.

use crate::objects::active::Active;
use crate::objects::pending_operations::RECORDED;
use crate::trace::operations::{Book, RecordedOperation, Unread};
use crate::trace::process;
use tidegate_link::{Address, IoBuffer};
use tidegate_message::{Buffer, Completion, Context, MatchFlags, Space, Target};

/// See the module.
pub trait Recording: 'static {
    /// What a call tells of the operation that it starts.
    type RecordedOperation;
    /// What its ticket has as a flag.
    const FLAG: u64;
    /// Runs a call of the application.
    fn call<T>(body: impl FnOnce() -> T) -> T;
    /// A send.
    fn sends(to: Target, space: Space, buffer: &IoBuffer) -> Self::RecordedOperation;
    /// A receive, or a look for a message.
    fn receives(flags: MatchFlags, takes_many: bool) -> Self::RecordedOperation;
    /// An operation on a peer's memory.
    fn reaches(bytes: u64) -> Self::RecordedOperation;
    /// The message layer has accepted it.
    fn started(active: &mut Active, deed: Self::RecordedOperation, context: Context);
    /// The message layer has accepted a claim of the message that the look of this ticket has found.
    fn claimed(active: &mut Active, context: Context);
    /// The application has read so many completions.
    fn read(unread: &mut Unread, count: usize);
    /// The application has read an error.
    fn read_error(unread: &mut Unread);
}

/// Nothing is recorded.
pub enum Off {}
/// Everything is.
pub enum On {}

impl Recording for Off {
    type RecordedOperation = ();
    const FLAG: u64 = 0;

    #[inline(always)]
    fn call<T>(body: impl FnOnce() -> T) -> T {
        body()
    }

    #[inline(always)]
    fn sends(_: Target, _: Space, _: &IoBuffer) {}
    #[inline(always)]
    fn receives(_: MatchFlags, _: bool) {}
    #[inline(always)]
    fn reaches(_: u64) {}
    #[inline(always)]
    fn started(_: &mut Active, (): (), _: Context) {}
    #[inline(always)]
    fn claimed(_: &mut Active, _: Context) {}
    #[inline(always)]
    fn read(_: &mut Unread, _: usize) {}
    #[inline(always)]
    fn read_error(_: &mut Unread) {}
}

impl Recording for On {
    type RecordedOperation = RecordedOperation;
    const FLAG: u64 = RECORDED;

    fn call<T>(body: impl FnOnce() -> T) -> T {
        process::call(body)
    }

    fn sends(to: Target, space: Space, buffer: &IoBuffer) -> RecordedOperation {
        RecordedOperation::Send { to, space, bytes: buffer.len() as u64 }
    }

    fn receives(flags: MatchFlags, takes_many: bool) -> RecordedOperation {
        match (flags, takes_many) {
            (MatchFlags { peek: true, discard: true, .. }, _) => RecordedOperation::Discard,
            (MatchFlags { peek: true, .. }, _) => RecordedOperation::Look,
            (_, true) => RecordedOperation::Buffer,
            (_, false) => RecordedOperation::Receive,
        }
    }

    fn reaches(bytes: u64) -> RecordedOperation {
        RecordedOperation::Remote(bytes)
    }

    fn started(active: &mut Active, deed: RecordedOperation, context: Context) {
        if let Some(mut operations) = active.trace.take() {
            operations.start(context, deed, active);
            active.trace = Some(operations);
        }
    }

    fn claimed(active: &mut Active, context: Context) {
        if let Some(operations) = &mut active.trace {
            operations.claim(context);
        }
    }

    fn read(unread: &mut Unread, count: usize) {
        unread.read(count);
    }

    fn read_error(unread: &mut Unread) {
        unread.read_error();
    }
}

impl Active {
    /// An operation is over. Returns its number in the trace, if the application's hearing of it is to be recorded.
    pub fn note_end(&mut self, completion: &Completion) -> Option<u64> {
        let mut operations = self.trace.take()?;
        let number = operations.end(completion, self);
        self.trace = Some(operations);
        number
    }
}

/// An operation is over whose completion no queue reports: the application has learned of it now, as far as anybody
/// knows.
pub fn read_unseen(number: Option<u64>) {
    if let Some(number) = number {
        process::with(|recorder| recorder.read(number));
    }
}

impl Book for Active {
    fn epoch(&self) -> u32 {
        self.engine.epoch()
    }

    fn address(&self, target: Target) -> Option<Address> {
        self.address_of(target)
    }
}

/// The two tables of calls of an object, without a trace and with one, made by a function that is generic over
/// [`Recording`]; and `ops`, which chooses.
macro_rules! tables {
    ($ops:ty, $calls:ident) => {
        static TABLES: [$ops; 2] =
            [$calls::<crate::operations::recording::Off>(), $calls::<crate::operations::recording::On>()];

        /// The table of calls: `is_recorded`, the one that writes the trace.
        pub fn ops(is_recorded: bool) -> *mut $ops {
            crate::border::object::table(&TABLES[usize::from(is_recorded)])
        }
    };
}
pub(crate) use tables;
