//! Arbitrary batches for an endpoint that other hosts reach, from strangers and from a peer that it knows. The first byte
//! of each piece says how long it is, the second whether it gets a sound header.

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

fn contact(id: u8) -> Contact {
    let mut bytes = [0; Contact::BYTES];
    bytes[..4].copy_from_slice(b"TG3\x01");
    (bytes[32], bytes[40]) = (id, id);
    Contact::from_bytes(&bytes).expect("a contact")
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let own = Greeting { contact: contact(1), window: 4096, rank: None, reads_memory: true, host: "here".into() };
    let mut protocol = Protocol::new(own, &Config::new(SchemeName::Dynamic, 4, 64, 2));
    let peer = protocol.peer(&contact(2)).expect("a place");
    let (mut rest, mut now) = (bytes, Instant::from_nanos(1));
    while let [length, is_sound, more @ ..] = rest {
        let (piece, behind) = more.split_at((*length as usize).min(more.len()));
        let mut batch = piece.to_vec();
        if is_sound & 1 == 1 && batch.len() >= 40 {
            batch[..4].copy_from_slice(b"TGB\x04");
            batch[8..16].copy_from_slice(&1_u64.to_le_bytes());
            batch[16..24].copy_from_slice(&u64::from(2 + (is_sound >> 1)).to_le_bytes());
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
