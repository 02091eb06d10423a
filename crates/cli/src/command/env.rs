//! `tidegate env`.

use crate::arguments::EnvArguments;
use crate::command::Prepared;
use crate::failure::Failure;
use crate::quote::quote;
use crate::report::json;
use crate::settings::Setting;

/// Prints the settings.
pub fn env(arguments: &EnvArguments) -> Result<u8, Failure> {
    let prepared = Prepared::new(&arguments.tuning, &arguments.command)?;
    if arguments.json {
        super::print_json(&json::env(prepared.mpi.as_ref(), &prepared.settings))?;
    } else {
        super::print(&export_lines(&prepared.settings, arguments.explain))?;
    }
    Ok(0)
}

fn export_lines(settings: &[Setting], explain: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for setting in settings {
        if explain {
            lines.extend(format!("# {}\n", setting.why).bytes());
        }
        lines.extend(format!("export {}=", setting.name).bytes());
        lines.extend(quote(&setting.value));
        lines.push(b'\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_quoted_and_explained_on_request() {
        let settings = [
            Setting { name: "FI_PROVIDER", value: "tidegate".into(), why: "Because." },
            Setting { name: "FI_PROVIDER_PATH", value: "/my libs".into(), why: "Where." },
        ];
        assert_eq!(
            export_lines(&settings, false),
            b"export FI_PROVIDER=tidegate\nexport FI_PROVIDER_PATH='/my libs'\n"
        );
        let explained = b"# Because.\nexport FI_PROVIDER=tidegate\n# Where.\nexport FI_PROVIDER_PATH='/my libs'\n";
        assert_eq!(export_lines(&settings, true), explained);
    }
}
