//! Parts of manual pages that are made from the definition of a command. Other crates' tests use this file, too.

use std::fmt::Write;

use clap::{Arg, Command};

/// Text as roff shows it unchanged: hyphens that can be copied, no accidental requests.
pub fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let text = text.replace('`', "").replace('²', "\\[S2]").replace('µ', "\\[mc]");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// One `.TP` item per option of a command, but for those that are left out.
pub fn options(command: &Command, is_left_out: impl Fn(&Arg) -> bool) -> String {
    let listed = |argument: &&Arg| {
        !argument.is_positional()
            && argument.get_id() != "help"
            && argument.get_id() != "version"
            && !argument.is_hide_set()
            && !is_left_out(argument)
    };
    let mut text = String::new();
    for argument in command.get_arguments().filter(listed) {
        let short = argument.get_short().map(|short| format!("\\fB\\-{short}\\fR, ")).unwrap_or_default();
        let long = roff(&format!("--{}", argument.get_long().unwrap()));
        let values: Vec<_> = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
        let takes = argument.get_action().takes_values();
        let names = argument.get_value_names().unwrap_or_default();
        let value = if !takes {
            String::new()
        } else if argument.is_hide_possible_values_set() || values.is_empty() {
            let names = roff(&names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "));
            if argument.is_require_equals_set() { format!("[=\\fI{names}\\fR]") } else { format!(" \\fI{names}\\fR") }
        } else {
            format!(" \\fI{}\\fR", roff(&values.iter().map(|value| value.get_name()).collect::<Vec<_>>().join("|")))
        };
        let _ =
            writeln!(text, ".TP\n{short}\\fB{long}\\fR{value}\n{}.", roff(&argument.get_help().unwrap().to_string()));
        for value in values.iter().filter(|value| takes && value.get_help().is_some()) {
            let _ =
                writeln!(text, ".br\n\\fB{}\\fR: {}.", value.get_name(), roff(&value.get_help().unwrap().to_string()));
        }
        if let Some(default) = argument.get_default_values().first().filter(|_| takes) {
            let _ = writeln!(text, "Default: \\fB{}\\fR.", default.display());
        }
        if let Some(variable) = argument.get_env() {
            let _ = writeln!(text, "Environment: \\fB{}\\fR.", variable.display());
        }
    }
    text
}

/// `text` with what stands between the marks of `part` replaced.
pub fn with_part(text: &str, part: &str, content: &str) -> String {
    let (begin, end) = (format!(".\\\" begin {part}\n"), format!(".\\\" end {part}\n"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("the page lacks the mark {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the page lacks the mark {end}"));
    [before, &begin, content, &end, after].concat()
}
