//! Processes that fork, and signals: what a child may do with what it has inherited, and a handler with calls that are
//! under way. C programs, as in programs.rs.

use crate::toolbox::{Folder, have_libfabric, output_of, run, run_apart, text};
use std::fs;
use tidegate_fi::trace::format::{Decoder, Record};
use tidegate_fi::trace::process::{SUFFIX, UNKNOWN, Word};
use tidegate_link::journal::Left;
use tidegate_link::stats;

#[test]
fn a_forked_child_that_polls_sends_and_closes_disturbs_nobody() {
    for scheme in ["none", "static", "dynamic"] {
        run("forked", &[("FI_TIDEGATE_SCHEME", scheme), ("FI_TIDEGATE_PEERS", "1")]);
    }
}

#[test]
fn a_forked_child_can_use_nothing_that_it_has_inherited() {
    run("children used fork everywhere", &[("FI_TIDEGATE_PROGRESS", "calls")]);
    for progress in ["on_demand", "thread"] {
        run("children used", &[("FI_TIDEGATE_PROGRESS", progress)]);
    }
    // A thread of ours could hold the allocator, which the C library releases in a child that it has made itself.
    run("children used clone", &[("FI_TIDEGATE_PROGRESS", "calls")]);
    run_apart("children used", &[]);
    if have_libfabric() {
        let told = text(&output_of("children used", &[]));
        let lines = told.lines().filter(|line| line.contains("was forked and calls an object of libfabric"));
        assert_eq!(lines.count(), 4, "each child says so once: {told}");
    }
}

#[test]
fn a_forked_child_opens_endpoints_of_its_own() {
    let peers = ("FI_TIDEGATE_PEERS", "4");
    for progress in ["calls", "thread"] {
        run("children opens", &[peers, ("FI_TIDEGATE_PROGRESS", progress)]);
    }
    run("children opens fabric", &[peers]);
    run_apart("children opens", &[peers]);
}

/// fi_tidegate(7): "Its counters and its trace are files of its own and name no rank."
#[test]
fn a_forked_child_has_a_trace_and_counters_of_its_own() {
    if !have_libfabric() {
        return;
    }
    let folder = Folder::new("files-of-children");
    let place = folder.path().to_str().unwrap();
    let output = output_of(
        "children opens",
        &[("FI_TIDEGATE_TRACE_DIR", place), ("FI_TIDEGATE_STATS_DIR", place), ("PMI_RANK", "3"), ("PMI_SIZE", "4")],
    );
    assert!(output.status.success(), "{}", text(&output));
    let word = |left: &Left, word: Word| left.word(word as usize);
    let mut traces: Vec<(bool, usize)> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(SUFFIX))
        .map(|path| {
            let left = Left::read(&path).unwrap().unwrap();
            assert!(path.ends_with(format!("{}-0{SUFFIX}", word(&left, Word::Pid))), "{path:?} is of its process");
            let sends = Decoder::new(&left.bytes).filter(|record| matches!(record, Ok(Record::Send { .. })));
            (word(&left, Word::Rank) == UNKNOWN, sends.count())
        })
        .collect();
    traces.sort_unstable();
    // Of each of two runs: a parent and its peer, which answers both, and a child.
    let (parent, peer) = ((false, 301), (false, 600));
    assert_eq!(traces, [parent, parent, peer, peer, (true, 301), (true, 301)]);
    let pages = stats::read_dir(folder.path()).unwrap().read;
    let ranks: Vec<Option<u32>> = pages.iter().map(|page| page.rank).collect();
    assert_eq!(ranks.iter().filter(|rank| rank.is_none()).count(), 2, "{ranks:?}");
    assert_eq!(ranks.iter().filter(|rank| **rank == Some(3)).count(), 4, "{ranks:?}");
}

#[test]
fn a_signal_handler_ends_the_process_or_forks_and_is_refused_else() {
    // Whoever waits so reads the clock often: there the signals come.
    let waiting = ("FI_TIDEGATE_SPIN", "0");
    run("handlers", &[waiting]);
    run("handlers exits", &[waiting, ("FI_TIDEGATE_PROGRESS", "thread")]);
    run("handlers poll", &[waiting, ("FI_TIDEGATE_PROGRESS", "calls")]);
    if have_libfabric() {
        let told = text(&output_of("handlers calls", &[waiting]));
        assert_eq!(told.matches("a signal handler has called libfabric").count(), 1, "{told}");
    }
    let folder = Folder::new("trace-of-handlers");
    run("handlers poll", &[waiting, ("FI_TIDEGATE_TRACE_DIR", folder.path().to_str().unwrap())]);
}
