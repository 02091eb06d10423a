//! [`WaitCause`] as a number in a page. The message layer names the causes.

pub use tidegate_message::WaitCause;

/// The number of a cause in a page; 0 stands for none.
pub(super) fn number_of(cause: Option<WaitCause>) -> u64 {
    cause.map_or(0, |cause| cause as u64 + 1)
}

/// Back from the number.
pub(super) fn cause_of(number: u64) -> Option<WaitCause> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    WaitCause::ALL.get(index).copied()
}
