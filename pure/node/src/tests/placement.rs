//! The tunnels that are checked after each kind of event.

use super::*;
use crate::Refused;
use crate::mobile_ip::{Event as Told, HomeEvent};
use std::net::Ipv4Addr;

const MANY: u16 = 5000;

/// The mobile node whose home address is that of number 1.
const MOBILE: PeerId = PeerId(1);

fn home(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 66, high, low)
}

/// Returns a home agent with tunnels to many mobile nodes.
fn crowd() -> Placement {
    let places = (0..MANY).map(|number| (PeerId(number.into()), Places::default().into()));
    let mut placement = Placement::new(places.collect(), Vec::new());
    for number in 0..MANY {
        let end = Some(home(number).into());
        placement.note_end(PeerId(number.into()), None, end);
    }
    placement
}

#[test]
fn a_registration_has_the_tunnels_of_its_mobile_node_looked_at_and_no_others() {
    let (home, elsewhere) = (home(4711), Vec::new());
    for event in [
        HomeEvent::Bound {
            home,
            care_of: elsewhere,
        },
        HomeEvent::Renewed { home },
        HomeEvent::Unbound { home },
    ] {
        let mut placement = crowd();
        placement.note_mobile_ip(&Told::HomeAgent(event));
        assert_eq!(placement.stirred, [PeerId(4711)].into());
    }
}

/// Negative control: a change that may concern all tunnels leads to a check of all of them.
#[test]
fn other_places_may_be_about_every_tunnel() {
    let mut placement = crowd();
    let places = placement.places.clone();
    placement.set_places(places);
    assert_eq!(placement.stirred.len(), usize::from(MANY));
}

/// A repeated announcement has no effect. A new one concerns only tunnels there whose keys are
/// distributed in advance.
#[test]
fn neighbours_of_a_node_have_the_tunnels_there_looked_at_and_no_others() {
    let mut placement = crowd();
    let [here, next]: [Identity; 2] =
        ["fa.example.net", "fb.example.net"].map(|node| node.parse().unwrap());
    for (peer, handover) in [(MOBILE, Handover::Pkd), (PeerId(2), Handover::Push)] {
        placement.places.get_mut(&peer).unwrap().handover = handover;
        let tunnel = placement.tunnels.entry(peer).or_default();
        *tunnel.here_mut() = vec![here.clone()];
    }
    let mut told = |neighbours: &[Identity]| {
        placement.note_neighbours(here.clone(), neighbours.to_vec());
        std::mem::take(&mut placement.stirred)
    };
    assert_eq!(told(std::slice::from_ref(&next)), [MOBILE].into());
    assert!(
        told(std::slice::from_ref(&next)).is_empty(),
        "it is not new"
    );
    assert_eq!(told(&[]), [MOBILE].into());
}

/// The node may have no neighbours any more, and then announces none.
#[test]
fn a_node_that_is_there_anew_has_no_neighbours_until_it_says_so() {
    let mut placement = crowd();
    let [here, next]: [Identity; 2] =
        ["fa.example.net", "fb.example.net"].map(|node| node.parse().unwrap());
    let places = Places {
        handover: Handover::Pkd,
        nodes: vec![(next.clone(), Vec::new())],
        ..Places::default()
    };
    let here = [here];
    placement.note_neighbours(here[0].clone(), vec![next.clone()]);
    assert_eq!(placement.near(&places, &here), [here[0].clone(), next]);
    placement.forget_neighbours(&here[0]);
    assert_eq!(placement.near(&places, &here), here);
}

#[test]
fn who_is_denied_has_no_tunnel_looked_at() {
    let mut placement = crowd();
    placement.note_mobile_ip(&Told::Refused(Refused {
        at: Instant::from_origin(Duration::ZERO),
        from: None,
        why: "denied".to_owned().into(),
    }));
    assert!(placement.stirred.is_empty());
}

#[test]
fn a_peer_is_found_where_it_is_and_not_where_it_was() {
    let mut placement = crowd();
    let moved = Ipv4Addr::new(10, 67, 0, 1);
    placement.note_end(MOBILE, Some(home(1).into()), Some(moved.into()));
    let renewed = |home| Told::HomeAgent(HomeEvent::Renewed { home });
    placement.note_mobile_ip(&renewed(home(1)));
    assert!(placement.stirred.is_empty());
    placement.note_mobile_ip(&renewed(moved));
    assert_eq!(placement.stirred, [MOBILE].into());
    placement.note_end(MOBILE, Some(moved.into()), None);
    assert!(!placement.ends.contains_key(&IpAddr::from(moved)));
}
