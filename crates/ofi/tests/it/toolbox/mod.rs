//! What the tests with real libfabric share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A folder of this test alone, removed in the end.
pub struct Folder(PathBuf);

impl Folder {
    /// `name` may be used by several tests at once.
    pub fn new(name: &str) -> Folder {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether C programs can be compiled against libfabric here. Says so if not.
pub fn have_libfabric() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(can_compile);
    if !found {
        eprintln!("SKIPPED: no C compiler, or no libfabric with headers (Debian: gcc, libfabric-dev)");
    }
    found
}

fn can_compile() -> bool {
    let folder = Folder::new("probe");
    let source = folder.path().join("probe.c");
    fs::write(&source, "#include <rdma/fabric.h>\nint main(void) { return fi_version() == 0; }\n").unwrap();
    let outcome = Command::new("cc").arg("-o").arg(folder.path().join("probe")).arg(&source).arg("-lfabric").output();
    outcome.is_ok_and(|output| output.status.success())
}

/// The binary of `tests/c/<program>.c`, which is compiled unless it has been since its source changed: most programs
/// run with many settings.
pub fn compile(program: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let binaries = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
    let kept = binaries.join(program);
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    // Headers of the programs lie beside them.
    let newest = fs::read_dir(&sources).unwrap().filter_map(|entry| changed(&entry.unwrap().path())).max();
    if changed(&kept) > newest {
        return kept;
    }
    // Other tests may want the same one now: it appears whole.
    let folder = Folder::new(program);
    let source = sources.join(program).with_extension("c");
    let binary = folder.path().join(program);
    let output = Command::new("cc")
        // Headers from 2.0 on mark the old names, which some programs are about, as deprecated.
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Wno-deprecated-declarations", "-O1", "-g", "-o"])
        .arg(&binary)
        .arg(&source)
        // What a program defines, it defines for the provider too.
        .args(["-rdynamic", "-lfabric", "-pthread", "-ldl"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::create_dir_all(&binaries).unwrap();
    fs::rename(&binary, &kept).unwrap();
    kept
}

/// A folder with the provider under the name that libfabric looks for.
pub fn provider_folder(folder: &Folder) -> PathBuf {
    // The test runs from `target/<profile>/deps`, beside what cargo has built of the library.
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let built = [deps.join("libtidegate_fi.so"), deps.join("../libtidegate_fi.so")];
    let built = built.iter().find(|path| path.exists()).expect("cargo has built libtidegate_fi.so");
    let providers = folder.path().join("providers");
    fs::create_dir_all(&providers).unwrap();
    fs::hard_link(built, providers.join("libtidegate-fi.so")).unwrap();
    providers
}

/// Compiles and runs a program of `tests/c`, with arguments if it has any, with the provider. `settings` are
/// environment variables.
pub fn run(program: &str, settings: &[(&str, &str)]) {
    if !have_libfabric() {
        return;
    }
    let output = output_of(program, settings);
    assert!(output.status.success(), "{program} with {settings:?}: {}", text(&output));
    let left = segments_of(&output);
    assert!(left.is_empty(), "{program} left segments behind: {left:?}");
}

/// `call`: a program of `tests/c`, and its arguments. Where long messages go packet by packet, shorter ones do, too.
pub fn output_of(call: &str, settings: &[(&str, &str)]) -> Output {
    let mut words = call.split(' ');
    let program = words.next().unwrap_or_default();
    let folder = Folder::new(program);
    Command::new(compile(program))
        .args(words)
        .env("FI_PROVIDER_PATH", provider_folder(&folder))
        .env("FI_PROVIDER", "tidegate")
        .env("TEST_SECONDS", "300")
        .envs(settings.contains(&("FI_TIDEGATE_BULK", "mailbox")).then_some(("FI_TIDEGATE_SEND_BUFFERS", "0")))
        .envs(settings.iter().copied())
        .output()
        .unwrap()
}

/// All that a program has said.
pub fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Names in /dev/shm that belong to the processes that a program says it has had.
pub fn segments_of(output: &Output) -> Vec<String> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let pids: Vec<&str> = stdout.lines().filter_map(|line| line.strip_prefix("pid ")).collect();
    assert!(!pids.is_empty(), "the program tells its processes: {stdout}");
    let names =
        fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("tidegate-") && name.split('-').any(|field| pids.contains(&field))).collect()
}

/// Settings with which each process of a program has a host of its own, as far as anybody can tell, and reaches the
/// others by TCP. They name libfabric 1.17's way, which newer ones have as well. Processes that do not see that they
/// share their cores would poll for milliseconds each time before they let the others run.
pub const APART: [(&str, &str); 4] = [
    ("TEST_APART", "1"),
    ("FI_PROVIDER", "tidegate,tcp,ofi_rxm"),
    ("FI_TIDEGATE_FABRIC", "tcp;ofi_rxm"),
    ("FI_TIDEGATE_SPIN", "32"),
];

/// Whether processes may have a `/dev/shm` of their own here. Says so if not.
pub fn may_live_apart() -> bool {
    let may = |words: &[&str]| Command::new("unshare").args(words).output().is_ok_and(|it| it.status.success());
    let found = may(&["-m", "true"]) || may(&["-r", "-m", "true"]);
    if !found {
        eprintln!("SKIPPED: this system lets nobody make mount namespaces (run as root, where they are allowed)");
    }
    found
}

/// Runs a program each of whose processes has a host of its own.
pub fn run_apart(program: &str, settings: &[(&str, &str)]) {
    if may_live_apart() {
        run(program, &[&APART, settings].concat());
    }
}
