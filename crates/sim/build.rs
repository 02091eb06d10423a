//! Hashes the code that decides what a simulated run gives (`src/kept.rs` says why).

use std::io;

mod fingerprint;

fn main() -> io::Result<()> {
    let code = fingerprint::of(&["../bulk/src", "../flow/src", "../message/src", "src"])?;
    println!("cargo:rustc-env=TIDEGATE_SIM_CODE={code}");
    Ok(())
}
