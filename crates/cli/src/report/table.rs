//! The report for people.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table};
use tidegate_flow::ReceiverResource;
use tidegate_link::Chunk;
use tidegate_message::{Aggregate, Counter, Unit};

use crate::arguments::Ranks;
use crate::mpi::MpiKind;
use crate::report::units::human;
use crate::report::width::Width;
use crate::report::{Job, Launch, Process, Spread, chosen, distinct, memory, ways};

/// Above this many processes, `--ranks auto` shows only those that hold a maximum.
pub(super) const FEW: usize = 16;

/// Counters that every report shows. Others are shown if they are not 0.
const MAIN: [Counter; 13] = [
    Counter::PacketsSent,
    Counter::PacketsReceived,
    Counter::MessagesEager,
    Counter::MessagesRendezvous,
    Counter::SendsDelayed,
    Counter::DelayNanoseconds,
    Counter::CreditPackets,
    Counter::CreditsPiggybacked,
    Counter::MailboxPeak,
    Counter::UnexpectedPeak,
    Counter::MailboxBytes,
    Counter::BookkeepingBytes,
    Counter::BounceBufferBytes,
];

/// Counters of what is stored at the moment. They say nothing at the end of a run, so they are left out.
const NOW: [Counter; 2] = [Counter::UnexpectedBytes, Counter::UnmatchedBytes];

/// What a report is made for.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// The MPI's name, if known.
    pub mpi: Option<&'a str>,
    /// How long the program ran, if known.
    pub wall_time: Option<Duration>,
    /// Which ranks get lines of their own.
    pub ranks: Ranks,
    /// How wide it may be.
    pub width: Width,
}

/// The whole report of a launch, lines ended by line feeds.
pub fn render(launch: &Launch, form: &Form) -> String {
    // Where the launcher is not known, its processes are.
    let mpi = form.mpi.or(launch.left.mpi.map(MpiKind::name));
    let text = counts(&launch.job, &Form { mpi, ..*form }) + &launch.waits.text(form.wall_time.unwrap_or_default());
    form.width.fit(&text) + &ending(launch, form)
}

/// What was open when a launch ended, and who did not close.
pub fn ending(launch: &Launch, form: &Form) -> String {
    let unclosed = launch.unclosed.text().map_or_else(String::new, |text| format!("tidegate: {text}\n"));
    let held_up = launch.held_up.as_ref().map_or_else(String::new, |who| format!("tidegate: at the end {who}\n"));
    form.width.fit(&(launch.left.text(form.ranks, form.width) + &held_up + &unclosed))
}

/// The reports of all launches, each under a line of its own where there are several.
pub fn render_all(launches: &[Launch], form: &Form) -> String {
    if let [only] = launches {
        return render(only, form);
    }
    let of = |(number, launch): (usize, &Launch)| {
        format!("\ntidegate: launch {} of {}\n{}", number + 1, launches.len(), render(launch, form))
    };
    launches.iter().enumerate().map(of).collect()
}

/// What was counted.
fn counts(job: &Job, form: &Form) -> String {
    let (ranks, width) = (form.ranks, form.width);
    let mut text = heading(job, form) + &memory::line(job) + &chosen::line(job) + &ways::line(job);
    text += "\n";
    push_table(&mut text, job_table(job));
    let shown = shown(job, ranks);
    for table in rank_tables(&shown, width) {
        text += "\n";
        push_table(&mut text, table);
    }
    let rest = job.processes().len() - shown.len();
    if rest > 0 && ranks != Ranks::None {
        let _ = writeln!(text, "  and {rest} more: --ranks all");
    }
    text + &memory::pressure(job, ranks, width)
}

/// The processes, how long they ran, and how much they sent.
pub fn who_ran(job: &Job, form: &Form) -> String {
    let processes = job.processes();
    let mpi = form.mpi.map(|mpi| format!(", {mpi}")).unwrap_or_default();
    let noun = if processes.len() == 1 { "process" } else { "processes" };
    let nanoseconds = |time: Duration| time.as_nanos().try_into().unwrap_or(u64::MAX);
    let time = form.wall_time.map(|time| format!(", {}", human(nanoseconds(time), Unit::Nanoseconds)));
    let sum = |counter| job.spread(counter).map_or(0, |spread| spread.job);
    let messages = [Counter::MessagesEager, Counter::MessagesRendezvous, Counter::MessagesSelf].map(sum);
    let messages = messages.into_iter().fold(0, u64::saturating_add);
    format!(
        "{} {noun} of {}{mpi}{}; {} {}, {}",
        processes.len(),
        distinct(job, &|p| p.program.clone()),
        time.unwrap_or_default(),
        human(messages, Unit::Count),
        if messages == 1 { "message" } else { "messages" },
        human(sum(Counter::BytesSent), Unit::Bytes),
    )
}

/// Whether credits ride on data packets, where there are credits.
fn piggyback(process: &Process) -> String {
    match (process.setup.scheme.lends(), process.setup.piggyback) {
        (ReceiverResource::FixedSlots | ReceiverResource::MovingSlots, true) => ", piggyback on".into(),
        (ReceiverResource::FixedSlots | ReceiverResource::MovingSlots, false) => ", piggyback off".into(),
        _ => String::new(),
    }
}

/// The same, and with which flow control.
pub fn heading(job: &Job, form: &Form) -> String {
    let of = |what: &dyn Fn(&Process) -> String| distinct(job, what);
    format!(
        "tidegate: {}\n\
         tidegate: scheme {}, {}{}, {} peers, bulk {}{}, spin {}\n",
        who_ran(job, form),
        of(&|p| p.setup.scheme.to_string()),
        of(&|p| p.setup.lends()),
        of(&piggyback),
        of(&|p| p.setup.peers.to_string()),
        bulk(job),
        network(job),
        of(&|p| p.setup.spin.to_string()),
    )
}

/// How bulk data travelled: what was chosen, and, where several ways were, how much went by each.
fn bulk(job: &Job) -> String {
    let states = distinct(job, &|process| process.setup.bulk.clone());
    let sum = |counter| job.spread(counter).map_or(0, |spread| spread.job);
    let (read, bounced) = (sum(Counter::BytesRead), sum(Counter::BytesBounced));
    let share = |bytes: u64| (bytes as f64 * 100.0 / (read as f64 + bounced as f64)).round();
    let chunks = chunks(job, &|process| process.setup.chunk);
    match states.as_str() {
        "direct" if read > 0 && bounced > 0 => {
            format!("direct {} %{chunks}, bounced {} %", share(read), share(bounced))
        }
        "direct" if bounced > 0 => "bounced".to_owned(),
        "direct" => states + &chunks,
        _ => states,
    }
}

/// In what parts long messages were taken, where that was in parts.
fn chunks(job: &Job, of: &dyn Fn(&Process) -> Option<Chunk>) -> String {
    distinct(job, &|process| match of(process) {
        None => String::new(),
        Some(Chunk::Bytes(bytes)) => format!(" in chunks of {}", human(bytes, Unit::Bytes)),
        Some(Chunk::Whole) => " in one piece".to_owned(),
    })
}

/// What reached other hosts.
fn network(job: &Job) -> String {
    let chunks = || chunks(job, &|process| process.setup.chunk_between_hosts);
    between_hosts(job).map_or_else(String::new, |hosts| format!(", {hosts}{}", chunks()))
}

/// How many hosts the job has, and what reaches them from each other; `None` where nothing was opened for that.
pub fn between_hosts(job: &Job) -> Option<String> {
    let networks = distinct(job, &|process| process.setup.network.clone());
    let hosts = distinct(job, &|process| process.host.clone()).split('|').count();
    let noun = if hosts == 1 { "host" } else { "hosts" };
    (!networks.is_empty()).then(|| format!("{hosts} {noun} by {networks}"))
}

/// One row per counter: the job, and how it spreads over the ranks.
fn job_table(job: &Job) -> Table {
    let mut table = plain_table();
    table.set_header(["", "job", "min", "median", "max", "max at"]);
    for counter in Counter::ALL {
        let Some(spread) = job.spread(*counter) else { continue };
        let is_left_out = NOW.contains(counter) || memory::IN_THE_LINE.contains(counter);
        if is_left_out || (spread.max == 0 && !MAIN.contains(counter)) {
            continue;
        }
        let value = |value| human(value, counter.unit());
        let at = if spread.min == spread.max { String::new() } else { label(&job.processes()[spread.max_at]) };
        let Spread { job, min, median, max, .. } = spread;
        table.add_row([counter.name().to_owned(), value(job), value(min), value(median), value(max), at]);
    }
    align(&mut table);
    table
}

/// One row per process, in as many tables as the width wants.
fn rank_tables(processes: &[&Process], width: Width) -> Vec<Table> {
    // The unit of a time stands beside its value, so it is left out of the header; names are broken at underscores to
    // keep columns narrow.
    let columns = MAIN.iter().map(|counter| Column {
        header: counter.name().trim_end_matches("_ns").replace('_', "\n"),
        cells: processes.iter().map(|process| human(process.get(*counter), counter.unit())).collect(),
    });
    let first = Column { header: String::new(), cells: processes.iter().map(|process| label(process)).collect() };
    tables(&first, &columns.collect::<Vec<_>>(), width)
}

/// A column of a table.
pub(super) struct Column {
    /// Its header, in lines.
    pub header: String,
    /// A cell for each row.
    pub cells: Vec<String>,
}

impl Column {
    /// Columns of the screen that it takes with its padding.
    fn columns(&self) -> usize {
        let texts = self.header.lines().chain(self.cells.iter().map(String::as_str));
        texts.map(|text| text.chars().count()).max().unwrap_or(0) + 2
    }
}

/// Columns in as many tables as the width wants, each with the first column. There are none without rows.
pub(super) fn tables(first: &Column, columns: &[Column], width: Width) -> Vec<Table> {
    let room = width.columns.saturating_sub(first.columns() + 1);
    let (mut tables, mut rest) = (Vec::new(), columns);
    while !rest.is_empty() && !first.cells.is_empty() {
        let mut taken = 0;
        let fitting = rest.iter().take_while(|column| {
            taken += column.columns();
            taken <= room
        });
        let (these, others) = rest.split_at(fitting.count().max(1));
        let mut table = plain_table();
        table.set_header([&first.header].into_iter().chain(these.iter().map(|column| &column.header)));
        for (row, name) in first.cells.iter().enumerate() {
            table.add_row([name].into_iter().chain(these.iter().map(|column| &column.cells[row])));
        }
        align(&mut table);
        tables.push(table);
        rest = others;
    }
    tables
}

/// The processes that get a row.
fn shown(job: &Job, ranks: Ranks) -> Vec<&Process> {
    let processes = job.processes();
    match ranks {
        Ranks::None => Vec::new(),
        Ranks::All => processes.iter().collect(),
        Ranks::Auto if processes.len() <= FEW => processes.iter().collect(),
        Ranks::Auto | Ranks::Top => {
            let spreads = MAIN.iter().filter_map(|counter| job.spread(*counter));
            let mut tops: Vec<usize> = spreads.filter(|s| s.max > s.min).map(|s| s.max_at).collect();
            tops.sort_unstable();
            tops.dedup();
            tops.into_iter().map(|index| &processes[index]).collect()
        }
    }
}

pub(super) fn label(process: &Process) -> String {
    match process.rank {
        Some(rank) => format!("rank {rank}"),
        None => format!("pid {}", process.pid),
    }
}

/// A table without lines, for a terminal.
pub fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// The first column to the left, numbers to the right, headers above their numbers.
pub(super) fn align(table: &mut Table) {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if index == 0 { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((if index == 0 { 2 } else { 1 }, 1));
    }
}

/// Adds the lines of a table, without spaces at their ends.
pub fn push_table(text: &mut String, table: Table) {
    for line in table.lines() {
        *text += line.trim_end();
        text.push('\n');
    }
}

/// The counters with unit and meaning.
pub fn counters() -> String {
    let mut table = plain_table();
    table.set_header(["counter", "unit", "over ranks", "meaning"]);
    for counter in Counter::ALL {
        table.add_row([counter.name(), super::units::name(counter.unit()), aggregate_name(*counter), counter.help()]);
    }
    let mut text = String::new();
    push_table(&mut text, table);
    text
}

/// How the values of ranks become the job's.
pub fn aggregate_name(counter: Counter) -> &'static str {
    match counter.aggregate() {
        Aggregate::Sum => "sum",
        Aggregate::Max => "max",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{job, launch_of, process};
    use tidegate_flow::SchemeName;
    use tidegate_link::PostedBuffers;

    const FORM: Form = Form {
        mpi: Some("MPICH 5.0.2"),
        wall_time: Some(Duration::from_millis(1234)),
        ranks: Ranks::Auto,
        width: Width::USUAL,
    };

    fn rendered(job: Job, ranks: Ranks) -> String {
        render(&launch_of(job), &Form { ranks, ..FORM })
    }

    fn four_ranks() -> Job {
        let ranks = (0..4u64).map(|rank| {
            process(
                rank as u32,
                &[
                    (Counter::PacketsSent, 1000 * (rank + 1)),
                    (Counter::PacketsReceived, 2500),
                    (Counter::MessagesEager, 40 + rank),
                    (Counter::SendsDelayed, if rank == 2 { 17 } else { 0 }),
                    (Counter::DelayNanoseconds, if rank == 2 { 3_456_789 } else { 0 }),
                    (Counter::MailboxPeak, 30 - rank),
                    (Counter::MailboxBytes, 81_920),
                    (Counter::ReceiveBound, 64 << 20),
                    (Counter::ReceiveFixedBytes, 163_840),
                    (Counter::WindowBytes, 3_350_000),
                    (Counter::ReceivePeak, 163_840 + 1000 * rank),
                ],
            )
        });
        job(ranks.collect())
    }

    #[test]
    fn a_report_of_few_ranks() {
        let text = rendered(four_ranks(), Ranks::Auto);
        let expected = include_str!("../../tests/data/report_four_ranks.txt");
        assert_eq!(text, expected, "got:\n{text}");
    }

    #[test]
    fn a_report_of_many_ranks_shows_those_with_a_maximum() {
        let mut ranks: Vec<_> = (0..64).map(|rank| process(rank, &[(Counter::PacketsSent, 10)])).collect();
        ranks[33] = process(33, &[(Counter::PacketsSent, 90)]);
        ranks[7] = process(7, &[(Counter::PacketsSent, 5), (Counter::SendsDelayed, 3)]);
        let job = job(ranks);
        let labels = |ranks| shown(&job, ranks).into_iter().map(label).collect::<Vec<_>>().join(" ");
        assert_eq!(labels(Ranks::Auto), "rank 7 rank 33");
        assert_eq!(labels(Ranks::Top), "rank 7 rank 33");
        assert_eq!(labels(Ranks::None), "");
        assert_eq!(shown(&job, Ranks::All).len(), 64);
        assert!(rendered(job.clone(), Ranks::Auto).ends_with("  and 62 more: --ranks all\n"));
    }

    #[test]
    fn a_report_fits_a_terminal_of_80_columns() {
        let width = Width { columns: 80, breaks_lines: true };
        let text = render(&launch_of(four_ranks()), &Form { width, ..FORM });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches("\n  rank 3 ").count(), 2, "two tables of ranks: {text}");
        let wide = render(&launch_of(four_ranks()), &Form { width: Width { columns: 200, ..width }, ..FORM });
        assert_eq!(wide.matches("\n  rank 3 ").count(), 1, "{wide}");
    }

    #[test]
    fn what_was_chosen_by_itself_is_told() {
        let of = |read, bounced| {
            bulk(&job(vec![process(0, &[(Counter::BytesRead, read), (Counter::BytesBounced, bounced)])]))
        };
        assert_eq!([of(0, 0), of(0, 9)], ["direct in chunks of 1.00 MiB", "bounced"]);
        assert_eq!(of(7, 0), of(0, 0));
        assert_eq!(of(300, 100), "direct 75 % in chunks of 1.00 MiB, bounced 25 %");
        let mut other = process(1, &[]);
        (other.host, other.setup.network) = ("g".into(), "tcp/eth0".into());
        let mut one = process(0, &[]);
        one.setup.network = "tcp/eth0".into();
        assert_eq!(network(&job(vec![one.clone(), other.clone()])), ", 2 hosts by tcp/eth0");
        for process in [&mut one, &mut other] {
            process.setup.chunk_between_hosts = Some(Chunk::Bytes(256 << 10));
        }
        assert_eq!(network(&job(vec![one.clone(), other])), ", 2 hosts by tcp/eth0 in chunks of 256 KiB");
        (one.setup.chunk, one.setup.spin) = (Some(Chunk::Whole), 32);
        assert_eq!(bulk(&job(vec![one.clone()])), "direct in one piece");
        let text = heading(&job(vec![one, process(1, &[])]), &FORM);
        assert!(text.ends_with(", spin 32|2000\n"), "ranks that chose differently are told apart: {text}");
    }

    #[test]
    fn counters_outside_the_main_ones_show_when_something_happened() {
        let quiet = rendered(job(vec![process(0, &[])]), Ranks::None);
        let loud = rendered(job(vec![process(0, &[(Counter::Violations, 1)])]), Ranks::None);
        assert!(!quiet.contains("violations") && quiet.contains("sends_delayed"), "{quiet}");
        assert!(loud.contains("violations"), "{loud}");
    }

    #[test]
    fn setups_that_differ_are_all_named() {
        let mut other = process(1, &[]);
        other.setup.slots_per_peer = 16;
        let text = heading(&job(vec![process(0, &[]), other]), &FORM);
        let both = "64 slots per peer, 2 of them for credit packets|16 slots per peer, 2 of them for credit packets";
        assert!(text.contains(both), "{text}");
    }

    #[test]
    fn posted_buffers_are_described_as_their_scheme_has_them() {
        let posted = PostedBuffers { packets: 37, each: 10, most: 100, pool_first: 8, pool_most: 64 };
        let said = |scheme, posted| {
            let mut setup = process(0, &[]).setup;
            (setup.scheme, setup.posted) = (scheme, Some(posted));
            setup.lends()
        };
        assert_eq!(said(SchemeName::Rnr, posted), "10 posted buffers per peer, of 37 packets each");
        let growing = "10 posted buffers per peer, at most 100 times the peers, of 37 packets each";
        assert_eq!(said(SchemeName::Growing, posted), growing);
        let pool = "8 to 64 posted buffers for all peers, of 37 packets each";
        assert_eq!(said(SchemeName::SharedWindow, posted), pool);
        let fixed = PostedBuffers { pool_first: 64, ..posted };
        assert_eq!(said(SchemeName::SharedWindow, fixed), "64 posted buffers for all peers, of 37 packets each");
    }

    #[test]
    fn every_counter_is_explained() {
        let text = counters();
        for counter in Counter::ALL {
            assert!(text.contains(counter.name()) && text.contains(counter.help()), "{}", counter.name());
        }
    }
}
