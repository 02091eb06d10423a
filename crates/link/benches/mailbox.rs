//! What a packet and a bulk transfer cost over shared memory: medians, on two threads with an endpoint each.
//!
//! `cargo bench -p tidegate-link`. Two processors that have nothing else to do are assumed.

use std::path::{Path, PathBuf};
use std::time::Instant;
use tidegate_flow::{Config, Packet, PacketKind, PeerId, SchemeName};
use tidegate_link::{IoBuffer, ShmConfig, ShmLink};
use tidegate_message::{Bounce, Link, PeerMemory, RemoteMemory, Span, TransferId, TransferStatus, WriteError};

const ROUNDS: usize = 11;

/// An endpoint with one peer.
fn link(folder: &Path, scheme: SchemeName) -> ShmLink {
    let flow = Config { piggyback: true, ..Config::new(scheme, 1, 1024, 2) };
    ShmLink::new(ShmConfig { directory: folder.to_path_buf(), ..ShmConfig::new(flow) }).expect("an endpoint")
}

/// Two endpoints that know each other: (link, index of the other) twice.
fn pair(folder: &Path, scheme: SchemeName) -> [(ShmLink, PeerId); 2] {
    let (mut a, mut b) = (link(folder, scheme), link(folder, scheme));
    let b_at_a = a.peer(&b.address()).expect("a place");
    let a_at_b = b.peer(&a.address()).expect("a place");
    [(a, b_at_a), (b, a_at_b)]
}

fn write(link: &mut ShmLink, to: PeerId, packet: &Packet) -> Result<u32, WriteError> {
    link.write(to, 1, |places: &mut [Packet], placement| places.fill(packet.placed(placement)))
}

fn receive(link: &mut ShmLink) -> Packet {
    loop {
        if let Some(arrival) = link.retrieve() {
            link.busy();
            return arrival.packet;
        }
        link.idle().yield_if_asked();
    }
}

/// The median of `ROUNDS` runs of `count` operations, in nanoseconds per operation.
fn median(count: usize, mut run: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run(count);
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// A packet written and retrieved by one thread: the instructions alone.
fn alone(folder: &Path, scheme: SchemeName) -> f64 {
    let [(mut a, to), (mut b, _)] = pair(folder, scheme);
    let packet = Packet::new(PacketKind::Data, 56, 0);
    median(100_000, |count| {
        for _ in 0..count {
            write(&mut a, to, &packet).expect("room");
            std::hint::black_box(b.retrieve().expect("the packet"));
        }
    })
}

/// Half a round trip.
fn ping_pong(folder: &Path, scheme: SchemeName) -> f64 {
    const COUNT: usize = 20_000;
    let [(mut a, b_at_a), (mut b, a_at_b)] = pair(folder, scheme);
    let packet = Packet::new(PacketKind::Data, 40, 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..COUNT * ROUNDS {
                receive(&mut b);
                write(&mut b, a_at_b, &packet).expect("room");
            }
        });
        median(COUNT, |count| {
            for _ in 0..count {
                write(&mut a, b_at_a, &packet).expect("room");
                receive(&mut a);
            }
        }) / 2.0
    })
}

/// Packets that one thread writes as fast as another retrieves them.
fn one_way(folder: &Path) -> f64 {
    const COUNT: usize = 200_000;
    let [(mut a, to), (mut b, _)] = pair(folder, SchemeName::None);
    let packet = Packet::new(PacketKind::Data, 40, 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..COUNT * ROUNDS {
                while write(&mut a, to, &packet).is_err() {
                    a.idle().yield_if_asked();
                }
                a.busy();
            }
        });
        median(COUNT, |count| {
            for _ in 0..count {
                std::hint::black_box(receive(&mut b));
            }
        })
    })
}

/// A transfer of `length` bytes in one piece: directly, and through bounce buffers (filled and drained by one thread).
fn bulk(folder: &Path, length: usize) -> (f64, f64) {
    let [(mut a, b_at_a), (mut b, _)] = pair(folder, SchemeName::None);
    let (mut source, mut target) = (vec![1_u8; length], vec![0_u8; length]);
    let span = Span { address: source.as_mut_ptr() as u64, length: length as u64 };
    let memory = [RemoteMemory { key: 0, span }];
    // SAFETY: both vectors live to the end of the function, and only the buffers use them.
    let (from, mut into) = unsafe {
        (IoBuffer::from_parts(source.as_mut_ptr(), length), IoBuffer::from_parts(target.as_mut_ptr(), length))
    };
    let count = ((1 << 23) / length).clamp(4, 1000);
    let direct = median(count, |count| {
        for _ in 0..count {
            assert_eq!(a.read_peer(TransferId(0), b_at_a, &memory, &mut into, 0), TransferStatus::Done);
        }
    });
    let (bounce_buffers, piece) = (b.bounce_buffers().count, b.bounce_buffers().bytes.min(length));
    let bounced = median(count, |count| {
        for _ in 0..count {
            for (at, offset) in (0..length).step_by(piece).enumerate() {
                b.fill_bounce_buffer(at % bounce_buffers, &from, offset, piece);
                assert!(a.drain_bounce_buffer(b_at_a, at % bounce_buffers, &mut into, offset, piece));
            }
        }
    });
    (direct, bounced)
}

fn main() {
    let folder: PathBuf = Path::new("/dev/shm").join(format!("tidegate-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder in /dev/shm");
    println!("{:<52}{:>10.1} ns", "packet, one thread, credits", alone(&folder, SchemeName::Static));
    println!("{:<52}{:>10.1} ns", "packet, one thread, room", alone(&folder, SchemeName::None));
    println!("{:<52}{:>10.1} ns", "ping-pong, half a round trip, credits", ping_pong(&folder, SchemeName::Static));
    println!("{:<52}{:>10.1} ns", "ping-pong, half a round trip, room", ping_pong(&folder, SchemeName::None));
    let time = one_way(&folder);
    println!("{:<52}{time:>10.1} ns = {:.1} million/s", "one way, room", 1000.0 / time);
    for length in [2 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
        let (direct, bounced) = bulk(&folder, length);
        println!("bulk of {length:>8} bytes: direct {direct:>10.0} ns, bounced {bounced:>10.0} ns");
    }
    std::fs::remove_dir_all(&folder).expect("an empty folder");
}
