//! Rates of what peers can cause: redirections of us, and datagrams to addresses that are not
//! proved.

use crate::refusal::Unfollowed;
use model::{Instant, PeerId, site_of};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Maximum number of redirections by a peer and the gateways it redirected us to (RFC 5685 section
/// 7: MAX_REDIRECTS) ...
const MOST_REDIRECTS: usize = 5;

/// ... within this time (REDIRECT_LOOP_DETECT_PERIOD).
const PERIOD: Duration = Duration::from_secs(300);

/// Maximum number of checks of new addresses per second.
const CHECKS: u32 = 1024;

/// The same limit for the addresses of one network.
const CHECKS_PER_NETWORK: u32 = 64;

/// The same limit for the messages of one peer, whose source addresses may be forged. It leaves
/// checks to other peers.
const CHECKS_PER_PEER: u32 = 4;

/// Times at which peers redirected us.
#[derive(Default)]
pub(crate) struct Redirects(BTreeMap<PeerId, VecDeque<Instant>>);

impl Redirects {
    /// Returns true if a peer may redirect us once more.
    pub(crate) fn admit(&mut self, peer: PeerId, now: Instant) -> bool {
        let times = self.0.entry(peer).or_default();
        times.retain(|at| now < *at + PERIOD);
        let admitted = times.len() < MOST_REDIRECTS;
        times.extend(admitted.then_some(now));
        admitted
    }
}

/// Number of checks started in this second. Peers could direct many of them to a third party.
/// Answers on unknown IKE SAs are limited in the same way.
#[derive(Default)]
pub(crate) struct Checks {
    since: Instant,
    all: u32,
    /// By IPv4 /24 or IPv6 /48 network of the address.
    by_network: BTreeMap<u128, u32>,
    by_peer: BTreeMap<PeerId, u32>,
}

impl Checks {
    /// Counts a datagram to an address that is not proved, for a peer if that is known.
    pub(crate) fn admit(
        &mut self,
        peer: Option<PeerId>,
        ip: IpAddr,
        now: Instant,
    ) -> Result<(), Unfollowed> {
        if self.since + Duration::from_secs(1) <= now {
            *self = Self {
                since: now,
                ..Self::default()
            };
        }
        let of_peer = peer.and_then(|peer| self.by_peer.get(&peer)).copied();
        let of_peer = of_peer.unwrap_or_default();
        if of_peer >= CHECKS_PER_PEER {
            return Err(Unfollowed::TooOften);
        }
        if self.all >= CHECKS {
            return Err(Unfollowed::TooMany);
        }
        let of_network = self.by_network.entry(site_of(ip)).or_default();
        if *of_network >= CHECKS_PER_NETWORK {
            return Err(Unfollowed::TooMany);
        }
        *of_network += 1;
        self.all += 1;
        if let Some(peer) = peer {
            self.by_peer.insert(peer, of_peer + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MALLORY: PeerId = PeerId(0);

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    /// Returns the number of addresses that are checked, each of another peer.
    fn admitted(checks: &mut Checks, ips: impl Iterator<Item = IpAddr>, now: Instant) -> usize {
        let peers = (1..).map(PeerId).zip(ips);
        let admitted = peers.filter(|(peer, ip)| checks.admit(Some(*peer), *ip, now).is_ok());
        admitted.count()
    }

    fn neighbours(count: u32) -> impl Iterator<Item = IpAddr> + Clone {
        (0..count).map(|n| IpAddr::V4((0xc000_0200 + n % 256).into()))
    }

    #[test]
    fn addresses_of_one_network_are_asked_64_times_a_second_and_all_together_1024_times() {
        let mut checks = Checks::default();
        let one = neighbours(1000);
        assert_eq!(admitted(&mut checks, one.clone(), at(0)), 64);
        let six = (1000..2000_u128).map(|n| IpAddr::V6(((0x2001_0db8 << 96) + n).into()));
        assert_eq!(admitted(&mut checks, six, at(999)), 64);
        let many = (0..5000_u32).map(|n| IpAddr::V4((n << 8).into()));
        assert_eq!(admitted(&mut checks, many, at(999)), 1024 - 128);
        assert!(checks.by_network.len() <= 1024 && checks.by_peer.len() <= 1024);
        assert_eq!(admitted(&mut checks, one, at(1000)), 64);
    }

    // Weakness: 124
    #[test]
    fn a_peer_that_seems_to_be_everywhere_leaves_others_their_checks() {
        let mut checks = Checks::default();
        let everywhere = neighbours(256).chain((0..5000_u32).map(|n| IpAddr::V4((n << 8).into())));
        let asked = everywhere.filter(|ip| checks.admit(Some(MALLORY), *ip, at(0)).is_ok());
        assert_eq!(asked.count(), CHECKS_PER_PEER as usize);
        let refused = checks.admit(Some(MALLORY), [192, 0, 2, 1].into(), at(0));
        assert_eq!(refused, Err(Unfollowed::TooOften));
        assert_eq!(admitted(&mut checks, neighbours(60), at(0)), 60);
    }

    #[test]
    fn one_peer_sends_us_on_five_times_in_five_minutes() {
        let mut redirects = Redirects::default();
        let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
        let admitted = (0..8).filter(|second| redirects.admit(MALLORY, at(*second)));
        assert_eq!(admitted.count(), MOST_REDIRECTS);
        assert!(redirects.admit(PeerId(1), at(8)));
        assert!(!redirects.admit(MALLORY, at(299)));
        assert!(redirects.admit(MALLORY, at(300)));
    }
}
