//! C programs that use the provider through the installed libfabric, as applications do. Each is compiled and run, and
//! must leave no segments behind. The tests need a C compiler and libfabric with headers; where they are missing, the
//! tests say so and pass.

use crate::toolbox::{APART, have_libfabric, may_live_apart, output_of, run, run_apart, text};

/// The exchange of all lengths for settings under which each packet waits for an answer: the longest messages go once,
/// or, with `TIDEGATE_EXPLORE=all` (`make test-full`), by every call, which takes minutes.
fn exchange_once() -> &'static str {
    if everything() { "exchange" } else { "exchange once" }
}

/// A silent process with a long message of so many MiB: bounced, 4 are four times as much as all bounce buffers hold,
/// and through the mailbox 1 is 500 packets, each of which takes the only buffer, so that the silent side has to make
/// room again and again. With `TIDEGATE_EXPLORE=all` it is a message of 16 MiB.
fn silent_with(mebibytes: u32) -> String {
    if everything() { "silent on_demand".into() } else { format!("silent on_demand {mebibytes}") }
}

fn everything() -> bool {
    std::env::var("TIDEGATE_EXPLORE").is_ok_and(|wish| wish == "all")
}

/// Runs a program with the smallest receive memory that is legal for two peers: one may send at a time.
fn run_with_least_receive_memory(program: &str, settings: &[(&str, &str)]) {
    run_with_little_receive_memory(program, settings, 0);
}

/// The same with so many bytes more. The error for too few names the smallest legal value.
fn run_with_little_receive_memory(program: &str, settings: &[(&str, &str)], more: usize) {
    if !have_libfabric() {
        return;
    }
    let with = |bytes| [&[("FI_TIDEGATE_PEERS", "2"), ("FI_TIDEGATE_RX_MEMORY", bytes)], settings].concat();
    let refusal = output_of(program, &with("1k"));
    assert!(!refusal.status.success(), "1k is enough: {}", text(&refusal));
    let refusal = text(&refusal);
    let least = refusal
        .split_once("FI_TIDEGATE_RX_MEMORY=1024 is too small")
        .and_then(|(_, rest)| rest.split_once(" at least "));
    let least = least.and_then(|(_, rest)| rest.split(' ').next()?.parse::<usize>().ok());
    let least = least.unwrap_or_else(|| panic!("no least value: {refusal}"));
    run(program, &with(&(least + more).to_string()));
}

#[test]
fn messages_of_all_sizes_by_all_send_calls() {
    for scheme in ["none", "static", "dynamic"] {
        run("exchange", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

#[test]
fn half_a_message_keeps_nobody_waiting() {
    // Who rests does so with half a message sent.
    let rests = ("FI_TIDEGATE_PROGRESS", "calls");
    let settings = [("FI_TIDEGATE_SLOTS", "8"), ("FI_TIDEGATE_PEERS", "4"), rests];
    for scheme in ["static", "dynamic"] {
        // With so many polls before it yields, a read waits a little for the rest.
        for spin in ["100000", "0"] {
            let more = [("FI_TIDEGATE_SCHEME", scheme), ("FI_TIDEGATE_SPIN", spin)];
            run("halves", &[&settings[..], &more].concat());
        }
    }
}

#[test]
fn messages_with_the_fewest_slots_and_no_direct_bulk_data() {
    let fewest = [("FI_TIDEGATE_SLOTS", "2"), ("FI_TIDEGATE_CREDIT_SLOTS", "1"), ("FI_TIDEGATE_BULK", "mailbox")];
    for scheme in ["none", "static", "dynamic"] {
        run(exchange_once(), &[&fewest[..], &[("FI_TIDEGATE_SCHEME", scheme)]].concat());
    }
}

#[test]
fn messages_by_each_way_of_bulk_data() {
    for bulk in ["direct", "bounced", "mailbox"] {
        run("exchange", &[("FI_TIDEGATE_BULK", bulk)]);
    }
    run("exchange", &[("FI_TIDEGATE_BULK", "bounced"), ("FI_TIDEGATE_BOUNCE_BUFFERS", "1")]);
}

#[test]
fn receives_get_the_messages_they_ask_for() {
    run("matching", &[]);
}

#[test]
fn rendezvous_for_everything_matches_alike() {
    run("matching", &[("FI_TIDEGATE_EAGER_SIZE", "0")]);
}

#[test]
fn messages_that_find_no_room_are_deferred_and_received_all_the_same() {
    for scheme in ["none", "static", "dynamic"] {
        for bulk in ["auto", "mailbox"] {
            run_with_least_receive_memory("deferring", &[("FI_TIDEGATE_SCHEME", scheme), ("FI_TIDEGATE_BULK", bulk)]);
        }
    }
    run("deferring", &[]);
}

#[test]
fn the_least_receive_memory_changes_no_match_and_no_message() {
    run_with_least_receive_memory("matching", &[]);
    run_with_least_receive_memory(exchange_once(), &[]);
}

#[test]
fn delivery_complete_as_a_default_asks_for_no_receipt() {
    run("delivery", &[]);
}

#[test]
fn remote_memory_is_read_written_and_counted() {
    run("remote", &[]);
}

#[test]
fn remote_memory_without_direct_access() {
    run("remote", &[("FI_TIDEGATE_BULK", "mailbox"), ("FI_TIDEGATE_SLOTS", "4"), ("FI_TIDEGATE_CREDIT_SLOTS", "1")]);
}

#[test]
fn events_of_remote_accesses_are_counted_where_a_counter_is_bound() {
    run("events", &[]);
    run("events", &[("FI_TIDEGATE_BULK", "mailbox"), ("FI_TIDEGATE_SLOTS", "4"), ("FI_TIDEGATE_CREDIT_SLOTS", "1")]);
}

#[test]
fn peeks_in_vain_give_the_processor_away() {
    run("peeking", &[("FI_TIDEGATE_SPIN", "8")]);
}

#[test]
fn sleepers_are_woken() {
    run("waiting", &[]);
}

#[test]
fn threads_asleep_are_woken_by_what_other_threads_do() {
    run("sleepers", &[]);
}

#[test]
fn nothing_said_of_a_peer_that_left_is_taken_for_its_successor() {
    for scheme in ["none", "static", "dynamic"] {
        run("successor", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

#[test]
fn who_has_work_is_awake_and_who_waits_sleeps() {
    for scheme in ["none", "static", "dynamic"] {
        run("sleeping", &[("FI_TIDEGATE_SCHEME", scheme), ("FI_TIDEGATE_BULK", "direct")]);
    }
}

#[test]
fn a_queue_that_nobody_reads_stops_nothing_but_what_reports_to_it() {
    for scheme in ["none", "static", "dynamic"] {
        run("queues", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

#[test]
fn errors_are_reported_however_full_their_queue_is() {
    for scheme in ["none", "static", "dynamic"] {
        run("errors", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

#[test]
fn a_fence_waits_for_its_target_alone_and_nothing_gets_past_it() {
    for settings in [&[][..], &[("FI_TIDEGATE_BULK", "mailbox")], &[("FI_TIDEGATE_SLOTS", "4")]] {
        run("fences", settings);
    }
    run_apart("fences", &[]);
}

#[test]
fn the_level_of_completion_that_was_asked_for_is_kept() {
    run("levels", &[("FI_TIDEGATE_PEERS", "2"), ("FI_TIDEGATE_SLOTS", "64"), ("FI_TIDEGATE_RX_MEMORY", "400k")]);
}

#[test]
fn defaults_are_those_of_other_providers_and_wishes_are_granted_or_refused() {
    run("defaults", &[]);
}

#[test]
fn client_and_server_meet_by_a_service() {
    run("services", &[]);
}

#[test]
fn removed_addresses_are_not_used_any_more() {
    run("addresses", &[]);
}

#[test]
fn threads_share_an_endpoint() {
    run("threads", &[]);
}

#[test]
fn the_death_of_a_peer_is_told_and_leaves_nothing() {
    for scheme in ["none", "static", "dynamic"] {
        run("dying", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

#[test]
fn who_is_connected_goes_on_when_files_are_removed() {
    for scheme in ["none", "static", "dynamic"] {
        run("vanished", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

#[test]
fn a_process_whose_main_thread_has_ended_is_served() {
    for bulk in ["auto", "direct"] {
        run("thread_ends", &[("FI_TIDEGATE_BULK", bulk)]);
    }
}

#[test]
fn nobody_can_take_the_name_by_which_an_endpoint_is_woken() {
    run("wake_names", &[]);
}

#[test]
fn an_application_built_for_an_old_interface_is_served() {
    run("old", &[]);
}

#[test]
fn between_hosts_messages_are_sent_matched_and_received_alike() {
    for scheme in ["none", "static", "dynamic"] {
        run_apart("exchange", &[("FI_TIDEGATE_SCHEME", scheme)]);
    }
    for settings in [&[][..], &[("FI_TIDEGATE_EAGER_SIZE", "0")], &[("FI_TIDEGATE_SCHEME", "preposted")]] {
        run_apart("matching", settings);
    }
    run_apart("threads", &[]);
}

#[test]
fn between_hosts_little_receive_memory_changes_no_match_and_no_message() {
    if may_live_apart() {
        for program in ["matching", exchange_once(), "deferring"] {
            run_with_least_receive_memory(program, &APART);
        }
    }
}

#[test]
fn between_hosts_the_first_message_completes_though_nobody_receives_it() {
    run_apart("delivery", &[]);
}

#[test]
fn between_hosts_remote_memory_is_read_written_and_counted() {
    run_apart("remote", &[]);
    run_apart("events", &[]);
}

#[test]
fn between_hosts_peers_close_die_and_are_followed_by_others() {
    for program in ["dying", "successor", "forked", "addresses", "queues", "thread_ends"] {
        run_apart(program, &[]);
    }
    run_apart("closing unlimited", &[("FI_TIDEGATE_CLOSE_TIMEOUT", "80000")]);
    run_apart("halves", &[("FI_TIDEGATE_SLOTS", "8"), ("FI_TIDEGATE_PEERS", "4"), ("FI_TIDEGATE_PROGRESS", "calls")]);
}

const THREAD: (&str, &str) = ("FI_TIDEGATE_PROGRESS", "thread");

#[test]
fn a_thread_goes_on_while_the_application_computes_and_sleeps_when_there_is_nothing_to_do() {
    run("overlap calls", &[]);
    run("overlap calls", &[("FI_TIDEGATE_PROGRESS", "calls")]);
    for bulk in ["direct", "bounced", "mailbox"] {
        run("overlap thread", &[THREAD, ("FI_TIDEGATE_BULK", bulk)]);
    }
    run_apart("overlap thread", &[THREAD]);
    // It closes nothing, so its segment stays: in a /dev/shm of its own, which goes with it.
    run_apart("overlap exits", &[THREAD]);
    run_apart("overlap thread", &[THREAD, ("FI_TIDEGATE_RENDEZVOUS", "single")]);
}

#[test]
fn an_application_that_asks_for_automatic_progress_gets_it_without_a_variable() {
    run("overlap asks", &[]);
}

#[test]
fn the_user_who_forbids_threads_has_the_last_word_and_the_reason_is_said() {
    if have_libfabric() {
        let output = output_of("automatic refused", &[("FI_TIDEGATE_PROGRESS", "calls")]);
        assert!(output.status.success(), "{}", text(&output));
        let reason = "FI_TIDEGATE_PROGRESS=calls allows none: leave that variable out";
        assert!(text(&output).contains(reason), "{}", text(&output));
    }
}

#[test]
fn whoever_waits_for_one_endpoint_tends_all_where_progress_is_automatic() {
    for way in ["counter", "count", "queue"] {
        run(&format!("automatic {way}"), &[]);
        run(&format!("automatic {way}"), &[("FI_TIDEGATE_SPIN", "0")]);
    }
}

#[test]
fn peers_that_left_messages_behind_keep_no_newcomer_out() {
    let few = ("FI_TIDEGATE_PEERS", "2");
    for end in ["close", "die"] {
        run(&format!("leavers {end}"), &[few]);
    }
    run_apart("leavers close", &[few]);
    // Both peers may send at a time (2.4 KB), and there is no room for a record of one that has left (another 1.4 KB).
    run_with_little_receive_memory("leavers poor", &[], 2_700);
}

/// With the defaults of a job of eight ranks. Each endpoint that opens looks at the files of up to 256 others, so many
/// take their time.
#[test]
fn far_more_newcomers_than_have_places_at_first_get_in_and_others_find_theirs_later() {
    let of_eight = [("PMI_SIZE", "8"), ("PMI_RANK", "0"), ("MPI_LOCALNRANKS", "8")];
    run(if everything() { "newcomers 1900 400" } else { "newcomers 650 60" }, &of_eight);
}

#[test]
fn a_user_that_changes_before_the_first_contact_is_named_in_the_error() {
    if have_libfabric() {
        // What was opened as another user cannot be removed: the next endpoint of that user does so.
        for way in ["real", "effective", "met"] {
            let output = output_of(&format!("another_user {way}"), &[]);
            assert!(output.status.success(), "{way}: {}", text(&output));
        }
    }
}

#[test]
fn a_million_addresses_that_an_application_expects_reserve_64_mib_and_are_told() {
    let shares = [("FI_TIDEGATE_SLOTS", "64")];
    run("expecting", &shares);
    run("expecting pool", &[]);
    if have_libfabric() {
        let said = text(&output_of("expecting", &shares));
        assert!(said.contains("SKIPPED") || said.contains("(fi_av_attr.count)") && said.contains("FI_TIDEGATE_PEERS"));
    }
}

#[test]
fn a_thread_that_waits_lets_the_calls_of_others_in() {
    run("automatic lets_in", &[("FI_TIDEGATE_SPIN", "0")]);
    run("automatic lets_in", &[("FI_TIDEGATE_SPIN", "100000000")]);
}

/// The fewest buffers under one scheme, so that a process that falls silent has something left to do.
const ONE_BUFFER: [(&str, &str); 2] = [("FI_TIDEGATE_SCHEME", "preposted"), ("FI_TIDEGATE_BUFFERS", "1")];

#[test]
fn what_is_left_to_do_goes_on_under_every_scheme_though_its_process_is_silent() {
    let slots = [("FI_TIDEGATE_SLOTS", "8"), ("FI_TIDEGATE_PEERS", "4")];
    let buffers = [("FI_TIDEGATE_BUFFERS", "1")];
    let pool = [("FI_TIDEGATE_POOL_FIRST", "1"), ("FI_TIDEGATE_POOL_MOST", "1")];
    let settings: [(_, &[_]); 6] = [
        ("static", &slots),
        ("dynamic", &slots),
        ("rnr", &buffers),
        ("preposted", &buffers),
        ("growing", &buffers),
        ("shared_window", &pool),
    ];
    for (scheme, least) in settings {
        run("silent on_demand", &[least, &[("FI_TIDEGATE_SCHEME", scheme)]].concat());
    }
}

#[test]
fn what_is_left_to_do_goes_on_by_each_way_of_bulk_data_though_its_process_is_silent() {
    for (mebibytes, bulk) in [(16, "direct"), (4, "bounced"), (1, "mailbox")] {
        run(&silent_with(mebibytes), &[&ONE_BUFFER[..], &[("FI_TIDEGATE_BULK", bulk)]].concat());
    }
    for rendezvous in ["chunked", "single"] {
        run_apart("silent on_demand", &[&ONE_BUFFER[..], &[("FI_TIDEGATE_RENDEZVOUS", rendezvous)]].concat());
    }
}

#[test]
fn what_is_left_to_do_goes_on_where_membarrier_is_forbidden_or_becomes_so() {
    run("silent forbidden", &ONE_BUFFER);
    run("silent forbidden_later", &ONE_BUFFER);
}

#[test]
fn what_is_left_to_do_waits_for_a_call_where_no_thread_may_do_it() {
    run("silent calls", &[&[("FI_TIDEGATE_PROGRESS", "calls")], &ONE_BUFFER[..]].concat());
}

#[test]
fn a_process_ends_and_forks_though_something_is_left_to_do() {
    run("ending", &ONE_BUFFER);
}

#[test]
fn a_thread_that_makes_progress_changes_nothing_else() {
    for program in ["exchange", "matching", "deferring", "remote", "waiting", "threads", "queues", "dying", "forked"] {
        run(program, &[THREAD]);
    }
    for program in ["exchange", "matching", "queues", "dying"] {
        run_apart(program, &[THREAD]);
    }
    run("closing unlimited", &[THREAD, ("FI_TIDEGATE_CLOSE_TIMEOUT", "80000")]);
}

#[test]
fn chunks_of_any_size_and_number_bring_the_same_messages() {
    for (size, in_flight, most) in [("4k", "1", "1"), ("12345", "3", "2"), ("1g", "1024", "1024")] {
        let settings = [
            ("FI_TIDEGATE_CHUNK_SIZE", size),
            ("FI_TIDEGATE_CHUNKS_IN_FLIGHT", in_flight),
            ("FI_TIDEGATE_CHUNKS_MOST", most),
            ("FI_TIDEGATE_BULK", "direct"),
        ];
        run("exchange", &settings);
        run_apart("exchange", &settings);
    }
    run("exchange", &[("FI_TIDEGATE_RENDEZVOUS", "single")]);
    run_apart("exchange", &[("FI_TIDEGATE_RENDEZVOUS", "single")]);
}

/// Each process of a job of 512 takes less than 2 MB under the schemes that large jobs use: mailbox, tables, windows,
/// and what libfabric keeps for an endpoint. By default it is 64 processes with room for 512.
#[test]
fn each_of_512_processes_takes_less_than_2_mb() {
    let (processes, most) = if everything() { (512, 2_000_000) } else { (64, 1_200_000) };
    let settings = [
        ("FI_TIDEGATE_PEERS", "512"),
        ("FI_TIDEGATE_SLOTS", "16"),
        ("FI_TIDEGATE_RX_MEMORY", "2M"),
        ("FI_TIDEGATE_BOUNCE_BUFFERS", "0"),
    ];
    for scheme in ["dynamic", "speculative"] {
        run(&format!("crowd {processes} {most}"), &[&settings[..], &[("FI_TIDEGATE_SCHEME", scheme)]].concat());
    }
}
