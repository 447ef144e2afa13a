//! Descriptors that outlive the process that opened them, because the service manager has copies:
//! the file descriptor store of systemd (sd_notify(3), `FileDescriptorStoreMax=` of
//! systemd.service(5)).
//!
//! The next process trusts no descriptor that it finds: [`crate::Bulk::adopt`] and
//! [`crate::Datagrams::is_such`] compare each with the configuration.

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, sendmsg, socket,
};
use nix::sys::stat::{SFlag, fstat};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for the service manager to have read all messages.
const PATIENCE: Duration = Duration::from_secs(1);

/// The reason that a kept device is not used.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// The descriptor leads to another file, or its device was removed.
    #[error("it is no tunnel device that exists")]
    Kind,
    /// The device is in another network namespace.
    #[error("it is in another network namespace")]
    Namespace,
    /// The device has another name.
    #[error("its name is {0}")]
    Name(String),
    /// The device has another form of packets or number of queues.
    #[error("it is of another form (`offload`, `workers`)")]
    Form,
    /// The kernel refuses the settings of the device.
    #[error("{0}")]
    Settings(String),
}

/// Takes ownership of a descriptor that this process got at its start. Call it for each number once
/// at most, and before anything else opens descriptors.
///
/// # Errors
/// No descriptor has this number, or it is one of the standard ones.
pub fn own(number: RawFd) -> io::Result<OwnedFd> {
    #![allow(unsafe_code, reason = "the environment has descriptors as numbers")]
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is not -1, and is used for a system call only, which checks it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: the descriptor is open, as the call above shows. Nothing in this process owns it:
    // it was open at the start, and the standard ones are excluded.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sends a message with descriptors to the service manager at `NOTIFY_SOCKET`.
pub fn tell(manager: &OsStr, message: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let address = match manager.as_bytes() {
        [b'@', name @ ..] => UnixAddr::new_abstract(name)?,
        path => UnixAddr::new(path)?,
    };
    let sender = socket(
        AddressFamily::Unix,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let numbers: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let rights = if numbers.is_empty() { &[] } else { &rights[..] };
    let message = [IoSlice::new(message.as_bytes())];
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg(sender.as_raw_fd(), &message, rights, flags, Some(&address))?;
    Ok(())
}

/// Waits until the service manager has acted on all messages: it closes the descriptor that comes
/// with the last one (`BARRIER=1`).
///
/// # Errors
/// It did not in a second.
pub fn wait_for(manager: &OsStr) -> io::Result<()> {
    let (mut ours, theirs) = UnixStream::pair()?;
    tell(manager, "BARRIER=1", &[theirs.as_fd()])?;
    drop(theirs);
    ours.set_read_timeout(Some(PATIENCE))?;
    ours.read(&mut [0]).map(drop)
}

/// Returns true if a device or socket belongs to the calling thread's network namespace.
pub(crate) fn is_of_this_namespace(descriptor: &OwnedFd) -> bool {
    #![allow(unsafe_code, reason = "no crate at hand has this call")]
    /// `SIOCGSKNS` of `linux/sockios.h`: it returns a descriptor of the namespace.
    const NAMESPACE_OF: u64 = 0x894C;
    nix::ioctl_none_bad!(namespace_of, NAMESPACE_OF);
    // SAFETY: the descriptor is open, and the call takes no argument.
    let Ok(number) = (unsafe { namespace_of(descriptor.as_raw_fd()) }) else {
        return false;
    };
    // SAFETY: the call has returned a new descriptor, which nothing else owns.
    let its = fs::File::from(unsafe { OwnedFd::from_raw_fd(number) });
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    match (its.metadata(), fs::metadata("/proc/thread-self/ns/net")) {
        (Ok(its), Ok(ours)) => identity(its) == identity(ours),
        _ => false,
    }
}

/// Returns true if a descriptor leads to the character device of this number.
pub(crate) fn is_device(descriptor: &OwnedFd, number: u64) -> bool {
    fstat(descriptor).is_ok_and(|stat| {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        kind == SFlag::S_IFCHR && stat.st_rdev == number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_descriptor_is_refused() {
        assert!(own(1_000_000).is_err());
        assert!(own(-1).is_err());
        assert!(own(0).is_err());
    }

    #[test]
    fn a_manager_that_is_not_there_is_an_error() {
        assert!(tell(OsStr::new("/nowhere/notify"), "READY=1", &[]).is_err());
        assert!(wait_for(OsStr::new("@nowhere")).is_err());
    }
}
