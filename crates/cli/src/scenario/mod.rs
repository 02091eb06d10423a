//! A TOML file into simulations.
//!
//! Every field is one entry of [`FIELDS`]: its name, what it means, its default, and how it changes a [`Scenario`]. A
//! list in the place of a value is an axis of a sweep; every combination of all axes becomes one scenario.
//!
//! * `fields.rs`: the table of fields;
//! * `value.rs`: values with units;
//! * `refusal.rs`: what the crates below refuse, in the words of the file;
//! * `workload.rs`: operations by name and form, patterns of traffic, traces.

mod buffers;
mod fields;
mod refusal;
mod value;
mod workload;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tidegate_sim::experiment::Benchmark;
use tidegate_sim::{Cost, FlowChoice, NetworkParameters, SimulationConfig, SimulationError, Topology};
use toml::de::{DeTable, DeValue};

use buffers::BufferFields;
pub use fields::{FIELDS, Field};
use refusal::{FieldName, Refusal};
pub use workload::{OPERATIONS, TimeOf, Work};

/// One run that a file describes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything but the program.
    pub config: SimulationConfig,
    /// The program.
    pub work: Work,
    /// Whether the run is compared with the same without flow control.
    pub reference: bool,
}

/// A scenario that is being put together, field by field.
#[derive(Clone, Debug)]
pub struct Draft {
    topology: String,
    sizes: Vec<u16>,
    config: SimulationConfig,
    scheme: Option<tidegate_flow::SchemeName>,
    slots_per_peer: u32,
    credit_slots: u32,
    piggyback: bool,
    quota_most: Option<u32>,
    buffers: BufferFields,
    operation: String,
    form: Option<String>,
    radix: u32,
    iterations: Option<u32>,
    compute_rate: f64,
    trace: Option<PathBuf>,
    root: u32,
    window: usize,
    benchmark: Benchmark,
    reference: bool,
}

/// All runs of a file.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The names of the fields that have lists, as `section.field`.
    pub axes: Vec<String>,
    /// The runs, each with its values of the axes.
    pub points: Vec<(Vec<String>, Scenario)>,
    /// The fields that the file has, each with its line.
    lines: Vec<(&'static Field, usize)>,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Line, counted from 1; `None` for the file as a whole.
    pub line: Option<usize>,
    /// What, and the remedy.
    pub what: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// A field of the file: its entry in the table, its values, and where it stands.
struct Given {
    field: &'static Field,
    values: Vec<String>,
    is_list: bool,
    place: Range<usize>,
}

/// Most combinations of a sweep. More are refused, because then a list is longer than its author meant.
const POINTS_MOST: usize = 100_000;

impl Sweep {
    /// Reads a file's text; traces are looked for in `folder`.
    ///
    /// # Errors
    /// If the text is no TOML, names what does not exist, or describes something impossible.
    pub fn read(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let line = |place: &Range<usize>| 1 + text[..place.start.min(text.len())].matches('\n').count();
        let table = DeTable::parse(text)
            .map_err(|error| ScenarioError { line: error.span().as_ref().map(line), what: not_toml(text, &error) })?;
        let given =
            collect(table.get_ref()).map_err(|(place, what)| ScenarioError { line: Some(line(&place)), what })?;
        let lines = given.iter().map(|given| (given.field, line(&given.place))).collect();
        let axes: Vec<&Given> = given.iter().filter(|given| given.is_list).collect();
        let names = axes.iter().map(|axis| format!("{}.{}", axis.field.section, axis.field.name)).collect();
        let mut sweep = Sweep { axes: names, points: Vec::new(), lines };
        let count = axes.iter().fold(1_usize, |count, axis| count.saturating_mul(axis.values.len()));
        if count > POINTS_MOST {
            let longest = axes.iter().max_by_key(|axis| axis.values.len());
            let what = format!(
                "the lists make {count} combinations, and at most {POINTS_MOST} are run: shorten a list{}",
                longest
                    .map(|axis| format!("; the longest is [{}] {}", axis.field.section, axis.field.name))
                    .unwrap_or_default()
            );
            return Err(ScenarioError { line: longest.map(|axis| line(&axis.place)), what });
        }
        for number in 0..count {
            let values = combination(&axes, number);
            let mut draft = Draft::new();
            // In the order of the table: a set of parameters comes before what changes one of them.
            for field in FIELDS {
                let Some(given) = given.iter().find(|given| std::ptr::eq(given.field, field)) else { continue };
                let axis = axes.iter().position(|axis| std::ptr::eq(axis.field, field));
                let value = axis.map_or(&given.values[0], |axis| &values[axis]);
                (field.set)(&mut draft, value).map_err(|problem| ScenarioError {
                    line: Some(line(&given.place)),
                    what: format!("[{}] {} = {}: {problem}", field.section, field.name, shown(value)),
                })?;
            }
            let scenario = draft.finish(folder).map_err(|refusal| sweep.refuse(refusal, &values))?;
            sweep.points.push((values, scenario));
        }
        match given.iter().find(|given| sweep.is_idle(given)) {
            Some(idle) => Err(ScenarioError { line: Some(line(&idle.place)), what: changes_nothing(idle, &given) }),
            None => Ok(sweep),
        }
    }

    /// Whether a field was given another value than its default and changes nothing in any run.
    fn is_idle(&self, given: &Given) -> bool {
        given.field.section == "workload"
            && given.values.iter().any(|value| value != given.field.default)
            && !self.points.iter().any(|(_, scenario)| scenario.work.heeds(given.field.name))
    }

    /// The line of the first of these fields that the file has.
    fn line_of(&self, fields: &[FieldName]) -> Option<usize> {
        let line = |wanted: &FieldName| {
            self.lines.iter().find(|(field, _)| (field.section, field.name) == *wanted).map(|(_, line)| *line)
        };
        fields.iter().find_map(line)
    }

    /// The values of one combination, as messages have them: ` (with flow.scheme = static)`. Empty if there is one run.
    #[must_use]
    pub fn with(&self, values: &[String]) -> String {
        let each: Vec<String> =
            self.axes.iter().zip(values).map(|(axis, value)| format!("{axis} = {}", shown(value))).collect();
        if each.is_empty() { String::new() } else { format!(" (with {})", each.join(", ")) }
    }

    fn refuse(&self, Refusal { fields, what }: Refusal, values: &[String]) -> ScenarioError {
        ScenarioError { line: self.line_of(&fields), what: what + &self.with(values) }
    }

    /// What is said of a run that failed: which one, why, and what could be changed in the file. `point` is its number
    /// among the points; a run beyond these is a reference.
    #[must_use]
    pub fn failed(&self, error: &SimulationError, point: usize) -> String {
        let (which, flow) = match self.points.get(point) {
            Some((values, scenario)) => (self.with(values), scenario.config.flow),
            None => (" without flow control, which others are compared with".to_owned(), FlowChoice::Unlimited),
        };
        let mut what = Refusal::of_simulation(error).what;
        for (field, line) in &self.lines {
            let name = format!("[{}] {}", field.section, field.name);
            what = what.replace(&name, &format!("{name} (line {line})"));
        }
        let remedy = match (error, flow) {
            (SimulationError::Deadlock(_), FlowChoice::Mailbox { .. }) => {
                "\nMore [flow] slots_per_peer, a [flow] scheme that lends slots, or a [workload] form whose processes \
                 receive before they wait for their sends may help."
            }
            _ => "",
        };
        format!("the run{which} failed: {what}{remedy}")
    }
}

/// What is said of a field that changes nothing: whoever wrote it expected something of it.
fn changes_nothing(idle: &Given, given: &[Given]) -> String {
    let operation = given.iter().find(|given| (given.field.section, given.field.name) == ("workload", "operation"));
    let operations = operation.map_or("alltoall".to_owned(), |operation| operation.values.join(", "));
    format!(
        "[{}] {} = {} changes nothing in a run of {operations}: remove the field, or change [workload] operation or form",
        idle.field.section,
        idle.field.name,
        shown(&idle.values.join(", "))
    )
}

/// The text of a file.
///
/// # Errors
/// If it is not UTF-8.
pub fn text(bytes: Vec<u8>) -> Result<String, ScenarioError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let what = "this is not UTF-8: save the file as UTF-8 text".to_owned();
        ScenarioError { line: Some(line), what }
    })
}

/// A value in a message.
fn shown(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

/// What is wrong with a text that is no TOML. The parser leaves out which key is there twice, so that is added.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let place = error.span().and_then(|place| text.get(place)).map(str::trim);
    let named = place.filter(|place| !place.is_empty() && place.len() < 40 && !place.contains('\n'));
    let named = named.map(|place| format!(": `{place}`")).unwrap_or_default();
    format!("this is not TOML: {}{named}", error.message())
}

/// The values of all axes in the `number`-th combination; the last axis changes fastest.
fn combination(axes: &[&Given], mut number: usize) -> Vec<String> {
    let mut values: Vec<String> = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        values.push(axis.values[number % axis.values.len()].clone());
        number /= axis.values.len();
    }
    values.reverse();
    values
}

type Misplaced = (Range<usize>, String);

fn collect(table: &DeTable<'_>) -> Result<Vec<Given>, Misplaced> {
    let mut all = Vec::new();
    for (section, content) in table {
        let name = section.get_ref().as_ref();
        if FIELDS.iter().all(|field| field.section != name) {
            let sections = FIELDS.iter().map(|field| field.section);
            return Err((section.span(), unknown("section", name, sections)));
        }
        let DeValue::Table(content) = content.get_ref() else {
            return Err((section.span(), format!("{name} is a section: write [{name}] on a line of its own")));
        };
        for (key, value) in content {
            let of_section = || FIELDS.iter().filter(|field| field.section == name);
            let found = of_section().find(|field| field.name == key.get_ref().as_ref());
            let Some(field) = found else {
                let names = of_section().map(|field| field.name);
                let elsewhere = FIELDS.iter().find(|field| field.name == key.get_ref().as_ref());
                let problem = match elsewhere {
                    Some(field) => format!("{} belongs to [{}], not to [{name}]", field.name, field.section),
                    None => unknown(&format!("field of [{name}]"), key.get_ref(), names),
                };
                return Err((key.span(), problem));
            };
            let (values, is_list) = scalars(value.get_ref())
                .map_err(|problem| (key.span(), format!("[{name}] {}: {problem}", field.name)))?;
            all.push(Given { field, values, is_list, place: key.span() });
        }
    }
    // The order of axes is the order of the file, whatever order the table keeps.
    all.sort_by_key(|given| given.place.start);
    Ok(all)
}

fn scalars(value: &DeValue<'_>) -> Result<(Vec<String>, bool), String> {
    match value {
        DeValue::Array(values) if values.is_empty() => Err("an empty list: give at least one value".to_owned()),
        DeValue::Array(values) => {
            let each: Result<Vec<_>, _> = values.iter().map(|value| scalar(value.get_ref())).collect();
            Ok((each?, true))
        }
        value => Ok((vec![scalar(value)?], false)),
    }
}

fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        _ => Err("a text, a decimal number, true or false is needed, or a list of them".to_owned()),
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("there is no {what} {name}{}; `tidegate sim --fields` lists them all", did_you_mean(name, known))
}

/// `: did you mean …?`, if something is near.
fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known.map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    match near.max_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((likeness, candidate)) if likeness > 0.7 => format!(": did you mean {candidate}?"),
        _ => String::new(),
    }
}

impl Draft {
    fn new() -> Self {
        let topology = Topology::mesh(&[4, 4]).expect("a legal mesh");
        let operation = workload::operation("alltoall", None, 2).expect("a legal operation");
        Draft {
            topology: "mesh".to_owned(),
            sizes: vec![4, 4],
            config: SimulationConfig::extoll(topology),
            scheme: Some(tidegate_flow::SchemeName::Dynamic),
            slots_per_peer: 64,
            credit_slots: 2,
            piggyback: true,
            quota_most: None,
            buffers: BufferFields::default(),
            operation: "alltoall".to_owned(),
            form: None,
            radix: 2,
            iterations: None,
            compute_rate: 400.0,
            trace: None,
            root: 0,
            window: 64,
            benchmark: Benchmark { repetitions: 3, ..Benchmark::new(operation) },
            reference: true,
        }
    }

    /// Begins with a set of parameters: the fields that come after it change one of them each.
    fn begin_with(&mut self, set: &str) {
        let of_cluster = |config: SimulationConfig| (config.topology.nodes() as u16, config);
        let (nodes, config) = match set {
            "infiniband2003" => of_cluster(SimulationConfig::infiniband2003()),
            "infiniband2007" => of_cluster(SimulationConfig::infiniband2007()),
            "free" => {
                self.config.cost = Cost::free();
                return;
            }
            _ => {
                (self.config.cost, self.config.network) = (Cost::extoll(), NetworkParameters::extoll());
                return;
            }
        };
        (self.topology, self.sizes) = ("switch".to_owned(), vec![nodes]);
        // Posted buffers hold what may be sent eagerly.
        self.buffers.packets = buffers::packets(&format!("{} B", config.eager_bytes)).ok();
        self.config = config;
    }

    fn finish(self, folder: &Path) -> Result<Scenario, Refusal> {
        let sizes = &self.sizes;
        let nodes = sizes.iter().fold(1_u32, |nodes, &size| nodes.saturating_mul(u32::from(size)));
        let topology = match self.topology.as_str() {
            "mesh" => Topology::mesh(sizes),
            "torus" => Topology::torus(sizes),
            "switch" => Topology::switch(nodes),
            _ => Topology::ideal(nodes),
        };
        let topology = topology.map_err(|error| Refusal::of_topology(&error))?;
        let flow = match self.scheme {
            None => FlowChoice::Unlimited,
            Some(scheme) if scheme.lends().posts_buffers() => {
                FlowChoice::Posted { scheme, buffers: self.buffers.of(scheme), piggyback: self.piggyback }
            }
            Some(scheme) => FlowChoice::Mailbox {
                scheme,
                slots_per_peer: self.slots_per_peer,
                credit_slots: self.credit_slots,
                piggyback: self.piggyback && scheme.has_credits(),
                quota_most: self.quota_most,
            },
        };
        let config = SimulationConfig { topology, flow, ..self.config.clone() };
        config.check().map_err(|error| Refusal::of_simulation(&error))?;
        let work = self.work(&config, folder)?;
        Ok(Scenario { config, work, reference: self.reference })
    }
}
