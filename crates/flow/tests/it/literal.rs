//! P §6 read literally: the threshold that was computed is queued, and what is available is granted. In 13 steps a
//! sender waits for ever; the same steps under [`SchemeName::Dynamic`], which queues what was granted, leave it a
//! credit.
//!
//! Two senders, one credit slot, four data slots, of which each sender has one at the start (its static slots).

use std::collections::VecDeque;
use tidegate_flow::{Config, FlowControl, Packet, PacketKind, PeerId, SchemeName};

const CREDIT_SLOTS: u32 = 1;
const DATA_SLOTS: u32 = 4;

/// A step of one of the senders, or with one of its packets.
#[derive(Clone, Copy)]
enum Step {
    /// It sends a packet, with one credit.
    Sends(usize),
    /// The receiver retrieves the packet.
    Retrieved(usize),
    /// It gets the credits that came back.
    Gets(usize),
}
use Step::{Gets, Retrieved, Sends};

const TRACE: [Step; 13] = [
    Sends(0),
    Retrieved(0),
    Gets(0),
    Sends(0),
    Retrieved(0),
    Sends(1),
    Retrieved(1),
    Gets(1),
    Sends(1),
    Retrieved(1),
    Gets(1),
    Sends(1),
    Retrieved(1),
];

/// What a receiver knows of a sender, as P words it.
struct Sender {
    /// After so many packets credits go back, the next first.
    thresholds: VecDeque<u32>,
    retrieved: u32,
}

/// P's receiver. Nothing is stolen within these steps, so each sender keeps half of the slots.
struct Literal {
    available: u32,
    senders: [Sender; 2],
}

impl Literal {
    fn new() -> Self {
        let sender = || Sender { thresholds: VecDeque::from([1; CREDIT_SLOTS as usize + 1]), retrieved: 0 };
        Literal { available: DATA_SLOTS - 2, senders: [sender(), sender()] }
    }

    /// Retrieves a packet; returns the credits that go back.
    fn retrieve(&mut self, from: usize) -> u32 {
        let sender = &mut self.senders[from];
        self.available += 1;
        sender.retrieved += 1;
        if sender.retrieved < sender.thresholds[0] {
            return 0;
        }
        // Eq. 1.
        let threshold = DATA_SLOTS / 2 / (CREDIT_SLOTS + 1) + 1;
        let granted = threshold.min(self.available);
        self.available -= granted;
        sender.thresholds.pop_front();
        sender.thresholds.push_back(threshold);
        sender.retrieved = 0;
        granted
    }
}

/// Goes through the trace; returns the credits of both senders at its end, those that travel among them.
fn run(mut retrieve: impl FnMut(usize) -> u32) -> [u32; 2] {
    let (mut credits, mut travelling) = ([1_u32; 2], [0_u32; 2]);
    for step in TRACE {
        match step {
            Sends(sender) => credits[sender] = credits[sender].checked_sub(1).expect("it has a credit"),
            Retrieved(sender) => travelling[sender] += retrieve(sender),
            Gets(sender) => credits[sender] += std::mem::take(&mut travelling[sender]),
        }
    }
    [credits[0] + travelling[0], credits[1] + travelling[1]]
}

#[test]
fn as_it_is_written_a_sender_waits_for_ever() {
    let mut receiver = Literal::new();
    let credits = run(|sender| receiver.retrieve(sender));
    assert_eq!(credits, [3, 0], "the second sender has none, and none are on their way");
    assert_eq!((receiver.senders[1].thresholds[0], receiver.senders[1].retrieved), (2, 1), "it would need one more");
    // What the first sends from now on brings the second nothing.
    let first: u32 = (0..100).map(|_| receiver.retrieve(0)).sum();
    assert!(first > 0 && receiver.senders[1].retrieved == 1);
}

#[test]
fn with_the_credits_that_were_granted_queued_it_goes_on() {
    let config = Config::new(SchemeName::Dynamic, 2, DATA_SLOTS / 2 + CREDIT_SLOTS, CREDIT_SLOTS);
    let mut receiver = FlowControl::new(&config).expect("a legal configuration");
    let credits = run(|sender| {
        let from = PeerId(sender as u32);
        receiver.handle_retrieved(from, &Packet::new(PacketKind::Data, 0, 0)).expect("it keeps the protocol");
        let mut returned = 0;
        while let Some(control) = receiver.poll_control() {
            assert_eq!((control.to, control.packet.header.kind()), (from, PacketKind::Credit));
            returned += control.packet.credits();
        }
        returned
    });
    assert!(credits[1] > 0, "{credits:?}");
}
