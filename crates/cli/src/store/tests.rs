use super::*;
use serde::Deserialize;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Number(u64);

impl Kept for Number {}

const CODE: &str = "0123456789abcdef";

fn folder(out: &Path) -> Folder {
    Folder::open(out, Reuse::OwnCode, CODE).unwrap()
}

fn key() -> RunKey {
    RunKey { case: "a case".to_owned(), seed: 1, noise_interval_ps: 0, noise_duration_ps: 0 }
}

fn finished(number: u64) -> FinishedRun<Number> {
    FinishedRun { code: CODE.to_owned(), key: key(), seconds: 0.5, measurement: Number(number) }
}

fn names(folder: &Folder) -> Vec<String> {
    let names = fs::read_dir(&folder.own).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn loaded(folder: &Folder) -> Option<u64> {
    RunStore::<Number>::load(folder, &key()).map(|run| run.measurement.0)
}

/// Two folders stand for two processes: each opens the file by itself.
#[test]
fn one_process_does_a_run_and_the_other_finds_it() {
    let out = tempfile::tempdir().unwrap();
    let (one, other) = (folder(out.path()), folder(out.path()));
    let claim: Box<dyn RunClaim<Number>> = one.claim(&key()).unwrap();
    assert!(RunStore::<Number>::claim(&other, &key()).is_none() && loaded(&other).is_none());
    claim.keep(&finished(7));
    assert_eq!((loaded(&one), loaded(&other)), (Some(7), Some(7)));
    assert_eq!(names(&one), [format!("{}.json", key().digits())]);
    assert!(one.has_locks());
}

#[test]
fn a_claim_that_is_dropped_without_a_run_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let folder = folder(out.path());
    drop(folder.claim_at(&key(), Instant::now()));
    assert!(names(&folder).is_empty() && loaded(&folder).is_none());
}

/// A host that is gone for good cannot give its lock back, and a process that was stopped does not.
#[test]
fn a_lock_whose_process_shows_no_sign_of_life_is_passed_over() {
    let out = tempfile::tempdir().unwrap();
    let (silent, other) = (folder(out.path()), folder(out.path()));
    let begin = Instant::now();
    let silent_claim = silent.claim_at(&key(), begin).unwrap();
    let after = |seconds| begin + Duration::from_secs(seconds);
    let most = ABANDONED_AFTER.as_secs();
    assert!([0, 1, most - 1].iter().all(|seconds| other.claim_at(&key(), after(*seconds)).is_none()));
    // A sign of life: the time counts from when it is seen.
    let touched = std::time::SystemTime::now() + Duration::from_secs(1);
    silent_claim.file.as_ref().unwrap().set_modified(touched).unwrap();
    assert!([most, 2 * most - 1].iter().all(|seconds| other.claim_at(&key(), after(*seconds)).is_none()));
    let claim = other.claim_at(&key(), after(2 * most)).expect("it has been silent for too long");
    // It lives after all: what it found is kept, and what the other one has claimed stays claimed.
    Box::new(silent_claim).keep(&finished(7));
    assert_eq!(loaded(&other), Some(7));
    assert!(claim.running().exists());
    Box::new(claim).keep(&finished(7));
    assert_eq!(names(&other), [format!("{}.json", key().digits())]);
}

#[test]
fn what_a_killed_process_has_left_is_not_read_and_goes_away() {
    let out = tempfile::tempdir().unwrap();
    let folder = folder(out.path());
    let path = folder.path(&key());
    fs::write(path.with_extension("running"), "host-a_123").unwrap();
    fs::write(unfinished(&path, "host-a_123"), "{\"code\":\"01234").unwrap();
    assert_eq!(loaded(&folder), None);
    let claim = folder.claim_at(&key(), Instant::now()).expect("the lock has ended with its process");
    assert_eq!(fs::read_to_string(claim.running()).unwrap(), own_name());
    Box::new(claim).keep(&finished(7));
    assert_eq!(names(&folder), [format!("{}.json", key().digits())]);
    // It was killed when the run had got its name.
    fs::write(path.with_extension("running"), "host-a_123").unwrap();
    assert_eq!(loaded(&folder), Some(7));
    assert_eq!(names(&folder), [format!("{}.json", key().digits())]);
    assert!(is_name(&own_name()) && !["", "../x", "a/b", "a b"].iter().any(|name| is_name(name)));
}
