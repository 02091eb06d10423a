//! Bulk data: from memory to memory, through bounce buffers, or not at all.

use crate::support::*;
use tidegate_link::{BulkChoice, IoBuffer, ShmConfig, ShmLink};
use tidegate_message::{Access, Bounce, Buffer, PeerMemory, RemoteMemory, Span, TransferId, TransferStatus};

/// A buffer over `bytes`, which the caller keeps and leaves alone.
fn buffer(bytes: &mut [u8]) -> IoBuffer {
    // SAFETY: every test keeps its bytes longer than the buffer and looks at them only between operations.
    unsafe { IoBuffer::from_parts(bytes.as_mut_ptr(), bytes.len()) }
}

fn memory(address: u64, length: u64) -> RemoteMemory {
    RemoteMemory { key: 0, span: Span { address, length } }
}

#[test]
#[ignore = "a process of other tests: shows a region, and checks what was written there when told"]
fn role_shows_memory() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    let mut bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let span = Span { address: bytes.as_mut_ptr() as u64, length: bytes.len() as u64 };
    assert!(link.publish_region(5, span, &[Access::Read, Access::Write]));
    send(&mut link, to, span.address);
    receive(&mut link);
    // SAFETY: `bytes` is alive; a volatile read because another process has changed it behind the compiler's back.
    let changed = (0..100).all(|at| unsafe { bytes.as_ptr().add(1000 + at).read_volatile() } == 9);
    send(&mut link, to, changed.into());
    receive(&mut link);
}

#[test]
fn bulk_data_goes_from_memory_to_memory() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let child = Process::start("bulk::role_shows_memory", &folder, a.address());
    let (peer, address) = receive(&mut a);
    assert!(
        a.capabilities(peer).reaches_memory,
        "two processes of one user; if ptrace is forbidden here, these tests cannot run"
    );
    assert_eq!(a.bulk(), "direct");
    let mut bytes = vec![0; 60_000];
    let mut into = buffer(&mut bytes);
    let from = [memory(address, 30_000), memory(address + 50_000, 20_000)];
    assert_eq!(a.read_peer(TransferId(0), peer, &from, &mut into, 10_000), TransferStatus::Done);
    let expected = |at: usize| (at % 251) as u8;
    assert!(bytes[..10_000].iter().all(|byte| *byte == 0));
    assert!((0..30_000).all(|at| bytes[10_000 + at] == expected(at)));
    assert!((0..20_000).all(|at| bytes[40_000 + at] == expected(50_000 + at)));

    let found = a.find_region(peer, 5, 1000, 100, Access::Write).map(|(found, _)| found);
    assert_eq!(found.map(|found| found.span), Some(Span { address: address + 1000, length: 100 }));
    assert_eq!(a.find_region(peer, 5, 99_999, 2, Access::Read), None);
    assert_eq!(a.find_region(peer, 6, 0, 1, Access::Read), None);
    let mut nines = [9; 100];
    let from = buffer(&mut nines);
    assert_eq!(a.write_peer(TransferId(0), peer, &[found.unwrap()], &from, 0), TransferStatus::Done);
    send(&mut a, peer, 0);
    assert_eq!(receive(&mut a), (peer, 1), "the other process has seen them");

    let wrong = [memory(8, 8)];
    let unreachable = TransferStatus::Unreachable;
    assert_eq!(
        a.read_peer(TransferId(0), peer, &wrong, &mut buffer(&mut bytes), 0),
        unreachable,
        "the peer may use it"
    );
    assert!(a.capabilities(peer).reaches_memory, "all other memory is in reach");
    // SAFETY: nothing is ever there, and the system says so to who copies there.
    let mut nowhere = unsafe { IoBuffer::from_parts(8 as *mut u8, 8) };
    let there = [memory(address, 8)];
    assert_eq!(a.read_peer(TransferId(0), peer, &there, &mut nowhere, 0), TransferStatus::Failed, "ours is wrong");
    let long = [memory(address, 60_001)];
    assert_eq!(a.read_peer(TransferId(0), peer, &long, &mut buffer(&mut bytes), 0), TransferStatus::Failed, "no room");
    send(&mut a, peer, 0);
    child.join();
}

#[test]
fn bulk_data_can_be_kept_to_the_mailbox_and_to_bounce_buffers() {
    let folder = Folder::new();
    for (choice, name, bounced) in [(BulkChoice::Mailbox, "mailbox", false), (BulkChoice::Bounced, "bounced", true)] {
        let config = ShmConfig { bulk: choice, ..folder.config(1) };
        let (mut a, mut b) = (ShmLink::new(config.clone()).unwrap(), ShmLink::new(config).unwrap());
        let mut bytes = [3; 64];
        b.publish_region(1, Span { address: bytes.as_mut_ptr() as u64, length: 64 }, &[Access::Read, Access::Write]);
        let peer = a.peer(&b.address()).unwrap();
        assert!(!a.capabilities(peer).reaches_memory);
        assert_eq!(a.bulk(), name);
        assert_eq!(a.find_region(peer, 1, 0, 64, Access::Read), None, "what cannot be reached is asked for");
        let mut into = [0; 64];
        let span = [memory(bytes.as_mut_ptr() as u64, 64)];
        assert_eq!(a.read_peer(TransferId(0), peer, &span, &mut buffer(&mut into), 0), TransferStatus::Unreachable);
        assert_eq!(a.bounce_buffers().count > 0, bounced);
        if bounced {
            b.fill_bounce_buffer(2, &buffer(&mut bytes), 4, 60);
            assert!(a.drain_bounce_buffer(peer, 2, &mut buffer(&mut into), 0, 60));
            assert_eq!(into[..60], bytes[4..]);
            assert!(!a.drain_bounce_buffer(peer, 1 << 20, &mut buffer(&mut into), 0, 60), "no such bounce buffer");
        }
    }
}

#[test]
fn a_buffers_parts_are_addresses_in_its_own_process() {
    let mut bytes = [1, 2, 3, 4];
    let whole = buffer(&mut bytes);
    let span = whole.slice(1, 2).spans().next().unwrap();
    assert_eq!(span, Span { address: bytes.as_ptr() as u64 + 1, length: 2 });
}
