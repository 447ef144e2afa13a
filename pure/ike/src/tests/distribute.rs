//! Keys for a licensed node, and the peers that may send them.

use super::pair::{Pair, Side};
use super::*;
use crate::{Event, GrantRefusal};
use model::{CsaId, Grant, GrantHalf, IkeSaId, Spi};
use std::time::Duration;
use wire::ike::{NotifyType, RefusalCode};

pub(crate) fn grant(number: u16) -> Grant<Secret> {
    let half = |spi, fill| GrantHalf {
        spi: Spi(spi),
        zones: vec![(
            ZoneId(1),
            ZoneSuite::Aes128Gcm16,
            Secret::new(vec![fill; 20]),
        )],
        overlay: None,
        injection: None,
    };
    Grant {
        map: MapKind::Changeable,
        csa: CsaId(77),
        line: CsaId(77),
        grant: number,
        payload_zone: ZoneId(2),
        suites: vec![ZoneSuite::Aes128Gcm16, ZoneSuite::Aes256Gcm16],
        window: 4096,
        lifetime: Duration::from_secs(3600),
        onward: None,
        from_gateway: half(0x1111, 1),
        to_gateway: half(0x2222, 2),
    }
}

pub(crate) fn node() -> Config {
    host("node", peer("gateway", PeerRole::Gateway))
}

pub(crate) fn gateway_of_node() -> Config {
    host("gateway", peer("node", PeerRole::Licensed))
}

/// Returns a gateway on the left and a licensed node on the right.
fn connected() -> (Pair, IkeSaId) {
    let mut pair = Pair::new(gateway_of_node(), node());
    let id = pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    (pair, id)
}

#[test]
fn a_node_tells_its_gateway_where_one_may_go_from_it_and_nobody_else_does() {
    let neighbours = || {
        vec![
            "a.example.net".parse().unwrap(),
            "b.example.net".parse().unwrap(),
        ]
    };
    let told = |host: &pair::Host| {
        let said = host.events.iter().find_map(|event| match event {
            Event::Neighbours { node, neighbours } => Some((node.clone(), neighbours.clone())),
            _ => None,
        });
        said.map(|(node, neighbours)| (node.to_string(), neighbours))
    };
    let (mut pair, id) = connected();
    pair.with(Side::Right, |engine, now| {
        let sa = engine.sas().next().map(|sa| sa.id).unwrap();
        engine.tell_neighbours(sa, neighbours(), now);
    });
    pair.settle();
    let node = "node.example.net".to_owned();
    assert_eq!(told(&pair.left), Some((node, neighbours())));
    // A gateway sends no neighbours, and its peer would ignore them.
    pair.with(Side::Left, |engine, now| {
        engine.tell_neighbours(id, neighbours(), now)
    });
    pair.settle();
    assert_eq!(told(&pair.right), None);
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    let said = super::super::extension::distribute::neighbours(&neighbours());
    pair.with(Side::Left, |engine, now| {
        engine.request_raw(id, wire::ike::ExchangeType::INFORMATIONAL, vec![said], now)
    });
    pair.settle();
    assert_eq!(
        told(&pair.right),
        None,
        "who is no licensed node has no neighbours"
    );
}

fn answers(pair: &Pair) -> Vec<Result<u16, GrantRefusal>> {
    let answers = pair.left.events.iter().filter_map(|event| match event {
        Event::GrantAccepted { grant, .. } => Some(Ok(*grant)),
        Event::GrantRefused { why, .. } => Some(Err(*why)),
        _ => None,
    });
    answers.collect()
}

fn granted(pair: &Pair) -> Vec<Grant<Secret>> {
    let grants = pair.right.events.iter().filter_map(|event| match event {
        Event::Granted { grant, .. } => Some(grant.clone()),
        _ => None,
    });
    grants.collect()
}

#[test]
fn a_licensed_nodes_sa_has_no_child() {
    let (pair, _) = connected();
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
}

#[test]
fn a_grant_arrives_as_it_was_sent_and_is_acknowledged() {
    let (mut pair, id) = connected();
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now)
    });
    pair.settle();
    assert_eq!(granted(&pair), [grant(1)]);
    assert_eq!(answers(&pair), [Ok(1)]);
}

/// The gateway must not believe that a node reads traffic that it cannot read (and `settled` waits
/// for this).
#[test]
fn a_grant_that_the_node_cannot_use_is_refused_and_not_held() {
    let (mut pair, id) = connected();
    pair.right.unusable = Some(RefusalCode::TOO_MANY_GRANTS);
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now)
    });
    pair.settle();
    let refused = GrantRefusal::Code(RefusalCode::TOO_MANY_GRANTS);
    assert_eq!(answers(&pair), [Err(refused)]);
    pair.right.unusable = None;
    pair.with(Side::Left, |engine, now| engine.revoke(id, CsaId(77), now));
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(2), now)
    });
    pair.settle();
    assert_eq!(answers(&pair), [Err(refused), Ok(2)]);
    let revoked = |event: &Event| matches!(event, Event::Revoked { .. });
    assert!(
        !pair.right.events.iter().any(revoked),
        "there was nothing to take back"
    );
}

#[test]
fn grants_wait_for_each_other_and_survive_loss() {
    let (mut pair, id) = connected();
    pair.hop.lost = 300;
    for number in 1..=20 {
        pair.with(Side::Left, |engine, now| {
            engine.distribute(id, grant(number), now)
        });
    }
    pair.run_for(Duration::from_secs(600));
    let numbers: Vec<_> = granted(&pair).iter().map(|grant| grant.grant).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(answers(&pair).len(), 20);
}

#[test]
fn a_revocation_arrives_once_and_for_known_grants_only() {
    let (mut pair, id) = connected();
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now)
    });
    for csa in [77, 77, 78] {
        pair.with(Side::Left, |engine, now| engine.revoke(id, CsaId(csa), now));
    }
    pair.settle();
    let revoked = |event: &&Event| matches!(event, Event::Revoked { csa: CsaId(77), .. });
    assert_eq!(pair.right.events.iter().filter(revoked).count(), 1);
}

#[test]
fn keys_are_sent_to_licensed_nodes_only() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now)
    });
    pair.with(Side::Left, |engine, now| {
        engine.distribute(IkeSaId(999), grant(2), now)
    });
    assert!(pair.is_quiet(), "nothing was sent");
    let refusals = [GrantRefusal::NotLicensed, GrantRefusal::NotEstablished];
    assert_eq!(answers(&pair), refusals.map(Err));
}

/// A gateway takes its VPN peer for a licensed node, but the peer does not.
#[test]
fn a_vpn_peer_takes_no_grant() {
    let mut confused = gateway_of_node();
    confused.peers[0].identity = "gateway.example.net".parse().unwrap();
    confused.identity = "mobile.example.net".parse().unwrap();
    let mut pair = Pair::new(confused, gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now)
    });
    pair.settle();
    assert!(granted(&pair).is_empty());
    assert!(matches!(answers(&pair)[..], [Err(GrantRefusal::Code(_))]));
}

/// Between two licensed nodes, or two gateways, neither accepts keys from the other.
#[test]
fn a_gateway_takes_no_grant_from_its_node() {
    let mut pair = Pair::new(
        gateway_of_node(),
        host("node", peer("gateway", PeerRole::Licensed)),
    );
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now)
    });
    pair.settle();
    assert!(granted(&pair).is_empty());
    let code = RefusalCode::NOT_A_LICENSED_NODE;
    assert_eq!(answers(&pair), [Err(GrantRefusal::Code(code))]);
}

#[test]
fn a_licensed_node_makes_no_child() {
    let mut confused = mobile();
    confused.identity = "gateway.example.net".parse().unwrap();
    confused.peers[0].identity = "node.example.net".parse().unwrap();
    let mut pair = Pair::new(confused, node());
    pair.initiate(Side::Left);
    pair.settle();
    assert!(pair.right.children().is_empty() && pair.left.children().is_empty());
    let why = pair.left.down_reasons()[0];
    let notify = NotifyType::NO_ADDITIONAL_SAS;
    assert_eq!(*why, crate::DownReason::ChildRefused { notify });
}

/// A write grant has an overlay key for each direction in addition to the keys of the zones.
#[test]
fn the_keys_of_overlays_come_with_a_grant_to_write() {
    let (mut pair, id) = connected();
    let mut writes = grant(1);
    writes.from_gateway.overlay = Some(Secret::new(vec![3; 36]));
    writes.to_gateway.overlay = Some(Secret::new(vec![4; 36]));
    let sent = writes.clone();
    pair.with(Side::Left, |engine, now| engine.distribute(id, sent, now));
    pair.settle();
    assert_eq!(granted(&pair), [writes]);
}

// Weakness: 106
#[test]
fn an_unsound_grant_is_refused() {
    let variants: [fn(&mut Grant<Secret>); 13] = [
        |g| g.to_gateway.overlay = Some(Secret::new(vec![3; 36])),
        |g| g.lifetime = Duration::ZERO,
        |g| g.from_gateway.zones[0].0 = ZoneId(2),
        |g| g.to_gateway.zones[0].0 = ZoneId(3),
        |g| g.suites.swap(0, 1),
        |g| g.from_gateway.zones.push(g.from_gateway.zones[0].clone()),
        |g| g.to_gateway.zones.clear(),
        |g| g.window = 0,
        |g| g.window = 4095,
        |g| g.window = u32::MAX,
        |g| (g.from_gateway.spi, g.to_gateway.spi) = (Spi(0), Spi(0)),
        |g| g.from_gateway.spi = Spi(255),
        |g| g.to_gateway.spi = Spi(1),
    ];
    for change in variants {
        let (mut pair, id) = connected();
        let mut bad = grant(1);
        change(&mut bad);
        pair.with(Side::Left, |engine, now| engine.distribute(id, bad, now));
        pair.settle();
        assert!(granted(&pair).is_empty());
        let refused = matches!(answers(&pair)[..], [Err(_)]);
        assert!(refused || pair.left.up() == 0, "{:?}", pair.left.events);
    }
}

/// The grant that the renewal would have replaced is still valid and can be revoked.
// Weakness: 105
#[test]
fn a_renewal_that_is_refused_leaves_the_grant_that_it_renews() {
    let (mut pair, id) = connected();
    for (number, refusal) in [(1, None), (2, Some(RefusalCode::INVALID_GRANT))] {
        pair.right.unusable = refusal;
        pair.with(Side::Left, |engine, now| {
            engine.distribute(id, grant(number), now)
        });
        pair.settle();
    }
    pair.with(Side::Left, |engine, now| engine.revoke(id, CsaId(77), now));
    pair.settle();
    let revoked = |event: &Event| matches!(event, Event::Revoked { csa: CsaId(77), .. });
    assert!(pair.right.events.iter().any(revoked));
}

#[test]
fn a_node_keeps_a_bounded_number_of_grants() {
    let mut config = node();
    config.limits.grants = 2;
    let mut pair = Pair::new(gateway_of_node(), config);
    let id = pair.connect();
    for csa in [1, 2, 2, 3] {
        let one = Grant {
            csa: CsaId(csa),
            ..grant(csa as u16)
        };
        pair.with(Side::Left, |engine, now| engine.distribute(id, one, now));
    }
    pair.settle();
    assert_eq!(granted(&pair).len(), 3);
    let code = RefusalCode::TOO_MANY_GRANTS;
    assert_eq!(answers(&pair)[3], Err(GrantRefusal::Code(code)));
}
