//! [`ProbeSockets`]: connections to ports of peers' hosts that nobody uses. With `tcp`, where peers' addresses are
//! sockets. What they are good for, how long each is kept and how many there are, the protocol says
//! (`tidegate_link::fabric`, `reachability_probe`).
//!
//! One that is taken is kept alive by the kernels: ours asks theirs every second once nothing has come for two, and
//! gives the connection up after seven seconds without an answer. Nothing is ever sent by it, so no other time limit
//! of TCP concerns it. `tcp` of libfabric accepts it like any other when its process makes progress, and waits for what
//! it will say; it goes by a reset, which `tcp` notices reliably: what it makes of an orderly end depends on an error
//! code that it has not set.

use super::objects::DESCRIPTORS_REMEDY;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tidegate_link::fabric::{Answer, Probe};

/// A port at which nobody listens on any host: its service, the port multiplexer, is extinct.
pub const PORT_OF_NOBODY: u16 = 1;
/// A connection from which nothing has come for this long is asked whether it is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(2);
/// Time between two such questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// So many without an answer end the connection.
const KEEPALIVE_COUNT: u32 = 5;

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    is_taken: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ProbeSockets {
    connections: HashMap<u64, Connection>,
    number: u64,
}

impl ProbeSockets {
    /// Tries a connection. Does not wait.
    pub fn probe(&mut self, at: SocketAddr) -> Result<Probe, Answer> {
        let socket = open(at).map_err(|errno| meaning(errno).unwrap_or(Answer::None))?;
        match net::connect(&socket, &at) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(meaning(errno).unwrap_or(Answer::None)),
        }
        self.number += 1;
        self.connections.insert(self.number, Connection { socket, is_taken: false });
        Ok(Probe(self.number))
    }

    /// What has become of it.
    pub fn answer(&mut self, Probe(number): Probe) -> Answer {
        let Some(connection) = self.connections.get_mut(&number) else { return Answer::Ended };
        if !connection.is_taken {
            match sockopt::socket_error(&connection.socket) {
                Ok(Ok(())) if net::getpeername(&connection.socket).is_ok() => connection.is_taken = true,
                Ok(Ok(())) => return Answer::None,
                // It was there for a moment.
                Ok(Err(Errno::CONNRESET | Errno::CONNABORTED)) => return Answer::Ended,
                Ok(Err(errno)) | Err(errno) => return meaning(errno).unwrap_or(Answer::None),
            }
        }
        let mut name = [0; 8];
        match net::recv(&connection.socket, &mut name, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => Answer::Taken,
            // Only processes with a port for this say something by it (`watched_port`).
            Ok((_, 8)) => Answer::Named(u64::from_le_bytes(name)),
            Ok(_) | Err(_) => Answer::Ended,
        }
    }

    /// Ends it.
    pub fn close(&mut self, Probe(number): Probe) {
        if let Some(connection) = self.connections.remove(&number) {
            // Where that fails, it ends in the orderly way.
            let _ = sockopt::set_socket_linger(&connection.socket, Some(Duration::ZERO));
        }
    }
}

fn open(to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_COUNT)?;
    Ok(socket)
}

/// What an error says of the other host. `None`: nothing.
fn meaning(errno: Errno) -> Option<Answer> {
    match errno {
        Errno::CONNREFUSED => Some(Answer::Refused),
        Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN | Errno::NETDOWN | Errno::ACCESS | Errno::PERM => {
            Some(Answer::Unreachable(io::Error::from(errno).to_string()))
        }
        // The provider below lacks them as well.
        Errno::MFILE | Errno::NFILE => Some(Answer::Lacking(format!("no connection can be made{DESCRIPTORS_REMEDY}"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;
    use std::time::Instant;

    const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// What has become of a connection as soon as it is something else than this, or after a second and a half.
    fn after(probes: &mut ProbeSockets, probe: Probe, before: &Answer) -> Answer {
        let end = Instant::now() + Duration::from_millis(1500);
        loop {
            let answer = probes.answer(probe);
            if answer != *before || Instant::now() > end {
                return answer;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn answer_of(probes: &mut ProbeSockets, at: SocketAddr) -> Answer {
        match probes.probe(at) {
            Ok(probe) => after(probes, probe, &Answer::None),
            Err(answer) => answer,
        }
    }

    #[test]
    fn who_listens_is_told_from_who_does_not() {
        let (mut probes, listener) = (ProbeSockets::default(), TcpListener::bind(LOOPBACK).unwrap());
        let at = listener.local_addr().unwrap();
        assert_eq!(answer_of(&mut probes, at), Answer::Taken);
        drop(listener);
        assert_eq!(answer_of(&mut probes, at), Answer::Refused);
        assert_eq!(answer_of(&mut probes, SocketAddr::new(at.ip(), PORT_OF_NOBODY)), Answer::Refused);
    }

    #[test]
    fn a_kept_connection_tells_the_end_of_who_has_not_accepted_it_or_has() {
        for accepts in [false, true] {
            let (mut probes, listener) = (ProbeSockets::default(), TcpListener::bind(LOOPBACK).unwrap());
            let probe = probes.probe(listener.local_addr().unwrap()).unwrap();
            assert_eq!(after(&mut probes, probe, &Answer::None), Answer::Taken);
            let accepted = accepts.then(|| listener.accept().unwrap());
            assert_eq!(probes.answer(probe), Answer::Taken);
            drop((listener, accepted));
            assert_eq!(after(&mut probes, probe, &Answer::Taken), Answer::Ended);
            probes.close(probe);
            assert!(probes.connections.is_empty());
        }
    }

    #[test]
    fn a_full_queue_does_not_answer_and_keeps_what_it_has() {
        let full = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        net::bind(&full, &SocketAddr::from(LOOPBACK)).unwrap();
        net::listen(&full, 0).unwrap();
        let at = SocketAddr::try_from(net::getsockname(&full).unwrap()).unwrap();
        let mut probes = ProbeSockets::default();
        let three = [(); 3].map(|()| probes.probe(at).unwrap());
        let answers = three.map(|probe| after(&mut probes, probe, &Answer::None));
        assert_eq!(answers[0], Answer::Taken);
        assert_eq!(answers[2], Answer::None, "{answers:?}");
        assert_eq!(probes.answer(three[0]), Answer::Taken);
    }

    #[test]
    fn who_accepts_a_connection_that_goes_reads_an_error() {
        let (mut probes, listener) = (ProbeSockets::default(), TcpListener::bind(LOOPBACK).unwrap());
        let probe = probes.probe(listener.local_addr().unwrap()).unwrap();
        assert_eq!(after(&mut probes, probe, &Answer::None), Answer::Taken);
        let accepted = listener.accept().unwrap().0;
        probes.close(probe);
        assert_eq!(net::recv(&accepted, &mut [0; 8], RecvFlags::empty()), Err(Errno::CONNRESET));
    }

    #[test]
    fn a_try_does_not_wait() {
        // Addresses for documentation: nobody answers, or there is no way.
        let (mut probes, begun) = (ProbeSockets::default(), Instant::now());
        for host in 0..100 {
            let _ = probes.probe(SocketAddr::from((Ipv4Addr::new(203, 0, 113, host), 9)));
        }
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}
