//! [`Sweep`]: the text of a file into the runs that it describes, whatever kind they are ([`Draft`]).

use std::fmt;
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::refusal::{FieldName, Refusal};

/// One field of a file.
pub struct Field<D> {
    /// The section that it belongs to.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its default, as a file would have it; empty where there is none.
    pub default: &'static str,
    /// What it means.
    pub help: &'static str,
    pub(super) set: fn(&mut D, &str) -> Result<(), String>,
}

impl<D> fmt::Debug for Field<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.section, self.name)
    }
}

/// A run that is being put together, field by field.
pub trait Draft: Sized + 'static {
    /// What comes out.
    type Scenario: Clone + fmt::Debug;
    /// All fields. They take effect in this order, so a set of parameters comes before the fields that change one of
    /// them.
    const FIELDS: &'static [Field<Self>];

    /// All fields have their defaults.
    fn new() -> Self;

    /// Puts it together; traces are looked for in `folder`.
    ///
    /// # Errors
    /// If values do not fit together.
    fn finish(self, folder: &Path) -> Result<Self::Scenario, Refusal>;

    /// Whether a field that has another value than its default can change anything in this run.
    fn heeds(scenario: &Self::Scenario, field: &Field<Self>) -> bool;

    /// Where a field changes nothing: in what runs, and what to change. `values` are those of another field, as the
    /// file has them.
    fn why_idle(field: &Field<Self>, values: impl Fn(FieldName) -> Option<String>) -> String;

    /// What is said of a section that belongs into files of another kind.
    fn of_another_kind(section: &str) -> Option<String>;
}

/// All runs of a file.
#[derive(Clone, Debug)]
pub struct Sweep<D: Draft> {
    /// The names of the fields that have lists, as `section.field`.
    pub axes: Vec<String>,
    /// The runs, each with its values of the axes.
    pub points: Vec<(Vec<String>, D::Scenario)>,
    /// The fields that the file has, each with its line.
    pub(super) lines: Vec<(&'static Field<D>, usize)>,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Line, counted from 1; `None` for the file as a whole.
    pub line: Option<usize>,
    /// What, and the remedy.
    pub what: String,
    /// How many bytes `[flow] memory` needs at least, where it is too little.
    pub needs_bytes: Option<u64>,
}

impl ScenarioError {
    pub(super) fn new(line: Option<usize>, what: String) -> Self {
        ScenarioError { line, what, needs_bytes: None }
    }
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
struct Given<D: 'static> {
    field: &'static Field<D>,
    values: Vec<String>,
    is_list: bool,
    place: Range<usize>,
}

/// What becomes of fields that change nothing in any run of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// They are refused: whoever wrote them expected something of them.
    Refused,
    /// They are left alone: the text is one point of a larger sweep, in others of which they count.
    Allowed,
}

impl Ignored {
    fn refuses(self) -> bool {
        self == Ignored::Refused
    }
}

/// Most combinations of a sweep. More are refused, because then a list is longer than its author meant.
const POINTS_MOST: usize = 100_000;

impl<D: Draft> Sweep<D> {
    /// Reads a file's text; traces are looked for in `folder`.
    ///
    /// # Errors
    /// If the text is no TOML, names what does not exist, or describes something impossible.
    pub fn read(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        Self::read_with(text, folder, Ignored::Refused)
    }

    pub(super) fn read_with(text: &str, folder: &Path, ignores: Ignored) -> Result<Self, ScenarioError> {
        let line = |place: &Range<usize>| line_at(text, place);
        let table = parse(text)?;
        let given = collect(&table).map_err(|(place, what)| ScenarioError::new(Some(line(&place)), what))?;
        let lines = given.iter().map(|given| (given.field, line(&given.place))).collect();
        let axes: Vec<&Given<D>> = given.iter().filter(|given| given.is_list).collect();
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
            return Err(ScenarioError::new(longest.map(|axis| line(&axis.place)), what));
        }
        for number in 0..count {
            let values = combination(&axes, number);
            let mut draft = D::new();
            // In the order of the table: a set of parameters comes before what changes one of them.
            for field in D::FIELDS {
                let Some(given) = given.iter().find(|given| std::ptr::eq(given.field, field)) else { continue };
                let axis = axes.iter().position(|axis| std::ptr::eq(axis.field, field));
                let value = axis.map_or(&given.values[0], |axis| &values[axis]);
                (field.set)(&mut draft, value).map_err(|problem| {
                    let what = format!("[{}] {} = {}: {problem}", field.section, field.name, shown(value));
                    ScenarioError::new(Some(line(&given.place)), what)
                })?;
            }
            let scenario = draft.finish(folder).map_err(|refusal| sweep.refuse(refusal, &values))?;
            sweep.points.push((values, scenario));
        }
        match given.iter().find(|given| ignores.refuses() && sweep.is_idle(given)) {
            Some(idle) => Err(ScenarioError::new(Some(line(&idle.place)), changes_nothing(idle, &given))),
            None => Ok(sweep),
        }
    }

    /// Whether a field was given another value than its default and changes nothing in any run.
    fn is_idle(&self, given: &Given<D>) -> bool {
        given.values.iter().any(|value| value != given.field.default)
            && !self.points.iter().any(|(_, scenario)| D::heeds(scenario, given.field))
    }

    /// Whether the file says anything of a table.
    #[must_use]
    pub fn has_table(&self, section: &str) -> bool {
        self.lines.iter().any(|(field, _)| field.section == section)
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

    fn refuse(&self, Refusal { fields, what, needs_bytes }: Refusal, values: &[String]) -> ScenarioError {
        ScenarioError { line: self.line_of(&fields), what: what + &self.with(values), needs_bytes }
    }
}

/// What is said of a field that changes nothing: whoever wrote it expected something of it.
fn changes_nothing<D: Draft>(idle: &Given<D>, given: &[Given<D>]) -> String {
    let values = |name: FieldName| {
        let found = given.iter().find(|given| (given.field.section, given.field.name) == name)?;
        Some(found.values.join(", "))
    };
    let Field { section, name, .. } = idle.field;
    let why = D::why_idle(idle.field, values);
    format!("[{section}] {name} = {} changes nothing in {why}", shown(&idle.values.join(", ")))
}

/// The tables of a text.
fn parse(text: &str) -> Result<DeTable<'_>, ScenarioError> {
    let line = |place: &Range<usize>| line_at(text, place);
    DeTable::parse(text)
        .map(toml::Spanned::into_inner)
        .map_err(|error| ScenarioError::new(error.span().as_ref().map(line), not_toml(text, &error)))
}

/// The line where something stands, counted from 1.
fn line_at(text: &str, place: &Range<usize>) -> usize {
    1 + text[..place.start.min(text.len())].matches('\n').count()
}

/// Whether a text has such a table.
///
/// # Errors
/// If it is no TOML.
pub(super) fn has_table(text: &str, name: &str) -> Result<bool, ScenarioError> {
    parse(text).map(|tables| tables.keys().any(|key| key.get_ref() == name))
}

/// The text of a file.
///
/// # Errors
/// If it is not UTF-8.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, ScenarioError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let what = "this is not UTF-8: save the file as UTF-8 text".to_owned();
        ScenarioError::new(Some(line), what)
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
fn combination<D>(axes: &[&Given<D>], mut number: usize) -> Vec<String> {
    let mut values: Vec<String> = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        values.push(axis.values[number % axis.values.len()].clone());
        number /= axis.values.len();
    }
    values.reverse();
    values
}

type Misplaced = (Range<usize>, String);

fn collect<D: Draft>(table: &DeTable<'_>) -> Result<Vec<Given<D>>, Misplaced> {
    let mut all = Vec::new();
    for (section, content) in table {
        let name = section.get_ref().as_ref();
        if D::FIELDS.iter().all(|field| field.section != name) {
            let sections = D::FIELDS.iter().map(|field| field.section);
            let problem = D::of_another_kind(name).unwrap_or_else(|| unknown("section", name, sections));
            return Err((section.span(), problem));
        }
        let DeValue::Table(content) = content.get_ref() else {
            return Err((section.span(), format!("{name} is a section: write [{name}] on a line of its own")));
        };
        for (key, value) in content {
            let of_section = || D::FIELDS.iter().filter(|field| field.section == name);
            let found = of_section().find(|field| field.name == key.get_ref().as_ref());
            let Some(field) = found else {
                let names = of_section().map(|field| field.name);
                let elsewhere = D::FIELDS.iter().find(|field| field.name == key.get_ref().as_ref());
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
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known.map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    match near.max_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((likeness, candidate)) if likeness > 0.7 => format!(": did you mean {candidate}?"),
        _ => String::new(),
    }
}
