//! The local addresses from which this machine reaches another.

use super::{link, route};
use crate::{Error, Family, Netlink, links};
use nix::errno::Errno;
use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::address::AddressScope;
use rtnetlink::packet_route::route::RouteAttribute;
use std::net::IpAddr;

/// The result of a route lookup.
struct Exit {
    source: Option<IpAddr>,
    index: Option<u32>,
}

impl Netlink {
    /// Returns the addresses from which packets with this mark reach `remote`: first the kernel's
    /// choice, then all others whose packets leave by the interface that has the address. An
    /// address without a route of its own is left out, because its packets would leave elsewhere.
    /// A link-local address is reached from those of its link, the index of whose interface is
    /// `link`.
    pub fn sources(
        &self,
        remote: IpAddr,
        link: Option<u32>,
        mark: u32,
    ) -> Result<Vec<IpAddr>, Error> {
        let preferred = self.exit(remote, None, link, mark)?;
        let preferred = preferred.and_then(|exit| exit.source);
        let mut sources: Vec<_> = preferred.into_iter().collect();
        let scope = match links::is_bound(remote) {
            true => AddressScope::Link,
            false => AddressScope::Universe,
        };
        let get = Message::GetAddress(Default::default());
        for reply in self.dump("listing addresses", get)? {
            let Message::NewAddress(message) = reply else {
                continue;
            };
            let fits = message.header.scope == scope;
            let address = link::prefix(&message).map(|prefix| prefix.address);
            let Some(address) = address.filter(|address| {
                fits && address.is_ipv4() == remote.is_ipv4() && !sources.contains(address)
            }) else {
                continue;
            };
            let exit = self.exit(remote, Some(address), link, mark)?;
            if exit.is_some_and(|exit| exit.index == Some(message.header.index)) {
                sources.push(address);
            }
        }
        Ok(sources)
    }

    /// Returns true if packets with this mark can leave for `remote`.
    pub fn reaches(&self, remote: IpAddr, link: Option<u32>, mark: u32) -> Result<bool, Error> {
        Ok(self.exit(remote, None, link, mark)?.is_some())
    }

    /// Returns the MTU of the interface by which packets with this mark leave for `remote`; `None`
    /// if there is no route. An unspecified `local` stands for the kernel's choice.
    pub fn egress_mtu(
        &self,
        local: IpAddr,
        remote: IpAddr,
        link: Option<u32>,
        mark: u32,
    ) -> Result<Option<u32>, Error> {
        let source = Some(local).filter(|local| !local.is_unspecified());
        let exit = self.exit(remote, source, link, mark)?;
        let Some(index) = exit.and_then(|exit| exit.index) else {
            return Ok(None);
        };
        let get = Message::GetLink(link::message(index));
        let replies = self.request("looking up the MTU of an interface".into(), get, 0)?;
        Ok(replies.iter().find_map(|reply| match reply {
            Message::NewLink(message) => link::mtu(message),
            _ => None,
        }))
    }

    /// Looks up the route of a packet; `None` if there is none. On each link there is a route to
    /// all link-local addresses, so the link decides.
    fn exit(
        &self,
        remote: IpAddr,
        source: Option<IpAddr>,
        link: Option<u32>,
        mark: u32,
    ) -> Result<Option<Exit>, Error> {
        if links::is_bound(remote) && link.is_none() {
            return Ok(None);
        }
        let family = Family::from_address(remote);
        let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
        let mut message = route::request(family);
        message.header.destination_prefix_length = bits(remote);
        message.attributes = vec![
            RouteAttribute::Destination(remote.into()),
            RouteAttribute::Mark(mark),
        ];
        message.attributes.extend(link.map(RouteAttribute::Oif));
        if let Some(source) = source {
            message.header.source_prefix_length = bits(source);
            message
                .attributes
                .push(RouteAttribute::Source(source.into()));
        }
        let none = [
            Errno::ENETUNREACH,
            Errno::EHOSTUNREACH,
            Errno::EINVAL,
            Errno::EACCES,
        ];
        let is_none = |number| none.iter().any(|errno| *errno as i32 == number);
        match self.request(
            format!("looking up the route to {remote}"),
            Message::GetRoute(message),
            0,
        ) {
            Ok(replies) => Ok(replies.iter().find_map(|reply| match reply {
                Message::NewRoute(found) => Some(Exit {
                    source: route::preferred_source(found),
                    index: route::output_index(found),
                }),
                _ => None,
            })),
            Err(Error::NoFamily { .. }) => Ok(None),
            Err(error) if error.raw_os_error().is_some_and(is_none) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
