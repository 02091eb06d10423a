//! What the tests of links share: folders that vanish, configurations, packets with numbers, and processes that run
//! one function of the test program itself.

#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tidegate_flow::{Config, PAYLOAD_BYTES, Packet, PacketKind, PeerId, SchemeName};
use tidegate_link::{Address, ShmConfig, ShmLink};
use tidegate_message::{Departure, Link, LinkEvent, WriteError};

/// Longer than anything here takes, even on a busy machine; only reached by a test that fails.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A folder for segments or pages, removed with all that is in it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidegate-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// An endpoint here, without flow control.
    pub fn config(&self, peers: u32) -> ShmConfig {
        let flow = Config { piggyback: true, ..Config::new(SchemeName::None, peers, 16, 2) };
        ShmConfig { directory: self.0.clone(), ..ShmConfig::new(flow) }
    }

    pub fn link(&self, peers: u32) -> ShmLink {
        ShmLink::new(self.config(peers)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A packet with a number.
pub fn packet(number: u64) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, 56, number as u8);
    for bytes in packet.payload.as_chunks_mut::<8>().0 {
        *bytes = number.to_le_bytes();
    }
    packet
}

/// The number of a packet, all of which must agree on it.
pub fn number(packet: &Packet) -> u64 {
    number_in(&packet.payload)
}

/// The number in a slot's payload.
pub fn number_in(payload: &[u8; PAYLOAD_BYTES]) -> u64 {
    let words = payload.as_chunks::<8>().0;
    assert!(words.iter().all(|word| *word == words[0]), "torn packet");
    u64::from_le_bytes(words[0])
}

/// Polls until `poll` returns something, as an idle endpoint would.
pub fn until<T>(link: &mut ShmLink, what: &str, mut poll: impl FnMut(&mut ShmLink) -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll(link) {
            link.busy();
            return found;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "waited in vain for {what}");
        link.idle().yield_if_asked();
    }
}

/// The peer of this address, which others may be entering now: who holds the lock of a table may have lost its
/// processor.
pub fn peer_of(link: &mut ShmLink, address: &Address) -> PeerId {
    until(link, "the table of peers", |link| match link.peer(address) {
        Ok(peer) => Some(peer),
        Err(error) if error.may_be_tried_again() => None,
        Err(error) => panic!("{error}"),
    })
}

/// The next packet: who sent it, and its number.
pub fn receive(link: &mut ShmLink) -> (PeerId, u64) {
    let arrival = until(link, "a packet", Link::retrieve);
    (arrival.source, number(&arrival.packet))
}

/// Writes a packet, waiting for room.
pub fn send(link: &mut ShmLink, to: PeerId, number: u64) {
    until(link, "room", |link| match write(link, to, &packet(number)) {
        Ok(()) => Some(()),
        Err(WriteError::Full | WriteError::Refused) => None,
        Err(WriteError::Unreachable(why)) => panic!("{why}"),
    });
}

/// Writes one packet, if there is a place for it.
pub fn write(link: &mut ShmLink, to: PeerId, packet: &Packet) -> Result<(), WriteError> {
    link.write(to, 1, |places: &mut [Packet], placement| places.fill(packet.placed(placement)))
        .map(|written| assert_eq!(written, 1))
}

/// A departure, if one is to be told; that peers are closing is of no interest.
pub fn poll_departure(link: &mut ShmLink) -> Option<Departure> {
    loop {
        match link.poll_event()? {
            LinkEvent::Departed(departure) => return Some(departure),
            LinkEvent::Closing(_) => {}
            other => panic!("shared memory has no such event: {other:?}"),
        }
    }
}

/// The next departure.
pub fn departure(link: &mut ShmLink) -> Departure {
    until(link, "a departure", poll_departure)
}

/// Another process that runs the ignored test `role` of this program. Killed when dropped.
pub struct Process(pub Child);

impl Process {
    /// Roles find `folder` and `address` by [`role_folder`] and [`role_address`].
    pub fn start(role: &str, folder: &Folder, address: Address) -> Self {
        Self::run(Command::new(std::env::current_exe().unwrap()), role, folder, address)
    }

    /// The same in a process namespace of its own, as in a container; `None` for those who may not make one.
    pub fn start_contained(role: &str, folder: &Folder, address: Address) -> Option<Self> {
        Self::start_within(&["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"], role, folder, address)
    }

    /// The same, started by the command `wrapper`; `None` if that cannot run anything here.
    pub fn start_within(wrapper: &[&str], role: &str, folder: &Folder, address: Address) -> Option<Self> {
        let wrapped = |program: &std::path::Path| {
            let mut command = Command::new(wrapper[0]);
            command.args(&wrapper[1..]).arg(program);
            command
        };
        if !wrapped("true".as_ref()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return None;
        }
        Some(Self::run(wrapped(&std::env::current_exe().unwrap()), role, folder, address))
    }

    fn run(mut command: Command, role: &str, folder: &Folder, address: Address) -> Self {
        let address: String = address.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let child = command
            .args(["--ignored", "--exact", role, "--nocapture"])
            .env("ROLE_FOLDER", folder.path())
            .env("ROLE_ADDRESS", address)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end, which must be a success.
    pub fn join(mut self) {
        assert!(self.0.wait().unwrap().success(), "a process of this test failed; see its message above");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// In a role: the folder. Never removed here.
pub fn role_folder() -> std::mem::ManuallyDrop<Folder> {
    std::mem::ManuallyDrop::new(Folder(std::env::var_os("ROLE_FOLDER").expect("run by another test").into()))
}

/// In a role: the address of the endpoint that started it.
pub fn role_address() -> Address {
    let text = std::env::var("ROLE_ADDRESS").expect("run by another test");
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    Address::from_bytes(&(0..text.len()).step_by(2).map(byte).collect::<Vec<_>>()).unwrap()
}
