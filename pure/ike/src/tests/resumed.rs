//! Sessions that are resumed, by a ticket and by SKID3, among everything else that an IKE SA does:
//! licences, moves, clones, redirects, other devices, changes of the configuration.

use super::certificates::TODAY;
use super::licences::{license, licensed};
use super::mobike::{CELL, TRAIN, ips, mobile_events, move_to, roaming, to, told};
use super::pair::{Flying, Host, LEFT, Pair, RIGHT, Side, fit};
use super::redirect::{LISTED, OTHER, is_up_at, send_away};
pub(super) use super::skid::{answer, first};
use super::ticket::{
    LONG, connected_as, is_one_tunnel, is_resumed, lose, lose_both, lost_as, resuming, set_clocks,
    told_of_kept,
};
use super::zones::zoned;
use super::{clone, *};
use crate::{Config, DownReason, Elsewhere, Event, PORT, Resumption};
use crypto::UnixTime;
use model::{IkeSaId, Path};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::ike::{Notify, NotifyType};

pub(super) const WAYS: [Resumption; 2] = [Resumption::Tickets, Resumption::Skid3];

const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// The licensed node of `zones::zoned`.
const NODE: &str = "node.example.net";

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn plain(way: Resumption) -> (Config, Config) {
    resuming((mobile(), gateway()), way)
}

fn licensing(way: Resumption) -> (Config, Config) {
    resuming(zoned(Stance::Require, Stance::Require), way)
}

/// Initiates from an address of the left end.
fn come_from(pair: &mut Pair, local: &str) -> IkeSaId {
    let [from, to] = [local, RIGHT].map(|ip| SocketAddr::new(ip.parse().unwrap(), PORT));
    let begun = pair.with(Side::Left, |engine, now| {
        engine.initiate(peer_id("gateway"), Path::udp(from, to), now)
    });
    pair.settle();
    begun.unwrap()
}

/// Returns the address of the left end to which the right end sends.
fn seen_at(pair: &Pair) -> Vec<IpAddr> {
    let sas = pair.right.engine.sas();
    sas.map(|sa| sa.path.remote.ip()).collect()
}

/// Returns another device with this configuration.
fn device(config: Config) -> Host {
    let mut device = Host::seeded(config, 99, 1);
    device.engine.set_wall_clock(TODAY);
    device
}

/// Exchanges the left host for another device.
fn swap(pair: &mut Pair, device: &mut Host) {
    std::mem::swap(&mut pair.left, device);
    pair.trace.adopt(Side::Left, &pair.left.engine);
}

/// For the pages: a gateway redirects a client that has proved that it knows the keys.
pub(crate) fn sent_away() -> Pair {
    let mut pair = lost_as(redirected(Resumption::Tickets));
    sends_away(&mut pair, false);
    pair.initiate(Side::Left);
    pair.run_for(MINUTE);
    pair
}

/// For the pages: of initiators that present a ticket, the oldest gives way to the next.
pub(crate) fn giving_way() -> Pair {
    let (left, mut right) = plain(Resumption::Tickets);
    right.limits.half_open.total = 2;
    let mut pair = lost_as((left, right));
    pair.right.store = None;
    let request = first(&mut pair);
    for n in 1..4 {
        pair.deliver(&copied(&request, n, n << 8));
    }
    pair
}

/// Returns a first message as another initiator sends it.
pub(super) fn copied(request: &Flying, n: u32, host: u32) -> Flying {
    let mut copy = request.clone();
    copy.message[..4].copy_from_slice(&n.to_be_bytes());
    let ip = Ipv4Addr::from_bits(0x0a00_0000 + host);
    copy.path.remote = SocketAddr::new(ip.into(), PORT);
    copy
}

// Licences.

/// Rule: nothing licensed comes from an entry.
#[test]
fn a_licence_that_either_end_took_back_since_the_loss_is_not_given_again() {
    for way in WAYS {
        for side in BOTH {
            let mut pair = connected_as(licensing(way));
            assert_eq!(licensed(&pair), [licence(NODE)]);
            lose_both(&mut pair);
            license(&mut pair, side, &[]);
            pair.connect();
            is_resumed(&pair);
            assert_eq!(licensed(&pair), [], "{way:?}, taken back by {side:?}");
            let refusals = pair.host(side.other()).refusals().join("");
            assert!(refusals.contains("zone 1 to node.example.net"));
        }
    }
}

#[test]
fn a_licence_that_both_ends_gave_since_the_loss_is_there_at_once() {
    for way in WAYS {
        let (mut left, mut right) = licensing(way);
        for config in [&mut left, &mut right] {
            zones_of(config).licences.clear();
        }
        let mut pair = lost_as((left, right));
        for side in BOTH {
            license(&mut pair, side, &[NODE]);
        }
        pair.connect();
        is_resumed(&pair);
        assert_eq!(licensed(&pair), [licence(NODE)], "{way:?}");
    }
}

#[test]
fn a_licence_that_is_taken_back_between_two_messages_is_gone_in_the_end() {
    for way in WAYS {
        for passed in 0..=4 {
            for side in BOTH {
                let mut pair = lost_as(licensing(way));
                pair.initiate(Side::Left);
                (0..passed).for_each(|_| assert!(pair.deliver_next()));
                license(&mut pair, side, &[]);
                pair.run_for(MINUTE);
                let which = format!("{way:?}, {side:?} after {passed}");
                assert_eq!(licensed(&pair), [], "{which}");
                assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{which}");
            }
        }
    }
}

/// The identity and its proof come from the entry, so that a licensed session has no other one.
#[test]
fn an_entry_names_no_licensed_node() {
    for way in WAYS {
        let pair = connected_as(licensing(way));
        let entry = pair.right.entries()[0].encode_whole();
        let name = NODE.as_bytes();
        assert!(!entry.expose().windows(name.len()).any(|part| part == name));
    }
}

// Changes of the configuration.

/// SKID3 agrees on everything before the initiator is proved, and a reload may come between.
// Weakness: 183
#[test]
fn a_session_is_resumed_by_the_terms_of_now() {
    for way in WAYS {
        for passed in 0..=4 {
            let mut pair = lost_as(plain(way));
            pair.initiate(Side::Left);
            (0..passed).for_each(|_| assert!(pair.deliver_next()));
            let mut right = plain(way).1;
            right.peers[0].role = vpn("10.0.1.0/24", "10.8.0.0/24", ZonePolicy::default());
            pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
            pair.run_for(LONG);
            if pair.left.up() == 0 {
                pair.connect();
            }
            is_one_tunnel(&pair);
            let local = pair.right.child().local.to_vec();
            assert_eq!(local, [prefix("10.0.1.0/24")], "{way:?} after {passed}");
        }
    }
}

/// An identity may be two peers, each at an address of its own, with terms of its own.
// Weakness: 183
#[test]
fn a_proof_from_the_address_of_another_peer_resumes_nothing() {
    let (left, mut right) = plain(Resumption::Skid3);
    let role = vpn("10.0.0.0/8", "10.8.0.0/24", ZonePolicy::default());
    let mut elsewhere = peer("mobile", role);
    elsewhere.id = peer_id("mobile elsewhere");
    elsewhere.resumption = Resumption::Skid3;
    right.peers[0].address = Some(LEFT.parse().unwrap());
    elsewhere.address = Some(CELL.parse().unwrap());
    right.peers.push(elsewhere);
    let mut pair = lost_as((left, right));
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    let mut proof = answer(&mut pair, &response);
    proof.path.remote.set_ip(CELL.parse().unwrap());
    pair.deliver(&proof);
    pair.intercept();
    assert_eq!(pair.right.resumed(), [false]);
    let told = pair.right.refusals();
    assert!(told.iter().any(|why| why.contains(CELL)), "{told:?}");
}

// Weakness: 183
#[test]
fn a_user_that_was_removed_since_the_loss_is_not_resumed() {
    for way in WAYS {
        let mut pair = lost_as(plain(way));
        let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let mut right = plain(way).1;
        right.peers[0].id = peer_id("another");
        right.peers[0].identity = "another.example.net".parse().unwrap();
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        let told = told_of_kept(&mut pair, kept);
        let unknown = |why: &String| why.contains("no peer with the identity mobile.example.net");
        assert!(told.iter().any(unknown), "{way:?}: {told:?}");
        assert_eq!(pair.right.up(), 0);
    }
}

// Moves.

#[test]
fn an_ike_sa_that_moved_and_was_lost_is_resumed_from_where_its_client_is() {
    for way in WAYS {
        for now_at in [CELL, TRAIN, LEFT] {
            let mut pair = connected_as(resuming(roaming(), way));
            move_to(&mut pair, to(CELL));
            pair.settle();
            assert_eq!(seen_at(&pair), ips(&[CELL]));
            lose(&mut pair);
            come_from(&mut pair, now_at);
            is_resumed(&pair);
            pair.run_for(LONG);
            is_one_tunnel(&pair);
            assert_eq!(seen_at(&pair), ips(&[now_at]), "{way:?}");
            assert_eq!(pair.right.child().path.remote.ip(), ips(&[now_at])[0]);
        }
    }
}

/// MOBIKE and the addresses of both ends are announced anew.
#[test]
fn a_resumed_session_moves_as_any_other() {
    for way in WAYS {
        let (left, mut right) = resuming(roaming(), way);
        right.addresses = ips(&[RIGHT, "198.51.100.1"]);
        let mut pair = connected_as((left, right));
        lose(&mut pair);
        pair.connect();
        is_resumed(&pair);
        let besides = (true, ips(&["198.51.100.1"]));
        let announced = mobile_events(&mut pair, Side::Left);
        assert_eq!(announced, [besides.clone(), besides]);
        move_to(&mut pair, to(CELL));
        pair.settle();
        assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]), "{way:?}");
        move_to(&mut pair, to(TRAIN));
        pair.settle();
        assert_eq!(told(&mut pair, Side::Right), ips(&[CELL, TRAIN]));
        is_one_tunnel(&pair);
    }
}

/// The initiator of SKID3 is up before its proof is answered, and the proof then comes from
/// elsewhere.
#[test]
fn a_client_that_moves_before_its_proof_arrives_is_found_where_it_moved_to() {
    for arrives in [false, true] {
        let mut pair = lost_as(resuming(roaming(), Resumption::Skid3));
        let request = first(&mut pair);
        let response = answer(&mut pair, &request);
        pair.deliver(&response);
        let proof = pair.intercept().remove(0);
        move_to(&mut pair, to(CELL));
        if arrives {
            pair.deliver(&proof);
        }
        pair.run_for(MINUTE);
        is_resumed(&pair);
        assert_eq!(seen_at(&pair), ips(&[CELL]), "it arrives: {arrives}");
        assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    }
}

/// Address of an initiation for which the operating system chooses one.
const ANY: &str = "0.0.0.0";

/// Sets the address that the operating system of the left end chooses.
fn chooses(pair: &mut Pair, local: Option<&str>) {
    let local = local.map(|local| local.parse().unwrap());
    let sources = [(RIGHT.parse().unwrap(), local)];
    pair.left.engine.set_sources(sources.into_iter());
}

/// Returns the number of messages that present a ticket.
fn shows(pair: &Pair, ticket: &[u8]) -> usize {
    let has = |flying: &&Flying| {
        let mut parts = flying.message.windows(ticket.len());
        parts.any(|part| part == ticket)
    };
    pair.sent.iter().filter(has).count()
}

/// Rule: a handle is shown on one network only. The operating system chooses the address of each
/// message.
// Weakness: 185
#[test]
fn a_ticket_that_is_not_answered_is_shown_on_one_network_only() {
    let cases = [
        (None, None, false),
        (Some(Some(CELL)), Some(Some(CELL)), true),
        (Some(Some(CELL)), Some(Some(TRAIN)), false),
        // Without a route, nobody has seen it.
        (Some(None), Some(Some(TRAIN)), true),
    ];
    for way in WAYS {
        for (before, after, resumes) in cases {
            let which = format!("{way:?}, {before:?}, {after:?}");
            let mut pair = lost_as(plain(way));
            let held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
            pair.deaf = true;
            if let Some(local) = before {
                chooses(&mut pair, local);
            }
            come_from(&mut pair, ANY);
            pair.run_for(LONG);
            assert_eq!(pair.left.engine.sas().count(), 0);
            assert!(shows(&pair, &held.ticket) > 0);
            pair.sent.clear();
            pair.deaf = false;
            if let Some(local) = after {
                chooses(&mut pair, local);
            }
            come_from(&mut pair, ANY);
            assert_eq!(shows(&pair, &held.ticket) > 0, resumes, "{which}");
            assert_eq!(pair.left.resumed(), [false, resumes], "{which}");
            is_one_tunnel(&pair);
        }
    }
}

/// A ticket waits for the network on which it was seen, if there is none at the moment.
#[test]
fn a_ticket_is_kept_while_there_is_no_route() {
    for way in WAYS {
        let mut pair = lost_as(plain(way));
        pair.deaf = true;
        for local in [Some(CELL), None] {
            chooses(&mut pair, local);
            come_from(&mut pair, ANY);
            pair.run_for(LONG);
            assert!(pair.left.holds_ticket(), "{way:?}, {local:?}");
        }
        pair.deaf = false;
        chooses(&mut pair, Some(CELL));
        come_from(&mut pair, ANY);
        is_resumed(&pair);
    }
}

/// The client comes to another network while its attempt is not answered.
// Weakness: 185
#[test]
fn an_attempt_to_resume_does_not_follow_its_client_to_another_network() {
    for way in WAYS {
        let mut pair = lost_as(plain(way));
        let held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        pair.deaf = true;
        chooses(&mut pair, Some(CELL));
        come_from(&mut pair, ANY);
        pair.run_for(Duration::from_secs(5));
        assert!(shows(&pair, &held.ticket) > 1, "{way:?}");
        pair.sent.clear();
        pair.deaf = false;
        chooses(&mut pair, Some(TRAIN));
        pair.run_for(MINUTE);
        assert_eq!(shows(&pair, &held.ticket), 0, "{way:?}");
        assert_eq!(pair.left.resumed(), [false, false]);
        is_one_tunnel(&pair);
    }
}

// Clones.

fn cloning(way: Resumption) -> (Config, Config) {
    resuming(clone::ends(), way)
}

/// "peers MUST NOT transfer existing Child SAs", nor tickets: the clone has its own.
#[test]
fn after_a_hand_over_the_session_of_the_clone_is_resumed() {
    for way in WAYS {
        let mut pair = connected_as(cloning(way));
        let before = pair.right.entries()[0].clone();
        clone::hand_over(&mut pair, CELL);
        pair.run_for(MINUTE);
        is_one_tunnel(&pair);
        assert_eq!(
            pair.right.entries().len(),
            1,
            "that of the original is gone"
        );
        let entry = pair.right.entries()[0].clone();
        assert_ne!(entry.keys.secret, before.keys.secret);
        assert_eq!(
            entry.usage.since, before.usage.since,
            "of the last full proof"
        );
        lose_both(&mut pair);
        come_from(&mut pair, CELL);
        is_resumed(&pair);
        assert_eq!(seen_at(&pair), ips(&[CELL]), "{way:?}");
    }
}

/// The clone inherits how long the authentication has been in use.
#[test]
fn a_hand_over_renews_no_authentication() {
    for way in WAYS {
        let (left, mut right) = cloning(way);
        right.resumption.established = Some(Duration::from_secs(5000));
        let mut pair = connected_as((left, right));
        pair.run_for(Duration::from_secs(1000));
        set_clocks(&mut pair, UnixTime(TODAY.0 + 1000));
        clone::hand_over(&mut pair, CELL);
        pair.run_for(MINUTE);
        let entries = pair.right.entries();
        let usage = entries[0].usage;
        // With the ten minutes that are charged in advance.
        let used = usage.established.as_secs();
        assert_eq!((entries.len(), usage.since), (1, TODAY));
        assert!((1600..1700).contains(&used), "{way:?}: {used}");
    }
}

#[test]
fn a_hand_over_that_is_lost_halfway_leaves_one_session() {
    for way in WAYS {
        for passed in 0..14 {
            let (mut left, right) = cloning(way);
            left.peers[0].liveness = Duration::from_secs(10);
            let mut pair = connected_as((left, right));
            clone::hand_over(&mut pair, CELL);
            for _ in 0..passed {
                pair.deliver_next();
            }
            pair.deaf = true;
            pair.run_for(LONG * 2);
            assert_eq!(pair.left.up(), 0);
            pair.deaf = false;
            let resumes = pair.left.holds_ticket();
            pair.connect();
            let resumed = pair.left.resumed();
            assert_eq!(resumed, [false, resumes], "{way:?} after {passed}");
            pair.run_for(LONG);
            is_one_tunnel(&pair);
            assert_eq!(pair.right.entries().len(), 1);
        }
    }
}

// Redirects.

/// Returns ends of which the left one follows the right one elsewhere.
fn redirected(way: Resumption) -> (Config, Config) {
    let (mut left, right) = plain(way);
    left.peers[0].redirects = vec![prefix(LISTED)];
    (left, right)
}

fn sends_away(pair: &mut Pair, at_once: bool) {
    let to = OTHER.parse().unwrap();
    pair.right.engine.config.elsewhere = Some(Elsewhere { to, at_once });
}

// Weakness: 182
#[test]
fn a_redirection_that_nobody_has_proved_is_a_refusal_and_leads_nowhere() {
    for way in WAYS {
        let mut pair = lost_as(redirected(way));
        let request = first(&mut pair);
        let to = [&[1, 4][..], &[198, 51, 100, 7]].concat();
        let forged = request.forged_answer(&[Notify::new(NotifyType::REDIRECT, to)]);
        pair.deliver(&forged);
        pair.deliver(&forged);
        assert_eq!(pair.left.sent_to(), ips(&[]), "{way:?}");
        assert_eq!(pair.left.not_resumed(), 1, "one full exchange, not two");
        let full = pair.intercept();
        assert_eq!((full.len(), full[0].path.local.ip()), (1, ips(&[RIGHT])[0]));
        // A good answer that comes later still counts.
        pair.deliver(&request);
        pair.settle();
        is_resumed(&pair);
        assert!(is_up_at(&pair, RIGHT));
    }
}

/// The redirection is the answer to a proof, or that to the full exchange after a refusal.
#[test]
fn a_client_whose_gateway_sends_it_away_meets_the_other_one_in_full() {
    for way in WAYS {
        for at_once in [false, true] {
            let mut pair = lost_as(redirected(way));
            sends_away(&mut pair, at_once);
            pair.initiate(Side::Left);
            pair.run_for(MINUTE);
            assert_eq!(pair.left.sent_to(), ips(&[OTHER]), "{way:?} {at_once}");
            assert!(is_up_at(&pair, OTHER));
            assert_eq!(pair.left.resumed(), [false, false]);
            assert!(pair.left.holds_ticket(), "of the other one");
        }
    }
}

#[test]
fn a_client_that_was_sent_away_resumes_the_session_of_the_other_gateway() {
    for way in WAYS {
        let mut pair = connected_as(redirected(way));
        let before = pair.right.entries()[0].keys.secret.clone();
        send_away(&mut pair);
        pair.run_for(MINUTE);
        assert!(is_up_at(&pair, OTHER));
        // The Delete at the first gateway ends the session there, and leaves that of the other one.
        let entries = pair.right.entries();
        assert_eq!(entries.len(), 1);
        assert_ne!(entries[0].keys.secret, before);
        lose_both(&mut pair);
        pair.connect();
        let resumed = pair.left.resumed();
        assert_eq!(resumed, [false, false, true], "both share a store: {way:?}");
        assert!(is_up_at(&pair, RIGHT));
    }
}

/// A gateway that shares neither store nor key with the one that gave the ticket refuses it, and
/// nothing is lost but a round trip.
#[test]
fn a_ticket_of_the_other_gateway_is_refused_by_the_first_one() {
    for way in WAYS {
        let mut pair = connected_as(redirected(way));
        send_away(&mut pair);
        pair.run_for(MINUTE);
        lose_both(&mut pair);
        let mut first = Host::seeded(redirected(way).1, 50, 2);
        first.engine.set_wall_clock(TODAY);
        pair.restart(Side::Right, first);
        pair.connect();
        assert_eq!(pair.left.not_resumed(), 1, "{way:?}");
        assert!(is_up_at(&pair, RIGHT));
    }
}

// Other devices.

/// INITIAL_CONTACT asserts that the identity has no other IKE SA (RFC 7296 section 2.4).
#[test]
fn another_device_of_an_identity_ends_the_session_of_the_first_one() {
    for way in WAYS {
        let mut pair = connected_as(plain(way));
        let mut other = device(plain(way).0);
        swap(&mut pair, &mut other);
        come_from(&mut pair, TRAIN);
        assert_eq!((pair.right.up(), pair.right.entries().len()), (1, 1));
        let displaced = |event: &Event| matches!(event, Event::Displaced { .. });
        assert!(pair.right.events.iter().any(displaced));
        swap(&mut pair, &mut other);
        lose(&mut pair);
        pair.connect();
        assert_eq!(pair.left.resumed(), [false, false], "{way:?}");
        assert_eq!(pair.left.not_resumed(), 1);
        assert_eq!((pair.right.up(), pair.right.entries().len()), (1, 1));
    }
}

/// A session that was lost at both ends has no IKE SA that INITIAL_CONTACT could end.
#[test]
fn a_resumed_session_takes_the_place_of_another_device_of_its_identity() {
    for way in WAYS {
        let mut pair = lost_as(plain(way));
        let mut other = device(plain(way).0);
        swap(&mut pair, &mut other);
        come_from(&mut pair, TRAIN);
        assert_eq!((pair.right.up(), pair.right.entries().len()), (1, 2));
        swap(&mut pair, &mut other);
        pair.connect();
        assert_eq!(pair.right.resumed(), [false, false, true], "{way:?}");
        assert_eq!(pair.right.up(), 1);
        let why = pair.right.down_reasons();
        assert_eq!(why.last(), Some(&&DownReason::Replaced));
        let displaced = |event: &Event| matches!(event, Event::Displaced { .. });
        assert!(pair.right.events.iter().any(displaced));
        assert_eq!(pair.right.entries().len(), 1, "the other one's has ended");
        assert!(fit(pair.left.child(), pair.right.child()));
    }
}

#[test]
fn a_resumed_session_ends_nothing_of_another_identity() {
    for way in WAYS {
        let (left, mut right) = plain(way);
        let role = vpn("10.0.0.0/16", "10.9.0.0/24", ZonePolicy::default());
        right.peers.push(peer("other", role));
        right.peers[1].resumption = way;
        let role = vpn("10.9.0.2/32", "10.0.0.0/8", ZonePolicy::default());
        let mut other = host("other", peer("gateway", role));
        other.peers[0].resumption = way;
        let mut other = device(other);
        let mut pair = connected_as((left, right));
        swap(&mut pair, &mut other);
        come_from(&mut pair, TRAIN);
        assert_eq!((pair.right.up(), pair.right.entries().len()), (2, 2));
        swap(&mut pair, &mut other);
        lose(&mut pair);
        pair.connect();
        assert_eq!(pair.right.resumed(), [false, false, true], "{way:?}");
        assert_eq!((pair.right.up(), pair.right.entries().len()), (2, 2));
    }
}
