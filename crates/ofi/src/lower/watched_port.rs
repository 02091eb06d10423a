//! [`WatchedPort`]: a TCP port at which this process says a random number and nothing else, so that peers can ask the
//! kernel of its host whether the process is there (`tidegate_link::fabric`, `watch`). For networks that tell nothing
//! of processes that have ended.
//!
//! The kernel takes connections for it while the process computes, as many as its queue has room for. Those that have
//! come are told the number, and closed, when the process makes progress again.

use super::interfaces::Interfaces;
use super::ports::Ports;
use crate::border::bindings::FI_LOG_EP_CTRL;
use crate::border::log;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use tidegate_link::fabric::Watched;

/// Connections for which the kernel is asked to make room; it has a limit of its own (`net.core.somaxconn`).
const QUEUE: i32 = 4096;
/// Connections that are answered at a time.
const ANSWERED_AT_ONCE: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct WatchedPort {
    socket: OwnedFd,
    watched: Watched,
}

impl WatchedPort {
    /// The port beside a network of this name, at the address that the network has, else at that of this host. Without
    /// it peers notice the end of this process later.
    pub fn beside(name: &str, own: Option<IpAddr>, here: &Interfaces, ports: Option<Ports>) -> Option<WatchedPort> {
        let ip = own.filter(|ip| !is_of_one_link(ip)).or_else(|| address_of_this_host(here))?;
        let opened = WatchedPort::open(ip, ports);
        opened
            .inspect_err(|why| {
                log::warn(FI_LOG_EP_CTRL, || format!("{name}: peers notice later that this process ends: {why}"));
            })
            .ok()
    }

    /// Listens at an address, at one of the ports if the user gave some. The error is for people.
    pub fn open(ip: IpAddr, ports: Option<Ports>) -> Result<WatchedPort, String> {
        let refuse = |errno: Errno| format!("listening at {ip}: {errno}");
        let Some(ports) = ports else { return listen(ip, 0).map_err(refuse) };
        for port in ports.in_turn(std::process::id()) {
            match listen(ip, port) {
                Err(Errno::ADDRINUSE) => {}
                result => return result.map_err(refuse),
            }
        }
        Err(format!("FI_TIDEGATE_PORTS={ports} has no free TCP port at {ip}"))
    }

    /// Where it listens, and its number.
    pub fn watched(&self) -> Watched {
        self.watched
    }

    /// Tells those who have connected the number.
    pub fn tend(&self) {
        let accept = || net::accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        for connection in std::iter::from_fn(|| accept().ok()).take(ANSWERED_AT_ONCE) {
            // A fresh connection has room for it, and one that is gone needs nothing.
            let _ = net::send(&connection, &self.watched.name.to_le_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }
}

/// Without SO_REUSEADDR, by which two processes could bind the same port.
fn listen(ip: IpAddr, port: u16) -> Result<WatchedPort, Errno> {
    let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    net::bind(&socket, &SocketAddr::new(ip, port))?;
    net::listen(&socket, QUEUE)?;
    let at = net::getsockname(&socket)?.try_into()?;
    Ok(WatchedPort { socket, watched: Watched { at, name: tidegate_link::random() } })
}

/// Whether an address means nothing without the interface that has it.
fn is_of_one_link(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// The address by which other hosts reach this one, as far as can be told: that of the interface of the default route,
/// else of one that is as good as any.
fn address_of_this_host(here: &Interfaces) -> Option<IpAddr> {
    let usable = here.addresses.iter().filter(|(_, ip)| !ip.is_loopback() && !is_of_one_link(ip));
    usable.min_by_key(|(name, ip)| (here.preference(name), ip.is_ipv6())).map(|(_, ip)| *ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::probe_sockets::ProbeSockets;
    use std::net::{Ipv4Addr, TcpStream};
    use std::thread::sleep;
    use std::time::Duration;
    use tidegate_link::fabric::Answer;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn who_connects_is_taken_and_told_the_number_until_the_port_is_closed() {
        let (port, mut probes) = (WatchedPort::open(HERE, None).unwrap(), ProbeSockets::default());
        let Watched { at, name } = port.watched();
        let probe = probes.probe(at).unwrap();
        let mut wait = |before: Answer| {
            (0..2_000)
                .map(|_| probes.answer(probe))
                .inspect(|_| sleep(Duration::from_millis(1)))
                .find(|it| *it != before)
        };
        assert_eq!(wait(Answer::None), Some(Answer::Taken), "this process computes");
        port.tend();
        assert_eq!(wait(Answer::Taken), Some(Answer::Named(name)));
        drop(port);
        assert_eq!(TcpStream::connect(at).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn ports_of_a_range_are_taken_once_each() {
        let first = WatchedPort::open(HERE, None).unwrap();
        let port = first.watched().at.port();
        let range: Ports = format!("{port}-{port}").parse().unwrap();
        let why = WatchedPort::open(HERE, Some(range)).unwrap_err();
        assert!(why.contains("has no free TCP port at 127.0.0.1"), "{why}");
        drop(first);
        assert_eq!(WatchedPort::open(HERE, Some(range)).map(|port| port.watched().at.port()), Ok(port));
    }

    #[test]
    fn an_address_that_other_hosts_reach_comes_first() {
        let named = |name: &str, ip: &str| (name.to_owned(), ip.parse().unwrap());
        let own = [
            named("lo", "127.0.0.1"),
            named("docker0", "172.17.0.1"),
            named("moon0", "fe80::1"),
            named("moon0", "fd00::1"),
            named("moon0", "10.9.9.9"),
        ];
        let address_of = |own: &[(String, IpAddr)]| {
            address_of_this_host(&Interfaces { addresses: own.to_vec(), default_route: None })
        };
        assert_eq!(address_of(&own), Some("10.9.9.9".parse().unwrap()));
        assert_eq!(address_of(&own[..1]), None);
    }
}
