//! Memory of a peer read over a real libfabric's `tcp` on the loopback of this host.

use super::network::Lower;
use super::tests::{link, open, wait, with_each_library};
use tidegate_link::IoBuffer;
use tidegate_link::fabric::{FabricLink, Network, NetworkEvent, Sending, Token};
use tidegate_link::memory::Piece;
use tidegate_message::{Buffer, Link, LinkEvent, PeerId, PeerMemory, RemoteMemory, Span, TransferId, TransferStatus};

/// Memory of a test, in pieces of these lengths that lie apart, the first at an odd address.
struct Memory {
    bytes: Vec<u8>,
    pieces: Vec<usize>,
}

impl Memory {
    fn new(pieces: &[usize], fill: impl Fn(usize) -> u8) -> Memory {
        let mut memory = Memory { bytes: Vec::new(), pieces: pieces.to_vec() };
        memory.bytes = vec![0xee; memory.length() + 3 * pieces.len()];
        let mut buffer = memory.buffer();
        let bytes: Vec<u8> = (0..memory.length()).map(fill).collect();
        buffer.write(0, &bytes);
        memory
    }

    fn length(&self) -> usize {
        self.pieces.iter().sum()
    }

    fn buffer(&mut self) -> IoBuffer {
        let (mut at, base) = (0, self.bytes.as_mut_ptr());
        let pieces: Vec<Piece> = self
            .pieces
            .iter()
            .map(|length| {
                at += length + 3;
                Piece::new(base.wrapping_add(at - length), *length)
            })
            .collect();
        // SAFETY: each piece lies in the bytes, which the tests do not touch or move while a buffer is in use.
        unsafe { IoBuffer::from_pieces(pieces) }
    }

    fn contents(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        self.buffer().read(0, &mut bytes);
        bytes
    }

    fn gaps_are_whole(&mut self) -> bool {
        let mut at = 0;
        self.pieces.iter().all(|length| {
            let is_whole = self.bytes[at..at + 3] == [0xee; 3];
            at += length + 3;
            is_whole
        })
    }
}

fn pattern(at: usize) -> u8 {
    (at * 7 + (at >> 8) * 13) as u8
}

/// Two links that know each other, and the place of each in the table of the other.
fn two(loader: &'static crate::border::loader::Loader) -> ([FabricLink<Lower>; 2], [PeerId; 2]) {
    let mut links = [link(loader, 1), link(loader, 2)];
    let contacts = [links[1].contact(), links[0].contact()];
    let places = [links[0].peer(&contacts[0]).unwrap(), links[1].peer(&contacts[1]).unwrap()];
    wait(|| {
        links.iter_mut().for_each(|link| assert!(link.retrieve().is_none()));
        links.iter_mut().zip(places).all(|(link, place)| link.window(place) == Some(1000)).then_some(())
    });
    (links, places)
}

/// What `reader` is told to read of memory that the other exposes.
fn expose(link: &mut FabricLink<Lower>, to: PeerId, memory: &IoBuffer) -> (u64, Vec<RemoteMemory>) {
    let mut spans: Vec<Span> = memory.spans().collect();
    let key = link.expose(to, memory, &mut spans);
    assert_ne!(key, 0);
    (key, spans.into_iter().map(|span| RemoteMemory { key, span }).collect())
}

/// Lets both make progress until the first has news of a transfer.
fn end_of(links: &mut [FabricLink<Lower>; 2]) -> (TransferId, TransferStatus) {
    wait(|| {
        assert!(links[1].retrieve().is_none() && links[1].poll_event().is_none());
        assert!(links[0].retrieve().is_none());
        match links[0].poll_event()? {
            LinkEvent::TransferEnded(id, status) => Some((id, status)),
            event => panic!("{event:?}"),
        }
    })
}

#[test]
fn memory_of_every_length_and_cut_arrives() {
    const MIB: usize = 1 << 20;
    with_each_library(|loader| {
        let (mut links, [to, back]) = two(loader);
        assert!(links[0].capabilities(to).reaches_memory, "tcp has FI_RMA");
        let cuts: [(&[usize], &[usize]); 5] = [
            (&[1], &[1]),
            (&[65536], &[65536]),
            (&[100_001], &[1, 99_999, 1]),
            (&[7, MIB - 8, 1], &[MIB / 2 + 3, MIB / 2 - 3]),
            (&[8 * MIB + 5], &[8 * MIB + 5]),
        ];
        for (id, (there, here)) in cuts.into_iter().enumerate() {
            let (mut there, mut here) = (Memory::new(there, pattern), Memory::new(here, |_| 0));
            let (key, memory) = expose(&mut links[1], back, &there.buffer());
            let id = TransferId(id as u32);
            let begun = links[0].read_peer(id, to, &memory, &mut here.buffer(), 0);
            assert_eq!((begun, end_of(&mut links)), (TransferStatus::Pending, (id, TransferStatus::Done)));
            assert!(here.contents() == there.contents() && here.gaps_are_whole());
            links[1].hide(back, key);
        }
    });
}

#[test]
fn many_messages_at_once_arrive() {
    with_each_library(|loader| {
        let (mut links, [to, back]) = two(loader);
        let mut there: Vec<_> = (0..50).map(|number| Memory::new(&[70_001], move |at| pattern(at + number))).collect();
        let mut here: Vec<_> = (0..50).map(|_| Memory::new(&[70_001], |_| 0)).collect();
        for ((there, here), id) in there.iter_mut().zip(&mut here).zip(0..) {
            let (_, memory) = expose(&mut links[1], back, &there.buffer());
            let begun = links[0].read_peer(TransferId(id), to, &memory, &mut here.buffer(), 0);
            assert_eq!(begun, TransferStatus::Pending);
        }
        for _ in 0..50 {
            assert_eq!(end_of(&mut links).1, TransferStatus::Done);
        }
        assert!(there.iter_mut().zip(&mut here).all(|(there, here)| there.contents() == here.contents()));
    });
}

/// fi_tidegate(7): "What a send exposes of a process's memory can be read by whoever knows its key, a random number of
/// as many bits as the provider has for keys (tcp: 64), until the receiver has the message."
#[test]
fn what_is_not_exposed_or_hidden_again_is_not_read_and_messages_go_on() {
    with_each_library(|loader| {
        let (mut links, [to, back]) = two(loader);
        let (mut there, mut here) = (Memory::new(&[5000], pattern), Memory::new(&[5000], |_| 0));
        let (key, memory) = expose(&mut links[1], back, &there.buffer());
        links[1].hide(back, key);
        assert_eq!(links[0].read_peer(TransferId(1), to, &memory, &mut here.buffer(), 0), TransferStatus::Pending);
        assert_eq!(end_of(&mut links), (TransferId(1), TransferStatus::Unreachable));
        assert_eq!(here.contents(), vec![0; 5000]);
        assert!(!links[0].capabilities(to).reaches_memory);
        // Packets go their way though the provider may have broken the connection.
        wait(|| {
            let packet = tidegate_flow::Packet::with_credits(tidegate_flow::PacketKind::Data, 7);
            links[0].write(to, 1, |packets: &mut [tidegate_flow::Packet], _| packets[0] = packet).ok()
        });
        wait(|| {
            assert!(links[0].retrieve().is_none());
            links[1].retrieve()
        });
    });
}

#[test]
fn closing_amid_reads_leaves_nothing_behind() {
    with_each_library(|loader| {
        let (mut links, [to, back]) = two(loader);
        let (mut there, mut here) = (Memory::new(&[4 << 20], pattern), Memory::new(&[4 << 20], |_| 0));
        let (_, memory) = expose(&mut links[1], back, &there.buffer());
        assert_eq!(links[0].read_peer(TransferId(1), to, &memory, &mut here.buffer(), 0), TransferStatus::Pending);
        let [reader, mut other] = links;
        let lower = super::tests::close_beside(reader, || {
            let _ = other.retrieve();
        });
        assert!(lower, "it has closed");
        let after = here.contents();
        for _ in 0..100 {
            let _ = other.retrieve();
        }
        assert!(here.contents() == after, "nothing is written behind the closing");
    });
}

#[test]
fn a_provider_reads_only_what_is_asked_for_in_one_piece() {
    with_each_library(|loader| {
        let (mut one, other) = (open(loader), open(loader));
        let route = one.resolve(&other.address()).unwrap();
        let mut here = Memory::new(&[5, 5], |_| 0);
        let memory = RemoteMemory { key: 1, span: Span { address: 0, length: 10 } };
        assert!(matches!(one.read(route, Token(1), memory, here.buffer()), Sending::Failed(_)));
        let none = RemoteMemory { key: 0, ..memory };
        assert!(matches!(one.read(route, Token(1), none, here.buffer().slice(0, 5)), Sending::Failed(_)));
        let _: Option<NetworkEvent<'_>> = one.poll();
    });
}
