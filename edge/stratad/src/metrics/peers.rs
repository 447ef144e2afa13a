//! Metrics of each peer, by the name of its table, and of each user of a table for many, by its own
//! name.

use super::exposition::{Exposition, Kind};
use config::today;
use model::Instant;
use node::{Node, PeerNumbers, PeerState};
use std::fmt::Display;

/// Most peers with metrics of their own: a collector keeps each series, and the text has thirteen
/// lines for each peer.
pub const MOST_PEERS: usize = 1000;

/// The peers that have metrics of their own.
struct Peers<'a> {
    text: &'a mut Exposition,
    /// In the order of the names.
    named: Vec<(&'a str, PeerNumbers)>,
}

/// Adds the metrics of the first peers, and the number of others.
pub fn add(text: &mut Exposition, node: &Node, now: Instant) {
    let numbers = node.peer_numbers(MOST_PEERS).into_iter();
    let mut named: Vec<_> = numbers.map(|one| (node.name(one.peer), one)).collect();
    named.sort_unstable_by_key(|(name, _)| *name);
    let help = "Peers and users beyond the first 1000, which have no metrics of their own";
    let totals = node.totals();
    let others = totals.peers + totals.users - named.len();
    text.single(Kind::Gauge, "peers_unlabelled", help, others);
    let mut peers = Peers { text, named };
    peers.tables();
    peers.contact(now);
    peers.tunnels();
}

impl Peers<'_> {
    /// Adds the metrics of tables for many users.
    fn tables(&mut self) {
        let help = "Users of a table whose `id` is a pattern";
        self.gauge("table_users", help, |peer| Some(peer.users?.here));
        let help = "Most users at once of a table whose `id` is a pattern";
        self.gauge("table_users_most", help, |peer| Some(peer.users?.most));
    }

    /// Adds the metrics of IKE SAs.
    fn contact(&mut self, now: Instant) {
        let today = today().0;
        let help = "1 if the peer has an established IKE SA";
        self.gauge("peer_up", help, |peer| {
            is_one(peer).then(|| u8::from(peer.state == PeerState::Up))
        });
        let help = "1 if the peer has not answered a request that was sent three times";
        self.gauge("peer_silent", help, |peer| {
            is_one(peer).then(|| u8::from(peer.silent))
        });
        let help = "Time of the last authentic message or packet of a peer that is up";
        self.gauge("peer_last_heard_timestamp_seconds", help, |peer| {
            Some(today.saturating_sub(now.since(peer.heard?).as_secs()))
        });
        let help = "Smoothed time from an IKE request to its response, on the current path";
        self.gauge("peer_round_trip_seconds", help, |peer| {
            Some(peer.round_trip?.as_secs_f64())
        });
        let help =
            "Share of the newest 20 requests that were lost on the current path, if measured";
        self.gauge("peer_path_lost_ratio", help, |peer| {
            Some(f64::from(peer.lost?) / 100.0)
        });
        let help = "Moves of the tunnel to another path without a pause (RFC 7791)";
        self.counter("peer_hand_overs_total", help, |peer| {
            peer.has_tunnels.then_some(peer.hand_overs)
        });
        let help = "Paths that carry packets at the same time, if `paths` allows several";
        self.gauge("peer_live_paths", help, |peer| peer.live_paths);
        let help = "Rekeys of the IKE SA and of child SAs";
        self.counter("peer_rekeys_total", help, |peer| {
            is_one(peer).then_some(peer.rekeys)
        });
    }

    /// Adds the metrics of child SAs.
    fn tunnels(&mut self) {
        let help = "1 if the peer has a child SA that packets are sent on";
        self.gauge("tunnel_up", help, |peer| {
            peer.has_tunnels.then(|| u8::from(peer.tunnels > 0))
        });
        let help = "1 if a child SA that packets are sent on is not encrypted (`unencrypted`)";
        self.gauge("tunnel_unencrypted", help, |peer| {
            peer.has_tunnels.then(|| u8::from(peer.unencrypted))
        });
        let help = "Octets of inner datagrams received and accepted";
        self.carried("tunnel_received_bytes_total", help, |peer| {
            peer.traffic.opened.octets
        });
        let help = "Octets of inner datagrams sent";
        self.carried("tunnel_sent_bytes_total", help, |peer| {
            peer.traffic.sealed.octets
        });
        let help = "Inner datagrams received and accepted";
        self.carried("tunnel_received_packets_total", help, |peer| {
            peer.traffic.opened.packets
        });
        let help = "Inner datagrams sent";
        self.carried("tunnel_sent_packets_total", help, |peer| {
            peer.traffic.sealed.packets
        });
        let help = "Smallest known path MTU of the peer's child SAs, with outer headers";
        self.gauge("tunnel_path_mtu_bytes", help, |peer| peer.path_mtu);
    }

    fn carried(&mut self, name: &str, help: &str, value: fn(&PeerNumbers) -> u64) {
        let value = |peer: &PeerNumbers| peer.has_tunnels.then(|| value(peer));
        self.counter(name, help, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Fn(&PeerNumbers) -> Option<u64>) {
        self.add(Kind::Counter, name, help, value);
    }

    fn gauge<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        value: impl Fn(&PeerNumbers) -> Option<V>,
    ) {
        self.add(Kind::Gauge, name, help, value);
    }

    fn add<V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        value: impl Fn(&PeerNumbers) -> Option<V>,
    ) {
        let mut family = self.text.family(kind, name, help);
        for (peer, numbers) in &self.named {
            if let Some(value) = value(numbers) {
                family.sample(&[("peer", peer)], value);
            }
        }
    }
}

/// Returns false for a table whose users are peers of their own.
const fn is_one(peer: &PeerNumbers) -> bool {
    peer.users.is_none()
}
