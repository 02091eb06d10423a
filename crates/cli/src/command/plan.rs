//! `tidegate plan`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tidegate_flow::SchemeName;
use tidegate_link::log::print_line;
use tidegate_sim::{NoStore, RunStore, SimulationConfig, Time};

use crate::arguments::PlanArguments;
use crate::failure::Failure;
use crate::plan::machine::Machine;
use crate::plan::runs::{Permits, Runs, Tally};
use crate::plan::{Aim, Expected, Findings, Margin, Program, Wish, longer_than, scale, search};
use crate::progress::Bar;
use crate::sharing::Sharing;
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
    let peers = peers(arguments, ranks)?;
    let config = machine.of_ranks(ranks, peers)?;
    check_interruptions(&program, &config)?;
    let (long_messages, largest_eager) = longer_than(&program.trace, config.eager_bytes);
    let wish = wish(arguments, Margin::new(&config, largest_eager));
    let schemes = arguments.schemes();
    let bar = Bar::new("plan");
    let sharing = Sharing::open(arguments.sharing.out.as_deref(), arguments.sharing.part)?;
    let store: &dyn RunStore = sharing.as_ref().map_or(&NoStore, |sharing| &sharing.folder);
    let permits = Permits::new(Sharing::jobs(sharing.as_ref(), arguments.jobs));
    let seeds = arguments.seeds as u32;
    let (trace, fingerprint) = (&program.trace, program.fingerprint.as_str());
    let tally = Tally::default();
    let runs = Runs { trace, fingerprint, seeds, store, bar: &bar, permits: &permits, missing: None, tally: &tally };
    let aim = if arguments.all { Aim::EveryAmount } else { Aim::Recommendation };
    // Of tasks that share the runs, the first one says it.
    let is_silent = sharing.as_ref().is_some_and(|sharing| sharing.part.helps() && !sharing.part.waits_for_all());
    let find = |runs: &Runs<'_>, schemes: &[SchemeName]| {
        let announce = |expected: Expected| announce(&bar, expected, schemes, seeds, arguments.sharing.out.is_some());
        let say: &dyn Fn(Expected) = if is_silent || runs.missing.is_some() { &|_| () } else { &announce };
        search(runs, &config, schemes, &wish, aim, say)
    };
    let found = match &sharing {
        Some(sharing) => find_part(sharing, &runs, &schemes, find),
        None => find(&runs, &schemes).map(Some),
    };
    bar.clear();
    let found = found.map_err(|why| Failure::own(format!("{}: {why}", arguments.trace.display())))?;
    let Some((ample, choices)) = found else { return Ok(0) };
    let findings = Findings {
        trace: arguments.trace.display().to_string(),
        ranks,
        messages: program.trace.messages(),
        long_messages,
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

/// The `--peers`, of which each rank needs one for every other rank.
fn peers(arguments: &PlanArguments, ranks: u32) -> Result<Option<u32>, Failure> {
    let peers = arguments.peers.map(|peers| peers as u32);
    match peers.filter(|peers| *peers < ranks - 1) {
        None => Ok(peers),
        Some(few) => {
            let others = ranks - 1;
            Err(Failure::usage(format!("--peers {few} are too few: each of {ranks} ranks has {others} others")))
        }
    }
}

fn wish(arguments: &PlanArguments, margin: Margin) -> Wish {
    Wish {
        overhead: arguments.overhead,
        slots: arguments.slots.iter().map(|slots| *slots as u32).collect(),
        pool_slots: arguments.pool_slots.iter().map(|slots| *slots as u32).collect(),
        buffers: arguments.buffers.iter().map(|buffers| *buffers as u32).collect(),
        margin,
    }
}

/// Says how long it will take, before it begins.
fn announce(bar: &Bar, expected: Expected, schemes: &[SchemeName], seeds: u32, are_kept: bool) {
    let names = schemes.iter().map(|scheme| scheme.name()).collect::<Vec<_>>().join(", ");
    let seeds = if seeds == 1 { "one seed".to_owned() } else { format!("{seeds} seeds") };
    let kept = if are_kept { "; those that are kept from before are not done again" } else { "" };
    bar.suspend(|| print_line(&format!("plan: {expected} ({names}; {seeds}){kept}")));
}

/// The findings of all parts together. `None`: this part does not show them, or runs of others are missing; it says so.
///
/// A search decides by what came of one run which is next, so parts that run at the same time all do the same searches,
/// and share the runs of each. Parts that may run one after the other do the searches of some schemes each.
fn find_part<T>(
    sharing: &Sharing,
    runs: &Runs<'_>,
    schemes: &[SchemeName],
    find: impl Fn(&Runs<'_>, &[SchemeName]) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let part = &sharing.part;
    if part.waits_for_all() {
        return find(runs, schemes).map(Some);
    }
    if part.helps() {
        // A run that fails here fails in the first part too, which says so.
        let _ = find(runs, schemes);
        print_line(&sharing.ended(runs.bar, "part 1 prints what came out"));
        return Ok(None);
    }
    let own = schemes.iter().enumerate().filter(|(number, _)| part.has(*number));
    let own: Vec<SchemeName> = own.map(|(_, scheme)| *scheme).collect();
    if !own.is_empty() {
        find(runs, &own)?;
    }
    let missing = AtomicBool::new(false);
    let found = find(&Runs { missing: Some(&missing), ..*runs }, schemes);
    if missing.load(Relaxed) {
        let names = own.iter().map(|scheme| scheme.name()).collect::<Vec<_>>().join(", ");
        let searched = if own.is_empty() { "it has no scheme".to_owned() } else { format!("its schemes are {names}") };
        let next = format!("{searched}; runs of others are missing: when all parts have ended, {}", part.remedy());
        print_line(&sharing.ended(runs.bar, &next));
        return Ok(None);
    }
    found.map(Some)
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
