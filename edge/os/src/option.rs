//! Socket options that no available crate names.

#![allow(unsafe_code, reason = "no crate at hand names these socket options")]

use nix::errno::Errno;
use nix::libc;
use socket2::Socket;
use std::io;
use std::os::fd::AsRawFd;

/// Sets an option whose value is a number, or a struct of the kernel's.
pub(crate) fn set<T: Copy>(socket: &Socket, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: the descriptor is open, and pointer and length describe one live value.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Returns an option whose value is a number.
pub(crate) fn get(socket: &Socket, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0_i32;
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open, and both pointers are to live integers; the second is the
    // length of the first.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    Errno::result(result)?;
    Ok(value)
}
