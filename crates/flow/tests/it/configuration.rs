//! What configurations are legal (P eq. 2), how the mailbox divides, and what a refusal says.

use SchemeName::{Dynamic, None, Static};
use tidegate_flow::{
    BUFFER_BYTES_MOST, BUFFER_PACKETS_MOST, Buffers, Config, FlowControl, MAILBOX_SLOTS_MAX, PEERS_MAX, Regions,
    SchemeName,
};

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
fn peers_that_are_not_expected_have_the_least_of_the_mailbox() {
    let of = |scheme| Config { expected_peers: Some(3), ..config(scheme, 10, 64, 2) }.regions();
    let (mailbox, credit) = (3 * 64 + 7 * 4, 20);
    assert_eq!(of(Dynamic), Ok(Regions { mailbox, data: mailbox - credit, credit, quota: 62 }));
    assert_eq!(of(None), Ok(Regions { mailbox, data: mailbox, credit: 0, quota: 64 }), "equal memory");
    assert_eq!(of(Static), config(Static, 10, 64, 2).regions(), "a share is for good");
    let all = Config { expected_peers: Some(11), ..config(Dynamic, 10, 64, 2) };
    assert_eq!(all.regions(), config(Dynamic, 10, 64, 2).regions());
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
    assert_eq!(
        error,
        "\"Static\" is not a scheme: choose one of none, static, dynamic, rnr, preposted, growing, shared_window, speculative"
    );
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

/// What the text says of a number of posted buffers that makes no sense.
fn buffer_refusal(scheme: SchemeName, change: impl FnOnce(&mut Buffers)) -> String {
    let mut config = Config::new(scheme, 3, 1, 0);
    change(&mut config.buffers);
    refusal(config)
}

#[test]
fn schemes_with_posted_buffers_need_no_other_option() {
    for &scheme in SchemeName::WITH_BUFFERS {
        let regions = Config::new(scheme, 3, 0, 0).regions().unwrap();
        let buffers = if scheme == SchemeName::SharedWindow { 2 * 4096 + 1 } else { 3 * 100 };
        assert_eq!(regions.mailbox, buffers * 37, "{scheme}: 2 KiB and a header of 16 bytes are 37 packets");
        assert_eq!((regions.data, regions.credit), (regions.mailbox, 0));
        assert_eq!(Config::new(scheme, 3, 0, 0).regions_with_data(1), Ok(regions));
        assert_eq!(Config::new(scheme, 0, 0, 0).regions().unwrap().mailbox, 0);
    }
    assert_eq!(Buffers::packets_of(2048), 37);
}

#[test]
fn a_pool_of_slots_has_as_many_whoever_there_is() {
    for &scheme in SchemeName::WITH_A_POOL {
        for peers in [1, 3, 1 << 18] {
            let regions = Config::new(scheme, peers, 0, 0).regions().unwrap();
            assert_eq!((regions.mailbox, regions.data, regions.credit), (4096, 4096, 0));
        }
        assert_eq!(Config::new(scheme, 0, 0, 0).regions().unwrap().mailbox, 0);
        let text = buffer_refusal(scheme, |of| of.pool_slots = 0);
        assert_eq!(text, "pool_slots=0 is not allowed: choose from 1 to 1073741824");
        let text = buffer_refusal(scheme, |of| of.packets = 2);
        assert_eq!(text, "packets=2 is not allowed: choose from 1 to 1");
    }
}

#[test]
fn the_longest_message_of_a_buffer_is_what_a_user_can_ask_for() {
    assert_eq!((Buffers::packets_of(1), Buffers::packets_of(40), Buffers::packets_of(41)), (1, 1, 2));
    for packets in 1..=BUFFER_PACKETS_MOST {
        let bytes = Buffers::message_bytes(packets);
        assert!(bytes <= BUFFER_BYTES_MOST, "{packets} packets are said to hold {bytes} bytes");
        assert_eq!(Buffers::packets_of(bytes), packets, "of {bytes} bytes");
    }
    assert_eq!(Buffers::message_bytes(BUFFER_PACKETS_MOST), BUFFER_BYTES_MOST);
}

#[test]
fn numbers_of_buffers_that_make_no_sense_are_refused_with_what_is_allowed() {
    use SchemeName::{Growing, Preposted, Rnr, SharedWindow};
    let micros = std::time::Duration::from_micros;
    let texts = [
        buffer_refusal(Rnr, |of| of.per_connection = 0),
        buffer_refusal(Rnr, |of| of.packets = 0),
        buffer_refusal(Preposted, |of| of.credit_threshold = 0),
        buffer_refusal(Rnr, |of| of.retry_timer = micros(9)),
        buffer_refusal(Rnr, |of| of.retry_timer = micros(655_361)),
        buffer_refusal(Growing, |of| (of.per_connection, of.per_connection_most) = (10, 9)),
        buffer_refusal(Growing, |of| of.quiet_after = Some(micros(0))),
        buffer_refusal(SharedWindow, |of| of.pool_first = 4097),
        buffer_refusal(SharedWindow, |of| of.pool_first = 0),
        buffer_refusal(SharedWindow, |of| (of.pool_most, of.packets) = (1 << 19, 1171)),
    ];
    let expected = [
        "per_connection=0 is not allowed: choose from 1 to 1048576",
        "packets=0 is not allowed: choose from 1 to 1171",
        "credit_threshold=0 is not allowed: choose from 1 to 1048576",
        "retry_timer=9 µs is not allowed: choose from 10 µs to 655360 µs",
        "retry_timer=655361 µs is not allowed: choose from 10 µs to 655360 µs",
        "per_connection_most=9 is not allowed: choose from 10 to 32767",
        "quiet_after=0 µs is not allowed: at least 1 µs is needed",
        "pool_first=4097 is not allowed: choose from 1 to 4096",
        "pool_first=0 is not allowed: choose from 1 to 4096",
        "pool_most: 1048577 buffers of 1171 packets are too many: with so many peers an endpoint may have at most 916944",
    ];
    assert_eq!(texts.each_ref().map(String::as_str), expected);
}

#[test]
fn every_scheme_but_those_for_tests_is_offered() {
    for &scheme in SchemeName::ALL {
        let is_offered = scheme != SchemeName::RefuseThird;
        assert_eq!(SchemeName::OFFERED.contains(&scheme), is_offered, "{scheme}");
        assert_eq!(SchemeName::CHOICES.contains(scheme.name()), is_offered, "{scheme}");
        let groups = [SchemeName::WITH_BUFFERS, SchemeName::WITHOUT_BUFFERS, SchemeName::WITH_A_POOL];
        assert_eq!(groups.iter().filter(|group| group.contains(&scheme)).count(), 1, "{scheme}");
        assert_eq!(SchemeName::ALL.get(scheme as usize), Some(&scheme), "the number of a scheme is its place");
    }
}
