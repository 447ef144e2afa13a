//! Configuration changes while SAs are up.

use super::pair::{Pair, Side, fit};
use super::*;
use crate::{DownReason, Event, SaState};
use model::Suite;

/// Returns the gateway's configuration with other peers around the one that connects.
fn among_others() -> Config {
    let mut config = gateway();
    let role = vpn("10.0.0.0/16", "10.9.0.0/24", ZonePolicy::default());
    config.peers.insert(0, peer("before", role.clone()));
    config.peers.push(peer("behind", role));
    config
}

fn connected() -> Pair {
    let mut pair = Pair::new(mobile(), among_others());
    pair.connect();
    pair
}

/// Changes the gateway's configuration; returns the peers whose terms changed.
fn change(pair: &mut Pair, change: impl FnOnce(&mut Config)) -> Vec<PeerId> {
    let mut config = among_others();
    change(&mut config);
    pair.with(Side::Right, |engine, now| engine.reconfigure(config, now))
}

/// Returns the peer of the gateway's only SA.
fn owner(pair: &Pair) -> Option<PeerId> {
    let mut sas = pair.right.engine.sas();
    sas.next().and_then(|sa| sa.peer)
}

#[test]
fn an_sa_stays_with_its_peer_however_the_others_move() {
    let moves: [fn(&mut Config); 5] = [
        |config| config.peers.reverse(),
        |config| drop(config.peers.remove(0)),
        |config| drop(config.peers.pop()),
        |config| config.peers.swap(0, 1),
        |config| config.peers[0].id = peer_id("renamed"),
    ];
    for shuffle in moves {
        let mut pair = connected();
        let before = pair.right.picture();
        let datagrams = pair.sent.len();
        assert_eq!(change(&mut pair, shuffle), []);
        assert_eq!(pair.right.picture(), before);
        assert_eq!(pair.sent.len(), datagrams, "nobody was told anything");
        assert_eq!(owner(&pair), Some(peer_id("mobile")));
        assert!(fit(pair.left.child(), pair.right.child()));
    }
}

#[test]
fn a_peer_that_is_removed_or_renamed_goes_in_an_orderly_way_and_leaves_its_sa_to_nobody() {
    let removals: [fn(&mut Config); 2] = [
        |config| drop(config.peers.remove(1)),
        |config| config.peers[1].id = peer_id("renamed"),
    ];
    for remove in removals {
        let mut pair = connected();
        assert_eq!(change(&mut pair, remove), []);
        assert!(pair.right.children().is_empty());
        assert_eq!(owner(&pair), Some(peer_id("mobile")));
        pair.settle();
        assert_eq!(pair.right.down_reasons(), [&DownReason::Removed]);
        assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedByPeer]);
        let down = |event: &Event| matches!(event, Event::IkeDown { peer, .. } if *peer == peer_id("mobile"));
        assert!(pair.right.events.iter().any(down));
    }
}

#[test]
fn whatever_was_agreed_makes_an_sa_outdated_when_it_changes() {
    type Change = (&'static str, fn(&mut Config));
    let changes: [Change; 10] = [
        ("address", |c| {
            c.peers[1].address = Some("192.168.1.2".parse().unwrap())
        }),
        ("identity", |c| {
            c.peers[1].identity = "other.example.net".parse().unwrap()
        }),
        ("psk", |c| c.peers[1].psk = Some(Secret::new(vec![7; 32]))),
        ("ppk", |c| {
            c.peers[1].ppk = Some(Box::new(crate::Ppk {
                id: "office2026".to_owned(),
                secret: Secret::new(vec![7; 32]),
                required: true,
            }))
        }),
        ("kem", |c| {
            c.peers[1].kems = vec![Some(model::Kem::MlKem768), None]
        }),
        ("key", |c| {
            c.peers[1].key = Some(Box::new(certificates::public("thief")))
        }),
        ("suites", |c| c.peers[1].suites = vec![Suite::Aes256Gcm16]),
        ("selectors", |c| {
            c.peers[1].role = vpn("10.0.0.0/15", "10.8.0.0/24", ZonePolicy::default())
        }),
        ("zones", |c| {
            let zones = two_zones(Stance::Accept, "node.example.net");
            c.peers[1].role = vpn("10.0.0.0/16", "10.8.0.0/24", zones)
        }),
        ("our own identity", |c| {
            c.identity = "new.example.net".parse().unwrap()
        }),
    ];
    for (what, outdate) in changes {
        let mut pair = connected();
        let changed = change(&mut pair, outdate);
        assert!(changed.contains(&peer_id("mobile")), "{what}");
        pair.settle();
        assert_eq!(
            pair.right.down_reasons(),
            [&DownReason::Reconfigured],
            "{what}"
        );
        assert_eq!(pair.left.up(), 0, "{what}");
    }
}

#[test]
fn a_new_secret_is_the_only_one_that_opens_the_door_again() {
    let mut pair = connected();
    let new = Some(Secret::new(b"another secret, for both".to_vec()));
    change(&mut pair, |config| config.peers[1].psk = new.clone());
    pair.settle();
    pair.connect();
    assert_eq!(
        pair.left.down_reasons().last().map(|why| why.to_string()),
        Some(
            DownReason::AuthenticationRefused {
                ours: mobile().identity
            }
            .to_string()
        )
    );
    let mut config = mobile();
    config.peers[0].psk = new;
    pair.with(Side::Left, |engine, now| engine.reconfigure(config, now));
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn liveness_changes_in_place_and_at_once() {
    let mut pair = connected();
    let quiet = Duration::from_secs(3);
    assert_eq!(change(&mut pair, |c| c.peers[1].liveness = quiet), []);
    let datagrams = pair.sent.len();
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.sent.len(), datagrams);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.sent.len(), datagrams + 2, "asked, and answered");
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn an_attempt_under_way_does_not_survive_the_terms_it_began_with() {
    for passed in [0, 2] {
        let mut pair = Pair::new(mobile(), gateway());
        pair.initiate(Side::Left);
        (0..passed).for_each(|_| assert!(pair.deliver_next()));
        let mut config = mobile();
        config.peers[0].psk = Some(Secret::new(vec![7; 32]));
        pair.with(Side::Left, |engine, now| engine.reconfigure(config, now));
        assert_eq!(pair.left.down_reasons(), [&DownReason::Reconfigured]);
        pair.settle();
        assert_eq!(pair.left.up(), 0);
    }
}

/// An initiator between IKE_SA_INIT and IKE_AUTH is held to the configuration at IKE_AUTH.
#[test]
fn an_initiator_between_its_two_requests_is_held_to_the_new_terms() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    assert!(pair.deliver_next() && pair.deliver_next());
    let mut config = gateway();
    config.peers[0].id = peer_id("stranger");
    config.peers[0].identity = "stranger.example.net".parse().unwrap();
    pair.with(Side::Right, |engine, now| engine.reconfigure(config, now));
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(pair.right.refusals()[0].contains("no peer with the identity"));
}

#[test]
fn a_renewed_sa_says_that_it_was_its_configuration() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| engine.renew(id, now));
    let closing = pair.left.engine.sas().next().map(|sa| sa.state);
    assert_eq!(closing, Some(SaState::Closing));
    pair.settle();
    assert_eq!(pair.left.down_reasons(), [&DownReason::Reconfigured]);
}
