//! What operations wait for: [`WaitCause`].

/// The cause of a wait: all but the last two are causes of sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitCause {
    /// Credits of its receiver.
    Credits,
    /// Room in the receiver's mailbox, which was full.
    Mailbox,
    /// Room in the receiver's memory for messages that nobody waits for: the send is deferred.
    Window,
    /// A posted buffer: the receiver had none, and the message was refused.
    Buffer,
    /// The receiver, who has not got the data of a long message yet.
    Pull,
    /// A message of this peer: a receive or a probe names it as sender, and the application polls in vain.
    Message,
    /// A message of any peer, or something else that peers do and that no receive names. (In rows that name no peer.)
    AnyMessage,
}

impl WaitCause {
    /// All causes.
    pub const ALL: &[WaitCause] = &[
        WaitCause::Credits,
        WaitCause::Mailbox,
        WaitCause::Window,
        WaitCause::Buffer,
        WaitCause::Pull,
        WaitCause::Message,
        WaitCause::AnyMessage,
    ];

    /// Whether sends wait for it.
    pub fn is_of_sends(self) -> bool {
        !matches!(self, WaitCause::Message | WaitCause::AnyMessage)
    }

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            WaitCause::Credits => "credits",
            WaitCause::Mailbox => "mailbox",
            WaitCause::Window => "window",
            WaitCause::Buffer => "buffer",
            WaitCause::Pull => "pull",
            WaitCause::Message => "message",
            WaitCause::AnyMessage => "any_message",
        }
    }

    /// The cause in words that go on "waits for …".
    pub fn help(self) -> &'static str {
        match self {
            WaitCause::Credits => "credits",
            WaitCause::Mailbox => "room in the mailbox",
            WaitCause::Window => "room in receive memory",
            WaitCause::Buffer => "a posted buffer",
            WaitCause::Pull => "its receive",
            WaitCause::Message => "a message of it",
            WaitCause::AnyMessage => "a message of any rank",
        }
    }
}
