//! What configurations are legal (P eq. 2), how the mailbox divides, and what a refusal says.

use SchemeName::{Dynamic, None, Static};
use tidegate_flow::{Config, FlowControl, MAILBOX_SLOTS_MAX, PEERS_MAX, Regions, SchemeName};

fn config(scheme: SchemeName, peers: u32, slots_per_peer: u32, credit_slots: u32) -> Config {
    Config { piggyback: true, ..Config::new(scheme, peers, slots_per_peer, credit_slots) }
}

/// The text of the refusal.
fn refusal(config: Config) -> String {
    let error = config.regions().unwrap_err();
    assert_eq!(FlowControl::new(&config).unwrap_err(), error);
    error.to_string()
}

#[test]
fn the_mailbox_divides_into_data_and_credit_region() {
    let expected = Regions { mailbox: 640, data: 620, credit: 20, quota: 62 };
    assert_eq!(config(Static, 10, 64, 2).regions(), Ok(expected));
    assert_eq!(config(Dynamic, 10, 64, 2).regions(), Ok(expected));
}

#[test]
fn without_flow_control_every_slot_is_for_data() {
    let expected = Regions { mailbox: 640, data: 640, credit: 0, quota: 64 };
    assert_eq!(config(None, 10, 64, 2).regions(), Ok(expected));
    assert_eq!(config(None, 10, 64, 0).regions(), Ok(expected));
    assert!(config(None, 10, 1, 2).regions().is_ok());
}

#[test]
fn the_data_region_may_be_as_small_as_the_credit_region() {
    for scheme in [Static, Dynamic] {
        for credit_slots in 1..5 {
            assert!(config(scheme, 3, 2 * credit_slots, credit_slots).regions().is_ok());
            let text = refusal(config(scheme, 3, 2 * credit_slots - 1, credit_slots));
            let least = 2 * credit_slots;
            assert!(text.starts_with(&format!("slots_per_peer={} is too few", least - 1)), "{text}");
            assert!(text.contains(&format!("credit_slots={credit_slots} at least {least} per peer")), "{text}");
        }
    }
}

#[test]
fn credit_slots_are_needed() {
    for scheme in [Static, Dynamic] {
        let text = refusal(config(scheme, 3, 64, 0));
        assert!(text.starts_with("credit_slots=0 is too few: at least 1 "), "{text}");
    }
    assert_eq!(refusal(config(None, 3, 0, 0)), "slots_per_peer=0 is too few: at least 1 per peer is needed");
}

#[test]
fn sizes_cannot_overflow() {
    let text = refusal(config(Dynamic, PEERS_MAX + 1, 64, 2));
    assert_eq!(text, "peers=1048576 is too many: at most 1048575 peers are allowed");
    assert!(config(Dynamic, PEERS_MAX, 1024, 2).regions().is_ok());
    let text = refusal(config(Dynamic, PEERS_MAX, 1025, 2));
    assert!(text.starts_with("slots_per_peer=1025 is too many: with 1048575 peers"), "{text}");
    assert!(text.ends_with("at most 1024 per peer are allowed"), "{text}");
    assert!(refusal(config(Static, u32::MAX, u32::MAX, u32::MAX)).contains("peers"));
    assert!(refusal(config(Static, 1, u32::MAX, u32::MAX)).contains("at least 8589934590 per peer"));
    assert!(config(Static, 1, MAILBOX_SLOTS_MAX, 1).regions().is_ok());
}

#[test]
fn a_job_of_one_process_has_no_peers() {
    for &scheme in SchemeName::ALL {
        let config = config(scheme, 0, 64, 2);
        assert_eq!(config.regions().unwrap().mailbox, 0);
        assert!(FlowControl::new(&config).unwrap().poll_control().is_none());
    }
}

#[test]
fn a_data_region_need_not_divide_evenly() {
    let config = config(Dynamic, 3, 4, 2);
    assert_eq!(config.regions_with_data(11), Ok(Regions { mailbox: 17, data: 11, credit: 6, quota: 3 }));
    let intended = FlowControl::with_data_region(&config, 11).unwrap().inspect().peers;
    assert_eq!(intended.iter().map(|peer| peer.intended_quota).collect::<Vec<_>>(), [4, 4, 3]);
    assert_eq!(FlowControl::with_data_region(&config, 6), FlowControl::new(&config));
    let text = config.regions_with_data(5).unwrap_err().to_string();
    assert_eq!(text, "a data region of 5 slots is too small: the credit region alone has 6");
    assert!(config.regions_with_data(u32::MAX).is_err());
}

#[test]
fn scheme_names_read_as_they_are_written() {
    for &scheme in SchemeName::ALL {
        assert_eq!(scheme.to_string().parse(), Ok(scheme));
    }
    let error = "Static".parse::<SchemeName>().unwrap_err().to_string();
    assert_eq!(error, "\"Static\" is not a scheme: choose one of none, static, dynamic");
}

/// The memory of book-keeping if all peers talk, in bytes per peer, at the default of two credit slots.
#[test]
fn bookkeeping_is_small() {
    let per_peer = |scheme| {
        let bytes = |peers| FlowControl::new(&config(scheme, peers, 64, 2)).unwrap().bookkeeping_bytes();
        ((bytes(1001) - bytes(1)) as f64 / 1000.0).round()
    };
    assert_eq!([None, Static, Dynamic].map(per_peer), [0.0, 27.0, 85.0]);
}
