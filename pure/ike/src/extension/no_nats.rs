//! NO_NATS_ALLOWED (RFC 4555 section 4.2.6): an initiator forbids NATs on the path, with or without
//! MOBIKE.

use crate::exchange::{find_notify, notify};
use model::Path;
use std::net::IpAddr;
use wire::ike::{Message, NotifyType, Payload};

/// Returns true if a NAT translated a message whose sender forbids NATs (RFC 4555 section 3.9).
/// Over TCP the notify "SHOULD be ignored because TCP generally has no problems with NAT boxes"
/// (RFC 9329 section 7.1).
pub(crate) fn is_translated(request: &Message, arrived: Path) -> bool {
    find_notify(request, NotifyType::NO_NATS_ALLOWED)
        .filter(|_| !arrived.is_stream())
        .is_some_and(|sent| sent.data != both_ends(arrived.reversed()))
}

/// Returns the notify that forbids NATs on a path.
pub(crate) fn forbid(path: Path) -> Payload {
    notify(NotifyType::NO_NATS_ALLOWED, both_ends(path))
}

/// Returns addresses and ports in the format of section 4.2.6.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::informational;

    #[test]
    fn a_translated_message_is_told_by_both_ends_addresses_and_ports() {
        let path = Path::udp(
            "192.0.2.1:4500".parse().unwrap(),
            "192.0.2.2:4500".parse().unwrap(),
        );
        let sent = informational(vec![forbid(path)]);
        assert!(!is_translated(&sent, path.reversed()));
        let mut elsewhere = path.reversed();
        elsewhere.remote.set_port(24500);
        assert!(is_translated(&sent, elsewhere));
        assert!(!is_translated(&informational(Vec::new()), elsewhere));
    }
}
