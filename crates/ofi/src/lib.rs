//! Provider.
