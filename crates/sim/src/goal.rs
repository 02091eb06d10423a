//! Reading traces in GOAL that users hand in: what the simulator understands, and no more than it can count.

use crate::Time;
use crate::workload::{RecordedOperation, Trace};

/// All ranks of a trace together compute for so many nanoseconds at most, some 106 days: the simulator counts
/// picoseconds in 64 bits, and each millisecond of work may be interrupted.
pub const WORK_MOST: u64 = u64::MAX / 2000;
/// The longest message, 1 TiB: longer ones fit no memory, and each packet is simulated.
const BYTES_MOST: u64 = 1 << 40;

/// Reads a trace.
///
/// # Errors
/// If it is none, or has longer work or messages than can be replayed.
pub fn parse(text: &str) -> Result<Trace, String> {
    check_numbers(text)?;
    let trace = Trace::parse(text).map_err(|error| error.to_string())?;
    let work = work(&trace);
    if work > WORK_MOST.into() {
        return Err(format!(
            "its ranks compute for {} together, more than the {} that can be replayed",
            days(work),
            days(WORK_MOST.into())
        ));
    }
    Ok(trace)
}

/// How long all ranks compute together, in nanoseconds.
pub fn work(trace: &Trace) -> u128 {
    let all = (0..trace.size()).flat_map(|rank| trace.operations(rank));
    let spans = all.map(|operation| match operation.deed {
        RecordedOperation::Compute(Time(picoseconds)) => u128::from(picoseconds),
        RecordedOperation::Send { .. } | RecordedOperation::Receive { .. } => 0,
    });
    spans.sum::<u128>() / 1000
}

/// Refuses single numbers that are too large, before they are turned into times.
fn check_numbers(text: &str) -> Result<(), String> {
    for (line, number) in text.lines().zip(1..) {
        let words = line.split("//").next().unwrap_or_default().split_ascii_whitespace();
        let mut words = words.skip_while(|word| !matches!(*word, "calc" | "send" | "recv"));
        let (Some(kind), Some(amount)) = (words.next(), words.next()) else { continue };
        let amount: Option<u128> = amount.trim_end_matches('b').parse().ok();
        match (kind, amount) {
            ("calc", Some(span)) if span > WORK_MOST.into() => {
                return Err(format!(
                    "line {number}: a calc of {span} ns is more than the {} that can be replayed",
                    days(WORK_MOST.into())
                ));
            }
            ("send" | "recv", Some(bytes)) if bytes > BYTES_MOST.into() => {
                return Err(format!("line {number}: {bytes} bytes are more than the 1 TiB that a message may have"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn days(nanoseconds: u128) -> String {
    format!("{} days", nanoseconds / (86_400 * 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(first: &str, second: &str) -> Option<String> {
        parse(&format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n")).err()
    }

    #[test]
    fn work_that_no_clock_counts_is_refused_with_its_line() {
        for span in [u64::MAX, u64::MAX - 1, u64::MAX / 1000 + 1, WORK_MOST + 1] {
            let why = refusal(&format!("calc {span}"), "calc 1").expect("it is too long");
            assert!(why.starts_with(&format!("line 3: a calc of {span} ns")) && why.contains("106 days"), "{why}");
        }
        let why = refusal("calc 1", "a: calc 99999999999999999999999").expect("it is too long");
        assert!(why.starts_with("line 6: a calc of "), "{why}");
        assert_eq!(refusal(&format!("calc {WORK_MOST}"), "calc 0 // calc 18446744073709551615"), None);
    }

    #[test]
    fn what_all_ranks_compute_together_is_bounded_too() {
        let half = format!("calc {}", WORK_MOST / 2 + 1);
        let why = refusal(&half, &half).expect("together it is too long");
        assert!(why.starts_with("its ranks compute for 106 days together"), "{why}");
        assert_eq!(refusal(&half, "calc 5"), None);
    }

    #[test]
    fn messages_that_no_memory_holds_are_refused_with_their_line() {
        let why = refusal("send 18446744073709551615b to 1 tag 7", "").expect("it is too long");
        assert!(why.starts_with("line 3: 18446744073709551615 bytes"), "{why}");
        let why = refusal("", "recv 1099511627777b from 0").expect("it is too long");
        assert!(why.starts_with("line 6: ") && why.contains("1 TiB"), "{why}");
    }
}
