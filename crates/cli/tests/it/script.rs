//! Scripts that tests write and run.

use std::path::Path;
use std::process::Command;

/// Writes an executable shell script.
///
/// A child writes it, and not this process. A file that this process has open for writing is inherited by every child
/// that another test's thread starts at that moment; until such a child has executed its own program, the kernel
/// refuses to execute the script (ETXTBSY), although it was closed here long before.
pub fn write_script(path: &Path, text: &str) {
    let write = "printf '#!/bin/sh\n%s\n' \"$2\" > \"$1\" && chmod 755 \"$1\"";
    assert!(Command::new("sh").args(["-c", write, "sh"]).arg(path).arg(text).status().unwrap().success());
}
