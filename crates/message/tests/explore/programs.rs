//! The programs.

use crate::layout::{Layout, Op, Op::*, Window};
use crate::search::explore;
use tidegate_message::flow::SchemeName;

fn send(to: usize, tag: u64, size: usize) -> Op {
    Send { to, tag, size }
}

fn receive(from: usize, tag: u64) -> Op {
    Receive { from: Some(from), tag: Some(tag) }
}

const WINDOWS: [Window; 4] = [Window::Envelopes(1), Window::Envelopes(2), Window::Payload, Window::Plenty];

#[test]
fn reverse_tag_order() {
    for size in [0, 20, 100, 200] {
        for scheme in [SchemeName::None, SchemeName::Static, SchemeName::Dynamic] {
            for window in WINDOWS {
            let programs: [&[Op]; 2] = [
                &[send(1, 1, size), send(1, 2, size), send(1, 3, size)],
                &[receive(0, 3), receive(0, 2), receive(0, 1)],
            ];
            eprint!("{scheme:?} {size} {window:?}: ");
            explore(&Layout { scheme, window, direct: true, ..Layout::new(&programs) });
            }
        }
    }
}
