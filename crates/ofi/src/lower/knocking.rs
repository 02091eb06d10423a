//! [`Knocking`]: connections to peers' ports that nobody uses: whether the peer's host takes one tells whether its
//! process is there. With `tcp`, where peers' addresses are sockets.
//!
//! Each that is taken stands in the queue of the peer's port until the peer makes progress, so the protocol asks
//! rarely.

use super::objects::DESCRIPTORS_REMEDY;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tidegate_link::fabric::Reach;

/// A host that has not answered for this long is silent. Its neighbours need three seconds to say that it is not there.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that are waited for at a time, each a descriptor.
const MOST: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Knocking {
    /// By route.
    waiting: HashMap<u64, (OwnedFd, Instant)>,
}

impl Knocking {
    /// Asks the host of this route, or looks for its answer.
    pub fn ask(&mut self, route: u64, socket: SocketAddr) -> Option<Reach> {
        if let Some((connection, since)) = self.waiting.get(&route) {
            let answer = answer(connection).or_else(|| (since.elapsed() >= PATIENCE).then_some(Reach::Silent))?;
            self.waiting.remove(&route);
            return Some(answer);
        }
        if self.waiting.len() >= MOST {
            // Those that nobody asks for any more make room.
            self.waiting.retain(|_, (_, since)| since.elapsed() < PATIENCE);
            if self.waiting.len() >= MOST {
                return None;
            }
        }
        let family = if socket.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let connection = match net::socket_with(family, SocketType::STREAM, flags, None) {
            Ok(connection) => connection,
            Err(errno) => return meaning(errno),
        };
        match net::connect(&connection, &socket) {
            Ok(()) => Some(Reach::Listening),
            Err(Errno::INPROGRESS) => {
                self.waiting.insert(route, (connection, Instant::now()));
                None
            }
            Err(errno) => meaning(errno),
        }
    }

    /// Nobody asks for this route any more.
    pub fn forget(&mut self, route: u64) {
        self.waiting.remove(&route);
    }
}

/// What has become of a connection, if anything.
fn answer(connection: &OwnedFd) -> Option<Reach> {
    match sockopt::socket_error(connection) {
        Ok(Ok(())) => net::getpeername(connection).is_ok().then_some(Reach::Listening),
        Ok(Err(errno)) | Err(errno) => meaning(errno),
    }
}

/// `None`: an error of this host, which says nothing of the other.
fn meaning(errno: Errno) -> Option<Reach> {
    match errno {
        Errno::CONNREFUSED => Some(Reach::Refused),
        Errno::TIMEDOUT => Some(Reach::Silent),
        Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN | Errno::NETDOWN | Errno::ACCESS | Errno::PERM => {
            Some(Reach::Unreachable(io::Error::from(errno).to_string()))
        }
        // The provider below lacks them as well.
        Errno::MFILE | Errno::NFILE => {
            Some(Reach::Unreachable(format!("no connection can be made{DESCRIPTORS_REMEDY}")))
        }
        // It took the connection, and has closed it.
        Errno::CONNRESET | Errno::CONNABORTED => Some(Reach::Listening),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    fn answer_of(socket: SocketAddr) -> Reach {
        let mut knocking = Knocking::default();
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(answer) = knocking.ask(1, socket) {
                assert!(knocking.waiting.is_empty());
                return answer;
            }
            assert!(Instant::now() < end);
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn who_listens_is_told_from_who_does_not_and_from_who_is_overrun() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = listener.local_addr().unwrap();
        assert_eq!(answer_of(socket), Reach::Listening);
        // Nobody takes connections off the queue, which becomes full: that says nothing of the peer.
        let family = AddressFamily::INET;
        let full = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        net::bind(&full, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        net::listen(&full, 0).unwrap();
        let full_socket = SocketAddr::try_from(net::getsockname(&full).unwrap()).unwrap();
        let kept: Vec<Reach> = (0..3).map(|_| answer_of(full_socket)).collect();
        assert!(kept.iter().all(|answer| matches!(answer, Reach::Listening | Reach::Silent)), "{kept:?}");
        assert!(kept.contains(&Reach::Silent), "{kept:?}");
        drop(listener);
        assert_eq!(answer_of(socket), Reach::Refused);
    }

    #[test]
    fn a_question_does_not_wait_and_those_under_way_are_bounded() {
        // Addresses for documentation: nobody answers, or there is no way.
        let mut knocking = Knocking::default();
        let begun = Instant::now();
        for route in 0..100 {
            let socket = SocketAddr::from((Ipv4Addr::new(203, 0, 113, route as u8), 9));
            assert_ne!(knocking.ask(route, socket), Some(Reach::Silent));
        }
        assert!(knocking.waiting.len() <= MOST && begun.elapsed() < PATIENCE);
    }
}
