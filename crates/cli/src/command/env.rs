//! `tidegate env`.

use tidegate_link::log::print_line;

use crate::arguments::EnvArguments;
use crate::command::Prepared;
use crate::failure::Failure;
use crate::launcher::look_up;
use crate::quote::quote;
use crate::report::json;
use crate::settings::Setting;
use crate::suggestion;

/// Prints the settings.
pub fn env(arguments: &EnvArguments) -> Result<u8, Failure> {
    if let Some(program) = arguments.command.first()
        && look_up(program, std::env::var_os("PATH").as_deref()).is_none()
    {
        return Err(Failure::not_found(program, &suggestion::of_program(program)));
    }
    let prepared = Prepared::new(&arguments.tuning, &arguments.command, None)?;
    if !arguments.command.is_empty() && prepared.mpi.is_none() {
        let command = arguments.command.join(" ".as_ref());
        print_line(&format!(
            "the MPI of `{}` was not recognised, so these are the settings for all MPIs; --mpi names one",
            command.display()
        ));
    }
    if let Some(permission) = prepared.permission() {
        print_line(permission);
    }
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
