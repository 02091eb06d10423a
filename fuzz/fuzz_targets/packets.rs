//! Arbitrary packets of a hostile peer between the honest operations of an endpoint. The same body runs over a seeded corpus
//! in `crates/message/tests/it/endpoint/hostile.rs`.

#![no_main]

#[path = "../../crates/message/tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::fuzz_packets(bytes));
