//! That something about interfaces, addresses or routes has changed.
//!
//! The kernel tells every change with all its particulars, and drops what is not read in time.
//! Nothing is made of the particulars here: whoever wants to know how things are now asks
//! ([`crate::Netlink`]), and gets an answer that is whole.

use crate::Error;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Everything that decides which way a packet takes.
const GROUPS: i32 = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;

/// Told of every change in one network namespace.
pub struct Changes(OwnedFd);

impl Changes {
    /// Listens in the calling thread's network namespace.
    pub fn watch() -> Result<Self, Error> {
        let failed = || Error::os("watching addresses and routes");
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
        let socket = socket(family, kind, flags, SockProtocol::NetlinkRoute).map_err(failed())?;
        let groups = NetlinkAddr::new(0, GROUPS as u32);
        bind(socket.as_raw_fd(), &groups).map_err(failed())?;
        Ok(Self(socket))
    }

    /// Whether anything has changed since the last call.
    pub fn any(&self) -> io::Result<bool> {
        let mut any = false;
        let mut buffer = [0; 8192];
        loop {
            match recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(_) => any = true,
                Err(Errno::EAGAIN) => return Ok(any),
                Err(Errno::EINTR) => {}
                // More than fits; which ones they were is of no interest.
                Err(Errno::ENOBUFS) => any = true,
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
