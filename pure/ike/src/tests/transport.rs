//! Moves of child SAs in transport mode (MOBIKE-X), and attempts to abuse them.

use super::attack::ask_sealed;
use super::mobike::{CELL, TRAIN, ips, move_to, roaming, to, told};
use super::mode::mobile_ends;
use super::pair::{Flying, Host, LEFT, NAT, Pair, RIGHT, Side, fit};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::exchange::{find_notify, notify};
use crate::extension::mobikex::Named;
use crate::{CannotMove, Event, Unplaced};
use model::{IkeSaId, Path, Spi};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{ExchangeType, NotifyType, Payload};

/// An uninvolved third party.
const VICTIM: &str = "203.0.113.66";
/// Another address of the right host.
const SECOND: &str = "203.0.113.2";

fn hosts(addresses: &[&str]) -> model::Selectors {
    let hosts = addresses
        .iter()
        .map(|address| prefix(&format!("{address}/32")));
    hosts.collect::<Vec<_>>().into()
}

/// Sets the addresses that the tunnel of a host lists.
fn list(config: &mut Config, ours: &[&str], theirs: &[&str]) {
    match &mut config.peers[0].role {
        PeerRole::Vpn { local, remote, .. } => (*local, *remote) = (hosts(ours), hosts(theirs)),
        PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => panic!("a VPN peer"),
    }
}

/// Returns two hosts in transport mode, the left one of which has three addresses.
pub(crate) fn walking() -> (Config, Config) {
    let (mut left, mut right) = mobile_ends(Mode::Transport);
    let (walks, stays) = ([LEFT, CELL, TRAIN], [RIGHT, SECOND]);
    list(&mut left, &walks, &stays);
    list(&mut right, &stays, &walks);
    (left, right)
}

/// The right one does not list the third address.
pub(crate) fn without_train() -> (Config, Config) {
    let (left, mut right) = walking();
    list(&mut right, &[RIGHT], &[LEFT, CELL]);
    (left, right)
}

fn connected((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    pair
}

fn spis(pair: &Pair) -> Vec<Spi> {
    let of = |host: &Host| {
        let children = host.children().into_iter();
        children.map(|child| child.inbound.spi).collect::<Vec<_>>()
    };
    [of(&pair.left), of(&pair.right)].concat()
}

/// Returns true if the newest children of both ends are between these two addresses.
fn is_between(pair: &Pair, ours: &str, theirs: &str) -> bool {
    let child = pair.left.children().last().copied().unwrap();
    let [ours, theirs] = [ours, theirs].map(|address| [prefix(&format!("{address}/32"))]);
    let fits = fit(child, pair.right.children().last().unwrap());
    fits && (&child.local[..], &child.remote[..]) == (&ours[..], &theirs[..])
}

/// Returns true if the selectors of a child are the addresses of its path.
fn is_between_its_ends(child: &model::ChildSa<Secret>) -> bool {
    let at = |selectors: &[TrafficSelector], end: SocketAddr| {
        let mut selectors = selectors.iter();
        selectors.all(|selector| [selector.first, selector.last] == [end.ip(); 2])
    };
    at(&child.local, child.path.local) && at(&child.remote, child.path.remote)
}

fn refuses(pair: &Pair, why: &str) {
    let told = pair.right.refusals();
    assert!(told.iter().any(|told| told.contains(why)), "{told:?}");
    let refused = |event: &Event| matches!(event, Event::MoveRefused { .. });
    assert!(pair.left.events.iter().any(refused));
    let moved = |event: &Event| matches!(event, Event::PathMoved { .. });
    for host in [&pair.left, &pair.right] {
        assert!(!host.events.iter().any(moved));
        assert_eq!(host.up(), 1);
    }
}

#[test]
fn each_end_moves_only_once_the_other_has_agreed_and_no_key_changes() {
    let mut pair = connected(walking());
    let before = spis(&pair);
    move_to(&mut pair, to(CELL));
    assert!(told(&mut pair, Side::Left).is_empty());
    pair.deliver_next();
    assert!(told(&mut pair, Side::Right).is_empty());
    pair.deliver_next();
    assert_eq!(told(&mut pair, Side::Left), ips(&[CELL]));
    assert!(told(&mut pair, Side::Right).is_empty(), "no cookie yet");
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    assert_eq!(spis(&pair), before);
    for (side, address) in [(Side::Left, TRAIN), (Side::Right, LEFT)] {
        move_to(&mut pair, to(address));
        pair.settle();
        rekey_child(&mut pair, side);
        pair.settle();
        assert!(is_between(&pair, address, RIGHT));
    }
    rekey_ike(&mut pair, Side::Right);
    pair.settle();
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right).last(), ips(&[CELL]).last());
}

#[test]
fn a_host_moves_to_another_address_that_the_other_end_announces() {
    let (left, mut right) = walking();
    right.addresses = ips(&[RIGHT, SECOND]);
    let mut pair = connected((left, right));
    let mut path = to(LEFT);
    path.remote.set_ip(SECOND.parse().unwrap());
    move_to(&mut pair, path);
    pair.settle();
    rekey_child(&mut pair, Side::Left);
    pair.settle();
    assert!(is_between(&pair, LEFT, SECOND));
}

// Refuses: mobikex
#[test]
fn an_address_that_an_end_does_not_list_is_refused_there() {
    let mut pair = connected(without_train());
    move_to(&mut pair, to(TRAIN));
    pair.run_for(Duration::from_secs(1));
    refuses(&pair, "198.18.0.2 is not among the addresses");
    let refusals = pair.left.refusals();
    assert!(
        refusals[0].contains("UNACCEPTABLE_ADDRESSES"),
        "{refusals:?}"
    );
    let mut beyond = to(LEFT);
    beyond.remote.set_ip(VICTIM.parse().unwrap());
    let v6 = |text: &str| SocketAddr::new(text.parse().unwrap(), crate::NATT_PORT);
    let other_family = Path::udp(v6("2001:db8::2"), v6("2001:db8::1"));
    for (path, address) in [
        (to("192.0.2.77"), "192.0.2.77"),
        (beyond, VICTIM),
        (other_family, "2001:db8::2"),
    ] {
        let sa = pair.left.ike();
        let moved = pair.with(Side::Left, |engine, now| engine.move_to(sa, path, now));
        let why = Unplaced::NotListed(address.parse().unwrap());
        assert_eq!(moved, Err(CannotMove::Unplaced(why)));
    }
    // It goes back, and to the other address that both have.
    move_to(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
}

// Weakness: M6
#[test]
fn an_address_of_another_peer_is_refused() {
    let (left, mut right) = walking();
    let mut other = right.peers[0].clone();
    other.id = peer_id("other");
    other.identity = "other.example.net".parse().unwrap();
    other.role = vpn("10.0.0.0/8", &format!("{CELL}/32"), ZonePolicy::default());
    right.peers.push(other);
    let mut pair = connected((left, right));
    move_to(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(1));
    refuses(&pair, "is in the configuration of another peer");
    // A network around the address is wider than a tunnel that names it.
    let mut pair = connected({
        let (left, mut right) = walking();
        let mut other = right.peers[0].clone();
        other.id = peer_id("other");
        other.identity = "other.example.net".parse().unwrap();
        other.role = vpn("10.0.0.0/8", "0.0.0.0/0", ZonePolicy::default());
        right.peers.push(other);
        (left, right)
    });
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
}

// Weakness: M6
#[test]
fn an_address_that_bypasses_tunnels_is_refused_unless_for_one_service() {
    for protocol in [0, 6] {
        let (left, mut right) = walking();
        let around = prefix("100.64.0.0/16");
        right.bypassed = vec![TrafficSelector { protocol, ..around }];
        let mut pair = connected((left, right));
        move_to(&mut pair, to(CELL));
        pair.run_for(Duration::from_secs(1));
        match protocol {
            0 => refuses(&pair, "bypass all tunnels"),
            _ => assert_eq!(told(&mut pair, Side::Right), ips(&[CELL])),
        }
    }
}

/// Users of one table list the same addresses.
// Weakness: M6
#[test]
fn an_address_at_which_another_user_is_is_refused_also_after_the_check() {
    let another = |pair: &mut Pair| {
        let at = Some((CELL.parse().unwrap(), PeerId(77)));
        pair.right.engine.out.placed.put(IkeSaId(77), at);
    };
    let mut pair = connected(walking());
    another(&mut pair);
    move_to(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(1));
    refuses(
        &pair,
        "another peer has a tunnel in transport mode at 100.64.0.2",
    );
    // The other user was faster: the tunnel ends at both ends, and nobody sends into nothing.
    let mut pair = connected(walking());
    move_to(&mut pair, to(CELL));
    pair.deliver_next();
    another(&mut pair);
    pair.run_for(Duration::from_millis(200));
    assert!(told(&mut pair, Side::Right).is_empty());
    let told = pair.right.refusals();
    assert!(told[0].contains("another peer has a tunnel"), "{told:?}");
    let ended =
        |event: &Event| matches!(event, Event::ChildRetired { .. } | Event::ChildDown { .. });
    for host in [&pair.left, &pair.right] {
        assert!(host.events.iter().any(ended));
    }
}

/// RFC 7296 section 2.23.1 is not implemented.
// Refuses: mobikex
// Weakness: M4
#[test]
fn a_nat_on_the_new_path_shows_in_the_address_that_the_peer_names() {
    let mut pair = connected(walking());
    pair.nat = Some(NAT);
    move_to(&mut pair, to(LEFT));
    pair.run_for(Duration::from_secs(1));
    refuses(&pair, "so a NAT translates it");
    // Also if the peer lists the address of the NAT.
    let (left, mut right) = walking();
    list(&mut right, &[RIGHT], &[LEFT, CELL, "198.51.100.9"]);
    let mut pair = connected((left, right));
    pair.nat = Some(NAT);
    move_to(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(1));
    refuses(&pair, "198.51.100.9 as its address");
}

/// An attacker on the path changes the source of an update to another address of the list.
// Weakness: M1
#[test]
fn an_update_with_a_forged_source_moves_nothing() {
    let (left, mut right) = walking();
    list(&mut right, &[RIGHT], &[LEFT, CELL, VICTIM]);
    let mut pair = connected((left, right));
    move_to(&mut pair, to(CELL));
    let mut update = pair.intercept().remove(0);
    update.path.remote = SocketAddr::new(VICTIM.parse().unwrap(), 4500);
    pair.deliver(&update);
    pair.away.push(VICTIM.parse().unwrap());
    pair.run_for(Duration::from_secs(10));
    let victim: IpAddr = VICTIM.parse().unwrap();
    assert!(!told(&mut pair, Side::Right).contains(&victim));
    let at_victim = pair.sent.iter().filter(|f| f.path.local.ip() == victim);
    let octets: usize = at_victim.map(|flying| flying.message.len()).sum();
    assert!(octets < 1000, "{octets} octets went to the victim");
    // The address that it has names itself, and a later update moves there.
    move_to(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(10));
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
}

/// A peer with bad will names the address of somebody else, from which it does not receive.
// Weakness: M1
#[test]
fn an_address_without_a_cookie_from_there_gets_no_packet() {
    let (left, mut right) = walking();
    list(&mut right, &[RIGHT], &[LEFT, CELL, VICTIM]);
    let mut pair = connected((left, right));
    let sa = pair.left.ike();
    let victim = Some(VICTIM.parse().unwrap());
    let named = Named {
        sender: victim,
        receiver: Some(RIGHT.parse().unwrap()),
    };
    let update = notify(NotifyType::UPDATE_SA_ADDRESSES, Vec::new());
    let payloads = [vec![update], named.payloads()].concat();
    pair.with(Side::Left, |engine, now| {
        engine.request_raw(sa, ExchangeType::INFORMATIONAL, payloads, now);
    });
    let mut update = pair.intercept().remove(0);
    update.path.remote = SocketAddr::new(VICTIM.parse().unwrap(), 4500);
    pair.away.push(VICTIM.parse().unwrap());
    pair.deliver(&update);
    pair.run_for(Duration::from_secs(60));
    assert!(told(&mut pair, Side::Right).is_empty());
}

// Weakness: M4
#[test]
fn an_update_without_addresses_moves_no_transport_mode() {
    let mut pair = connected(walking());
    let sa = pair.left.ike();
    for named in [
        Named::default(),
        Named {
            sender: Some(LEFT.parse().unwrap()),
            ..Named::default()
        },
    ] {
        let update = notify(NotifyType::UPDATE_SA_ADDRESSES, Vec::new());
        let payloads = [vec![update], named.payloads()].concat();
        let answer = ask_sealed(&mut pair, sa, ExchangeType::INFORMATIONAL, payloads);
        let refusal = notify(NotifyType::UNACCEPTABLE_ADDRESSES, Vec::new());
        assert!(answer.contains(&refusal), "{answer:?}");
    }
}

// Weakness: M2
#[test]
fn requests_that_are_replayed_from_elsewhere_move_nothing() {
    let mut pair = connected(walking());
    move_to(&mut pair, to(CELL));
    pair.settle();
    let is_sealed =
        |flying: &&Flying| flying.to == Side::Right && flying.path.local.port() == crate::NATT_PORT;
    let requests: Vec<_> = pair.sent.iter().filter(is_sealed).cloned().collect();
    let picture = pair.right.picture();
    for mut replayed in requests {
        replayed.path.remote = SocketAddr::new(TRAIN.parse().unwrap(), 4500);
        pair.deliver(&replayed);
    }
    assert_eq!(pair.right.picture(), picture);
}

// Weakness: M2
#[test]
fn of_updates_that_overtake_each_other_the_newest_counts() {
    let mut pair = connected(walking());
    move_to(&mut pair, to(CELL));
    let first = pair.intercept();
    move_to(&mut pair, to(TRAIN));
    pair.run_for(Duration::from_secs(10));
    first.iter().for_each(|flying| pair.deliver(flying));
    pair.run_for(Duration::from_secs(10));
    assert_eq!(told(&mut pair, Side::Right).last(), ips(&[TRAIN]).last());
    assert_eq!(told(&mut pair, Side::Left).last(), ips(&[TRAIN]).last());
}

/// Sends an update that names these addresses as the sender's and the receiver's.
fn update_raw(pair: &mut Pair, new: &str, receiver: &str) {
    let sa = pair.left.ike();
    let named = Named {
        sender: Some(new.parse().unwrap()),
        receiver: Some(receiver.parse().unwrap()),
    };
    let update = notify(NotifyType::UPDATE_SA_ADDRESSES, Vec::new());
    let payloads = [vec![update], named.payloads()].concat();
    pair.with(Side::Left, |engine, now| {
        engine.request_raw(sa, ExchangeType::INFORMATIONAL, payloads, now);
    });
}

/// A peer with bad will names the address of the NAT that translates it as its own. The list says
/// what it may have.
// Weakness: M4
#[test]
fn a_peer_that_hides_its_nat_has_a_listed_address_or_none() {
    let outside = NAT.outside.to_string();
    for listed in [false, true] {
        let (left, mut right) = walking();
        let mut addresses = vec![LEFT, CELL];
        addresses.extend(listed.then_some(outside.as_str()));
        list(&mut right, &[RIGHT], &addresses);
        let mut pair = connected((left, right));
        pair.nat = Some(NAT);
        update_raw(&mut pair, &outside, RIGHT);
        pair.settle();
        let expected = if listed { ips(&[&outside]) } else { Vec::new() };
        assert_eq!(told(&mut pair, Side::Right), expected);
    }
}

/// The configuration lists whole networks, one address at a time.
// Weakness: M5
#[test]
fn a_list_of_ten_thousand_addresses_admits_each_of_them_and_no_other() {
    let all: Vec<_> = (0..10_000_u32)
        .map(|number| IpAddr::from((0x0a40_0000 + number).to_be_bytes()).to_string())
        .collect();
    let mut listed: Vec<_> = all.iter().map(String::as_str).collect();
    listed.push(LEFT);
    let (mut left, mut right) = walking();
    list(&mut left, &listed, &[RIGHT]);
    list(&mut right, &[RIGHT], &listed);
    let mut pair = connected((left, right));
    for address in [listed[0], listed[9_999]] {
        move_to(&mut pair, to(address));
        pair.settle();
        let newest = told(&mut pair, Side::Right).last().copied();
        assert_eq!(newest.unwrap().to_string(), address);
    }
    let before = told(&mut pair, Side::Right);
    update_raw(&mut pair, CELL, RIGHT);
    let mut update = pair.intercept().remove(0);
    update.path.remote.set_ip(CELL.parse().unwrap());
    pair.deliver(&update);
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), before);
    let refusals = pair.right.refusals();
    assert!(
        refusals[0].contains("is not among the addresses"),
        "{refusals:?}"
    );
}

/// Packets say nothing in transport mode: a third party may hand them over from an address of the
/// list.
// Weakness: M3
// Weakness: M7
#[test]
fn packets_from_elsewhere_move_no_transport_mode() {
    let mut pair = connected(walking());
    let (sa, path) = (pair.right.ike(), to(CELL).reversed());
    let before = pair.sent.len();
    pair.with(Side::Right, |engine, now| {
        engine.note_stray(sa, path, 1000, now);
    });
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.sent.len(), before, "no request is sent");
    assert!(told(&mut pair, Side::Right).is_empty());
}

/// Two hosts behind one NAT, in networks that the configuration lists for both.
fn neighbours() -> Config {
    let (_, mut right) = walking();
    let mut other = right.peers[0].clone();
    other.id = peer_id("other");
    other.identity = "other.example.net".parse().unwrap();
    right.peers.push(other);
    for (peer, own) in right.peers.iter_mut().zip([LEFT, TRAIN]) {
        let PeerRole::Vpn { local, remote, .. } = &mut peer.role else {
            panic!("a VPN peer");
        };
        *local = hosts(&[RIGHT]);
        let network = prefix("100.64.0.0/24");
        *remote = vec![prefix(&format!("{own}/32")), network].into();
    }
    right
}

/// Of two hosts that appear by the address of one NAT, the first one has the traffic of this
/// address. The other one keeps its tunnel, and may have another address.
// Weakness: M8
#[test]
fn a_peer_behind_the_same_nat_gets_nothing_of_its_neighbour() {
    let (left, _) = walking();
    let mut pair = connected((left.clone(), neighbours()));
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    let mut other = left;
    other.identity = "other.example.net".parse().unwrap();
    let fresh = Host::seeded(other, 9, 9);
    pair.restart(Side::Left, fresh);
    let path = Path::udp(
        SocketAddr::new(TRAIN.parse().unwrap(), crate::PORT),
        SocketAddr::new(RIGHT.parse().unwrap(), crate::PORT),
    );
    let gateway = pair.left.engine.config.peers[0].id;
    pair.with(Side::Left, |engine, now| {
        engine.initiate(gateway, path, now)
    })
    .unwrap();
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 2));
    move_to(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(1));
    let why = format!("another peer has a tunnel in transport mode at {CELL}");
    assert!(pair.right.refusals().iter().any(|told| told.contains(&why)));
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]), "the first one");
}

/// A rekey that crosses a move has the addresses of before at one end. It is repeated with the new
/// ones, or the child moves with the others.
// Weakness: 202
#[test]
fn a_rekey_that_crosses_a_move_ends_between_the_new_addresses() {
    for side in [Side::Left, Side::Right] {
        for order in 0..4 {
            let (mut left, mut right) = walking();
            for config in [&mut left, &mut right] {
                config.timers.retry = Duration::from_secs(2);
            }
            let mut pair = connected((left, right));
            move_to(&mut pair, to(CELL));
            rekey_child(&mut pair, side);
            pair.cross(order);
            pair.run_for(Duration::from_secs(60));
            assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
            for host in [&pair.left, &pair.right] {
                assert!(host.children().into_iter().all(is_between_its_ends));
            }
            let moved = [Side::Left, Side::Right].map(|side| told(&mut pair, side));
            assert_eq!(
                moved.map(|moved| moved.last().copied()),
                [ips(&[CELL])[0]; 2].map(Some)
            );
            rekey_child(&mut pair, Side::Left);
            pair.run_for(Duration::from_secs(60));
            assert!(is_between(&pair, CELL, RIGHT));
        }
    }
}

/// Whatever is lost, repeated and delayed, both ends have the same addresses in the end.
// Recovers: mobikex
#[test]
fn moves_end_at_the_same_addresses_over_bad_hops() {
    for seed in 0..40 {
        let (left, right) = walking();
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        let before = spis(&pair);
        pair.hop = pair.hop.losing(300).repeating(200).delaying(300);
        for address in [CELL, TRAIN, LEFT, CELL, LEFT, TRAIN] {
            move_to(&mut pair, to(address));
            pair.run_for(Duration::from_millis(u64::from(seed) * 13));
        }
        pair.run_for(Duration::from_secs(120));
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "seed {seed}");
        let train = ips(&[TRAIN])[0];
        for side in [Side::Left, Side::Right] {
            assert_eq!(told(&mut pair, side).last(), Some(&train), "seed {seed}");
        }
        assert_eq!(spis(&pair), before, "seed {seed}");
    }
}

/// Returns the addresses that the updates of the left host name.
fn updates(pair: &Pair) -> Vec<Named> {
    let to_right = pair.sent.iter().filter(|flying| flying.to == Side::Right);
    let messages = to_right.filter_map(|flying| pair.right.engine.peek(&flying.message));
    let updates =
        messages.filter(|message| find_notify(message, NotifyType::UPDATE_SA_ADDRESSES).is_some());
    updates.map(|update| Named::read(&update)).collect()
}

#[test]
fn an_update_names_addresses_to_a_peer_with_the_capability_alone() {
    let (left, right) = roaming();
    let mut pair = connected((left, right));
    let other: IpAddr = CELL.parse().unwrap();
    move_to(&mut pair, to(CELL));
    pair.settle();
    let [named] = updates(&pair)[..] else {
        panic!("one update");
    };
    assert_eq!(
        (named.sender, named.receiver),
        (Some(other), Some(RIGHT.parse().unwrap()))
    );
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| {
        engine.with_established(sa, now, |session, _| {
            session.mobike.as_mut().unwrap().extended = false;
        });
    });
    pair.sent.clear();
    move_to(&mut pair, to(TRAIN));
    pair.settle();
    assert_eq!(updates(&pair), [Named::default()]);
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL, TRAIN]));
}

/// An older version of Strata sends no data, and other implementations may send any.
#[test]
fn without_the_capability_of_both_ends_transport_mode_stays() {
    use crate::extension::mobike::Mobike;
    let (_, right) = walking();
    let (_, tunnel) = roaming();
    let said = |data: &[u8]| saying(vec![notify(NotifyType::MOBIKE_SUPPORTED, data.to_vec())]);
    let known: &[u8] = &[1, 2, 0xf0, 0xf1];
    for (data, private) in [
        (&[][..], true),
        (known, false),
        (&[7; 300], true),
        (&[1], true),
    ] {
        let message = said(data);
        assert!(Mobike::read(&right.peers[0], &message, false, private).is_none());
        let plain = Mobike::read(&tunnel.peers[0], &message, false, private);
        assert!(!plain.unwrap().extended);
    }
    let extended = Mobike::read(&right.peers[0], &said(known), false, true);
    assert!(extended.unwrap().extended);
}

#[test]
fn no_clone_takes_over_transport_mode() {
    let (mut left, mut right) = walking();
    for config in [&mut left, &mut right] {
        config.peers[0].features.clones = true;
    }
    let mut pair = connected((left, right));
    let sa = pair.left.ike();
    let handed = pair.with(Side::Left, |engine, now| {
        engine.hand_over(sa, to(CELL), now)
    });
    assert_eq!(handed, Err(CannotMove::NotByClone));
}

/// Payloads that are not ours to read are ignored.
#[test]
fn addresses_in_other_requests_mean_nothing() {
    let mut pair = connected(walking());
    let sa = pair.left.ike();
    let named = Named {
        sender: Some(VICTIM.parse().unwrap()),
        ..Named::default()
    };
    let mut payloads = named.payloads();
    payloads.push(notify(NotifyType::IP_PARAMETER, vec![9; 200]));
    let answer = ask_sealed(&mut pair, sa, ExchangeType::INFORMATIONAL, payloads);
    assert!(
        !answer
            .iter()
            .any(|payload| matches!(payload, Payload::Notify(_)))
    );
    assert!(told(&mut pair, Side::Right).is_empty());
}
