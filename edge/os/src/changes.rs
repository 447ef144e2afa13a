//! News of interfaces, addresses, routes, rules and filters.
//!
//! The kernel tells every change with all its particulars, and drops what is not read in time. Little is made of the
//! particulars here: a state that is whole comes from [`crate::Netlink`] and [`crate::lock`]. They serve only to tell
//! whether a removal may be of what [`crate::Routes`], [`crate::Divert`] and [`crate::Lock`] install, which is reason to
//! compare that with what is there. Changes of this process are told like those of others; a comparison finds nothing missing then.

use crate::netlink::removal;
use crate::{Error, lock};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Everything that decides which way a packet takes. Rules of IPv6 have a group without a name of this kind.
const ROUTING: u32 = (libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV4_RULE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE) as u32
    | 1 << (libc::RTNLGRP_IPV6_RULE - 1);

/// Tables of nftables, and what is in them.
const FILTERS: u32 = 1 << (libc::NFNLGRP_NFTABLES - 1);

/// The longest message that is read whole.
const LONGEST: usize = 1 << 15;

/// Told of every change in one network namespace.
pub struct Changes {
    routing: OwnedFd,
    /// `None` on a kernel without nftables.
    filters: Option<OwnedFd>,
    device: String,
}

/// What has changed since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// A packet may take another way.
    pub ways: bool,
    /// Something of what [`crate::Routes`], [`crate::Divert`] or [`crate::Lock`] installs may have been removed, or
    /// something else be in its place.
    pub removed: bool,
}

impl Changes {
    /// Listens in the calling thread's network namespace, for a host whose tunnel has the TUN of this name, now or later.
    pub fn watch(device: &str) -> Result<Self, Error> {
        let routing = listen(SockProtocol::NetlinkRoute, ROUTING);
        let routing = routing.map_err(Error::os("watching addresses and routes"))?;
        Ok(Self {
            routing,
            filters: listen(SockProtocol::NetlinkNetFilter, FILTERS).ok(),
            device: device.to_owned(),
        })
    }

    /// The descriptors to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let filters = self.filters.iter().map(AsFd::as_fd);
        [self.routing.as_fd()].into_iter().chain(filters)
    }

    /// What has changed since the last call.
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
                news.removed |= message.is_none_or(lock::is_changed_by);
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

/// Reads messages until there are no more. `None` stands for what did not fit the socket.
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

/// The messages of one datagram. Each begins with its length, and at a multiple of 4 octets (RFC 3549 section 2.3.2). The
/// last may be cut off.
fn messages(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let message = rest.get(..len).unwrap_or(rest);
        rest = rest
            .get(len.next_multiple_of(4).max(4)..)
            .unwrap_or_default();
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_has_many_messages_and_ends_somewhere() {
        let message = |len: u32, octets: usize| {
            let mut message = vec![0; octets];
            message[..4].copy_from_slice(&len.to_ne_bytes());
            message
        };
        let lens = |datagram: &[u8]| messages(datagram).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(lens(&[message(18, 20), message(16, 16)].concat()), [18, 16]);
        assert_eq!(lens(&message(400, 16)), [16]);
        assert_eq!(lens(&message(u32::MAX, 16)), [16]);
        assert_eq!(lens(&message(0, 8)), [0, 0]);
        assert_eq!(lens(&[1, 2]), [0; 0]);
    }
}
