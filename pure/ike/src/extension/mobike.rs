//! MOBIKE (RFC 4555): the messages that move an IKE SA and its child SAs to other addresses.
//!
//! Both ends announce support in IKE_AUTH (section 3.2), with their additional addresses (section
//! 3.4). From then on the original initiator chooses the path: an INFORMATIONAL request with
//! UPDATE_SA_ADDRESSES moves the SA to the source address of that packet (section 3.5). The request
//! contains no address, so it works through NATs. IP headers are not authenticated, so the receiver
//! first sends a COOKIE2 to the new address. Only a peer that holds the keys *and* receives at that
//! address can return it (section 3.7). `task/mobike.rs` implements the moves.

use super::mobikex;
use crate::config::Peer;
use crate::exchange::{find_notify, notifies, notify};
use model::Mode;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::ike::{Message, NotifyType, Payload};

/// Maximum number of a peer's addresses that are kept. The protocol has no bound.
const MOST: usize = 8;

/// MOBIKE state of an IKE SA, if both ends support MOBIKE.
#[derive(Clone, Debug)]
pub(crate) struct Mobike {
    /// True if we choose the path: we are "the party that initiated the IKE_SA", regardless of
    /// which end has rekeyed it since.
    pub(crate) decides: bool,
    /// The peer's additional addresses.
    pub(crate) addresses: Vec<IpAddr>,
    /// Initiator: UPDATE_SA_ADDRESSES has to be sent. Responder: the new path has to be checked.
    pub(crate) pending: bool,
    /// Hash of our address and port as the peer sees them (section 3.8).
    pub(crate) seen: Option<Vec<u8>>,
    /// True if the engine has reported that the path is silent.
    pub(crate) silent: bool,
    /// Number of updates that met a NAT although NATs are forbidden.
    pub(crate) translated: u32,
    /// Message ID from which on requests may move the SA; older requests may not.
    pub(crate) moves_from: u32,
    /// Message ID from which on requests may list addresses; older requests may not.
    pub(crate) lists_from: u32,
    /// True if both ends support MOBIKE-X.
    pub(crate) extended: bool,
    /// True if both ends support selectors for the traffic of live paths.
    pub(crate) path_selectors: bool,
}

impl Mobike {
    /// Reads the state from a peer's IKE_AUTH message. `None`: the peer does not support MOBIKE, or
    /// we do not allow it. `private`: the peer sent our vendor ID.
    pub(crate) fn read(
        peer: &Peer,
        message: &Message,
        decides: bool,
        private: bool,
    ) -> Option<Self> {
        let extended = mobikex::is_announced(message, private);
        let supported = find_notify(message, NotifyType::MOBIKE_SUPPORTED);
        supported.filter(|_| is_allowed(peer, extended))?;
        Some(Self {
            decides,
            addresses: addresses(message).unwrap_or_default(),
            pending: false,
            seen: None,
            silent: false,
            translated: 0,
            moves_from: 0,
            lists_from: 0,
            extended,
            path_selectors: mobikex::has_path_traffic(message, private),
        })
    }

    /// Returns true if a request moves the SA and is newer than all others that did. Requests may
    /// "be received out of order" (section 3.5).
    pub(crate) fn is_moved(&mut self, request: &Message) -> bool {
        moves(request) && is_newest(request, &mut self.moves_from)
    }

    /// Returns the addresses that a request lists, if it is newer than all others that did (section
    /// 3.6).
    pub(crate) fn listed(&mut self, request: &Message) -> Option<Vec<IpAddr>> {
        addresses(request).filter(|_| is_newest(request, &mut self.lists_from))
    }

    /// Resets the message IDs, because a successor of the IKE SA numbers its requests from zero.
    pub(crate) const fn count_anew(&mut self) {
        (self.moves_from, self.lists_from) = (0, 0);
    }
}

/// Returns true if the IKE SA of a peer may move with all child SAs. MOBIKE "supports only tunnel
/// mode IPsec SAs" (RFC 4555 section 1.2); BEET is a tunnel except for the packet format. With
/// MOBIKE-X, transport mode moves too.
pub(crate) fn is_allowed(peer: &Peer, extended: bool) -> bool {
    let mut policies = peer.policies();
    let moves = |mode| extended || mode != Mode::Transport;
    peer.features.mobike && policies.all(|policy| moves(policy.mode))
}

fn is_newest(request: &Message, from: &mut u32) -> bool {
    let id = request.header.message_id;
    let newest = id >= *from;
    if newest {
        *from = id.saturating_add(1);
    }
    newest
}

/// Returns the notifies for IKE_AUTH that announce support and our addresses other than `used`.
/// `extended`: MOBIKE-X is announced too.
pub(crate) fn supported(ours: &[IpAddr], used: IpAddr, extended: bool) -> Vec<Payload> {
    let others = ours.iter().filter(|address| **address != used);
    let others = others.map(|address| match address {
        IpAddr::V4(v4) => notify(NotifyType::ADDITIONAL_IP4_ADDRESS, v4.octets().to_vec()),
        IpAddr::V6(v6) => notify(NotifyType::ADDITIONAL_IP6_ADDRESS, v6.octets().to_vec()),
    });
    let supported = notify(NotifyType::MOBIKE_SUPPORTED, mobikex::capability(extended));
    std::iter::once(supported).chain(others).collect()
}

/// Returns the addresses that a message lists, which replace earlier ones. `None` if it has no list
/// (section 3.6).
pub(crate) fn addresses(message: &Message) -> Option<Vec<IpAddr>> {
    let listed = notifies(message).filter_map(|notify| match notify.kind {
        NotifyType::ADDITIONAL_IP4_ADDRESS => {
            let octets: [u8; 4] = notify.data.as_slice().try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        }
        NotifyType::ADDITIONAL_IP6_ADDRESS => {
            let octets: [u8; 16] = notify.data.as_slice().try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
        _ => None,
    });
    let mut addresses = Vec::new();
    for address in listed.filter(is_somebodys) {
        if addresses.len() < MOST && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let none = find_notify(message, NotifyType::NO_ADDITIONAL_ADDRESSES).is_some();
    (none || !addresses.is_empty()).then_some(addresses)
}

/// Returns true if a request moves the SA to its source address.
pub(crate) fn moves(request: &Message) -> bool {
    find_notify(request, NotifyType::UPDATE_SA_ADDRESSES).is_some()
}

/// Returns the payload of an update, without those that protect it.
pub(crate) const fn update() -> Payload {
    notify(NotifyType::UPDATE_SA_ADDRESSES, Vec::new())
}

/// Returns the hash of our address and port as the peer sees them, from its response.
pub(crate) fn seen_as(response: &Message) -> Option<Vec<u8>> {
    let destination = find_notify(response, NotifyType::NAT_DETECTION_DESTINATION_IP)?;
    Some(destination.data.clone())
}

/// Returns true if packets can be sent to the address, and reach a single host.
const fn is_somebodys(address: &IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::informational;

    // Weakness: 81
    #[test]
    fn a_list_of_addresses_is_the_whole_list_and_bounded() {
        let used: IpAddr = "192.0.2.1".parse().unwrap();
        let others: Vec<IpAddr> = ["198.51.100.1", "2001:db8::1"]
            .map(|a| a.parse().unwrap())
            .into();
        let ours = [&others[..], &[used]].concat();
        assert_eq!(
            addresses(&informational(supported(&ours, used, false))),
            Some(others)
        );
        assert_eq!(
            addresses(&informational(supported(&[used], used, true))),
            None
        );
        let none = notify(NotifyType::NO_ADDITIONAL_ADDRESSES, Vec::new());
        assert_eq!(addresses(&informational(vec![none])), Some(Vec::new()));
        let bomb = (0..200).map(|i| notify(NotifyType::ADDITIONAL_IP4_ADDRESS, vec![10, 0, 0, i]));
        let kept = addresses(&informational(bomb.collect())).unwrap();
        assert_eq!(kept.len(), MOST);
    }

    #[test]
    fn addresses_of_nobody_or_of_everybody_are_not_kept() {
        let nobody = [[0; 4], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]];
        let listed = nobody.map(|a| notify(NotifyType::ADDITIONAL_IP4_ADDRESS, a.to_vec()));
        assert_eq!(addresses(&informational(listed.into())), None);
        let short = notify(NotifyType::ADDITIONAL_IP6_ADDRESS, vec![1; 4]);
        assert_eq!(addresses(&informational(vec![short])), None);
    }
}
