//! The least memory of one scheme with which a trace takes hardly longer than with ample memory.
//!
//! Two searches, one after the other: the fewest slots or buffers without a bound on memory, then, with those, the
//! least room for unexpected messages. Few slots and little room hold different messages up, so a setting with more
//! slots would hardly do with less room; it is not tried.

use tidegate_flow::SchemeName;
use tidegate_sim::{SimulationConfig, SimulationError, Time};

use super::runs::{Outcomes, Overhead, Runs};
use super::search::{Found, least};
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

/// What came of the searches for one scheme.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The scheme.
    pub scheme: SchemeName,
    /// The least setting that is enough; if none is, the largest that was tried.
    pub chosen: Chosen,
    /// Whether it is enough.
    pub is_enough: bool,
    /// Settings that were run.
    pub tried: usize,
    /// Those of them with which ranks wait for each other for ever.
    pub hung: usize,
    /// Where more was worse, in words.
    pub inversions: Vec<String>,
}

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// By which share the time may be longer than with ample memory.
    pub overhead: f64,
    /// What is tried of slots; empty: what is usual.
    pub slots: Vec<u32>,
    /// And of buffers.
    pub buffers: Vec<u32>,
}

/// A run is ended once it takes so many times what it may.
const PATIENCE: u64 = 3;

/// Settings that a search runs at most, for a bar that shows how many are left.
pub const TRIALS_MOST: usize = 22;

struct Search<'a> {
    runs: &'a Runs<'a>,
    machine: SimulationConfig,
    ample: &'a Outcomes,
    overhead: f64,
    tried: usize,
    hung: usize,
}

impl Search<'_> {
    fn run(&mut self, setting: Setting) -> Result<Chosen, SimulationError> {
        self.tried += 1;
        let outcomes = self.runs.try_out(&setting.on(&self.machine)?)?;
        self.hung += usize::from(outcomes.hangs());
        let overhead = outcomes.overhead(self.ample);
        Ok(Chosen { setting, outcomes, overhead })
    }

    fn accepts(&self, chosen: &Chosen) -> bool {
        !chosen.outcomes.was_cut() && !chosen.outcomes.hangs() && chosen.overhead.median() <= self.overhead
    }

    /// The least of these settings that is enough, and the largest one if none is.
    fn least(&mut self, settings: &[Setting]) -> Result<(Chosen, bool, Found), SimulationError> {
        let mut all: Vec<(usize, Chosen)> = Vec::new();
        let found = least(settings.len(), |at| {
            let chosen = self.run(settings[at])?;
            let enough = self.accepts(&chosen);
            all.push((at, chosen));
            Ok::<_, SimulationError>(enough)
        })?;
        let wanted = found.least.unwrap_or(settings.len() - 1);
        let (_, chosen) = all.into_iter().find(|(at, _)| *at == wanted).expect("it was run");
        Ok((chosen, found.least.is_some(), found))
    }
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
    let slowest = ample.time().mean() * (1.0 + wish.overhead);
    let time_most = Time((slowest * 1e6) as u64 * PATIENCE);
    let machine = SimulationConfig { time_most, ..machine.clone() };
    let mut search = Search { runs, machine, ample, overhead: wish.overhead, tried: 0, hung: 0 };
    let failed = |error: SimulationError| format!("{scheme}: a run failed: {error}");
    let mut found = None;
    for &first in Knob::of(scheme).beginnings() {
        let amounts = match amounts(&search.machine, scheme, first, wish) {
            // None that the user allows is as large.
            Err(_) if found.is_some() => break,
            amounts => amounts?,
        };
        let (chosen, is_enough, by_amount) = search.least(&amounts).map_err(failed)?;
        let inversions: Vec<String> = by_amount.inversion.map(|pair| inversion(&amounts, pair)).into_iter().collect();
        found = Some((chosen, is_enough, inversions));
        if is_enough {
            break;
        }
    }
    let (chosen, is_enough, mut inversions) = found.expect("there is a beginning");
    if !is_enough {
        let Search { tried, hung, .. } = search;
        return Ok(Choice { scheme, chosen, is_enough, tried, hung, inversions });
    }
    let rooms: Vec<Setting> = rooms(&search.machine)
        .map(|room| Setting { room: Some(room), ..chosen.setting })
        .filter(|setting| setting.on(&search.machine).is_ok())
        .collect();
    let (bounded, is_enough, by_room) = search.least(&rooms).map_err(failed)?;
    inversions.extend(by_room.inversion.map(|pair| inversion(&rooms, pair)));
    let Search { tried, hung, .. } = search;
    Ok(Choice { scheme, chosen: bounded, is_enough, tried, hung, inversions })
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
    let mut search = Search { runs, machine: machine.clone(), ample, overhead: wish.overhead, tried: 0, hung: 0 };
    let one = |setting: &Setting| {
        let chosen = search.run(*setting).map_err(|error| format!("{scheme}: a run failed: {error}"))?;
        let is_enough = search.accepts(&chosen);
        let hung = usize::from(chosen.outcomes.hangs());
        Ok(Choice { scheme, chosen, is_enough, tried: 1, hung, inversions: Vec::new() })
    };
    let first = Knob::of(scheme).beginnings()[0];
    amounts(machine, scheme, first, wish)?.iter().map(one).collect()
}

/// What is tried of slots or buffers: what flow control accepts of it.
fn amounts(machine: &SimulationConfig, scheme: SchemeName, first: u32, wish: &Wish) -> Result<Vec<Setting>, String> {
    let knob = Knob::of(scheme);
    let given = if knob == Knob::Slots { &wish.slots } else { &wish.buffers };
    let mut wanted = if given.is_empty() { knob.usual().to_vec() } else { given.clone() };
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

/// What is tried of room for unexpected messages, in bytes: from none to what a process of the library has by default,
/// and more where many peers need it.
fn rooms(machine: &SimulationConfig) -> impl Iterator<Item = usize> {
    const DEFAULT: usize = 64 << 20;
    let peers = (machine.size() - 1 + machine.spare_peers).max(1) as usize;
    let most = DEFAULT.max(peers << 20);
    let steps = (7..40).flat_map(|power| [1_usize << power, 3 << (power - 1)]);
    std::iter::once(0).chain(steps.map(move |each| each * peers).take_while(move |room| *room < most)).chain([most])
}

/// Two settings of which the larger is not enough and the smaller is, in words.
fn inversion(settings: &[Setting], (small, large): (usize, usize)) -> String {
    let words = |at: usize| match settings[at].room {
        None => settings[at].in_words(),
        Some(room) => format!("{} KiB of room", room.div_ceil(1024)),
    };
    format!("{} are enough and {} are not", words(small), words(large))
}
