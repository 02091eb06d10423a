//! [`Work`]: whether something was begun, here or elsewhere in the endpoint, that may be left to do when the call is
//! over. Who begins such a thing says so, and it is looked for only then: mostly nothing is left.

use std::fmt;

/// See the module.
#[derive(Default)]
pub(crate) struct Work(bool);

/// Not shown: it would tell apart states of an endpoint that are the same.
impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Work {
    /// Something begins.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.0 = true;
    }

    /// Whether something has begun since nothing was left.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.0
    }

    /// Nothing is left.
    pub(crate) fn end(&mut self) {
        self.0 = false;
    }
}
