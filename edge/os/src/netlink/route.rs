//! Routes, to and from the kernel's message.

use super::message::table_in_header;
use crate::{Family, Prefix};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteNextHop, RouteProtocol, RouteScope,
    RouteType,
};
use std::fmt;
use std::net::IpAddr;

pub(super) use rtnetlink::packet_route::route::RouteMessage;

/// One entry of a routing table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The destinations.
    pub prefix: Prefix,
    /// The treatment of their packets.
    pub via: Via,
    /// The routing table.
    pub table: u32,
    /// Preference among routes for the same prefix: the lowest wins. 0 lets the kernel choose,
    /// which is 0 for IPv4 and 1024 for IPv6.
    pub metric: u32,
    /// The source address of packets that have none yet.
    pub source: Option<IpAddr>,
}

/// The treatment of a packet by a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// Send it through this interface.
    Device(String),
    /// Send it through any of several interfaces. Packets that arrive on any of them pass the check
    /// of reverse paths (IPv4).
    Devices(Vec<String>),
    /// Send it to this neighbour.
    Gateway(IpAddr),
    /// Send it to a neighbour on an interface, without a check that one of the interface's prefixes
    /// contains the neighbour (`onlink`).
    Onlink {
        /// The neighbour.
        gateway: IpAddr,
        /// The interface.
        device: String,
    },
    /// Drop it.
    Blackhole,
    /// Continue the lookup with the next rule, as if this table were empty.
    Throw,
}

impl Via {
    /// Returns the treatment of packets that may use any of these interfaces, at least one.
    pub fn any(mut devices: Vec<String>) -> Self {
        match devices.len() {
            1 => Self::Device(devices.remove(0)),
            _ => Self::Devices(devices),
        }
    }

    /// Returns the names of the interfaces.
    pub(super) fn devices(&self) -> &[String] {
        match self {
            Self::Device(name) | Self::Onlink { device: name, .. } => std::slice::from_ref(name),
            Self::Devices(names) => names,
            Self::Gateway(_) | Self::Blackhole | Self::Throw => &[],
        }
    }
}

impl Route {
    /// The main table of every machine.
    pub const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

    /// Returns a route in the main table with the kernel's metric.
    pub fn new(prefix: impl Into<Prefix>, via: Via) -> Self {
        Self {
            prefix: prefix.into(),
            via,
            table: Self::MAIN,
            metric: 0,
            source: None,
        }
    }

    /// Returns the message; `devices` are the indexes of [`Via::devices`].
    pub(super) fn message(&self, devices: &[u32]) -> RouteMessage {
        let mut message = request(self.prefix.family());
        message.header.destination_prefix_length = self.prefix.length;
        message.header.table = table_in_header(self.table);
        message.header.protocol = RouteProtocol::Static;
        (message.header.kind, message.header.scope) = match &self.via {
            Via::Device(_) | Via::Devices(_) => (RouteType::Unicast, RouteScope::Link),
            Via::Gateway(_) | Via::Onlink { .. } => (RouteType::Unicast, RouteScope::Universe),
            Via::Blackhole => (RouteType::BlackHole, RouteScope::Universe),
            Via::Throw => (RouteType::Throw, RouteScope::Universe),
        };
        message.attributes = vec![
            RouteAttribute::Destination(self.prefix.address.into()),
            RouteAttribute::Table(self.table),
        ];
        if let Via::Gateway(gateway) | Via::Onlink { gateway, .. } = self.via {
            let gateway = RouteAttribute::Gateway(gateway.into());
            message.attributes.push(gateway);
        }
        if let Via::Onlink { .. } = self.via {
            message.header.flags = RouteFlags::Onlink;
        }
        match devices {
            [] => {}
            [device] => message.attributes.push(RouteAttribute::Oif(*device)),
            several => {
                let hops = several.iter().map(|device| {
                    let mut hop = RouteNextHop::default();
                    hop.interface_index = *device;
                    hop
                });
                let hops = RouteAttribute::MultiPath(hops.collect());
                message.attributes.push(hops);
            }
        }
        if self.metric != 0 {
            let metric = RouteAttribute::Priority(self.metric);
            message.attributes.push(metric);
        }
        let source = self.source.map(|s| RouteAttribute::PrefSource(s.into()));
        message.attributes.extend(source);
        message
    }
}

impl fmt::Display for Route {
    /// Formats the route in the notation of ip-route(8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Via::Device(name) => write!(f, "{} dev {name}", self.prefix)?,
            Via::Devices(names) => {
                write!(f, "{}", self.prefix)?;
                for name in names {
                    write!(f, " nexthop dev {name}")?;
                }
            }
            Via::Gateway(gateway) => write!(f, "{} via {gateway}", self.prefix)?,
            Via::Onlink { gateway, device } => {
                write!(f, "{} via {gateway} dev {device} onlink", self.prefix)?;
            }
            Via::Blackhole => write!(f, "blackhole {}", self.prefix)?,
            Via::Throw => write!(f, "throw {}", self.prefix)?,
        }
        write!(f, " table {} metric {}", self.table, self.metric)
    }
}

/// Returns a request for every route of a family.
pub(super) fn request(family: Family) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family.into();
    message
}

pub(super) fn table(message: &RouteMessage) -> u32 {
    let attribute = message.attributes.iter().find_map(|a| match a {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    attribute.unwrap_or(message.header.table.into())
}

pub(super) fn output_index(message: &RouteMessage) -> Option<u32> {
    message.attributes.iter().find_map(|a| match a {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

/// Returns the indexes of all interfaces of a route. Several interfaces with a gateway for each are
/// not covered by [`Via`], and not returned.
pub(super) fn output_indexes(message: &RouteMessage) -> Vec<u32> {
    let several = message.attributes.iter().find_map(|a| match a {
        RouteAttribute::MultiPath(hops) => Some(hops),
        _ => None,
    });
    match several {
        None => output_index(message).into_iter().collect(),
        Some(hops) if hops.iter().any(has_gateway) => Vec::new(),
        Some(hops) => hops.iter().map(|hop| hop.interface_index).collect(),
    }
}

fn has_gateway(hop: &RouteNextHop) -> bool {
    let mut attributes = hop.attributes.iter();
    attributes.any(|a| matches!(a, RouteAttribute::Gateway(_) | RouteAttribute::Via(_)))
}

pub(super) fn preferred_source(message: &RouteMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|a| match a {
        RouteAttribute::PrefSource(address) => ip(address),
        _ => None,
    })
}

/// Parses a route through these interfaces.
pub(super) fn parse(message: &RouteMessage, mut devices: Vec<String>) -> Option<Route> {
    let family = Family::from_kernel(message.header.address_family)?;
    let (mut prefix, mut gateway) = (Prefix::everything(family), None);
    let (mut metric, mut source) = (0, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => prefix.address = ip(address)?,
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::PrefSource(address) => source = ip(address),
            RouteAttribute::Priority(number) => metric = *number,
            _ => {}
        }
    }
    prefix.length = message.header.destination_prefix_length;
    let is_onlink = message.header.flags.contains(RouteFlags::Onlink);
    let via = match (message.header.kind, gateway) {
        (RouteType::BlackHole, _) => Via::Blackhole,
        (RouteType::Throw, _) => Via::Throw,
        (RouteType::Unicast, Some(gateway)) => match devices.pop().filter(|_| is_onlink) {
            Some(device) => Via::Onlink { gateway, device },
            None => Via::Gateway(gateway),
        },
        (RouteType::Unicast, None) if !devices.is_empty() => Via::any(devices),
        _ => return None,
    };
    Some(Route {
        prefix,
        via,
        table: table(message),
        metric,
        source,
    })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some((*v4).into()),
        RouteAddress::Inet6(v6) => Some((*v6).into()),
        _ => None,
    }
}
