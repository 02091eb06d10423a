use super::*;
use crate::testing::Bytes;
use tidegate_flow::SchemeName;

type Arithmetic = Memory<Bytes>;

const OTHERS: Others = Others { tables: 5000, each: 300, link: 1000 };

fn config(peers: u32, receive_memory: usize) -> EndpointConfig {
    let flow = FlowConfig::new(SchemeName::Static, peers, 8, 2);
    EndpointConfig {
        flow,
        eager_bytes: 2048,
        operations: 64,
        receive_memory,
        patience: std::time::Duration::ZERO,
        packets_per_progress: 16,
        bulk_bytes_per_progress: 1 << 16,
    }
}

fn divide(config: &EndpointConfig) -> Result<Division, EndpointError> {
    Arithmetic::divide(config, |_| OTHERS)
}

#[test]
fn what_is_fixed_all_windows_and_the_spare_part_are_the_receive_memory() {
    for peers in [1, 3, 100] {
        let least = Arithmetic::least(&config(peers, 0), OTHERS).expect("a legal configuration");
        for more in (0..400_000).step_by(997).chain([1, 1 << 20, 1 << 30]) {
            let Division { fixed, limits, sessions, spare, .. } =
                divide(&config(peers, least + more)).expect("it is enough");
            let windows = sessions.map_or(peers, |sessions| sessions - 1);
            assert_eq!(fixed + windows as usize * limits.window as usize + spare, least + more);
            assert!(limits.window as usize >= Arithmetic::ENVELOPE_BYTES, "an envelope has room");
            assert!(sessions.is_none_or(|sessions| (1..=peers).contains(&sessions)), "{sessions:?} of {peers}");
            assert_eq!(limits.must_ask, sessions.is_some());
        }
        let too_small = divide(&config(peers, least - 1)).err();
        assert_eq!(
            too_small,
            Some(EndpointError::ReceiveMemoryTooSmall { bytes: least - 1, least, peers, buffers: None })
        );
    }
}

#[test]
fn messages_of_our_own_kinds_are_as_long_as_there_is_memory_for() {
    let of = |peers, receive_memory| divide(&config(peers, receive_memory)).expect("it is enough").limits.control;
    let least = |peers| Arithmetic::least_for_all(&config(peers, 0), OTHERS).expect("a legal configuration");
    assert_eq!([64, 1024].map(|peers| of(peers, 64 << 20).bytes()), [4096, 1024]);
    assert_eq!((of(64, least(64)), of(1024, least(1024))), (ControlSize::LEAST, ControlSize::LEAST));
    let sizes: Vec<_> = (0..200).map(|step| of(1024, least(1024) + step * 1_000_000)).collect();
    assert!(sizes.is_sorted() && ControlSize::all().all(|size| sizes.contains(&size)), "{sizes:?}");
    // For each peer that may talk: its slots, the notes that it may be owed, an envelope and an answer.
    let each = (least(1024) - least(512)) / 512;
    assert!(each < 3600, "{each} bytes");
}

#[test]
fn where_there_is_not_enough_for_all_there_are_as_many_sessions_as_there_is_memory_for() {
    let of = |peers, receive_memory| {
        let division = divide(&config(peers, receive_memory)).expect("it is enough");
        (division.sessions, division.limits.window, division.limits.eager)
    };
    let [few, all] = [Arithmetic::least, Arithmetic::least_for_all].map(|least| {
        let of = |peers| least(&config(peers, 0), OTHERS).expect("a legal configuration");
        assert!((of(1024) - of(512)) / 512 < 4000);
        of(1024)
    });
    assert_eq!(of(1024, few), (Some(1), Arithmetic::ENVELOPE_BYTES as u32, 0));
    let (sessions, window, eager) = of(1024, few + 200_000);
    assert!(sessions.is_some_and(|sessions| sessions > 30) && window == FEW_WINDOW && eager > 100, "{sessions:?}");
    assert!(of(1024, all - 1).0.is_some_and(|sessions| sessions > 500) && of(1024, all).0.is_none());
}

#[test]
fn no_message_costs_more_than_a_quarter_of_a_window_or_one_envelope() {
    for window in [Arithmetic::ENVELOPE_BYTES as u32, 2000, 100_000, 1 << 30] {
        let limits = Arithmetic::limits_of(window, ControlSize::MOST, 2048);
        assert!(limits.largest <= (window / 4).max(Arithmetic::ENVELOPE_BYTES as u32));
        for payload in [limits.eager, limits.inject].into_iter().filter(|payload| *payload > 0) {
            assert!(Arithmetic::eager_cost(payload as usize) <= limits.largest, "{payload} bytes of {window}");
        }
        assert!(limits.eager <= 2048 && limits.eager <= limits.inject);
    }
}

#[test]
fn newcomers_have_small_windows_out_of_the_spare_memory_and_leave_the_others_theirs() {
    let of = |newcomers, receive_memory| {
        let mut config = config(64 + newcomers, receive_memory);
        config.flow.newcomers = newcomers;
        divide(&config).expect("it is enough")
    };
    for receive_memory in [16 << 20, 64 << 20, 1 << 30] {
        let (plain, mixed) = (of(0, receive_memory), of(256, receive_memory));
        let windows = 64 * mixed.limits.window as usize + 256 * mixed.newcomers.window as usize;
        assert_eq!(mixed.fixed + windows + mixed.spare, receive_memory);
        assert_eq!((mixed.sessions, mixed.newcomers.window), (None, FEW_WINDOW), "{receive_memory}");
        assert!(mixed.limits.window >= plain.limits.window / 100 * 95, "{:?} {:?}", mixed.limits, plain.limits);
        assert!(mixed.spare >= plain.spare / 2, "{} {}", mixed.spare, plain.spare);
        assert!(mixed.newcomers.eager > 100 && mixed.newcomers.largest >= Arithmetic::ENVELOPE_BYTES as u32);
    }
}

#[test]
fn places_are_opened_as_long_as_spare_memory_pays_and_base_windows_are_as_without_them() {
    let of = |later| {
        let mut config = config(64 + 256 + later, 64 << 20);
        config.flow = FlowConfig::new(SchemeName::Speculative, config.flow.peers, 8, 2);
        (config.flow.newcomers, config.flow.later) = (256 + later, later);
        (divide(&config).expect("it is enough"), config)
    };
    let (plain, (division, mut config)) = (of(0).0, of(10_000));
    let [before, after] = [&plain, &division].map(|division| division.limits.window);
    assert!(after <= before && before - after < before / 500, "{before} {after}");
    assert!(plain.later == 0 && division.later > 1500, "{}", division.later);
    let price = |config: &EndpointConfig, later| {
        let (fixed, windows) = Arithmetic::opening_memory(config, later, |_| OTHERS).expect("a legal configuration");
        fixed + windows
    };
    // Half of it: windows that have grown may keep the other while their senders are idle.
    let (mut spare, closed) = (division.spare / 2, 10_000 - division.later);
    while config.flow.later > closed {
        let later = config.flow.later.saturating_sub(256).max(closed);
        spare = spare.checked_sub(price(&config, later)).expect("all that were promised are paid for");
        config.flow.later = later;
    }
    assert!(price(&config, closed - 1) > spare, "and not one more");
    // Nothing is promised where newcomers are peers like all others, or take turns.
    for receive_memory in [1 << 20, 3 << 20] {
        (config.receive_memory, config.flow.later) = (receive_memory, 10_000);
        assert_eq!(divide(&config).expect("it is enough").later, 0);
    }
}

#[test]
fn with_little_memory_or_too_many_of_them_newcomers_are_peers_like_all_others() {
    for (newcomers, receive_memory) in [(256, 2 << 20), (100_000, 600 << 20), (64, 700_000)] {
        let of = |newcomers| {
            let mut config = config(64 + 256.max(newcomers), receive_memory.max(2 << 20));
            config.flow.newcomers = newcomers;
            divide(&config).map(|Division { fixed, limits, newcomers, sessions, spare, .. }| {
                (fixed, limits.told(), newcomers.told(), sessions, spare)
            })
        };
        assert!(of(newcomers).is_ok_and(|(_, limits, newcomers, ..)| limits == newcomers), "{newcomers}");
    }
}
