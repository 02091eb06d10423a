//! How near the machine `extoll` comes to the times that P gives of its own.
//!
//! `cargo run --release -p tidegate-sim --example calibrate`

use tidegate_sim::calibration::Anchor;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<28} {:>12} {:>12} {:>8}", "anchor", "paper µs", "here µs", "error");
    for anchor in Anchor::ALL {
        let (paper, here) = (anchor.paper_microseconds(), anchor.measure()?);
        println!("{:<28} {paper:>12.2} {here:>12.2} {:>7.2}%", anchor.name(), 100.0 * (here / paper - 1.0));
    }
    Ok(())
}
