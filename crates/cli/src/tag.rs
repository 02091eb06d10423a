//! What the match bits of a message say: each MPI packs communicator, source and tag into the 64 bits of a tag in its
//! own way.
//!
//! | MPI | tag | communicator | source | protocol | tried with |
//! |---|---|---|---|---|---|
//! | MPICH (ch4:ofi) | bits 0–30 | 31–50 | none | 51, 54 | 5.0.2 |
//! | Intel MPI | 0–19 | 20–39 | 40–59 | 60, 61 | 2021.18.1 |
//! | Open MPI (mtl/ofi, `ofi_tag_full`) | 0–31, signed | 34–63 | none | 32, 33 | 5.0.11 |
//!
//! MPICH and Open MPI leave the source to the completion data, which the provider carries. Negative tags are those of
//! Open MPI's own collectives. The other two have contexts: the lowest bit is set for collectives, the next three say
//! which part of a communicator it is (ranks of one host, one of each), and the rest is its number.

use crate::mpi::MpiKind;

/// The bits of a tag that say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The program's tag; `None`: any.
    pub tag: Option<i64>,
    /// Which communicator, as the MPI numbers them; 0 is MPI_COMM_WORLD.
    pub communicator: u64,
    /// Whether it is a message of a collective call.
    pub is_collective: bool,
    /// Whether it belongs to the MPI's own protocol: a synchronous send or its receipt.
    pub protocol: Option<&'static str>,
}

/// Where an MPI puts what.
struct Layout {
    tag_bits: u32,
    is_signed: bool,
    communicator_at: u32,
    communicator_bits: u32,
    has_contexts: bool,
    protocols: &'static [(u64, &'static str)],
}

const MPICH: Layout = Layout {
    tag_bits: 31,
    is_signed: false,
    communicator_at: 31,
    communicator_bits: 20,
    has_contexts: true,
    protocols: &[(1 << 54, "synchronous"), (1 << 51, "receipt of a synchronous send")],
};

const INTEL_MPI: Layout = Layout {
    tag_bits: 20,
    is_signed: false,
    communicator_at: 20,
    communicator_bits: 20,
    has_contexts: true,
    protocols: &[(1 << 61, "synchronous"), (1 << 60, "receipt of a synchronous send")],
};

const OPEN_MPI: Layout = Layout {
    tag_bits: 32,
    is_signed: true,
    communicator_at: 34,
    communicator_bits: 30,
    has_contexts: false,
    protocols: &[(1 << 32, "synchronous"), (1 << 33, "receipt of a synchronous send")],
};

fn part(bits: u64, at: u32, count: u32) -> u64 {
    bits >> at & ((1 << count) - 1)
}

/// What the match bits of a message or receive say.
pub fn parse(mpi: MpiKind, bits: u64, ignore: u64) -> Tag {
    let layout = match mpi {
        MpiKind::Mpich => &MPICH,
        MpiKind::IntelMpi => &INTEL_MPI,
        MpiKind::OpenMpi => &OPEN_MPI,
    };
    let &Layout { tag_bits, is_signed, communicator_at, communicator_bits, has_contexts, protocols } = layout;
    let low = part(bits, 0, tag_bits);
    let tag = if is_signed { i64::from(low as u32 as i32) } else { low as i64 };
    // A receive with any tag accepts none of the negative ones.
    let program_bits = if is_signed { tag_bits - 1 } else { tag_bits };
    let is_any = part(ignore, 0, program_bits) == part(u64::MAX, 0, program_bits);
    let context = part(bits, communicator_at, communicator_bits);
    let protocol = protocols.iter().find(|(bit, _)| bits & bit & !ignore != 0).map(|(_, name)| *name);
    let (communicator, is_collective) = match has_contexts {
        true => (context >> 4, context & 1 != 0),
        false => (context, tag < 0 && !is_any),
    };
    Tag { tag: (!is_any).then_some(tag), communicator, is_collective, protocol }
}

/// What the match bits of a message or receive say, in words: "tag 7, communicator 0". Without an MPI the bits
/// themselves; without bits (`None`), that there are none.
pub fn decode(mpi: Option<MpiKind>, bits: Option<u64>, ignore: u64) -> String {
    let Some(bits) = bits else { return "untagged".to_owned() };
    let Some(mpi) = mpi else {
        return match ignore {
            0 => format!("tag {bits:#x}"),
            _ => format!("tag {bits:#x} but for {ignore:#x}"),
        };
    };
    let Tag { tag, communicator, is_collective, protocol } = parse(mpi, bits, ignore);
    let mut text = tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
    text += &match (is_collective, communicator) {
        (true, 0) => ", collective of MPI_COMM_WORLD".to_owned(),
        (true, number) => format!(", collective of communicator {number}"),
        (false, 0) => ", MPI_COMM_WORLD".to_owned(),
        (false, number) => format!(", communicator {number}"),
    };
    if let Some(protocol) = protocol {
        text += &format!(", {protocol}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Match bits and ignored bits as a program under each MPI has shown them, and what it had asked for: see
    /// `tests/test_open_at_the_end.py`, which asks again.
    const SEEN: [(MpiKind, u64, u64, &str); 16] = [
        (MpiKind::Mpich, 0x65, 0xc0_0000_0000_0000, "tag 101, MPI_COMM_WORLD"),
        (MpiKind::Mpich, 0xf8_0000_0066, 0xc0_0000_0000_0000, "tag 102, communicator 31"),
        (MpiKind::Mpich, 0xf0_0000_0000, 0xc0_0000_7fff_ffff, "any tag, communicator 30"),
        (MpiKind::Mpich, 0x8000_0001, 0xc0_0000_0000_0000, "tag 1, collective of MPI_COMM_WORLD"),
        (MpiKind::Mpich, 0x40_0000_0000_00c9, 0, "tag 201, MPI_COMM_WORLD, synchronous"),
        (MpiKind::Mpich, 0x8_0000_0000_00c9, 0, "tag 201, MPI_COMM_WORLD, receipt of a synchronous send"),
        (MpiKind::IntelMpi, 0x65, 0x6000_0000_0000_0000, "tag 101, MPI_COMM_WORLD"),
        (MpiKind::IntelMpi, 0x200_1e00_0067, 0x6000_0000_0000_0000, "tag 103, communicator 30"),
        (MpiKind::IntelMpi, 0x1f00_0000, 0x6fff_ff00_000f_ffff, "any tag, communicator 31"),
        (MpiKind::IntelMpi, 0x100_0010_0001, 0x6000_0000_0000_0000, "tag 1, collective of MPI_COMM_WORLD"),
        (MpiKind::IntelMpi, 0x2000_0000_0000_00c9, 0, "tag 201, MPI_COMM_WORLD, synchronous"),
        (MpiKind::IntelMpi, 0x1000_0100_0000_00c9, 0, "tag 201, MPI_COMM_WORLD, receipt of a synchronous send"),
        (MpiKind::OpenMpi, 0x4d, 0x1_0000_0000, "tag 77, MPI_COMM_WORLD"),
        (MpiKind::OpenMpi, 0xc_0000_0000, 0x1_7fff_ffff, "any tag, communicator 3"),
        (MpiKind::OpenMpi, 0xffff_fff0, 0x1_0000_0000, "tag -16, collective of MPI_COMM_WORLD"),
        (MpiKind::OpenMpi, 0x1_0000_00c9, 0, "tag 201, MPI_COMM_WORLD, synchronous"),
    ];

    #[test]
    fn match_bits_of_each_mpi_say_what_was_asked_for() {
        for (mpi, bits, ignore, said) in SEEN {
            assert_eq!(decode(Some(mpi), Some(bits), ignore), said, "{mpi:?} {bits:#x} {ignore:#x}");
        }
    }

    #[test]
    fn bits_of_an_unknown_mpi_are_shown_as_they_are() {
        assert_eq!(decode(None, Some(0x4d), 0), "tag 0x4d");
        assert_eq!(decode(None, Some(0x4d), 0xf), "tag 0x4d but for 0xf");
        assert_eq!(decode(Some(MpiKind::Mpich), None, 0), "untagged");
    }
}
