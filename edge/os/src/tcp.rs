//! The state of the kernel's TCP connections, and their congestion control.

use crate::Error;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The sending side of a connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Octets that the receiver has acknowledged.
    pub acknowledged: u64,
    /// The congestion window, in segments.
    pub window: u32,
    /// Segments retransmitted since the connection began.
    pub retransmitted: u32,
    /// The smoothed round-trip time.
    pub round_trip: Duration,
}

/// Sets a connection's congestion control.
///
/// # Errors
/// The kernel does not have it.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> Result<(), Error> {
    let wanted = OsString::from(name);
    setsockopt(&socket, sockopt::TcpCongestion, &wanted).map_err(|errno| match errno {
        Errno::ENOENT => Error::NoCongestionControl {
            name: name.to_owned(),
        },
        errno => Error::os(format!("choosing the congestion control {name}"))(errno),
    })
}

/// Returns the current state of a connection's sending side.
pub fn sending(socket: impl AsFd) -> io::Result<Sending> {
    let info = info(socket)?;
    Ok(Sending {
        acknowledged: info.tcpi_bytes_acked,
        window: info.tcpi_snd_cwnd,
        retransmitted: info.tcpi_total_retrans,
        round_trip: Duration::from_micros(info.tcpi_rtt.into()),
    })
}

/// Reads `TCP_INFO`. Older kernels have a shorter structure; the rest stays zero.
fn info(socket: impl AsFd) -> io::Result<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    #[allow(unsafe_code, reason = "no crate at hand has this call")]
    // SAFETY: the pointers are to a live structure and to its length. The kernel writes at most
    // that many octets; the rest is zero, and all fields are plain numbers.
    let (result, info) = unsafe {
        let result = libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        );
        (result, info.assume_init())
    };
    Errno::result(result)?;
    Ok(info)
}
