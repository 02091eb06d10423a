//! How many elements the calls of this thread have looked at or moved, for tests. In other builds nothing is counted.

#[cfg(test)]
thread_local!(static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

#[inline(always)]
pub(crate) fn count() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps that `run` takes.
#[cfg(test)]
pub(crate) fn of(run: impl FnOnce()) -> u64 {
    let before = STEPS.with(|steps| steps.get());
    run();
    STEPS.with(|steps| steps.get()) - before
}
