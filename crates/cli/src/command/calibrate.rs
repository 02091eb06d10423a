//! `tidegate calibrate`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tidegate_link::log::print_line;

use crate::arguments::CalibrateArguments;
use crate::calibrate::{
    Alone, Costs, Effort, Exchange, Origin, Pair, Residual, Spread, Trouble, answer, doubt, fit, machine_file,
    residuals,
};
use crate::failure::Failure;

/// Version of the JSON.
pub const CALIBRATE_SCHEMA: &str = "tidegate-calibrate/1";

/// Bytes of the messages of bursts, and their packets: 16 bytes of header, 56 in a packet.
const BURSTS: [(usize, u32); 6] = [(0, 1), (40, 1), (200, 4), (544, 10), (1104, 20), (2048, 37)];

/// Measures this machine, or answers another process that does.
pub fn calibrate(arguments: &CalibrateArguments) -> Result<u8, Failure> {
    let failed = |trouble: Trouble| Failure::own(format!("cannot measure: {trouble}"));
    let folder = arguments.folder.as_deref().unwrap_or(Path::new(tidegate_link::DIRECTORY));
    if let Some(address) = &arguments.answer {
        answer(address, folder.to_owned(), arguments.processor as usize).map_err(failed)?;
        return Ok(0);
    }
    arguments.output.as_deref().map_or(Ok(()), |file| super::check_output("--output", file))?;
    let effort = if arguments.quick { Effort::QUICK } else { Effort::USUAL };
    let mut pair = Pair::start(folder, effort).map_err(failed)?;
    let mut bursts = Vec::new();
    for (bytes, packets) in BURSTS {
        bursts.push((bytes, packets, pair.burst(bytes).map_err(failed)?));
    }
    let poll = pair.poll().map_err(failed)?;
    let mut exchanges = Vec::new();
    for exchange in Exchange::ALL {
        exchanges.push((exchange, pair.exchange(exchange).map_err(failed)?));
    }
    let alone = Alone::measure(folder, effort).map_err(failed)?;
    let has_two_processors = pair.has_two_processors;
    drop(pair);
    let costs = fit(&bursts, &poll, &exchanges, &alone);
    let origin = Origin { host: host(), processor: processor(), date: date(), has_two_processors };
    let text = machine_file(&origin, &costs, &exchanges, &[]);
    let compared = residuals(&text, &exchanges).map_err(|why| Failure::own(format!("the machine file: {why}")))?;
    let text = machine_file(&origin, &costs, &exchanges, &compared);
    match (&arguments.output, arguments.json) {
        (Some(file), _) if !super::is_standard_output(file) => {
            super::write_file(file, &text)?;
            compared.iter().for_each(|residual| print_line(&residual.to_string()));
            print_line(&format!("wrote {}", file.display()));
        }
        (Some(_), true) => return Err(Failure::usage("--json and -o - both write to standard output: name a file")),
        (None, true) => {}
        _ => super::print(text.as_bytes())?,
    }
    let doubt = doubt(&compared);
    if let Some(doubt) = &doubt {
        print_line(doubt);
    }
    if arguments.json {
        super::print_json(&as_json(&origin, &costs, &exchanges, &compared, doubt.as_deref()))?;
    }
    Ok(0)
}

fn as_json(
    origin: &Origin,
    costs: &Costs,
    measured: &[(Exchange, Vec<f64>)],
    compared: &[Residual],
    doubt: Option<&str>,
) -> Value {
    let exchanges: Vec<Value> = compared
        .iter()
        .zip(measured)
        .map(|(residual, (exchange, times))| {
            let Spread { low, median, high } = Spread::of(times);
            json!({
                "exchange": exchange.name(),
                "measured_ns": median,
                "quartiles_ns": [low, high],
                "simulated_ns": residual.simulated,
                "error": residual.error(),
            })
        })
        .collect();
    json!({
        "schema": CALIBRATE_SCHEMA,
        "host": origin.host,
        "processor": origin.processor,
        "date": origin.date,
        "has_two_processors": origin.has_two_processors,
        "costs_ns": {
            "send_call": costs.send.once,
            "send_packet": costs.send.each,
            "receive_call": costs.receive_call.median,
            "retrieve_packet": costs.take.each,
            "complete_message": costs.take.once,
            "poll": costs.poll.median,
            "latency": costs.latency,
            "bulk_call": costs.bulk_call,
            "credit_take": costs.credit,
            "credit_count": costs.credit,
            "credit_packet": costs.credit_packet,
            "dynamic_packet": costs.dynamic_packet,
        },
        "bandwidths_gb_per_s": {
            "bulk": costs.bulk_bandwidth,
            "copy": costs.copy_bandwidth,
            "combine": costs.combine_bandwidth,
        },
        "exchanges": exchanges,
        "doubt": doubt,
    })
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "this host".to_owned() } else { name.trim().to_owned() }
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name));
    model.map_or_else(|| "a processor without a name".to_owned(), |name| name.trim().to_owned())
}

/// The standard library has no calendar.
fn date() -> String {
    let said = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output();
    let text = said.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    if text.trim().is_empty() { "an unknown day".to_owned() } else { text.trim().to_owned() }
}
