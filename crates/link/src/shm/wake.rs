//! Blocking until a packet arrives, for applications that wait on a descriptor.
//!
//! The waiting endpoint raises a flag in its segment (`Signals::armed`) and looks once more whether a packet has come;
//! a writer publishes its packet and then looks at the flag. With a full barrier on both sides between the two steps,
//! one of them sees the other. The writer that lowers the flag sends a datagram to the endpoint's socket. Writers to an
//! endpoint that never waits know so from its header and do nothing.
//!
//! The socket's name is random, and only the segment tells it: nobody can take it first. Once it is bound, any process
//! of the host can find it (`/proc/net/unix`) and send to it, of whatever user: that wakes the endpoint in vain, costs
//! it one bounded look each time, and does nothing else, since no datagram is believed. An endpoint that gets no socket
//! at all is woken by its timer alone.
//!
//! The descriptor also becomes readable after [`CHECK`], so that a blocked process notices dead peers, and
//! does not sleep for ever if the datagram cannot reach it (containers that share memory but not the network
//! namespace). Wakes without cause are harmless.

use crate::log::{self, Level};
use crate::secret::random;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The longest sleep.
pub(crate) const CHECK: Duration = Duration::from_millis(500);

/// Datagrams that one look takes away at most. What is left wakes once more.
const DRAINED_AT_ONCE: usize = 64;

/// Name of an endpoint's socket: random, in the abstract name space, so that it leaves no file behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WakeName([u64; 2]);

impl WakeName {
    fn draw() -> WakeName {
        WakeName([random(), random()])
    }

    /// For the header.
    pub fn words(self) -> [u64; 2] {
        self.0
    }

    /// From the header. `None`: there is no name, or only half of one so far.
    pub fn from_words(words: [u64; 2]) -> Option<WakeName> {
        (!words.contains(&0)).then_some(WakeName(words))
    }

    fn address(self) -> io::Result<SocketAddr> {
        let [first, second] = self.0;
        SocketAddr::from_abstract_name(format!("tidegate-{first:016x}{second:016x}"))
    }
}

/// The waiting side.
#[derive(Debug)]
pub(crate) struct Waker {
    /// With its name; `None`: the system gave us none.
    socket: Option<(UnixDatagram, WakeName)>,
    timer: OwnedFd,
    /// Readable when one of the two is.
    either: OwnedFd,
}

impl Waker {
    /// Errors: no descriptor left.
    pub fn new() -> io::Result<Waker> {
        let socket = listen();
        if let Err(error) = &socket {
            log::line(Level::Warn, || format!("no socket to be woken by, a timer must do: {error}"));
        }
        let socket = socket.ok();
        // SAFETY: takes no pointers.
        let timer =
            owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })?;
        // SAFETY: takes no pointers.
        let either = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let descriptors = socket.iter().map(|(socket, _)| socket.as_raw_fd()).chain([timer.as_raw_fd()]);
        for descriptor in descriptors {
            let mut interest = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: `interest` lives through the call.
            let added = unsafe { libc::epoll_ctl(either.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut interest) };
            if added != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Waker { socket, timer, either })
    }

    /// By what name it is woken, if by any.
    pub fn name(&self) -> Option<WakeName> {
        self.socket.as_ref().map(|(_, name)| *name)
    }

    /// What to wait on.
    pub fn descriptor(&self) -> RawFd {
        self.either.as_raw_fd()
    }

    /// From now on the descriptor becomes readable after this time at the latest.
    pub fn start(&self, most: Duration) {
        self.set_timer(most);
    }

    /// The descriptor is not readable any more, unless somebody floods it.
    pub fn stop(&self) {
        self.set_timer(Duration::ZERO);
        let Some((socket, _)) = &self.socket else { return };
        let mut datagram = [0; 8];
        for _ in 0..DRAINED_AT_ONCE {
            if socket.recv(&mut datagram).is_err() {
                return;
            }
        }
    }

    /// Fires once after `delay`; zero: never, and a firing that nobody has looked at is dropped.
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
    pub fn ring(&mut self, name: WakeName) {
        if self.socket.is_none() {
            let socket = UnixDatagram::unbound().and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
            self.socket = socket.ok();
        }
        if let (Some(socket), Ok(address)) = (&self.socket, name.address()) {
            // A full socket means that a wake is waiting there already.
            let _ = socket.send_to_addr(&[1], &address);
        }
    }
}

/// A socket under a name that nobody knows yet.
fn listen() -> io::Result<(UnixDatagram, WakeName)> {
    let name = WakeName::draw();
    let socket = UnixDatagram::bind_addr(&name.address()?)?;
    socket.set_nonblocking(true)?;
    Ok((socket, name))
}

fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_name_is_none() {
        let name = WakeName::draw();
        assert_eq!(WakeName::from_words(name.words()), Some(name));
        assert_eq!(WakeName::from_words([name.words()[0], 0]), None);
        assert_ne!(name, WakeName::draw());
    }

    /// fi_tidegate(7): "They can send to such a socket: that wakes a sleeper without need, and does nothing more."
    #[test]
    fn a_flood_of_datagrams_is_looked_at_in_bounded_steps() {
        let waker = Waker::new().unwrap();
        let (name, flooder) = (waker.name().unwrap(), UnixDatagram::unbound().unwrap());
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            // A blocking sender fills every place that `stop` makes free, for ever.
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = flooder.send_to_addr(&[1], &name.address().unwrap());
                }
            });
            (0..1000).for_each(|_| waker.stop());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            // The flooder may be blocked by a full queue; what is left of its turns is at most one.
            (0..100).for_each(|_| waker.stop());
        });
    }
}
