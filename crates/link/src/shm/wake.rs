//! Blocking until a packet arrives, for applications that wait on a descriptor.
//!
//! The waiting endpoint raises a flag in its segment's header and looks once more whether a packet has come; a writer
//! publishes its packet and then looks at the flag. With a full barrier on both sides between the two steps, one of
//! them sees the other. The writer that lowers the flag sends a datagram to the endpoint's socket, whose name follows
//! from its address. Writers to an endpoint that never waits know so from its header and do nothing.
//!
//! The descriptor also becomes readable after [`CHECK`], so that a blocked process notices dead peers, and
//! does not sleep for ever if the datagram cannot reach it (containers that share memory but not the network
//! namespace). Wakes without cause are harmless.

use super::address::Address;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The longest sleep.
const CHECK: Duration = Duration::from_millis(500);

/// Name of an endpoint's socket, in the abstract name space: it leaves no file behind.
fn socket_name(owner: &Address) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(owner.file_name())
}

/// The waiting side.
#[derive(Debug)]
pub(crate) struct Waker {
    socket: UnixDatagram,
    timer: OwnedFd,
    /// Readable when one of the two is.
    either: OwnedFd,
}

impl Waker {
    /// Errors: no descriptor left; somebody else has taken the name.
    pub fn new(owner: &Address) -> io::Result<Waker> {
        let socket = UnixDatagram::bind_addr(&socket_name(owner)?)?;
        socket.set_nonblocking(true)?;
        // SAFETY: takes no pointers.
        let timer =
            owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })?;
        // SAFETY: takes no pointers.
        let either = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        for descriptor in [socket.as_raw_fd(), timer.as_raw_fd()] {
            let mut interest = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: `interest` lives through the call.
            let added = unsafe { libc::epoll_ctl(either.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut interest) };
            if added != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Waker { socket, timer, either })
    }

    /// What to wait on.
    pub fn descriptor(&self) -> RawFd {
        self.either.as_raw_fd()
    }

    /// From now on the descriptor becomes readable after [`CHECK`] at the latest.
    pub fn start(&self) {
        self.set_timer(CHECK);
    }

    /// The descriptor is not readable any more.
    pub fn stop(&self) {
        self.set_timer(Duration::ZERO);
        let mut datagram = [0; 8];
        while self.socket.recv(&mut datagram).is_ok() {}
    }

    /// Fires once after `delay`; zero: never, and forgets a firing that nobody has looked at.
    fn set_timer(&self, delay: Duration) {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: delay.as_secs() as _, tv_nsec: delay.subsec_nanos() as _ };
        let setting = libc::itimerspec { it_interval: never, it_value: value };
        // SAFETY: `setting` lives through the call; nobody asked for the old one.
        unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &setting, std::ptr::null_mut()) };
    }
}

/// The writing side: wakes any endpoint.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Made at the first use.
    socket: Option<UnixDatagram>,
}

impl Alarm {
    /// Wakes the endpoint, or does not: its timer makes up for that.
    pub fn ring(&mut self, owner: &Address) {
        if self.socket.is_none() {
            let socket = UnixDatagram::unbound().and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
            self.socket = socket.ok();
        }
        if let (Some(socket), Ok(name)) = (&self.socket, socket_name(owner)) {
            // Full means that a wake is waiting there already.
            let _ = socket.send_to_addr(&[1], &name);
        }
    }
}

fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
