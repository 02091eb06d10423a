//! Tests the causes that the page on the paper names: the all-to-all of figures 9, 10 and 15 to 18 on a machine of
//! which something was changed, beside the same without flow control.
//!
//! `cargo run --release -p tidegate-sim --example causes -- scheme=dynamic mesh=2x2x2 slots=8,16 seeds=2 near=13`
//!
//! One line for each number of slots: overhead and delayed sends in percent; per message the explicit credit packets,
//! return requests and monitoring points. Each is a mean over the seeds.

use std::collections::BTreeMap;
use std::error::Error;
use std::str::FromStr;

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::Communicator;
use tidegate_sim::workload::collective::{Alltoall, Alltoallv, Barrier, Blocks, alltoall, alltoallv, barrier};
use tidegate_sim::{
    BlockedSender, Cost, FlowChoice, Noise, Outcome, Random, Simulation, SimulationConfig, Task, Time, Topology,
};

/// What can be said, and what is meant where nothing is said.
const DEFAULTS: [(&str, &str); 17] = [
    ("scheme", "static"),
    ("mesh", "2x2x2"),
    ("slots", "8,16,24,30,40,48,56,64"),
    ("seeds", "1"),
    // Noise in percent.
    ("noise", "2.5"),
    // Peers whose data costs no more: 105 on the machine of the figures. Among 128 processes 13 make a packet as dear
    // as it is among 1024.
    ("near", "105"),
    // Whether processors need no time for credits.
    ("free", "false"),
    ("piggyback", "false"),
    ("bytes", "2048"),
    // All processes divided by this many take part.
    ("part", "1"),
    ("warm_up", "1"),
    ("repetitions", "1"),
    // Whether it begins amid a program (0: no; else packets of that program's messages).
    ("amid", "0"),
    // Whether messages of random lengths follow the warm-up.
    ("mixed", "false"),
    // Whether processes of a node reach each other through memory.
    ("local", "false"),
    // plain, or posted.
    ("form", "plain"),
    // Whether a sender retrieves its own packets while the network does not take its packets.
    ("retrieves", "false"),
];

struct Options(BTreeMap<String, String>);

impl Options {
    fn get<T: FromStr>(&self, name: &str) -> Result<T, Box<dyn Error>> {
        let text = &self.0[name];
        text.parse().map_err(|_| format!("{name}={text} makes no sense").into())
    }
}

/// What every process does.
#[derive(Clone, Copy)]
struct Plan {
    bytes: u64,
    part: u32,
    warm_up: u32,
    repetitions: u32,
    is_mixed: bool,
    form: Alltoall,
}

async fn program(task: Task, plan: Plan) {
    let world = Communicator::world(&task);
    let active = task.size() / plan.part;
    barrier(&world, Barrier::Dissemination).await;
    if let Some(group) = Communicator::range(&task, 1, 0, active) {
        let bytes = plan.bytes * u64::from(active);
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        for _ in 0..plan.warm_up {
            alltoall(&group, plan.form, out, into, plan.bytes).await;
        }
        if plan.is_mixed {
            let length = |from: u32, to: u32| {
                let pair = u64::from(from) << 32 | u64::from(to);
                1 + Random::stream(0x6d69_7865, pair).below(plan.bytes)
            };
            let leaving: Vec<u64> = (0..active).map(|to| length(group.me(), to)).collect();
            let coming: Vec<u64> = (0..active).map(|from| length(from, group.me())).collect();
            let (out, into) = (Blocks { part: out, counts: &leaving }, Blocks { part: into, counts: &coming });
            alltoallv(&group, Alltoallv::Plain, out, into).await;
        }
        if plan.warm_up > 0 {
            barrier(&group, Barrier::Dissemination).await;
        }
        let counters = [
            Counter::MessagesEager,
            Counter::SendsDelayed,
            Counter::CreditPackets,
            Counter::ReturnRequests,
            Counter::MonitoringPoints,
        ];
        let mut before = Vec::new();
        for counter in counters {
            before.push(task.counter(counter).await);
        }
        let begin = task.now();
        for _ in 0..plan.repetitions {
            alltoall(&group, plan.form, out, into, plan.bytes).await;
        }
        task.record("time", 0, task.now().since(begin).microseconds() / f64::from(plan.repetitions));
        for (counter, before) in counters.into_iter().zip(before) {
            task.record(counter.name(), 0, (task.counter(counter).await - before) as f64);
        }
    }
    barrier(&world, Barrier::Dissemination).await;
}

fn config(options: &Options, slots: Option<u32>, seed: u64) -> Result<SimulationConfig, Box<dyn Error>> {
    let sizes: Vec<u16> = options.0["mesh"].split('x').map(str::parse).collect::<Result<_, _>>()?;
    let extoll = SimulationConfig::extoll(Topology::mesh(&sizes)?);
    let cost = Cost { near_peers: options.get("near")?, ..extoll.cost.clone() };
    let is_free = options.get::<bool>("free")? && slots.is_some();
    let (scheme, piggyback) = (options.get::<SchemeName>("scheme")?, options.get("piggyback")?);
    let mailbox =
        |slots_per_peer| FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots: 2, piggyback, quota_most: None };
    let interval = Time::from_microseconds(1_000);
    let duration = Time((interval.0 as f64 * options.get::<f64>("noise")? / 100.0) as u64);
    let amid: u32 = options.get("amid")?;
    Ok(SimulationConfig {
        flow: slots.map_or(FlowChoice::Unlimited, mailbox),
        cost: if is_free { cost.with_free_credits() } else { cost },
        noise: if duration > Time::ZERO { Noise { interval, duration } } else { Noise::default() },
        intra_node_path: options.get("local")?,
        amid_messages_of: (amid > 0).then_some(amid),
        blocked_sender: if options.get("retrieves")? { BlockedSender::Retrieves } else { BlockedSender::Blocks },
        seed,
        ..extoll
    })
}

fn sum(outcome: &Outcome, label: &'static str) -> f64 {
    outcome.samples_of(label).map(|sample| sample.value).sum()
}

fn mean_time(outcome: &Outcome) -> f64 {
    sum(outcome, "time") / outcome.samples_of("time").count() as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options(DEFAULTS.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    for argument in std::env::args().skip(1) {
        let (name, value) = argument.split_once('=').ok_or("options are NAME=VALUE")?;
        *options.0.get_mut(name).ok_or("there is no such option")? = value.to_owned();
    }
    let plan = Plan {
        bytes: options.get("bytes")?,
        part: options.get("part")?,
        warm_up: options.get("warm_up")?,
        repetitions: options.get("repetitions")?,
        is_mixed: options.get("mixed")?,
        form: if options.0["form"] == "posted" { Alltoall::Posted } else { Alltoall::Plain },
    };
    let seeds = 1..=options.get::<u64>("seeds")?;
    let run = |slots: Option<u32>, seed: u64| -> Result<Outcome, Box<dyn Error>> {
        let start = move |task: Task| program(task, plan);
        Ok(Simulation::new(config(&options, slots, seed)?, &start)?.run()?)
    };
    let references: Vec<f64> =
        seeds.clone().map(|seed| Ok(mean_time(&run(None, seed)?))).collect::<Result<_, Box<dyn Error>>>()?;
    println!("reference {:.1} µs", references[0]);
    println!("slots  overhead %  delayed %  per message: credit packets  return requests  monitoring points");
    for slots in options.0["slots"].split(',') {
        let slots: u32 = slots.parse()?;
        let mut means = [0.0; 5];
        for (seed, reference) in seeds.clone().zip(&references) {
            let outcome = run(Some(slots), seed)?;
            let per_message =
                |counter: Counter| sum(&outcome, counter.name()) / sum(&outcome, Counter::MessagesEager.name());
            let found = [
                100.0 * (mean_time(&outcome) / reference - 1.0),
                100.0 * per_message(Counter::SendsDelayed),
                per_message(Counter::CreditPackets),
                per_message(Counter::ReturnRequests),
                per_message(Counter::MonitoringPoints),
            ];
            means.iter_mut().zip(found).for_each(|(mean, value)| *mean += value / references.len() as f64);
        }
        let [overhead, delayed, credits, requests, points] = means;
        println!("{slots:5}  {overhead:10.1}  {delayed:9.1}  {credits:27.2}  {requests:15.2}  {points:17.2}");
    }
    Ok(())
}
