//! Files that describe simulations: what they may say, and what is said of those that cannot be understood.

use std::path::{Path, PathBuf};

use tidegate_sim::run_spec::{FIELDS, JobDraft, OPERATIONS};

type Sweep = tidegate_sim::run_spec::Sweep<JobDraft>;
use tidegate_flow::SchemeName;
use tidegate_sim::FlowChoice;

fn read(text: &str) -> Result<Sweep, String> {
    Sweep::read(text, Path::new("")).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let error = read(text).expect_err("the file is refused");
    for word in words {
        assert!(error.contains(word), "`{error}` does not say `{word}`");
    }
}

#[test]
fn an_empty_file_is_one_run_with_all_defaults() {
    let sweep = read("").unwrap();
    assert!(sweep.axes.is_empty());
    assert_eq!(sweep.points.len(), 1);
    assert_eq!(sweep.points[0].1.config.size(), 256);
}

#[test]
fn lists_make_every_combination_in_the_order_of_the_file() {
    let sweep = read("[flow]\nslots_per_peer = [8, 16]\n[workload]\nbytes = ['1 KiB', 64, '2 KiB']\n").unwrap();
    assert_eq!(sweep.axes, ["flow.slots_per_peer", "workload.bytes"]);
    let values: Vec<String> = sweep.points.iter().map(|point| point.0.join(" ")).collect();
    assert_eq!(values, ["8 1 KiB", "8 64", "8 2 KiB", "16 1 KiB", "16 64", "16 2 KiB"]);
    let slots = |point: usize| match sweep.points[point].1.config.flow {
        FlowChoice::Mailbox { slots_per_peer, .. } => slots_per_peer,
        FlowChoice::Unlimited | FlowChoice::Posted { .. } => 0,
    };
    assert_eq!([slots(0), slots(5)], [8, 16]);
}

/// A file may name every scheme of the table, the one for tests too, and its run ends. (The plain all-to-all sends
/// everything before it receives anything, so its sends must complete without their receivers. A refused message
/// becomes a request to send, which does not.)
#[test]
fn every_scheme_can_be_simulated() {
    for scheme in SchemeName::WITHOUT_BUFFERS {
        let words = "slots_per_peer = 32\n[network]\ntopology = 'ideal'\nsizes = '2'\n[machine]\nprocesses_per_node = 2\n[workload]\nform = 'pairwise'\n";
        let sweep = read(&format!("[flow]\nscheme = '{scheme}'\n{words}[run]\nreference = false\n")).unwrap();
        let scenario = &sweep.points[0].1;
        assert!(matches!(scenario.config.flow, FlowChoice::Mailbox { scheme: chosen, .. } if chosen == *scheme));
        scenario.work.run(scenario.config.clone()).unwrap_or_else(|problem| panic!("{scheme}: {problem}"));
    }
    refused("[flow]\nscheme = 'dynamc'\n", &["line 2", "unlimited, none, static, dynamic", "did you mean dynamic?"]);
}

/// Choosing a scheme with posted buffers needs one word; what else may be said of it is checked.
#[test]
fn schemes_with_posted_buffers_are_simulated_and_nonsense_about_them_is_refused() {
    let small = "[network]\ntopology = 'ideal'\nsizes = '2'\n[machine]\nprocesses_per_node = 2\n[workload]\nform = 'pairwise'\n[run]\nreference = false\nchecks = true\n";
    for scheme in SchemeName::WITH_BUFFERS {
        for more in
            ["", "buffers = 2\nbuffer_bytes = '100 B'\npool_first = 1\npool_most = 2\nretry_timer = '0.01 ms'\n"]
        {
            let sweep = read(&format!("[flow]\nscheme = '{scheme}'\n{more}{small}")).unwrap();
            let scenario = &sweep.points[0].1;
            assert!(matches!(scenario.config.flow, FlowChoice::Posted { scheme: chosen, .. } if chosen == *scheme));
            scenario.work.run(scenario.config.clone()).unwrap_or_else(|problem| panic!("{scheme}: {problem}"));
        }
    }
    let nonsense = [
        ("rnr", "buffers = 0", "choose from 1 to 1048576"),
        ("rnr", "retry_timer = '1 us'", "choose from 10 µs to 655360 µs"),
        ("rnr", "buffer_bytes = '1 MiB'", "a buffer holds a message of 1 to 65536 bytes"),
        ("growing", "buffers_most = 0", "choose from 1 to 32767"),
        ("growing", "growth = 'linaer'", "did you mean linear?"),
        ("growing", "buffers_most = 3\nbuffers = 4", "choose from 4 to 32767"),
        ("shared_window", "pool_first = 9\npool_most = 8", "choose from 1 to 8"),
    ];
    for (scheme, line, said) in nonsense {
        let field = line.split(' ').next().unwrap();
        refused(&format!("[flow]\nscheme = '{scheme}'\n{line}\n"), &["line 3", field, said]);
    }
}

/// Of two numbers that depend on each other the one that is not said gives way, as in the library.
#[test]
fn one_number_of_buffers_is_enough() {
    for (scheme, line) in [
        ("growing", "buffers = 200"),
        ("growing", "buffers_most = 4"),
        ("shared_window", "pool_first = 5000"),
        ("shared_window", "pool_most = 4"),
    ] {
        let text = format!("[flow]\nscheme = '{scheme}'\n{line}\n");
        assert!(read(&text).is_ok(), "{text}: {:?}", read(&text).err());
    }
}

#[test]
fn a_set_of_parameters_does_not_undo_what_the_file_changes_whatever_the_order() {
    let sweep = read("[cost]\nsend_packet = '7 ns'\n[machine]\nparameters = 'free'\n").unwrap();
    let cost = &sweep.points[0].1.config.cost;
    assert_eq!((cost.send_packet.0, cost.retrieve_packet.0), (7_000, 0));
}

#[test]
fn unknown_names_are_refused_with_a_suggestion_and_their_line() {
    refused("[flow]\n\nslots_per_pear = 8\n", &["line 3", "slots_per_pear", "did you mean slots_per_peer?"]);
    refused("[netwrok]\nsizes = '4'\n", &["line 1", "did you mean network?"]);
    refused("[flow]\nlink_latency = '3 ns'\n", &["line 2", "belongs to [network]"]);
    refused("[flow]\nxyzzy = 8\n", &["xyzzy", "--fields"]);
    refused("seed = 3\n", &["seed"]);
}

#[test]
fn impossible_values_are_refused_with_what_would_do() {
    refused("[network]\nlink_latency = '30 meters'\n", &["line 2", "link_latency", "1.4 us"]);
    refused("[network]\nlink_latency = 30\n", &["ns"]);
    refused("[flow]\nscheme = 'dinamic'\n", &["did you mean dynamic?"]);
    refused("[flow]\nslots_per_peer = [8, -1]\n", &["line 2", "-1", "a whole number"]);
    refused("[flow]\nslots_per_peer = []\n", &["empty list"]);
    refused("[network]\nsizes = '0x4'\n", &["sizes", "1 to"]);
    refused("[workload]\noperation = 'barrier'\nform = 'bruck'\n", &["dissemination"]);
    refused("[workload]\noperation = 'trace'\n", &["halo16"]);
    refused("[workload]\noperation = 'trace'\ntrace = 'no-such-file'\n", &["no-such-file"]);
    refused("[workload]\nactive = 257\n", &["256 processes"]);
    refused("[flow\n", &["line 1"]);
}

#[test]
fn every_operation_can_be_named_and_runs() {
    let operations = "pingpong multi_pingpong pingping sendrecv exchange barrier broadcast reduce allreduce \
        reduce_scatter gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv random permutation \
        incast cyclic_shift transpose";
    for operation in operations.split_whitespace() {
        let text = format!(
            "[machine]\nprocesses_per_node = 2\n[network]\nsizes = '2x2'\n[workload]\noperation = \
             '{operation}'\n[run]\nchecks = true\n"
        );
        let sweep = read(&text).unwrap();
        let scenario = &sweep.points[0].1;
        let outcome = scenario.work.run(scenario.config.clone()).unwrap_or_else(|error| panic!("{operation}: {error}"));
        assert!(outcome.samples_of("time").any(|sample| sample.value > 0.0), "{operation} took no time");
    }
}

/// Runs `tidegate sim` on a file with this text; returns what came out of it as JSON.
fn simulated(text: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("it.toml"), text).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.args(["sim", "it.toml", "--json"]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const SMALL: &str = "[machine]\nprocesses_per_node = 2\n[network]\nsizes = '2x2'\n";

#[test]
fn the_whole_run_takes_at_least_what_its_busiest_part_needs() {
    // A trace needs a file, phases say which processes take part, and NAS benchmarks have iterations and more
    // processes.
    let is_general = |name: &str, forms: &[&str]| !["trace", "phases"].contains(&name) && forms != ["A", "B", "C"];
    let general = OPERATIONS.iter().filter(|operation| is_general(operation.0, operation.1));
    let operations = general.map(|operation| format!("'{}'", operation.0)).collect::<Vec<_>>().join(", ");
    let result = simulated(&format!("{SMALL}[workload]\noperation = [{operations}]\nrepetitions = 5\n"));
    for run in result["runs"].as_array().unwrap() {
        let number = |name: &str| run[name].as_f64().unwrap_or_else(|| panic!("{name}: {run}"));
        let (whole, least) = (number("run_us"), number("run_at_least_us"));
        assert!(least > 0.0 && whole >= least, "{whole} beside at least {least}: {}", run["values"]);
        // What counts is a part of the run, whether it is repeated or not.
        assert!(number("time_us") < whole, "{run}");
    }
}

const SIXTEEN: &str = "[machine]\nprocesses_per_node = 4\n[network]\nsizes = '2x2'\n";

#[test]
fn nas_benchmarks_run_with_every_scheme() {
    let result = simulated(&format!(
        "{SIXTEEN}[workload]\noperation = ['is', 'ft', 'lu', 'cg', 'mg', 'bt', 'sp']\niterations = 2\n\
         [flow]\nscheme = ['static', 'dynamic']\n[run]\nchecks = true\n"
    ));
    assert_eq!(result["runs"].as_array().unwrap().len(), 14);
}

#[test]
fn a_program_is_written_as_a_trace_that_takes_as_long() {
    let folder = tempfile::tempdir().unwrap();
    let lu = format!("{SIXTEEN}[workload]\noperation = 'lu'\niterations = 2\n");
    std::fs::write(folder.path().join("it.toml"), &lu).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.args(["sim", "it.toml", "--goal", "lu.goal"]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = folder.path().join("lu.goal");
    let replayed = simulated(&format!("{SIXTEEN}[workload]\noperation = 'trace'\ntrace = '{}'\n", trace.display()));
    let time = |result: &serde_json::Value| result["runs"][0]["time_us"].as_f64().unwrap();
    let ratio = time(&replayed) / time(&simulated(&lu));
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
    std::fs::write(folder.path().join("two.toml"), format!("{SIXTEEN}[workload]\noperation = ['lu', 'cg']\n")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.args(["sim", "two.toml", "--goal", "-"]).current_dir(folder.path()).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("the file has 2 runs"));
}

/// Senders of an incast end when their last message has left, so the mean over them says nothing of the receiver.
#[test]
fn the_time_of_an_incast_is_that_of_its_last_process() {
    let result = simulated(&format!(
        "{SMALL}[workload]\noperation = ['incast', 'gatherv', 'alltoall']\nrepetitions = 20\n[cost]\nretrieve_packet = '5 us'\n"
    ));
    let runs = result["runs"].as_array().unwrap();
    let of: Vec<&str> = runs.iter().map(|run| run["time_of"].as_str().unwrap()).collect();
    assert_eq!(of, ["last_process", "last_process", "all_processes"]);
    let incast = &runs[0];
    let number = |name: &str| incast[name].as_f64().unwrap();
    // Seven senders, 20 messages of 37 packets: the receiver alone needs 5 µs for each packet.
    let receiver = 7.0 * 20.0 * 37.0 * 5.0;
    assert!(number("time_us") >= receiver && number("reference_us") >= receiver, "{incast}");
    assert!(number("run_us") - number("time_us") < receiver / 100.0, "{incast}");
}

#[test]
fn the_bundled_trace_runs() {
    let sweep = read("[network]\nsizes = '2'\n[workload]\noperation = 'trace'\ntrace = 'halo16'\n").unwrap();
    let scenario = &sweep.points[0].1;
    assert!(scenario.work.run(scenario.config.clone()).unwrap().network.delivered > 0);
}

/// The path and the text of docs/machine.toml.
fn example() -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/machine.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn the_documented_example_names_every_field_with_its_default() {
    let (_, text) = example();
    let mut section = String::new();
    let mut named = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches("# ");
        if let Some(rest) = line.strip_prefix('[') {
            section = rest.split(']').next().unwrap().to_owned();
        } else if let Some((name, value)) = line.split_once(" = ") {
            named.push((section.clone(), name.trim().to_owned(), value.to_owned()));
        }
    }
    for field in FIELDS {
        let found =
            named.iter().find(|(section, name, _)| (section.as_str(), name.as_str()) == (field.section, field.name));
        let (_, _, value) = found.unwrap_or_else(|| panic!("{field:?} is missing"));
        let says_default = value.contains("default") || value.trim_start_matches('"').starts_with(field.default);
        assert!(says_default, "{field:?}: the example has {value}, the default is {}", field.default);
    }
}

#[test]
fn the_documented_example_has_the_costs_of_the_calibrated_machine() {
    let (path, text) = example();
    let sweep = Sweep::read(&text, path.parent().unwrap()).unwrap();
    assert_eq!(sweep.points.len(), 4);
    let plain = read("").unwrap();
    let (example, plain) = (&sweep.points[0].1.config, &plain.points[0].1.config);
    assert_eq!(example.cost, plain.cost);
    assert_eq!(example.network, plain.network);
}

#[test]
fn comma_separated_values_can_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let small = "[network]\nsizes = \"2x2\"\n[machine]\nprocesses_per_node = 1\n";
    std::fs::write(folder.path().join("small.toml"), small).unwrap();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["sim", "small.toml"]).args(words).current_dir(folder.path()).output().unwrap()
    };
    let output = run(&["--csv", "-"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.lines().count() == 2, "{text}{}", String::from_utf8_lossy(&output.stderr));
    let columns = |line: &str| line.split(',').count();
    assert_eq!(columns(text.lines().next().unwrap()), columns(text.lines().nth(1).unwrap()), "{text}");
    assert!(!folder.path().join("-").exists());
    assert_eq!(run(&["--csv", "-", "--json"]).status.code(), Some(2));
}

/// The clusters of the papers on posted buffers come with their nodes, their eager limit and their rendezvous; what a
/// file says besides holds.
#[test]
fn a_cluster_brings_its_nodes_and_its_rendezvous() {
    use tidegate_sim::{FlowChoice, Rendezvous};
    let file = "[machine]\nparameters = ['infiniband2003', 'infiniband2007']\n[flow]\nscheme = 'rnr'\n[workload]\noperation = 'barrier'\n";
    let sweep = read(file).unwrap();
    let of = |point: usize| &sweep.points[point].1.config;
    assert_eq!([0, 1].map(|point| of(point).size()), [8, 64]);
    assert_eq!([0, 1].map(|point| of(point).eager_bytes), [2 << 10, 12 << 10]);
    let packets = [0, 1].map(|point| match of(point).flow {
        FlowChoice::Posted { buffers, .. } => buffers.packets,
        _ => 0,
    });
    assert_eq!(packets, [37, 220], "a buffer holds an eager message");
    assert!([0, 1].iter().all(|&point| of(point).rendezvous == Rendezvous::Write && of(point).adapter_credits));
    let changed = read(
        &format!("{file}[network]\nsizes = '4'\n")
            .replace("[flow]", "[flow]\nrendezvous = 'read'\nadapter_credits = false"),
    );
    let changed = changed.unwrap();
    let config = &changed.points[0].1.config;
    assert_eq!((config.size(), config.rendezvous, config.adapter_credits), (4, Rendezvous::Read, false));
}
