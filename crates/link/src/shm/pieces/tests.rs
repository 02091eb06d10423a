//! Pieces of the memory of this process, as a peer copies them.

use super::super::cookie::Cookie;
use super::super::guard_pages::GuardPages;
use super::*;
use std::os::unix::fs::FileExt;
use std::ptr;
use tidegate_message::RemoteMemory;

const NUMBER: u64 = 0x7461_6c65_6e74;
const PAGE: usize = 4096;

/// Our own memory, as a peer would see it.
struct Own {
    _cookie: Cookie,
    guards: Option<GuardPages>,
    memory: ProbedMemory,
}

impl Own {
    fn new() -> Own {
        let (cookie, guards) = (Cookie::new(NUMBER).unwrap(), GuardPages::new());
        let memory = ProbedMemory::probe(std::process::id(), cookie.address(), NUMBER).unwrap();
        let mut memory = memory.guarded(guards.as_ref().unwrap().addresses());
        assert!(memory.is_writable());
        Own { _cookie: cookie, guards, memory }
    }
}

/// Some pages of their own.
struct Pages(Vec<u8>);

impl Pages {
    fn new(pages: usize) -> Pages {
        Pages((0..(pages + 1) * PAGE).map(|at| (at % 251) as u8).collect())
    }
    fn start(&self) -> usize {
        self.0.as_ptr().align_offset(PAGE)
    }
    fn address(&self) -> u64 {
        self.0[self.start()..].as_ptr() as u64
    }
    fn bytes(&self, at: usize, length: usize) -> &[u8] {
        &self.0[self.start() + at..][..length]
    }
    fn protect(&self, page: usize, access: libc::c_int) {
        let page = self.address() + (page * PAGE) as u64;
        // SAFETY: a page of our own, which nothing uses before it can be used again.
        assert_eq!(unsafe { libc::mprotect(page as *mut libc::c_void, PAGE, access) }, 0);
    }
}

/// Pieces of `length` bytes at these offsets, and memory of ours for each.
fn pieces(pages: &Pages, offsets: impl Iterator<Item = usize>, length: usize) -> Vec<BatchPiece<IoBuffer>> {
    let piece = |at: usize| {
        let span = Span { address: pages.address() + at as u64, length: length as u64 };
        let mut piece = BatchPiece::new(RemoteMemory { key: 1, span }, IoBuffer::zeros(length));
        piece.status = TransferStatus::Pending;
        piece
    };
    offsets.map(piece).collect()
}

fn bytes_of(piece: &BatchPiece<IoBuffer>) -> Vec<u8> {
    let mut bytes = vec![0; piece.here.len()];
    piece.here.read(0, &mut bytes);
    bytes
}

fn left(pieces: &[BatchPiece<IoBuffer>]) -> Vec<usize> {
    (0..pieces.len()).filter(|at| pieces[*at].status != TransferStatus::Done).collect()
}

#[test]
fn pieces_with_gaps_between_are_read_in_one_call_in_any_order() {
    let (own, pages) = (Own::new(), Pages::new(4));
    let rows: [Vec<usize>; 3] =
        [(0..1000).map(|at| 12 * at).collect(), (0..1000).rev().map(|at| 12 * at).collect(), vec![4, 0, 4, 9000, 4]];
    for offsets in rows {
        let (mut copier, mut list) = (PieceCopier::default(), pieces(&pages, offsets.iter().copied(), 5));
        assert!(matches!(copier.read(&own.memory, &mut list), Ok(0)));
        assert_eq!((copier.calls(), left(&list)), (1, vec![]));
        offsets.iter().zip(&list).for_each(|(at, piece)| assert_eq!(bytes_of(piece), pages.bytes(*at, 5)));
    }
}

#[test]
fn what_is_read_at_once_is_bounded() {
    let (own, pages) = (Own::new(), Pages::new(100));
    // Close to each other, and too far for that; the last one is longer than what is read in one call else.
    for (step, length, calls) in [(400, 4, 7), (2000, 4, 1), (2000, 1800, 7), (1, 100_000, 2)] {
        let offsets = (0..).map(|at| at * step).take_while(|at| at + length <= 100 * PAGE).take(if length > PAGE {
            2
        } else {
            2000
        });
        let offsets: Vec<usize> = offsets.collect();
        let (mut copier, mut list) = (PieceCopier::default(), pieces(&pages, offsets.iter().copied(), length));
        assert!(matches!(copier.read(&own.memory, &mut list), Ok(0)));
        assert_eq!((copier.calls(), left(&list)), (calls, vec![]), "{step} {length}");
        offsets.iter().zip(&list).for_each(|(at, piece)| assert_eq!(bytes_of(piece), pages.bytes(*at, length)));
    }
}

#[test]
fn only_the_pieces_on_a_page_that_is_not_there_are_left() {
    let (mut own, pages) = (Own::new(), Pages::new(3));
    let offsets = || (0..100).map(|at| 122 * at);
    let is_there = |at: usize| at + 8 <= PAGE || at >= 2 * PAGE;
    let expected: Vec<usize> = offsets().enumerate().filter(|(_, at)| !is_there(*at)).map(|(index, _)| index).collect();
    let (mut piece_copier, mut copier) = (PieceCopier::default(), Copier::default());
    let mut list = pieces(&pages, offsets(), 8);
    pages.protect(1, libc::PROT_NONE);
    let read = piece_copier.read(&own.memory, &mut list);
    assert!(matches!(read, Ok(faults) if faults == expected.len()), "{read:?}");
    assert_eq!(left(&list), expected);
    let there = offsets().zip(&list).filter(|(at, _)| is_there(*at));
    there.for_each(|(at, piece)| assert_eq!(bytes_of(piece), pages.bytes(at, 8)));
    assert!(piece_copier.calls() < 2 * expected.len() as u64 + 10, "{} calls", piece_copier.calls());
    let mut list = pieces(&pages, offsets(), 8);
    list.iter_mut().for_each(|piece| piece.here.write(0, &[0xee; 8]));
    // A page that its owner reads only is written as by a single write, through the file.
    pages.protect(1, libc::PROT_READ);
    assert!(matches!(piece_copier.write(&mut own.memory, &mut copier, &mut list), Ok(0)));
    pages.protect(1, libc::PROT_READ | libc::PROT_WRITE);
    assert_eq!(left(&list), []);
    offsets().for_each(|at| assert_eq!(pages.bytes(at, 9)[..8], [0xee; 8]));
}

#[test]
fn pieces_are_written_in_one_call_and_nothing_between_them() {
    let (mut own, pages) = (Own::new(), Pages::new(4));
    let before = pages.0.clone();
    let mut list = pieces(&pages, (0..1000).map(|at| 12 * at), 4);
    list.extend(pieces(&pages, (1000..3000).map(|at| 12_000 + at), 1));
    list.iter_mut().for_each(|piece| piece.here.write(0, &[0xee; 4][..piece.here.len()]));
    list[7].status = TransferStatus::Unreachable;
    let mut copier = PieceCopier::default();
    assert!(matches!(copier.write(&mut own.memory, &mut Copier::default(), &mut list), Ok(0)));
    // A thousand and one places at the peer, but three thousand here.
    assert_eq!((copier.calls(), left(&list)), (3, vec![7]));
    for at in 0..15_000 {
        let is_written = at < 12_000 && at % 12 < 4 && at / 12 != 7 || (13_000..15_000).contains(&at);
        let expected = if is_written { 0xee } else { before[pages.start() + at] };
        assert_eq!(pages.bytes(at, 1), [expected], "{at}");
    }
}

/// fi_tidegate(7): "Several short writes are given to the system in one call by process id, behind two pages at
/// random addresses, which the call writes to first: no other address space has them, and the call ends there."
#[test]
fn another_process_of_this_id_is_not_written_to() {
    let (own, pages) = (Own::new(), Pages::new(1));
    // A copy of all of our memory, at the same addresses, but for the guard pages.
    // SAFETY: the child only waits to be killed.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: takes no pointers.
            unsafe { libc::pause() };
        }
    }
    let mut memory = own.memory.with_pid(child as u32);
    let mut list = pieces(&pages, (0..10).map(|at| 12 * at), 4);
    list.iter_mut().for_each(|piece| piece.here.write(0, &[0xee; 4]));
    let mut copier = PieceCopier::default();
    assert!(matches!(copier.write(&mut memory, &mut Copier::default(), &mut list), Ok(0)));
    let (before, mut found) = (Pages::new(1), [0; 120]);
    std::fs::File::open(format!("/proc/{child}/mem")).unwrap().read_exact_at(&mut found, pages.address()).unwrap();
    // SAFETY: our child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: our child, of whose end nothing is asked.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    assert_eq!(found[..], before.0[pages.start()..][..120]);
    assert_eq!((copier.calls(), memory.guards()), (1, None), "it is not tried again");
    assert!((0..10).all(|at| pages.bytes(12 * at, 4) == [0xee; 4]), "the file is that of the right memory");
    drop(own.guards);
}

#[test]
fn without_guard_pages_each_piece_is_written_alone_and_without_the_cookie_nothing_is_read() {
    let (mut own, pages) = (Own::new(), Pages::new(1));
    drop(own.guards.take());
    let mut list = pieces(&pages, (0..10).map(|at| 12 * at), 4);
    let mut copier = PieceCopier::default();
    for calls in [1, 1] {
        list.iter_mut().for_each(|piece| piece.status = TransferStatus::Pending);
        assert!(matches!(copier.write(&mut own.memory, &mut Copier::default(), &mut list), Ok(0)));
        assert_eq!((copier.calls(), left(&list)), (calls, vec![]));
    }
    list.iter_mut().for_each(|piece| piece.status = TransferStatus::Pending);
    let other = Cookie::new(NUMBER + 1).unwrap();
    let mut memory = own.memory;
    memory.move_cookie(other.address());
    assert!(matches!(copier.read(&memory, &mut list), Err(TransferError::Unreachable(_))));
    assert_eq!(left(&list).len(), 10);
}
