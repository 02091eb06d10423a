//! The columns of the table of ranks: what each shows, how wide it is, and how it sorts. Screen and text share them.

use std::cmp::Ordering;
use std::time::Duration;

use tidegate_message::{Unit, WaitCause};

use crate::culprit::{Presence, age, cause_word};
use crate::report::units::human;
use crate::top::view::{JobView, Rates, Row};

/// A column.
pub struct Column {
    /// Its head.
    pub title: &'static str,
    /// Its width in characters, without the space behind it.
    pub width: usize,
    /// Whether its cells begin at the left.
    pub is_left: bool,
    /// What it means, for the help.
    pub help: &'static str,
    cell: fn(&JobView, &Row) -> String,
    value: fn(&Row) -> f64,
}

/// The column of the ranks' names, which is always shown.
pub const RANK: usize = 0;
/// The column of the part of the time that a rank waits.
pub const WAITS: usize = 5;

/// How the rows of a table are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those that are to blame come first, then all others by rank.
    Blame,
    /// By the cells of a column.
    By {
        /// The place of the column.
        column: usize,
        /// Whether the largest comes first.
        is_reversed: bool,
    },
}

impl Order {
    /// The column that has to be shown for it.
    pub fn column(self) -> usize {
        match self {
            Order::Blame => RANK,
            Order::By { column, .. } => column,
        }
    }
}

/// All columns, those first that a narrow terminal shows: the first ten fit 80 characters.
pub static COLUMNS: [Column; 22] = [
    column(
        "rank",
        6,
        "its rank, else p and its process id; ! behind it: it holds up others, as the line on top says",
        |_, row| marked_name(row),
        |row| row.rank.map_or(1e12 + f64::from(row.pid), f64::from),
    )
    .left(),
    column(
        "state",
        10,
        "what it does most of the time: waits (in MPI), computes (outside of MPI, or calls it rarely), no CPU (would run, \
         others have the processors), sleeps (no message would wake it), stopped (by a signal or debugger), runs (its \
         messages move), away (outside of MPI, on another host), left (MPI, in order), gone (its process is), ? (the next \
         look may tell)",
        |_, row| row.state.word().to_owned(),
        |row| f64::from(row.state as u8),
    )
    .left(),
    column(
        "msg/s",
        7,
        "messages sent per second",
        |_, row| count_rate(row, |rates| rates.messages),
        |row| rate(row, |rates| rates.messages),
    ),
    column(
        "sent/s",
        8,
        "bytes of messages sent per second",
        |_, row| byte_rate(row, |rates| rates.sent),
        |row| rate(row, |rates| rates.sent),
    ),
    column(
        "recv/s",
        8,
        "bytes of messages received per second",
        |_, row| byte_rate(row, |rates| rates.received),
        |row| rate(row, |rates| rates.received),
    ),
    column(
        "waits",
        5,
        "part of the time that it waited for the rank in the next column",
        |_, row| row.wait.as_ref().map_or_else(String::new, |wait| percent(wait.share)),
        |row| row.wait.as_ref().map_or(-1.0, |wait| wait.share),
    ),
    column(
        "for",
        6,
        "the rank that it waits for most",
        |view, row| row.wait.as_ref().map_or_else(String::new, |wait| short_name(&view.rows[wait.awaited])),
        |row| row.wait.as_ref().map_or(-1.0, |wait| wait.awaited as f64),
    ),
    column(
        "why",
        7,
        "what it waits for there: credits; room in its mailbox or receive memory; posted buffers; that it pulls a long \
         message; or a message of it",
        |_, row| row.wait.as_ref().map_or_else(String::new, |wait| cause_word(wait.cause).to_owned()),
        |row| {
            let place = row.wait.as_ref().and_then(|wait| WaitCause::ALL.iter().position(|cause| *cause == wait.cause));
            place.map_or(-1.0, |place| place as f64)
        },
    )
    .left(),
    column(
        "longest",
        9,
        "how long the longest wait for that rank has lasted that goes on",
        |_, row| row.wait.as_ref().and_then(|wait| wait.open_for).map_or_else(String::new, nine_letters),
        |row| row.wait.as_ref().and_then(|wait| wait.open_for).map_or(-1.0, |time| time.as_secs_f64()),
    ),
    column(
        "mem",
        4,
        "receive memory in use, as part of its bound",
        |_, row| percent(row.memory.share()),
        |row| row.memory.share(),
    ),
    column(
        "holds",
        5,
        "how many ranks wait for it directly",
        |_, row| zero_is_empty(row.awaited_by as u64),
        |row| row.awaited_by as f64,
    ),
    column(
        "away",
        8,
        "how long it has not called MPI",
        |_, row| away(row).map_or_else(String::new, short_age),
        |row| away(row).map_or(-1.0, |time| time.as_secs_f64()),
    ),
    column(
        "queued",
        6,
        "part of the time that it would have run and had no CPU (its first thread, on this host)",
        |_, row| row.queued.map_or_else(String::new, percent),
        |row| row.queued.unwrap_or(-1.0),
    ),
    column(
        "refused/s",
        9,
        "messages or packets of it that found no posted buffer or a full mailbox, per second",
        |_, row| count_rate(row, |rates| rates.refused),
        |row| rate(row, |rates| rates.refused),
    ),
    column(
        "resent/s",
        8,
        "batches sent again to other hosts per second, because the network lost them",
        |_, row| count_rate(row, |rates| rates.resent),
        |row| rate(row, |rates| rates.resent),
    ),
    column(
        "held",
        8,
        "receive memory in use",
        |_, row| human(row.memory.held, Unit::Bytes),
        |row| row.memory.held as f64,
    ),
    column(
        "peak",
        8,
        "most receive memory that was ever in use",
        |_, row| human(row.memory.peak, Unit::Bytes),
        |row| row.memory.peak as f64,
    ),
    column(
        "oldest receive",
        44,
        "the oldest receive that it has posted, with its age",
        |_, row| oldest(&row.receive.text),
        |row| oldest_age(&row.receive.text),
    )
    .left(),
    column(
        "oldest send",
        44,
        "the oldest send that it has not finished",
        |_, row| oldest(&row.send.text),
        |row| oldest_age(&row.send.text),
    )
    .left(),
    column(
        "unmatched",
        9,
        "messages that came and that no receive has accepted",
        |_, row| zero_is_empty(row.unexpected.in_all),
        |row| row.unexpected.in_all as f64,
    ),
    column("host", 12, "its host", |_, row| row.host.clone(), |_| 0.0).left(),
    column("pid", 8, "its process", |_, row| row.pid.to_string(), |row| f64::from(row.pid)),
];

const fn column(
    title: &'static str,
    width: usize,
    help: &'static str,
    cell: fn(&JobView, &Row) -> String,
    value: fn(&Row) -> f64,
) -> Column {
    Column { title, width, is_left: false, help, cell, value }
}

impl Column {
    const fn left(mut self) -> Self {
        self.is_left = true;
        self
    }

    /// What it shows of a row.
    pub fn cell(&self, view: &JobView, row: &Row) -> String {
        (self.cell)(view, row)
    }

    /// A text cut and filled to its width.
    pub fn fill(&self, text: &str) -> String {
        let width = self.width;
        let count = text.chars().count();
        let text: String =
            if count > width { text.chars().take(width - 1).chain(['…']).collect() } else { text.into() };
        if self.is_left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }
}

/// Which columns fit a width: the ranks' names, then as many from the first on, and in any case the one of this place.
pub fn fit(width: usize, place: usize) -> Vec<usize> {
    let total = |columns: &[usize]| columns.iter().map(|column| COLUMNS[*column].width + 1).sum::<usize>() - 1;
    let mut shown: Vec<usize> = vec![RANK];
    for next in 1..COLUMNS.len() {
        shown.push(next);
        if total(&shown) <= width {
            continue;
        }
        if next > place {
            shown.pop();
            break;
        }
        // Make room on the left for the column that must be there.
        while shown.len() > 2 && total(&shown) > width {
            shown.remove(1);
        }
    }
    shown
}

/// The places of the rows to show, in order. `filter`: the name of a rank, which then is the only one shown; or a text
/// that one of the cells must have, whatever its case.
pub fn arrange(view: &JobView, order: Order, filter: &str) -> Vec<usize> {
    let wanted = filter.trim().to_lowercase();
    let is_name = |row: &Row| row.name == wanted;
    let has_name = view.rows.iter().any(is_name);
    let is_shown = |row: &Row| if has_name { is_name(row) } else { has(view, row, &wanted) };
    let mut places: Vec<usize> = (0..view.rows.len()).filter(|place| is_shown(&view.rows[*place])).collect();
    let Order::By { column, is_reversed } = order else {
        // Rows are in order of rank.
        places.sort_by_key(|place| view.rows[*place].blame.unwrap_or(usize::MAX));
        return places;
    };
    let compare = |one: &Row, other: &Row| -> Ordering {
        // Among equals and hosts the texts decide, which are equal for numbers.
        let order = (COLUMNS[column].value)(one).total_cmp(&(COLUMNS[column].value)(other));
        order.then_with(|| if COLUMNS[column].title == "host" { one.host.cmp(&other.host) } else { Ordering::Equal })
    };
    places.sort_by(|one, other| {
        let order = compare(&view.rows[*one], &view.rows[*other]);
        (if is_reversed { order.reverse() } else { order }).then(one.cmp(other))
    });
    places
}

fn has(view: &JobView, row: &Row, wanted: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(wanted);
    wanted.is_empty() || has(&row.name) || COLUMNS.iter().any(|column| has(&column.cell(view, row)))
}

/// The mark of a rank that is to blame: no colour is needed to see it.
pub const MARK: char = '!';

/// The name of a rank with the mark, which is never cut.
fn marked_name(row: &Row) -> String {
    let name = short_name(row);
    let room = COLUMNS[RANK].width;
    match (row.blame, name.chars().count()) {
        (None, _) => name,
        (Some(_), length) if length + 2 <= room => format!("{name} {MARK}"),
        (Some(_), length) if length < room => format!("{name}{MARK}"),
        (Some(_), _) => name.chars().take(room - 2).chain(['…', MARK]).collect(),
    }
}

fn away(row: &Row) -> Option<Duration> {
    match row.presence {
        Presence::Away { time, .. } => Some(time),
        _ => None,
    }
}

fn short_name(row: &Row) -> String {
    row.rank.map_or_else(|| format!("p{}", row.pid), |rank| rank.to_string())
}

/// An age of at most nine characters.
fn nine_letters(time: Duration) -> String {
    Some(age(time)).filter(|text| text.chars().count() <= 9).unwrap_or_else(|| short_age(time))
}

/// An age of at most five characters.
fn short_age(time: Duration) -> String {
    match time.as_secs() {
        // 9.96 would be printed as 10.0.
        0..10 if time.as_millis() < 9_950 => format!("{:.1} s", time.as_secs_f64()),
        0..10 => "10 s".to_owned(),
        seconds @ 10..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{}min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

fn rate(row: &Row, of: fn(&Rates) -> f64) -> f64 {
    row.rates.as_ref().map_or(-1.0, of)
}

fn count_rate(row: &Row, of: fn(&Rates) -> f64) -> String {
    row.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| per_second(of(rates), Unit::Count))
}

fn byte_rate(row: &Row, of: fn(&Rates) -> f64) -> String {
    row.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| per_second(of(rates), Unit::Bytes))
}

/// A rate, without the "per second".
pub fn per_second(rate: f64, unit: Unit) -> String {
    // A float becomes the nearest integer that there is.
    human(rate.round() as u64, unit)
}

/// A part as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn zero_is_empty(count: u64) -> String {
    if count == 0 { String::new() } else { human(count, Unit::Count) }
}

fn oldest(text: &Option<(String, Duration)>) -> String {
    text.as_ref().map_or_else(String::new, |(text, time)| format!("{}: {text}", age(*time)))
}

fn oldest_age(text: &Option<(String, Duration)>) -> f64 {
    text.as_ref().map_or(-1.0, |(_, time)| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::view::tests::example;

    const WHY: usize = 7;

    fn by(column: usize, is_reversed: bool) -> Order {
        Order::By { column, is_reversed }
    }

    fn titles(columns: &[usize]) -> Vec<&'static str> {
        columns.iter().map(|column| COLUMNS[*column].title).collect()
    }

    #[test]
    fn ten_columns_fit_eighty_characters_and_all_fit_a_wide_terminal() {
        assert_eq!(
            titles(&fit(80, RANK)),
            ["rank", "state", "msg/s", "sent/s", "recv/s", "waits", "for", "why", "longest", "mem"]
        );
        assert_eq!(fit(400, RANK).len(), COLUMNS.len());
        assert_eq!(COLUMNS[WAITS].title, "waits");
    }

    #[test]
    fn the_column_that_sorts_is_always_there() {
        for place in 0..COLUMNS.len() {
            let shown = fit(80, place);
            assert!(shown.contains(&place) && shown[0] == RANK, "{:?}", titles(&shown));
            let width: usize = shown.iter().map(|column| COLUMNS[*column].width + 1).sum();
            assert!(width <= 81, "{:?}", titles(&shown));
        }
    }

    #[test]
    fn rows_sort_by_any_column_and_both_ways() {
        let view = example(4);
        for (place, column) in COLUMNS.iter().enumerate() {
            let mut both = [false, true].map(|is_reversed| arrange(&view, by(place, is_reversed), ""));
            both.iter_mut().for_each(|places| places.sort_unstable());
            assert_eq!(both, [vec![0, 1, 2, 3], vec![0, 1, 2, 3]], "{}", column.title);
        }
        assert_eq!(arrange(&view, by(RANK, true), ""), [3, 2, 1, 0]);
        assert_eq!(arrange(&view, by(WAITS, true), "")[2..], [1, 3], "those that do not wait come last, in order");
    }

    #[test]
    fn those_to_blame_come_first_and_are_marked_and_a_sort_by_rank_is_one() {
        let view = example(4);
        assert_eq!(arrange(&view, Order::Blame, ""), [1, 0, 2, 3]);
        assert_eq!(arrange(&view, by(RANK, false), ""), [0, 1, 2, 3]);
        let cells: Vec<String> = view.rows.iter().map(|row| COLUMNS[RANK].cell(&view, row)).collect();
        assert_eq!(cells, ["0", "1 !", "2", "3"]);
        assert_eq!(arrange(&view, Order::Blame, "!"), [1]);
        // The mark is never cut off.
        for (rank, expected) in [(9_999, "9999 !"), (12_345, "12345!"), (1_234_567, "1234…!")] {
            let mut view = example(4);
            view.rows[1].rank = Some(rank);
            assert_eq!(COLUMNS[RANK].cell(&view, &view.rows[1]), expected);
        }
    }

    #[test]
    fn a_filter_is_the_name_of_a_rank_or_looks_at_all_cells() {
        let view = example(32);
        let filtered = |filter: &str| arrange(&view, by(RANK, false), filter);
        // Rank 2 has a receive of rank 0 open, and there are ranks 20 to 29.
        assert_eq!((filtered("rank 2"), filtered(" Rank 0 ")), (vec![2], vec![0]));
        assert_eq!(filtered("rank 3"), [3]);
        assert_eq!(filtered("from rank 0"), [2]);
        assert_eq!(filtered("Credits").len(), 30);
        assert_eq!(filtered("gone"), [31]);
        assert_eq!(filtered("no such text"), [0_usize; 0]);
        assert_eq!(filtered("rank 99"), [0_usize; 0]);
    }

    #[test]
    fn the_table_and_the_sentence_have_one_word_for_a_cause() {
        for cause in WaitCause::ALL {
            let mut view = example(4);
            view.waits.waits.iter_mut().for_each(|wait| wait.cause = *cause);
            let sentence = crate::culprit::sentence(&view.waits, &crate::culprit::find(&view.waits));
            view.rows[0].wait.as_mut().unwrap().cause = *cause;
            let cell = COLUMNS[WHY].cell(&view, &view.rows[0]);
            assert!(sentence.contains(&cell) && cell.len() <= COLUMNS[WHY].width, "{cell}: {sentence}");
        }
    }

    #[test]
    fn how_long_a_rank_is_away_fits_its_column() {
        let column = COLUMNS.iter().find(|column| column.title == "away").unwrap();
        for milliseconds in [0, 526, 9_949, 9_999, 10_000, 99_900, 100_000, 5_999_000, 6_000_000, 3_000_000_000] {
            let mut view = example(4);
            view.rows[0].presence = Presence::Away { time: Duration::from_millis(milliseconds), at_least: false };
            let cell = column.cell(&view, &view.rows[0]);
            assert!(cell.chars().count() <= column.width && !cell.is_empty(), "{cell}");
        }
        assert_eq!(column.cell(&example(4), &example(4).rows[0]), "");
    }

    #[test]
    fn cells_are_cut_to_their_columns() {
        assert_eq!(COLUMNS[RANK].fill("1234567"), "12345…");
        assert_eq!(COLUMNS[2].fill("12"), "     12");
    }
}
