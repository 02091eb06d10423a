//! P table 3: memory per receiver, measured from the flow control and the mailbox that run under MPI, and what an
//! endpoint of the provider takes in all.

use tidegate_cli::check::least_receive_memory;
use tidegate_flow::{Config, FlowControl, PACKET_BYTES, SchemeName};

use super::{Known, number};
use crate::data::{BadFigure, Keys, Named, Points, ValueOf};

/// With two credit slots.
fn config(scheme: SchemeName, slots_per_peer: u32, processes: u32) -> Config {
    Config { piggyback: true, ..Config::new(scheme, processes - 1, slots_per_peer, 2) }
}

/// Bytes of one receiver: its book-keeping, which is built and counted, and its mailbox.
fn bytes(scheme: SchemeName, slots_per_peer: u32, processes: u32) -> Result<[f64; 2], BadFigure> {
    let config = config(scheme, slots_per_peer, processes);
    let control = FlowControl::new(&config).map_err(|error| error.to_string())?;
    let slots = config.regions().map_err(|error| error.to_string())?.mailbox as usize;
    Ok([control.bookkeeping_bytes() as f64, (slots * PACKET_BYTES) as f64])
}

/// Of a `scheme`, `slots_per_peer` and `processes`: `mebibytes` of a receiver, and `bookkeeping`, bytes per sender, as
/// the paper counts them; `endpoint`, the MB of the least bound of a whole endpoint.
pub(super) fn receiver(keys: &Keys) -> Known {
    let scheme = keys.get("scheme").and_then(|key| key.text.parse().ok()).ok_or("a scheme is needed")?;
    let processes = number(keys, "processes")?;
    let slots_per_peer = number(keys, "slots_per_peer")?;
    let [bookkeeping, mailbox] = bytes(scheme, slots_per_peer, processes)?;
    let least = least_receive_memory(config(scheme, slots_per_peer, processes)).map_err(|error| error.to_string())?;
    let endpoint = least as f64 / 1e6;
    let per_sender = bookkeeping / f64::from(processes - 1);
    let mebibytes = (bookkeeping + mailbox) / 1_048_576.0;
    let found = [("bookkeeping", per_sender), ("mebibytes", mebibytes), ("endpoint", endpoint)];
    Ok(found.map(|(name, value)| (name, value.to_string())).into())
}

/// How many times less `dynamic` takes than `static`, at least, among these `numbers` of processes.
pub(super) fn at_equal_overhead(points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    let needed = |scheme: SchemeName| {
        let mut of = ValueOf { computed: None, numbers: Vec::new(), ..value.clone() };
        of.numbers_of.r#where.insert("scheme".to_owned(), scheme.to_string().into());
        let found = points.value(&of)?;
        Ok::<f64, BadFigure>(found.numbers.first().copied().unwrap_or(f64::INFINITY))
    };
    let [fixed, moving] = [needed(SchemeName::Static)?, needed(SchemeName::Dynamic)?];
    if !(fixed.is_finite() && moving.is_finite()) {
        return Ok(Named { keys: Vec::new(), numbers: vec![f64::NAN] });
    }
    let mut least = f64::MAX;
    for processes in value.numbers.iter().map(|processes| *processes as u32) {
        let of_static = bytes(SchemeName::Static, fixed as u32, processes)?.iter().sum::<f64>();
        let of_dynamic = bytes(SchemeName::Dynamic, moving as u32, processes)?.iter().sum::<f64>();
        least = least.min(of_static / of_dynamic);
    }
    Ok(Named { keys: Vec::new(), numbers: vec![least] })
}
