//! Live paths: several paths to one peer that carry packets at the same time, between two ends with
//! MOBIKE-X (DESIGN section 6).
//!
//! The IKE SA has one path, and so have its child SAs. Each further path has one child SA of its
//! own for the traffic of the first one, with keys, sequence numbers and a window of its own. The
//! original initiator adds it by CREATE_CHILD_SA, which is sent on the path that it is about:
//!
//! ```text
//! request   N(ADD_SA_ADDRESS: number), N(IP_PARAMETER: sender, receiver), SA, Ni, [KEi,] TSi, TSr
//! response  SA, Nr, [KEr,] TSi, TSr          accepted; a check of the path follows
//!           NO_ADDITIONAL_SAS                this end allows no path with this number, or no more
//!                                            child SAs
//!           UNACCEPTABLE_ADDRESSES           not that address
//!           UNEXPECTED_NAT_DETECTED          a NAT, where one end forbids NATs
//! removal   INFORMATIONAL: D(SPI), N(REMOVE_SA_ADDRESS: number), N(IP_PARAMETER: sender, receiver)
//! ```
//!
//! IP_PARAMETER says what the sender believes. The path is the one on which the request arrived. A
//! path without a number that both ends know could not be removed after a rekey, which gives it
//! another SPI.
//!
//! The engine treats these child SAs like those with a table of their own, under names that no
//! table can have. The caller decides which paths exist ([`crate::Engine::add_path`]), and `esp`
//! chooses the SA of each packet.

use super::mobikex::Named;
use crate::exchange::{find_notify, notify};
use model::{MOST_PATHS, Path};
use wire::ike::{Message, NotifyType, Payload};

/// Names of the child SAs on further paths. The path of the IKE SA is the first.
const NAMES: [&str; MOST_PATHS as usize - 1] = ["path 2", "path 3", "path 4"];

/// Returns the number of the path that a child SA belongs to, if that is not the path of the IKE
/// SA.
pub fn live_path(name: Option<&str>) -> Option<u8> {
    let place = NAMES.iter().position(|known| name == Some(known))?;
    u8::try_from(place + 2).ok()
}

/// Returns the name of the child SA on a further path.
pub(crate) fn name(number: u8) -> Option<&'static str> {
    let place = usize::from(number).checked_sub(2)?;
    NAMES.get(place).copied()
}

/// Returns the names of the child SAs on further paths, if there may be this many paths.
pub(crate) fn names(paths: u8) -> impl Iterator<Item = &'static str> {
    let more = usize::from(paths.saturating_sub(1));
    NAMES.into_iter().take(more)
}

/// Returns the notifies that add a path.
pub(crate) fn add(number: u8, path: Path) -> Vec<Payload> {
    about(NotifyType::ADD_SA_ADDRESS, number, path)
}

/// Returns the notifies that remove a path.
pub(crate) fn remove(number: u8, path: Path) -> Vec<Payload> {
    about(NotifyType::REMOVE_SA_ADDRESS, number, path)
}

fn about(kind: NotifyType, number: u8, path: Path) -> Vec<Payload> {
    let named = Named {
        sender: Some(path.local.ip()),
        receiver: Some(path.remote.ip()),
    };
    let said = notify(kind, vec![number]);
    std::iter::once(said).chain(named.payloads()).collect()
}

/// Returns the number of the path that a request adds. Zero, which no path has, if the number is
/// malformed.
pub(crate) fn added(request: &Message) -> Option<u8> {
    number(request, NotifyType::ADD_SA_ADDRESS)
}

/// Returns the number of the path that a request removes.
pub(crate) fn removed(request: &Message) -> Option<u8> {
    number(request, NotifyType::REMOVE_SA_ADDRESS)
}

/// Returns the number of the path that a request is about by a notify of this type.
pub(super) fn number(request: &Message, kind: NotifyType) -> Option<u8> {
    let said = find_notify(request, kind)?;
    match said.data[..] {
        [number] => Some(number),
        _ => Some(0),
    }
}

/// Returns true if a request that adds a path names the addresses between which it arrived: there
/// is no NAT.
pub(crate) fn is_as_named(request: &Message, arrived: Path) -> bool {
    let named = Named::read(request);
    let seen = (Some(arrived.remote.ip()), Some(arrived.local.ip()));
    (named.sender, named.receiver) == seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::informational;

    fn path() -> Path {
        Path::udp(
            "192.0.2.1:4500".parse().unwrap(),
            "198.51.100.1:4500".parse().unwrap(),
        )
    }

    #[test]
    fn every_further_path_has_a_number_and_a_name() {
        let numbers: Vec<_> = names(4).map(|name| live_path(Some(name))).collect();
        assert_eq!(numbers, [Some(2), Some(3), Some(4)]);
        assert_eq!(names(1).count(), 0);
        for number in 2..=4 {
            assert_eq!(live_path(name(number)), Some(number));
        }
        for number in [0, 1, 5, u8::MAX] {
            assert_eq!(name(number), None);
        }
        for other in [
            None,
            Some("path"),
            Some("path 1"),
            Some("#2"),
            Some("voice"),
        ] {
            assert_eq!(live_path(other), None);
        }
    }

    #[test]
    fn a_request_names_its_path_and_the_receiver_sees_a_nat() {
        let said = informational(add(2, path()));
        assert_eq!((added(&said), removed(&said)), (Some(2), None));
        assert!(is_as_named(&said, path().reversed()));
        let mut translated = path().reversed();
        translated.remote = "203.0.113.9:61000".parse().unwrap();
        assert!(!is_as_named(&said, translated));
        let gone = informational(remove(3, path()));
        assert_eq!((added(&gone), removed(&gone)), (None, Some(3)));
    }

    #[test]
    fn a_malformed_number_is_that_of_no_path() {
        for data in [&[][..], &[2, 2], &[0; 64]] {
            let said = informational(vec![notify(NotifyType::ADD_SA_ADDRESS, data.to_vec())]);
            assert_eq!(added(&said), Some(0));
            assert!(!is_as_named(&said, path()));
        }
        assert_eq!(added(&informational(Vec::new())), None);
    }
}
