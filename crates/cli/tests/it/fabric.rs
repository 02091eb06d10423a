//! Files that describe networks under load: what they may say, what comes out, what is said of those that are wrong.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tidegate_sim::cycle::{Control, Layout, Pattern, Routing};
use tidegate_sim::run_spec::{FABRIC_FIELDS, FabricDraft, File, Sweep};

fn read(text: &str) -> Result<Sweep<FabricDraft>, String> {
    match File::read(text.into(), Path::new("")).map_err(|error| error.to_string())? {
        File::Fabrics(sweep) => Ok(sweep),
        File::Jobs(_) | File::Bulks(_) => panic!("a file with [fabric] describes no jobs"),
    }
}

#[track_caller]
fn refused(text: &str, begin: &str) {
    let error = read(text).expect_err(text);
    assert!(error.starts_with(begin), "{error}");
}

fn simulate(text: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("it.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["sim", "it.toml"]).args(arguments).current_dir(folder.path()).output().unwrap()
}

/// 72 nodes, in the proportions of R's 5,256.
const SMALL: &str = "[fabric]\ngroups = 9\nrouters_per_group = 4\nnodes_per_router = 2\nglobal_links = 2\n\
                     window_cycles = 500\n";

#[test]
fn an_empty_table_is_the_network_of_the_paper() {
    let sweep = read("[fabric]").unwrap();
    let fabric = sweep.points[0].1;
    assert_eq!(fabric.machine.layout.nodes(), 5_256);
    assert_eq!(fabric.machine.routing, Routing::PROGRESSIVE);
    assert_eq!((fabric.machine.load.pattern, fabric.machine.load.slow_nodes), (Pattern::Pairs, 0));
    assert_eq!((fabric.windows.cycles, fabric.seeds), (10_000, 1));
}

#[test]
fn fields_say_what_the_network_is_and_what_its_nodes_do() {
    let text = "[fabric]\ntopology = 'fat_tree'\nradix = 8\nlevels = [2, 3]\nrouting = 'valiant'\nslow_nodes = '10 %'\n\
                slow_factor = 4\ncontrol = 'chunks'\nchunks = 12\noffered = 0.5\n[run]\nseed = 7\nseeds = 3\n";
    let sweep = read(text).unwrap();
    assert_eq!(sweep.axes, ["fabric.levels"]);
    let nodes = |point: usize| sweep.points[point].1.machine.layout.nodes();
    assert_eq!([nodes(0), nodes(1)], [32, 128]);
    let fabric = sweep.points[1].1;
    assert!(matches!(fabric.machine.layout, Layout::FatTree(_)) && fabric.machine.routing == Routing::Valiant);
    let load = fabric.machine.load;
    assert_eq!((load.slow_nodes, load.slow_factor, load.offered_per_mille), (13, 4, 500));
    assert_eq!((load.control, fabric.machine.seed, fabric.seeds), (Control::Chunks(12), 7, 3));
}

#[test]
fn what_cannot_be_is_refused_where_it_stands_with_what_can() {
    for (text, begin) in [
        ("[fabric]\ngroups = 74", "line 2: [fabric] groups = 74: a group has routers_per_group"),
        ("[fabric]\nchannels = 3", "line 2: [fabric] channels = 3: this topology needs 4"),
        ("[fabric]\nslow_nodes = 5257", "line 2: [fabric] slow_nodes = 5257: the network has 5256 nodes"),
        ("[fabric]\nslow_nodes = '2 per cent'", "line 2: [fabric] slow_nodes = 2 per cent: a whole number"),
        ("[fabric]\ntopology = 'fat_tree'\nradix = 7", "line 3: [fabric] radix = 7: half of a router's ports"),
        ("[fabric]\npattern = 'shift'\nshift = 0", "line 3: [fabric] shift: by this many every node"),
        (
            "[fabric]\npattern = 'uniform'\ncontrol = 'chunks'",
            "line 3: [fabric] control: chunks need a [fabric] pattern",
        ),
        ("[fabric]\nslow_nodes = 1\nslow_factor = 1001", "line 3: [fabric] slow_factor = 1001: a slow node takes"),
        ("[fabric]\nwindows_most = 3", "line 2: [fabric] windows_most = 3: a whole number from 4"),
        ("[fabric]\nrouting = 'adaptiv'", "line 2: [fabric] routing = adaptiv: one of minimal, valiant, adaptive"),
        (
            "[fabric]\nchannel_map = 'by_links'",
            "line 2: [fabric] channel_map = by_links: one of by_step, by_global_links",
        ),
        ("[fabric]\nchannels = 8\nlanes = 'each_hop'", "line 3: [fabric] lanes = each_hop: one of fixed, per_hop"),
        ("[fabric]\nrouter = 3", "line 2: there is no field of [fabric] router"),
        ("[fabric]\n[flow]\nscheme = 'static'", "line 2: [flow] belongs to jobs"),
        ("[fabric]\n[run]\nchecks = true", "line 3: there is no field of [run] checks"),
    ] {
        refused(text, begin);
    }
}

/// A field that changes nothing is a mistake of its author, unless some run of a sweep heeds it.
#[test]
fn fields_that_change_nothing_are_refused() {
    for (field, decides) in [
        ("radix = 8", "topology = dragonfly"),
        ("shift = 3", "pattern = pairs"),
        ("slow_factor = 4", "slow_nodes = 0"),
        ("chunks = 12", "control = none"),
        ("mark_decay_cycles = 50", "control = none"),
    ] {
        refused(
            &format!("[fabric]\n{field}"),
            &format!("line 2: [fabric] {field} changes nothing in a network with {decides}: "),
        );
    }
    refused("[fabric]\nrouting = 'minimal'\nadaptive_bias = 1", "line 3: [fabric] adaptive_bias = 1 changes nothing");
    let begin = "line 2: [fabric] lanes = per_hop changes nothing in a network with channels = 4: ";
    refused("[fabric]\nlanes = 'per_hop'", begin);
    refused("[fabric]\ntopology = 'fat_tree'\ngroups = 9", "line 3: [fabric] groups = 9 changes nothing");
    refused(
        "[fabric]\ntopology = 'fat_tree'\nchannel_map = 'by_global_links'",
        "line 3: [fabric] channel_map = by_global_links changes",
    );
    assert!(read("[fabric]\nchannels = [4, 8]\nlanes = ['fixed', 'per_hop']\nchannel_map = 'by_global_links'").is_ok());
    assert!(read("[fabric]\nrouting = ['minimal', 'adaptive']\nadaptive_bias = 1").is_ok());
    assert!(read("[fabric]\ncontrol = ['none', 'chunks']\nchunks = [12, 30]").is_ok());
}

#[test]
fn every_field_refuses_what_it_cannot_understand_and_is_named() {
    for field in FABRIC_FIELDS {
        let begin = format!("line 4: [{}] {} = !: ", field.section, field.name);
        let table = if field.section == "fabric" { "" } else { "[fabric]" };
        refused(&format!("{table}\n[{}]\n\n{} = '!'\n", field.section, field.name), &begin);
    }
}

/// What is shown is the mean over the seeds, each of which is as though it had been run alone, however many jobs.
#[test]
fn rows_are_means_over_seeds_and_the_same_with_any_number_of_jobs() {
    let text = format!("{SMALL}slow_nodes = [0, 3]\n[run]\nseed = 4\nseeds = 3\n");
    let json = |text: &str, jobs: &str| -> Value {
        let output = simulate(text, &["--json", "--jobs", jobs]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let found = json(&text, "2");
    assert_eq!(found, json(&text, "1"));
    assert_eq!(found["schema"], "tidegate-fabric/1");
    let rate = |value: &Value| value["accepted"].as_f64().unwrap();
    for run in found["runs"].as_array().unwrap() {
        let seeds = run["seeds"].as_array().unwrap();
        assert_eq!(seeds.iter().map(|seed| seed["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [4, 5, 6]);
        let mean = seeds.iter().map(rate).sum::<f64>() / 3.0;
        assert!((rate(run) - mean).abs() < 1e-12 && run["accepted_half_interval"].as_f64().unwrap() > 0.0);
    }
    let alone = json(&format!("{SMALL}slow_nodes = 3\n[run]\nseed = 5\n"), "1");
    assert_eq!(alone["runs"][0]["seeds"][0], found["runs"][1]["seeds"][1]);
    assert_eq!(found["runs"][1]["slow_nodes"], 3);
    assert!(rate(&found["runs"][1]) < rate(&found["runs"][0]), "slow nodes cost something");
}

#[test]
fn the_table_the_csv_and_the_trace() {
    let text = format!("{SMALL}control = ['none', 'chunks']\n");
    let output = simulate(&text, &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("fabric.control") && table.contains("1 of 1") && table.contains("flits that a node"),
        "{table}"
    );
    let output = simulate(&text, &["--csv", "-"]);
    let csv = String::from_utf8(output.stdout).unwrap();
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.starts_with("fabric.control,accepted,+/-,healthy,"), "{csv}");
    let output = simulate(&text, &["--goal", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--goal writes the program of a job"));
}
