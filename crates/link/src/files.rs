//! Files that others have left.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file to be read. `None`: what has that name is no file; a pipe would wait for its writer.
pub fn open_file(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}
