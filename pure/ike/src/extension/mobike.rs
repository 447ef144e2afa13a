//! MOBIKE (RFC 4555): the messages by which an IKE SA and its children move to other addresses.
//!
//! Both ends say in IKE_AUTH that they can (section 3.2), and at which addresses they are to be
//! found besides (section 3.4). From then on the original initiator decides: an INFORMATIONAL with
//! UPDATE_SA_ADDRESSES means "from here on I am where this packet comes from" (section 3.5). Nothing
//! in it names an address, so NATs are passed; and as nothing authenticates an IP header, whoever is
//! told so sends a COOKIE2 there before anything else, which only somebody who has the keys *and*
//! receives at that address can bring back (section 3.7). What is done about all this is in
//! `sa/moving.rs`.

use crate::exchange::{find_notify, notifies, notify};
use crypto::{Rng, equal};
use model::Path;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::ike::{Message, NotifyType, Payload};

/// So many addresses of a peer are kept; a list has no bound of its own.
const MOST: usize = 8;

/// What a COOKIE2 may have (section 4.2.5).
const COOKIE_LEN: std::ops::RangeInclusive<usize> = 8..=64;

/// An unpredictable COOKIE2 of ours.
pub(crate) type Cookie = [u8; 16];

/// What is known of an IKE SA whose ends both can move it.
#[derive(Clone, Debug)]
pub(crate) struct Mobike {
    /// Whether the decisions are ours: we are "the party that initiated the IKE_SA", whoever rekeyed
    /// it since.
    pub(crate) decides: bool,
    /// The peer's addresses besides the one in use.
    pub(crate) addresses: Vec<IpAddr>,
    /// Initiator: UPDATE_SA_ADDRESSES is to be sent. Responder: the new path is to be checked.
    pub(crate) pending: bool,
    /// Our address as the peer sees it, hashed (section 3.8).
    pub(crate) seen: Option<Vec<u8>>,
    /// Our owner was told that the path is silent.
    pub(crate) silent: bool,
    /// How often an update met a NAT that must not be there.
    pub(crate) translated: u32,
    /// Older requests do not move it any more.
    pub(crate) moves_from: u32,
    /// Nor do older ones list addresses.
    pub(crate) lists_from: u32,
}

impl Mobike {
    /// What a peer that can do it said in IKE_AUTH. `None`: it cannot.
    pub(crate) fn read(message: &Message, decides: bool) -> Option<Self> {
        find_notify(message, NotifyType::MOBIKE_SUPPORTED)?;
        Some(Self {
            decides,
            addresses: addresses(message).unwrap_or_default(),
            pending: false,
            seen: None,
            silent: false,
            translated: 0,
            moves_from: 0,
            lists_from: 0,
        })
    }

    /// Whether a request moves the SA: it says so, and none that does is newer. Requests may "be
    /// received out of order" (section 3.5).
    pub(crate) fn is_moved(&mut self, request: &Message) -> bool {
        moves(request) && is_newest(request, &mut self.moves_from)
    }

    /// The addresses that a request lists; none that lists some is newer (section 3.6).
    pub(crate) fn listed(&mut self, request: &Message) -> Option<Vec<IpAddr>> {
        addresses(request).filter(|_| is_newest(request, &mut self.lists_from))
    }

    /// A successor of the IKE SA counts its requests from zero.
    pub(crate) const fn count_anew(&mut self) {
        (self.moves_from, self.lists_from) = (0, 0);
    }
}

fn is_newest(request: &Message, from: &mut u32) -> bool {
    let id = request.header.message_id;
    let newest = id >= *from;
    if newest {
        *from = id.saturating_add(1);
    }
    newest
}

/// What says in IKE_AUTH that we can do it, and where we are besides `used`.
pub(crate) fn supported(ours: &[IpAddr], used: IpAddr) -> Vec<Payload> {
    let others = ours.iter().filter(|address| **address != used);
    let others = others.map(|address| match address {
        IpAddr::V4(v4) => notify(NotifyType::ADDITIONAL_IP4_ADDRESS, v4.octets().to_vec()),
        IpAddr::V6(v6) => notify(NotifyType::ADDITIONAL_IP6_ADDRESS, v6.octets().to_vec()),
    });
    let supported = notify(NotifyType::MOBIKE_SUPPORTED, Vec::new());
    std::iter::once(supported).chain(others).collect()
}

/// The addresses a message lists, which replace those listed before. `None`: it speaks of none
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

/// Whether a request says that its sender is now where it came from.
pub(crate) fn moves(request: &Message) -> bool {
    find_notify(request, NotifyType::UPDATE_SA_ADDRESSES).is_some()
}

/// The payload of an update, without what protects it.
pub(crate) const fn update() -> Payload {
    notify(NotifyType::UPDATE_SA_ADDRESSES, Vec::new())
}

/// A fresh cookie, and the payload that carries it.
pub(crate) fn cookie(rng: &mut Rng) -> (Cookie, Payload) {
    let cookie: Cookie = rng.array();
    (cookie, cookie_payload(&cookie))
}

/// The payload that carries a cookie.
pub(crate) fn cookie_payload(cookie: &Cookie) -> Payload {
    notify(NotifyType::COOKIE2, cookie.to_vec())
}

/// The peer's own cookie, to be returned as it is.
pub(crate) fn echo(request: &Message) -> Option<Payload> {
    let theirs = find_notify(request, NotifyType::COOKIE2)?;
    let allowed = COOKIE_LEN.contains(&theirs.data.len());
    allowed.then(|| notify(NotifyType::COOKIE2, theirs.data.clone()))
}

/// Whether a response brings our cookie back.
pub(crate) fn is_returned(cookie: &Cookie, response: &Message) -> bool {
    find_notify(response, NotifyType::COOKIE2).is_some_and(|theirs| equal(&theirs.data, cookie))
}

/// Our address and port as the peer sees them, hashed with what it puts into its answers.
pub(crate) fn seen_as(response: &Message) -> Option<Vec<u8>> {
    let destination = find_notify(response, NotifyType::NAT_DETECTION_DESTINATION_IP)?;
    Some(destination.data.clone())
}

/// Whether a message passed a translator where its sender forbids them (section 3.9); in a stream that
/// "SHOULD be ignored because TCP generally has no problems with NAT boxes" (RFC 9329 section 7.1).
pub(crate) fn is_translated(request: &Message, arrived: Path) -> bool {
    find_notify(request, NotifyType::NO_NATS_ALLOWED)
        .filter(|_| !arrived.is_stream())
        .is_some_and(|sent| sent.data != both_ends(arrived.reversed()))
}

/// The payload that forbids translators on a path.
pub(crate) fn no_nats_allowed(path: Path) -> Payload {
    notify(NotifyType::NO_NATS_ALLOWED, both_ends(path))
}

/// Addresses and ports as section 4.2.6 has them.
fn both_ends(path: Path) -> Vec<u8> {
    let octets = |address| match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let (from, to) = (path.local, path.remote);
    [
        octets(from.ip()),
        octets(to.ip()),
        from.port().to_be_bytes().to_vec(),
        to.port().to_be_bytes().to_vec(),
    ]
    .concat()
}

/// Whether packets can be sent there at all, to one host.
const fn is_somebodys(address: &IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ike::{ExchangeType, Flags, Header, VERSION_2};

    fn message(payloads: Vec<Payload>) -> Message {
        let header = Header {
            spi_i: 1,
            spi_r: 2,
            version: VERSION_2,
            exchange: ExchangeType::INFORMATIONAL,
            flags: Flags::default(),
            message_id: 0,
        };
        Message { header, payloads }
    }

    #[test]
    fn a_list_of_addresses_is_the_whole_list_and_bounded() {
        let used: IpAddr = "192.0.2.1".parse().unwrap();
        let others: Vec<IpAddr> = ["198.51.100.1", "2001:db8::1"]
            .map(|a| a.parse().unwrap())
            .into();
        let ours = [&others[..], &[used]].concat();
        assert_eq!(addresses(&message(supported(&ours, used))), Some(others));
        assert_eq!(addresses(&message(supported(&[used], used))), None);
        let none = notify(NotifyType::NO_ADDITIONAL_ADDRESSES, Vec::new());
        assert_eq!(addresses(&message(vec![none])), Some(Vec::new()));
        let bomb = (0..200).map(|i| notify(NotifyType::ADDITIONAL_IP4_ADDRESS, vec![10, 0, 0, i]));
        let kept = addresses(&message(bomb.collect())).unwrap();
        assert_eq!(kept.len(), MOST);
    }

    #[test]
    fn addresses_of_nobody_or_of_everybody_are_not_kept() {
        let nobody = [[0; 4], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]];
        let listed = nobody.map(|a| notify(NotifyType::ADDITIONAL_IP4_ADDRESS, a.to_vec()));
        assert_eq!(addresses(&message(listed.into())), None);
        let short = notify(NotifyType::ADDITIONAL_IP6_ADDRESS, vec![1; 4]);
        assert_eq!(addresses(&message(vec![short])), None);
    }

    #[test]
    fn a_cookie_of_a_length_that_must_not_be_is_not_returned() {
        let echoed = |len| echo(&message(vec![notify(NotifyType::COOKIE2, vec![7; len])]));
        assert_eq!(echoed(8), Some(notify(NotifyType::COOKIE2, vec![7; 8])));
        assert!(echoed(64).is_some());
        assert_eq!((echoed(7), echoed(65)), (None, None));
    }

    #[test]
    fn a_translated_message_is_told_by_both_ends_addresses_and_ports() {
        let path = Path::udp(
            "192.0.2.1:4500".parse().unwrap(),
            "192.0.2.2:4500".parse().unwrap(),
        );
        let sent = message(vec![no_nats_allowed(path)]);
        assert!(!is_translated(&sent, path.reversed()));
        let mut elsewhere = path.reversed();
        elsewhere.remote.set_port(24500);
        assert!(is_translated(&sent, elsewhere));
        assert!(!is_translated(&message(Vec::new()), elsewhere));
    }
}
