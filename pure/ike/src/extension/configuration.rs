//! The Configuration payload in IKE_AUTH (RFC 7296 sections 2.19 and 3.15): the initiator asks for
//! addresses inside the tunnel, the responder lends them out of a pool.
//!
//! With them come name servers, and what is behind the responder. What the tunnel *may* carry is
//! agreed by traffic selectors; what an initiator should send by it is a matter of routes, so it is
//! told whoever makes them (section 3.15.2).
//!
//! The address is not asked for by its value: an identity gets the one it had anyway, and what an
//! initiator says about addresses is not to be believed. The tunnel carries what was lent and no
//! other address of the initiator's.

use crate::config::Addressing;
use crate::exchange::find;
use crate::pool::{Pool, Pools};
use crate::refusal::Refusal;
use crate::selectors::narrow;
use crypto::UnixTime;
use model::{Identity, IkeSaId, InnerAddresses, TrafficSelector};
use std::net::IpAddr;
use wire::ike::{
    Configuration, ConfigurationAttribute as Attribute, ConfigurationType, Message, NotifyType,
    Payload,
};

/// So many name servers are taken from a peer.
const MAX_SERVERS: usize = 4;

/// What is behind a peer in more prefixes than these is not believed: each becomes a route.
pub(crate) const MAX_SUBNETS: usize = 256;

/// What a peer lends us and tells us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Our addresses.
    pub addresses: InnerAddresses,
    /// Its name servers.
    pub dns: Vec<IpAddr>,
    /// What it says is behind it. Empty: it does not say.
    pub subnets: Vec<TrafficSelector>,
    /// What of the peer's the tunnel carries.
    pub carried: Vec<TrafficSelector>,
}

impl Inside {
    /// What is behind the peer and can be reached through the tunnel: the parts of the subnets that
    /// the agreed selectors have. `None` if it does not say, or says too much.
    pub fn reachable(&self) -> Option<Vec<TrafficSelector>> {
        let subnets = self.subnets.iter();
        let parts: Vec<_> = subnets.flat_map(|subnet| self.parts(subnet)).collect();
        let prefixes = parts.iter().flat_map(TrafficSelector::prefixes);
        let believed = prefixes.take(MAX_SUBNETS + 1).count() <= MAX_SUBNETS;
        (believed && !self.subnets.is_empty()).then_some(parts)
    }

    /// The subnets that the tunnel does not carry, or not as a whole: "ones that need one or more
    /// separate SAs" (RFC 7296 section 3.15.2).
    pub fn beyond(&self) -> Vec<TrafficSelector> {
        let subnets = self.subnets.iter();
        let beyond = subnets.filter(|subnet| self.parts(subnet).all(|part| part != **subnet));
        beyond.cloned().collect()
    }

    fn parts<'a>(&'a self, subnet: &'a TrafficSelector) -> impl Iterator<Item = TrafficSelector> {
        let carried = self.carried.iter();
        carried.filter_map(|carried| subnet.intersection(carried))
    }
}

/// What an initiator adds to IKE_AUTH if it wants addresses: of the families of its selectors.
pub(crate) fn request(addressing: &Addressing, local: &[TrafficSelector]) -> Option<Payload> {
    if *addressing != Addressing::Requested {
        return None;
    }
    let families = [true, false].into_iter().filter(|is_ipv4| {
        let of_family = |selector: &TrafficSelector| selector.first.is_ipv4() == *is_ipv4;
        local.iter().any(of_family)
    });
    let attributes = families.flat_map(|is_ipv4| {
        let (address, subnet) = (None, None);
        [
            Attribute::Address {
                is_ipv4,
                value: address,
            },
            Attribute::Dns {
                is_ipv4,
                value: None,
            },
            Attribute::Subnet {
                is_ipv4,
                value: subnet,
            },
        ]
    });
    Some(Payload::Configuration(Configuration {
        kind: ConfigurationType::CFG_REQUEST,
        attributes: attributes.collect(),
    }))
}

/// What an initiator gets that has proved to be `identity`: the reply, and its addresses. Nothing
/// where its addresses are not ours to lend.
pub(crate) fn answer(
    (addressing, local): (&Addressing, &[TrafficSelector]),
    request: &Message,
    identity: &Identity,
    sa: IkeSaId,
    pools: &mut Pools,
    today: UnixTime,
) -> Result<Option<(Payload, InnerAddresses)>, (NotifyType, Refusal)> {
    let pool = match addressing {
        Addressing::Fixed => return Ok(None),
        // Only an initiator asks, and here we are the responder.
        Addressing::Requested => {
            return Err((NotifyType::TS_UNACCEPTABLE, Refusal::AddressNotAsked));
        }
        Addressing::Lent(pool) => pool,
    };
    let asked = read(request, ConfigurationType::CFG_REQUEST)
        .filter(|asked| asks_for_address(asked, true) || asks_for_address(asked, false))
        .ok_or_else(|| {
            let pool = pool.name.clone();
            (NotifyType::FAILED_CP_REQUIRED, Refusal::NoRequest { pool })
        })?;
    let wanted = (
        asks_for_address(asked, true),
        asks_for_address(asked, false),
    );
    let lent = pools
        .lend(pool, identity, wanted, sa, today)
        .ok_or_else(|| {
            let pool = pool.name.clone();
            (
                NotifyType::INTERNAL_ADDRESS_FAILURE,
                Refusal::NoAddressLeft { pool },
            )
        })?;
    Ok(Some((reply(lent, pool, local), lent)))
}

/// What a responder has lent; `None` if it says nothing of addresses that could be ours.
pub(crate) fn read_reply(response: &Message) -> Option<Inside> {
    let reply = read(response, ConfigurationType::CFG_REPLY)?;
    let mut inside = Inside::default();
    for attribute in &reply.attributes {
        match attribute {
            Attribute::Address {
                is_ipv4,
                value: Some((address, _)),
            } if inside.addresses.of(*is_ipv4).is_none() && is_a_hosts(*address) => {
                inside.addresses.set(*address);
            }
            Attribute::Dns {
                value: Some(server),
                ..
            } if inside.dns.len() < MAX_SERVERS && is_a_hosts(*server) => inside.dns.push(*server),
            Attribute::Subnet {
                value: Some((address, length)),
                ..
            } => inside
                .subnets
                .extend(TrafficSelector::from_prefix(*address, *length)),
            _ => {}
        }
    }
    if inside.subnets.len() > MAX_SUBNETS {
        inside.subnets.clear();
    }
    (!inside.addresses.is_empty()).then_some(inside)
}

/// What of one end's selectors is left once it has these addresses.
pub(crate) fn confine(
    selectors: &[TrafficSelector],
    addresses: Option<InnerAddresses>,
) -> Vec<TrafficSelector> {
    addresses.map_or_else(
        || selectors.to_vec(),
        |addresses| narrow(selectors, &addresses.selectors()),
    )
}

/// What is behind us is told as well, for who makes routes of it.
fn reply(lent: InnerAddresses, pool: &Pool, local: &[TrafficSelector]) -> Payload {
    let has = |address: IpAddr| lent.of(address.is_ipv4()).is_some();
    let addresses = lent.iter().map(|address| Attribute::Address {
        is_ipv4: address.is_ipv4(),
        value: Some((address, if address.is_ipv4() { 32 } else { 128 })),
    });
    let servers = pool.dns.iter().filter(|server| has(**server));
    let servers = servers.map(|server| Attribute::Dns {
        is_ipv4: server.is_ipv4(),
        value: Some(*server),
    });
    let behind = match pool.subnets.as_slice() {
        [] => local,
        subnets => subnets,
    };
    let subnets = behind.iter().flat_map(TrafficSelector::prefixes);
    let subnets = subnets.filter(|(address, _)| has(*address));
    let subnets = subnets.map(|prefix| Attribute::Subnet {
        is_ipv4: prefix.0.is_ipv4(),
        value: Some(prefix),
    });
    Payload::Configuration(Configuration {
        kind: ConfigurationType::CFG_REPLY,
        attributes: addresses.chain(servers).chain(subnets).collect(),
    })
}

fn read(message: &Message, kind: ConfigurationType) -> Option<&Configuration> {
    find(message, |payload| match payload {
        Payload::Configuration(configuration) if configuration.kind == kind => Some(configuration),
        _ => None,
    })
}

fn asks_for_address(asked: &Configuration, is_ipv4: bool) -> bool {
    asked.attributes.iter().any(|attribute| {
        matches!(attribute, Attribute::Address { is_ipv4: family, .. } if *family == is_ipv4)
    })
}

/// Whether one host can have it: a peer could otherwise make us our own neighbour.
fn is_a_hosts(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let nobodys = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !(broadcast || link_local || nobodys)
}
