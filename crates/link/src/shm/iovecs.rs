//! Lists of pieces of memory, as the system takes them.

use std::io;
use tidegate_message::Span;

/// Pieces per system call (`IOV_MAX`).
pub(super) const PIECES: usize = 1024;

/// A span, as the system takes it.
pub(super) fn entry(span: Span) -> libc::iovec {
    libc::iovec { iov_base: span.address as *mut libc::c_void, iov_len: span.length as usize }
}

/// Makes this the list of these spans, without empty ones.
pub(super) fn fill(list: &mut Vec<libc::iovec>, spans: impl Iterator<Item = Span>) {
    list.clear();
    list.extend(spans.filter(|span| span.length > 0).map(entry));
}

/// What is left of a list after its first entry, the cookie's, and `count` bytes of what follows: the place that was
/// before it still comes first, for the next cookie.
pub(super) fn advance(list: &mut [libc::iovec], count: usize) -> &mut [libc::iovec] {
    let left = consume(&mut list[1..], count).len();
    let from = list.len() - left - 1;
    &mut list[from..]
}

/// What is left of a list after `count` bytes.
pub(super) fn consume(mut list: &mut [libc::iovec], mut count: usize) -> &mut [libc::iovec] {
    while let Some(first) = list.first_mut() {
        if count < first.iov_len {
            first.iov_base = first.iov_base.wrapping_byte_add(count);
            first.iov_len -= count;
            return list;
        }
        count -= first.iov_len;
        list = &mut list[1..];
    }
    list
}

/// How many pieces, from the first on, have at most `room` bytes together, and fit a system call.
pub(super) fn pieces_within(list: &[libc::iovec], room: usize) -> usize {
    let sums = list.iter().scan(0_usize, |sum, piece| {
        *sum = sum.saturating_add(piece.iov_len);
        Some(*sum)
    });
    sums.take(PIECES).take_while(|sum| *sum <= room).count()
}

/// Repeats a system call that a signal has interrupted.
pub(super) fn uninterrupted(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
