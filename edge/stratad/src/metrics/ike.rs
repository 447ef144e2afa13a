//! Metrics of IKE.

use super::exposition::{Exposition, Kind};
use node::{Node, SET_UP_BOUNDS};

/// Adds them.
pub fn add(text: &mut Exposition, node: &Node) {
    datagrams(text, node);
    messages(text, node);
    set_ups(text, node);
}

fn datagrams(text: &mut Exposition, node: &Node) {
    let counters = node.ike_counters();
    let drops = counters.drops().map(|(why, count)| (why.label(), count));
    text.counters(
        "ike_dropped_total",
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
    text.counters("ike_datagrams_total", "IKE datagrams", "kind", datagrams);
    let unproved = [
        ("key_pairs", counters.key_pairs),
        ("gave_way", counters.gave_way),
    ];
    text.counters(
        "ike_unproved_total",
        "Key pairs for unauthenticated initiators, and such initiators replaced by others",
        "kind",
        unproved,
    );
}

fn messages(text: &mut Exposition, node: &Node) {
    let counters = node.ike_counters();
    let messages = [
        ("sent_in_fragments", counters.fragmented),
        ("put_together", counters.reassembled),
        ("incomplete", counters.incomplete),
        ("cut_smaller", counters.cut_smaller),
    ];
    text.counters(
        "ike_fragmented_total",
        "IKE messages in fragments",
        "kind",
        messages,
    );
}

/// Adds the durations of set-ups, by all peers together.
fn set_ups(text: &mut Exposition, node: &Node) {
    let help = "Time from the first message of an IKE SA until it is up";
    let mut family = text.family(Kind::Histogram, "ike_setup_duration_seconds", help);
    let took = node.set_ups();
    for (bound, count) in SET_UP_BOUNDS.iter().zip(took.within) {
        let bound = bound.as_secs_f64().to_string();
        family.suffixed("_bucket", &[("le", &bound)], count);
    }
    family.suffixed("_bucket", &[("le", "+Inf")], took.count);
    family.suffixed("_sum", &[], took.total.as_secs_f64());
    family.suffixed("_count", &[], took.count);
}
