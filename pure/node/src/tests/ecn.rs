//! The ECN field of the outer header (RFC 6040): a licensed node leaves it alone, and an operator
//! is alerted to invalid combinations.

use super::datagram;
use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{DropReason, Event, Node, Rekey, Side, Verdict};
use std::time::Duration;
use wire::ecn::Ecn;

/// Sends a segment to the gateway whose packet arrives with this field.
fn arrives(world: &mut World, ecn: Ecn) {
    world.mark = ecn;
    world.segment(MOBILE, 1000, b"hello");
    world.run_for(Duration::from_millis(50));
}

fn told(world: &World) -> usize {
    let unused = |event: &&Event| matches!(event, Event::EcnUnused { .. });
    world.events[GATEWAY].iter().filter(unused).count()
}

/// "Congestion is marked on the outer header only" (DESIGN section 7): routers do that, and a
/// licensed node is not one. SNOOP retransmits a packet exactly as it saw it.
#[test]
fn a_licensed_node_leaves_the_field_as_it_came() {
    let mut world = World::connected(Policies::default());
    world.wired.lost = 1000;
    for ecn in Ecn::ALL {
        world.segment(GATEWAY, 1000, b"hello");
        let (_, sealed) = world.sealed.last().unwrap();
        let ends = ["198.51.100.1:4500", "192.0.2.2:4500"].map(|end| end.parse().unwrap());
        let mut packet = datagram::udp(ends[0], ends[1], sealed);
        ecn.write(&mut packet);
        let segments = world.nodes[LICENSED].transit_counters().segments;
        assert_eq!(world.transit(Side::Wired, &packet), Verdict::Forward);
        let node = &mut world.nodes[LICENSED];
        assert_eq!(node.transit_counters().segments, segments + 1);
        node.handle_timeout(world.now + Duration::from_secs(3));
        let mut again = std::iter::from_fn(|| node.poll_resend());
        assert!(again.any(|(to, octets)| to == Side::Wireless && octets == packet));
    }
}

/// "the decapsulator SHOULD log the event" and "alarms SHOULD be rate-limited" (RFC 6040 section
/// 4.2).
// Recovers: ecn
#[test]
fn an_operator_hears_of_a_field_that_cannot_be_once_with_each_keys() {
    let mut world = World::connected(Policies::default());
    arrives(&mut world, Ecn::NotEct);
    assert_eq!(told(&world), 0);
    arrives(&mut world, Ecn::Ce);
    assert_eq!(world.dropped[GATEWAY], [DropReason::Congested]);
    (0..5).for_each(|_| arrives(&mut world, Ecn::Ect0));
    assert_eq!(world.delivered[GATEWAY].len(), 6);
    assert_eq!(told(&world), 1);
    assert_eq!(world.nodes[GATEWAY].esp_counters().congestion.dangerous, 6);
    let rekey = |node: &mut Node, now| node.rekey("alice", Rekey::Children, now);
    world.command(GATEWAY, rekey).unwrap();
    world.run_for(Duration::from_secs(5));
    // The end that requested the rekey is the first to send with the new keys.
    world.segment(GATEWAY, 1000, b"hello");
    world.run_for(Duration::from_millis(50));
    arrives(&mut world, Ecn::Ect1);
    assert_eq!(told(&world), 2);
}
