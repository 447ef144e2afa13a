//! Files of a process: the limit on open ones, and so on sockets, the right to write, and files of
//! its own, which no other user has made or redirected.

use nix::libc::{ELOOP, O_NOFOLLOW, O_NONBLOCK};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{AccessFlags, access, geteuid};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use thiserror::Error;

/// Returns an error if this process may not write to a file, or not create it and its folders.
/// Writes nothing.
pub fn check_writable(file: &Path) -> io::Result<()> {
    let mut present = file.ancestors().filter(|path| path.exists());
    let first = present.next().unwrap_or(Path::new("."));
    Ok(access(first, AccessFlags::W_OK)?)
}

/// Access of other users to a file of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// None, as the file has keys.
    None,
    /// They may read it, if its mode says so.
    Read,
}

/// Reason for which a file is not ours alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotOurs {
    /// The path leads elsewhere.
    #[error("it is a symbolic link: name the file itself")]
    Link,
    /// It is a folder, a pipe or a device.
    #[error("it is no regular file")]
    Irregular,
    /// Another user made it.
    #[error("it belongs to user {0}: remove it, or name another file")]
    Owner(u32),
    /// It has another name, under which it can be read.
    #[error("it has {0} names (hard links): remove it, or name another file")]
    Names(u64),
    /// Its mode.
    #[error("other users have access to it (mode {0:04o}): run `chmod {1}` on it")]
    Mode(u32, &'static str),
}

/// Opens a file for keys or evidence, with mode 0600 if it is new. One that is there already must
/// be ours alone: another user who can write to its folder may have put it there, or a link in its
/// place.
pub fn open_own(file: &Path, access: Access, options: &mut OpenOptions) -> io::Result<File> {
    // A pipe without a reader would block.
    options.mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    match options.create_new(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    let opened =
        options
            .create_new(false)
            .open(file)
            .map_err(|error| match error.raw_os_error() {
                Some(ELOOP) => refused(NotOurs::Link),
                _ => error,
            })?;
    judge(&opened.metadata()?, access, geteuid().as_raw()).map_err(refused)?;
    Ok(opened)
}

fn refused(why: NotOurs) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Judges a file by its owner, names and mode. One of root is as good as one of ours.
fn judge(found: &Metadata, access: Access, user: u32) -> Result<(), NotOurs> {
    let (others, remedy) = match access {
        Access::None => (0o077, "go="),
        Access::Read => (0o022, "go-w"),
    };
    // Only root makes devices, as /dev/full for tests of what has no room.
    if access == Access::Read && found.file_type().is_char_device() {
        return Ok(());
    }
    if !found.is_file() {
        return Err(NotOurs::Irregular);
    }
    if found.uid() != user && found.uid() != 0 {
        return Err(NotOurs::Owner(found.uid()));
    }
    if found.nlink() > 1 {
        return Err(NotOurs::Names(found.nlink()));
    }
    match found.mode() & 0o7777 {
        mode if mode & others != 0 => Err(NotOurs::Mode(mode, remedy)),
        _ => Ok(()),
    }
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

    /// Appends to a file of the test's folder, and returns the reason of a refusal.
    fn appended(file: &Path, access: Access) -> Option<NotOurs> {
        match open_own(file, access, OpenOptions::new().append(true)) {
            Ok(_) => None,
            Err(error) => Some(*error.get_ref().unwrap().downcast_ref().unwrap()),
        }
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let name = format!("strata-files-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_that_somebody_prepared_is_refused_and_a_new_one_is_ours() {
        let folder = folder("own");
        let file = folder.join("keys");
        let (link, dangling) = (folder.join("link"), folder.join("dangling"));
        assert_eq!(appended(&file, Access::None), None);
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(appended(&file, Access::None), None, "it is ours");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(folder.join("new"), &dangling).unwrap();
        for link in [link, dangling] {
            assert_eq!(appended(&link, Access::Read), Some(NotOurs::Link));
        }
        assert!(!folder.join("new").exists());
        std::fs::hard_link(&file, folder.join("second")).unwrap();
        assert_eq!(appended(&file, Access::Read), Some(NotOurs::Names(2)));
        let pipe = folder.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        // To append alone, a pipe needs a reader.
        let opened = open_own(&pipe, Access::None, OpenOptions::new().append(true));
        assert!(opened.is_err());
        let opened = open_own(
            &pipe,
            Access::None,
            OpenOptions::new().read(true).write(true),
        );
        assert!(opened.is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_owner_and_the_mode_of_a_file_decide() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("mode");
        let file = folder.join("audit");
        for (mode, keys, evidence) in [
            (0o600, true, true),
            (0o640, false, true),
            (0o644, false, true),
            (0o660, false, false),
            (0o602, false, false),
        ] {
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let allowed = [Access::None, Access::Read].map(|who| appended(&file, who));
            let refused = |good: bool, remedy| (!good).then_some(NotOurs::Mode(mode, remedy));
            let expected = [refused(keys, "go="), refused(evidence, "go-w")];
            assert_eq!(allowed, expected, "{mode:o}");
        }
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let found = std::fs::metadata(&file).unwrap();
        assert_eq!(judge(&found, Access::None, found.uid()), Ok(()));
        // Root may give it away; others ask for a stranger.
        let owner = match found.uid() {
            0 => 65_534,
            user => user,
        };
        nix::unistd::chown(&file, Some(owner.into()), None).unwrap();
        let found = std::fs::metadata(&file).unwrap();
        let stranger = judge(&found, Access::None, owner + 1);
        assert_eq!(stranger, Err(NotOurs::Owner(owner)));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_process_has_as_many_as_it_may() {
        let most = raise_limit();
        assert_eq!(raise_limit(), most);
        let (now, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!((now, hard), (most, most));
    }
}
