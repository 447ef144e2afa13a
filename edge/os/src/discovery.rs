//! Router advertisements and solicitations on a link (ICMP router discovery, RFC 1256).

use crate::link_socket::{Ends, Field, LinkSocket, Wanted};
use crate::{Error, LinkAddress};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

const ICMP: u8 = 1;

/// The types of ICMP.
const ADVERTISEMENT: u8 = 9;
const SOLICITATION: u8 = 10;

/// The group of all hosts on a link (RFC 1256 section 4).
pub const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// The group of all routers on a link (RFC 1256 section 4).
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// The group of all mobility agents on a link (RFC 5944 section 2.3).
pub const ALL_AGENTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);

/// Time to live of packets that stay on the link. A solicited router may also use 255.
pub const LINK_ONLY: u8 = 1;

/// The role of a host, which determines the messages that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Receives advertisements.
    Host,
    /// Receives solicitations.
    Router,
}

impl Role {
    /// Returns the groups of the role's messages, in addition to broadcast.
    const fn groups(self) -> &'static [Ipv4Addr] {
        match self {
            Self::Host => &[ALL_HOSTS],
            Self::Router => &[ALL_ROUTERS, ALL_AGENTS],
        }
    }
}

/// A socket for both messages on one interface. It receives them even if the kernel has no route
/// back to the sender.
pub struct Discovery(LinkSocket);

impl Discovery {
    /// Opens the socket on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::NoEthernet`]; there is no such interface; CAP_NET_RAW is missing.
    pub fn open(interface: &str, role: Role) -> Result<Self, Error> {
        let kind = match role {
            Role::Host => ADVERTISEMENT,
            Role::Router => SOLICITATION,
        };
        let wanted = Wanted {
            protocol: ICMP,
            field: Field::Kind(kind),
        };
        let socket = LinkSocket::open(interface, wanted)?;
        for group in role.groups() {
            let joined = socket.join(*group);
            joined.map_err(Error::os(format!("joining {group} on {interface}")))?;
        }
        Ok(Self(socket))
    }

    /// Reads one message and passes it to `each`: the octets after the IP header, with an
    /// unverified ICMP checksum. Call again until [`io::ErrorKind::WouldBlock`].
    pub fn recv(&mut self, each: impl FnOnce(Ends, &[u8])) -> io::Result<()> {
        if let Some(came) = self.0.recv()? {
            each(came.ends, came.header.payload());
        }
        Ok(())
    }

    /// Sends the octets after the IP header. Broadcast and group destinations need no link address:
    /// see [`Discovery::send_to_all`].
    ///
    /// # Errors
    /// EMSGSIZE for a message longer than the link's MTU, ENETDOWN while the interface is down,
    /// ENXIO once it is gone.
    pub fn send(&self, ends: Ends, message: &[u8]) -> io::Result<()> {
        self.0.send(ends, ICMP, [message, &[]], |_| ())
    }

    /// Sends a message to a group, or to 255.255.255.255. It does not leave the link.
    pub fn send_to_all(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        message: &[u8],
    ) -> io::Result<()> {
        let link = match destination.is_multicast() {
            true => LinkAddress::of_group(destination),
            false => LinkAddress::BROADCAST,
        };
        let ends = Ends {
            source,
            destination,
            link,
            ttl: LINK_ONLY,
        };
        self.send(ends, message)
    }
}

impl AsFd for Discovery {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "All mobility agents MUST process packets that they receive addressed to the Mobile-Agents
    /// multicast group, at address 224.0.0.11" (RFC 5944 section 2.3).
    #[test]
    fn an_agent_listens_to_the_group_of_all_routers_and_to_that_of_all_agents() {
        let [routers, agents] = Role::Router.groups() else {
            panic!("two groups");
        };
        assert_eq!(routers.to_string(), "224.0.0.2");
        assert_eq!(agents.to_string(), "224.0.0.11");
    }
}
