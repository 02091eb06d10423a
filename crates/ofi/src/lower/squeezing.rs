//! Addresses of the network below in the room that an address of ours has for them ([`LOWER_ADDRESS_MOST`] bytes).
//!
//! Most are short enough as they are. A longer one has bytes that say nothing: they are the same in all addresses that
//! its provider makes, or the provider does not read them. These are left out, and put back for a peer. That the
//! former are what they should be is looked at in our own address, so a provider that begins to use them is refused
//! with a word and never misread.

use std::fmt;
use tidegate_link::fabric::{LOWER_ADDRESS_MOST, LowerAddress};

/// Bytes of an address, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many that tell addresses apart.
    Kept(usize),
    /// So many that are all this byte.
    Constant(u8, usize),
    /// So many that the provider neither fills in nor reads.
    Unread(usize),
}

impl Piece {
    fn bytes(self) -> usize {
        match self {
            Piece::Kept(bytes) | Piece::Constant(_, bytes) | Piece::Unread(bytes) => bytes,
        }
    }
}

/// How addresses of one kind are made.
#[derive(Debug, PartialEq, Eq)]
pub struct Shape {
    /// For people.
    pub name: &'static str,
    /// The two bytes with which they begin, as a number of this machine, where those tell the kind.
    family: Option<u16>,
    pieces: &'static [Piece],
}

use Piece::{Constant, Kept, Unread};

/// `sockaddr_in6` without its flow label.
pub const IPV6: Shape = Shape {
    name: "an IPv6 address",
    family: Some(libc::AF_INET6 as u16),
    pieces: &[Kept(4), Constant(0, 4), Kept(20)],
};

/// The family of InfiniBand's own addresses (`AF_IB`).
const AF_IB: u16 = 27;

/// `struct sockaddr_ib`: family, partition, flow label, GID, service, of which the upper half is 0, its mask (all of it
/// counts), scope, which is the number of a port (prov/verbs, libfabric 2.6: verbs_info.c `vrb_alloc_ib_addrinfo`,
/// include/ofi_net.h). `ofi_rxm` compares addresses byte by byte, so they have to come back whole.
pub const INFINIBAND: Shape = Shape {
    name: "an InfiniBand address",
    family: Some(AF_IB),
    pieces: &[Kept(4), Constant(0, 4), Kept(16), Constant(0, 4), Kept(4), Constant(0xff, 8), Kept(1), Constant(0, 7)],
};

/// `struct psmx3_ep_name`: three words that name the endpoint, then type (0: an ordinary one), unit, port, padding and
/// service, which are 0 (prov/psm3, libfabric 2.6: psmx3.h, psmx3_cm.c).
pub const PSM3: Shape = Shape { name: "a psm3 address", family: None, pieces: &[Kept(24), Constant(0, 8)] };

/// `struct efa_ep_addr`: GID, queue pair, padding, key of the queue, and a pointer of a list, which is null (prov/efa,
/// libfabric 2.6: efa_av.h).
pub const EFA: Shape =
    Shape { name: "an EFA address", family: None, pieces: &[Kept(18), Constant(0, 2), Kept(4), Constant(0, 8)] };

/// `struct fi_opx_addr` of libfabric 2.6: two planes, each with unit, an unused byte, context, LID and the upper half
/// of the GID, then the number of the plane that sends, and seven unused bytes (prov/opx, fi_opx_addr.h; the struct's
/// memory is not cleared, fi_opx_ep.c, so the unused bytes may be anything).
pub const OPX: Shape = Shape {
    name: "an Omni-Path address",
    family: None,
    pieces: &[Kept(1), Unread(1), Kept(14), Kept(1), Unread(1), Kept(14), Kept(1), Unread(7)],
};

impl Shape {
    /// Bytes of such an address, as its provider has it.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes()).sum()
    }

    /// Whether an address has the length and the beginning of this kind.
    fn is_of(&self, address: &[u8]) -> bool {
        let family = address.first_chunk().map(|family| u16::from_ne_bytes(*family));
        address.len() == self.bytes() && (self.family.is_none() || family == self.family)
    }

    /// The bytes that are kept of an address. `None`: bytes that should say nothing do say something.
    fn squeeze(&self, address: &[u8]) -> Option<Vec<u8>> {
        let (mut kept, mut rest) = (Vec::new(), address);
        for piece in self.pieces {
            let (bytes, after) = rest.split_at_checked(piece.bytes())?;
            match piece {
                Kept(_) => kept.extend_from_slice(bytes),
                Constant(byte, _) if bytes.iter().all(|other| other == byte) => {}
                Constant(..) => return None,
                Unread(_) => {}
            }
            rest = after;
        }
        Some(kept)
    }

    /// The address of which this was kept. `None`: it is of another kind.
    fn expand(&self, kept: &[u8]) -> Option<Vec<u8>> {
        let (mut address, mut rest) = (Vec::new(), kept);
        for piece in self.pieces {
            match piece {
                Kept(bytes) => {
                    let (own, after) = rest.split_at_checked(*bytes)?;
                    address.extend_from_slice(own);
                    rest = after;
                }
                Constant(byte, bytes) => address.resize(address.len() + bytes, *byte),
                Unread(bytes) => address.resize(address.len() + bytes, 0),
            }
        }
        (rest.is_empty() && self.is_of(&address)).then_some(address)
    }
}

/// How the addresses of an endpoint below stand in ours.
#[derive(Clone, Copy, Debug)]
pub struct Squeezing {
    shape: Option<&'static Shape>,
    /// Bytes of an address as the provider has it.
    bytes: usize,
}

/// Why an address cannot be told to peers.
#[derive(Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// There is no address.
    Empty,
    /// It has so many bytes, and is of no known kind.
    Unknown(usize),
    /// It is of this kind, but where that has always the same bytes it has others.
    Unusual(&'static str),
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Empty => f.write_str("it gives its endpoint no address (fi_getname)"),
            NoRoom::Unknown(bytes) => {
                write!(f, "its addresses have {bytes} bytes, and there is room for {LOWER_ADDRESS_MOST}")
            }
            NoRoom::Unusual(name) => write!(
                f,
                "its address looks like {name}, but has other bytes where those that are known have always the same, and \
                 there is room for {LOWER_ADDRESS_MOST} bytes only"
            ),
        }
    }
}

impl Squeezing {
    /// That of an endpoint with this address, and the address squeezed. `shapes`: what its provider's may look like.
    pub fn of(own: &[u8], shapes: &[&'static Shape]) -> Result<(Squeezing, LowerAddress), NoRoom> {
        if own.is_empty() {
            return Err(NoRoom::Empty);
        }
        let shape = shapes.iter().copied().find(|shape| shape.is_of(own));
        let squeezing = Squeezing { shape, bytes: own.len() };
        let Some(shape) = shape else {
            let address = LowerAddress::new(own).ok_or(NoRoom::Unknown(own.len()))?;
            return Ok((squeezing, address));
        };
        match shape.squeeze(own).as_deref().and_then(LowerAddress::new) {
            Some(address) => Ok((squeezing, address)),
            None => {
                let whole = Squeezing { shape: None, ..squeezing };
                LowerAddress::new(own).map(|address| (whole, address)).ok_or(NoRoom::Unusual(shape.name))
            }
        }
    }

    /// A peer's address as the provider has it. `None`: it is of another kind than ours.
    pub fn expand(&self, address: &LowerAddress) -> Option<Vec<u8>> {
        match self.shape {
            Some(shape) => shape.expand(address.as_bytes()),
            None => Some(address.as_bytes().to_vec()).filter(|bytes| bytes.len() == self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [&Shape; 3] = [&IPV6, &INFINIBAND, &OPX];
    /// Two whose addresses have one length, so that only the provider tells them apart.
    const SHORT: [&Shape; 2] = [&PSM3, &EFA];

    /// An address of this shape whose kept bytes are these, in turn.
    fn made(shape: &Shape, kept: &[u8]) -> Vec<u8> {
        let mut kept = kept.iter().copied().cycle();
        let mut bytes: Vec<u8> = shape
            .pieces
            .iter()
            .flat_map(|piece| match piece {
                Kept(count) => kept.by_ref().take(*count).collect::<Vec<u8>>(),
                Constant(byte, count) => vec![*byte; *count],
                Unread(count) => vec![0; *count],
            })
            .collect();
        if let Some(family) = shape.family {
            bytes[..2].copy_from_slice(&family.to_ne_bytes());
        }
        bytes
    }

    proptest! {
        #[test]
        fn an_address_comes_back_as_it_was(kept in prop::collection::vec(any::<u8>(), 1..40), which in 0..ALL.len()) {
            let address = made(ALL[which], &kept);
            let (squeezing, squeezed) = Squeezing::of(&address, &ALL).unwrap();
            prop_assert!(squeezed.as_bytes().len() < address.len());
            prop_assert_eq!(squeezing.expand(&squeezed), Some(address));
        }

        #[test]
        fn nothing_of_a_peer_brings_it_down(own in 0..ALL.len(), theirs in prop::collection::vec(any::<u8>(), 0..33)) {
            let (squeezing, _) = Squeezing::of(&made(ALL[own], &[1, 2, 3]), &ALL).unwrap();
            let theirs = LowerAddress::new(&theirs).unwrap();
            if let Some(address) = squeezing.expand(&theirs) {
                prop_assert_eq!(Squeezing::of(&address, &ALL).unwrap().1, theirs);
            }
        }
    }

    #[test]
    fn lengths_are_those_of_the_structs_and_fit() {
        assert_eq!((ALL.map(Shape::bytes), SHORT.map(Shape::bytes)), ([28, 48, 40], [32; 2]));
        assert_eq!(size_of::<libc::sockaddr_in6>(), IPV6.bytes());
        for shape in ALL.into_iter().chain(SHORT) {
            assert!(shape.squeeze(&made(shape, &[7])).unwrap().len() <= LOWER_ADDRESS_MOST, "{}", shape.name);
        }
    }

    #[test]
    fn short_addresses_of_no_known_kind_stay_as_they_are() {
        assert_eq!(Squeezing::of(&[], &ALL).unwrap_err(), NoRoom::Empty);
        for bytes in [8, 16, 24, 32] {
            let address = vec![9; bytes];
            let (squeezing, squeezed) = Squeezing::of(&address, &ALL).unwrap();
            assert_eq!((squeezed.as_bytes(), squeezing.expand(&squeezed)), (&address[..], Some(address.clone())));
            assert_eq!(squeezing.expand(&LowerAddress::new(&[9; 20]).unwrap()), None, "of another length");
        }
        assert_eq!(Squeezing::of(&[9; 33], &ALL).unwrap_err(), NoRoom::Unknown(33));
        let (mut opx, clean) = (made(&OPX, &[5]), made(&OPX, &[5]));
        opx[1] = 77;
        assert_eq!(Squeezing::of(&opx, &ALL).unwrap().1, Squeezing::of(&clean, &ALL).unwrap().1, "no one reads that");
    }

    #[test]
    fn bytes_that_should_say_nothing_and_do_are_never_dropped() {
        let mut address = made(&INFINIBAND, &[1]);
        address[34] = 0;
        let refused = Squeezing::of(&address, &ALL).unwrap_err();
        assert_eq!(refused, NoRoom::Unusual("an InfiniBand address"));
        assert!(refused.to_string().contains("looks like an InfiniBand address"), "{refused}");
        // One that is short enough stays whole.
        for shape in SHORT {
            let (clean, mut other) = (made(shape, &[3]), made(shape, &[3]));
            assert!(Squeezing::of(&clean, &[shape]).unwrap().1.as_bytes().len() <= 24, "with room for settings");
            other[31] = 1;
            let (squeezing, squeezed) = Squeezing::of(&other, &[shape]).unwrap();
            assert_eq!((squeezed.as_bytes(), squeezing.expand(&squeezed)), (&other[..], Some(other.clone())));
        }
        let mut address = made(&IPV6, &[1]);
        address[5] = 1;
        let (squeezing, squeezed) = Squeezing::of(&address, &ALL).unwrap();
        assert_eq!((squeezed.as_bytes(), squeezing.expand(&squeezed)), (&address[..], Some(address.clone())));
    }
}
