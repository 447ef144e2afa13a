//! What the kernel's TCP tells about a connection, and which congestion control it uses.

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
    /// Octets the receiver has acknowledged.
    pub acknowledged: u64,
    /// The congestion window, in segments.
    pub window: u32,
    /// Segments sent again since the connection began.
    pub retransmitted: u32,
    /// The smoothed round-trip time.
    pub round_trip: Duration,
}

/// Chooses a connection's congestion control.
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

/// How a connection's sending is at this moment.
pub fn sending(socket: impl AsFd) -> io::Result<Sending> {
    let info = info(socket)?;
    Ok(Sending {
        acknowledged: info.tcpi_bytes_acked,
        window: info.tcpi_snd_cwnd,
        retransmitted: info.tcpi_total_retrans,
        round_trip: Duration::from_micros(info.tcpi_rtt.into()),
    })
}

/// Older kernels know less of the structure and leave the rest of it zero.
fn info(socket: impl AsFd) -> io::Result<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    #[allow(unsafe_code, reason = "no crate at hand has this call")]
    // SAFETY: the pointers are to a live structure and to its length. The kernel writes at most
    // that many octets; what it leaves is zero, and all fields are plain numbers.
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
