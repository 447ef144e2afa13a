//! Counters of a host by kind of input. Each counter here increases by one with every packet or
//! message, whatever the content (invariant 10).

use crate::{DropReason, Node};

/// Counts datagrams from the TUN device.
pub fn sealing(node: &Node) -> u64 {
    let counters = node.esp_counters();
    counters.sealed.packets + counters.too_long + dropped(node, true)
}

/// Counts ESP packets from the network.
pub fn opening(node: &Node) -> u64 {
    node.esp_counters().opened.packets + dropped(node, false)
}

/// Counts IKE messages.
pub fn ike(node: &Node) -> u64 {
    let counters = node.ike_counters();
    let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
    let accounted = counters.taken + counters.answered_again + dropped;
    assert_eq!(accounted, counters.received, "{counters:?}");
    accounted
}

/// Counts transit packets at a licensed node.
pub fn transit(node: &Node) -> u64 {
    let c = node.transit_counters();
    let unopened = c.foreign + c.malformed + c.fragments + c.unlicensed + c.not_opened;
    unopened + c.stale + c.opaque + c.segments
}

/// Counts dropped packets of one direction. Each drop reason belongs to exactly one direction.
fn dropped(node: &Node, outbound: bool) -> u64 {
    let first_inbound = DropReason::Runt;
    let reasons = DropReason::ALL.iter().copied();
    reasons
        .filter(|why| (*why < first_inbound) == outbound)
        .map(|why| node.esp_counters().dropped(why))
        .sum()
}
