//! P table 3: memory per receiver, measured from the flow control and the mailbox that run under MPI.

use tidegate_flow::{Config, FlowControl, PACKET_BYTES, SchemeName};
use tidegate_sim::SimulationError;

use super::p_fig20_27::{MOST, enough_slots};
use crate::curve::figure;
use crate::report::{Fact, Figure, Findings, Series, Table};
use crate::workshop::Workshop;

const MEBIBYTE: f64 = 1_048_576.0;

/// Processes, and the paper's MB under `static` with 64 and `dynamic` with 16 slots.
const ROWS: [(u32, f64, f64); 5] = [
    (1 << 10, 4.0, 1.14),
    (1 << 12, 16.0, 4.6),
    (1 << 14, 64.0, 18.3),
    (1 << 16, 256.0, 73.3),
    (1 << 18, 1024.0, 293.5),
];

/// Slots per peer that the paper grants each scheme, because its fig. 27 finds that each needs them.
const STATIC_SLOTS: u32 = 64;
const DYNAMIC_SLOTS: u32 = 16;

/// Bytes of one receiver among `processes`: its flow control, which is built, and its mailbox.
struct Receiver {
    bookkeeping: usize,
    mailbox: usize,
}

impl Receiver {
    fn build(scheme: SchemeName, slots_per_peer: u32, processes: u32) -> Result<Self, SimulationError> {
        let config = Config { piggyback: true, ..Config::new(scheme, processes - 1, slots_per_peer, 2) };
        let refused = |error: tidegate_flow::ConfigError| SimulationError::Setup(error.to_string());
        let control = FlowControl::new(&config).map_err(refused)?;
        let slots = config.regions().map_err(refused)?.mailbox as usize;
        Ok(Receiver { bookkeeping: control.bookkeeping_bytes(), mailbox: slots * PACKET_BYTES })
    }

    fn mebibytes(&self) -> f64 {
        (self.bookkeeping + self.mailbox) as f64 / MEBIBYTE
    }
}

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let columns = [
        "processes",
        "static, paper MB",
        "static, MiB",
        "of it book-keeping, B per sender",
        "dynamic, paper MB",
        "dynamic, MiB",
        "of it book-keeping, B per sender",
    ];
    let mut table = Table::new("table3", "Memory per receiver: mailbox and book-keeping", &columns);
    let (mut fixed, mut moving, mut bookkeeping) = (Vec::new(), Vec::new(), Vec::new());
    for (processes, paper_static, paper_dynamic) in ROWS {
        let static_receiver = Receiver::build(SchemeName::Static, STATIC_SLOTS, processes)?;
        let dynamic_receiver = Receiver::build(SchemeName::Dynamic, DYNAMIC_SLOTS, processes)?;
        let per_sender = [&static_receiver, &dynamic_receiver]
            .map(|receiver| receiver.bookkeeping as f64 / f64::from(processes - 1));
        table.row([
            processes.to_string(),
            paper_static.to_string(),
            format!("{:.2}", static_receiver.mebibytes()),
            format!("{:.1}", per_sender[0]),
            paper_dynamic.to_string(),
            format!("{:.2}", dynamic_receiver.mebibytes()),
            format!("{:.1}", per_sender[1]),
        ]);
        bookkeeping.push(per_sender);
        fixed.push((f64::from(processes), static_receiver.mebibytes()));
        moving.push((f64::from(processes), dynamic_receiver.mebibytes()));
    }
    let mut facts = facts(&fixed, &moving, &bookkeeping);
    facts.push(at_equal_overhead(enough_slots(workshop)?)?);
    let paper = |value: fn(&(u32, f64, f64)) -> f64| ROWS.map(|row| (f64::from(row.0), value(&row)));
    let series = vec![
        Series::paper("static, 64 slots, paper", "static", paper(|row| row.1)),
        Series::new("static, 64 slots", fixed),
        Series::paper("dynamic, 16 slots, paper", "dynamic", paper(|row| row.2)),
        Series::new("dynamic, 16 slots", moving),
    ];
    let figure = Figure {
        is_computed: true,
        x_axis: "processes".to_owned(),
        ..figure("table3", "Memory per receiver", "MiB", series)
    };
    let setup = format!(
        "For each number of processes the flow control of one receiver is built as it runs under MPI, and the heap \
         that it takes once all senders have talked is counted; a mailbox slot has {PACKET_BYTES} bytes. static with {STATIC_SLOTS}, dynamic with {DYNAMIC_SLOTS} \
         slots per sender, which is what the paper finds each to need for {MOST} % overhead; the last statement takes the \
         slots that our figure 27 finds, from its runs. Our book-keeping covers both \
         roles of a process, as receiver and as sender; the paper counts the receiver's. All but the slots of figure 27 is computed: \
         no seed and no noise changes it."
    );
    Ok(Findings { setup, figures: vec![figure], tables: vec![table], facts })
}

/// What eq. 7 and table 3 say; `bookkeeping` has the bytes per sender of both schemes, static first, by number of
/// processes.
fn facts(fixed: &[(f64, f64)], moving: &[(f64, f64)], bookkeeping: &[[f64; 2]]) -> Vec<Fact> {
    const BOTH_ROLES: &str = "Ours serves both roles of a process, and also holds the queue of credit packets that wait to be \
        written and the sender's credits; the paper counts a receiver's counters.";
    let most = |paper: fn(&(u32, f64, f64)) -> f64, ours: &[(f64, f64)]| {
        let ratios = ROWS.iter().zip(ours).map(|(row, ours)| ours.1 / paper(row));
        ratios.fold(0.0, |most: f64, ratio| most.max(ratio))
    };
    let (of_static, of_dynamic) = (most(|row| row.1, fixed), most(|row| row.2, moving));
    let [per_sender, of_moving] =
        [0, 1].map(|scheme| bookkeeping.iter().map(|each| each[scheme]).fold(0.0, |most: f64, each| most.max(each)));
    let heavier = of_moving / per_sender;
    let facts = [
        Fact::tested(
            "The structures of static take 4n + 2 bytes (eq. 7; ours at most as much, per sender).",
            per_sender <= 4.0,
            "4 B per sender",
            format!("{per_sender:.1} B per sender"),
        )
        .because(BOTH_ROLES),
        Fact::tested(
            "Those of dynamic take 150n bytes (eq. 7; ours at most as much, per sender).",
            of_moving <= 150.0,
            "150 B per sender",
            format!("{of_moving:.1} B per sender"),
        ),
        Fact::tested(
            "Those of dynamic are about 37 times as large (within a quarter).",
            (0.75..=1.25).contains(&(heavier / 37.0)),
            "37",
            format!("{heavier:.1}"),
        )
        .because(BOTH_ROLES),
        Fact::tested(
            "In all, static with 64 and dynamic with 16 slots take what table 3 says (within a tenth).",
            [of_static, of_dynamic].iter().all(|ratio| (ratio - 1.0).abs() < 0.1),
            "1",
            format!("static {of_static:.3}, dynamic {of_dynamic:.3} of the paper's"),
        )
        .implied("Computed: nearly all of it are the slots, which these numbers of them decide."),
    ];
    facts.map(Fact::computed).into()
}

/// Memory with the slots that each scheme needs for the same overhead, as our figure 27 finds them.
fn at_equal_overhead(slots: [Option<u32>; 2]) -> Result<Fact, SimulationError> {
    const STATEMENT: &str = "At equal overhead, with the slots that figure 27 finds here, dynamic needs less than a third \
        of static's memory at every size.";
    let paper = format!("{:.1} times less, with {STATIC_SLOTS} and {DYNAMIC_SLOTS} slots", ROWS[4].1 / ROWS[4].2);
    let words = |slots: Option<u32>| slots.map_or("more than 64".to_owned(), |slots| slots.to_string());
    let found = format!("static {} slots, dynamic {}", words(slots[0]), words(slots[1]));
    let [Some(fixed), Some(moving)] = slots else {
        let why = format!("Figure 27 says of one scheme only that it needs more slots than it tries: {found}.");
        return Ok(Fact::not_run(STATEMENT, &paper, &why));
    };
    let mut least = f64::MAX;
    for (processes, ..) in ROWS {
        let [fixed, moving] = [(SchemeName::Static, fixed), (SchemeName::Dynamic, moving)]
            .map(|(scheme, slots)| Receiver::build(scheme, slots, processes).map(|receiver| receiver.mebibytes()));
        least = least.min(fixed? / moving?);
    }
    let here = format!("{least:.1} times less: {found}");
    Ok(Fact::tested(STATEMENT, least > 3.0, paper, here)
        .because(
            "The slots are those of figure 27 with this many processes: what is different there is different here.",
        )
        .implied("Follows from figure 27: its slots decide nearly all of the memory."))
}
