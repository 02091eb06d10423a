//! What a remote operation by message costs of the account between its origin and its target (rules Q1–Q4 in
//! `request`).

use crate::heap::block;

/// What an answer costs, result apart, in bytes. Both sides compute with it, so it is part of the protocol: a note or
/// an unfinished read must not take more.
pub(crate) const ANSWER_BYTES: usize = 96;
/// What an answer costs whose result has so many bytes.
pub(crate) const fn answer_cost(result_bytes: usize) -> u32 {
    (ANSWER_BYTES + block(result_bytes)) as u32
}

/// Whether one more request fits an account.
pub(crate) fn fits(unanswered: u32, cost: u32, account: u32) -> bool {
    unanswered == 0 || unanswered.saturating_add(cost) <= account
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_request_always_fits_and_more_as_far_as_the_account_reaches() {
        let cost = answer_cost(0);
        assert!(fits(0, answer_cost(1 << 20), 0), "the smallest window still lets one through");
        assert!(fits(cost, cost, 2 * cost) && !fits(cost, cost, 2 * cost - 1));
        assert!(!fits(u32::MAX, cost, u32::MAX - 1), "no overflow");
        assert!(answer_cost(1) > cost);
    }
}
