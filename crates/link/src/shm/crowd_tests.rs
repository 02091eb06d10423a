//! Far more peers than an endpoint was planned for: places are opened for them as they come, the receive memory pays,
//! and whoever comes after those who have left takes theirs.

use super::connection::{Connection, Terms};
use super::life::Here;
use super::tests::folder;
use super::*;
use crate::secret::Secret;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use tidegate_flow::{Config, Instant, Packet, PacketKind, PeerId, SchemeName};
use tidegate_message::{Counter, Endpoint, EndpointConfig, Link, PLACES_AHEAD};

const PLANNED: u32 = 64;
const NEWCOMERS: u32 = 512;
const LATER: u32 = 4000;
const BOUND: usize = 64 << 20;

/// An endpoint of a small job, as it is by default, but without bounce buffers and send buffers.
fn endpoint(directory: &Path) -> Endpoint<ShmLink> {
    let (peers, newcomers) = (PLANNED + NEWCOMERS + LATER, NEWCOMERS + LATER);
    let flow = Config { newcomers, later: LATER, ..Config::new(SchemeName::Speculative, peers, 64, 2) };
    let plain = ShmConfig::new(flow.clone());
    let config = ShmConfig { directory: directory.to_path_buf(), bounce_buffers: 0, send_buffers: 0, ..plain };
    let link = ShmLink::new(config).unwrap();
    let config = EndpointConfig {
        flow,
        eager_bytes: 2048,
        operations: 1 << 12,
        receive_memory: BOUND,
        patience: Duration::ZERO,
        packets_per_progress: 64,
        bulk_bytes_per_progress: 1 << 16,
    };
    Endpoint::new(config, link).unwrap()
}

/// The endpoint looks after its peers.
fn look(endpoint: &mut Endpoint<ShmLink>) {
    endpoint.link_mut().look_soon();
    endpoint.progress(Instant::default());
}

/// Takes a place as an endpoint does that has this number and no segment. `Err`: there is none, ever.
fn enter(endpoint: &mut Endpoint<ShmLink>, here: &Here, number: u16) -> Result<Connection, LinkError> {
    loop {
        let link = endpoint.link();
        let ShmConfig { flow, directory, .. } = &link.config;
        let ours = here.address(number, &Secret::draw());
        let terms = Terms { directory, here, ours, flow, bulk: BulkChoice::Mailbox };
        match Connection::open(&terms, &link.address(), Duration::from_secs(1)) {
            Ok((connection, _)) => return Ok(connection),
            Err(error) if error.may_be_tried_again() => look(endpoint),
            Err(error) => return Err(error),
        }
    }
}

/// As many as find places, or `most`, and why no more do.
fn crowd(endpoint: &mut Endpoint<ShmLink>, most: usize) -> (Vec<Connection>, Option<LinkError>) {
    let here = Here::find();
    let mut connections = Vec::new();
    while connections.len() < most {
        match enter(endpoint, &here, connections.len() as u16) {
            Ok(connection) => connections.push(connection),
            Err(error) => return (connections, Some(error)),
        }
    }
    (connections, None)
}

/// All of them leave, which the endpoint notices.
fn leave(endpoint: &mut Endpoint<ShmLink>, mut connections: Vec<Connection>) {
    connections.iter_mut().for_each(|connection| connection.leave(true));
    drop(connections);
    while endpoint.link().table.taken().next().is_some() {
        look(endpoint);
    }
}

#[test]
fn thousands_find_places_which_the_receive_memory_pays_and_others_find_theirs_later() {
    let folder = folder();
    let mut endpoint = endpoint(&folder);
    let allocated = || {
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
        file.metadata().unwrap().blocks() * 512
    };
    let counter = |endpoint: &Endpoint<ShmLink>, counter| endpoint.link().counters().get(counter);
    let (fixed, before) = (counter(&endpoint, Counter::ReceiveFixedBytes), allocated());
    let most = endpoint.places().1;
    assert!(endpoint.places().0 == PLANNED + NEWCOMERS && most > PLANNED + 1500, "{:?}", endpoint.places());
    for _ in 0..5 {
        look(&mut endpoint);
    }
    assert_eq!(endpoint.places().0, PLANNED + NEWCOMERS, "as long as nobody comes there are no more");

    let (mut connections, _) = crowd(&mut endpoint, 1000);
    look(&mut endpoint);
    assert!((1000 + PLACES_AHEAD..=1000 + 2 * PLACES_AHEAD).contains(&endpoint.places().0), "{:?}", endpoint.places());
    let (others, refused) = crowd(&mut endpoint, usize::MAX);
    connections.extend(others);
    assert_eq!((connections.len() as u32, endpoint.places()), (most, (most, most)));
    let refused = refused.unwrap().to_string();
    assert!(refused.contains(&format!("full with {most} peers; set FI_TIDEGATE_PEERS")), "{refused}");
    let more = counter(&endpoint, Counter::ReceiveFixedBytes) - fixed;
    let opened = u64::from(most - PLANNED - NEWCOMERS);
    let all =
        fixed + more + u64::from(PLANNED) * counter(&endpoint, Counter::WindowBytes) + 2048 * u64::from(most - PLANNED);
    println!("{most} places; {more} bytes fixed and {} of windows for {opened} of them; {all} in all", 2048 * opened);
    assert!(more > 2000 * opened && all <= BOUND as u64, "{more} bytes more are fixed for {opened}");
    // An entry each, and the pages of the index.
    let file = allocated() - before;
    assert!(file <= u64::from(most) * 160 + 8 * 4096, "{file} bytes of the file for {most}");

    leave(&mut endpoint, connections);
    let (connections, refused) = crowd(&mut endpoint, most as usize);
    assert!(refused.is_none() && endpoint.places() == (most, most), "{refused:?}");
    leave(&mut endpoint, connections);
    assert_eq!(counter(&endpoint, Counter::ReceiveFixedBytes), fixed + more, "their places go to others");
    drop(endpoint);
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn who_comes_and_goes_again_and_again_uses_up_no_places() {
    let folder = folder();
    let mut endpoint = endpoint(&folder);
    for _ in 0..30 {
        let (connections, refused) = crowd(&mut endpoint, 100);
        assert!(refused.is_none(), "{refused:?}");
        leave(&mut endpoint, connections);
    }
    assert_eq!(endpoint.places().0, PLANNED + NEWCOMERS);
    drop(endpoint);
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn who_writes_from_a_place_that_is_not_open_is_not_heard() {
    let folder = folder();
    let mut endpoint = endpoint(&folder);
    let here = Here::find();
    let mut connection = enter(&mut endpoint, &here, 0).unwrap();
    look(&mut endpoint);
    let open = endpoint.places().0;
    connection.pretend_to_be(PeerId(open + 7));
    let packet = Packet::new(PacketKind::Data, 0, 1);
    connection.write_many(1, |places: &mut [Packet], placement| places.fill(packet.placed(placement)));
    look(&mut endpoint);
    let violations = endpoint.link().counters().get(Counter::Violations);
    assert_eq!((endpoint.link().roster.len(), violations), (1, 1));
    leave(&mut endpoint, vec![connection]);
    drop(endpoint);
    std::fs::remove_dir(folder).unwrap();
}
