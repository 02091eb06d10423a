//! The threshold: after how many retrieved packets credits go back (P §5.2, eq. 1).
//!
//! A credit packet costs no credit, so something else must bound how many of them wait in a sender's mailbox. The
//! threshold does: to reach it `credit_slots + 1` times the receiver must retrieve more packets than the quota, so the
//! sender must already have consumed one of those credit packets to be able to send that many.
//!
//! Two alternatives look as good and are not (P table 1): `quota div credit_slots + 1` may exceed the quota and is then
//! never reached; `quota div credit_slots` may be reached `credit_slots + 1` times within one quota.

/// Retrieved packets after which a receiver returns credits: `quota div (credit_slots + 1) + 1` (P eq. 1).
#[inline]
pub(crate) fn threshold(quota: u32, credit_slots: u32) -> u32 {
    quota / (credit_slots + 1) + 1
}

/// Slots per peer, credit slots included, from which on a sender of messages of `message_packets` packets no longer
/// stalls under `static`, while the receiver keeps up: it then always owns enough credits for a whole message (P eq.
/// 5).
///
/// Returns `None` without credit slots, and when the number does not fit.
pub fn slots_without_stall(message_packets: u32, credit_slots: u32) -> Option<u32> {
    let parts = u64::from(message_packets) * (u64::from(credit_slots) + 1);
    let slots = parts.checked_div(u64::from(credit_slots))? + u64::from(credit_slots);
    u32::try_from(slots).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P table 1: credit quota, credit slots, eq. 1.
    #[test]
    fn equation_1_gives_table_1() {
        let rows = [
            (100, 1, 51),
            (100, 2, 34),
            (100, 3, 26),
            (100, 4, 21),
            (100, 5, 17),
            (60, 2, 21),
            (40, 2, 14),
            (20, 2, 7),
            (10, 2, 4),
            (3, 2, 2),
        ];
        for (quota, credit_slots, expected) in rows {
            assert_eq!(threshold(quota, credit_slots), expected, "quota {quota}, credit slots {credit_slots}");
        }
    }
}
