//! Hashes the code that decides what a run of a figure gives: that of the simulator, and of `src/run`.

use std::io;

#[path = "../crates/sim/fingerprint.rs"]
mod fingerprint;

fn main() -> io::Result<()> {
    let simulator = ["../crates/bulk/src", "../crates/flow/src", "../crates/message/src", "../crates/sim/src"];
    let code = fingerprint::of(&[&simulator[..], &["src/run"]].concat())?;
    println!("cargo:rustc-env=TIDEGATE_PAPERS_CODE={code}");
    Ok(())
}
