//! Endpoints that close with messages that have not left, and what their peers still get. C programs, as in
//! `programs.rs`.

use crate::toolbox::{have_libfabric, output_of, run, run_apart, segments_of, text};

#[test]
fn closing_delivers_what_somebody_receives_and_waits_for_nobody_else() {
    for scheme in ["none", "static", "dynamic"] {
        run("closing unlimited", &[("FI_TIDEGATE_CLOSE_TIMEOUT", "80000"), ("FI_TIDEGATE_SCHEME", scheme)]);
    }
}

// fi_tidegate(7): "How long closing an endpoint waits until living peers have taken what was sent to them, from 0 to
// 86400; what they have not taken by then is lost, and reported."
#[test]
fn closing_ends_though_a_receiver_is_stopped_and_says_what_is_lost() {
    if !have_libfabric() {
        return;
    }
    let output = output_of("closing stopped", &[("FI_TIDEGATE_CLOSE_TIMEOUT", "1")]);
    let text = text(&output);
    assert!(output.status.success() && segments_of(&output).is_empty(), "{text}");
    assert!(text.contains("messages that it had sent: their receivers had not taken them"), "{text}");
    assert!(text.contains("FI_TIDEGATE_CLOSE_TIMEOUT=1 s"), "{text}");
}

#[test]
fn closing_says_every_ten_seconds_that_it_waits() {
    if !have_libfabric() {
        return;
    }
    let output = output_of("closing complaint", &[("FI_TIDEGATE_CLOSE_TIMEOUT", "11")]);
    assert!(output.status.success(), "{}", text(&output));
    let said = text(&output);
    assert_eq!(
        (said.matches(" waits with closing for up to ").count(), said.matches(" has lost ").count()),
        (1, 1),
        "{said}"
    );
    let receiver = said.lines().rfind(|line| line.starts_with("pid ")).expect("the harness shows its processes");
    assert!(said.contains(&format!("because not all its messages have been taken by {receiver}. ")), "{said}");
}

#[test]
fn closing_waits_two_seconds_for_another_host_that_stands_still_after_it_has_taken_everything() {
    run_apart("closing goodbye", &[]);
}

#[test]
fn what_an_endpoint_has_sent_outlives_it_and_receives_that_name_it_stay() {
    run("leaving", &[("FI_TIDEGATE_CLOSE_TIMEOUT", "80000")]);
}
