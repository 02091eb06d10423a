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
        let mut screen = Screen::new(Duration::from_secs(1), &|_| Some("xterm-256color".to_owned()));
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
    assert!(lines[4].starts_with("rank  ▲state"), "{}", lines[4]);
    assert_eq!(lines[5], "0      runs         1,000 1.00 MiB      0 B  90 %      1 credits    100 ms 50 %");
    assert_eq!(lines[8], "3      gone         1,000 1.00 MiB      0 B                                50 %");
    assert!(lines[23].contains("Enter detail") && lines[23].contains("? help") && lines[23].ends_with("q quit"));
}

#[test]
fn a_long_sentence_is_shown_whole_where_there_is_room() {
    let sentence = "rank 3 waits 5.3 s for a message of rank 0 (tag 77, MPI_COMM_WORLD), which waits for rank 3; 4 ranks \
                    wait in all; a message of rank 0 with tag 78, MPI_COMM_WORLD is there, which no receive of rank 3 accepts";
    let mut long = example(4);
    long.sentence = sentence.to_owned();
    let mut shown = Shown::new(80, 24, vec![long.clone()]);
    let lines = shown.lines();
    assert_eq!(lines[2..5].join(" "), sentence);
    assert!(lines[5].starts_with("rank  ▲state") && lines[9].starts_with("3 "), "{lines:?}");
    // Its lines go to the sentence before they go to a list that scrolls, and none where there are few.
    let many = |height| {
        let mut many = example(48);
        many.sentence = sentence.to_owned();
        Shown::new(80, height, vec![many]).lines()
    };
    assert_eq!(many(24)[2..5].join(" "), sentence);
    assert!(many(10)[4].starts_with("rank  ▲state"), "{:?}", many(10));
    // So it is beside a list of jobs, and above one rank and the matrix.
    let mut jobs = Shown::new(80, 24, vec![long.clone(), example(8)]);
    assert!(jobs.text().contains("accepts"), "{}", jobs.text());
    for keys in [&[KeyCode::Enter][..], &[KeyCode::Char('m')]] {
        let mut shown = Shown::new(80, 24, vec![long.clone()]);
        assert!(shown.press(keys).text().contains("accepts"));
    }
}

#[test]
fn no_job_is_said_and_what_to_do() {
    let mut shown = Shown::new(80, 24, Vec::new());
    assert!(shown.text().contains("No job of this user runs on this host"), "{}", shown.text());
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
        lines[5].starts_with("4711               3/4") && lines[7].starts_with("4712               7/8        ended")
    );
    assert!(lines[6].contains("rank 1 holds up 2 ranks"), "{}", lines[6]);
    shown.press(&[KeyCode::Down, KeyCode::Enter]);
    assert!(shown.lines()[0].starts_with(" tidegate top: job 4712, ended, 7 of 8 ranks"));
    shown.press(&[KeyCode::Esc, KeyCode::Up, KeyCode::Up, KeyCode::Enter]);
    assert!(shown.lines()[0].starts_with(" tidegate top: job 4711"));
}

#[test]
fn ranks_sort_and_filter() {
    let mut shown = Shown::new(80, 24, vec![example(4)]);
    shown.press(&[KeyCode::Char('r')]);
    assert!(shown.lines()[4].starts_with("rank  ▼") && shown.lines()[5].starts_with("3 "));
    shown.press(&[KeyCode::Right; 5]);
    assert!(shown.lines()[4].contains("waits▼") && shown.lines()[5].starts_with("0 "));
    // Columns that do not fit come in from the right, and then it begins anew.
    shown.press(&[KeyCode::Right; 5]);
    assert!(shown.lines()[4].contains("holds▼") && shown.lines()[5].starts_with("1 "), "{}", shown.text());
    shown.press(&[KeyCode::Right; 10]);
    assert!(shown.lines()[4].starts_with("rank  ▲"), "{}", shown.text());
    shown.press(&[KeyCode::Char('/')]).write("credits");
    assert!(shown.lines()[23].starts_with("/credits"), "{}", shown.text());
    shown.press(&[KeyCode::Enter]);
    assert!(shown.lines()[4].ends_with("/credits: 2 of 4") && shown.lines()[7].is_empty(), "{}", shown.text());
    // Letters that are keys elsewhere are letters in a filter.
    shown.press(&[KeyCode::Char('/')]).write("q");
    assert!(shown.text().contains("no rank has that text"));
    shown.press(&[KeyCode::Esc]);
    assert!(shown.lines()[8].starts_with("3 "), "{}", shown.text());
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
    assert!(shown.lines()[4].starts_with("rank 2: a.out, process 5002, runs"), "{}", shown.text());
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
    shown.press(&[KeyCode::Esc, KeyCode::Up, KeyCode::Enter]);
    assert!(shown.text().contains("is waited for by\n  rank 0        90 % credits"), "{}", shown.text());
    // A short terminal scrolls, and no further than the end.
    let mut shown = Shown::new(80, 12, vec![example(4)]);
    shown.press(&[KeyCode::Enter, KeyCode::End]);
    assert!(shown.text().contains("counters that are 0 are left out"), "{}", shown.text());
    shown.press(&[KeyCode::Home]);
    assert!(shown.lines()[4].starts_with("rank 0"));
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
fn help_is_there_and_any_key_ends_it() {
    let mut shown = Shown::new(80, 40, vec![example(4)]);
    shown.press(&[KeyCode::Char('?')]);
    assert!(shown.text().contains("show only ranks with a text in any column") && shown.text().contains("refused/s"));
    shown.press(&[KeyCode::Char('x')]);
    assert!(shown.lines()[5].starts_with("0 "));
    let mut screen = shown.screen;
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
        assert!(shown.text().contains("No job"), "{}", shown.text());
        shown.screen.update(update(vec![example(8)]));
        shown.lines();
    }
    assert_eq!(example(8).rows[7].presence, Presence::Gone);
}
