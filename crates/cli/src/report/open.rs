//! What was still open at the end: posted receives, sends that were not finished, messages that nobody received. Where
//! a job hung, the oldest of them say why.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};
use tidegate_link::EndpointStats;
use tidegate_link::stats::OpenReceive;
use tidegate_message::{Unit, WaitCause};

use crate::arguments::Ranks;
use crate::mpi::MpiKind;
use crate::report::names::{Names, Who};
use crate::report::table::{FEW, plain_table, push_table};
use crate::report::units::human;
use crate::report::width::Width;
use crate::tag;

/// What something open is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A receive that waits for its message.
    Receive,
    /// A receive whose message is on its way into the buffer.
    Arriving,
    /// The program asked again and again whether such a message is there.
    Probe,
    /// A send.
    Send,
    /// A message that nobody has received.
    Message,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Receive | Kind::Arriving => "receive",
            Kind::Probe => "probe",
            Kind::Send => "send",
            Kind::Message => "message",
        }
    }
}

/// Something that was open.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// Whose it is.
    pub of: Who,
    /// What it is.
    pub kind: Kind,
    /// The other end, if it has one: to whom, from whom.
    pub with: Option<u64>,
    /// Match bits; `None`: untagged.
    pub tag: Option<u64>,
    /// Bits of it that do not matter.
    pub ignore: u64,
    /// Length, or length of the buffer.
    pub bytes: u64,
    /// How old it is.
    pub age: Duration,
    /// What a send waits for.
    pub waits_for: Option<WaitCause>,
    /// Whether its process had moved since this was written, so that it may have ended.
    pub is_uncertain: bool,
}

/// What was open in a launch when it ended.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// What is known one by one, the oldest first.
    pub open: Vec<Open>,
    /// How many receives there were, known one by one or not.
    pub receives: u64,
    /// How many processes probed for a message.
    pub probes: u64,
    /// How many sends.
    pub sends: u64,
    /// How many messages that nobody received.
    pub messages: u64,
    /// Which MPI packed the tags.
    pub mpi: Option<MpiKind>,
    names: Names,
}

impl Left {
    /// What is open in the pages of a launch. Of endpoints that have closed in order, receives do not count: MPIs close
    /// with receives of their own posted.
    pub fn of(pages: &[EndpointStats], mpi: Option<MpiKind>) -> Left {
        let told = pages.iter().find_map(|page| MpiKind::of_id(page.mpi.as_deref()?));
        let mut left = Left { names: Names::of(pages), mpi: told.or(mpi), ..Left::default() };
        for page in pages {
            left.add(page);
        }
        left.open.sort_by_key(|open| std::cmp::Reverse(open.age));
        left
    }

    fn add(&mut self, page: &EndpointStats) {
        let of = Who { rank: page.rank, pid: page.pid };
        let is_uncertain = !page.ended && !page.is_current;
        let work = &page.open;
        let common = |kind, with, tag, bytes, age| Open {
            of,
            kind,
            with,
            tag,
            ignore: 0,
            bytes,
            age,
            waits_for: None,
            is_uncertain,
        };
        if !page.ended {
            let probes = work.receives.iter().filter(|receive| receive.is_probe).count() as u64;
            self.probes += probes;
            self.receives = self.receives.saturating_add(work.receives_in_all.saturating_sub(probes));
            self.open.extend(work.receives.iter().map(|receive| {
                let kind = match receive {
                    OpenReceive { is_probe: true, .. } => Kind::Probe,
                    OpenReceive { is_arriving: true, .. } => Kind::Arriving,
                    _ => Kind::Receive,
                };
                let open = common(kind, receive.from, receive.tag, receive.bytes, receive.age());
                Open { ignore: receive.ignore, ..open }
            }));
        }
        self.sends = self.sends.saturating_add(work.sends_in_all);
        self.open.extend(work.sends.iter().map(|send| {
            let open = common(Kind::Send, Some(send.to), send.tag, send.bytes, send.age());
            Open { waits_for: send.waits_for, ..open }
        }));
        self.messages = self.messages.saturating_add(work.unexpected_in_all);
        self.open.extend(
            work.unexpected
                .iter()
                .map(|message| common(Kind::Message, Some(message.from), message.tag, message.bytes, message.age())),
        );
    }

    /// Whether nothing was open.
    pub fn is_empty(&self) -> bool {
        [self.receives, self.probes, self.sends, self.messages] == [0; 4]
    }

    /// The section of the report; empty if nothing was open.
    pub fn text(&self, ranks: Ranks, width: Width) -> String {
        if self.is_empty() {
            return String::new();
        }
        let count = |count: u64, one: &str, many: &str| {
            (count > 0).then(|| format!("{} {}", human(count, Unit::Count), if count == 1 { one } else { many }))
        };
        let kinds = [
            count(self.receives, "posted receive", "posted receives"),
            count(self.probes, "probe", "probes"),
            count(self.sends, "unfinished send", "unfinished sends"),
            count(self.messages, "message that nobody received", "messages that nobody received"),
        ];
        let kinds: Vec<String> = kinds.into_iter().flatten().collect();
        let mut text = format!("tidegate: still open at the end: {}\n", kinds.join(", "));
        if ranks != Ranks::None {
            text.insert(0, '\n');
        }
        let shown = match ranks {
            Ranks::None => &[],
            Ranks::All => &self.open[..],
            Ranks::Auto | Ranks::Top => &self.open[..self.open.len().min(FEW)],
        };
        push_table(&mut text, self.table(shown, width));
        let more = self.open.len() - shown.len();
        if more > 0 && ranks != Ranks::None {
            let _ = writeln!(text, "  and {more} more: --ranks all");
        }
        if shown.iter().any(|open| open.is_uncertain) {
            text += "  ?: its process went on after this was seen, so it may have ended\n";
        }
        text
    }

    /// Columns of text are broken where they are too wide.
    fn table(&self, shown: &[Open], width: Width) -> Table {
        let mut table = plain_table();
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.columns as u16);
        for open in shown {
            let age = human(open.age.as_nanos().try_into().unwrap_or(u64::MAX), Unit::Nanoseconds);
            let doubt = if open.is_uncertain { " ?" } else { "" };
            table.add_row([
                format!("{}{doubt}", open.of.label()),
                format!("{} {}", open.kind.name(), self.with(open)),
                tag::decode(self.mpi, open.tag, open.ignore),
                human(open.bytes, Unit::Bytes),
                age,
            ]);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 2 } else { 1 }, 1));
        }
        table
    }

    /// The other end, and what happens there.
    fn with(&self, open: &Open) -> String {
        let other = open.with.map(|endpoint| self.names.label(endpoint));
        match (open.kind, other, open.waits_for) {
            (Kind::Receive | Kind::Probe, None, _) => "from any rank".to_owned(),
            (Kind::Send, Some(other), Some(cause)) => format!("to {other}: waits for {}", cause.help()),
            (Kind::Send, other, _) => format!("to {}", other.unwrap_or_default()),
            (Kind::Arriving, other, _) => format!("from {}, which has begun", other.unwrap_or_default()),
            (Kind::Receive | Kind::Probe | Kind::Message, other, _) => format!("from {}", other.unwrap_or_default()),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let operations = self.open.iter().map(|open| {
            let other = open.with.and_then(|endpoint| self.names.find(endpoint));
            let parsed = self.mpi.zip(open.tag).map(|(mpi, bits)| tag::parse(mpi, bits, open.ignore));
            json!({
                "rank": open.of.rank,
                "pid": open.of.pid,
                "kind": open.kind.name(),
                "has_begun": open.kind == Kind::Arriving,
                "peer_rank": other.and_then(|who| who.rank),
                "peer_pid": other.map(|who| who.pid),
                "any_source": open.with.is_none(),
                "match_bits": open.tag.map(|tag| format!("{tag:#x}")),
                "ignore_bits": format!("{:#x}", open.ignore),
                "tag": parsed.and_then(|parsed| parsed.tag),
                "communicator": parsed.map(|parsed| parsed.communicator),
                "collective": parsed.map(|parsed| parsed.is_collective),
                "bytes": open.bytes,
                "age_s": open.age.as_secs_f64(),
                "waits_for": open.waits_for.map(WaitCause::name),
                "certain": !open.is_uncertain,
            })
        });
        json!({
            "receives": self.receives,
            "probes": self.probes,
            "sends": self.sends,
            "messages": self.messages,
            "operations": operations.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_link::stats::{OpenMessage, OpenSend};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Pages of two ranks: rank 1 waits for tag 77 of rank 0, which has a long send to it open.
    fn hung() -> Vec<EndpointStats> {
        let [mut zero, mut one] = [0, 1].map(|rank| EndpointStats::blank(100 + rank, Some(rank), Some(2)));
        (zero.is_current, one.is_current) = (true, false);
        zero.open.sends_in_all = 1;
        let (to, waits_for) = (one.endpoint, Some(WaitCause::Pull));
        zero.open.sends.push(OpenSend { to, tag: Some(3), bytes: 100_000, since: seconds(5), waits_for });
        one.open.receives_in_all = 40;
        let receive = OpenReceive {
            from: Some(zero.endpoint),
            tag: Some(77),
            ignore: 0,
            bytes: 4,
            since: seconds(6),
            is_arriving: false,
            is_probe: false,
        };
        one.open.receives = vec![receive; 16];
        one.open.unexpected_in_all = 1;
        one.open.unexpected.push(OpenMessage { from: 99, tag: None, bytes: 8, since: seconds(1) });
        vec![zero, one]
    }

    #[test]
    fn the_oldest_come_first_with_rank_peer_tag_and_age() {
        let left = Left::of(&hung(), Some(MpiKind::Mpich));
        let text = left.text(Ranks::All, Width::USUAL);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "tidegate: still open at the end: 40 posted receives, 1 unfinished send, 1 message that nobody received"
        );
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lines[2]), "rank 1 ? receive from rank 0 tag 77, MPI_COMM_WORLD 4 B 6.00 s");
        assert_eq!(
            words(lines[18]),
            "rank 0 send to rank 1: waits for its receive tag 3, MPI_COMM_WORLD 97.7 KiB 5.00 s"
        );
        assert_eq!(words(lines[19]), "rank 1 ? message from a rank without counters here untagged 8 B 1.00 s");
        assert!(lines[20].contains("may have ended"), "{text}");
        assert!(left.text(Ranks::Auto, Width::USUAL).contains("  and 2 more: --ranks all\n"));
        assert_eq!(left.text(Ranks::None, Width::USUAL).lines().count(), 1);
        let narrow = left.text(Ranks::All, Width { columns: 80, breaks_lines: true });
        assert!(narrow.lines().skip(2).all(|line| line.chars().count() <= 80), "{narrow}");
    }

    #[test]
    fn receives_that_an_endpoint_had_posted_when_it_closed_are_no_fault() {
        let mut pages = hung();
        pages.iter_mut().for_each(|page| page.ended = true);
        let left = Left::of(&pages, None);
        assert_eq!((left.receives, left.sends, left.messages), (0, 1, 1));
        pages.iter_mut().for_each(|page| page.open = Default::default());
        assert_eq!(Left::of(&pages, None).text(Ranks::Auto, Width::USUAL), "");
    }

    #[test]
    fn programs_get_the_same() {
        let value = Left::of(&hung(), Some(MpiKind::Mpich)).json();
        assert_eq!((&value["receives"], &value["operations"][16]["waits_for"]), (&json!(40), &json!("pull")));
        let first = &value["operations"][0];
        assert_eq!((&first["rank"], &first["peer_rank"], &first["tag"]), (&json!(1), &json!(0), &json!(77)));
        assert_eq!((&first["age_s"], &first["certain"]), (&json!(6.0), &json!(false)));
    }
}
