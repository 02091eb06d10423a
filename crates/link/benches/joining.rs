//! What an endpoint over shared memory costs that is made for many peers and talks to few, and what it costs processes
//! to join a job.
//!
//! `cargo bench -p tidegate-link --bench joining [-- PROCESSES,PEERS ...]`: jobs of so many real processes, each of
//! which writes a packet to so many others. Times are processor time, so that they mean something with more processes
//! than cores.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tidegate_flow::{Config, Packet, PacketKind, SchemeName};
use tidegate_link::{Address, ShmConfig, ShmLink};
use tidegate_message::Link;

const SLOTS: u32 = 8;
/// Calls of `poll_event` among which there is one look at the peers, if it is time for one.
const POLLS: usize = 1024;
const LOOKS: u32 = 10;

fn link(folder: &Path, peers: u32) -> ShmLink {
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Dynamic, peers, SLOTS, 2) };
    let config = ShmConfig { directory: folder.to_path_buf(), bounce_buffers: 0, ..ShmConfig::new(flow) };
    ShmLink::new(config).expect("an endpoint")
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// KiB of this process that are in memory, shared ones included.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages") * 4
}

/// KiB that the system has set aside for the segment of this address.
fn allocated(folder: &Path, link: &ShmLink) -> u64 {
    let pid_and_serial = format!("-{}-", std::process::id());
    let tag = format!("{:016x}", link.address().tag());
    let is_its = |name: &str| name.contains(&pid_and_serial) && name.ends_with(&tag);
    let files = fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file"));
    let file = files.into_iter().find(|file| file.file_name().to_str().is_some_and(is_its)).expect("the segment");
    file.metadata().expect("its size").blocks() / 2
}

/// The processor time of one look at the peers.
fn look(link: &mut ShmLink) -> Duration {
    let mut spent = Duration::ZERO;
    for _ in 0..LOOKS {
        std::thread::sleep(Duration::from_millis(101));
        let begun = processor_time();
        for _ in 0..POLLS {
            assert_eq!(link.poll_event(), None);
        }
        spent += processor_time() - begun;
    }
    spent / LOOKS
}

/// An endpoint for many peers that talks to few.
fn silent(folder: &Path, peers: u32, talking: u32) {
    let (before, begun) = (resident(), processor_time());
    let mut link_of_many = link(folder, peers);
    let opening = processor_time() - begun;
    let (open, file) = (resident() - before, allocated(folder, &link_of_many));
    let mut others: Vec<ShmLink> = (0..talking).map(|_| link(folder, talking)).collect();
    let (before, packet) = (resident(), Packet::new(PacketKind::Data, 0, 0));
    for other in &mut others {
        let to = link_of_many.peer(&other.address()).expect("a place");
        link_of_many
            .write(to, 1, |places: &mut [Packet], placement| places.fill(packet.placed(placement)))
            .expect("room");
        let back = other.peer(&link_of_many.address()).expect("a place");
        other.write(back, 1, |places: &mut [Packet], placement| places.fill(packet.placed(placement))).expect("room");
        while link_of_many.retrieve().is_none() || other.retrieve().is_none() {}
    }
    let mailbox = u64::from(peers) * u64::from(SLOTS) * 64 / 1024;
    println!("for {peers} peers: opens in {:.2} ms; resident {open} KiB more", milliseconds(opening));
    println!("  file {file} KiB, {} beside the mailbox", file - mailbox);
    println!(
        "  talks to {talking}: resident {} KiB more, file {} KiB, {} beside the mailbox; a look takes {:.3} ms",
        resident() - before,
        allocated(folder, &link_of_many),
        allocated(folder, &link_of_many) - mailbox,
        milliseconds(look(&mut link_of_many))
    );
}

fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One process of a job.
fn join(folder: &Path, rank: usize, processes: usize, talking: usize) {
    // Nobody waits on when the program that started it is interrupted.
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let begun = processor_time();
    let mut link = link(folder, processes as u32);
    let opening = processor_time() - begun;
    fs::write(folder.join(format!("new-{rank}")), link.address().to_bytes()).expect("written");
    fs::rename(folder.join(format!("new-{rank}")), folder.join(format!("rank-{rank}"))).expect("shown");
    wait_for(&folder.join("all"));
    let all = fs::read(folder.join("all")).expect("addresses");
    let addresses: Vec<Address> = all.chunks(Address::BYTES).filter_map(Address::from_bytes).collect();
    let (packet, mut received) = (Packet::new(PacketKind::Data, 0, 0), 0);
    let mut joining = Duration::ZERO;
    for step in 1..=talking {
        let begun = processor_time();
        loop {
            match link.peer(&addresses[(rank + step) % processes]) {
                Ok(to)
                    if link
                        .write(to, 1, |places: &mut [Packet], placement| places.fill(packet.placed(placement)))
                        .is_ok() =>
                {
                    break;
                }
                Err(error) if !error.may_be_tried_again() => panic!("{error}"),
                // Somebody has the lock of a table and waits for a processor.
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        received += usize::from(link.retrieve().is_some());
        joining += processor_time() - begun;
    }
    while received < talking {
        match link.retrieve() {
            Some(_) => received += 1,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    fs::write(folder.join(format!("joined-{rank}")), []).expect("written");
    wait_for(&folder.join("joined"));
    let look = look(&mut link);
    let line = format!("{} {} {}", milliseconds(opening), milliseconds(joining), milliseconds(look));
    fs::write(folder.join(format!("new-{rank}")), line).expect("written");
    fs::rename(folder.join(format!("new-{rank}")), folder.join(format!("result-{rank}"))).expect("shown");
    wait_for(&folder.join("end"));
}

/// Waits until every process has written its file, and reads them.
fn gather(folder: &Path, what: &str, children: &mut [Child]) -> Vec<Vec<u8>> {
    (0..children.len())
        .map(|rank| {
            let path = folder.join(format!("{what}-{rank}"));
            while !path.exists() {
                assert!(children[rank].try_wait().expect("a child").is_none(), "process {rank} has failed");
                std::thread::sleep(Duration::from_millis(5));
            }
            fs::read(path).expect("a file")
        })
        .collect()
}

/// A job of real processes.
fn job(folder: &Path, processes: usize, talking: usize) {
    let start = |rank: usize| {
        let arguments = [rank, processes, talking].map(|number| number.to_string());
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("join").arg(folder).args(arguments).spawn().expect("a process")
    };
    let mut children: Vec<Child> = (0..processes).map(start).collect();
    let all = gather(folder, "rank", &mut children).concat();
    let begun = Instant::now();
    fs::write(folder.join("new"), all).expect("written");
    fs::rename(folder.join("new"), folder.join("all")).expect("shown");
    gather(folder, "joined", &mut children);
    let elapsed = begun.elapsed();
    fs::write(folder.join("joined"), []).expect("written");
    let results = gather(folder, "result", &mut children);
    fs::write(folder.join("end"), []).expect("written");
    children.iter_mut().for_each(|child| assert!(child.wait().expect("a child").success()));
    let mean = |at: usize| {
        let number = |line: &Vec<u8>| String::from_utf8_lossy(line).split(' ').nth(at)?.parse::<f64>().ok();
        results.iter().filter_map(number).sum::<f64>() / processes as f64
    };
    println!(
        "{processes:>6} processes, each talks to {talking:>5}: opens in {:>7.3} ms, joins in {:>8.3} ms ({:>6.1} us a peer), a look \
         takes {:>6.3} ms; all together {:.2} s",
        mean(0),
        mean(1),
        mean(1) * 1e3 / talking as f64,
        mean(2),
        elapsed.as_secs_f64()
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|first| first == "join") {
        let number = |at: usize| arguments[at].parse().expect("a number");
        return join(Path::new(&arguments[1]), number(2), number(3), number(4));
    }
    let mut jobs: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if jobs.is_empty() {
        jobs = vec!["64,8", "64,63", "256,8", "256,255"];
    }
    let folder: PathBuf = Path::new("/dev/shm").join(format!("tidegate-bench-{}", std::process::id()));
    fs::create_dir(&folder).expect("a folder in /dev/shm");
    silent(&folder, 65_536, 8);
    for (at, text) in jobs.iter().enumerate() {
        let (processes, talking) = text.split_once(',').expect("PROCESSES,PEERS");
        let folder = folder.join(at.to_string());
        fs::create_dir(&folder).expect("a folder");
        job(&folder, processes.parse().expect("a number"), talking.parse().expect("a number"));
        fs::remove_dir_all(&folder).expect("a folder of ours");
    }
    fs::remove_dir_all(&folder).expect("a folder of ours");
}
