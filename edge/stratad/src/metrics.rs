//! Counters as OpenMetrics text. The engines count; the registry is filled on request, so a packet
//! costs only an addition.

#[cfg(test)]
mod reference;

use crate::sink::IoCounters;
use crypto::{Certificate, RevocationList, UnixTime};
use model::Instant;
use node::mobile_ip::Status;
use node::{Node, PeerStatus};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = [(&'static str, &'static str); 1];

/// Returns all metrics.
pub fn text(
    node: &Node,
    counters: &IoCounters,
    certificates: &[Certificate],
    lists: &[RevocationList],
    now: Instant,
) -> String {
    let mut registry = Registry::with_prefix("strata");
    esp(&mut registry, node);
    ike(&mut registry, node);
    ike_messages(&mut registry, node);
    licensed(&mut registry, node);
    family(
        &mut registry,
        "system_refused",
        "Packets that the system rejected",
        "doing",
        counters.iter(),
    );
    mobile_ip(&mut registry, node);
    migrations(&mut registry, node);
    gauges(&mut registry, node);
    peers(&mut registry, &node.peers(), config::today(), now);
    let certificates = certificates.iter();
    ends(
        &mut registry,
        "certificate_end_seconds",
        "Expiry of a certificate",
        "subject",
        certificates.map(|certificate| (&certificate.subject, certificate.not_after)),
    );
    ends(
        &mut registry,
        "revocation_list_end_seconds",
        "Expiry of a revocation list",
        "issuer",
        lists.iter().map(|list| (&list.issuer, list.next_update)),
    );
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a String cannot fail");
    text
}

fn esp(registry: &mut Registry, node: &Node) {
    let counters = node.esp_counters();
    let drops = counters.drops().map(|(why, count)| (why.label(), count));
    family(
        registry,
        "esp_dropped",
        "Packets dropped by the data plane",
        "reason",
        drops,
    );
    let packets = [
        ("sealed", counters.sealed.packets),
        ("opened", counters.opened.packets),
    ];
    family(
        registry,
        "esp_packets",
        "Packets sealed and opened by the data plane",
        "direction",
        packets.into_iter(),
    );
    let octets = [
        ("sealed", counters.sealed.octets),
        ("opened", counters.opened.octets),
    ];
    family(
        registry,
        "esp_octets",
        "Octets of inner datagrams sealed and opened by the data plane",
        "direction",
        octets.into_iter(),
    );
    let hiding = [
        ("padded", counters.padded.packets),
        ("padding_octets", counters.padded.octets),
        ("covered", counters.covered),
        ("dummies", counters.dummies()),
    ];
    family(
        registry,
        "esp_hiding",
        "Traffic flow confidentiality: datagrams padded, octets of padding, dummies sent and received",
        "kind",
        hiding.into_iter(),
    );
    let node::Congestion {
        marked,
        dangerous,
        unused,
    } = counters.congestion;
    family(
        registry,
        "esp_congestion",
        "Datagrams whose outer ECN field was changed on the path",
        "kind",
        [
            ("marked", marked),
            ("dangerous", dangerous),
            ("unused", unused),
        ]
        .into_iter(),
    );
    family(
        registry,
        "esp_path_mtu",
        "Datagrams too long for their path, implausible path MTU reports, and probes of path MTUs",
        "kind",
        [
            ("too_long", counters.too_long),
            ("cut", counters.cut),
            ("disbelieved", node.disbelieved_path_mtus()),
            ("sent", node.probe_counts().sent),
            ("lost", node.probe_counts().lost),
            ("echoed", node.probe_counts().echoed),
        ]
        .into_iter(),
    );
}

fn ike(registry: &mut Registry, node: &Node) {
    let counters = node.ike_counters();
    let drops = counters.drops().map(|(why, count)| (why.label(), count));
    family(
        registry,
        "ike_dropped",
        "IKE datagrams dropped",
        "reason",
        drops,
    );
    let datagrams = [
        ("received", counters.received),
        ("taken", counters.taken),
        ("refused", counters.refused),
        ("sent", counters.sent),
        ("retransmitted", counters.retransmitted),
        ("answered_again", counters.answered_again),
    ];
    family(
        registry,
        "ike_datagrams",
        "IKE datagrams",
        "kind",
        datagrams.into_iter(),
    );
    let unproved = [
        ("key_pairs", counters.key_pairs),
        ("gave_way", counters.gave_way),
    ];
    family(
        registry,
        "ike_unproved",
        "Key pairs for unauthenticated initiators, and such initiators replaced by others",
        "kind",
        unproved.into_iter(),
    );
}

fn ike_messages(registry: &mut Registry, node: &Node) {
    let counters = node.ike_counters();
    let messages = [
        ("sent_in_fragments", counters.fragmented),
        ("put_together", counters.reassembled),
        ("incomplete", counters.incomplete),
        ("cut_smaller", counters.cut_smaller),
    ];
    family(
        registry,
        "ike_fragmented",
        "IKE messages in fragments",
        "kind",
        messages.into_iter(),
    );
}

fn licensed(registry: &mut Registry, node: &Node) {
    let transit = node.transit_counters();
    let outcomes = [
        ("foreign", transit.foreign),
        ("malformed", transit.malformed),
        ("fragment", transit.fragments),
        ("unlicensed", transit.unlicensed),
        ("not_opened", transit.not_opened),
        ("stale", transit.stale),
        ("opaque", transit.opaque),
        ("segment", transit.segments),
    ];
    family(
        registry,
        "transit_packets",
        "Diverted packets of other hosts",
        "outcome",
        outcomes.into_iter(),
    );
    let windows = [
        ("lowered", transit.written),
        ("not_granted", transit.unwritten),
        ("not_understood", transit.unscaled),
    ];
    family(
        registry,
        "regulated_windows",
        "TCP windows of other hosts to be lowered",
        "outcome",
        windows.into_iter(),
    );
    let injected = [
        ("injected", transit.injected),
        ("not_granted", transit.uninjected),
    ];
    family(
        registry,
        "stand_in_packets",
        "Acknowledgements to be injected for silent endpoints",
        "outcome",
        injected.into_iter(),
    );
    let Some(snoop) = node.snoop_counters() else {
        return;
    };
    let done = snoop.iter().map(|(name, _, count)| (name, count));
    family(
        registry,
        "snoop_segments",
        "TCP segments handled by SNOOP",
        "action",
        done,
    );
}

/// Adds metrics of keys that follow mobile nodes from node to node, on a licensed node.
fn migrations(registry: &mut Registry, node: &Node) {
    let counters = node.migrations();
    let moved = [
        ("given", counters.given),
        ("taken", counters.taken),
        ("missed", counters.missed),
    ];
    family(
        registry,
        "key_migrations",
        "Keys handed over between licensed nodes: given, taken, missed",
        "direction",
        moved.into_iter(),
    );
    let refused = counters.refused.iter();
    family(
        registry,
        "key_requests_refused",
        "Refused key requests of neighbours",
        "reason",
        refused.map(|(why, count)| (why.label(), *count)),
    );
}

/// Adds metrics of Mobile IPv4, if this host has a role in it.
fn mobile_ip(registry: &mut Registry, node: &Node) {
    let (Some((accepted, denied)), Some((status, _))) = (node.registrations(), node.mobile_ip())
    else {
        return;
    };
    let answers = Family::<[(&'static str, String); 1], Counter>::default();
    let answered = |code: &str| answers.get_or_create(&[("code", code.to_owned())]).clone();
    answered("accepted").inc_by(accepted);
    denied.for_each(|(code, count)| {
        answered(&code.to_string()).inc_by(count);
    });
    registry.register(
        "mobile_registrations",
        "Registrations of mobile nodes, by reply: accepted, or the code of the denial",
        answers,
    );
    family(
        registry,
        "mobile_dropped",
        "Messages and packets of Mobile IP dropped",
        "reason",
        node.mobile_ip_drops(),
    );
    if let Some((sent, received, forwarded)) = node.tunnelled() {
        family(
            registry,
            "mobile_packets",
            "Packets in tunnels of Mobile IP",
            "direction",
            [
                ("put_in", sent),
                ("taken_out", received),
                ("sent_on", forwarded),
            ]
            .into_iter(),
        );
    }
    if let Some(keepalives) = node.keepalives() {
        family(
            registry,
            "mobile_keepalives",
            "Keepalives of tunnels in UDP, and losses of such tunnels",
            "result",
            [
                ("sent", keepalives.sent),
                ("answered", keepalives.answered),
                ("lost", keepalives.lost),
            ]
            .into_iter(),
        );
    }
    let places = match status {
        Status::MobileNode { registrations, .. } => registrations.len(),
        Status::ForeignAgent { visitors, .. } => visitors.len(),
        Status::HomeAgent { homes, .. } => homes.iter().map(|(_, at)| at.len()).sum(),
    };
    let help = "Care-of addresses of mobile nodes: our own, of visitors, or of nodes whose home agent we are";
    gauge(registry, "mobile_places", help, places);
}

fn gauges(registry: &mut Registry, node: &Node) {
    let peers = node.peers();
    let up = peers
        .iter()
        .filter(|peer| peer.state == node::PeerState::Up)
        .count();
    let children: usize = peers.iter().map(|peer| peer.children.len()).sum();
    gauge(registry, "peers_up", "Peers with an established IKE SA", up);
    gauge(registry, "child_sas", "Child SAs", children);
    gauge(
        registry,
        "grants_held",
        "Grants held as a licensed node",
        node.held_grants().len(),
    );
}

/// Adds metrics of each peer. `today` and `now` are the same time by two clocks.
fn peers(registry: &mut Registry, peers: &[PeerStatus], today: UnixTime, now: Instant) {
    let is_one = |peer: &PeerStatus| peer.users.is_none();
    let up = |peer: &PeerStatus| {
        is_one(peer).then_some(i64::from(peer.state == node::PeerState::Up))
    };
    let silent = |peer: &PeerStatus| is_one(peer).then_some(i64::from(peer.silent));
    let heard = |peer: &PeerStatus| {
        let ago = now.since(peer.heard?).as_secs();
        i64::try_from(today.0.saturating_sub(ago)).ok()
    };
    let help = "1 if the peer has an established IKE SA";
    by_peer(registry, "peer_up", help, peers, up);
    let help = "1 if the peer has not answered a request that was sent three times";
    by_peer(registry, "peer_silent", help, peers, silent);
    let help = "Last authentic message or packet of a peer that is up, in seconds since 1970";
    by_peer(registry, "peer_heard_seconds", help, peers, heard);
    let mtu = |peer: &PeerStatus| {
        let mtus = peer.children.iter().filter_map(|child| child.path_mtu);
        mtus.min().map(i64::from)
    };
    let help = "Smallest known path MTU of the peer's child SAs, in octets with outer headers";
    by_peer(registry, "peer_path_mtu_octets", help, peers, mtu);
    let here = |peer: &PeerStatus| Some(i64::from(peer.users?.here));
    let help = "Users of a table whose `id` is a pattern";
    by_peer(registry, "table_users", help, peers, here);
    let most = |peer: &PeerStatus| Some(i64::from(peer.users?.most));
    let help = "Most users at once of a table whose `id` is a pattern";
    by_peer(registry, "table_users_most", help, peers, most);
}

fn by_peer(
    registry: &mut Registry,
    name: &str,
    help: &str,
    peers: &[PeerStatus],
    value: impl Fn(&PeerStatus) -> Option<i64>,
) {
    let family = Family::<[(&'static str, String); 1], Gauge>::default();
    for peer in peers {
        if let Some(value) = value(peer) {
            family
                .get_or_create(&[("peer", peer.name.clone())])
                .set(value);
        }
    }
    registry.register(name, help, family);
}

/// Adds metrics of expiry times, for alarms long before the daemon's own warnings.
fn ends<'a>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    ends: impl Iterator<Item = (&'a String, UnixTime)>,
) {
    let family = Family::<[(&'static str, String); 1], Gauge>::default();
    for (whose, end) in ends {
        let end = i64::try_from(end.0).unwrap_or(i64::MAX);
        family.get_or_create(&[(label, whose.clone())]).set(end);
    }
    registry.register(name, format!("{help}, in seconds since 1970"), family);
}

fn family(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: impl Iterator<Item = (&'static str, u64)>,
) {
    let family = Family::<Labels, Counter>::default();
    for (value, count) in values {
        family.get_or_create(&[(label, value)]).inc_by(count);
    }
    registry.register(name, help, family);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: usize) {
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}
