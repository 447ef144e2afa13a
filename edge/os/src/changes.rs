//! Notifications of changes to interfaces, addresses, routes, rules and filters.
//!
//! The kernel reports every change with all details, and drops reports that are not read in time.
//! The details are hardly used here: a complete state comes from [`crate::Netlink`] and
//! [`crate::lock`]. They only show if a removal may concern state that [`crate::Routes`],
//! [`crate::Divert`], [`crate::mobile`], [`crate::Lock`] or [`crate::clear`] installed, which is a
//! reason to compare it with the present state. Changes by this process are reported like others;
//! the comparison then finds nothing missing.

use crate::netlink::{messages, removal};
use crate::{Error, clear, lock};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Groups of everything that determines the route of a packet. The IPv6 rules' group has no
/// constant of this kind.
const ROUTING: u32 = (libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV4_RULE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE) as u32
    | 1 << (libc::RTNLGRP_IPV6_RULE - 1);

/// The group of nftables tables, and of their content.
const FILTERS: u32 = 1 << (libc::NFNLGRP_NFTABLES - 1);

/// Length of the longest message that is read completely, in octets.
const LONGEST: usize = 1 << 15;

/// A source of notifications about one network namespace.
pub struct Changes {
    routing: OwnedFd,
    /// `None` on a kernel without nftables.
    filters: Option<OwnedFd>,
    device: String,
}

/// The changes since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// True if a packet may take another route.
    pub ways: bool,
    /// True if state that this process installed may have been removed or replaced.
    pub removed: bool,
}

impl Changes {
    /// Subscribes in the calling thread's network namespace, for a host whose tunnel has the TUN of
    /// this name, now or later.
    pub fn watch(device: &str) -> Result<Self, Error> {
        let routing = listen(SockProtocol::NetlinkRoute, ROUTING);
        let routing = routing.map_err(Error::os("watching addresses and routes"))?;
        Ok(Self {
            routing,
            filters: listen(SockProtocol::NetlinkNetFilter, FILTERS).ok(),
            device: device.to_owned(),
        })
    }

    /// Returns the descriptors to poll.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let filters = self.filters.iter().map(AsFd::as_fd);
        [self.routing.as_fd()].into_iter().chain(filters)
    }

    /// Returns the changes since the last call.
    pub fn read(&self) -> io::Result<News> {
        let mut news = News::default();
        let mut buffer = vec![0; LONGEST];
        each(&self.routing, &mut buffer, |message| {
            news.ways = true;
            news.removed |=
                message.is_none_or(|message| removal::is_of_ours(message, &self.device));
        })?;
        if let Some(filters) = &self.filters {
            each(filters, &mut buffer, |message| {
                news.removed |= message.is_none_or(|message| {
                    lock::is_changed_by(message) || clear::is_changed_by(message)
                });
            })?;
        }
        Ok(news)
    }
}

fn listen(protocol: SockProtocol, groups: u32) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
    let socket = socket(family, kind, flags, protocol)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(socket)
}

/// Reads messages until there are no more. `None` stands for messages that were lost because the
/// socket was full.
fn each(
    socket: &OwnedFd,
    buffer: &mut [u8],
    mut note: impl FnMut(Option<&[u8]>),
) -> io::Result<()> {
    loop {
        match recv(socket.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(len) => messages(&buffer[..len]).for_each(|message| note(Some(message))),
            Err(Errno::EAGAIN) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::ENOBUFS) => note(None),
            Err(errno) => return Err(errno.into()),
        }
    }
}
