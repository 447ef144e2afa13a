//! Neighbours on a link whose link addresses are known without ARP.

use crate::{Error, LinkAddress, Netlink};
use nix::errno::Errno;
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use std::net::{IpAddr, Ipv4Addr};

impl Netlink {
    /// Sets the link address of a neighbour. The kernel does not probe it, and keeps it while the
    /// interface is up.
    pub fn set_neighbour(
        &self,
        device: &str,
        neighbour: Ipv4Addr,
        link: LinkAddress,
    ) -> Result<(), Error> {
        let mut message = message(self.index(device)?, neighbour);
        message.header.state = NeighbourState::Permanent;
        let link = NeighbourAttribute::LinkLayerAddress(link.0.to_vec());
        message.attributes.push(link);
        let doing = format!("adding the neighbour {neighbour} on {device}");
        self.change(
            doing,
            Message::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Removes the entry of a neighbour. It may be unknown, and the interface gone.
    pub fn forget_neighbour(&self, device: &str, neighbour: Ipv4Addr) -> Result<(), Error> {
        let gone = |error: &Error| {
            let errno = error.raw_os_error().map(Errno::from_raw);
            matches!(errno, Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO))
        };
        let forget = |index| {
            let doing = format!("removing the neighbour {neighbour} on {device}");
            let message = Message::DelNeighbour(message(index, neighbour));
            self.change(doing, message, 0)
        };
        match self.index(device).and_then(forget) {
            Err(error) if gone(&error) => Ok(()),
            forgotten => forgotten,
        }
    }

    /// Returns the addresses at which the kernel found a neighbour on an interface.
    pub fn addresses_of(&self, device: &str, link: LinkAddress) -> Result<Vec<IpAddr>, Error> {
        let index = self.index(device)?;
        let get = Message::GetNeighbour(NeighbourMessage::default());
        let replies = self.dump("listing neighbours", get)?;
        let addresses = replies.iter().filter_map(|reply| match reply {
            Message::NewNeighbour(message) if message.header.ifindex == index => {
                (link_of(message)? == link).then(|| destination(message))?
            }
            _ => None,
        });
        Ok(addresses.collect())
    }

    /// Returns the permanent neighbour entries of an interface, ours and others.
    pub fn neighbours(&self, device: &str) -> Result<Vec<(Ipv4Addr, LinkAddress)>, Error> {
        let index = self.index(device)?;
        let mut get = NeighbourMessage::default();
        get.header.family = AddressFamily::Inet;
        let replies = self.dump("listing neighbours", Message::GetNeighbour(get))?;
        let noted = replies.iter().filter_map(|reply| match reply {
            Message::NewNeighbour(message) if message.header.ifindex == index => read(message),
            _ => None,
        });
        Ok(noted.collect())
    }
}

fn message(index: u32, neighbour: Ipv4Addr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = index;
    let neighbour = NeighbourAttribute::Destination(NeighbourAddress::Inet(neighbour));
    message.attributes = vec![neighbour];
    message
}

/// Returns `None` for neighbours that the kernel resolves itself.
fn read(message: &NeighbourMessage) -> Option<(Ipv4Addr, LinkAddress)> {
    if message.header.state != NeighbourState::Permanent {
        return None;
    }
    match destination(message)? {
        IpAddr::V4(address) => Some((address, link_of(message)?)),
        IpAddr::V6(_) => None,
    }
}

fn destination(message: &NeighbourMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|a| match a {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some((*address).into()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
            Some((*address).into())
        }
        _ => None,
    })
}

fn link_of(message: &NeighbourMessage) -> Option<LinkAddress> {
    message.attributes.iter().find_map(|a| match a {
        NeighbourAttribute::LinkLayerAddress(octets) => {
            octets.as_slice().try_into().ok().map(LinkAddress)
        }
        _ => None,
    })
}
