//! [`WatchedPort`]: a TCP port at which this process listens and never reads, so that peers can ask the kernel of its
//! host whether the process is there (`tidegate_link::fabric`, `watch`). For networks that tell nothing of processes
//! that have ended.
//!
//! The kernel takes connections for it while the process computes, as many as its queue has room for. Those that have
//! come are closed when the process next asks for a peer itself.

use super::interfaces::Interfaces;
use super::ports::Ports;
use crate::border::bindings::FI_LOG_EP_CTRL;
use crate::border::log;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// Connections for which the kernel is asked to make room; it has a limit of its own (`net.core.somaxconn`).
const QUEUE: i32 = 4096;
/// Connections that are closed at a time.
const CLOSED_AT_ONCE: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct WatchedPort {
    socket: OwnedFd,
    at: SocketAddr,
}

impl WatchedPort {
    /// The port beside a network of this name, at the address that the network has, else at that of this host, whose
    /// interfaces are `interfaces`. Without it peers notice the end of this process later.
    pub fn beside(
        name: &str,
        own: Option<IpAddr>,
        interfaces: &[(String, IpAddr)],
        ports: Option<Ports>,
    ) -> Option<WatchedPort> {
        let ip = own.or_else(|| address_of_this_host(interfaces))?;
        let opened = WatchedPort::open(ip, ports);
        opened
            .inspect_err(|why| {
                log::info(FI_LOG_EP_CTRL, || format!("{name}: peers notice later that this process ends: {why}"));
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

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Closes connections that have come.
    pub fn close_some(&self) {
        let accept = || net::accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        for _ in 0..CLOSED_AT_ONCE {
            if accept().is_err() {
                break;
            }
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
    Ok(WatchedPort { socket, at })
}

/// The address by which other hosts reach this one, as far as can be told: that of the interface of the default route,
/// else of one that is as good as any.
fn address_of_this_host(own: &[(String, IpAddr)]) -> Option<IpAddr> {
    let known = Interfaces::here();
    let is_of_one_link = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let usable = own.iter().filter(|(_, ip)| !ip.is_loopback() && !is_of_one_link(ip));
    usable.min_by_key(|(name, ip)| (known.preference(name), ip.is_ipv6())).map(|(_, ip)| *ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Duration;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn the_kernel_takes_connections_until_the_port_is_closed() {
        let port = WatchedPort::open(HERE, None).unwrap();
        let at = port.at();
        let mut taken = TcpStream::connect(at).unwrap();
        taken.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        port.close_some();
        assert_eq!(taken.read(&mut [0]).unwrap(), 0, "it is closed, and nothing was said");
        drop(port);
        assert_eq!(TcpStream::connect(at).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn ports_of_a_range_are_taken_once_each() {
        let first = WatchedPort::open(HERE, None).unwrap();
        let port = first.at().port();
        let range: Ports = format!("{port}-{port}").parse().unwrap();
        let why = WatchedPort::open(HERE, Some(range)).unwrap_err();
        assert!(why.contains("has no free TCP port at 127.0.0.1"), "{why}");
        drop(first);
        assert_eq!(WatchedPort::open(HERE, Some(range)).map(|port| port.at().port()), Ok(port));
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
        assert_eq!(address_of_this_host(&own), Some("10.9.9.9".parse().unwrap()));
        assert_eq!(address_of_this_host(&own[..1]), None);
    }
}
