//! Where the provider, `libtidegate-fi.so`, is.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The file that libfabric loads. It only takes names that end in `-fi.so`.
pub const FILE: &str = "libtidegate-fi.so";

/// The folder that holds the provider: the one that the user has chosen, else the first of those near this executable
/// that has it.
pub fn find(chosen: Option<&Path>) -> Result<PathBuf, Failure> {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let near = match (&chosen, &executable) {
        (Some(_), _) | (None, Err(_)) => Vec::new(),
        (None, Ok(path)) => folders_near(path),
    };
    find_in(chosen, &near)
}

/// Folders where an installation or a build puts the provider, seen from the executable.
fn folders_near(executable: &Path) -> Vec<PathBuf> {
    let Some(folder) = executable.parent() else { return Vec::new() };
    let mut folders = vec![folder.to_owned()];
    if let Some(prefix) = folder.parent() {
        folders.extend(["lib", "lib/tidegate", "lib64", "lib64/tidegate"].map(|below| prefix.join(below)));
    }
    // A build tree: <root>/target/<profile>/tidegate, with the library in <root>/build/lib under the name that
    // libfabric takes.
    let target = folder.parent().filter(|target| target.file_name().is_some_and(|name| name == "target"));
    if let Some(root) = target.and_then(Path::parent) {
        folders.extend(["target/release", "target/debug", "build/lib"].map(|below| root.join(below)));
    }
    folders
}

fn find_in(chosen: Option<&Path>, near: &[PathBuf]) -> Result<PathBuf, Failure> {
    let folders = chosen.map_or(near, |_| &[]);
    let folder =
        chosen.into_iter().chain(folders.iter().map(PathBuf::as_path)).find(|folder| folder.join(FILE).is_file());
    let Some(folder) = folder else {
        return Err(Failure::own(match chosen {
            Some(chosen) => format!(
                "{FILE} is not in {}: give --provider-dir (or TIDEGATE_PROVIDER_DIR) its folder",
                chosen.display()
            ),
            None => {
                let looked: String = near.iter().map(|folder| format!("\n  {}", folder.display())).collect();
                format!(
                    "{FILE} was not found. Install it (a package, or `make install`), or name its folder with --provider-dir. Looked in{looked}"
                )
            }
        }));
    };
    let folder = std::path::absolute(folder).map_err(|error| Failure::own(format!("{}: {error}", folder.display())))?;
    if folder.as_os_str().as_encoded_bytes().contains(&b':') {
        let folder = folder.display();
        return Err(Failure::own(format!(
            "FI_PROVIDER_PATH cannot name {folder}: its name has a colon. Move {FILE} elsewhere"
        )));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn place(root: &Path, folder: &str) -> PathBuf {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(FILE), "").unwrap();
        folder
    }

    #[test]
    fn installations_and_build_trees_are_searched() {
        for (executable, library) in [
            ("usr/bin/tidegate", "usr/lib"),
            ("usr/bin/tidegate", "usr/lib/tidegate"),
            ("usr/bin/tidegate", "usr/lib64"),
            ("w/target/release/tidegate", "w/target/release"),
            ("w/target/debug/tidegate", "w/target/release"),
            ("w/target/release/tidegate", "w/build/lib"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let folder = place(root.path(), library);
            let near = folders_near(&root.path().join(executable));
            assert_eq!(find_in(None, &near).unwrap(), folder, "{executable}");
        }
    }

    #[test]
    fn the_folder_that_the_user_names_is_the_only_one_searched() {
        let root = tempfile::tempdir().unwrap();
        let near = [place(root.path(), "near")];
        let chosen = place(root.path(), "chosen");
        assert_eq!(find_in(Some(&chosen), &near).unwrap(), chosen);
        let failure = find_in(Some(root.path()), &near).unwrap_err();
        assert_eq!(failure.code, crate::failure::OWN);
        assert!(failure.to_string().contains("--provider-dir"), "{failure}");
    }

    #[test]
    fn a_missing_provider_is_reported_with_the_folders_searched_and_the_remedy() {
        let failure = find_in(None, &["/nowhere/lib".into(), "/nowhere/lib64".into()]).unwrap_err().to_string();
        for part in ["libtidegate-fi.so", "make install", "--provider-dir", "/nowhere/lib\n", "/nowhere/lib64"] {
            assert!(failure.contains(part), "{failure}");
        }
    }

    #[test]
    fn a_folder_that_the_path_variable_cannot_name_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let chosen = place(root.path(), "a:b");
        assert!(find_in(Some(&chosen), &[]).unwrap_err().to_string().contains("colon"));
    }
}
