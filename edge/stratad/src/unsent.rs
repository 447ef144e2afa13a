//! IKE requests that this host could not send: reasons for a peer's silence that are here, and not
//! at the peer.

use control::Trouble;
use model::Instant;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;
use wire::esp::Datagram;
use wire::ike::Header;

/// Time after which a failure no longer counts. A peer that should be up is tried more often.
const SPAN: Duration = Duration::from_secs(120);

/// Most destinations to remember. Requests go to configured and authenticated peers only.
const MOST: usize = 1 << 12;

/// The destinations to which the last request could not be sent.
#[derive(Debug, Default)]
pub struct Unsent(BTreeMap<IpAddr, Obstacle>);

#[derive(Debug)]
struct Obstacle {
    since: Instant,
    last: Instant,
    what: String,
    fix: String,
}

impl Unsent {
    /// Records the result of sending an IKE message. Responses do not count: they may go to an
    /// address that does not exist.
    pub fn note(&mut self, to: IpAddr, payload: &[u8], sent: &io::Result<()>, now: Instant) {
        let Err(error) = sent else {
            if self.0.remove(&to).is_some() {
                tracing::info!("messages can be sent to {to} again");
            }
            return;
        };
        if !is_request(payload) {
            return;
        }
        if self.0.len() >= MOST && !self.0.contains_key(&to) {
            self.0.retain(|_, obstacle| obstacle.counts(now));
            if self.0.len() >= MOST {
                return;
            }
        }
        let what = format!("nothing can be sent to {to}: {}", reason(error));
        let before = self.0.get(&to).filter(|before| before.counts(now));
        if before.is_none_or(|before| before.what != what) {
            tracing::error!("{what}");
        }
        let since = before.map_or(now, |before| before.since);
        let fix = fix(error, to);
        let obstacle = Obstacle {
            since,
            last: now,
            what,
            fix,
        };
        self.0.insert(to, obstacle);
    }

    /// Returns the reason for each destination.
    pub fn list(&self, now: Instant) -> Vec<Trouble> {
        let counts = self.0.iter().filter(|(_, obstacle)| obstacle.counts(now));
        let trouble = |(to, obstacle): (&IpAddr, &Obstacle)| Trouble {
            task: "send".to_owned(),
            remote: Some(*to),
            what: obstacle.what.clone(),
            fix: obstacle.fix.clone(),
            seconds: Some(now.since(obstacle.since).as_secs()),
        };
        counts.map(trouble).collect()
    }
}

impl Obstacle {
    fn counts(&self, now: Instant) -> bool {
        now.since(self.last) < SPAN
    }
}

fn is_request(payload: &[u8]) -> bool {
    let message = match Datagram::parse(payload) {
        Datagram::Ike(message) => message,
        _ => payload,
    };
    Header::peek(message).is_ok_and(|header| !header.flags.response)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
            format!("this host has no route ({error})")
        }
        ErrorKind::PermissionDenied => format!("a firewall of this host forbids it ({error})"),
        _ if os::is_gone(error) => format!("its interface does not exist ({error})"),
        _ => error.to_string(),
    }
}

fn fix(error: &io::Error, to: IpAddr) -> String {
    match error.kind() {
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
            format!("connect this host to a network; `ip route get {to}` has to show a route")
        }
        ErrorKind::PermissionDenied => {
            format!("allow UDP to {to} in this host's firewall: `nft list ruleset`")
        }
        ErrorKind::AddrNotAvailable => {
            "list an address of this host and of the peer's family in `addresses` of [listen]"
                .to_owned()
        }
        _ => format!("check `ip route get {to}`, then `strata doctor`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::lines_of;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 77));

    fn message(response: bool) -> Vec<u8> {
        let mut octets = vec![0; 28];
        octets[0] = 1;
        octets[17..20].copy_from_slice(&[0x20, 34, if response { 0x20 } else { 0x08 }]);
        octets[27] = 28;
        octets
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    fn no_route() -> io::Result<()> {
        Err(ErrorKind::NetworkUnreachable.into())
    }

    // Weakness: 155
    #[test]
    fn a_request_without_a_route_is_told_once_until_one_is_sent() {
        let lines = lines_of(|| {
            let mut unsent = Unsent::default();
            for second in 0..100 {
                unsent.note(PEER, &message(false), &no_route(), at(second));
            }
            let [trouble] = &unsent.list(at(100))[..] else {
                panic!("there is one");
            };
            assert_eq!((&trouble.task[..], trouble.seconds), ("send", Some(100)));
            assert_eq!(trouble.remote, Some(PEER));
            assert!(trouble.what.contains("this host has no route"));
            assert!(trouble.fix.contains("`ip route get 192.0.2.77`"));
            unsent.note(PEER, &message(false), &Ok(()), at(101));
            assert!(unsent.list(at(101)).is_empty());
        });
        assert_eq!(lines.len(), 2, "{lines:?}");
    }

    #[test]
    fn a_firewall_of_this_host_is_named() {
        let mut unsent = Unsent::default();
        let denied = Err(ErrorKind::PermissionDenied.into());
        unsent.note(PEER, &message(false), &denied, at(0));
        let shown = unsent.list(at(0));
        assert!(shown[0].what.contains("a firewall of this host"));
    }

    // Weakness: 155
    #[test]
    fn answers_to_addresses_that_do_not_exist_leave_nothing() {
        let mut unsent = Unsent::default();
        unsent.note(PEER, &message(true), &no_route(), at(0));
        assert!(unsent.list(at(0)).is_empty());
    }

    #[test]
    fn a_destination_that_nothing_is_sent_to_any_more_is_no_failure() {
        let mut unsent = Unsent::default();
        unsent.note(PEER, &message(false), &no_route(), at(0));
        assert_eq!(unsent.list(at(119)).len(), 1);
        assert!(unsent.list(at(120)).is_empty());
    }

    #[test]
    fn few_destinations_are_remembered() {
        let mut unsent = Unsent::default();
        for number in 0..10_000_u32 {
            let to = IpAddr::V4(number.into());
            unsent.note(to, &message(false), &no_route(), at(0));
        }
        assert_eq!(unsent.0.len(), MOST);
    }
}
