//! The Configuration payload in IKE_AUTH (RFC 7296 sections 2.19 and 3.15): the initiator requests
//! inner addresses, and the responder leases them from a pool.
//!
//! The reply also carries name servers and the subnets behind the responder. Traffic selectors
//! determine what the tunnel *may* carry. What an initiator should send through it is a matter of
//! routes, so the engine passes the subnets to the caller, which installs the routes (section
//! 3.15.2).
//!
//! The initiator does not request a specific address: an identity gets its previous address anyway,
//! and the initiator's word about addresses does not count. The tunnel carries the leased addresses
//! and no others of the initiator.

use crate::config::Addressing;
use crate::exchange::find;
use crate::pool::{Families, Pool, Pools};
use crate::refusal::Refusal;
use crate::selectors::narrow;
use crypto::UnixTime;
use model::{Identity, IkeSaId, InnerAddresses, TrafficSelector};
use std::net::IpAddr;
use wire::ike::{
    Configuration, ConfigurationAttribute as Attribute, ConfigurationType, Message, NotifyType,
    Payload,
};

/// Maximum number of name servers accepted from a peer.
const MAX_SERVERS: usize = 4;

/// Maximum number of prefixes behind a peer, each of which becomes a route. Longer lists are
/// ignored.
pub(crate) const MAX_SUBNETS: usize = 256;

/// Inner addresses, name servers and subnets that a peer assigned us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Our addresses.
    pub addresses: InnerAddresses,
    /// Its name servers.
    pub dns: Vec<IpAddr>,
    /// Subnets behind the peer. Empty: not announced.
    pub subnets: Vec<TrafficSelector>,
    /// Selectors of the remote traffic that the tunnel carries.
    pub carried: Vec<TrafficSelector>,
}

impl Inside {
    /// Returns the networks behind the peer that are reachable through the tunnel: the parts of the
    /// subnets that the negotiated selectors contain. `None` if the peer announced no subnets, or
    /// too many.
    pub fn reachable(&self) -> Option<Vec<TrafficSelector>> {
        let subnets = self.subnets.iter();
        let parts: Vec<_> = subnets.flat_map(|subnet| self.parts(subnet)).collect();
        let prefixes = parts.iter().flat_map(TrafficSelector::prefixes);
        let believed = prefixes.take(MAX_SUBNETS + 1).count() <= MAX_SUBNETS;
        (believed && !self.subnets.is_empty()).then_some(parts)
    }

    /// Returns the subnets that the tunnel does not carry as a whole: "ones that need one or more
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

/// Returns the payload by which an initiator requests addresses in IKE_AUTH, of the families of its
/// selectors.
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

/// An initiator that requests addresses.
pub(crate) struct Lessee<'a> {
    /// The identity that it proves, or another one for an additional tunnel.
    pub(crate) identity: &'a Identity,
    pub(crate) sa: IkeSaId,
    pub(crate) lending: Lending,
}

/// Addresses that an initiator may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lending {
    /// Any free ones, which are leased to it.
    Any,
    /// Those that its identity has. Nothing changes, as it has not been authenticated yet.
    Held,
}

/// Leases addresses to an initiator. Returns the reply and the addresses, or `None` if its
/// addresses are not ours to lease.
pub(crate) fn answer(
    addressing: &Addressing,
    local: &[TrafficSelector],
    request: &Message,
    lessee: Lessee<'_>,
    pools: &mut Pools,
    today: UnixTime,
) -> Result<Option<(Payload, InnerAddresses)>, (NotifyType, Refusal)> {
    let pool = match addressing {
        Addressing::Fixed => return Ok(None),
        // Only an initiator requests addresses, and we are the responder here.
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
    let wanted = Families {
        ipv4: asks_for_address(asked, true),
        ipv6: asks_for_address(asked, false),
    };
    let lent = match lessee.lending {
        Lending::Any => pools.lend(pool, lessee.identity, wanted, lessee.sa, today),
        Lending::Held => pools.held(pool, lessee.identity, wanted),
    };
    let lent = lent.ok_or_else(|| {
        let pool = pool.name.clone();
        (
            NotifyType::INTERNAL_ADDRESS_FAILURE,
            Refusal::NoAddressLeft { pool },
        )
    })?;
    Ok(Some((reply(lent, pool, local), lent)))
}

/// Reads the responder's reply. Returns `None` without a usable address.
pub(crate) fn read_reply(response: &Message) -> Option<Inside> {
    let reply = read(response, ConfigurationType::CFG_REPLY)?;
    let mut inside = Inside::default();
    for attribute in &reply.attributes {
        match attribute {
            Attribute::Address {
                is_ipv4,
                value: Some((address, _)),
            } if inside.addresses.address(*is_ipv4).is_none() && is_a_hosts(*address) => {
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

/// Confines the selectors of one end to its inner addresses.
pub(crate) fn confine(
    selectors: &[TrafficSelector],
    addresses: Option<InnerAddresses>,
) -> Vec<TrafficSelector> {
    addresses.map_or_else(
        || selectors.to_vec(),
        |addresses| narrow(selectors, &addresses.selectors()),
    )
}

/// Returns the reply. It announces the subnets behind us for the initiator's routes.
fn reply(lent: InnerAddresses, pool: &Pool, local: &[TrafficSelector]) -> Payload {
    let has = |address: IpAddr| lent.address(address.is_ipv4()).is_some();
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

/// Returns true if the address can belong to a single host. Otherwise a peer could assign us an
/// address of the local link.
fn is_a_hosts(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let nobodys = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !(broadcast || link_local || nobodys)
}
