//! [`networks`]: what a libfabric offers in the environment of a job, and what Tidegate would take of it.

use super::library::c_path;
use crate::border::loader::Loader;
use crate::lower::{self, Choice, Lower, Taken, Wants};
use std::path::Path;

/// Peers for which an endpoint is opened to try whether it can be.
const PEERS: usize = 1;

/// The offers of a libfabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks {
    /// The version of its interface: major and minor number.
    pub version: (u32, u32),
    /// Whether it has found Tidegate and loaded it.
    pub has_tidegate: bool,
    /// The network that Tidegate takes for a job over several hosts. `None`: the user wants no network.
    pub taken: Option<Result<Taken, String>>,
}

/// Loads the libfabric at `library`, and asks it. `fabric` is the value of `FI_TIDEGATE_FABRIC`, if it is set. The
/// error says why the library cannot be loaded, or that it is no libfabric.
pub fn networks(library: &Path, fabric: Option<&str>) -> Result<Networks, String> {
    let loader = Loader::of_library(&c_path(library)?)
        .ok_or_else(|| format!("{} cannot be loaded, or is no libfabric", library.display()))?;
    let choice: Choice = match fabric.filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map_err(|()| format!("FI_TIDEGATE_FABRIC={text} names no network"))?,
        None => Choice::Auto,
    };
    let wants = Wants { peers: PEERS, may_sleep: false, reads: true, chunks: 1, ports: None, described: false };
    let taken = (choice != Choice::None).then(|| Lower::try_out(loader, &choice, wants));
    let version = (loader.version >> 16, loader.version & 0xffff);
    Ok(Networks { version, has_tidegate: lower::has_this_provider(loader), taken })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_libfabric_is_refused() {
        let error = networks(Path::new("/nowhere/libfabric.so.1"), None).unwrap_err();
        assert_eq!(error, "/nowhere/libfabric.so.1 cannot be loaded, or is no libfabric");
        assert!(networks(Path::new("libc.so.6"), None).is_err());
    }
}
