//! [`NetworkParameters`]: every number of the network model, named, with its unit.

use crate::Time;

/// A rate of data, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bandwidth(pub u64);

impl Bandwidth {
    /// A rate in megabytes (10⁶ bytes) per second.
    #[must_use]
    pub const fn from_megabytes(megabytes: u64) -> Self {
        Bandwidth(megabytes * 1_000_000)
    }

    /// How long `bytes` take, rounded up to a whole picosecond, and never nothing at all.
    #[must_use]
    pub fn time_of(self, bytes: u32) -> Time {
        Time((u128::from(bytes) * 1_000_000_000_000).div_ceil(u128::from(self.0)).max(1) as u64)
    }
}

/// The network between the nodes. See [`Network`](crate::Network) for what happens at each step of a packet's way.
///
/// [`NetworkParameters::extoll`] is the set for the machine of P.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkParameters {
    /// Rate of each direction of a link between two routers.
    pub link_bandwidth: Bandwidth,
    /// From a router's output to the next one's input, for the first byte of a packet, and for a link-level credit
    /// back.
    pub link_latency: Time,
    /// From the first byte at a router's input to the moment it can leave by a free output.
    pub router_latency: Time,
    /// Rate at which a network interface hands packets to its router. A packet is handed over whole.
    pub injection_bandwidth: Bandwidth,
    /// From the network interface to the router's input, in addition to the time that the bytes take.
    pub injection_latency: Time,
    /// Rate at which a router hands packets to the network interface. A packet is received whole before.
    pub extraction_bandwidth: Bandwidth,
    /// From the router to the extraction buffer, in addition to the time that the bytes take, and for a credit back.
    pub extraction_latency: Time,
    /// Bytes on the wire beside the payload: header, routing, checksum.
    pub packet_overhead_bytes: u32,
    /// What a packet's size on the wire is rounded up to a multiple of: the network's flit or cell.
    pub packet_granule_bytes: u32,
    /// Virtual channels of each link. On a mesh all are lanes among which destinations are divided; on a torus half
    /// of them are, and the other half is for packets that crossed a dateline, so the number must be even.
    pub virtual_channels: u8,
    /// Packets that a router's input can hold, for each virtual channel.
    pub channel_buffer_packets: u16,
    /// Packets that wait in a network interface to leave the node.
    pub injection_buffer_packets: u16,
    /// Packets that wait in a network interface for a place in a mailbox.
    pub extraction_buffer_packets: u16,
}

impl NetworkParameters {
    /// EXTOLL on FPGAs, the machine of P (§2): two virtual channels, 86.9 ns per hop, which is what P's two anchors of
    /// multi-pingpong leave for a hop ((51.17 − 50.04) µs / 13). P gives no rate of a link, but all of that difference
    /// shows only if links are far from busy ([`calibration`](crate::calibration) has more). The other numbers are
    /// assumptions in the range of that generation: 16 bytes around a 56-byte payload, cells of 8 bytes, buffers that
    /// cover the round trip of a credit.
    #[must_use]
    pub fn extoll() -> Self {
        NetworkParameters {
            link_bandwidth: Bandwidth::from_megabytes(2_000),
            link_latency: Time(30_000),
            router_latency: Time(56_900),
            injection_bandwidth: Bandwidth::from_megabytes(1_600),
            injection_latency: Time(20_000),
            extraction_bandwidth: Bandwidth::from_megabytes(1_600),
            extraction_latency: Time(20_000),
            packet_overhead_bytes: 16,
            packet_granule_bytes: 8,
            virtual_channels: 2,
            channel_buffer_packets: 16,
            injection_buffer_packets: 32,
            extraction_buffer_packets: 32,
        }
    }

    /// The network of L (§6.1): one chip of eight ports, links of 10 Gb/s, of which 8 Gb/s are data. What L does not
    /// tell is assumed: the delay of the chip, the time that an adapter takes beside the bytes' (in the latencies of
    /// injection and extraction), and buffers that hold what is under way meanwhile. InfiniBand puts some 30 bytes
    /// around 1 KiB; here they are spread over the packets of 64 bytes that a message is cut into.
    #[must_use]
    pub fn infiniband2003() -> Self {
        NetworkParameters {
            link_bandwidth: Bandwidth::from_megabytes(1_000),
            link_latency: Time(20_000),
            router_latency: Time(160_000),
            injection_bandwidth: Bandwidth::from_megabytes(1_000),
            injection_latency: Time(1_700_000),
            extraction_bandwidth: Bandwidth::from_megabytes(1_000),
            extraction_latency: Time(1_500_000),
            packet_overhead_bytes: 4,
            packet_granule_bytes: 4,
            virtual_channels: 1,
            channel_buffer_packets: 256,
            injection_buffer_packets: 256,
            extraction_buffer_packets: 256,
        }
    }

    /// The network of A (§4.1): a switch of 144 ports, which is made of chips of 24 ports, so that a packet crosses one
    /// or three of them; links of 20 Gb/s, of which 16 Gb/s are data. Here it is one switch with the delay of three
    /// chips. What A does not tell is assumed as in [`infiniband2003`](Self::infiniband2003).
    #[must_use]
    pub fn infiniband2007() -> Self {
        NetworkParameters {
            link_bandwidth: Bandwidth::from_megabytes(2_000),
            router_latency: Time(420_000),
            injection_bandwidth: Bandwidth::from_megabytes(2_000),
            injection_latency: Time(600_000),
            extraction_bandwidth: Bandwidth::from_megabytes(2_000),
            extraction_latency: Time(500_000),
            ..NetworkParameters::infiniband2003()
        }
    }

    /// Bytes that a packet with `payload_bytes` occupies on the wire.
    #[inline]
    #[must_use]
    pub fn wire_bytes(&self, payload_bytes: u32) -> u32 {
        (payload_bytes + self.packet_overhead_bytes).next_multiple_of(self.packet_granule_bytes)
    }
}

/// The times of all packet sizes below [`SHORT`](Rate::SHORT) bytes, computed once: that saves a division per hop.
#[derive(Debug)]
pub(crate) struct Rate {
    bandwidth: Bandwidth,
    short: [Time; Rate::SHORT],
}

impl Rate {
    const SHORT: usize = 128;

    pub fn new(bandwidth: Bandwidth) -> Self {
        Rate { bandwidth, short: std::array::from_fn(|bytes| bandwidth.time_of(bytes as u32)) }
    }

    #[inline]
    pub fn time_of(&self, bytes: u32) -> Time {
        self.short.get(bytes as usize).copied().unwrap_or_else(|| self.bandwidth.time_of(bytes))
    }
}
