//! Who knows a port and nothing else, and peers that stop in the middle of a batch: they hold up nobody, over real
//! libfabric's `tcp`.

use super::asking::{self, Offer};
use super::interfaces::Interfaces;
use super::network::Lower;
use super::objects::Objects;
use super::tests::{WANTS, open, wait, with_each_library};
use super::wants::{SPARE, Wants};
use crate::border::bindings::*;
use crate::border::loader::Loader;
use core::ptr::null_mut;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tidegate_link::fabric::{LONGEST_BATCH_BYTES, LowerAddress, Network, NetworkEvent, Sending, Token};

/// An endpoint of the provider below that is none of Tidegate's.
struct Stranger {
    objects: Objects,
    to: fi_addr_t,
    message: Vec<u8>,
    /// One context for each sending, which the provider may use; and which of them are free.
    contexts: Vec<[u64; 8]>,
    free: Vec<usize>,
}

impl Stranger {
    /// One that sends messages of this length to an address.
    fn new(loader: &'static Loader, to: &LowerAddress, length: usize) -> Stranger {
        const AT_ONCE: usize = 16;
        let wants = Wants { may_sleep: false, reads: false, ..WANTS };
        let open = |offer: &mut Offer, _: &Interfaces| Objects::open(loader, offer, wants);
        let objects = asking::open_best(loader, &"tcp/lo".parse().unwrap(), false, open).unwrap();
        let (vector, mut route) = (objects.vector.get(), 0);
        // SAFETY: the vector is open, and the address is one of the same provider.
        let inserted = unsafe {
            let insert = (*(*vector).ops).insert.unwrap();
            insert(vector, to.as_bytes().as_ptr().cast(), 1, &mut route, 0, null_mut())
        };
        assert_eq!(inserted, 1);
        let (contexts, free) = (vec![[0; 8]; AT_ONCE], (0..AT_ONCE).collect());
        Stranger { objects, to: route, message: vec![7; length], contexts, free }
    }

    /// Sends what can be sent now.
    fn poll(&mut self) {
        let (endpoint, queue) = (self.objects.endpoint.get(), self.objects.queue.get());
        let base = self.contexts.as_mut_ptr();
        // SAFETY: endpoint and queue are open; message and contexts live as long as they, and each context is used by
        // one sending at a time.
        unsafe {
            let send = (*(*endpoint).msg).send.unwrap();
            while let Some(number) = self.free.pop() {
                let (message, length) = (self.message.as_ptr().cast(), self.message.len());
                if send(endpoint, message, length, null_mut(), self.to, base.add(number).cast()) != 0 {
                    self.free.push(number);
                    break;
                }
            }
            let mut entry: fi_cq_msg_entry = core::mem::zeroed();
            // Larger than the struct of any version.
            let mut error: [fi_cq_err_entry; 2] = core::mem::zeroed();
            loop {
                let ended = match (*(*queue).ops).read.unwrap()(queue, (&raw mut entry).cast(), 1) {
                    1 => entry.op_context,
                    code if code == -FI_EAVAIL as isize => {
                        (*(*queue).ops).readerr.unwrap()(queue, error.as_mut_ptr(), 0);
                        error[0].op_context
                    }
                    _ => break,
                };
                self.free.push((ended.addr() - base.addr()) / size_of::<[u64; 8]>());
            }
        }
    }
}

/// fi_tidegate(7): "What is longer than a batch, and what ends in its middle with the connection, is dropped and
/// counted."
#[test]
fn messages_that_are_too_long_are_dropped_and_counted_and_end_nothing() {
    const MANY: usize = 1500;
    with_each_library(|loader| {
        let (mut one, mut other) = (open(loader), open(loader));
        let mut stranger = Stranger::new(loader, &other.address(), 2 * LONGEST_BATCH_BYTES);
        let (mut dropped, mut received, mut sent) = (0, 0, 0);
        let route = one.resolve(&other.address()).unwrap();
        wait(|| {
            stranger.poll();
            while one.poll().is_some() {}
            while let Some(event) = other.poll() {
                match event {
                    NetworkEvent::Dropped => dropped += 1,
                    NetworkEvent::Received(batch) => received += usize::from(batch == [9; 40]),
                    event => panic!("{event:?}"),
                }
            }
            // Meanwhile a peer gets through, rarely enough that many errors follow each other.
            if received == sent && dropped >= sent * MANY && one.send(route, Token(0), &[9; 40]) == Sending::Taken {
                sent += 1;
            }
            (received > 1).then_some(())
        });
        one.forget(route);
    });
}

/// The two ends of a connection that goes through us, who let the greetings of libfabric's `tcp` pass, and of what the
/// client says then the beginning only.
struct Stopped {
    client: TcpStream,
    server: TcpStream,
    is_answered: bool,
    passed: usize,
}

/// How much of a message passes.
const BEGINNING: usize = 200;

impl Stopped {
    fn new(client: TcpStream, server: SocketAddr) -> Stopped {
        let server = TcpStream::connect(server).unwrap();
        client.set_nonblocking(true).unwrap();
        server.set_nonblocking(true).unwrap();
        Stopped { client, server, is_answered: false, passed: 0 }
    }

    fn pass(&mut self) {
        let mut bytes = [0; 4096];
        match self.server.read(&mut bytes) {
            Ok(length) => {
                self.is_answered = true;
                self.client.write_all(&bytes[..length]).unwrap();
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        let most = if self.is_answered { BEGINNING - self.passed } else { bytes.len() };
        match self.client.read(&mut bytes[..most]) {
            Ok(length) => {
                self.passed += if self.is_answered { length } else { 0 };
                self.server.write_all(&bytes[..length]).unwrap();
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
}

/// The address of a port of this host.
fn address(port: u16) -> LowerAddress {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    bytes[4..8].copy_from_slice(&Ipv4Addr::LOCALHOST.octets());
    LowerAddress::new(&bytes).unwrap()
}

/// fi_tidegate(7): "There is one for each peer and 32 more, so peers that stop in the middle of a batch, as a host does
/// that loses its power, hold up no others."
///
/// As many peers as there are receives beside one for each stop in the middle of a batch.
#[test]
fn peers_that_stop_in_the_middle_of_a_batch_hold_up_nobody() {
    with_each_library(|loader| assert!(is_heard_while(loader, SPARE + 8, true)));
}

/// fi_tidegate(7): "A stranger who begins batches on more than these 32 connections, and does not go on, stops the
/// endpoint from hearing others for as long as it holds them."
#[test]
fn strangers_that_stop_in_the_middle_of_more_batches_than_there_are_spare_receives_hold_up_all() {
    with_each_library(|loader| assert!(!is_heard_while(loader, SPARE + 4, false)));
}

/// Whether an endpoint hears a peer while so many others have stopped in the middle of a batch, which it knows or not.
fn is_heard_while(loader: &'static Loader, stopped: usize, are_known: bool) -> bool {
    let wants = Wants { peers: stopped + 1, may_sleep: false, reads: false, ..WANTS };
    let open = || Lower::open(loader, &"tcp/lo".parse().unwrap(), wants).unwrap();
    let mut victim = open();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = |address: LowerAddress| u16::from_be_bytes([address.as_bytes()[2], address.as_bytes()[3]]);
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port(victim.address())));
    let way = address(listener.local_addr().unwrap().port());
    let (mut peers, mut connections): (Vec<Lower>, Vec<Stopped>) = (Vec::new(), Vec::new());
    for _ in 0..stopped {
        let mut peer = open();
        if are_known {
            victim.resolve(&peer.address()).unwrap();
        }
        let route = peer.resolve(&way).unwrap();
        wait(|| {
            while peer.poll().is_some() {}
            assert_eq!(victim.poll(), None);
            connections.extend(listener.accept().ok().map(|(client, _)| Stopped::new(client, server)));
            connections.iter_mut().for_each(Stopped::pass);
            (peer.send(route, Token(0), &[7; 4096]) == Sending::Taken).then_some(())
        });
        peers.push(peer);
    }
    wait(|| {
        peers.iter_mut().for_each(|peer| while peer.poll().is_some() {});
        connections.iter_mut().for_each(Stopped::pass);
        assert_eq!(victim.poll(), None);
        connections.iter().all(|connection| connection.passed == BEGINNING).then_some(())
    });
    let mut healthy = open();
    victim.resolve(&healthy.address()).unwrap();
    let route = healthy.resolve(&victim.address()).unwrap();
    let (begun, mut is_received) = (Instant::now(), false);
    // Where it is heard, that takes milliseconds.
    while !is_received && begun.elapsed() < Duration::from_secs(if stopped < SPARE || are_known { 20 } else { 1 }) {
        while healthy.poll().is_some() {}
        while let Some(event) = victim.poll() {
            is_received |= event == NetworkEvent::Received(&[9; 40]);
        }
        let _ = healthy.send(route, Token(0), &[9; 40]);
    }
    assert!(connections.iter().all(|connection| connection.passed == BEGINNING), "they have stopped");
    is_received
}
