//! What `tidegate sim` says of a file that it refuses: every message names the file, the line, the table with the
//! field, and what to do; none names the environment variables of the provider.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

use tidegate_sim::run_spec::{FIELDS, JobDraft};

type Sweep = tidegate_sim::run_spec::Sweep<JobDraft>;

/// A file, the line and the field that the message must name, and words of the remedy. Lines are separated by `;`.
struct Refused(&'static str, usize, &'static str, &'static [&'static str]);

/// One value that cannot be.
const VALUES: &[Refused] = &[
    Refused("[machine];parameters = 'extol'", 2, "[machine] parameters", &["did you mean extoll?"]),
    Refused("[machine];processes_per_node = 0", 2, "[machine] processes_per_node", &["from 1 to 4294967295"]),
    Refused("[machine];nodes = '0 x'", 2, "[machine] nodes", &["a whole number", "between them"]),
    Refused("[machine];nodes = ''", 2, "[machine] nodes = \"\"", &["a whole number"]),
    Refused("[machine];intra_node_path = 'maybe'", 2, "[machine] intra_node_path", &["true or false"]),
    Refused("[machine];blocked_sender = 'waits'", 2, "[machine] blocked_sender", &["one of blocks, retrieves"]),
    Refused("[machine];noise_interval = 'often'", 2, "[machine] noise_interval", &["1.4 us"]),
    Refused(
        "[network];topology = 'ring'",
        2,
        "[network] topology",
        &["one of mesh, torus, dragonfly, fat_tree, switch, ideal"],
    ),
    Refused("[network];topology = 'dragonfly'", 2, "[network] sizes", &["three sizes", "9x4x2"]),
    Refused("[network];topology = 'dragonfly';sizes = '9x4x2'", 2, "[network] virtual_channels", &["multiple of 4"]),
    Refused("[network];topology = 'fat_tree';sizes = '5x2';virtual_channels = 4", 3, "[network] sizes", &["even"]),
    Refused("[network];sizes = '70000'", 2, "[network] sizes", &["from 0 to 65535"]),
    Refused("[network];link_bandwidth = '0 MB/s'", 2, "[network] link_bandwidth", &["at least 1 MB/s"]),
    Refused("[network];link_bandwidth = 5", 2, "[network] link_bandwidth", &["1 GB/s"]),
    Refused("[network];link_latency = '2 s'", 2, "[network] link_latency", &["at most 1 s"]),
    Refused("[network];packet_overhead = '2 GiB'", 2, "[network] packet_overhead", &["at most 64 KiB"]),
    Refused("[network];packet_granule = 0", 2, "[network] packet_granule", &["at least 1 B"]),
    Refused("[network];virtual_channels = 300", 2, "[network] virtual_channels", &["from 1 to 255"]),
    Refused("[network];channel_buffer_packets = 0", 2, "[network] channel_buffer_packets", &["from 1 to 65535"]),
    Refused("[cost];send_call = '3 meters'", 2, "[cost] send_call", &["ns, us"]),
    Refused("[cost];bulk_frame = '2 GiB'", 2, "[cost] bulk_frame", &["at most 1 GiB"]),
    Refused("[cost];bulk_frame = 0", 2, "[cost] bulk_frame", &["at least 1 B"]),
    Refused("[flow];scheme = 'statc'", 2, "[flow] scheme", &["did you mean static?"]),
    Refused("[flow];credit_slots = 0", 2, "[flow] credit_slots", &["from 1 to"]),
    Refused("[flow];slots_per_peer = 4_294_967_296", 2, "[flow] slots_per_peer", &["from 1 to 4294967295"]),
    Refused("[workload];operation = 'alltoal'", 2, "[workload] operation", &["did you mean alltoall?"]),
    Refused("[workload];radix = 1", 2, "[workload] radix", &["from 2 to"]),
    Refused("[workload];bytes = '-1'", 2, "[workload] bytes", &["2 KiB"]),
    Refused("[workload];active = 0", 2, "[workload] active", &["from 1 to"]),
    Refused("[run];seed = 99999999999999999999", 2, "[run] seed", &["18446744073709551615"]),
    Refused("[run];checks = 1", 2, "[run] checks", &["true or false"]),
];

/// Values that do not fit together. The line is that of a field that the file has, whichever decides.
const COMBINATIONS: &[Refused] = &[
    Refused("[workload];operation = 'halo';mixed = true", 3, "[workload] mixed = true", &["not for halo", "remove"]),
    Refused("[workload];operation = 'neighbor_alltoall';neighbours = 7", 3, "neighbours = 7", &["even", "such as 6"]),
    Refused("[flow];slots_per_peer = 3", 2, "[flow] slots_per_peer=3", &["[flow] credit_slots=2", "at least 4"]),
    Refused("[flow];credit_slots = 40", 2, "[flow] slots_per_peer=64", &["[flow] credit_slots=40", "at least 80"]),
    Refused(
        "[flow];scheme = ['dynamic', 'static'];slots_per_peer = [16, 3]",
        3,
        "[flow] slots_per_peer=3",
        &["at least 4", "(with flow.scheme = dynamic, flow.slots_per_peer = 3)"],
    ),
    Refused("[flow];slots_per_peer = 100_000_000", 2, "[flow] slots_per_peer", &["at most 4210752", "[flow] peers"]),
    Refused("[flow];scheme = 'none';slots_per_peer = 9_000_000", 3, "[flow] slots_per_peer", &["at most 4210752"]),
    Refused(
        "[flow];receive_memory = '1 MiB'",
        2,
        "[flow] receive_memory=1048576",
        &["bytes are needed", "fewer mailbox slots per peer ([flow] slots_per_peer)"],
    ),
    Refused("[flow];eager = '2 MiB'", 2, "[flow] eager", &["at most 1048576 bytes"]),
    Refused(
        "[machine];processes_per_node = 100_000",
        2,
        "[machine] processes_per_node",
        &["1600000 processes", "at most 1048575"],
    ),
    Refused("[network];sizes = '512x512'", 2, "[network] sizes", &["4194304 processes", "at most 1048575"]),
    Refused(
        "[machine];processes_per_node = 4_000_000_000",
        2,
        "[machine] processes_per_node",
        &["64000000000 processes", "at most 1048575"],
    ),
    Refused("[machine];nodes = '0 99'", 2, "[machine] nodes", &["node 99 does not exist", "16 nodes, from 0 on"]),
    Refused("[machine];nodes = '1 1'", 2, "[machine] nodes", &["named twice", "raise [machine] processes_per_node"]),
    Refused("[machine];noise_interval = '1 ns'", 2, "[machine] noise_interval", &["at least 100 ns"]),
    Refused("[machine];noise_duration = '1 us'", 2, "[machine] noise_duration", &["give a [machine] noise_interval"]),
    Refused("[network];sizes = '4x4x4x4'", 2, "[network] sizes", &["one to three sizes"]),
    Refused("[network];sizes = '0x4'", 2, "[network] sizes", &["1 to 1048576 nodes"]),
    Refused(
        "[network];topology = 'torus';virtual_channels = 3",
        3,
        "[network] virtual_channels = 3",
        &["a multiple of 2"],
    ),
    Refused(
        "[network];sizes = '100x100x100';virtual_channels = 254;[machine];processes_per_node = 1",
        2,
        "[network]",
        &["smaller topology", "virtual_channels"],
    ),
    Refused("[workload];operation = 'barrier';form = 'bruck'", 3, "[workload] form", &["dissemination"]),
    Refused("[workload];operation = 'gatherv';form = 'tree'", 3, "[workload] form", &["remove the field"]),
    Refused("[workload];active = 257", 2, "[workload] active = 257", &["256 processes"]),
    Refused("[workload];operation = 'incast';root = 256", 3, "[workload] root = 256", &["at most 255"]),
    Refused("[workload];operation = 'pingpong';active = 1", 3, "[workload] operation = pingpong", &["at least two"]),
    Refused("[workload];operation = 'pingping';active = 1", 3, "[workload] operation = pingping", &["at least two"]),
    Refused(
        "[workload];operation = 'multi_pingpong';[network];sizes = '3';[machine];processes_per_node = 1",
        4,
        "[workload] operation = multi_pingpong",
        &["an even number", "change [workload] active"],
    ),
    Refused("[workload];root = 3", 2, "[workload] root = 3", &["alltoall", "remove the field"]),
    Refused("[workload];trace = 'halo16'", 2, "[workload] trace = halo16", &["change [workload] operation"]),
    Refused("[workload];operation = ['barrier', 'random'];radix = 4", 3, "[workload] radix = 4", &["barrier, random"]),
    Refused("[workload];operation = 'random';active = 4", 3, "[workload] active = 4", &["remove the field"]),
    Refused("[workload];operation = 'barrier';bytes = 64", 3, "[workload] bytes = 64", &["remove the field"]),
    Refused("[workload];repetitions_per_root = 2", 2, "[workload] repetitions_per_root = 2", &["remove the field"]),
    Refused("[workload];repetitions = 4_000_000_000", 2, "[workload] repetitions", &["at most 10000000"]),
    Refused("[workload];warm_up = 4_000_000_000", 2, "[workload] warm_up", &["at most 10000000"]),
    Refused("[workload];bytes = '9e15 B'", 2, "[workload] bytes", &["2 KiB"]),
    Refused("[workload];bytes = '3 GiB'", 2, "[workload] bytes", &["at most 2147483648"]),
    Refused(
        "[workload];operation = 'random';repetitions = 4_000_000_000",
        3,
        "[workload] repetitions",
        &["at most 100000000"],
    ),
    Refused("[workload];operation = 'random';bytes = '900 GB'", 3, "[workload] bytes", &["at most 549755813888"]),
    Refused("[workload];operation = 'trace'", 2, "[workload] operation", &["halo16"]),
    Refused("[workload];operation = 'trace';trace = 'not-there'", 3, "[workload] trace: not-there", &["No such file"]),
    Refused("[workload];operation = 'trace';trace = 'bad.goal'", 3, "[workload] trace: bad.goal", &["line 2"]),
    Refused(
        "[workload];operation = 'trace';trace = 'halo16';[network];sizes = '2';[machine];processes_per_node = 2",
        3,
        "[workload] trace: halo16",
        &["16 ranks", "4 processes", "enlarge [network] sizes"],
    ),
];

/// The file itself.
const FILES: &[Refused] = &[
    Refused("[flow", 1, "this is not TOML", &[]),
    Refused("[flow];scheme = 'static';scheme = 'dynamic'", 3, "this is not TOML: duplicate key: `scheme`", &[]),
    Refused("[flwo];scheme = 'static'", 1, "there is no section flwo", &["did you mean flow?"]),
    Refused("flow = 3", 1, "flow is a section", &["write [flow] on a line of its own"]),
    Refused("[flow];slots = 3", 2, "there is no field of [flow] slots", &["did you mean slots_per_peer?", "--fields"]),
    Refused("[flow];seed = 3", 2, "seed belongs to [run], not to [flow]", &[]),
    Refused("[flow];slots_per_peer = []", 2, "[flow] slots_per_peer", &["give at least one value"]),
    Refused("[flow];slots_per_peer = 0x10", 2, "[flow] slots_per_peer", &["a decimal number"]),
    Refused("[flow];slots_per_peer = { a = 1 }", 2, "[flow] slots_per_peer", &["a list of them"]),
];

/// Simulates a file of these lines, in a folder of its own.
fn simulate(lines: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("it.toml"), lines.replace(';', "\n")).unwrap();
    std::fs::write(folder.path().join("bad.goal"), "num_ranks 2\nnonsense\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["sim", "it.toml"]).current_dir(folder.path()).output().unwrap()
}

#[track_caller]
fn are_refused(cases: &[Refused]) {
    let mut wrong = String::new();
    for Refused(lines, line, field, words) in cases {
        let output = simulate(lines);
        let said = String::from_utf8_lossy(&output.stderr);
        let begins = said.starts_with(&format!("tidegate: it.toml: line {line}: ")) && said.contains(field);
        let is_complete = words.iter().all(|word| said.contains(word)) && !said.contains("FI_TIDEGATE");
        if !begins || !is_complete || output.status.code() != Some(2) || said.lines().count() != 1 {
            let _ = writeln!(wrong, "{lines}\n  expected line {line}, {field}, {words:?}\n  got {said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn impossible_values_are_refused_with_line_field_and_remedy() {
    are_refused(VALUES);
}

#[test]
fn values_that_do_not_fit_together_are_refused_with_line_field_and_remedy() {
    are_refused(COMBINATIONS);
}

#[test]
fn what_is_no_description_of_a_simulation_is_refused_with_its_line() {
    are_refused(FILES);
    let many = "1, ".repeat(400);
    let said = simulate(&format!("[workload];bytes = [{many}1];repetitions = [{many}]")).stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("line 2: the lists make 160400 combinations") && said.contains("[workload] bytes"), "{said}");
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_with_the_line_of_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("it.toml"), b"[network]\nsizes = '2'\n# caf\xe9\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.args(["sim", "it.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "tidegate: it.toml: line 3: this is not UTF-8: save the file as UTF-8 text\n");
}

/// A field that some run of a sweep heeds is no mistake, and neither is a default that is written down.
#[test]
fn fields_that_matter_to_one_operation_of_a_sweep_are_taken() {
    for lines in [
        "[workload];operation = ['barrier', 'broadcast'];radix = 4;repetitions_per_root = 2;bytes = 64",
        "[workload];operation = ['random', 'barrier'];window = 3;warm_up = 2",
        "[workload];operation = 'barrier';root = 0;window = 64;radix = 2",
    ] {
        let read = Sweep::read(&lines.replace(';', "\n"), Path::new(""));
        assert!(read.is_ok(), "{lines}: {read:?}");
    }
}

#[test]
fn one_process_has_no_overhead_where_nothing_takes_time() {
    let lines =
        "[machine];parameters = 'free';processes_per_node = 1;[network];sizes = '1';[workload];operation = 'barrier'";
    let output = simulate(lines);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !shown.contains("NaN") && !shown.contains("inf"), "{shown}");
}

/// Only two fields take any text: a form is judged with its operation, a trace with the files that there are.
#[test]
fn every_field_refuses_what_it_cannot_understand_and_is_named() {
    for field in FIELDS.iter().filter(|field| !matches!(field.name, "form" | "trace")) {
        let text = format!("\n[{}]\n\n{} = '!'\n", field.section, field.name);
        let error = Sweep::read(&text, Path::new("")).expect_err(field.name).to_string();
        let begin = format!("line 4: [{}] {} = !: ", field.section, field.name);
        assert!(error.starts_with(&begin) && error.len() > begin.len() + 10, "{error}");
    }
}

/// All points are checked before the first is run.
#[test]
fn one_impossible_point_of_a_sweep_is_found_before_anything_is_run() {
    let output = simulate("[flow];slots_per_peer = [64, 3];[workload];repetitions = 9_000_000");
    assert_eq!(output.status.code(), Some(2));
}

const SMALL: &str = "[machine];processes_per_node = 2;[network];sizes = '2x2';";

/// What only a run can show.
#[test]
fn runs_that_fail_name_the_file_the_point_and_the_fields_that_may_help() {
    let cases = [
        (format!("{SMALL}[flow];peers = 3"), "the run failed: ", "raise [flow] peers (line 6), or leave it out"),
        (
            format!("{SMALL}[flow];scheme = ['none'];slots_per_peer = 1"),
            "the run (with flow.scheme = none) failed: nothing can move",
            "More [flow] slots_per_peer",
        ),
    ];
    for (lines, begin, remedy) in cases {
        let output = simulate(&lines);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with(&format!("tidegate: it.toml: {begin}")) && said.contains(remedy), "{said}");
        assert_eq!(output.status.code(), Some(125), "{said}");
    }
}
