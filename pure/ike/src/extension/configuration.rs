//! The Configuration payload in IKE_AUTH (RFC 7296 sections 2.19 and 3.15): the initiator asks for
//! addresses inside the tunnel, the responder lends them out of a pool.
//!
//! The address is not asked for by its value: an identity gets the one it had anyway, and what an
//! initiator says about addresses is not to be believed. The tunnel carries what was lent and no
//! other address of the initiator's.

use crate::config::Addressing;
use crate::event::Refusal;
use crate::exchange::find;
use crate::pool::{Pool, Pools};
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

/// What a peer lends us and tells us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Our addresses.
    pub addresses: InnerAddresses,
    /// Its name servers.
    pub dns: Vec<IpAddr>,
    /// What it says it protects. Empty: whatever the tunnel carries.
    pub subnets: Vec<TrafficSelector>,
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

/// Our selectors are told as well, for who makes routes of them.
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
    let subnets = local.iter().flat_map(TrafficSelector::prefixes);
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
