//! Messages about interfaces and their addresses.

use crate::{NetNs, Prefix};
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

pub(super) use rtnetlink::packet_route::link::LinkMessage;

/// Returns a message about one interface, or about all or none with index 0.
pub(super) fn message(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

pub(super) fn most_segments(index: u32, segments: u32) -> LinkMessage {
    let mut message = message(index);
    message.attributes = vec![LinkAttribute::GsoMaxSegs(segments)];
    message
}

pub(super) fn veth(name: &str, peer: &str, namespace: &NetNs) -> LinkMessage {
    let mut far = message(0);
    far.attributes = vec![
        LinkAttribute::IfName(peer.to_owned()),
        LinkAttribute::NetNsFd(namespace.as_fd().as_raw_fd()),
    ];
    let mut near = message(0);
    near.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]),
    ];
    near
}

pub(super) fn name(message: &LinkMessage) -> Option<String> {
    message.attributes.iter().find_map(|a| match a {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })
}

pub(super) fn alias(message: &LinkMessage) -> Option<String> {
    message.attributes.iter().find_map(|a| match a {
        LinkAttribute::IfAlias(alias) => Some(alias.clone()),
        _ => None,
    })
}

pub(super) fn mtu(message: &LinkMessage) -> Option<u32> {
    message.attributes.iter().find_map(|a| match a {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    })
}

pub(super) fn address(index: u32, prefix: Prefix) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = prefix.family().into();
    message.header.prefix_len = prefix.length;
    message.header.index = index;
    message.header.flags = AddressHeaderFlags::Nodad;
    message.header.scope = match prefix.address {
        IpAddr::V4(v4) if v4.is_link_local() => AddressScope::Link,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => AddressScope::Link,
        _ => AddressScope::Universe,
    };
    message.attributes = vec![
        AddressAttribute::Local(prefix.address),
        AddressAttribute::Address(prefix.address),
    ];
    message
}

/// Returns the local address; IPv6 has it only in the other attribute.
pub(super) fn prefix(message: &AddressMessage) -> Option<Prefix> {
    let find = |wanted: fn(&AddressAttribute) -> Option<IpAddr>| {
        message.attributes.iter().find_map(wanted)
    };
    let local = find(|a| match a {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let address = local.or_else(|| {
        find(|a| match a {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })?;
    Some(Prefix {
        address,
        length: message.header.prefix_len,
    })
}
