//! Metrics of Mobile IPv4.

use super::exposition::{Exposition, Kind};
use node::Node;
use node::mobile_ip::Status;
use std::collections::BTreeMap;

/// Adds them, if this host has a role in it.
pub fn add(text: &mut Exposition, node: &Node) {
    let (Some((accepted, denied)), Some((status, _))) = (node.registrations(), node.mobile_ip())
    else {
        return;
    };
    let denied = denied.map(|(code, count)| (code.to_string(), count));
    text.counters(
        "mobile_registrations_total",
        "Registrations of mobile nodes, by reply: accepted, or the code of the denial",
        "code",
        [("accepted".to_owned(), accepted)]
            .into_iter()
            .chain(denied),
    );
    let mut drops = BTreeMap::new();
    for (why, count) in node.mobile_ip_drops() {
        *drops.entry(why).or_insert(0) += count;
    }
    text.counters(
        "mobile_dropped_total",
        "Messages and packets of Mobile IP dropped",
        "reason",
        drops,
    );
    tunnels(text, node);
    let places = match status {
        Status::MobileNode { registrations, .. } => registrations.len(),
        Status::ForeignAgent { visitors, .. } => visitors.len(),
        Status::HomeAgent { homes, .. } => homes.iter().map(|(_, at)| at.len()).sum(),
    };
    let help = "Care-of addresses of mobile nodes: our own, of visitors, or of nodes whose home agent we are";
    text.single(Kind::Gauge, "mobile_places", help, places);
}

fn tunnels(text: &mut Exposition, node: &Node) {
    if let Some((sent, received, forwarded)) = node.tunnelled() {
        text.counters(
            "mobile_packets_total",
            "Packets in tunnels of Mobile IP",
            "direction",
            [
                ("put_in", sent),
                ("taken_out", received),
                ("sent_on", forwarded),
            ],
        );
    }
    if let Some(keepalives) = node.keepalives() {
        text.counters(
            "mobile_keepalives_total",
            "Keepalives of tunnels in UDP, and losses of such tunnels",
            "result",
            [
                ("sent", keepalives.sent),
                ("answered", keepalives.answered),
                ("lost", keepalives.lost),
            ],
        );
    }
}
