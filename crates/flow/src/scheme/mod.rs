//! One file per scheme.
