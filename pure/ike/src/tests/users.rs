//! Users of one table: everyone with a certificate for one of its identities. The certificates in
//! `users/` were made by openssl and are valid in 2030.

use super::addresses::{borrower, lender};
use super::certificates::{TODAY, by_certificate, certificate, credential, ends, pair};
use super::pair::{Host, NAT, Pair, Side};
use super::ticket::{LONG, connected_as, lose_both, resuming};
use super::*;
use crate::{DownReason, Event, Resumption, Unencrypted, UserPolicy};
use crypto::{TrustStore, UnixTime};
use model::{Allowance, EspSuite, Identity, Sha2, Unique, Wildcard};
use wire::ike::NotifyType;

const POOL: [&str; 1] = ["10.9.0.0/24"];

pub(super) const STAFF: &str = "*@staff.example.net";

pub(super) fn identity(text: &str) -> Identity {
    text.parse().unwrap()
}

/// Returns the host of a user with a certificate.
pub(super) fn user(text: &str) -> Config {
    let (name, _) = text.split_once('@').unwrap();
    let made = format!("../users/{name}");
    let mut config = by_certificate(borrower(), &["mobile-ca"]);
    config.credential = Some(credential(&[&made], &made));
    config.identity = identity(text);
    config
}

pub(super) fn alice() -> Config {
    user("alice@staff.example.net")
}

pub(super) fn bob() -> Config {
    user("bob@staff.example.net")
}

/// Returns a table for many users.
pub(super) fn table(pattern: &str) -> Peer {
    let mut table = lender(&POOL).peers.remove(0);
    table.id = peer_id(pattern);
    table.identity = identity(pattern);
    table.psk = None;
    let identities = Wildcard::read(&table.identity).unwrap();
    table.users = Some(Box::new(UserPolicy {
        identities,
        most: 100,
    }));
    table
}

/// Returns the gateway with these tables.
pub(super) fn gateway_with(tables: impl IntoIterator<Item = Peer>) -> Config {
    let mut config = by_certificate(lender(&POOL), &["gateway"]);
    config.peers = tables.into_iter().collect();
    config.trust = TrustStore::new(vec![certificate("../users/ca")]);
    config
}

pub(super) fn staff() -> Config {
    gateway_with([table(STAFF)])
}

fn unique(unique: Unique) -> Config {
    let mut table = table(STAFF);
    table.unique = unique;
    table.liveness = Duration::from_secs(30);
    gateway_with([table])
}

pub(super) fn connected(left: Config, right: Config) -> Pair {
    let mut pair = pair(left, right, TODAY, 1);
    pair.connect();
    pair
}

/// Connects another user from the left host, or the same one on another machine. The gateway keeps
/// the SAs of the first one.
pub(super) fn connect_other(pair: &mut Pair, config: Config, seed: u8) {
    let mut host = Host::seeded(config, seed, 1);
    host.engine.set_wall_clock(TODAY);
    pair.restart(Side::Left, host);
    pair.connect();
}

/// Returns the names and identifiers of the users that came, in order.
pub(super) fn entered(pair: &Pair) -> Vec<(String, PeerId)> {
    let events = pair.right.events.iter();
    let entered = events.filter_map(|event| match event {
        Event::UserEntered { name, peer, .. } => Some((name.clone(), *peer)),
        _ => None,
    });
    entered.collect()
}

pub(super) fn names(pair: &Pair) -> Vec<String> {
    entered(pair).into_iter().map(|(name, _)| name).collect()
}

/// Returns the identities of the users that are here.
pub(super) fn here(pair: &Pair) -> Vec<String> {
    let users = pair.right.engine.users();
    users.map(|user| user.identity.to_string()).collect()
}

fn left(pair: &Pair) -> usize {
    let is_left = |event: &&Event| matches!(event, Event::UserLeft { .. });
    pair.right.events.iter().filter(is_left).count()
}

/// Returns the peers with an IKE SA that is up at the gateway, with their inner addresses.
pub(super) fn up(pair: &Pair) -> Vec<(String, String)> {
    let sas = pair.right.engine.sas().filter(|sa| sa.since.is_some());
    let up = sas.filter_map(|sa| {
        let peer = pair.right.engine.peer(sa.peer?)?;
        let address = sa.addresses?.iter().next()?;
        Some((peer.identity.to_string(), address.to_string()))
    });
    up.collect()
}

fn strings<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    let owned = pairs.map(|(one, other)| (one.to_owned(), other.to_owned()));
    owned.into()
}

#[test]
fn everyone_with_a_certificate_for_a_name_of_the_pattern_is_a_peer_of_its_own() {
    let mut pair = connected(alice(), staff());
    connect_other(&mut pair, bob(), 2);
    let entered = entered(&pair);
    assert_eq!(
        names(&pair),
        ["alice@staff.example.net", "bob@staff.example.net"]
    );
    assert_ne!(entered[0].1, entered[1].1);
    assert!(entered.iter().all(|(_, peer)| peer.is_user()));
    let expected = strings([
        ("alice@staff.example.net", "10.9.0.1"),
        ("bob@staff.example.net", "10.9.0.2"),
    ]);
    assert_eq!(up(&pair), expected);
    let table = peer_id(STAFF);
    let engine = &pair.right.engine;
    assert_eq!(engine.table_of(entered[0].1), Some(table));
    assert_eq!(engine.count_users(table), 2);
    assert_eq!(engine.sas_of(table).count(), 0, "the table itself has none");
    let ups = pair.right.events.iter().filter_map(|event| match event {
        Event::IkeUp { peer, .. } => Some(*peer),
        _ => None,
    });
    assert!(ups.eq(entered.iter().map(|(_, peer)| *peer)));
}

#[test]
fn a_certificate_for_another_domain_is_no_way_in_nor_is_another_claim_of_its_owner() {
    let carol = || user("carol@sales.example.net");
    let mut pair = connected(carol(), staff());
    assert_eq!((pair.right.up(), here(&pair).len()), (0, 0));
    assert!(pair.right.refusals()[0].contains("no peer with the identity carol@sales"));
    let mut liar = carol();
    liar.identity = identity("carol@staff.example.net");
    connect_other(&mut pair, liar, 2);
    assert_eq!((pair.right.up(), here(&pair).len()), (0, 0));
    let last = pair.right.refusals().pop().unwrap();
    assert!(last.contains("carol@staff.example.net"), "{last}");
    let mut literal = alice();
    literal.identity = identity(STAFF);
    connect_other(&mut pair, literal, 3);
    assert_eq!((pair.right.up(), here(&pair).len()), (0, 0));
    connect_other(&mut pair, alice(), 4);
    assert_eq!(pair.right.up(), 1, "the gateway is well");
}

/// Rule 23: "Wildcard identities need certificates or EAP; with a PSK they are refused".
#[test]
fn a_secret_that_many_share_proves_nobody() {
    let secret = Secret::new(b"a secret that all users know".to_vec());
    let mut right = staff();
    right.peers[0].psk = Some(secret.clone());
    let mut left = alice();
    left.peers[0].psk = Some(secret);
    let pair = connected(left, right);
    assert_eq!((pair.right.up(), here(&pair).len()), (0, 0));
    assert!(pair.right.refusals()[0].contains("no peer with the identity alice@staff"));
}

#[test]
fn a_table_of_ones_own_comes_first_then_the_longest_pattern() {
    let own = |id: &str| {
        let mut own = table(STAFF);
        (own.id, own.identity, own.users) = (peer_id(id), identity(id), None);
        own
    };
    for (tables, expected) in [
        (
            vec![table("*"), table(STAFF), own("alice@staff.example.net")],
            "alice@staff.example.net",
        ),
        (
            vec![table("*"), table(STAFF), own("bob@staff.example.net")],
            STAFF,
        ),
        (vec![table("*"), table("*@sales.example.net")], "*"),
    ] {
        let pair = connected(alice(), gateway_with(tables));
        let peer = pair
            .right
            .engine
            .sas()
            .next()
            .and_then(|sa| sa.peer)
            .unwrap();
        let table = pair.right.engine.table_of(peer).unwrap_or(peer);
        assert_eq!(table, peer_id(expected), "{expected}");
    }
}

#[test]
fn nobody_has_our_own_identity() {
    let mut right = gateway_with([table("*")]);
    right.identity = identity("alice@staff.example.net");
    let pair = connected(alice(), right);
    assert_eq!((pair.right.up(), here(&pair).len()), (0, 0));
}

#[test]
fn one_user_too_many_is_refused_for_now_and_comes_when_another_has_left() {
    let mut right = staff();
    right.peers[0].users.as_mut().unwrap().most = 1;
    let mut pair = connected(alice(), right);
    connect_other(&mut pair, bob(), 2);
    assert_eq!(here(&pair), ["alice@staff.example.net"]);
    let why = "bob@staff.example.net is not admitted: 1 users are here already";
    assert_eq!(pair.right.refusals(), [why]);
    let refused = DownReason::ChildRefused {
        notify: NotifyType::TEMPORARY_FAILURE,
    };
    assert_eq!(pair.left.down_reasons(), [&refused]);
    // Its place is free as soon as its tunnel has ended, although its last answer is kept.
    let alice = pair.right.engine.sas().next().map(|sa| sa.id).unwrap();
    pair.with(Side::Right, |engine, now| engine.close(alice, now));
    pair.lose();
    pair.connect();
    assert_eq!(here(&pair), ["bob@staff.example.net"]);
    assert_eq!((left(&pair), pair.right.up()), (1, 1));
}

#[test]
fn a_user_is_forgotten_when_nothing_is_left_of_its_tunnel_and_has_its_address_again() {
    let mut pair = connected(alice(), staff());
    let first = entered(&pair)[0].1;
    let sa = pair.left.engine.sas().next().map(|sa| sa.id).unwrap();
    pair.with(Side::Left, |engine, now| engine.close(sa, now));
    pair.run_for(LONG);
    assert!(here(&pair).is_empty());
    assert_eq!(left(&pair), 1);
    let engine = &pair.right.engine;
    assert!(engine.peer(first).is_none() && engine.attempt(first).is_none());
    pair.connect();
    assert_eq!(
        up(&pair),
        strings([("alice@staff.example.net", "10.9.0.1")])
    );
    assert_ne!(entered(&pair)[1].1, first, "identifiers are not used again");
}

#[test]
fn of_two_machines_with_one_identity_the_newer_one_replaces_the_older() {
    let mut pair = connected(alice(), unique(Unique::Replace));
    pair.nat = Some(NAT);
    connect_other(&mut pair, alice(), 2);
    assert_eq!((pair.right.up(), names(&pair).len()), (1, 1));
    let displaced = |event: &Event| matches!(event, Event::Displaced { .. });
    assert!(pair.right.events.iter().any(displaced));
    // INITIAL_CONTACT is about the identity that is proved, and no other.
    connect_other(&mut pair, bob(), 3);
    assert_eq!(pair.right.up(), 2);
}

#[test]
fn of_two_machines_with_one_identity_the_older_one_is_kept_while_it_answers() {
    let mut pair = connected(alice(), unique(Unique::Keep));
    pair.nat = Some(NAT);
    connect_other(&mut pair, alice(), 2);
    let why = "the peer is up from 192.168.1.2, and that tunnel stays";
    assert_eq!(pair.right.refusals(), [why]);
    assert_eq!((pair.right.up(), pair.left.up()), (1, 0));
    assert_eq!(pair.right.down_reasons(), [] as [&DownReason; 0]);
    assert_eq!(
        up(&pair),
        strings([("alice@staff.example.net", "10.9.0.1")])
    );
    // The first machine does not answer any more, which the attempt has found out.
    pair.run_for(LONG);
    assert_eq!(pair.right.up(), 0);
    pair.connect();
    assert_eq!((pair.right.up(), pair.left.up()), (1, 1));
}

#[test]
fn a_machine_that_restarts_at_its_address_is_no_second_one() {
    for kept in [unique(Unique::Keep), {
        let mut config = staff();
        let peer = &mut config.peers[0];
        (peer.identity, peer.users) = (identity("alice@staff.example.net"), None);
        peer.unique = Unique::Keep;
        config
    }] {
        let mut pair = connected(alice(), kept);
        connect_other(&mut pair, alice(), 2);
        assert_eq!((pair.right.up(), pair.left.up()), (1, 1));
        assert_eq!(pair.right.refusals(), [""; 0]);
    }
}

#[test]
fn two_machines_with_one_identity_can_be_up_side_by_side_with_an_address_each() {
    let mut pair = connected(alice(), unique(Unique::Never));
    pair.nat = Some(NAT);
    connect_other(&mut pair, alice(), 2);
    let second = "alice@staff.example.net (2)";
    assert_eq!(names(&pair), ["alice@staff.example.net", second]);
    let expected = strings([
        ("alice@staff.example.net", "10.9.0.1"),
        ("alice@staff.example.net", "10.9.0.2"),
    ]);
    assert_eq!(up(&pair), expected);
    // One of them that is taken down keeps others of its identity out.
    let first = entered(&pair)[0].1;
    pair.with(Side::Right, |engine, now| engine.bar(first, true, now));
    connect_other(&mut pair, alice(), 3);
    assert_eq!((pair.right.up(), names(&pair).len()), (2, 2));
    let lessees: Vec<_> = pair
        .right
        .engine
        .leases()
        .map(|lease| lease.identity)
        .collect();
    let lessees: Vec<_> = lessees.iter().map(ToString::to_string).collect();
    assert_eq!(lessees, ["alice@staff.example.net", second]);
}

/// One identity of one table, by a secret: no other identity is proved by it.
#[test]
fn one_identity_has_few_tunnels_at_once_whatever_its_owner_does() {
    let mut right = lender(&POOL);
    let peer = &mut right.peers[0];
    peer.unique = Unique::Never;
    let identities = Wildcard::One(peer.identity.clone());
    peer.users = Some(Box::new(UserPolicy {
        identities,
        most: 1000,
    }));
    let mut pair = connected(borrower(), right);
    for seed in 2..40 {
        connect_other(&mut pair, borrower(), seed);
    }
    assert_eq!((pair.right.up(), here(&pair).len()), (16, 16));
    let last = pair.right.refusals().pop().unwrap();
    assert_eq!(last, "mobile.example.net has all of its 16 tunnels already");
}

fn resumable(way: Resumption) -> Pair {
    let mut pair = connected_as(resuming((alice(), staff()), way));
    assert!(pair.left.holds_ticket());
    lose_both(&mut pair);
    assert!(here(&pair).is_empty());
    pair
}

/// A session comes back when its table has no room for its user any more.
fn full(way: Resumption) -> Pair {
    let mut pair = resumable(way);
    let (_, mut config) = resuming((alice(), staff()), way);
    config.peers[0].users.as_mut().unwrap().most = 0;
    pair.with(Side::Right, |engine, now| engine.reconfigure(config, now));
    pair.connect();
    pair
}

/// For the pages: the engine does not let an initiator come that resumes a session.
pub(crate) fn refused_by_ticket() -> Pair {
    full(Resumption::Tickets)
}

const WAYS: [Resumption; 3] = [Resumption::Tickets, Resumption::Skid3, Resumption::Skid3Pfs];

#[test]
fn a_session_comes_back_under_the_identity_that_was_proved() {
    for way in WAYS {
        let mut pair = resumable(way);
        pair.connect();
        assert_eq!(pair.right.resumed(), [false, true], "{way:?}");
        assert_eq!(here(&pair), ["alice@staff.example.net"]);
        assert_eq!(
            up(&pair),
            strings([("alice@staff.example.net", "10.9.0.1")])
        );
    }
}

#[test]
fn a_session_that_comes_back_counts_among_the_users() {
    for way in WAYS {
        let mut pair = full(way);
        pair.run_for(LONG);
        assert_eq!(pair.right.up(), 0, "{way:?}");
        assert!(!pair.right.resumed().contains(&true));
        assert!(here(&pair).is_empty());
        let full = pair.right.refusals();
        assert!(
            full.iter().any(|why| why.contains("0 users are here")),
            "{full:?}"
        );
    }
}

#[test]
fn a_reload_that_takes_a_pattern_away_or_narrows_it_ends_those_whom_it_no_longer_means() {
    let narrowed = gateway_with([table("*@sales.example.net")]);
    let mut own = staff();
    let mut alices = table(STAFF);
    alices.id = peer_id("alice");
    (alices.identity, alices.users) = (identity("alice@staff.example.net"), None);
    own.peers.push(alices);
    for config in [gateway_with([ends().1.peers.remove(0)]), narrowed, own] {
        let mut pair = connected(alice(), staff());
        let changed = pair.with(Side::Right, |engine, now| engine.reconfigure(config, now));
        assert_eq!(changed, []);
        assert_eq!(pair.right.down_reasons(), [&DownReason::Removed]);
        assert_eq!((here(&pair).len(), left(&pair)), (0, 1));
        pair.settle();
        assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedByPeer]);
    }
}

/// Packets without encryption are allowed to one peer at a time. All users would share them.
#[test]
fn a_user_has_no_unencrypted_packets_of_its_table() {
    let mut table = table(STAFF);
    table.unencrypted = Some(Box::new(Unencrypted {
        suites: vec![EspSuite::Null(Sha2::Sha256)],
        until: UnixTime(u64::MAX),
        packets: Allowance::new(1000),
    }));
    let user = table.user(peer_id("alice"), identity("alice@staff.example.net"));
    assert_eq!(user.unencrypted, None);
}

#[test]
fn a_reload_keeps_users_whose_terms_stay_and_has_all_others_come_again() {
    let mut pair = connected(alice(), staff());
    let user = entered(&pair)[0].1;
    let wider = gateway_with([table("*@sales.example.net"), table("*")]);
    let changed = pair.with(Side::Right, |engine, now| engine.reconfigure(wider, now));
    assert_eq!((changed, pair.right.up()), (vec![], 1));
    assert_eq!(pair.right.engine.table_of(user), Some(peer_id("*")));
    let mut other = staff();
    other.peers[0].suites = vec![Suite::ChaCha20Poly1305];
    let changed = pair.with(Side::Right, |engine, now| engine.reconfigure(other, now));
    assert_eq!(changed, [user]);
    assert_eq!(pair.right.down_reasons(), [&DownReason::Reconfigured]);
}

#[test]
fn a_user_or_a_whole_table_that_is_taken_down_stays_down() {
    for whole in [false, true] {
        let mut pair = connected(alice(), staff());
        let user = entered(&pair)[0].1;
        let barred = if whole { peer_id(STAFF) } else { user };
        let sa = pair.right.engine.sas().next().map(|sa| sa.id).unwrap();
        pair.with(Side::Right, |engine, now| {
            engine.bar(barred, true, now);
            engine.close(sa, now);
        });
        pair.run_for(LONG);
        connect_other(&mut pair, alice(), 2);
        assert_eq!(pair.right.up(), 0);
        assert_eq!(pair.right.refusals(), ["the peer was taken down here"]);
        connect_other(&mut pair, bob(), 3);
        assert_eq!(pair.right.up(), usize::from(!whole), "another user");
        pair.run_for(LONG);
        let known = pair.right.engine.peer(user).is_some();
        assert_eq!(known, !whole, "so that it can be named");
        pair.with(Side::Right, |engine, now| engine.bar(barred, false, now));
        connect_other(&mut pair, alice(), 4);
        assert_eq!(pair.left.up(), 1);
    }
}
