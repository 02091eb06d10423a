//! [`Setting`]: a scheme, how much of what it lends, and the bound on receive memory: in the simulator, and as options
//! of `tidegate run`.

use std::time::Duration;

use tidegate_flow::{Buffers, Config, ReceiverResource, SchemeName};
use tidegate_link::ShmLink;
use tidegate_message::{Endpoint, EndpointConfig};
use tidegate_sim::{FlowChoice, SimulationConfig, SimulationError};

/// What is chosen of a scheme beside its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// `--slots`.
    Slots,
    /// `--buffers`.
    Buffers,
    /// `--buffers-most`; with how many buffers connections begin costs no memory.
    BuffersMost,
    /// `--pool-most`.
    PoolMost,
    /// `--pool-slots`.
    PoolSlots,
}

/// The defaults of the library that a machine file may change ([flow] eager, credit_slots).
const EAGER_BYTES: usize = 2048;
const CREDIT_SLOTS: u32 = 2;
/// The library's first window of a pool.
const POOL_FIRST: u32 = 8;

/// What is tried of slots and buffers, where the user does not say it: steps of a fifth to a third.
const SLOTS: [u32; 24] =
    [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512, 1024];
/// With how many buffers connections begin that get more: with one as a rule, and with more where that is not enough. A
/// message that finds none is tried again after a time in which short programs end.
const BEGINNINGS: [u32; 3] = [1, 2, 4];
const BUFFERS: [u32; 22] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100, 128, 192, 256, 512];
const POOL: [u32; 20] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096];
/// Not fewer: in the simulator interfaces answer at once, and here the processes have to, which costs time with each
/// invitation to a pool of a few slots (42 s instead of one in a flood over hosts with 16).
const POOL_SLOTS: [u32; 12] = [512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384, 32768, 65536];

impl Knob {
    /// That of a scheme.
    pub fn of(scheme: SchemeName) -> Self {
        match scheme.lends() {
            ReceiverResource::GrowingBuffers => Knob::BuffersMost,
            ReceiverResource::PoolBuffers => Knob::PoolMost,
            ReceiverResource::PoolSlots => Knob::PoolSlots,
            ReceiverResource::Buffers | ReceiverResource::CreditedBuffers => Knob::Buffers,
            ReceiverResource::Nothing | ReceiverResource::FixedSlots | ReceiverResource::MovingSlots => Knob::Slots,
        }
    }

    /// The option by which users set it.
    pub fn option(self) -> &'static str {
        match self {
            Knob::Slots => "--slots",
            Knob::Buffers => "--buffers",
            Knob::BuffersMost => "--buffers-most",
            Knob::PoolMost => "--pool-most",
            Knob::PoolSlots => "--pool-slots",
        }
    }

    /// The noun for several of them: `slots`.
    pub fn plural(self) -> &'static str {
        match self {
            Knob::Slots | Knob::PoolSlots => "slots",
            Knob::Buffers | Knob::BuffersMost | Knob::PoolMost => "buffers",
        }
    }

    /// With how many buffers connections begin, one after the other until it is enough; 0: they begin with all.
    pub fn beginnings(self) -> &'static [u32] {
        if self == Knob::BuffersMost { &BEGINNINGS } else { &[0] }
    }

    /// All that `--all` tries, from the least on.
    pub fn usual(self) -> Vec<u32> {
        let steps: &[u32] = match self {
            Knob::Slots => &SLOTS,
            Knob::Buffers | Knob::BuffersMost => &BUFFERS,
            Knob::PoolMost => &POOL,
            Knob::PoolSlots => &POOL_SLOTS,
        };
        steps.to_vec()
    }

    /// The steps of a search, from the least on: powers of two, and the middle between each two. The margin is
    /// larger than such a step.
    pub fn ladder(self) -> Vec<u32> {
        let is_step =
            |amount: &u32| amount.is_power_of_two() || (amount.is_multiple_of(3) && (amount / 3).is_power_of_two());
        self.usual().into_iter().filter(is_step).collect()
    }
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// The scheme.
    pub scheme: SchemeName,
    /// How much of what its knob says.
    pub amount: u32,
    /// Of `growing`: with how many buffers connections begin. Else 0.
    pub first: u32,
    /// Receive memory beyond the least that is legal, in bytes; `None`: no bound.
    pub room: Option<usize>,
}

/// What a machine file says of flow control that is no choice here.
fn of_file(flow: FlowChoice) -> (u32, bool) {
    match flow {
        FlowChoice::Mailbox { credit_slots, piggyback, .. } => (credit_slots, piggyback),
        FlowChoice::Posted { piggyback, .. } => (CREDIT_SLOTS, piggyback),
        FlowChoice::Unlimited => (CREDIT_SLOTS, true),
    }
}

/// How many of a peer's slots a machine file reserves for credit packets.
pub fn credit_slots(machine: &SimulationConfig) -> u32 {
    of_file(machine.flow).0
}

impl Setting {
    /// This setting on a machine. What the machine says of schemes, slots, buffers and memory does not count.
    ///
    /// # Errors
    /// If it is none that flow control accepts.
    pub fn on(&self, machine: &SimulationConfig) -> Result<SimulationConfig, SimulationError> {
        let (credit_slots, piggyback) = of_file(machine.flow);
        let flow = match self.buffers() {
            Some(buffers) => FlowChoice::Posted { scheme: self.scheme, buffers, piggyback },
            None => FlowChoice::Mailbox {
                scheme: self.scheme,
                slots_per_peer: self.amount,
                credit_slots,
                piggyback: piggyback && self.scheme.lends().has_credits(),
                quota_most: None,
            },
        };
        let mut config = SimulationConfig { flow, receive_memory: None, ..machine.clone() };
        if let Some(room) = self.room {
            config.receive_memory = Some(config.receive_memory_for_all()? + room);
        }
        config.check()?;
        Ok(config)
    }

    fn buffers(&self) -> Option<Buffers> {
        let usual = Buffers::of(self.scheme);
        Some(match Knob::of(self.scheme) {
            Knob::Slots => return None,
            Knob::Buffers => Buffers { per_connection: self.amount, ..usual },
            Knob::BuffersMost => Buffers { per_connection: self.first, per_connection_most: self.amount, ..usual },
            Knob::PoolSlots => Buffers { pool_slots: self.amount, ..usual },
            Knob::PoolMost => Buffers { pool_first: POOL_FIRST.min(self.amount), pool_most: self.amount, ..usual },
        })
    }

    /// The bound on a process's receive memory under the library, in bytes: its least is another one than the
    /// simulator's, and beyond that both are alike. `None` if there is no bound, or flow control refuses the setting.
    pub fn memory(&self, machine: &SimulationConfig) -> Option<usize> {
        let (credit_slots, piggyback) = of_file(machine.flow);
        let peers = machine.size() - 1 + machine.spare_peers;
        let own = Config::new(self.scheme, peers, self.amount, credit_slots);
        let flow = match self.buffers() {
            Some(buffers) => Config { buffers, ..Config::new(self.scheme, peers, 0, 0) },
            None => own,
        };
        let endpoint = EndpointConfig {
            flow: Config { piggyback, ..flow },
            eager_bytes: machine.eager_bytes,
            operations: 0,
            receive_memory: 0,
            patience: Duration::ZERO,
            packets_per_progress: 0,
            bulk_bytes_per_progress: 0,
        };
        let least = Endpoint::<ShmLink>::receive_memory_for_all(&endpoint).ok()?;
        Some(in_kibibytes(least + self.room?) << 10)
    }

    /// What is chosen of the scheme: `16 slots`.
    pub fn in_words(&self) -> String {
        let amount = self.amount;
        match Knob::of(self.scheme) {
            Knob::Slots => format!("{amount} slots"),
            Knob::BuffersMost if self.first < amount => format!("{} to {amount} buffers", self.first),
            Knob::Buffers | Knob::BuffersMost if amount == 1 => "1 buffer".to_owned(),
            Knob::Buffers | Knob::BuffersMost => format!("{amount} buffers"),
            Knob::PoolMost => format!("pool of {amount}"),
            Knob::PoolSlots => format!("pool of {amount} slots"),
        }
    }

    /// The options of `tidegate run` that make this setting for so many peers.
    pub fn options(&self, machine: &SimulationConfig, peers: u32) -> String {
        let (credit_slots, piggyback) = of_file(machine.flow);
        let mut words =
            vec![format!("--scheme {}", self.scheme), format!("{} {}", Knob::of(self.scheme).option(), self.amount)];
        match Knob::of(self.scheme) {
            Knob::BuffersMost if self.first != BEGINNINGS[0] => words.push(format!("--buffers {}", self.first)),
            Knob::PoolMost if self.amount < POOL_FIRST => words.push(format!("--pool-first {}", self.amount)),
            Knob::Slots if credit_slots != CREDIT_SLOTS && self.scheme.lends().has_credits() => {
                words.push(format!("--credit-slots {credit_slots}"));
            }
            _ => {}
        }
        if !piggyback && self.scheme.lends().has_credits() {
            words.push("--piggyback off".to_owned());
        }
        if machine.eager_bytes != EAGER_BYTES {
            words.push(format!("--eager-size {}", machine.eager_bytes));
        }
        words.extend(self.memory(machine).map(|bytes| format!("--rx-memory {}k", bytes >> 10)));
        words.push(format!("--peers {peers}"));
        words.join(" ")
    }
}

/// Rounded up.
fn in_kibibytes(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::machine::Machine;

    fn machine() -> SimulationConfig {
        Machine::read(None).and_then(|machine| machine.of_ranks(8, None)).expect("the bundled machine")
    }

    #[test]
    fn a_setting_is_the_options_that_make_it() {
        let of = |scheme, amount, first, room| Setting { scheme, amount, first, room };
        let setting =
            |scheme, amount, room| of(scheme, amount, Knob::of(scheme).beginnings()[0], room).options(&machine(), 9);
        assert_eq!(setting(SchemeName::Static, 16, None), "--scheme static --slots 16 --peers 9");
        assert_eq!(setting(SchemeName::Growing, 5, None), "--scheme growing --buffers-most 5 --peers 9");
        let two = of(SchemeName::Growing, 5, 2, None);
        assert_eq!(two.options(&machine(), 9), "--scheme growing --buffers-most 5 --buffers 2 --peers 9");
        assert_eq!(two.in_words(), "2 to 5 buffers");
        assert_eq!(of(SchemeName::Rnr, 1, 1, None).in_words(), "1 buffer");
        let pool = setting(SchemeName::SharedWindow, 4, None);
        assert_eq!(pool, "--scheme shared_window --pool-most 4 --pool-first 4 --peers 9");
        let bounded = setting(SchemeName::Dynamic, 16, Some(1000));
        assert!(
            bounded.starts_with("--scheme dynamic --slots 16 --rx-memory ") && bounded.contains("k --peers"),
            "{bounded}"
        );
    }

    #[test]
    fn all_that_is_usual_is_legal_but_the_least_numbers_of_slots() {
        for &scheme in SchemeName::OFFERED {
            let (usual, first) = (Knob::of(scheme).usual(), Knob::of(scheme).beginnings()[0]);
            let legal =
                usual.iter().filter(|&&amount| Setting { scheme, amount, first, room: Some(0) }.on(&machine()).is_ok());
            let refused = usual.len() - legal.count();
            assert!(refused <= 2, "{scheme}: {refused} of {}", usual.len());
        }
    }

    #[test]
    fn more_of_anything_takes_more_memory() {
        let machine = machine();
        for &scheme in SchemeName::OFFERED {
            let (usual, first) = (Knob::of(scheme).usual(), Knob::of(scheme).beginnings()[0]);
            let memory =
                |amount: u32, room: usize| Setting { scheme, amount, first, room: Some(room) }.memory(&machine);
            assert!(usual[3..].windows(2).all(|two| memory(two[0], 0) < memory(two[1], 0)), "{scheme}");
            assert!(memory(16, 0) < memory(16, 5000), "{scheme}");
        }
    }
}
