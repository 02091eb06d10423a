//! The container around this process, and how `/dev/shm` is enlarged there: each has its own words for it.

use std::path::Path;

/// A kind of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// Apptainer or Singularity: it has the host's `/dev/shm`.
    Apptainer,
}

impl Container {
    /// The container around this process, if its maker has left a sign.
    pub fn around() -> Option<Container> {
        Container::by(Path::new("/"), |name| std::env::var_os(name).is_some())
    }

    /// The same, by the files below `root` and by the variables that are set.
    fn by(root: &Path, is_set: impl Fn(&str) -> bool) -> Option<Container> {
        let is_there = |file: &str| root.join(file).exists();
        match () {
            () if is_set("APPTAINER_CONTAINER") || is_set("SINGULARITY_CONTAINER") => Some(Container::Apptainer),
            () if is_set("KUBERNETES_SERVICE_HOST") => Some(Container::Kubernetes),
            () if is_there("run/.containerenv") => Some(Container::Podman),
            () => is_there(".dockerenv").then_some(Container::Docker),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Container::Docker => "Docker",
            Container::Podman => "Podman",
            Container::Kubernetes => "Kubernetes",
            Container::Apptainer => "Apptainer",
        }
    }
}

/// `enlarge`, the folder, and how that is done in such a container or without one.
pub(crate) fn enlarge(place: &Path, container: Option<Container>) -> String {
    let place = place.display();
    let how = match container {
        Some(Container::Docker) => "docker run --shm-size=SIZE".into(),
        Some(Container::Podman) => "podman run --shm-size=SIZE".into(),
        Some(Container::Kubernetes) => format!("an emptyDir with medium: Memory at {place}"),
        Some(Container::Apptainer) | None => format!("mount -o remount,size=SIZE {place}"),
    };
    format!("enlarge {place} ({how})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn makers_of_containers_are_known_by_their_signs() {
        let root = std::env::temp_dir().join(format!("tidegate-container-{}", std::process::id()));
        fs::create_dir_all(root.join("run")).unwrap();
        assert_eq!(Container::by(&root, |_| false), None);
        for (file, container) in [(".dockerenv", Container::Docker), ("run/.containerenv", Container::Podman)] {
            fs::write(root.join(file), "").unwrap();
            assert_eq!(Container::by(&root, |_| false), Some(container));
        }
        for (variable, container) in [
            ("KUBERNETES_SERVICE_HOST", Container::Kubernetes),
            ("APPTAINER_CONTAINER", Container::Apptainer),
            ("SINGULARITY_CONTAINER", Container::Apptainer),
        ] {
            assert_eq!(Container::by(&root, |name| name == variable), Some(container));
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_is_enlarged_in_the_words_of_the_container() {
        let said = |container| enlarge(Path::new("/dev/shm"), container);
        assert_eq!(said(None), "enlarge /dev/shm (mount -o remount,size=SIZE /dev/shm)");
        assert_eq!(said(Some(Container::Apptainer)), said(None));
        assert_eq!(said(Some(Container::Docker)), "enlarge /dev/shm (docker run --shm-size=SIZE)");
        assert_eq!(said(Some(Container::Podman)), "enlarge /dev/shm (podman run --shm-size=SIZE)");
        assert_eq!(said(Some(Container::Kubernetes)), "enlarge /dev/shm (an emptyDir with medium: Memory at /dev/shm)");
    }
}
