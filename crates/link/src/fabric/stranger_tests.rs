//! Admission, and what follows from a word without a proof: strangers, the next owner of a port, and a process that has
//! taken a connection over. The rules are those of `admission`.

use super::admission;
use super::contact::Contact;
use super::greeting::{self, Greeting};
use super::liveness::FAILED_FOR;
use super::network::{Network, NetworkEvent};
use super::protocol::Protocol;
use super::testing::contact;
use super::tests::{Job, MOMENT, Node, WHILE, flow, greeting};
use super::wire::{self, Batch, HEADER_BYTES, Header, Kind, Receipt};
use std::time::Duration;
use tidegate_flow::{Packet, PacketKind};
use tidegate_message::LinkEvent;

/// The contact of the node of this number.
fn node(number: u64) -> Contact {
    contact(number, number, 64)
}

/// The contact of an endpoint as a process knows it that has read a batch of it: without the secret.
fn seen(number: u64) -> Contact {
    Contact { secret: None, ..node(number) }
}

/// A batch of this kind in the name of one node for another, by a process that has read their batches and makes its
/// proof up.
fn forged(kind: Kind, from: u64, to: u64) -> Vec<u8> {
    let own = Greeting { contact: Contact { secret: Some(crate::Secret::draw()), ..node(from) }, ..greeting(from, 64) };
    own.batch(&seen(to), kind, 1)
}

/// Two who have greeted each other, and a third who may listen.
fn greeted() -> Job {
    let mut job = Job::new(3, 1);
    job.peer(0, 1);
    job.steps(3, MOMENT);
    job
}

/// The batch that the network of a node brings next.
fn next(job: &mut Job, node: usize) -> Option<Vec<u8>> {
    let Node { network, .. } = &mut job.nodes[node];
    loop {
        if let NetworkEvent::Received(batch) = network.poll()? {
            return Some(batch.to_vec());
        }
    }
}

/// fi_tidegate(7): "The first batch of a peer proves that its sender knows the receiver's secret; one that does not
/// gets no place in the table of peers and no answer, is dropped and counted as well, and costs a hash."
#[test]
fn a_hello_without_the_secret_gets_no_place_and_no_answer() {
    let mut job = Job::new(3, 1);
    let (before, tried) = (job.nodes[1].protocol.counts(), job.world.borrow().tried);
    for number in 0..10_000_u64 {
        let mut hello = forged(Kind::Hello, 2, 1);
        // Not in the first bytes: there it would be for another endpoint.
        let at = 16 + (number as usize) % (hello.len() - 16);
        hello[at] ^= if number < 5000 { 0 } else { 1 << (number % 8) };
        job.nodes[1].protocol.handle_batch(&hello, job.now);
    }
    job.steps(20, WHILE);
    let after = job.nodes[1].protocol.counts();
    assert_eq!(after.dropped - before.dropped, 10_000, "each is counted");
    assert_eq!((job.world.borrow().tried, job.nodes[1].protocol.has_peers()), (tried, false));
    // With it, the same hello is let in.
    let hello = greeting(2, 64).batch(&node(1), Kind::Hello, 1);
    job.nodes[1].protocol.handle_batch(&hello, job.now);
    assert!(job.nodes[1].protocol.has_peers());
}

#[test]
fn a_changed_hello_is_none_and_a_repeated_one_leads_to_its_sender_alone() {
    let mut job = Job::new(3, 1);
    job.peer(0, 1);
    job.exchange(0);
    let hello = next(&mut job, 1).unwrap();
    for at in HEADER_BYTES..hello.len() {
        let mut changed = hello.clone();
        changed[at] ^= 1;
        job.nodes[1].protocol.handle_batch(&changed, job.now);
        assert!(!job.nodes[1].protocol.has_peers(), "byte {at}: no other process can put its address into a hello");
    }
    for _ in 0..100 {
        job.nodes[1].protocol.handle_batch(&hello, job.now);
    }
    job.steps(4, MOMENT);
    assert_eq!((next(&mut job, 2), job.departure(0), job.departure(1)), (None, None, None));
}

#[test]
fn nothing_that_travels_shows_a_secret() {
    let mut job = Job::new(2, 1);
    let secrets = [0, 1].map(|number| node(number).secret.unwrap().to_bytes());
    let to = job.peer(0, 1);
    let mut seen = Vec::new();
    for step in 0..60 {
        let _ = job.write(0, to, step);
        job.now = job.now + WHILE;
        for from in 0..2 {
            job.exchange(from);
            let Node { network, protocol } = &mut job.nodes[1 - from];
            while let Some(event) = network.poll() {
                if let NetworkEvent::Received(batch) = event {
                    let batch = batch.to_vec();
                    protocol.handle_batch(&batch, job.now);
                    seen.push(batch);
                }
            }
        }
    }
    let kinds = |kind: Kind| seen.iter().filter(|batch| batch[4] == kind as u8).count();
    assert!(kinds(Kind::Hello) > 0 && kinds(Kind::Welcome) > 0 && kinds(Kind::Packets) > 0, "{}", seen.len());
    for secret in &secrets[1..] {
        assert!(seen.iter().all(|batch| !batch.windows(4).any(|part| part == &secret[..4])));
    }
}

/// fi_tidegate(7): "So do later batches that are no messages and no acknowledgements prove that they are of the two."
#[test]
fn a_word_that_is_not_proven_ends_no_peer() {
    let mut job = greeted();
    for (from, to) in [(0, 1), (1, 0)] {
        for kind in [Kind::Severed, Kind::Refusal, Kind::Welcome, Kind::Answer, Kind::Ping, Kind::Hello] {
            let before = job.nodes[to as usize].protocol.counts().dropped;
            job.nodes[to as usize].protocol.handle_batch(&forged(kind, from, to), job.now);
            assert_eq!(job.nodes[to as usize].protocol.counts().dropped, before + 1, "{kind:?}");
        }
    }
    job.steps(10, WHILE);
    assert_eq!((job.departure(0), job.departure(1)), (None, None));
    let to = job.peer(0, 1);
    job.write(0, to, 7).unwrap();
    job.steps(4, MOMENT);
    assert_eq!(job.retrieve(1).map(|(_, number)| number), Some(7), "they go on");
    // A peer that was greeted can prove its word as well: by its own secret, or by the greeter's, if it has
    // it.
    for knows in [false, true] {
        let mut job = greeted();
        let peer = if knows { node(0) } else { seen(0) };
        job.nodes[0].protocol.handle_batch(&greeting(1, 64).batch(&peer, Kind::Severed, 0), job.now);
        assert!(job.departure(0).unwrap().1.contains("does not hear this process any more"), "{knows}");
    }
}

#[test]
fn a_few_words_that_a_peer_is_absent_end_no_peer_and_it_is_asked() {
    let mut job = greeted();
    let absent = greeting::batch_from(node(1).id(), node(0).id(), Kind::Absent, 0);
    for _ in 0..200 {
        // A process says so all the time; the peer answers when it is asked.
        job.nodes[0].protocol.handle_batch(&absent, job.now);
        job.step(Duration::from_millis(100));
    }
    job.steps(6, MOMENT);
    assert_eq!(job.departure(0), None, "twenty seconds of it");
    let lost = (0..88).find(|_| {
        job.nodes[0].protocol.handle_batch(&absent, job.now);
        job.now = job.now + Duration::from_millis(100);
        // The peer computes, for less than it takes.
        job.exchange(0);
        job.departure(0).is_some()
    });
    assert_eq!(lost, None, "until shortly before ten seconds are over");
}

/// fi_tidegate(7): "Whoever gets the port of a rank that has ended, or takes a connection of a living one over, reads
/// what the others send there, and with the numbers in it can send messages in that rank's name to those who sent."
/// fi_tidegate(7): "But a message of its own may be taken in place of one of the rank's, so that the job ends, waits
/// for ever or gets what no rank has sent."
#[test]
fn who_has_read_a_batch_can_send_packets_in_the_name_of_its_receiver() {
    let mut job = greeted();
    let to = job.peer(0, 1);
    job.write(0, to, 7).unwrap();
    job.exchange(0);
    let read = next(&mut job, 1).unwrap();
    let Header { to: rank, from: victim, .. } = Batch::parse(&read).unwrap().header;
    let (is_closing, is_last, receipt) = (false, false, Receipt::default());
    let mut batch = vec![0; HEADER_BYTES];
    let header = Header {
        kind: Kind::Packets,
        is_closing,
        is_last,
        to: victim,
        from: rank,
        sequence: 0,
        acknowledged: 0,
        receipt,
    };
    header.emit(&mut batch);
    wire::push_packet(&mut batch, &Packet::with_credits(PacketKind::Data, 99));
    job.nodes[0].protocol.handle_batch(&batch, job.now);
    assert_eq!(job.retrieve(0), Some((to, 99)));
    // That of the rank itself has the same number.
    let back = job.peer(1, 0);
    job.write(1, back, 5).unwrap();
    job.steps(4, MOMENT);
    assert_eq!(job.retrieve(0), None);
}

/// fi_tidegate(7): "Word that a rank is not at its address any more, which cannot be proven, counts when for 10 seconds
/// it was heard again and again and nothing came from the rank itself."
/// fi_tidegate(7): "A process that ends and whose port another gets is missed as well: the new owner of the port says
/// that it is another, and after 10 seconds of that the process counts as lost."
#[test]
fn who_has_the_port_of_another_says_that_it_is_another() {
    let mut job = greeted();
    // A process has ended, and one of another job has got its port.
    let other = Contact { lower: node(1).lower, ..contact(77, 77, 64) };
    job.nodes[1].protocol = Protocol::new(Greeting { contact: other, ..greeting(77, 64) }, &flow());
    let begun = job.now;
    let (orderly, name) = (0..400)
        .find_map(|_| {
            job.step(WHILE);
            job.departure(0)
        })
        .unwrap();
    assert!(!orderly && name.contains("another process has its network address now"), "{name}");
    let passed = job.now.since(begun);
    assert!(passed >= FAILED_FOR && passed < FAILED_FOR + Duration::from_secs(3), "{passed:?}");
    assert!(!job.nodes[1].protocol.has_peers(), "it has got to know no peer");
}

#[test]
fn a_hello_that_is_none_takes_no_place() {
    let mut job = Job::new(2, 1);
    let (kind, is_closing, is_last) = (Kind::Hello, false, false);
    let (to, from, receipt) = (node(1).id(), node(0).id(), Receipt::default());
    let mut batch = vec![0; HEADER_BYTES];
    Header { kind, is_closing, is_last, to, from, sequence: 1, acknowledged: 0, receipt }.emit(&mut batch);
    batch.extend([7; 30]);
    admission::seal(&mut batch, &node(1).secret.unwrap());
    job.nodes[1].protocol.handle_batch(&batch, job.now);
    assert!(job.nodes[1].protocol.by_id.is_empty());
}

#[test]
fn an_address_that_leads_back_to_us_is_an_error_and_our_own_batches_are_a_hint() {
    let mut job = Job::new(2, 1);
    let other = Contact { lower: node(0).lower, ..node(1) };
    let error = job.nodes[0].protocol.peer(&other).unwrap_err().to_string();
    assert!(error.contains("its network address is that of this process itself"), "{error}");
    // An address that the network leads back to us, or a thief who sends us what we have sent.
    job.peer(0, 1);
    job.exchange(0);
    let hello = next(&mut job, 1).unwrap();
    let (name, passed) = (0..200)
        .find_map(|step| {
            job.nodes[0].protocol.handle_batch(&hello, job.now);
            job.now = job.now + Duration::from_millis(100);
            job.exchange(0);
            job.departure(0).map(|(_, name)| (name, step))
        })
        .unwrap();
    assert!(name.contains("comes to this process itself") && passed >= 99, "{name} {passed}");
}

/// fi_tidegate(7): "A batch that asks for an endpoint that had the port before is answered at the address that stands
/// in it, in 40 bytes that say that it is not there."
/// fi_tidegate(7): "So a stranger can make a process connect to addresses of its choice, at most 64 in a second and 16
/// at a time."
#[test]
fn strangers_are_answered_at_a_bounded_rate_and_told_nothing() {
    let mut job = Job::new(3, 1);
    let before = job.world.borrow().tried;
    for number in 0..10_000 {
        // Each claims to be another one that has talked to who had our port before, and wants its answer at node 0.
        let stranger = Contact { lower: node(0).lower, ..contact(1000 + number, 1, 64) };
        let own = Greeting { contact: stranger, ..greeting(2, 64) };
        let kind = if number % 2 == 0 { Kind::Ping } else { Kind::Hello };
        job.nodes[1].protocol.handle_batch(&own.batch(&contact(77, 77, 64), kind, 1), job.now);
        job.now = job.now + Duration::from_micros(250);
        job.exchange(1);
    }
    let answered = job.world.borrow().tried - before;
    assert!((64..=256).contains(&answered), "{answered} in 2.5 seconds");
    let answer = next(&mut job, 0).unwrap();
    let batch = Batch::parse(&answer).unwrap();
    assert_eq!((batch.header.kind, batch.body(), answer.len()), (Kind::Absent, &[][..], HEADER_BYTES));
    assert_eq!(batch.header.from, contact(77, 77, 64).id(), "it names who was asked for, not who answers");
}

#[test]
fn an_answer_to_an_address_that_takes_none_is_tried_a_few_times() {
    let mut job = Job::new(2, 1);
    job.world.borrow_mut().kill(0);
    let before = job.world.borrow().tried;
    let stranger = Contact { lower: node(0).lower, ..contact(1000, 1, 64) };
    let own = Greeting { contact: stranger, ..greeting(2, 64) };
    job.nodes[1].protocol.handle_batch(&own.batch(&contact(77, 77, 64), Kind::Ping, 1), job.now);
    for _ in 0..10_000 {
        job.now = job.now + Duration::from_micros(300);
        job.exchange(1);
    }
    let tried = job.world.borrow().tried - before;
    assert!((2..=7).contains(&tried), "{tried} tries, each of which may begin a connection");
    assert!(job.nodes[1].protocol.notices.is_empty());
}

/// fi_tidegate(7): "It cannot say in a rank's name that it hears another no more or that it closes, nor join the job as
/// one of its ranks."
#[test]
fn who_has_read_a_batch_cannot_say_that_its_receiver_closes() {
    for (is_closing, is_last) in [(true, false), (false, true), (true, true)] {
        let mut job = greeted();
        job.peer(1, 0);
        let (to, from, receipt) = (node(0).id(), node(1).id(), Receipt::default());
        let header =
            Header { kind: Kind::Packets, is_closing, is_last, to, from, sequence: 0, acknowledged: 0, receipt };
        let mut batch = vec![0; HEADER_BYTES];
        header.emit(&mut batch);
        let before = job.nodes[0].protocol.counts().dropped;
        job.nodes[0].protocol.handle_batch(&batch, job.now);
        admission::seal(&mut batch, &crate::Secret::draw());
        job.nodes[0].protocol.handle_batch(&batch, job.now);
        assert_eq!(job.nodes[0].protocol.counts().dropped - before, 2);
        job.steps(4, MOMENT);
        assert_eq!(job.departure(0), None);
        if !is_closing {
            // The rank itself can.
            batch.truncate(HEADER_BYTES);
            admission::seal(&mut batch, &node(1).secret.unwrap());
            job.nodes[0].protocol.handle_batch(&batch, job.now);
            assert!(job.departure(0).is_some());
        }
    }
}

#[test]
fn who_has_no_place_any_more_is_told_by_a_proof() {
    // The second has greeted the first, who was not given its contact; and the other way round.
    for (greeter, lost) in [(1, 0), (0, 1)] {
        let mut job = Job::new(2, 1);
        job.peer(greeter, 1 - greeter);
        job.steps(3, MOMENT);
        let place = job.nodes[0].protocol.by_id[&node(1).id()];
        job.nodes[0].protocol.quarantine(place);
        job.nodes[0].protocol.release(place, job.now);
        job.nodes[0].protocol.notices.clear();
        let begun = job.now;
        let told = (0..40).find_map(|_| {
            job.step(WHILE);
            job.departure(1)
        });
        let (_, name) = told.unwrap_or_else(|| panic!("{greeter} {lost}"));
        assert!(name.contains("does not hear this process any more"), "{name}");
        assert!(job.now.since(begun) < Duration::from_secs(3), "its word counts at once");
    }
}

#[test]
fn a_newcomer_that_finds_no_place_says_hello_until_one_is_opened() {
    let mut job = Job::new(3, 1);
    job.nodes[1].protocol.open_places(1, 2);
    job.peer(0, 1);
    job.steps(4, MOMENT);
    let to = job.peer(2, 1);
    job.steps(6, MOMENT);
    assert_eq!((job.departure(2), job.nodes[2].protocol.window(to)), (None, Some(0)));
    assert_eq!(job.nodes[1].protocol.poll_event(), Some(LinkEvent::PlacesLow));
    job.nodes[1].protocol.open_places(2, 2);
    let is_in = (0..40).any(|_| {
        job.step(WHILE);
        job.nodes[2].protocol.window(to) == Some(1001)
    });
    assert!(is_in && job.departure(2).is_none());
}

#[test]
fn of_a_full_table_a_newcomer_is_told_by_a_proof() {
    let mut job = Job::new(3, 1);
    let small = tidegate_flow::Config::new(tidegate_flow::SchemeName::Dynamic, 1, 64, 2);
    job.nodes[1].protocol = Protocol::new(greeting(1, 64), &small);
    job.peer(0, 1);
    job.steps(4, MOMENT);
    job.peer(2, 1);
    job.steps(6, MOMENT);
    assert!(job.departure(2).unwrap().1.contains("does not hear this process any more"));
    assert_eq!(job.departure(0), None);
}
