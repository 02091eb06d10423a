//! What people see of the provider through libfabric's own tools: `fi_info` and its list of parameters, log lines, and
//! what a wrong parameter says.

use crate::toolbox::{Folder, have_libfabric, provider_folder};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output, Stdio};

/// Runs `fi_info`, or `None` where it is not installed.
fn fi_info(arguments: &[&str], settings: &[(&str, &str)]) -> Option<Output> {
    if !have_libfabric() {
        return None;
    }
    let folder = Folder::new("information");
    let outcome = Command::new("fi_info")
        .args(arguments)
        .env("FI_PROVIDER_PATH", provider_folder(&folder))
        .env_remove("FI_PROVIDER")
        .envs(settings.iter().copied())
        .output();
    if outcome.is_err() {
        eprintln!("SKIPPED: fi_info is not installed (Debian: libfabric-bin)");
    }
    outcome.ok()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_provider_is_found() {
    let Some(output) = fi_info(&["-p", "tidegate"], &[]) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for line in ["provider: tidegate", "fabric: tidegate", "domain: tidegate", "type: FI_EP_RDM"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
}

/// Reports of bugs come with a log.
#[test]
fn the_log_says_version_and_commit() {
    let Some(output) = fi_info(&["-p", "tidegate"], &[("FI_LOG_LEVEL", "info"), ("FI_LOG_PROV", "tidegate")]) else {
        return;
    };
    let says = format!("Tidegate {} (commit {})", env!("CARGO_PKG_VERSION"), env!("TIDEGATE_COMMIT"));
    assert!(stderr(&output).contains(&says), "{}", stderr(&output));
}

#[test]
fn this_host_is_served_by_whatever_name_and_no_other() {
    for node in ["localhost", "127.0.0.1", "::1"] {
        let Some(output) = fi_info(&["-p", "tidegate", "-n", node, "-P", "7471"], &[]) else { return };
        assert!(output.status.success(), "{node}: {}", stderr(&output));
    }
    for node in ["no-such-host.invalid", "192.0.2.1"] {
        let Some(output) = fi_info(&["-p", "tidegate", "-n", node, "-P", "7471"], &[]) else { return };
        assert!(!output.status.success() && stdout(&output).is_empty(), "{node}: {}", stdout(&output));
    }
}

#[test]
fn datagrams_are_offered_and_no_layer_of_libfabric_stands_on_them() {
    let Some(output) = fi_info(&["-p", "tidegate", "-t", "FI_EP_DGRAM"], &[]) else { return };
    assert!(stdout(&output).contains("type: FI_EP_DGRAM"), "{}{}", stdout(&output), stderr(&output));
    let Some(output) = fi_info(&[], &[]) else { return };
    let text = stdout(&output);
    let ours: Vec<&str> =
        text.lines().filter(|line| line.starts_with("provider: ") && line.contains("tidegate")).collect();
    assert_eq!(ours, ["provider: tidegate"], "{text}");
}

#[test]
fn every_parameter_is_listed_with_what_is_allowed_and_its_default() {
    let Some(output) = fi_info(&["-g", "tidegate"], &[]) else { return };
    let text = stdout(&output);
    for name in [
        "SCHEME",
        "SLOTS",
        "CREDIT_SLOTS",
        "PIGGYBACK",
        "EAGER_SIZE",
        "PEERS",
        "BULK",
        "BOUNCE_BUFFERS",
        "SPIN",
        "STATS_DIR",
        "TRACE_DIR",
        "TRACE_MOST",
    ] {
        let start = text.find(&format!("FI_TIDEGATE_{name}: String")).unwrap_or_else(|| panic!("{name} in {text}"));
        let help = text[start..].lines().nth(1).unwrap();
        assert!(help.contains("Allowed: ") && help.contains("(default: "), "{help}");
    }
}

#[test]
fn a_wrong_parameter_is_named_where_tidegate_is_asked_for() {
    let wrong = ("FI_TIDEGATE_SCHEME", "fast");
    let Some(output) = fi_info(&["-p", "tidegate"], &[wrong]) else { return };
    assert!(!output.status.success());
    let expected = "FI_TIDEGATE_SCHEME is \"fast\", but must be one of none, static, dynamic";
    assert_eq!(stderr(&output).matches(expected).count(), 1, "{}", stderr(&output));
}

#[test]
fn a_wrong_parameter_does_not_disturb_applications_of_other_providers() {
    let Some(output) = fi_info(&["-p", "tcp"], &[("FI_TIDEGATE_SCHEME", "fast")]) else { return };
    assert!(!stderr(&output).contains("TIDEGATE"), "{}", stderr(&output));
}

#[test]
fn a_misspelt_parameter_is_said_once_for_a_job() {
    let misspelt = ("FI_TIDEGATE_SLTOS", "16");
    let expected = "FI_TIDEGATE_SLTOS is no parameter of Tidegate and has no effect; did you mean FI_TIDEGATE_SLOTS?";
    for (rank, times) in [(None, 1), (Some("0"), 1), (Some("1"), 0)] {
        let rank = rank.map(|rank| ("PMI_RANK", rank));
        let Some(output) = fi_info(&["-p", "tidegate"], &[&[misspelt], rank.as_slice()].concat()) else { return };
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches(expected).count(), times, "{rank:?}: {}", stderr(&output));
    }
    let Some(output) = fi_info(&["-p", "tcp"], &[misspelt]) else { return };
    assert!(!stderr(&output).contains("TIDEGATE"), "{}", stderr(&output));
}

#[test]
fn what_is_wrong_is_left_beside_the_counters() {
    let folder = Folder::new("troubles");
    let place = ("FI_TIDEGATE_STATS_DIR", folder.path().to_str().unwrap());
    for setting in [("FI_TIDEGATE_SLOTS", "many"), ("FI_TIDEGATE_SLTOS", "16")] {
        if fi_info(&["-p", "tidegate"], &[place, setting]).is_none() {
            return;
        }
    }
    let troubles = tidegate_link::trouble::read_dir(folder.path());
    let texts: Vec<_> = troubles.iter().map(|trouble| (trouble.text.as_str(), trouble.processes)).collect();
    assert!(matches!(texts[..], [(text, 1)] if text.starts_with("FI_TIDEGATE_SLOTS is \"many\"")), "{texts:?}");
}

#[test]
fn a_line_of_the_provider_is_one_write() {
    if !have_libfabric() {
        return;
    }
    let folder = Folder::new("writes");
    // Standard error is a socket of datagrams, so that each write of the program arrives as one datagram.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let status = Command::new("fi_info")
        .args(["-p", "tidegate"])
        .env("FI_PROVIDER_PATH", provider_folder(&folder))
        .env("FI_TIDEGATE_SLTOS", "16")
        .env("FI_TIDEGATE_SLOTS", "many")
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(theirs))
        .status();
    if status.is_err() {
        return eprintln!("SKIPPED: fi_info is not installed (Debian: libfabric-bin)");
    }
    ours.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    let mut lines = 0;
    while let Ok(length) = ours.recv(&mut bytes) {
        let said = String::from_utf8_lossy(&bytes[..length]);
        if said.contains("tidegate") || said.contains("TIDEGATE") {
            assert!(said.starts_with("tidegate: FI_TIDEGATE_SL") && said.ends_with('\n'), "{said:?}");
            lines += 1;
        }
    }
    assert_eq!(lines, 2);
}

#[test]
fn log_lines_follow_the_settings_of_libfabric() {
    let wrong = ("FI_TIDEGATE_SLOTS", "many");
    let level = ("FI_LOG_LEVEL", "warn");
    let Some(output) = fi_info(&["-p", "tidegate"], &[wrong, level]) else { return };
    let logged = |output: &Output| stderr(output).lines().any(|line| line.contains("<warn>") && line.contains("SLOTS"));
    assert!(logged(&output), "{}", stderr(&output));
    let Some(output) = fi_info(&["-p", "tidegate"], &[wrong, level, ("FI_LOG_SUBSYS", "cq")]) else { return };
    assert!(!logged(&output), "{}", stderr(&output));
    let Some(output) = fi_info(&["-p", "tidegate"], &[wrong]) else { return };
    assert!(!logged(&output), "{}", stderr(&output));
}

#[test]
fn the_ping_pong_of_libfabric_runs() {
    // Unless it is told otherwise, fi_pingpong uses FI_EP_DGRAM.
    for arguments in [&[][..], &["-e", "rdm"]] {
        play_ping_pong(arguments);
    }
}

fn play_ping_pong(arguments: &[&str]) {
    if !have_libfabric() {
        return;
    }
    let folder = Folder::new("pingpong");
    let providers = provider_folder(&folder);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let side = |role: &[&str]| {
        Command::new("timeout")
            .args(["60", "fi_pingpong", "-p", "tidegate", "-c", "-I", "100"])
            .args(arguments)
            .args(role)
            .env("FI_PROVIDER_PATH", &providers)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let server = side(&["-B", &port]);
    // The server does not tell when it listens, so the client is started again until it connects.
    let client = (0..100)
        .map(|_| side(&["-P", &port, "127.0.0.1"]).wait_with_output().unwrap())
        .find(|output| {
            let refused = stderr(output).contains("Connection refused");
            if refused {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            !refused
        })
        .expect("the server listens within ten seconds");
    let server = server.wait_with_output().unwrap();
    if [&client, &server].iter().any(|output| output.status.code() == Some(127)) {
        return eprintln!("SKIPPED: fi_pingpong is not installed (Debian: libfabric-bin)");
    }
    for output in [&client, &server] {
        assert!(output.status.success(), "{}\n{}", stdout(output), stderr(output));
        assert!(stdout(output).lines().any(|line| line.starts_with("1m ")), "{}", stdout(output));
    }
}
