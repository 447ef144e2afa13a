//! IKE over TCP: the rules of RFC 9329. The network between the hosts blocks UDP or cuts
//! connections.

use super::mobike::{move_to, roaming};
use super::pair::{Flying, LEFT, Pair, RIGHT, Side, fit};
use super::*;
use crate::{DownReason, DropReason, Event, SaState, Tcp};
use model::{Carrier, IkeSaId, Path};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use wire::ike::{Datagram, Header, Notify, NotifyType, Payload};
use world::Nat;

const PORT: u16 = 4500;

/// Returns a mobile node with this TCP setting, and its gateway.
fn streaming(tcp: Tcp) -> (Config, Config) {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].tcp = tcp;
    (left, right)
}

/// Like [`streaming`], with a tunnel that can move.
fn wandering(tcp: Tcp) -> (Config, Config) {
    let (mut left, right) = roaming();
    left.peers[0].tcp = tcp;
    (left, right)
}

/// Returns a pair without UDP, after this many seconds.
pub(crate) fn fallen(time: u64) -> Pair {
    let (left, right) = streaming(Tcp::Fallback(PORT));
    let mut pair = Pair::new(left, right);
    pair.deaf = true;
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(time));
    pair
}

/// Returns a tunnel in a stream whose connection is lost.
pub(crate) fn broken() -> Pair {
    let mut pair = up(streaming(Tcp::Always(PORT)));
    pair.begin_story();
    cut(&mut pair);
    pair.settle();
    pair
}

/// Returns a tunnel in a stream.
fn up((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(path(&mut pair, Side::Left).is_stream());
    pair
}

fn sa(pair: &mut Pair, side: Side) -> crate::SaStatus {
    let sas = pair.host(side).engine.sas();
    let mut up: Vec<_> = sas.filter(|sa| sa.state == SaState::Established).collect();
    assert_eq!(up.len(), 1);
    up.remove(0)
}

fn path(pair: &mut Pair, side: Side) -> Path {
    sa(pair, side).path
}

/// Returns the path that an end last reported for its children.
fn carried(pair: &mut Pair, side: Side) -> Path {
    let host = pair.host(side);
    let moved = host.events.iter().rev().find_map(|event| match event {
        Event::PathMoved { path, .. } => Some(*path),
        _ => None,
    });
    moved.unwrap_or_else(|| host.child().path)
}

/// Cuts the connection of the left host and reports this to its engine.
fn cut(pair: &mut Pair) {
    let path = path(pair, Side::Left);
    pair.cut.insert(path.local.port());
    tell(pair, path);
}

fn tell(pair: &mut Pair, path: Path) {
    pair.with(Side::Left, |engine, now| {
        engine.handle_disconnected(path, now)
    });
}

fn carriers(pair: &Pair) -> Vec<Carrier> {
    pair.sent.iter().map(|flying| flying.path.carrier).collect()
}

fn streams_from_left(pair: &Pair) -> impl Iterator<Item = &Flying> {
    let to_right = pair.sent.iter().filter(|flying| flying.to == Side::Right);
    to_right.filter(|flying| flying.path.is_stream())
}

fn notifies(message: &[u8]) -> Vec<Notify> {
    let Ok(Datagram::Clear(message)) = Datagram::decode(message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    let notifies = message.payloads.into_iter();
    notifies
        .filter_map(|payload| match payload {
            Payload::Notify(notify) => Some(notify),
            _ => None,
        })
        .collect()
}

#[test]
fn tcp_is_tried_when_nobody_has_answered_by_udp() {
    let mut pair = fallen(20);
    assert!(fit(pair.left.child(), pair.right.child()));
    let datagrams = carriers(&pair);
    let datagrams = datagrams.iter().filter(|carrier| **carrier == Carrier::Udp);
    assert_eq!(datagrams.count(), 4, "retransmitted at least once before");
    assert_eq!(pair.left.down_reasons().len(), 0);
    let left = path(&mut pair, Side::Left);
    assert_eq!(left.remote, SocketAddr::new(RIGHT.parse().unwrap(), PORT));
    assert_eq!(path(&mut pair, Side::Right), left.reversed());
}

#[test]
fn a_new_ike_sa_is_begun_with_another_spi_and_its_own_hashes_of_ports() {
    let pair = fallen(20);
    let firsts: Vec<_> = [Carrier::Udp, Carrier::Tcp]
        .map(|carrier| pair.sent.iter().find(|f| f.path.carrier == carrier))
        .map(|first| first.expect("both were tried"))
        .to_vec();
    let spis: BTreeSet<_> = firsts
        .iter()
        .map(|first| Header::peek(&first.message).unwrap().spi_i)
        .collect();
    assert_eq!(spis.len(), 2);
    let hash = |first: &&Flying| {
        let mut notifies = notifies(&first.message).into_iter();
        let kind = NotifyType::NAT_DETECTION_DESTINATION_IP;
        notifies.find(|n| n.kind == kind).expect("it is there").data
    };
    assert_ne!(hash(&firsts[0]), hash(&firsts[1]));
}

#[test]
fn where_udp_is_answered_nothing_goes_by_tcp() {
    let (left, right) = streaming(Tcp::Fallback(PORT));
    let mut pair = Pair::new(left, right);
    pair.hop.lost = 200;
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(60));
    pair.left.child();
    assert!(!carriers(&pair).contains(&Carrier::Tcp));
}

#[test]
fn without_a_line_that_says_so_nothing_goes_by_tcp() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.deaf = true;
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(300));
    assert!(!carriers(&pair).contains(&Carrier::Tcp));
    assert!(matches!(
        pair.left.down_reasons()[..],
        [DownReason::Unreachable { .. }]
    ));
}

#[test]
fn always_begins_in_a_stream_at_the_port_that_the_configuration_names() {
    let mut pair = up(streaming(Tcp::Always(443)));
    assert!(!carriers(&pair).contains(&Carrier::Udp));
    assert_eq!(path(&mut pair, Side::Left).remote.port(), 443);
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn what_is_under_way_in_a_stream_is_not_sent_again() {
    let (left, right) = streaming(Tcp::Always(PORT));
    let mut pair = Pair::new(left, right);
    pair.hop.delay = Duration::from_secs(9);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(90));
    pair.left.child();
    assert_eq!(pair.sent.len(), 4);
}

#[test]
fn a_request_that_is_not_answered_in_a_stream_ends_as_late_as_any() {
    let (left, right) = streaming(Tcp::Always(PORT));
    let mut pair = Pair::new(left, right);
    pair.away.push(RIGHT.parse().unwrap());
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(60));
    assert!(pair.left.down_reasons().is_empty());
    pair.run_for(Duration::from_secs(60));
    assert!(matches!(
        pair.left.down_reasons()[..],
        [DownReason::StreamUnanswered { .. }]
    ));
    assert_eq!(pair.sent.len(), 1);
}

#[test]
fn a_connection_that_cannot_be_made_is_told_with_its_port() {
    let (left, right) = streaming(Tcp::Always(443));
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    let asked = pair.intercept()[0].path.reversed();
    tell(&mut pair, asked);
    let why = pair.left.down_reasons()[0].to_string();
    assert_eq!(why, "no TCP connection to 203.0.113.1:443");
    assert_eq!(pair.left.engine.sas().count(), 0);
}

#[test]
fn every_ike_sa_has_a_connection_of_its_own() {
    let mut pair = up(streaming(Tcp::Always(PORT)));
    let first = sa(&mut pair, Side::Left);
    let begun = pair.with(Side::Left, |engine, now| {
        engine.reauthenticate(first.id, now)
    });
    assert!(begun.is_ok());
    pair.run_for(Duration::from_secs(60));
    let second = path(&mut pair, Side::Left);
    assert!(second.is_stream());
    assert_ne!(second.local.port(), first.path.local.port());
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn an_ike_sa_that_is_rekeyed_stays_in_its_connection() {
    let mut pair = up(streaming(Tcp::Always(PORT)));
    let old = sa(&mut pair, Side::Left);
    pair.with(Side::Left, |engine, now| engine.rekey_ike(old.id, now));
    pair.run_for(Duration::from_secs(60));
    let new = sa(&mut pair, Side::Left);
    assert_ne!(old.spi_i, new.spi_i);
    assert_eq!(old.path, new.path);
}

#[test]
fn a_lost_connection_is_made_anew_by_who_began_and_the_ike_sa_stays() {
    for (left, right) in [streaming(Tcp::Always(PORT)), wandering(Tcp::Always(PORT))] {
        let mut pair = up((left, right));
        let before = [Side::Left, Side::Right].map(|side| sa(&mut pair, side));
        cut(&mut pair);
        pair.settle();
        let after = [Side::Left, Side::Right].map(|side| sa(&mut pair, side));
        assert_eq!(before[0].id, after[0].id);
        assert_ne!(before[0].path.local, after[0].path.local);
        assert_eq!(after[1].path, after[0].path.reversed());
        let children = [Side::Left, Side::Right].map(|side| carried(&mut pair, side));
        assert_eq!(children, [after[0].path, after[1].path]);
    }
}

/// "If a new TCP connection for the IKE SA is established while the exchange Initiator is waiting
/// for a response, the Initiator MUST retransmit its request over this connection".
// Recovers: tcp
#[test]
fn what_was_under_way_in_a_lost_connection_is_sent_again_in_the_new_one() {
    for side in [Side::Left, Side::Right] {
        let mut pair = up(streaming(Tcp::Always(PORT)));
        let id = sa(&mut pair, side).id;
        let child = pair.host(side).child().id;
        pair.with(side, |engine, now| engine.rekey_child(id, child, now));
        pair.lose();
        cut(&mut pair);
        pair.run_for(Duration::from_secs(30));
        assert_ne!(pair.host(side).child().id, child, "{side:?}");
        assert!(fit(pair.left.child(), pair.right.child()));
    }
}

// Recovers: tcp
#[test]
fn a_listener_that_stays_away_is_tried_with_growing_pauses_and_then_given_up() {
    let mut pair = up(streaming(Tcp::Always(PORT)));
    let id = sa(&mut pair, Side::Left).id;
    pair.away.push(RIGHT.parse().unwrap());
    let before = pair.sent.len();
    let mut tries = BTreeSet::new();
    while pair.left.engine.sa(id).is_some() {
        let path = pair.left.engine.sa(id).unwrap().path;
        tries.insert(path.local.port());
        tell(&mut pair, path);
        // A repeated report does not speed up the retries.
        tell(&mut pair, path);
        pair.run_for(Duration::from_millis(100));
    }
    let tried = pair.sent.len() - before;
    assert_eq!(tries.len(), tried + 1, "each in a connection of its own");
    assert_eq!(tried, 5);
    assert!(matches!(
        pair.left.down_reasons()[..],
        [DownReason::PeerGone { .. }]
    ));
}

#[test]
fn a_connection_that_nobody_uses_is_none_of_ours() {
    let mut pair = up(streaming(Tcp::Always(PORT)));
    let path = path(&mut pair, Side::Left);
    let streams: BTreeSet<_> = pair.left.engine.streams().collect();
    assert_eq!(streams, BTreeSet::from([path]));
    let mut other = path;
    other.local.set_port(1);
    tell(&mut pair, other);
    assert_eq!(pair.sent.len(), 4, "nothing came of it");
    let id = sa(&mut pair, Side::Left).id;
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.settle();
    assert_eq!(pair.left.engine.streams().count(), 0);
}

/// Otherwise half-open SAs could use up all connections and keep other peers out.
// Weakness: 91
#[test]
fn a_connection_of_an_initiator_that_proves_nothing_is_not_in_use() {
    let (left, right) = streaming(Tcp::Always(PORT));
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    pair.deliver_next();
    assert_eq!(pair.right.engine.half_open(), 1);
    assert_eq!(pair.right.engine.streams().count(), 0);
    pair.settle();
    assert_eq!(
        pair.right.engine.streams().collect::<BTreeSet<_>>().len(),
        1
    );
}

/// "The exchange Responder SHOULD NOT send an IKEv2 Cookie request without an accompanied Puzzle".
#[test]
fn nobody_is_asked_for_a_cookie_in_a_stream() {
    let (left, mut right) = streaming(Tcp::Always(PORT));
    right.limits.half_open_without_cookie = 0;
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.left.child();
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 0);
}

#[test]
fn who_is_half_open_in_a_stream_is_bounded_all_the_same() {
    let (left, mut right) = streaming(Tcp::Always(PORT));
    right.limits.half_open.total = 0;
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert_eq!(pair.right.dropped(DropReason::HalfOpenLimit), 1);
}

/// "An Initiator SHOULD NOT wait for additional messages in case it receives an error notification
/// from the Responder in the IKE_SA_INIT exchange."
#[test]
fn a_refusal_of_the_first_message_is_believed_at_once() {
    let (left, mut right) = streaming(Tcp::Always(PORT));
    right.peers[0].suites = vec![Suite::ChaCha20Poly1305];
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(matches!(
        pair.left.down_reasons()[..],
        [DownReason::Refused { .. }]
    ));
}

#[test]
fn a_group_is_corrected_in_the_same_connection() {
    let (left, mut right) = streaming(Tcp::Always(PORT));
    right.peers[0].groups = vec![Group::P256];
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.left.child();
    let ports: BTreeSet<_> = streams_from_left(&pair)
        .map(|f| f.path.remote.port())
        .collect();
    assert_eq!(ports.len(), 1);
}

#[test]
fn fragments_are_agreed_on_but_not_sent_in_a_stream() {
    let (mut left, right) = wandering(Tcp::Always(PORT));
    left.fragment = 576;
    let mut pair = Pair::new(left, right);
    pair.connect();
    let child = pair.left.child().id;
    let id = sa(&mut pair, Side::Left).id;
    pair.with(Side::Left, |engine, now| engine.rekey_child(id, child, now));
    pair.settle();
    assert_eq!(pair.left.engine.counters().fragmented, 0);
    let asks = notifies(&pair.sent[0].message);
    let kind = NotifyType::IKEV2_FRAGMENTATION_SUPPORTED;
    assert!(asks.iter().any(|notify| notify.kind == kind));
}

fn datagrams() -> Path {
    let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), PORT);
    Path::udp(at(LEFT), at(RIGHT))
}

fn stream() -> Path {
    let at = |ip: &str, port| SocketAddr::new(ip.parse().unwrap(), port);
    Path::tcp(at(LEFT, 0), at(RIGHT, PORT))
}

/// Section 7.1 and appendix B.4.
#[test]
fn an_update_that_udp_swallows_is_resent_by_tcp_with_the_same_message_id() {
    let (left, right) = wandering(Tcp::Fallback(PORT));
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.deaf = true;
    move_to(&mut pair, datagrams());
    let asked = pair.sent.len() - 1;
    pair.run_for(Duration::from_secs(3));
    let id = sa(&mut pair, Side::Left).id;
    pair.with(Side::Left, |engine, now| engine.probe(id, stream(), now));
    let again = streams_from_left(&pair).last().expect("by TCP").clone();
    assert_eq!(again.message, pair.sent[asked].message);
    pair.settle_one_round();
    let answered = pair.left.events.iter().rev().find_map(|event| match event {
        Event::PathAnswers { path, .. } => Some(*path),
        _ => None,
    });
    let answered = answered.expect("somebody is there");
    assert_eq!(answered, again.path.reversed());
    move_to(&mut pair, answered);
    pair.settle();
    assert_eq!(path(&mut pair, Side::Right), again.path);
    assert_eq!(carried(&mut pair, Side::Right), again.path);
    assert_eq!(carried(&mut pair, Side::Left), answered);
}

/// "The Return Routability Check SHOULD NOT be performed."
#[test]
fn an_address_that_a_stream_comes_from_is_not_checked() {
    let (left, right) = wandering(Tcp::Fallback(PORT));
    let mut pair = Pair::new(left, right);
    pair.connect();
    let before = pair.sent.len();
    move_to(&mut pair, stream());
    pair.settle();
    let by_right = pair.sent[before..].iter().filter(|f| f.to == Side::Left);
    assert_eq!(by_right.count(), 1, "its answer, and no question");
    assert!(carried(&mut pair, Side::Right).is_stream());
}

#[test]
fn a_tunnel_leaves_a_stream_for_datagrams_when_it_moves() {
    let mut pair = up(wandering(Tcp::Fallback(PORT)).always());
    move_to(&mut pair, datagrams());
    pair.settle();
    assert_eq!(path(&mut pair, Side::Right), datagrams().reversed());
    assert!(!carried(&mut pair, Side::Right).is_stream());
    assert_eq!(pair.left.engine.streams().count(), 0, "it may be closed");
}

trait Always {
    fn always(self) -> Self;
}

impl Always for (Config, Config) {
    fn always(mut self) -> Self {
        self.0.peers[0].tcp = Tcp::Always(PORT);
        self
    }
}

/// "In the case of TCP, the NO_NATS_ALLOWED notification SHOULD be ignored".
#[test]
fn a_translator_is_no_attack_in_a_stream() {
    let (mut left, right) = wandering(Tcp::Always(PORT));
    left.peers[0].features.forbids_nat = true;
    let mut pair = Pair::new(left, right);
    pair.nat = Some(Nat {
        outside: [198, 51, 100, 1].into(),
        shift: 50,
    });
    pair.connect();
    pair.left.child();
    assert_eq!(pair.right.refusals(), [""; 0]);
}

#[test]
fn a_message_in_a_new_connection_that_is_not_genuine_moves_nothing() {
    let mut pair = up(streaming(Tcp::Always(PORT)));
    let genuine = pair
        .sent
        .iter()
        .rev()
        .find(|f| f.to == Side::Right)
        .unwrap();
    let mut forged = genuine.clone();
    forged.path.remote.set_port(1);
    let before = path(&mut pair, Side::Right);
    // A repeat of the last request: its answer goes back where the repeat came from, and nothing
    // else does.
    pair.deliver(&forged.clone());
    let last = forged.message.len() - 1;
    forged.message[last] ^= 1;
    pair.deliver(&forged);
    assert_eq!(path(&mut pair, Side::Right), before);
    assert_eq!(carried(&mut pair, Side::Right), before);
}

#[test]
fn who_is_sent_to_another_gateway_tries_udp_there_first() {
    let path = Path::tcp(
        SocketAddr::new(LEFT.parse().unwrap(), 50_000),
        SocketAddr::new(RIGHT.parse().unwrap(), 443),
    );
    assert_eq!(crate::extension::tcp::datagrams(path, PORT), datagrams());
}

/// A connection that breaks now and then loses no tunnel, whichever end has a request outstanding.
// Recovers: tcp
#[test]
fn connections_that_break_all_the_time_lose_no_tunnel() {
    for seed in 0..8 {
        let (left, right) = match seed % 2 {
            0 => streaming(Tcp::Always(PORT)),
            _ => wandering(Tcp::Always(PORT)),
        };
        let mut pair = Pair::seeded(left, right, seed + 1);
        pair.connect();
        for round in 0..20 {
            let side = if round % 3 == 0 {
                Side::Right
            } else {
                Side::Left
            };
            let id: IkeSaId = sa(&mut pair, side).id;
            let child = pair.host(side).child().id;
            pair.with(side, |engine, now| engine.rekey_child(id, child, now));
            let moments = Duration::from_millis(u64::from(seed) * 11 + round * 7);
            pair.run_for(moments);
            cut(&mut pair);
            pair.run_for(Duration::from_secs(60));
            assert!(fit(pair.left.child(), pair.right.child()), "{seed} {round}");
        }
        assert!(pair.left.down_reasons().is_empty());
    }
}

/// A router can move an IKE message between a datagram and a stream. A peer with MOBIKE announces
/// such a change.
// Weakness: 103
#[test]
fn without_mobike_no_ike_sa_changes_between_datagrams_and_streams() {
    for tcp in [Tcp::Off, Tcp::Always(PORT)] {
        let mut pair = Pair::new(streaming(tcp).0, streaming(tcp).1);
        pair.connect();
        let (sa, before) = (sa(&mut pair, Side::Left).id, path(&mut pair, Side::Right));
        pair.with(Side::Left, |engine, now| {
            engine.revoke(sa, model::CsaId(1), now);
        });
        let mut request = pair.intercept().remove(0);
        let third = "192.0.2.66:4500".parse().unwrap();
        request.path = match before.is_stream() {
            true => Path::udp(before.local, third),
            false => Path::tcp(before.local, third),
        };
        pair.away.push(third.ip());
        pair.deliver(&request);
        pair.run_for(Duration::from_secs(5));
        assert_eq!(path(&mut pair, Side::Right), before);
        assert_eq!(carried(&mut pair, Side::Right), before);
    }
}
