//! A Unix socket to listen on, with its file.

use nix::unistd::{Gid, Group, chown};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The users who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The user of the daemon, and root.
    Owner,
    /// Also the members of the group with this number.
    Group(u32),
}

impl Access {
    /// Returns the access of a group of this machine.
    pub fn of_group(name: &str) -> Result<Self, CannotListen> {
        let group = Group::from_name(name).ok().flatten();
        let group = group.ok_or_else(|| CannotListen::NoGroup(name.to_owned()))?;
        Ok(Self::Group(group.gid.as_raw()))
    }
}

/// Error of [`Socket::bind`].
#[derive(Debug, thiserror::Error)]
pub enum CannotListen {
    /// Another process answers on this socket. A daemon claims its network namespace before it
    /// binds the socket, so another daemon serves another namespace.
    #[error("a stratad in another network namespace listens on {}\n  fix: give each network namespace its own `socket` in [control]", .0.display())]
    Running(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket\n  fix: remove it, or name another `socket` in [control]", .0.display())]
    InTheWay(PathBuf),
    /// The group does not exist.
    #[error(
        "this machine has no group {0}\n  fix: run `groupadd --system {0}`, or correct `group` in [control]"
    )]
    NoGroup(String),
    /// The process is no member of the group, and may not give files to others.
    #[error("{} cannot be given to group {group}: {source}\n  fix: write `group = \"strata\"` in [control], or add the group to the service: `systemctl edit stratad`, with `SupplementaryGroups=`", path.display())]
    NotGiven {
        /// Path of the socket.
        path: PathBuf,
        /// Number of the group.
        group: u32,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Any other error of the operating system.
    #[error("cannot listen on {}: {source}\n  fix: run as root, or name a `socket` in [control] whose folder you may write to", path.display())]
    Failed {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// A socket that listens. Its file is removed with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, to recognise it on removal.
    file: (u64, u64),
}

impl Socket {
    /// Listens, without blocking. Creates the folder if necessary, and replaces a socket that no
    /// process listens on.
    pub fn bind(path: &Path, access: Access) -> Result<Self, CannotListen> {
        let failed = |source| CannotListen::Failed {
            path: path.to_owned(),
            source,
        };
        check_path(path)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        // Created under another name, so that no client can connect before the mode is set.
        let mut fresh = path.to_owned();
        fresh.as_mut_os_string().push(".new");
        let listener = listen(&fresh).map_err(failed)?;
        if let Access::Group(group) = access {
            give(&fresh, group).map_err(|source| CannotListen::NotGiven {
                path: path.to_owned(),
                group,
                source,
            })?;
        }
        Self::publish(listener, &fresh, path).map_err(failed)
    }

    /// Moves the socket's file to its name.
    fn publish(listener: UnixListener, fresh: &Path, path: &Path) -> io::Result<Self> {
        let file = fs::symlink_metadata(fresh)?;
        fs::rename(fresh, path)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file: (file.dev(), file.ino()),
        })
    }

    /// Returns the listener, which does not block.
    pub const fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Socket {
    /// Removes the socket's file, unless a successor has replaced it.
    fn drop(&mut self) {
        let file = fs::symlink_metadata(&self.path);
        if file.is_ok_and(|file| (file.dev(), file.ino()) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a new socket for the owner alone.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Lets the members of a group connect, too.
fn give(path: &Path, group: u32) -> io::Result<()> {
    chown(path, None, Some(Gid::from_raw(group)))?;
    fs::set_permissions(path, Permissions::from_mode(0o660))
}

/// Fails if the path is taken by a running daemon or by a file that is not a socket.
fn check_path(path: &Path) -> Result<(), CannotListen> {
    let failed = |source| CannotListen::Failed {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(file) if file.file_type().is_socket() => {}
        Ok(_) => return Err(CannotListen::InTheWay(path.to_owned())),
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(CannotListen::Running(path.to_owned())),
        // No process listens on the socket any more.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
