//! MOBIKE-X: what two ends of ours add to MOBIKE (RFC 4555), in private numbers.
//!
//! MOBIKE_SUPPORTED then has data: the version parameter of draft-mglt-ipsecme-mobikev2, with a
//! private version. "The notification data field MUST be left empty (zero-length) when sending, and
//! its contents (if any) MUST be ignored when this notification is received" (RFC 4555 section
//! 4.2.1), so the data is sent only to a peer whose vendor ID was received, and read only from such
//! a peer. The responder answers with data only to data. All other peers are served as RFC 4555
//! says.
//!
//! ```text
//!  MOBIKE_SUPPORTED  Type (1) = 1 | Versions (1) | of each: Version (1) | padding
//!  Version           0xF0: MOBIKE-X, 0xF1: selectors for the traffic of live paths
//! ```
//!
//! IP_PARAMETER names an address and its role. It selects the path or the addresses that a request
//! is about, and says what the sender believes. What is installed is the address in the header,
//! after the check of return routability.

use crate::exchange::{find_notify, notifies, notify};
use std::net::IpAddr;
use wire::ike::{IpParameter, IpRole, Message, NotifyType, Payload};

/// Data of MOBIKE_SUPPORTED: two versions, which need no padding.
const CAPABILITY: [u8; 4] = [VERSIONS, 2, MOBIKE_X, PATH_TRAFFIC];

/// Type of the parameter that lists versions.
const VERSIONS: u8 = 1;

/// Private versions: MOBIKE-X, and what `path_traffic.rs` adds to it.
const MOBIKE_X: u8 = 0xf0;
const PATH_TRAFFIC: u8 = 0xf1;

/// Returns the data of our MOBIKE_SUPPORTED. `extended`: for a peer that may understand it.
pub(crate) fn capability(extended: bool) -> Vec<u8> {
    match extended {
        true => CAPABILITY.to_vec(),
        false => Vec::new(),
    }
}

/// Returns true if an IKE_AUTH message of a peer announces MOBIKE-X. `private`: the peer sent our
/// vendor ID.
pub(crate) fn is_announced(message: &Message, private: bool) -> bool {
    announces(message, private, MOBIKE_X)
}

/// Returns true if an IKE_AUTH message of a peer announces MOBIKE-X with selectors for the traffic
/// of live paths.
pub(crate) fn has_path_traffic(message: &Message, private: bool) -> bool {
    is_announced(message, private) && announces(message, private, PATH_TRAFFIC)
}

fn announces(message: &Message, private: bool, version: u8) -> bool {
    let supported = find_notify(message, NotifyType::MOBIKE_SUPPORTED);
    supported.is_some_and(|supported| private && has_version(&supported.data, version))
}

fn has_version(data: &[u8], version: u8) -> bool {
    let Some((&[VERSIONS, count], rest)) = data.split_first_chunk::<2>() else {
        return false;
    };
    let listed = rest.split_at_checked(count.into());
    listed.is_some_and(|(versions, padding)| {
        let is_padded = data.len().is_multiple_of(4) && padding.len() < 4;
        is_padded && padding.iter().all(|octet| *octet == 0) && versions.contains(&version)
    })
}

/// The addresses that a request names by IP_PARAMETER.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The sender's address.
    pub(crate) sender: Option<IpAddr>,
    /// The receiver's address.
    pub(crate) receiver: Option<IpAddr>,
}

impl Named {
    /// Reads the addresses of a message. Of two with one role the first counts, and malformed ones
    /// do not count.
    pub(crate) fn read(message: &Message) -> Self {
        let mut named = Self::default();
        let parameters = notifies(message).filter(|said| said.kind == NotifyType::IP_PARAMETER);
        for parameter in parameters.filter_map(|said| IpParameter::decode(&said.data).ok()) {
            let place = match parameter.role {
                IpRole::Sender => &mut named.sender,
                IpRole::Receiver => &mut named.receiver,
            };
            place.get_or_insert(parameter.address);
        }
        named
    }

    /// Returns the notifies that name the addresses.
    pub(crate) fn payloads(self) -> Vec<Payload> {
        let all = [
            (IpRole::Sender, self.sender),
            (IpRole::Receiver, self.receiver),
        ];
        let named = all.into_iter().filter_map(|(role, address)| {
            let address = address?;
            let parameter = IpParameter { role, address };
            Some(notify(NotifyType::IP_PARAMETER, parameter.encode()))
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::informational;

    fn announcing(data: &[u8]) -> Message {
        informational(vec![notify(NotifyType::MOBIKE_SUPPORTED, data.to_vec())])
    }

    #[test]
    fn the_capability_counts_from_a_peer_with_our_vendor_id_alone() {
        let said = announcing(&capability(true));
        assert!(is_announced(&said, true));
        assert!(!is_announced(&said, false));
        assert!(!is_announced(&announcing(&capability(false)), true));
        assert!(!is_announced(&informational(Vec::new()), true));
        assert!(is_announced(&announcing(&[1, 2, 0x02, 0xf0]), true));
        assert!(has_path_traffic(&said, true));
        assert!(!has_path_traffic(&said, false));
        for without in [[1, 1, 0xf0, 0], [1, 2, 0x02, 0xf1]] {
            assert!(!has_path_traffic(&announcing(&without), true));
        }
        let all: Vec<_> = (0xf0..=0xf5).collect();
        assert!(is_announced(
            &announcing(&[&[1, 6][..], &all].concat()),
            true
        ));
    }

    #[test]
    fn other_data_of_mobike_supported_is_ignored() {
        let others: [&[u8]; 11] = [
            &[],
            &[1],
            &[1, 1],
            &[1, 1, 0xf0],
            &[2, 1, 0xf0, 0],
            &[1, 0, 0xf0, 0],
            &[1, 1, 1, 0],
            &[1, 1, 0xf0, 1],
            &[1, 255, 0xf0, 0],
            &[1, 1, 0xf0, 0, 0, 0, 0, 0],
            &[0xf0; 64],
        ];
        for data in others {
            assert!(!is_announced(&announcing(data), true), "{data:?}");
        }
    }

    #[test]
    fn the_first_address_of_each_role_counts() {
        let named = Named {
            sender: Some("192.0.2.1".parse().unwrap()),
            receiver: None,
        };
        let malformed = notify(NotifyType::IP_PARAMETER, vec![3, 4, 192]);
        let again = Named {
            sender: Some("198.51.100.1".parse().unwrap()),
            ..Named::default()
        };
        let said = [vec![malformed], named.payloads(), again.payloads()].concat();
        assert_eq!(Named::read(&informational(said)), named);
    }
}
