//! [`Cost`]: what processes and nodes need time for, named, with units and sources.

use crate::parameters::Bandwidth;
use crate::random::Random;
use crate::time::Time;

/// The time that work of processors and network interfaces takes. The network between the interfaces has its own
/// numbers: [`NetworkParameters`](crate::NetworkParameters).
///
/// [`Cost::extoll`] is the set calibrated to the machine of P.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// A send call, up to its first packet.
    pub send_call: Time,
    /// One packet is written to the network interface (P §2: one PIO write).
    pub send_packet: Time,
    /// A receive call: the receive is matched against unexpected messages, or posted.
    pub receive_call: Time,
    /// A look into an empty mailbox.
    pub poll: Time,
    /// One packet is taken out of the mailbox and its payload put where it belongs.
    pub retrieve_packet: Time,
    /// What a data packet of a far peer costs in addition when it is retrieved: it stands for what a library does with
    /// a message's data, which control packets are spared. Of the peers that have sent data,
    /// [`near_peers`](Self::near_peers) are near. Which ones these are is chance, so every data packet costs the mean.
    pub retrieve_far_packet: Time,
    /// Peers whose data, and all that belongs to it, is near at hand.
    pub near_peers: u32,
    /// In addition, for each packet in the mailbox when one is taken out: P §7.4.1 suspects that a mailbox is slower
    /// the further its ends lie apart.
    pub retrieve_waiting: Time,
    /// A message that has arrived whole is handed to the program.
    pub complete_message: Time,
    /// Rate of copying within a process's memory.
    pub copy_bandwidth: Bandwidth,
    /// Rate of combining two operands of a reduction.
    pub combine_bandwidth: Bandwidth,
    /// The credit of one data packet is taken by its sender.
    pub credit_take: Time,
    /// The slot of one data packet is accounted for by its receiver.
    pub credit_count: Time,
    /// Making or handling a control packet, in addition to what sending or retrieving any packet costs.
    pub credit_packet: Time,
    /// Activity lists, thresholds and quotas of `dynamic`, per control packet made (P §6.5).
    pub dynamic_packet: Time,
    /// Whether writing and retrieving control packets takes no processor time either; on the wire they are as ever.
    pub free_control_packets: bool,
    /// A node's network interface takes one packet from a process. All processes of the node share it.
    pub injection: Time,
    /// A node's network interface puts one packet into a mailbox. All processes of the node share it.
    pub extraction: Time,
    /// Whether injection and extraction take turns: both cross one host interface.
    pub shared_host_interface: bool,
    /// Rate at which bulk data crosses the host interface, either way; what it takes comes on top of
    /// [`injection`](Self::injection) and [`extraction`](Self::extraction).
    pub host_bandwidth: Bandwidth,
    /// Bytes of bulk data (P §2: RMA) in one packet of the network.
    pub bulk_frame_bytes: u32,
    /// A process starts a bulk transfer, or learns that one has ended.
    pub bulk_call: Time,
    /// A message within a node, from one process to the other's notice (P §7.2: through shared memory).
    pub local_latency: Time,
    /// Rate of the copies within a node, one on each side.
    pub local_bandwidth: Bandwidth,
}

impl Cost {
    /// The machine of P: EXTOLL on FPGAs, 64 nodes of 16 cores of 2.1 GHz. How near the anchor times come, and why not
    /// nearer: [`calibration`](crate::calibration).
    ///
    /// Calibrated: the costs of a packet, and from where on one is far. Assumed, in the range of that generation and
    /// without much influence on the anchors: all others. Book-keeping of credits is some instructions on state that
    /// the cache may not have.
    #[must_use]
    pub fn extoll() -> Self {
        Cost {
            send_call: Time::from_nanoseconds(2_000),
            send_packet: Time::from_nanoseconds(1_210),
            receive_call: Time::from_nanoseconds(1_000),
            poll: Time::from_nanoseconds(50),
            retrieve_packet: Time::from_nanoseconds(900),
            retrieve_far_packet: Time::from_nanoseconds(5_700),
            near_peers: 105,
            retrieve_waiting: Time::ZERO,
            complete_message: Time::from_nanoseconds(2_000),
            copy_bandwidth: Bandwidth::from_megabytes(2_000),
            combine_bandwidth: Bandwidth::from_megabytes(1_000),
            credit_take: Time::from_nanoseconds(10),
            credit_count: Time::from_nanoseconds(10),
            credit_packet: Time::from_nanoseconds(100),
            dynamic_packet: Time::from_nanoseconds(200),
            free_control_packets: false,
            injection: Time::from_nanoseconds(40),
            extraction: Time::from_nanoseconds(40),
            shared_host_interface: true,
            host_bandwidth: Bandwidth(u64::MAX),
            bulk_frame_bytes: 2048,
            bulk_call: Time::from_nanoseconds(500),
            local_latency: Time::from_nanoseconds(800),
            local_bandwidth: Bandwidth::from_megabytes(1_500),
        }
    }

    /// The cluster of L (§6.1): nodes with two Xeons of 2.4 GHz and MT23108 adapters on PCI-X.
    ///
    /// From L: the bus (64 bit, 133 MHz: 1.067 GB/s, which both directions share). All else is assumed, because L gives
    /// no time of a message in its text: together a message of 4 bytes takes 6.6 µs one way, in the range of that
    /// generation.
    #[must_use]
    pub fn infiniband2003() -> Self {
        Cost {
            send_call: Time::from_nanoseconds(1_500),
            // 56 bytes are copied into a registered buffer, or out of one.
            send_packet: Time::from_nanoseconds(60),
            receive_call: Time::from_nanoseconds(500),
            poll: Time::from_nanoseconds(150),
            retrieve_packet: Time::from_nanoseconds(80),
            retrieve_far_packet: Time::ZERO,
            near_peers: u32::MAX,
            retrieve_waiting: Time::ZERO,
            complete_message: Time::from_nanoseconds(1_300),
            copy_bandwidth: Bandwidth::from_megabytes(800),
            combine_bandwidth: Bandwidth::from_megabytes(400),
            credit_take: Time::from_nanoseconds(10),
            credit_count: Time::from_nanoseconds(10),
            credit_packet: Time::from_nanoseconds(400),
            dynamic_packet: Time::from_nanoseconds(200),
            free_control_packets: false,
            // 64 bytes cross the bus.
            injection: Time::from_nanoseconds(60),
            extraction: Time::from_nanoseconds(60),
            shared_host_interface: true,
            host_bandwidth: Bandwidth::from_megabytes(1_067),
            bulk_frame_bytes: 1024,
            bulk_call: Time::from_nanoseconds(1_000),
            local_latency: Time::from_nanoseconds(1_000),
            local_bandwidth: Bandwidth::from_megabytes(800),
        }
    }

    /// The cluster of A (§4.1): nodes with two processors of 3.7 GHz and MHGA28-1T adapters on PCI Express x8, which
    /// moves 2 GB/s each way. All else is assumed: together a message of 4 bytes takes some 3 µs one way, the longest
    /// that A (§1) gives InfiniBand in general.
    #[must_use]
    pub fn infiniband2007() -> Self {
        Cost {
            send_call: Time::from_nanoseconds(450),
            send_packet: Time::from_nanoseconds(20),
            receive_call: Time::from_nanoseconds(200),
            poll: Time::from_nanoseconds(60),
            retrieve_packet: Time::from_nanoseconds(25),
            complete_message: Time::from_nanoseconds(450),
            copy_bandwidth: Bandwidth::from_megabytes(2_000),
            combine_bandwidth: Bandwidth::from_megabytes(1_000),
            credit_packet: Time::from_nanoseconds(250),
            dynamic_packet: Time::from_nanoseconds(100),
            injection: Time::from_nanoseconds(32),
            extraction: Time::from_nanoseconds(32),
            shared_host_interface: false,
            host_bandwidth: Bandwidth::from_megabytes(2_000),
            bulk_frame_bytes: 2048,
            bulk_call: Time::from_nanoseconds(400),
            local_latency: Time::from_nanoseconds(500),
            local_bandwidth: Bandwidth::from_megabytes(2_000),
            ..Cost::infiniband2003()
        }
    }

    /// What a data packet costs in addition once `peers` have sent data: the probability that its sender is far, 1 −
    /// near_peers / peers, times [`retrieve_far_packet`](Self::retrieve_far_packet).
    pub(crate) fn far(&self, peers: u32) -> Time {
        match peers.saturating_sub(self.near_peers) {
            0 => Time::ZERO,
            beyond => Time(self.retrieve_far_packet.0 * u64::from(beyond) / u64::from(peers)),
        }
    }

    /// The same machine with credits that processors need no time for: what is left of flow control's overhead is
    /// stalls, and the traffic of control packets (P §7.1).
    #[must_use]
    pub fn with_free_credits(self) -> Self {
        Cost {
            credit_take: Time::ZERO,
            credit_count: Time::ZERO,
            credit_packet: Time::ZERO,
            dynamic_packet: Time::ZERO,
            free_control_packets: true,
            ..self
        }
    }

    /// What a packet takes a processor that writes or retrieves it in `span`, if it is a data packet.
    #[inline]
    pub(crate) fn of_packet(&self, span: Time, is_data: bool) -> Time {
        if is_data || !self.free_control_packets { span } else { Time::ZERO }
    }

    /// Nothing costs any time but the network itself.
    #[must_use]
    pub fn free() -> Self {
        let infinite = Bandwidth(u64::MAX);
        Cost {
            send_call: Time::ZERO,
            send_packet: Time::ZERO,
            receive_call: Time::ZERO,
            poll: Time::ZERO,
            retrieve_packet: Time::ZERO,
            retrieve_far_packet: Time::ZERO,
            near_peers: u32::MAX,
            retrieve_waiting: Time::ZERO,
            complete_message: Time::ZERO,
            copy_bandwidth: infinite,
            combine_bandwidth: infinite,
            credit_take: Time::ZERO,
            credit_count: Time::ZERO,
            credit_packet: Time::ZERO,
            dynamic_packet: Time::ZERO,
            free_control_packets: false,
            injection: Time::ZERO,
            extraction: Time::ZERO,
            shared_host_interface: false,
            host_bandwidth: infinite,
            bulk_frame_bytes: 2048,
            bulk_call: Time::ZERO,
            local_latency: Time::ZERO,
            local_bandwidth: infinite,
        }
    }
}

/// Receivers that take packets out of their mailbox more slowly than the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowReceivers {
    /// How many of a thousand processes, rounded, but one at least if any; which ones is drawn with the run's seed.
    pub per_mille: u32,
    /// What retrieving a packet takes them in addition.
    pub delay: Time,
}

/// The users of a seed beside others ([`Random::stream`]).
const SLOW_STREAM: u64 = 1 << 40;

impl SlowReceivers {
    /// Which of so many processes are slow.
    pub(crate) fn drawn(&self, processes: u32, seed: u64) -> Vec<bool> {
        let rounded = (u64::from(self.per_mille) * u64::from(processes) + 500) / 1000;
        let count = rounded.max(u64::from(self.per_mille > 0)).min(processes.into());
        let mut is_slow = vec![false; processes as usize];
        for rank in &Random::stream(seed, SLOW_STREAM).permutation(processes)[..count as usize] {
            is_slow[*rank as usize] = true;
        }
        is_slow
    }
}

/// How long `bytes` take at a rate, rounded down to a picosecond.
pub(crate) fn time_of(bandwidth: Bandwidth, bytes: u64) -> Time {
    Time((u128::from(bytes) * 1_000_000_000_000 / u128::from(bandwidth.0)) as u64)
}

/// What a process spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Activity {
    /// Computing, copying and reducing, as the program says.
    Compute,
    /// Sending messages, credits excepted.
    Send,
    /// Receiving messages, credits excepted.
    Receive,
    /// Credits: the computational part of flow control's overhead (P §7.1).
    Credits,
}

impl Activity {
    /// All of them.
    pub const ALL: [Activity; 4] = [Activity::Compute, Activity::Send, Activity::Receive, Activity::Credits];
}

/// Time by [`Activity`]. The rest of a process's time it waited: for messages, for credits, for its network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent([Time; Activity::ALL.len()]);

impl Spent {
    /// On one activity.
    #[must_use]
    pub fn on(&self, activity: Activity) -> Time {
        self.0[activity as usize]
    }

    /// On all of them.
    #[must_use]
    pub fn total(&self) -> Time {
        self.0.iter().fold(Time::ZERO, |sum, &time| sum + time)
    }

    #[inline]
    pub(crate) fn add(&mut self, activity: Activity, span: Time) {
        self.0[activity as usize] += span;
    }
}
