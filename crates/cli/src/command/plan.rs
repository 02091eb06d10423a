//! `tidegate plan`.

use std::path::Path;
use std::thread;

use tidegate_flow::SchemeName;
use tidegate_sim::{CODE, FlowChoice, NoStore, RunStore, SimulationConfig, Time};

use crate::arguments::PlanArguments;
use crate::failure::Failure;
use crate::plan::machine::Machine;
use crate::plan::runs::{Outcomes, Permits, Runs};
use crate::plan::{Choice, Findings, Program, TRIALS_MOST, Wish, choose, each, longer_than, scale};
use crate::progress::Bar;
use crate::store::{Folder, Reuse};
use tidegate_sim::goal;

/// Finds the least memory for a trace.
pub fn plan(arguments: &PlanArguments) -> Result<u8, Failure> {
    let mut program = Program::read(&arguments.trace)?;
    let mut pattern = None;
    if let Some(ranks) = arguments.ranks.map(|ranks| ranks as u32).filter(|ranks| *ranks != program.trace.size()) {
        let refuse = |why: String| Failure::usage(format!("{}: {why}", arguments.trace.display()));
        let scaled = scale(&program.trace, ranks).map_err(refuse)?;
        program =
            Program::parse(&scaled.text).map_err(|why| Failure::own(format!("the trace for {ranks} ranks: {why}")))?;
        pattern = Some(scaled.pattern);
        if let Some(file) = &arguments.goal {
            super::write_file(file, &scaled.text)?;
        }
    } else if arguments.goal.is_some() {
        return Err(Failure::usage("--goal writes the trace for the --ranks, and there are none but the trace's own"));
    }
    let machine = Machine::read(arguments.machine.as_deref())?;
    let ranks = program.trace.size();
    let peers = arguments.peers.map(|peers| peers as u32);
    if let Some(peers) = peers.filter(|peers| *peers < ranks - 1) {
        return Err(Failure::usage(format!(
            "--peers {peers} are too few: each of {ranks} ranks has {} others",
            ranks - 1
        )));
    }
    let config = machine.of_ranks(ranks, peers)?;
    check_interruptions(&program, &config)?;
    let wish = Wish {
        overhead: arguments.overhead,
        slots: arguments.slots.iter().map(|slots| *slots as u32).collect(),
        buffers: arguments.buffers.iter().map(|buffers| *buffers as u32).collect(),
    };
    let schemes = arguments.schemes();
    let bar = Bar::new("plan");
    let open = |folder: &Path| {
        let failed = |error: std::io::Error| Failure::own(format!("cannot write to {}: {error}", folder.display()));
        Folder::open(folder, Reuse::SameCode, CODE).map_err(failed)
    };
    let store = arguments.out.as_deref().map(open).transpose()?;
    let store: &dyn RunStore = store.as_ref().map_or(&NoStore, |store| store);
    let jobs = arguments.jobs.map(|jobs| jobs as usize);
    let jobs = jobs.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let permits = Permits::new(jobs);
    let seeds = arguments.seeds as u32;
    let runs =
        Runs { trace: &program.trace, fingerprint: &program.fingerprint, seeds, store, bar: &bar, permits: &permits };
    let found = search(&runs, &config, &schemes, &wish, arguments.all);
    bar.clear();
    let (ample, choices) = found.map_err(|why| Failure::own(format!("{}: {why}", arguments.trace.display())))?;
    let findings = Findings {
        trace: arguments.trace.display().to_string(),
        ranks,
        messages: program.trace.messages(),
        long_messages: longer_than(&program.trace, config.eager_bytes),
        pattern,
        machine_name: &machine.name,
        machine: &config,
        peers,
        wish: &wish,
        seeds,
        ample: &ample,
        is_all: arguments.all,
        choices: &choices,
    };
    match arguments.json {
        true => super::print_json(&findings.json())?,
        false => super::print(findings.text().as_bytes())?,
    }
    Ok(0)
}

/// Each interruption of a process at work is simulated.
fn check_interruptions(program: &Program, config: &SimulationConfig) -> Result<(), Failure> {
    const MOST: u128 = 10_000_000_000;
    let interval = config.noise.interval;
    if interval == Time::NEVER || goal::work(&program.trace) * 1000 / u128::from(interval.0.max(1)) <= MOST {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the ranks compute so long that more than {MOST} interruptions would be simulated: let the machine file have fewer \
         ([machine] noise_interval, now {} us)",
        interval.microseconds()
    )))
}

/// All schemes at the same time; each waits for its own runs one after the other.
fn search(
    runs: &Runs<'_>,
    machine: &SimulationConfig,
    schemes: &[SchemeName],
    wish: &Wish,
    is_all: bool,
) -> Result<(Outcomes, Vec<Choice>), String> {
    let unlimited = SimulationConfig { flow: FlowChoice::Unlimited, receive_memory: None, ..machine.clone() };
    let ample = runs.measure(&unlimited).map_err(|error| format!("with ample memory, a run failed: {error}"))?;
    let seeds = runs.seeds as usize;
    runs.bar.expect(schemes.len() * TRIALS_MOST * seeds);
    let choices: Result<Vec<Vec<Choice>>, String> = thread::scope(|scope| {
        let one = |scheme: SchemeName| {
            let choices = match is_all {
                true => each(runs, machine, &ample, scheme, wish),
                false => choose(runs, machine, &ample, scheme, wish).map(|choice| vec![choice]),
            };
            // Those that were run have been expected by themselves.
            runs.bar.forget(TRIALS_MOST * seeds);
            choices
        };
        let under_way: Vec<_> = schemes.iter().map(|&scheme| scope.spawn(move || one(scheme))).collect();
        under_way
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    Ok((ample, choices?.concat()))
}
