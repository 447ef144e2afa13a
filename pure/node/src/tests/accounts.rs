//! What a host says it did with what it was handed: every number here goes up by one with each
//! packet or message, whatever it holds (invariant 10).

use crate::{DropReason, Node};

/// Datagrams from the TUN device.
pub fn sealing(node: &Node) -> u64 {
    let counters = node.esp_counters();
    counters.sealed.packets + counters.too_long + dropped(node, true)
}

/// ESP packets from the network.
pub fn opening(node: &Node) -> u64 {
    node.esp_counters().opened.packets + dropped(node, false)
}

/// IKE messages.
pub fn ike(node: &Node) -> u64 {
    let counters = node.ike_counters();
    let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
    let accounted = counters.taken + counters.answered_again + dropped;
    assert_eq!(accounted, counters.received, "{counters:?}");
    accounted
}

/// Packets of others at a licensed node.
pub fn transit(node: &Node) -> u64 {
    let c = node.transit_counters();
    let unopened = c.foreign + c.malformed + c.fragments + c.unlicensed + c.not_opened;
    unopened + c.stale + c.opaque + c.segments
}

/// Drop reasons are those of one direction or of the other.
fn dropped(node: &Node, outbound: bool) -> u64 {
    let first_inbound = DropReason::Runt;
    let reasons = DropReason::ALL.iter().copied();
    reasons
        .filter(|why| (*why < first_inbound) == outbound)
        .map(|why| node.esp_counters().dropped(why))
        .sum()
}
