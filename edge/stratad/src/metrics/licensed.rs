//! Metrics of licensed nodes.

use super::exposition::Exposition;
use node::Node;

/// Adds them.
pub fn add(text: &mut Exposition, node: &Node) {
    transit(text, node);
    acting(text, node);
    migrations(text, node);
}

/// Adds metrics of diverted packets.
fn transit(text: &mut Exposition, node: &Node) {
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
    text.counters(
        "transit_packets_total",
        "Diverted packets of other hosts",
        "outcome",
        outcomes,
    );
    let opened = node.opened_for();
    text.counters(
        "licensed_packets_total",
        "Packets opened by the licences of a gateway",
        "gateway",
        opened.map(|(gateway, count)| (node.name(gateway), count)),
    );
}

/// Adds metrics of what is done for other hosts.
fn acting(text: &mut Exposition, node: &Node) {
    let transit = node.transit_counters();
    let windows = [
        ("lowered", transit.written),
        ("not_granted", transit.unwritten),
        ("not_understood", transit.unscaled),
    ];
    text.counters(
        "regulated_windows_total",
        "TCP windows of other hosts to be lowered",
        "outcome",
        windows,
    );
    let injected = [
        ("injected", transit.injected),
        ("not_granted", transit.uninjected),
    ];
    text.counters(
        "stand_in_packets_total",
        "Acknowledgements to be injected for silent endpoints",
        "outcome",
        injected,
    );
    let Some(snoop) = node.snoop_counters() else {
        return;
    };
    let done = snoop.iter().map(|(name, _, count)| (name, count));
    text.counters(
        "snoop_segments_total",
        "TCP segments handled by SNOOP",
        "action",
        done,
    );
}

/// Adds metrics of keys that follow mobile nodes from node to node, on a licensed node.
fn migrations(text: &mut Exposition, node: &Node) {
    let counters = node.migrations();
    let moved = [
        ("given", counters.given),
        ("taken", counters.taken),
        ("missed", counters.missed),
    ];
    text.counters(
        "key_migrations_total",
        "Keys handed over between licensed nodes: given, taken, missed",
        "direction",
        moved,
    );
    let refused = counters.refused.iter();
    text.counters(
        "key_requests_refused_total",
        "Refused key requests of neighbours",
        "reason",
        refused.map(|(why, count)| (why.label(), *count)),
    );
}
