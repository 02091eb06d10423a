//! What keys do, seen on a terminal that is none.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Action, Screen, View};
use crate::culprit::Presence;
use crate::top::view::JobView;
use crate::top::view::tests::example;
use crate::top::watch::Update;

struct Shown {
    screen: Screen,
    terminal: Terminal<TestBackend>,
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn update(views: Vec<JobView>) -> Update {
    Update { views, cost: Duration::from_millis(2) }
}

impl Shown {
    fn new(width: u16, height: u16, views: Vec<JobView>) -> Self {
        let mut screen =
            Screen::new(Duration::from_secs(1), "no job here".to_owned(), &|_| Some("xterm-256color".to_owned()));
        screen.colours = super::heat::Colours::Many;
        screen.update(update(views));
        Shown { screen, terminal: Terminal::new(TestBackend::new(width, height)).unwrap() }
    }

    fn press(&mut self, keys: &[KeyCode]) -> &mut Self {
        for code in keys {
            self.lines();
            assert_eq!(self.screen.handle_key(key(*code)), Action::None, "{code:?}");
        }
        self
    }

    fn write(&mut self, text: &str) -> &mut Self {
        let keys: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
        self.press(&keys)
    }

    fn lines(&mut self) -> Vec<String> {
        self.terminal.draw(|frame| self.screen.draw(frame)).unwrap();
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
        buffer.content.chunks(width).map(|cells| line(cells).trim_end().to_owned()).collect()
    }

    fn text(&mut self) -> String {
        self.lines().join("\n")
    }
}

#[test]
fn one_job_is_shown_at_once_with_who_holds_it_up_and_the_keys() {
    let lines = Shown::new(80, 24, vec![example(4)]).lines();
    assert!(
        lines[0].starts_with(" tidegate top: job 4711, 3 of 4 ranks") && lines[0].ends_with("look 2.0 ms every 1.0 s")
    );
    assert!(lines[1].starts_with("a.out   4,000 messages/s, 4.00 MiB/s sent"), "{}", lines[1]);
    assert_eq!(lines[2], "rank 1 holds up 2 ranks, up to 90 % of the time: they wait for its credits");
    assert!(lines[4].starts_with("rank  !state"), "{}", lines[4]);
    assert_eq!(lines[5], "1 !    runs         1,000 1.00 MiB      0 B                                50 %");
    assert_eq!(lines[6], "0      waits        1,000 1.00 MiB      0 B  90 %      1 credits    100 ms 50 %");
    assert_eq!(lines[8], "3      gone         1,000 1.00 MiB      0 B                                50 %");
    assert!(lines[23].contains("Enter detail") && lines[23].contains("? help") && lines[23].ends_with("q quit"));
}

const LONG: &str = "rank 3 waits 5.3 s for a message of rank 0 (tag 77, MPI_COMM_WORLD), which waits for rank 3; 48 ranks \
                    wait in all; a message of rank 0 with tag 78, MPI_COMM_WORLD is there, which no receive of rank 3 accepts";

fn long(size: u32) -> JobView {
    JobView { sentence: LONG.to_owned(), ..example(size) }
}

/// The lines of a screen as one text.
fn words(lines: &[String]) -> String {
    lines.iter().map(|line| line.trim_end_matches(['█', '║']).trim()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_whole_sentence_stands_above_the_culprit_at_every_size() {
    for (width, height, rows) in [(40, 10, 1), (80, 24, 17), (200, 50, 44), (40, 24, 14), (80, 10, 3)] {
        let lines = Shown::new(width, height, vec![long(48)]).lines();
        assert!(words(&lines).contains(LONG), "{width} x {height}\n{}", lines.join("\n"));
        let head = lines.iter().position(|line| line.starts_with("rank  !")).unwrap();
        assert!(lines[head + 1].starts_with("1 !    runs"), "{lines:?}");
        assert_eq!(lines.len() - head - 2, rows, "{width} x {height}\n{}", lines.join("\n"));
        assert!(lines.last().unwrap().ends_with("? help  q quit"), "{lines:?}");
        assert!(lines[0].contains(" job 4711, 47 of 48 ranks"), "{lines:?}");
    }
    // The matrix, and all of one rank, scroll too.
    for keys in [&[KeyCode::Enter][..], &[KeyCode::Char('m')]] {
        let mut shown = Shown::new(80, 24, vec![long(48)]);
        assert!(words(&shown.press(keys).lines()).contains(LONG));
    }
}

#[test]
fn what_is_cut_of_a_sentence_is_its_end_and_one_sees_that() {
    let lines = Shown::new(40, 8, vec![long(48)]).lines();
    assert!(lines[1].starts_with("rank 3 waits 5.3 s for a message of rank") && lines[4].ends_with(" …"), "{lines:?}");
    assert!(lines[5].starts_with("rank  !") && lines[6].starts_with("1 !"), "{lines:?}");
    let endless = JobView { sentence: "x".repeat(5000), ..example(4) };
    let lines = Shown::new(80, 24, vec![endless]).lines();
    assert!(lines[20].ends_with("x…") && lines[22].starts_with("1 !"), "{lines:?}");
}

#[test]
fn a_culprit_is_seen_without_colours_and_with_them() {
    let mut shown = Shown::new(80, 24, vec![example(48)]);
    for colours in [super::heat::Colours::Many, super::heat::Colours::None] {
        shown.screen.colours = colours;
        let lines = shown.lines();
        assert_eq!(lines.iter().filter(|line| line.contains('!')).count(), 2, "{lines:?}");
        // The chosen line is another one.
        shown.press(&[KeyCode::Home, KeyCode::Down]);
        shown.lines();
        let cell = shown.terminal.backend().buffer().cell((0, 5)).unwrap();
        let alarm = colours.alarm();
        assert!(cell.modifier.contains(alarm.add_modifier) && alarm.fg.is_none_or(|colour| cell.fg == colour));
    }
}

#[test]
fn no_job_is_said_and_what_to_do() {
    let mut shown = Shown::new(80, 24, Vec::new());
    assert!(shown.text().contains("no job here"), "{}", shown.text());
    shown.press(&[KeyCode::Enter, KeyCode::Down, KeyCode::Char('m'), KeyCode::Char('/'), KeyCode::Esc]);
    assert!(shown.text().contains("0 jobs on this host"));
}

#[test]
fn jobs_are_chosen_from_a_list() {
    let mut other = example(8);
    other.id = "4712".into();
    other.has_ended = true;
    let mut shown = Shown::new(80, 24, vec![example(4), other]);
    let lines = shown.lines();
    assert!(lines[0].contains("2 jobs on this host"), "{}", lines[0]);
    assert!(
        lines[3].starts_with("4711               3/4") && lines[5].starts_with("4712               7/8        ended"),
        "{lines:?}"
    );
    assert!(lines[4].contains("rank 1 holds up 2 ranks"), "{}", lines[4]);
    shown.press(&[KeyCode::Down, KeyCode::Enter]);
    assert!(shown.lines()[0].starts_with(" tidegate top: job 4712, ended, 7 of 8 ranks"));
    shown.press(&[KeyCode::Esc, KeyCode::Up, KeyCode::Up, KeyCode::Enter]);
    assert!(shown.lines()[0].starts_with(" tidegate top: job 4711"));
}

#[test]
fn the_list_of_jobs_has_whole_sentences_where_there_is_room_and_the_chosen_one_always() {
    let jobs =
        |count: u32| (0..count).map(|job| JobView { id: format!("{}", 4700 + job), ..long(4) }).collect::<Vec<_>>();
    let shown = |width, height, count| Shown::new(width, height, jobs(count)).lines();
    let whole = |lines: &[String]| words(lines).matches(LONG).count();
    assert_eq!(whole(&shown(80, 24, 4)), 4);
    assert_eq!(whole(&shown(200, 50, 12)), 12);
    let lines = shown(80, 24, 12);
    assert_eq!(whole(&lines), 1, "{}", lines.join("\n"));
    assert!(lines[3].starts_with("4700 ") && lines[7].starts_with("4701 ") && lines[8].contains(" …"), "{lines:?}");
    assert_eq!(whole(&shown(40, 10, 3)), 1);
    let mut last = Shown::new(80, 24, jobs(40));
    last.press(&[KeyCode::End]);
    let lines = last.lines();
    assert!(lines[19].starts_with("4739 ") && whole(&lines) == 1, "{lines:?}");
}

#[test]
fn ranks_sort_and_filter() {
    let mut shown = Shown::new(80, 24, vec![example(4)]);
    shown.press(&[KeyCode::Char('r')]);
    assert!(shown.lines()[4].starts_with("rank  ▼") && shown.lines()[5].starts_with("3 "));
    shown.press(&[KeyCode::Char('r')]);
    assert!(shown.lines()[4].starts_with("rank  ▲") && shown.lines()[5].starts_with("0 "), "plainly by rank");
    shown.press(&[KeyCode::Left]);
    assert!(shown.lines()[4].starts_with("rank  !") && shown.lines()[5].starts_with("1 !"));
    shown.press(&[KeyCode::Right; 6]);
    assert!(shown.lines()[4].contains("waits▼") && shown.lines()[5].starts_with("0 "));
    // Columns that do not fit come in from the right, and then it begins again.
    shown.press(&[KeyCode::Right; 5]);
    assert!(shown.lines()[4].contains("holds▼") && shown.lines()[5].starts_with("1 "), "{}", shown.text());
    shown.press(&[KeyCode::Right; 12]);
    assert!(shown.lines()[4].starts_with("rank  !"), "{}", shown.text());
    shown.press(&[KeyCode::Char('/')]).write("credits");
    assert!(shown.lines()[23].starts_with("/credits"), "{}", shown.text());
    shown.press(&[KeyCode::Enter]);
    assert!(shown.lines()[4].ends_with("/credits: 2 of 4") && shown.lines()[7].is_empty(), "{}", shown.text());
    // Letters that are keys elsewhere are letters in a filter.
    shown.press(&[KeyCode::Char('/')]).write("q");
    assert!(shown.text().contains("no rank has that text"));
    shown.press(&[KeyCode::Esc]);
    assert!(shown.lines()[8].starts_with("3 "), "{}", shown.text());
    // The name of a rank means that one, whatever the cells of others say.
    shown.press(&[KeyCode::Char('/')]).write("rank 0").press(&[KeyCode::Enter]);
    assert!(shown.lines()[4].ends_with("/rank 0: 1 of 4") && shown.lines()[5].starts_with("0 "), "{}", shown.text());
}

#[test]
fn a_thousand_ranks_scroll() {
    let mut shown = Shown::new(80, 24, vec![example(1024)]);
    shown.press(&[KeyCode::End]);
    assert!(shown.lines()[22].starts_with("1023   gone"), "{}", shown.text());
    shown.press(&[KeyCode::PageUp, KeyCode::PageUp]);
    assert!(shown.lines()[5].starts_with("987 "), "{}", shown.text());
    shown.press(&[KeyCode::Home, KeyCode::PageDown]);
    assert!(shown.lines()[22].starts_with("18 "), "{}", shown.text());
}

#[test]
fn the_chosen_rank_stays_chosen_wherever_it_sorts() {
    let mut shown = Shown::new(80, 24, vec![example(4)]);
    shown.press(&[KeyCode::Down, KeyCode::Down, KeyCode::Char('r'), KeyCode::Enter]);
    assert!(shown.lines()[4].starts_with("rank 2: a.out, process 5002, waits"), "{}", shown.text());
    shown.press(&[KeyCode::Esc, KeyCode::Up, KeyCode::Enter]);
    assert!(shown.lines()[4].starts_with("rank 3: a.out, process 5003, is gone"), "{}", shown.text());
}

#[test]
fn one_rank_shows_whom_it_waits_for_what_is_open_and_all_counters() {
    let mut shown = Shown::new(100, 60, vec![example(4)]);
    shown.press(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
    let text = shown.text();
    for part in [
        "receive memory ████████████░░░░░░░░░░░░ 32.0 MiB of 64.0 MiB",
        "waits for\n  rank 1        90 % credits, now for 100 ms",
        "open: 3 receives, 0 sends, 0 messages",
        "  receive     11.0 s  tag 0x4d from rank 0\n  and more",
        "messages_eager                  1,000        1,000",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    shown.press(&[KeyCode::Esc, KeyCode::Home, KeyCode::Enter]);
    assert!(shown.text().contains("is waited for by\n  rank 0        90 % credits"), "{}", shown.text());
    // A short terminal scrolls, and no further than the end.
    let mut shown = Shown::new(80, 12, vec![example(4)]);
    shown.press(&[KeyCode::Enter, KeyCode::End]);
    assert!(shown.text().contains("counters that are 0 are left out"), "{}", shown.text());
    shown.press(&[KeyCode::Home]);
    assert!(shown.text().contains("\nrank 1"), "the first row is that of the culprit\n{}", shown.text());
}

#[test]
fn the_matrix_has_numbers_and_colours_and_shows_small_jobs_rank_by_rank() {
    let mut shown = Shown::new(80, 24, vec![example(4)]);
    shown.press(&[KeyCode::Char('m')]);
    let lines = shown.lines();
    assert_eq!(lines[4], "  for   1");
    assert_eq!(lines[5..7], ["    0  90", "    2  90"]);
    assert!(lines[7].starts_with("row waits for column, % of time:  1+  10+  30+  60+  85+"), "{}", lines[7]);
    let hot = shown.terminal.backend().buffer().cell((7, 5)).unwrap().bg;
    assert_eq!(Some(hot), super::heat::Colours::Many.heat(0.9).bg);
    shown.press(&[KeyCode::Char('m')]);
    assert_eq!(shown.screen.view, View::Ranks);
}

#[test]
fn the_matrix_of_a_large_job_comes_in_groups_or_scrolls() {
    let mut shown = Shown::new(80, 24, vec![example(1024)]);
    shown.press(&[KeyCode::Char('m')]);
    let lines = shown.lines();
    assert!(lines[5].starts_with("   0+    90") && lines[22].contains("+ is up to 61 ranks"), "{}", shown.text());
    shown.press(&[KeyCode::Char('z'), KeyCode::End]);
    assert!(shown.lines()[21].starts_with(" 1022    90"), "{}", shown.text());
}

#[test]
fn help_scrolls_to_each_key_and_column_and_another_key_ends_it() {
    for (width, height) in [(80, 24), (80, 10), (40, 10), (200, 50)] {
        let mut shown = Shown::new(width, height, vec![example(4)]);
        shown.press(&[KeyCode::Char('?')]);
        let mut seen = shown.lines();
        // A page at a time until nothing changes any more.
        loop {
            shown.press(&[KeyCode::PageDown]);
            let next = shown.lines();
            if seen.ends_with(&next) {
                break;
            }
            seen.extend(next);
        }
        let seen = words(&seen);
        for column in &crate::top::columns::COLUMNS {
            let last = column.help.split(' ').next_back().unwrap();
            assert!(seen.contains(column.title) && seen.contains(last), "{width} x {height}: {}", column.title);
        }
        assert!(seen.contains("q, Ctrl-C") && seen.contains("show the rank of that name"), "{seen}");
        shown.press(&[KeyCode::Home, KeyCode::Down]);
        assert!(!shown.text().contains("PgUp PgDn Home End c"), "{}", shown.text());
        shown.press(&[KeyCode::Up]);
        assert!(shown.lines()[1].starts_with("↑ ↓ PgUp PgDn Home End"), "{}", shown.text());
        shown.press(&[KeyCode::Char('x')]);
        assert!(shown.text().contains("rank  !"), "{}", shown.text());
    }
    let mut screen = Shown::new(80, 24, vec![example(4)]).screen;
    assert_eq!(screen.handle_key(key(KeyCode::Char(' '))), Action::Look);
    assert_eq!(screen.handle_key(key(KeyCode::Char('q'))), Action::Quit);
    assert_eq!(screen.handle_key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
}

#[test]
fn every_size_draws_every_view() {
    for (width, height) in [(1, 1), (39, 7), (40, 8), (80, 24), (300, 100)] {
        for size in [1, 3, 1024] {
            for keys in [&[][..], &[KeyCode::Enter], &[KeyCode::Char('m')], &[KeyCode::Char('?')], &[KeyCode::Esc]] {
                let mut shown = Shown::new(width, height, vec![example(size)]);
                shown.press(keys).press(&[KeyCode::End, KeyCode::PageUp, KeyCode::Right]);
                assert!(shown.text().len() > usize::from(width > 1), "{width} {height} {size} {keys:?}");
            }
        }
    }
    assert!(Shown::new(30, 5, vec![example(4)]).text().contains("is too small"));
}

#[test]
fn jobs_and_ranks_may_vanish_at_any_time() {
    let mut shown = Shown::new(80, 24, vec![example(8)]);
    for keys in [&[KeyCode::End][..], &[KeyCode::Enter], &[KeyCode::Esc, KeyCode::Char('m')]] {
        shown.press(keys);
        shown.screen.update(update(vec![example(3)]));
        shown.lines();
        shown.screen.update(update(Vec::new()));
        assert!(shown.text().contains("no job here"), "{}", shown.text());
        shown.screen.update(update(vec![example(8)]));
        shown.lines();
    }
    assert_eq!(example(8).rows[7].presence, Presence::Gone);
}
