//! Arbitrary texts as traces in GOAL: each is refused with its place, or is one, whose operations wait for others of
//! their rank alone, and none for itself. A text behind a `+` is that of a rank.

#![no_main]

use tidegate_sim::goal;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let whole = match text.strip_prefix('+') {
        Some(lines) => format!("num_ranks 2\nrank 0 {{\n{lines}\n}}\nrank 1 {{\n}}\n"),
        None => text.to_owned(),
    };
    match goal::parse(&whole) {
        Err(why) => assert!(!why.is_empty() && why.len() < 1000, "{why}"),
        Ok(trace) => {
            let lines = whole.lines().count();
            for rank in 0..trace.size() {
                let operations = trace.operations(rank);
                for (at, operation) in operations.iter().enumerate() {
                    assert!((1..=lines).contains(&operation.line));
                    let mut needed = operation.after_begin.iter().chain(&operation.after_end);
                    assert!(needed.all(|&needed| needed < operations.len() && needed != at));
                }
            }
        }
    }
});
