//! What an endpoint costs that is made for 65,536 peers and talks to eight, whose places are far apart: long and short
//! messages, expected and unexpected ones.
//!
//! `cargo bench -p tidegate-message --bench silent_peers`. Bytes are those that endpoint and flow control have on the
//! heap, mailbox and address vector apart.

#[path = "../tests/peers/mirror.rs"]
mod mirror;

use mirror::{Counting, endpoint, live_bytes, talk};
use std::time::Instant;
use tidegate_message::PeerId;
use tidegate_message::flow::SchemeName;

const PEERS: u32 = 1 << 16;
const TALKERS: u32 = 8;
/// Endpoints that are opened, of which the fastest counts: the first pays the system for memory.
const ROUNDS: usize = 20;

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    println!("{:<9} {:>9} {:>10} {:>12} {:>14}", "scheme", "open us", "open KiB", "talked KiB", "B per silent");
    for &scheme in SchemeName::OFFERED {
        let open = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            let endpoint = endpoint(scheme, PEERS);
            let micros = start.elapsed().as_secs_f64() * 1e6;
            drop(endpoint);
            micros
        });
        let open = open.fold(f64::MAX, f64::min);
        let ((begun, talked), (_, few)) = (bytes(scheme, PEERS), bytes(scheme, PEERS / 64));
        let silent = (talked - few) / f64::from(PEERS - PEERS / 64);
        let [begun, talked] = [begun, talked].map(|bytes| bytes / 1024.0);
        println!("{:<9} {open:>9.1} {begun:>10.1} {talked:>12.1} {silent:>14.2}", scheme.name());
    }
}

/// Bytes that an endpoint has before it talks and after.
fn bytes(scheme: SchemeName, peers: u32) -> (f64, f64) {
    let before = live_bytes();
    let mut endpoint = endpoint(scheme, peers);
    let begun = live_bytes() - before;
    (0..TALKERS).for_each(|talker| talk(&mut endpoint, PeerId(talker * (peers / TALKERS))));
    (begun as f64, (live_bytes() - before) as f64)
}
