//! `tidegate counters`.

use crate::arguments::CountersArguments;
use crate::failure::Failure;
use crate::report::{json, table};

/// Lists the counters.
pub fn counters(arguments: &CountersArguments) -> Result<u8, Failure> {
    if arguments.json {
        super::print_json(&json::counters())?;
    } else {
        super::print(table::counters().as_bytes())?;
    }
    Ok(0)
}
