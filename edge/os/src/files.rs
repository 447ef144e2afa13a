//! Files of a process: the limit on open ones, and so on sockets, and the right to write.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{AccessFlags, access};
use std::io;
use std::path::Path;

/// Returns an error if this process may not write to a file, or not create it and its folders.
/// Writes nothing.
pub fn check_writable(file: &Path) -> io::Result<()> {
    let mut present = file.ancestors().filter(|path| path.exists());
    let first = present.next().unwrap_or(Path::new("."));
    Ok(access(first, AccessFlags::W_OK)?)
}

/// The usual limit, for a system that does not report one.
const USUAL: u64 = 1024;

/// Raises the limit to the most that the system allows this process, and returns it.
pub fn raise_limit() -> u64 {
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return USUAL;
    };
    match setrlimit(Resource::RLIMIT_NOFILE, most, most) {
        Ok(()) => most,
        Err(_) => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_be_written_where_its_nearest_folder_can() {
        let folder = std::env::temp_dir();
        assert!(check_writable(&folder.join("missing/folder/file")).is_ok());
        assert!(check_writable(Path::new("missing-file")).is_ok());
        // Not even root may write to it.
        assert!(check_writable(Path::new("/proc/sys/kernel/ostype")).is_err());
    }

    #[test]
    fn a_process_has_as_many_as_it_may() {
        let most = raise_limit();
        assert_eq!(raise_limit(), most);
        let (now, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!((now, hard), (most, most));
    }
}
