//! Services: names that lead to the endpoint that claims them, and to nobody once it is gone.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::Barrier;
use tidegate_link::{Address, ClaimError, Service, ShmLink};

fn service(name: &str) -> Service {
    Service::new(name.as_bytes()).unwrap()
}

fn claim_file(folder: &Folder) -> String {
    folder.files().into_iter().find(|name| name.contains("service")).unwrap()
}

/// What a process leaves that had `service` and was killed: the file, which nobody keeps locked.
fn leave_behind(folder: &Folder, service: &Service) {
    let link = folder.link(1);
    let claim = service.claim(folder.path(), link.address()).unwrap();
    let path = folder.path().join(claim_file(folder));
    let contents = fs::read(&path).unwrap();
    drop((claim, link));
    fs::write(path, contents).unwrap();
}

#[test]
#[ignore = "a process of another test: has a service, and a child that keeps what it had open"]
fn role_claims_and_forks() {
    let folder = role_folder();
    let link = folder.link(1);
    let _claim = service("echo").claim(folder.path(), link.address()).unwrap();
    // By the bare system call, so that the child keeps the locks.
    // SAFETY: the child does nothing but sleep.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child == 0 {
        loop {
            std::thread::park();
        }
    }
    fs::write(folder.path().join("unfinished"), child.to_string()).unwrap();
    fs::rename(folder.path().join("unfinished"), folder.path().join("child")).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_service_leads_to_its_owner_until_the_claim_ends() {
    let folder = Folder::new();
    let (link, http) = (folder.link(1), service("7471"));
    assert_eq!(http.find(folder.path()), None);
    let claim = http.claim(folder.path(), link.address()).unwrap();
    assert_eq!(http.find(folder.path()), Some(link.address()));
    assert_eq!(service("7472").find(folder.path()), None);
    assert_eq!(fs::metadata(folder.path().join(claim_file(&folder))).unwrap().permissions().mode() & 0o777, 0o600);
    drop(claim);
    assert_eq!(http.find(folder.path()), None);
    assert_eq!(folder.files().len(), 1, "the segment alone");
}

#[test]
fn a_living_owner_keeps_its_service() {
    let folder = Folder::new();
    let (first, second, name) = (folder.link(1), folder.link(1), service("echo"));
    let claim = name.claim(folder.path(), first.address()).unwrap();
    let refused = name.claim(folder.path(), second.address()).unwrap_err();
    assert!(matches!(refused, ClaimError::Taken { owner, .. } if owner == first.address()), "{refused}");
    assert!(refused.to_string().contains("service echo is in use by pid "), "{refused}");
    // Somebody clears the folder: then the name is free, and who gives it back late harms nobody.
    fs::remove_file(folder.path().join(claim_file(&folder))).unwrap();
    let _second_claim = name.claim(folder.path(), second.address()).unwrap();
    drop(claim);
    assert_eq!(name.find(folder.path()), Some(second.address()));
}

#[test]
fn who_is_killed_loses_its_service_though_a_child_of_it_lives() {
    let folder = Folder::new();
    let link = folder.link(1);
    let process = Process::start("services::role_claims_and_forks", &folder, link.address());
    let child: libc::pid_t = loop {
        match fs::read_to_string(folder.path().join("child")) {
            Ok(text) => break text.parse().unwrap(),
            Err(_) => std::thread::yield_now(),
        }
    };
    assert!(service("echo").claim(folder.path(), link.address()).is_err());
    process.kill();
    let _claim = service("echo").claim(folder.path(), link.address()).unwrap();
    assert_eq!(service("echo").find(folder.path()), Some(link.address()));
    // SAFETY: it is still the role's child, which ends by nothing else.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

#[test]
fn what_the_dead_leave_is_cleared_by_who_looks_and_by_the_next_endpoint() {
    let folder = Folder::new();
    leave_behind(&folder, &service("1"));
    assert_eq!(folder.files().len(), 1);
    assert_eq!(service("1").find(folder.path()), None);
    assert!(folder.files().is_empty());
    leave_behind(&folder, &service("2"));
    let living = folder.link(1);
    let claim = service("3").claim(folder.path(), living.address()).unwrap();
    let next = folder.link(1);
    assert_eq!(folder.files().len(), 3, "two segments and the claim of the living: {:?}", folder.files());
    drop((claim, living, next));
    assert!(folder.files().is_empty());
}

#[test]
fn of_all_who_come_at_once_for_a_dead_owners_service_one_gets_it() {
    const NEWCOMERS: usize = 4;
    let folder = Folder::new();
    for _ in 0..100 {
        leave_behind(&folder, &service("contended"));
        let links: Vec<ShmLink> = (0..NEWCOMERS).map(|_| folder.link(1)).collect();
        let (start, end) = (Barrier::new(NEWCOMERS), Barrier::new(NEWCOMERS));
        let winners: Vec<Address> = std::thread::scope(|scope| {
            let claim = |address: Address| {
                let (folder, start, end) = (&folder, &start, &end);
                scope.spawn(move || {
                    start.wait();
                    let claim = service("contended").claim(folder.path(), address);
                    end.wait();
                    claim.ok().map(|claim| {
                        assert_eq!(service("contended").find(folder.path()), Some(address));
                        drop(claim);
                        address
                    })
                })
            };
            let threads: Vec<_> = links.iter().map(|link| claim(link.address())).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1, "{winners:?}");
    }
}

#[test]
fn no_name_leads_out_of_the_folder_and_nothing_is_followed() {
    let folder = Folder::new();
    let link = folder.link(1);
    let odd = service("../odd name/%");
    let _claim = odd.claim(folder.path(), link.address()).unwrap();
    assert_eq!(odd.find(folder.path()), Some(link.address()));
    let name = claim_file(&folder);
    assert!(name.ends_with("-service-%2e%2e%2fodd%20name%2f%25"), "{name}");
    let elsewhere = folder.path().join("elsewhere");
    symlink(&elsewhere, folder.path().join(name.replace("%2e", "x"))).unwrap();
    let refused = service("xx/odd name/%").claim(folder.path(), link.address()).unwrap_err();
    assert!(matches!(refused, ClaimError::Occupied { owner: None, .. }), "{refused}");
    assert!(refused.to_string().contains("is something that is no regular file; remove it"), "{refused}");
    assert!(!elsewhere.exists());
}

#[test]
fn a_file_of_another_user_is_named_and_concerns_nobody_but_who_claims_its_service() {
    const STRANGER: u32 = 65534;
    let folder = Folder::new();
    let link = folder.link(1);
    drop(service("7471").claim(folder.path(), link.address()).unwrap());
    // SAFETY: `geteuid` has no preconditions.
    let path = folder.path().join(format!("tidegate-{}-service-7471", unsafe { libc::geteuid() }));
    fs::write(&path, "").unwrap();
    if chown(&path, Some(STRANGER), Some(STRANGER)).is_err() {
        eprintln!("SKIPPED: only root can give files away");
        return;
    }
    let refused = service("7471").claim(folder.path(), link.address()).unwrap_err();
    assert!(matches!(&refused, ClaimError::Occupied { owner: Some(STRANGER), .. }), "{refused}");
    let told =
        format!("service 7471 cannot be had: at the place of its file, {}, is one of user 65534", path.display());
    assert!(refused.to_string().starts_with(&told), "{refused}");
    assert_eq!(service("7471").find(folder.path()), None, "nobody is found by it");
    let other = folder.link(1);
    let _claim = service("7472").claim(folder.path(), other.address()).unwrap();
    assert!(path.exists(), "it is not ours to remove");
}

#[test]
fn services_travel_as_bytes_and_other_bytes_are_refused() {
    for name in ["", "7471", "a service of thirty-two bytes !!"] {
        let service = service(name);
        assert_eq!(Service::from_bytes(&service.to_bytes()), Some(service));
        assert_eq!(service.is_empty(), name.is_empty());
        assert_eq!(Address::from_bytes(&service.to_bytes()), None);
    }
    assert_eq!(Service::new(b"one of thirty-three bytes, alas !"), None);
    assert_eq!(Service::new(b"a\0b"), None);
    let mut bytes = service("a").to_bytes();
    assert_eq!(Service::from_bytes(&bytes[..Service::BYTES - 1]), None);
    bytes[10] = b'c';
    assert_eq!(Service::from_bytes(&bytes), None, "something follows the end of the name");
    assert_eq!(Service::from_bytes(&Folder::new().link(1).address().to_bytes()), None);
}
