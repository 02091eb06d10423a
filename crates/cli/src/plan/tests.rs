//! The recommendations for three patterns are run again: compared are simulated times, and counts of simulations and
//! events.

use std::fmt::Write;
use std::sync::{LazyLock, Mutex};

use tidegate_flow::SchemeName;
use tidegate_sim::{NoStore, SimulationConfig};

use super::machine::Machine;
use super::runs::{Outcomes, Permits, Replayed, Runs, Tally, replay};
use super::setting::{Knob, Setting};
use super::*;
use crate::progress::Bar;

const DEFAULT: [SchemeName; 3] = [SchemeName::Dynamic, SchemeName::Static, SchemeName::Speculative];
const OVERHEAD: f64 = 0.03;

/// Ranks 1 and 2 of four send messages of 1,000 bytes to rank 0, which computes first.
fn flood(messages: u32) -> String {
    let mut text = "num_ranks 4\nrank 0 {\nwork: calc 2000000\n".to_owned();
    for (from, tag) in (1..3).flat_map(|from| (0..messages).map(move |tag| (from, tag))) {
        let _ = writeln!(text, "r{from}_{tag}: recv 1000b from {from} tag {tag}\nr{from}_{tag} requires work");
    }
    for rank in 1..3 {
        let _ = writeln!(text, "}}\nrank {rank} {{");
        for tag in 0..messages {
            let _ = writeln!(text, "send 1000b to 0 tag {tag}");
        }
    }
    text + "}\nrank 3 {\ncalc 1000\n}\n"
}

/// In each round all ranks compute for so many nanoseconds, and exchange so many bytes with those at these distances.
fn rounds(ranks: u32, rounds: u32, calc: u32, bytes: u32, distances: &[u32]) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let _ = writeln!(text, "rank {rank} {{");
        for round in 0..rounds {
            let _ = writeln!(text, "c{round}: calc {}", calc + calc / 4 * ((rank + round) % 3));
            for distance in distances.iter().filter(|_| round > 0) {
                let _ = writeln!(text, "c{round} requires r{}_{distance}", round - 1);
            }
            for distance in distances {
                let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
                let _ = writeln!(text, "s{round}_{distance}: send {bytes}b to {to} tag {round}");
                let _ = writeln!(text, "s{round}_{distance} requires c{round}");
                let _ = writeln!(text, "r{round}_{distance}: recv {bytes}b from {from} tag {round}");
                let _ = writeln!(text, "r{round}_{distance} requires c{round}");
            }
        }
        text.push_str("}\n");
    }
    text
}

/// A trace on the bundled machine.
struct Job {
    program: Program,
    machine: SimulationConfig,
}

/// What was planned, and what that cost.
struct Planned {
    wish: Wish,
    ample: Outcomes,
    choices: Vec<Choice>,
    expected: Expected,
    simulations: u64,
    events: u64,
}

impl Job {
    fn new(text: &str) -> Self {
        let program = Program::parse(text).expect("a trace");
        let machine = Machine::read(None).and_then(|machine| machine.of_ranks(program.trace.size(), None));
        Job { program, machine: machine.expect("the bundled machine") }
    }

    /// Plans as the command does without options, but for these slots.
    fn plan(&self, slots: &[u32]) -> Planned {
        let (_, largest) = longer_than(&self.program.trace, self.machine.eager_bytes);
        let margin = Margin::new(&self.machine, largest);
        let wish =
            Wish { overhead: OVERHEAD, slots: slots.to_vec(), pool_slots: Vec::new(), buffers: Vec::new(), margin };
        let (bar, permits, tally) = (Bar::new("plan"), Permits::new(2), Tally::default());
        let runs = Runs {
            trace: &self.program.trace,
            fingerprint: &self.program.fingerprint,
            seeds: 1,
            store: &NoStore,
            bar: &bar,
            permits: &permits,
            missing: None,
            tally: &tally,
        };
        let said = Mutex::new(None);
        let announce = |expected| *said.lock().unwrap() = Some(expected);
        let found = search(&runs, &self.machine, &DEFAULT, &wish, Aim::Recommendation, &announce);
        let (ample, choices) = found.expect("it can be planned");
        let expected = said.into_inner().unwrap().expect("it was said before");
        Planned { wish, ample, choices, expected, simulations: tally.simulations(), events: tally.events() }
    }

    /// The job again, with a setting and a seed.
    fn again(&self, setting: &Setting, seed: u64) -> Replayed {
        let config = SimulationConfig { seed, ..setting.on(&self.machine).expect("a legal setting") };
        replay(&self.program.trace, &config).expect("it ends")
    }

    /// How long it takes, in microseconds.
    fn time(&self, setting: &Setting, seed: u64) -> f64 {
        self.again(setting, seed).measurement.time
    }
}

impl Planned {
    fn findings<'a>(&'a self, job: &'a Job) -> Findings<'a> {
        Findings {
            trace: "job.goal".to_owned(),
            ranks: job.program.trace.size(),
            messages: job.program.trace.messages(),
            long_messages: 0,
            pattern: None,
            machine_name: "the bundled machine",
            machine: &job.machine,
            peers: None,
            wish: &self.wish,
            seeds: 1,
            ample: &self.ample,
            is_all: false,
            choices: &self.choices,
        }
    }
}

/// What a job gets without options, where a few ranks have 64 slots each.
fn defaults() -> Setting {
    Setting { scheme: SchemeName::Dynamic, amount: 64, first: 0, room: Some(64 << 20) }
}

/// Three patterns, and the plans for them.
static PLANNED: LazyLock<[(&str, Job, Planned); 3]> = LazyLock::new(|| {
    let planned = |name, text: String| {
        let job = Job::new(&text);
        let planned = job.plan(&[]);
        (name, job, planned)
    };
    [
        planned("flood to one", flood(200)),
        planned("all-to-all", rounds(8, 10, 2000, 2048, &[1, 2, 3, 4, 5, 6, 7])),
        planned("ring of halo", rounds(8, 40, 2000, 1000, &[1, 7])),
    ]
});

#[test]
fn a_job_with_what_is_recommended_is_not_slower_than_with_the_defaults() {
    for (name, job, planned) in PLANNED.iter() {
        let findings = planned.findings(job);
        let found = findings.recommend().unwrap_or_else(|| panic!("{name}: nothing is enough"));
        for seed in [1, 2, 3] {
            let setting = found.choice.chosen.setting;
            let [recommended, default] = [setting, defaults()].map(|setting| job.time(&setting, seed));
            println!("{name}, seed {seed}: {} takes {recommended:.1} us, the defaults {default:.1} us", found.options);
            assert!(recommended <= (1.0 + OVERHEAD) * default, "{name}, seed {seed}: {recommended} us, {default} us");
        }
        let why = found.why.join(" ");
        let least = found.choice.least.expect("it was searched for").amount;
        assert!(why.contains("The least that was found enough: ") && why.contains(&least.in_words()), "{why}");
    }
}

#[test]
fn each_scheme_gets_twice_the_least_and_what_a_message_takes() {
    for (name, _, planned) in PLANNED.iter() {
        for choice in planned.choices.iter().filter(|choice| choice.is_enough) {
            let (Some(least), setting) = (choice.least, choice.chosen.setting) else { panic!("{name}: {choice:?}") };
            assert!(setting.amount >= 2 * least.amount.amount, "{name}: {setting:?}, {least:?}");
            assert!(setting.room >= least.memory.room.map(|room| 2 * room), "{name}: {setting:?}, {least:?}");
            let message = planned.wish.margin.slots_of_message();
            assert!(Knob::of(choice.scheme) != Knob::Slots || setting.amount >= message.max(16), "{name}: {setting:?}");
        }
    }
}

#[test]
fn what_one_pattern_gets_recommended_does_not_make_another_much_slower() {
    for (name, job, planned) in PLANNED.iter() {
        let setting = planned.findings(job).recommend().expect("something is enough").choice.chosen.setting;
        for (other, another, _) in PLANNED.iter() {
            let [recommended, default] = [setting, defaults()].map(|setting| another.time(&setting, 1));
            println!("{other} with what {name} got, {setting:?}: {:+.1} %", 100.0 * (recommended / default - 1.0));
            assert!(recommended <= 2.0 * default, "{other} with what {name} got: {recommended} us, {default} us");
        }
    }
}

#[test]
fn a_plan_takes_few_simulations_each_no_longer_than_the_job() {
    for (name, job, planned) in PLANNED.iter() {
        let Planned { expected, simulations, events, .. } = planned;
        let of_job = job.again(&defaults(), 1).events;
        println!("{name}: {simulations} simulations of {expected}, {events} events of {of_job} each");
        assert!(expected.simulations <= 45, "{name}: {expected}");
        // One more with ample memory.
        assert!(*simulations <= 1 + expected.simulations as u64, "{name}: {simulations}");
        assert!(*events <= 2 * simulations * of_job, "{name}: {events} events of {of_job}");
    }
}

#[test]
fn fewer_slots_than_a_message_takes_are_recommended_only_with_what_that_costs() {
    let job = Job::new(&flood(6));
    let text = |slots: &[u32]| job.plan(slots).findings(&job).text();
    let care = "Take care: 4 slots do not hold one message of 1000 B";
    let forced = text(&[4]);
    assert!(forced.contains("--slots 4 ") && forced.contains(care) && forced.contains("no margin"), "{forced}");
    let free = text(&[]);
    assert!(free.contains("--slots 24 ") && !free.contains("Take care"), "{free}");
    assert!(free.contains("One message of 1000 B, the largest eager one of the trace, takes 21 slots"), "{free}");
}
