//! Metrics of the data plane.

use super::exposition::{Exposition, Kind};
use node::{Counters, Node};

/// Adds them.
pub fn add(text: &mut Exposition, node: &Node) {
    let counters = node.esp_counters();
    packets(text, &counters);
    hiding(text, &counters);
    paths(text, node, &counters);
}

fn packets(text: &mut Exposition, counters: &Counters) {
    let drops = counters.drops().map(|(why, count)| (why.label(), count));
    text.counters(
        "esp_dropped_total",
        "Packets dropped by the data plane",
        "reason",
        drops,
    );
    let packets = [
        ("sealed", counters.sealed.packets),
        ("opened", counters.opened.packets),
    ];
    text.counters(
        "esp_packets_total",
        "Packets sealed and opened by the data plane",
        "direction",
        packets,
    );
    let octets = [
        ("sealed", counters.sealed.octets),
        ("opened", counters.opened.octets),
    ];
    text.counters(
        "esp_bytes_total",
        "Octets of inner datagrams sealed and opened by the data plane",
        "direction",
        octets,
    );
}

/// Adds metrics of traffic flow confidentiality.
fn hiding(text: &mut Exposition, counters: &Counters) {
    let hiding = [
        ("padded", counters.padded.packets),
        ("covered", counters.covered),
        ("dummies", counters.dummies()),
    ];
    text.counters(
        "esp_hiding_total",
        "Traffic flow confidentiality: datagrams padded, dummies sent and received",
        "kind",
        hiding,
    );
    let help = "Octets of padding for traffic flow confidentiality";
    let padding = counters.padded.octets;
    text.single(Kind::Counter, "esp_padding_bytes_total", help, padding);
}

fn paths(text: &mut Exposition, node: &Node, counters: &Counters) {
    let node::Congestion {
        marked,
        dangerous,
        unused,
    } = counters.congestion;
    text.counters(
        "esp_congestion_total",
        "Datagrams whose outer ECN field was changed on the path",
        "kind",
        [
            ("marked", marked),
            ("dangerous", dangerous),
            ("unused", unused),
        ],
    );
    text.counters(
        "esp_path_mtu_total",
        "Datagrams too long for their path, implausible path MTU reports, and probes of path MTUs",
        "kind",
        [
            ("too_long", counters.too_long),
            ("cut", counters.cut),
            ("disbelieved", node.disbelieved_path_mtus()),
            ("sent", node.probe_counts().sent),
            ("lost", node.probe_counts().lost),
            ("echoed", node.probe_counts().echoed),
        ],
    );
}
