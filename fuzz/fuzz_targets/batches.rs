//! Arbitrary batches for an endpoint that other hosts reach, from strangers and from a peer that it knows. The first byte
//! of each piece says how long it is, the second whether it gets a sound header and a proof. The last byte of all says
//! whether the endpoint has a pool of slots.

#![no_main]

use tidegate_link::fabric::{Contact, Greeting, LowerAddress, Network, NetworkEvent, Protocol, Route, Sending, Token};
use tidegate_message::flow::{Config, Instant, SchemeName};

/// A network that takes everything and brings nothing.
struct Hole;

impl Network for Hole {
    fn address(&self) -> LowerAddress {
        LowerAddress::default()
    }
    fn resolve(&mut self, _: &LowerAddress) -> Result<Route, String> {
        Ok(Route(0))
    }
    fn forget(&mut self, _: Route) {}
    fn send(&mut self, _: Route, _: Token, _: &[u8]) -> Sending {
        Sending::Taken
    }
    fn poll(&mut self) -> Option<NetworkEvent<'_>> {
        None
    }
}

fn flow() -> Config {
    Config::new(SchemeName::Dynamic, 4, 64, 2)
}

fn contact(number: u8) -> Contact {
    Contact::example(number.into(), number.into(), &flow(), LowerAddress::new(&[number]).expect("short"))
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let own = Greeting { contact: contact(1), window: 4096, rank: None, reads_memory: true, host: "here".into() };
    let scheme = match bytes.last() {
        Some(last) if last % 2 == 1 => SchemeName::Speculative,
        _ => SchemeName::Dynamic,
    };
    let mut protocol = Protocol::new(own, &Config { scheme, ..flow() });
    let peer = protocol.peer(&contact(2)).expect("a place");
    let (mut rest, mut now) = (bytes, Instant::from_nanos(1));
    while let [length, is_sound, more @ ..] = rest {
        let (piece, behind) = more.split_at((*length as usize).min(more.len()));
        let mut batch = piece.to_vec();
        if is_sound & 1 == 1 && batch.len() >= 40 {
            batch[..4].copy_from_slice(b"TGB\x09");
            batch[8..16].copy_from_slice(&contact(1).id().to_le_bytes());
            batch[16..24].copy_from_slice(&contact(2 + (is_sound >> 2)).id().to_le_bytes());
            // Of some the sender belongs to the job.
            if is_sound & 2 == 2 {
                contact(1).seal(&mut batch);
            }
        }
        now = now + std::time::Duration::from_millis(u64::from(*length));
        protocol.handle_batch(&batch, now);
        let _ = protocol.write(peer, 3, now, |_, _| {});
        protocol.exchange(&mut Hole, now);
        while protocol.retrieve().is_some() {}
        while protocol.poll_event().is_some() {}
        rest = behind;
    }
});
