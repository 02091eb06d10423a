//! The parts of an endpoint that other users can see, and errors about addresses that are none. The programs are C,
//! over the installed libfabric, as in `programs.rs`.

use crate::toolbox::{APART, Folder, compile, have_libfabric, may_live_apart, provider_folder};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tidegate_link::fabric::Contact;

/// A number that is looked for, and all the forms in which it may be written down.
struct Needle {
    what: &'static str,
    raw: Vec<u8>,
    texts: Vec<String>,
}

impl Needle {
    /// A number as it lies in memory, and the reverse; as text to the bases 16 and 10; and as the place of a lock.
    fn of(what: &'static str, number: u64) -> Needle {
        let texts = [number, number.swap_bytes()].into_iter().flat_map(|number| {
            [format!("{number:x}"), format!("{number:X}"), number.to_string(), ((number >> 2) | 1 << 62).to_string()]
        });
        Needle { what, raw: number.to_le_bytes().to_vec(), texts: texts.collect() }
    }

    fn is_in(&self, hay: &[u8]) -> bool {
        let has = |part: &[u8]| hay.windows(part.len()).any(|window| window == part);
        let mut reversed = self.raw.clone();
        reversed.reverse();
        has(&self.raw) || has(&reversed) || self.texts.iter().any(|text| has(text.as_bytes()))
    }
}

/// All files below a folder, of itself only those whose names are wanted; names first.
fn files(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name: OsString = entry.file_name();
        if !is_wanted(&name.to_string_lossy()) {
            continue;
        }
        found.push((path.clone(), name.as_encoded_bytes().to_vec()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path, &|_| true)),
            // Most of a segment is empty.
            Ok(kind) if kind.is_file() => {
                let bytes = fs::read(&path).unwrap_or_default();
                let pages = bytes.chunks(4096).filter(|page| page.iter().any(|byte| *byte != 0));
                found.push((path.clone(), pages.flatten().copied().collect()));
            }
            _ => {}
        }
    }
    found
}

/// fi_tidegate(7): "An endpoint's address holds a secret of 80 random bits, which an MPI gives to the other ranks
/// through its launcher."
/// fi_tidegate(7): "It stands in no file, in no name of a file or a socket, in no command line, in no line of the log,
/// and in no batch." (Of batches: `nothing_that_travels_shows_a_secret` in crates/link.)
/// fi_tidegate(7): "Other users see the names of segments, and those of the sockets by which sleeping endpoints are
/// woken (/proc/net/unix), which are random, or follow from an endpoint's secret by a hash that does not lead back to
/// it."
///
/// More is searched than another user may read: also what only this one may.
fn nothing_shows_the_secret(settings: &[(&str, &str)]) {
    if !have_libfabric() {
        return;
    }
    let folder = Folder::new("secret");
    let [stats, traces, log] = ["stats", "traces", "log"].map(|name| folder.path().join(name));
    fs::create_dir(&stats).unwrap();
    fs::create_dir(&traces).unwrap();
    let mut job = Command::new(compile("secret"))
        .env("FI_PROVIDER_PATH", provider_folder(&folder))
        .env("FI_PROVIDER", "tidegate")
        .env("FI_LOG_LEVEL", "debug")
        .env("FI_TIDEGATE_STATS_DIR", &stats)
        .env("FI_TIDEGATE_TRACE_DIR", &traces)
        .envs(settings.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let input = job.stdin.take();
    let mut lines = BufReader::new(job.stdout.take().unwrap()).lines();
    let mut processes: Vec<(String, Vec<u8>)> = Vec::new();
    while processes.len() < 2 {
        let Some(Ok(line)) = lines.next() else { panic!("it has ended: {}", fs::read_to_string(&log).unwrap()) };
        let Some((pid, address)) = line.strip_prefix("address ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let byte = |at: usize| u8::from_str_radix(&address[at..at + 2], 16).unwrap();
        processes.push((pid.to_owned(), (0..address.len()).step_by(2).map(byte).collect()));
    }
    let mut seen = files(folder.path(), &|_| true);
    seen.retain(|(path, _)| !path.starts_with(folder.path().join("providers")));
    for path in ["/proc/net/unix", "/proc/locks", "/proc/net/tcp"] {
        seen.push((path.into(), fs::read(path).unwrap_or_default()));
    }
    for (pid, _) in &processes {
        // Other tests have segments there, too, of many MiB: to read all takes longer than the job waits.
        let is_of_it = |name: &str| name.starts_with("tidegate-") && name.contains(&format!("-{pid}-"));
        let ours = files(&PathBuf::from(format!("/proc/{pid}/root/dev/shm")), &is_of_it);
        assert!(!ours.is_empty(), "the segment of {pid}");
        seen.extend(ours);
        for file in ["cmdline", "environ", "maps", "comm", "status"] {
            let path = PathBuf::from(format!("/proc/{pid}/{file}"));
            seen.push((path.clone(), fs::read(path).unwrap_or_default()));
        }
    }
    drop(input);
    assert!(job.wait().unwrap().success(), "{}", fs::read_to_string(&log).unwrap());
    for (pid, address) in &processes {
        let contact = Contact::from_bytes(address).unwrap();
        let first = u64::from_le_bytes(*address[14..].first_chunk().unwrap());
        let last = u64::from_le_bytes(*address[16..].first_chunk().unwrap());
        let secrets =
            [Needle::of("secret", first), Needle::of("secret", last), Needle::of("number of batches", contact.id())];
        for (path, bytes) in &seen {
            let found = secrets.iter().find(|needle| needle.is_in(bytes));
            assert!(found.is_none(), "the {} of {pid} stands in {}", found.unwrap().what, path.display());
        }
        // The tag, which every user may see, is there: so this looks where it should.
        let tag = Needle::of("tag", contact.address.tag());
        let places = seen.iter().filter(|(_, bytes)| tag.is_in(bytes)).count();
        assert!(places >= 3, "the name of the segment, the page of counters and the trace: {places}");
    }
}

#[test]
fn nothing_that_others_see_of_an_endpoint_shows_its_secret() {
    nothing_shows_the_secret(&[]);
}

#[test]
fn nothing_that_others_see_of_an_endpoint_with_a_network_shows_its_secret() {
    if may_live_apart() {
        nothing_shows_the_secret(&APART);
    }
}

#[test]
fn a_garbled_address_is_said_to_be_one() {
    if !have_libfabric() {
        return;
    }
    let folder = Folder::new("garbled");
    let output = Command::new(compile("garbled"))
        .env("FI_PROVIDER_PATH", provider_folder(&folder))
        .env("FI_PROVIDER", "tidegate")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for line in [
        "this is no address of Tidegate: its check value is wrong; the launcher has changed it",
        "this is an address of another version of Tidegate (3; here ",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{said}");
    }
    assert!(!said.contains("FI_TIDEGATE_PIGGYBACK"), "nothing is compared with what an address does not say: {said}");
}
