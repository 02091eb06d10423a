//! The memory of one scheme with which a trace takes hardly longer than with ample memory.
//!
//! Two searches, one after the other. The first looks for the fewest slots or buffers without a bound on memory;
//! then, with the slots that are recommended, which are more ([`Margin`]), the second looks for the least room for
//! unexpected messages. (With the fewest slots themselves a flood may need all the room there is, since senders that
//! wait for credits are late with everything.) What is recommended has a margin of room too, and is run before it is.

use std::collections::HashMap;

use tidegate_flow::SchemeName;
use tidegate_sim::{SimulationConfig, SimulationError};

use super::halving::{Found, TRIES_MOST, least};
use super::margin::Margin;
use super::runs::{Limit, Outcomes, Overhead, Runs};
use super::setting::{Knob, Setting};

/// A setting that was found, and what came of it.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The setting.
    pub setting: Setting,
    /// What came of it.
    pub outcomes: Outcomes,
    /// By which share it takes longer than with ample memory.
    pub overhead: Overhead,
}

/// The least that was found enough, without any margin.
#[derive(Clone, Copy, Debug)]
pub struct Least {
    /// The fewest slots or buffers, without a bound on memory.
    pub amount: Setting,
    /// The least memory, with the slots or buffers that are recommended.
    pub memory: Setting,
}

/// What came of the searches for one scheme.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The scheme.
    pub scheme: SchemeName,
    /// The setting that is recommended of this scheme; if nothing is enough, the largest that was tried.
    pub chosen: Chosen,
    /// Whether it is enough.
    pub is_enough: bool,
    /// The least that was found enough, without a margin; `None`: nothing is enough, or no least was searched for.
    pub least: Option<Least>,
    /// Settings that were run.
    pub tried: usize,
    /// Those of them with which ranks wait for each other for ever.
    pub hung: usize,
    /// Where a smaller setting was enough and a larger one was not: both.
    pub inversions: Vec<(Setting, Setting)>,
}

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// By which share the time may be longer than with ample memory.
    pub overhead: f64,
    /// The numbers of slots that are tried; empty: the usual ones.
    pub slots: Vec<u32>,
    /// The numbers of a pool's slots, likewise.
    pub pool_slots: Vec<u32>,
    /// The numbers of buffers, likewise.
    pub buffers: Vec<u32>,
    /// How much more than the least is recommended.
    pub margin: Margin,
}

/// The run with the most of something is ended once it takes this many times the time allowed. It is shown where
/// nothing is enough, so that users see how far they are from it; of all others it only counts whether they are.
const PATIENCE: f64 = 3.0;

/// Where no room is enough with the slots that are recommended, more slots are tried, at most this often.
const MORE_AMOUNTS: usize = 2;
/// Where the recommended room is not enough, though less was, this many larger steps are tried before the largest.
const MORE_ROOM: usize = 2;

/// Settings that a search runs, as a rule at most: for an estimate, and for a bar that shows how many are left.
pub const TRIALS_MOST: usize = 2 * TRIES_MOST + 1;

struct Search<'a> {
    runs: &'a Runs<'a>,
    machine: SimulationConfig,
    ample: &'a Outcomes,
    overhead: f64,
    /// Settings that the bar expects of this search and that were not run yet. Each run is expected by itself too.
    expected: usize,
    /// The settings that were run, with their outcomes.
    known: HashMap<Setting, Chosen>,
    hung: usize,
    inversions: Vec<(Setting, Setting)>,
}

impl<'a> Search<'a> {
    fn new(
        runs: &'a Runs<'a>,
        machine: &SimulationConfig,
        ample: &'a Outcomes,
        overhead: f64,
        expected: usize,
    ) -> Self {
        let (machine, known, inversions) = (machine.clone(), HashMap::new(), Vec::new());
        Search { runs, machine, ample, overhead, expected, known, hung: 0, inversions }
    }

    /// Tells the bar that fewer settings will be run, by this number.
    fn forget(&mut self, settings: usize) {
        let fewer = settings.min(self.expected);
        self.expected -= fewer;
        self.runs.bar.forget(fewer * self.runs.seeds as usize);
    }

    /// Runs a setting, unless it was run before. It is ended once it takes `times` the time allowed; `None`: never.
    fn run(&mut self, setting: Setting, times: Option<f64>) -> Result<Chosen, SimulationError> {
        if let Some(known) = self.known.get(&setting) {
            return Ok(known.clone());
        }
        self.forget(1);
        let limit = times.map(|times| Limit { ample: self.ample, times: times * (1.0 + self.overhead) });
        let outcomes = self.runs.try_out(&setting.on(&self.machine)?, limit)?;
        self.hung += usize::from(outcomes.hangs());
        let overhead = outcomes.overhead(self.ample);
        let chosen = Chosen { setting, outcomes, overhead };
        self.known.insert(setting, chosen.clone());
        Ok(chosen)
    }

    fn accepts(&self, chosen: &Chosen) -> bool {
        !chosen.outcomes.hangs() && chosen.overhead.median() <= self.overhead
    }

    /// The least of these settings that is enough. The largest one is run for longer, to be shown if none is.
    fn least(&mut self, settings: &[Setting]) -> Result<Found, SimulationError> {
        let found = least(settings.len(), |at| {
            let times = if at + 1 == settings.len() { PATIENCE } else { 1.0 };
            let chosen = self.run(settings[at], Some(times))?;
            Ok::<_, SimulationError>(self.accepts(&chosen))
        })?;
        self.inversions.extend(found.inversion.map(|(small, large)| (settings[small], settings[large])));
        Ok(found)
    }

    /// The settings that differ from this one in their room for messages, from the least on.
    fn rooms(&self, of: Setting) -> Vec<Setting> {
        let all = rooms(&self.machine).map(|room| Setting { room: Some(room), ..of });
        all.filter(|setting| setting.on(&self.machine).is_ok()).collect()
    }

    /// The first of these settings from `at` on that is enough, the last one of which is known to be. At most a few
    /// are tried in between.
    fn first_enough(&mut self, settings: &[Setting], at: usize) -> Result<Chosen, SimulationError> {
        let last = settings.len() - 1;
        for &setting in settings[at..last].iter().take(1 + MORE_ROOM) {
            let chosen = self.run(setting, Some(1.0))?;
            if self.accepts(&chosen) {
                return Ok(chosen);
            }
        }
        self.run(settings[last], Some(PATIENCE))
    }

    /// The setting to recommend, given how many slots or buffers are enough without a bound on memory.
    fn bounded(&mut self, amounts: &[Setting], fewest: usize, margin: &Margin) -> Result<Choice, SimulationError> {
        let scheme = amounts[fewest].scheme;
        let mut at = with_margin(amounts, amounts[fewest].amount, margin);
        let mut more = MORE_AMOUNTS;
        loop {
            let rooms = self.rooms(amounts[at]);
            let found = self.least(&rooms)?;
            let Some(enough) = found.least else {
                let next = with_margin(amounts, amounts[at].amount, margin);
                if more > 0 && next > at {
                    (at, more) = (next, more - 1);
                    continue;
                }
                let chosen = self.run(rooms[rooms.len() - 1], Some(PATIENCE))?;
                return Ok(self.outcome(scheme, chosen, None));
            };
            let wanted = rooms[enough].room.map_or(0, |room| margin.room(room));
            let from = rooms.iter().position(|setting| setting.room >= Some(wanted)).unwrap_or(rooms.len() - 1);
            let chosen = self.first_enough(&rooms, from)?;
            let least = Least { amount: amounts[fewest], memory: rooms[enough] };
            return Ok(self.outcome(scheme, chosen, Some(least)));
        }
    }

    fn outcome(&mut self, scheme: SchemeName, chosen: Chosen, least: Option<Least>) -> Choice {
        self.forget(self.expected);
        let is_enough = self.accepts(&chosen);
        let (tried, hung) = (self.known.len(), self.hung);
        Choice { scheme, chosen, is_enough, least, tried, hung, inversions: std::mem::take(&mut self.inversions) }
    }
}

/// The first of these amounts that has the margin over `least`; the largest, if none has.
fn with_margin(amounts: &[Setting], least: u32, margin: &Margin) -> usize {
    let wanted = margin.amount(Knob::of(amounts[0].scheme), least);
    amounts.iter().position(|setting| setting.amount >= wanted).unwrap_or(amounts.len() - 1)
}

/// Finds it.
///
/// # Errors
/// If none of the settings is legal, or a run fails; the text says which.
pub fn choose(
    runs: &Runs<'_>,
    machine: &SimulationConfig,
    ample: &Outcomes,
    scheme: SchemeName,
    wish: &Wish,
) -> Result<Choice, String> {
    let mut search = Search::new(runs, machine, ample, wish.overhead, TRIALS_MOST);
    let failed = |error: SimulationError| format!("{scheme}: a run failed: {error}");
    let mut largest = None;
    for &first in Knob::of(scheme).beginnings() {
        let amounts = match amounts(&search.machine, scheme, first, wish, Knob::ladder) {
            // None that the user allows is as large.
            Err(_) if largest.is_some() => break,
            amounts => amounts?,
        };
        let found = search.least(&amounts).map_err(failed)?;
        if let Some(fewest) = found.least {
            return search.bounded(&amounts, fewest, &wish.margin).map_err(failed);
        }
        largest = amounts.last().copied();
    }
    let largest = largest.expect("there is a beginning");
    let chosen = search.run(largest, Some(PATIENCE)).map_err(failed)?;
    Ok(search.outcome(scheme, chosen, None))
}

/// What comes of every amount of a scheme, without a bound on memory.
///
/// # Errors
/// As [`choose`].
pub fn each(
    runs: &Runs<'_>,
    machine: &SimulationConfig,
    ample: &Outcomes,
    scheme: SchemeName,
    wish: &Wish,
) -> Result<Vec<Choice>, String> {
    let one = |setting: &Setting| {
        let mut search = Search::new(runs, machine, ample, wish.overhead, 1);
        let chosen = search.run(*setting, None).map_err(|error| format!("{scheme}: a run failed: {error}"))?;
        Ok(search.outcome(scheme, chosen, None))
    };
    all_amounts(machine, scheme, wish)?.iter().map(one).collect()
}

/// All amounts of a scheme, of which [`each`] runs every one.
///
/// # Errors
/// If none of them is legal; the text says why.
pub fn all_amounts(machine: &SimulationConfig, scheme: SchemeName, wish: &Wish) -> Result<Vec<Setting>, String> {
    amounts(machine, scheme, Knob::of(scheme).beginnings()[0], wish, Knob::usual)
}

/// What is tried of slots or buffers: what flow control accepts of it.
fn amounts(
    machine: &SimulationConfig,
    scheme: SchemeName,
    first: u32,
    wish: &Wish,
    usual: fn(Knob) -> Vec<u32>,
) -> Result<Vec<Setting>, String> {
    let knob = Knob::of(scheme);
    let given = match knob {
        Knob::Slots => &wish.slots,
        Knob::PoolSlots => &wish.pool_slots,
        Knob::Buffers | Knob::BuffersMost | Knob::PoolMost => &wish.buffers,
    };
    let mut wanted = if given.is_empty() { usual(knob) } else { given.clone() };
    wanted.sort_unstable();
    wanted.dedup();
    let mut all = wanted.iter().map(|&amount| Setting { scheme, amount, first, room: None });
    let legal: Vec<Setting> = all.clone().filter(|setting| setting.on(machine).is_ok()).collect();
    match (legal.is_empty(), all.next_back()) {
        (true, Some(last)) => {
            let why = last.on(machine).err().map_or_else(String::new, |error| error.to_string());
            Err(format!("{scheme}: none of the values of {} is possible: {why}", knob.option()))
        }
        _ => Ok(legal),
    }
}

/// What is tried of room for unexpected messages, in bytes: from none to what a process of the library has by
/// default, and more where many peers need it.
fn rooms(machine: &SimulationConfig) -> impl Iterator<Item = usize> {
    const DEFAULT: usize = 64 << 20;
    let peers = (machine.size() - 1 + machine.spare_peers).max(1) as usize;
    let most = DEFAULT.max(peers << 20);
    let steps = (8..40).map(|power| 1_usize << power);
    std::iter::once(0).chain(steps.map(move |each| each * peers).take_while(move |room| *room < most)).chain([most])
}
