//! The addresses and interfaces of this host.

use super::link;
use crate::{Error, Netlink};
use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::address::{AddressHeaderFlags, AddressMessage, AddressScope};
use rtnetlink::packet_route::link::LinkFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

impl Netlink {
    /// Returns the addresses that a route may prefer as the source of this host's packets, in the
    /// order of the interfaces. They are global, and their interfaces are up. The interface named
    /// `except` is left out.
    pub fn source_addresses(&self, except: &str) -> Result<Vec<IpAddr>, Error> {
        let up = self.interfaces_up(except)?;
        let mut usable: Vec<_> = self.address_messages()?;
        usable.retain(|message| is_assigned(message) && up.contains(&message.header.index));
        // The kernel lists the families one after the other, and each by interface.
        usable.sort_by_key(|message| message.header.index);
        let addresses = usable.iter().filter_map(link::prefix);
        Ok(addresses.map(|prefix| prefix.address).collect())
    }

    /// Returns all addresses of all interfaces.
    pub fn all_addresses(&self) -> Result<BTreeSet<IpAddr>, Error> {
        let addresses = self.address_messages()?;
        let addresses = addresses.iter().filter_map(link::prefix);
        Ok(addresses.map(|prefix| prefix.address).collect())
    }

    /// Returns the interface of each address.
    pub fn interfaces(&self) -> Result<BTreeMap<IpAddr, String>, Error> {
        let replies = self.dump("listing interfaces", Message::GetLink(link::message(0)))?;
        let names = replies.iter().filter_map(|reply| match reply {
            Message::NewLink(message) => Some((message.header.index, link::name(message)?)),
            _ => None,
        });
        let names: BTreeMap<_, _> = names.collect();
        let addresses = self.address_messages()?;
        let of = |message: &AddressMessage| {
            let name = names.get(&message.header.index)?;
            Some((link::prefix(message)?.address, name.clone()))
        };
        Ok(addresses.iter().filter_map(of).collect())
    }

    fn interfaces_up(&self, except: &str) -> Result<BTreeSet<u32>, Error> {
        let replies = self.dump("listing interfaces", Message::GetLink(link::message(0)))?;
        let links = replies.iter().filter_map(|reply| match reply {
            Message::NewLink(message) => Some((message.header.index, message)),
            _ => None,
        });
        // An interface may be reported twice while it changes.
        let links: BTreeMap<_, _> = links.collect();
        let up = links.into_iter().filter(|(_, message)| {
            let is_up = message.header.flags.contains(LinkFlags::Up);
            is_up && link::name(message).is_none_or(|name| name != except)
        });
        Ok(up.map(|(index, _)| index).collect())
    }

    fn address_messages(&self) -> Result<Vec<AddressMessage>, Error> {
        let get = Message::GetAddress(Default::default());
        let replies = self.dump("listing addresses", get)?;
        let messages = replies.into_iter().filter_map(|reply| match reply {
            Message::NewAddress(message) => Some(message),
            _ => None,
        });
        Ok(messages.collect())
    }
}

/// Returns true if new packets may have a global address as their source. IPv6 addresses may not
/// while they are checked for duplicates (RFC 4862 section 5.4), and should not once deprecated
/// (section 5.5.4).
fn is_assigned(message: &AddressMessage) -> bool {
    let unusable = AddressHeaderFlags::Tentative
        | AddressHeaderFlags::Dadfailed
        | AddressHeaderFlags::Deprecated;
    message.header.scope == AddressScope::Universe && !message.header.flags.intersects(unusable)
}
