//! Transport and BEET mode: which requests are accepted (RFC 7296 section 1.3.1), and which are
//! refused.

use super::attack::ask_sealed;
use super::mobike::{CELL, move_to, roaming, to};
use super::pair::{Host, LEFT, NAT, Pair, RIGHT, Side, fit};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::exchange::{find_notify, notify};
use crate::extension::mobike::is_allowed;
use crate::extension::mode::{ModeContext, payload};
use crate::{BadMode, CannotMove, DownReason};
use wire::ike::{ExchangeType, NotifyType, Payload, TrafficSelectors};

const BOTH: [Mode; 2] = [Mode::Transport, Mode::Beet];

/// Returns selectors of the two ends that suit a mode.
const fn hosts(mode: Mode) -> [&'static str; 2] {
    match mode {
        Mode::Beet | Mode::Tunnel => ["10.8.0.2/32", "10.0.0.1/32"],
        Mode::Transport => ["192.168.1.2/32", "203.0.113.1/32"],
    }
}

fn mode_of(config: &mut Config) -> &mut Mode {
    match &mut config.peers[0].role {
        PeerRole::Vpn { mode, .. } => mode,
        PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => panic!("a VPN peer"),
    }
}

fn between([left, right]: [&str; 2], modes: [Mode; 2]) -> (Config, Config) {
    let role = |local, remote| vpn(local, remote, ZonePolicy::default());
    let mut ends = (
        host("mobile", peer("gateway", role(left, right))),
        host("gateway", peer("mobile", role(right, left))),
    );
    (*mode_of(&mut ends.0), *mode_of(&mut ends.1)) = (modes[0], modes[1]);
    ends
}

pub(super) fn ends(mode: Mode) -> (Config, Config) {
    between(hosts(mode), [mode; 2])
}

pub(super) fn connected((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn bad_mode(host: &Host) -> Option<BadMode> {
    host.down_reasons().iter().find_map(|why| match why {
        DownReason::Mode(why) => Some(*why),
        _ => None,
    })
}

fn modes(pair: &Pair) -> [Mode; 2] {
    [&pair.left, &pair.right].map(|host| host.children().last().unwrap().mode)
}

fn said(pair: &Pair, kind: NotifyType) -> usize {
    let says = |flying: &&pair::Flying| {
        let receiver = match flying.to {
            Side::Left => &pair.left.engine,
            Side::Right => &pair.right.engine,
        };
        let message = receiver.peek(&flying.message);
        message.is_some_and(|message| find_notify(&message, kind).is_some())
    };
    pair.sent.iter().filter(says).count()
}

/// Returns true if both ends agree on a child for exactly this pair of addresses.
fn is_one_pair(pair: &Pair, [left, right]: [&str; 2]) -> bool {
    let child = pair.left.children().last().copied().unwrap();
    fit(child, pair.right.children().last().unwrap())
        && (child.local.as_slice(), child.remote.as_slice()) == (&[prefix(left)], &[prefix(right)])
}

#[test]
fn both_ends_say_the_mode_and_never_two() {
    for mode in BOTH {
        let pair = connected(ends(mode));
        assert_eq!(modes(&pair), [mode; 2]);
        assert!(is_one_pair(&pair, hosts(mode)));
        let said =
            [NotifyType::USE_TRANSPORT_MODE, NotifyType::USE_BEET_MODE].map(|n| said(&pair, n));
        let expected = if mode == Mode::Transport {
            [2, 0]
        } else {
            [0, 2]
        };
        assert_eq!(said, expected, "{mode}");
    }
}

#[test]
fn without_a_word_it_is_a_tunnel() {
    let pair = connected((mobile(), gateway()));
    assert_eq!(modes(&pair), [Mode::Tunnel; 2]);
    assert_eq!(said(&pair, NotifyType::USE_TRANSPORT_MODE), 0);
    assert_eq!(said(&pair, NotifyType::USE_BEET_MODE), 0);
}

/// "If the responder declines the request, the Child SA will be established in tunnel mode. If this
/// is unacceptable to the initiator, the initiator MUST delete the SA."
#[test]
fn who_asks_and_gets_a_tunnel_deletes_it() {
    for mode in BOTH {
        let mut pair = connected(between(hosts(mode), [mode, Mode::Tunnel]));
        assert_eq!(bad_mode(&pair.left), Some(BadMode::Declined(mode)));
        pair.run_for(Duration::from_secs(1));
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
        let told = pair.right.refusals();
        assert!(told[0].contains("gets tunnel mode"), "{told:?}");
    }
}

#[test]
fn who_wants_another_mode_than_it_is_asked_for_refuses() {
    for (theirs, ours) in [
        (Mode::Tunnel, Mode::Transport),
        (Mode::Tunnel, Mode::Beet),
        (Mode::Transport, Mode::Beet),
        (Mode::Beet, Mode::Transport),
    ] {
        let pair = connected(between(hosts(Mode::Transport), [theirs, ours]));
        let told = pair.right.refusals();
        let wanted = format!("the peer requests {theirs} mode, but {ours} mode is configured here");
        assert!(told[0].contains(&wanted), "{told:?}");
        assert_eq!((pair.left.up(), pair.left.children().len()), (0, 0));
        let told = pair.left.down_reasons()[0].to_string();
        assert!(told.contains("NO_PROPOSAL_CHOSEN"), "{told}");
    }
}

/// The selectors of transport mode are the outer addresses, as on the path.
#[test]
fn selectors_of_transport_mode_are_confined_to_the_addresses_outside() {
    let wide = ["192.168.0.0/16", "0.0.0.0/0"];
    let pair = connected(between(wide, [Mode::Transport; 2]));
    assert!(is_one_pair(&pair, hosts(Mode::Transport)));
}

#[test]
fn selectors_that_leave_out_the_addresses_outside_make_no_transport_mode() {
    let pair = connected(between(hosts(Mode::Beet), [Mode::Transport; 2]));
    let (ours, theirs) = (LEFT.parse().unwrap(), RIGHT.parse().unwrap());
    assert_eq!(
        bad_mode(&pair.left),
        Some(BadMode::NotOutside { ours, theirs })
    );
    assert_eq!(pair.sent.len(), 2, "nothing is asked for");
}

#[test]
fn beet_mode_has_one_address_inside_at_each_end() {
    let wide = ["10.8.0.0/24", "10.0.0.1/32"];
    let pair = connected(between(wide, [Mode::Beet; 2]));
    let told = pair.right.refusals();
    assert!(
        told[0].contains("one inner address at each end"),
        "{told:?}"
    );
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
    // A responder may narrow the selectors to those that suit the mode.
    let (_, mut right) = ends(Mode::Beet);
    let (left, _) = between(wide, [Mode::Beet; 2]);
    right.peers[0].children.clear();
    assert!(is_one_pair(&connected((left, right)), hosts(Mode::Beet)));
}

/// Private numbers of a peer without a known vendor ID may mean anything.
#[test]
fn beet_mode_is_said_to_who_understands_private_numbers() {
    let message = |payload| saying(vec![payload]);
    let (left, _) = ends(Mode::Beet);
    let policy = left.peers[0].policy(None).unwrap();
    let stranger = ModeContext::new(to(LEFT), None, false);
    assert_eq!(stranger.allows(&policy), Err(BadMode::NotUnderstood));
    let asking = message(notify(NotifyType::USE_BEET_MODE, Vec::new()));
    assert_eq!(stranger.read(&asking), Ok(Mode::Tunnel), "anybody's number");
}

/// Returns ends with a mode that require zones; `first` selects the first zone.
fn zoned(mode: Mode, first: ZoneSelector) -> (Config, Config) {
    let (mut left, mut right) = ends(mode);
    for config in [&mut left, &mut right] {
        let PeerRole::Vpn { zones, .. } = &mut config.peers[0].role else {
            panic!("a VPN peer")
        };
        **zones = two_zones(Stance::Require, "node.example");
        zones.zones[0].0 = first;
    }
    (left, right)
}

#[test]
fn zones_are_agreed_on_in_every_mode_and_renewed() {
    for mode in BOTH {
        for first in [ZoneSelector::IpTransport, ZoneSelector::Transport] {
            let mut pair = connected(zoned(mode, first));
            rekey_child(&mut pair, Side::Right);
            rekey_ike(&mut pair, Side::Left);
            for host in [&pair.left, &pair.right] {
                let child = host.children().last().copied().unwrap();
                let agreement = child.agreement.as_ref().unwrap();
                assert_eq!((child.mode, agreement.zones[0].selector), (mode, first));
                assert_eq!(agreement.licences.len(), 1);
            }
        }
    }
}

/// DESIGN section 3: every packet would be opaque, and a licence would be useless.
// Refuses: zones-in-modes
#[test]
fn zones_that_do_not_begin_where_the_mode_does_are_neither_asked_for_nor_accepted() {
    let cases = [
        (Mode::Transport, ZoneSelector::Ip),
        (Mode::Beet, ZoneSelector::Ip),
        (Mode::Tunnel, ZoneSelector::Transport),
    ];
    for (mode, first) in cases {
        let why = Some(BadMode::NotTheFront(first, mode));
        let (left, right) = zoned(mode, first);
        let mut pair = Pair::new(left.clone(), right.clone());
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(10));
        assert_eq!(bad_mode(&pair.left), why);
        assert_eq!(pair.right.children().len(), 0);
        // One end is configured correctly, and the other end is not.
        let (good, _) = zoned(mode, ZoneSelector::IpTransport);
        let mut pair = Pair::new(good, right);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(10));
        assert_eq!(
            (pair.left.children().len(), pair.right.children().len()),
            (0, 0)
        );
        let told = pair.right.refusals();
        let front = |told: &String| told.contains("the zones begin with");
        assert!(told.iter().any(front), "{told:?}");
    }
}

#[test]
fn an_answer_in_another_mode_than_asked_for_is_refused() {
    let ground = ModeContext::new(to(LEFT), None, true);
    for asked in Mode::ALL {
        for answered in Mode::ALL {
            let response = saying(payload(answered).into_iter().collect());
            let expected = match (asked == answered, answered) {
                (true, _) => Ok(()),
                (false, Mode::Tunnel) => Err(BadMode::Declined(asked).into()),
                (false, _) => Err(DownReason::NotOffered("another mode")),
            };
            assert_eq!(ground.check(asked, &response), expected);
        }
    }
    let both = BOTH.into_iter().filter_map(payload).collect();
    let both = ground.check(Mode::Beet, &saying(both));
    assert_eq!(both, Err(DownReason::NotOffered("another mode")));
}

#[test]
fn new_keys_keep_the_mode() {
    for mode in BOTH {
        let mut pair = connected(ends(mode));
        for side in [Side::Left, Side::Right, Side::Left] {
            rekey_child(&mut pair, side);
            pair.settle();
            rekey_ike(&mut pair, side);
            pair.settle();
        }
        assert_eq!(modes(&pair), [mode; 2]);
        assert!(is_one_pair(&pair, hosts(mode)));
        pair.run_for(Duration::from_secs(60));
        assert_eq!(
            (pair.left.children().len(), pair.right.children().len()),
            (1, 1)
        );
    }
}

/// Both ends agree on the mode, whatever is lost.
#[test]
fn a_mode_is_agreed_and_renewed_over_a_network_that_loses() {
    for seed in 0..40 {
        for mode in BOTH {
            let (left, right) = ends(mode);
            let mut pair = Pair::seeded(left, right, seed);
            pair.hop = pair.hop.losing(300).repeating(200).delaying(200);
            pair.initiate(Side::Left);
            pair.run_for(Duration::from_secs(120));
            rekey_child(&mut pair, Side::Right);
            pair.run_for(Duration::from_secs(120));
            assert_eq!(modes(&pair), [mode; 2], "seed {seed}");
            assert!(is_one_pair(&pair, hosts(mode)), "seed {seed}");
        }
    }
}

#[test]
fn each_child_has_a_mode_of_its_own() {
    let (mut left, mut right) = (mobile(), gateway());
    let [ours, theirs] = hosts(Mode::Transport);
    for (config, local, remote) in [(&mut left, ours, theirs), (&mut right, theirs, ours)] {
        let mut direct = child("direct", local, remote);
        direct.mode = Mode::Transport;
        config.peers[0].children = vec![direct];
    }
    let pair = connected((left, right));
    for host in [&pair.left, &pair.right] {
        assert_eq!(host.named(None).unwrap().mode, Mode::Tunnel);
        assert_eq!(host.named(Some("direct")).unwrap().mode, Mode::Transport);
    }
}

#[test]
fn a_child_whose_mode_does_not_fit_fails_alone_and_is_asked_for_again() {
    let ends = |theirs: Mode| {
        let (mut left, mut right) = (mobile(), gateway());
        let [ours, others] = hosts(Mode::Transport);
        left.peers[0].children = vec![child("direct", ours, others)];
        right.peers[0].children = vec![child("direct", others, ours)];
        left.peers[0].children[0].mode = Mode::Transport;
        right.peers[0].children[0].mode = theirs;
        (left, right)
    };
    for (theirs, says) in [
        (
            Mode::Tunnel,
            "chose tunnel mode, but we requested transport mode",
        ),
        (Mode::Beet, "NO_PROPOSAL_CHOSEN"),
    ] {
        let mut pair = connected(ends(theirs));
        assert_eq!(
            (pair.left.children().len(), pair.right.children().len()),
            (1, 1)
        );
        let told = pair.left.refusals();
        assert!(
            told[0].contains("`direct`") && told[0].contains(says),
            "{told:?}"
        );
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
        let (_, right) = ends(Mode::Transport);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        pair.run_for(Duration::from_secs(61));
        assert_eq!(
            pair.left.named(Some("direct")).unwrap().mode,
            Mode::Transport
        );
        assert_eq!(
            (pair.left.children().len(), pair.right.children().len()),
            (2, 2)
        );
    }
}

#[test]
fn a_child_that_is_to_have_another_mode_now_is_made_anew() {
    let with = |mode: Mode| {
        let (mut left, mut right) = (mobile(), gateway());
        left.peers[0].children = vec![child("direct", "10.8.0.9/32", "192.168.7.1/32")];
        right.peers[0].children = vec![child("direct", "192.168.7.1/32", "10.8.0.9/32")];
        for config in [&mut left, &mut right] {
            config.peers[0].children[0].mode = mode;
        }
        (left, right)
    };
    let mut pair = connected(with(Mode::Tunnel));
    let (left, right) = with(Mode::Beet);
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    pair.run_for(Duration::from_secs(61));
    for host in [&pair.left, &pair.right] {
        assert_eq!(host.named(Some("direct")).unwrap().mode, Mode::Beet);
        assert_eq!(host.named(None).unwrap().mode, Mode::Tunnel);
    }
}

/// RFC 7296 section 2.23.1 (transport mode through a NAT) is not implemented, so behind a NAT
/// nothing is requested.
#[test]
fn who_is_behind_a_nat_does_not_ask_for_transport_mode() {
    let (left, right) = ends(Mode::Transport);
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    assert_eq!(bad_mode(&pair.left), Some(BadMode::Translated));
    assert_eq!(pair.sent.len(), 2, "nothing is asked for");
}

#[test]
fn who_is_behind_a_nat_does_not_accept_transport_mode() {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].children = vec![child("direct", "0.0.0.0/0", "203.0.113.1/32")];
    right.peers[0].children = vec![child("direct", "203.0.113.1/32", "198.51.100.9/32")];
    for config in [&mut left, &mut right] {
        let direct = &mut config.peers[0].children[0];
        (direct.mode, direct.auto) = (Mode::Transport, false);
    }
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    let asked = pair.with(Side::Right, |engine, now| {
        engine.open_child(peer_id("mobile"), "direct", now)
    });
    assert_eq!(asked, Ok(()));
    pair.settle();
    let mut told = pair.left.refusals();
    // NO_PROPOSAL_CHOSEN: the request is repeated without a key exchange.
    told.dedup();
    assert_eq!(told, [BadMode::Translated.to_string()]);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let counts = [&pair.left, &pair.right].map(|host| host.children().len());
    assert_eq!(counts, [1, 1], "the tunnel alone");
}

/// A NAT without detection payloads: its host proposes the address that it believes to have.
// Refuses: modes
#[test]
fn an_initiator_that_hides_its_nat_gets_no_transport_mode() {
    let [ours, theirs] = hosts(Mode::Transport);
    let (left, mut right) = (mobile(), gateway());
    let mut direct = child("direct", theirs, "0.0.0.0/0");
    direct.mode = Mode::Transport;
    right.peers[0].children = vec![direct];
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    let before = pair.right.children().len();
    let answer = ask_for(&mut pair, ours, theirs, &[NotifyType::USE_TRANSPORT_MODE]);
    assert!(answer.contains(&notify(NotifyType::TS_UNACCEPTABLE, Vec::new())));
    let told = pair.right.refusals().pop().unwrap();
    assert!(
        told.contains("the outer addresses 203.0.113.1 and 198.51.100.9"),
        "{told}"
    );
    assert_eq!(pair.right.children().len(), before);
}

#[test]
fn a_request_for_two_modes_at_once_is_refused() {
    let [ours, theirs] = hosts(Mode::Transport);
    for mode in Mode::ALL {
        let (left, mut right) = (mobile(), gateway());
        let mut direct = child("direct", theirs, ours);
        direct.mode = mode;
        right.peers[0].children = vec![direct];
        let mut pair = connected((left, right));
        let both = [NotifyType::USE_TRANSPORT_MODE, NotifyType::USE_BEET_MODE];
        let answer = ask_for(&mut pair, ours, theirs, &both);
        assert!(answer.contains(&notify(NotifyType::NO_PROPOSAL_CHOSEN, Vec::new())));
        assert_eq!(pair.right.children().len(), 1);
    }
}

/// Requests a child from the right host as no task would.
fn ask_for(pair: &mut Pair, local: &str, remote: &str, modes: &[NotifyType]) -> Vec<Payload> {
    let selectors = |text| TrafficSelectors(vec![prefix(text)]);
    let menu = crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]);
    let offer = crate::proposal::offer_esp(&menu, model::Spi(0x1000_0000));
    let mut payloads = vec![
        Payload::SecurityAssociation(offer),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(selectors(local)),
        Payload::TsResponder(selectors(remote)),
    ];
    payloads.extend(modes.iter().map(|kind| notify(*kind, Vec::new())));
    let sa = pair.left.ike();
    ask_sealed(pair, sa, ExchangeType::CREATE_CHILD_SA, payloads)
}

fn take_padding(pair: &Pair) -> [bool; 2] {
    [&pair.left, &pair.right].map(|host| host.children().last().unwrap().takes_padding)
}

/// RFC 7296 section 1.3.1, RFC 4303 section 2.7: padding needs an inner header with the datagram's
/// length.
#[test]
fn padding_is_taken_in_tunnels_and_refused_in_the_other_modes() {
    for mode in Mode::ALL {
        let mut pair = connected(ends(mode));
        let (taken, said_by) = (
            mode == Mode::Tunnel,
            if mode == Mode::Tunnel { 0 } else { 2 },
        );
        assert_eq!(take_padding(&pair), [taken; 2], "{mode}");
        let refused = NotifyType::ESP_TFC_PADDING_NOT_SUPPORTED;
        assert_eq!(said(&pair, refused), said_by, "{mode}");
        rekey_child(&mut pair, Side::Left);
        pair.settle();
        assert_eq!(take_padding(&pair), [taken; 2], "{mode}");
        assert_eq!(said(&pair, refused), 2 * said_by, "{mode}");
    }
}

/// "If this notification is included in only one of the messages, TFC padding can still be sent in
/// the other direction."
// Refuses: tfc
#[test]
fn a_peer_that_takes_no_padding_in_a_tunnel_speaks_for_itself_alone() {
    let (ours, theirs) = ("10.20.0.1/32", "10.21.0.1/32");
    let (left, mut right) = (mobile(), gateway());
    right.peers[0].children = vec![child("direct", theirs, ours)];
    let mut pair = connected((left, right));
    let refuses = [NotifyType::ESP_TFC_PADDING_NOT_SUPPORTED];
    let answer = ask_for(&mut pair, ours, theirs, &refuses);
    assert!(!answer.contains(&notify(refuses[0], Vec::new())));
    let children = pair.right.children();
    let told: Vec<_> = children.iter().map(|child| child.takes_padding).collect();
    assert_eq!(told, [true, false]);
}

/// Returns two hosts that would move if their mode allowed it.
pub(crate) fn mobile_ends(mode: Mode) -> (Config, Config) {
    let (mut left, mut right) = ends(mode);
    for config in [&mut left, &mut right] {
        config.peers[0].features.mobike = true;
    }
    (left, right)
}

/// Like [`mobile_ends`], with zones that also suit tunnels.
pub(crate) fn zoned_ends(mode: Mode) -> (Config, Config) {
    let (mut left, mut right) = zoned(mode, ZoneSelector::IpTransport);
    for config in [&mut left, &mut right] {
        config.peers[0].features.mobike = true;
    }
    (left, right)
}

/// RFC 4555 section 1.2: it "supports only tunnel mode IPsec SAs". `transport.rs` has MOBIKE-X.
#[test]
fn transport_mode_keeps_its_ike_sa_where_it_is() {
    let (left, mut right) = mobile_ends(Mode::Transport);
    right.peers[0].features.mobike = false;
    let mut pair = connected((left, right));
    assert_eq!(said(&pair, NotifyType::MOBIKE_SUPPORTED), 1);
    let sa = pair.left.ike();
    let before = pair.left.picture();
    let moved = pair.with(Side::Left, |engine, now| engine.move_to(sa, to(CELL), now));
    assert_eq!(moved, Err(CannotMove::Transport));
    let handed = pair.with(Side::Left, |engine, now| {
        engine.hand_over(sa, to(CELL), now)
    });
    assert_eq!(handed, Err(CannotMove::Transport));
    assert_eq!(pair.left.picture(), before);
}

/// An update from the peer does not move it either.
#[test]
fn an_update_of_addresses_moves_no_transport_mode() {
    let mut pair = connected(mobile_ends(Mode::Transport));
    let sa = pair.left.ike();
    let path = pair.right.child().path;
    let update = vec![notify(NotifyType::UPDATE_SA_ADDRESSES, Vec::new())];
    ask_sealed(&mut pair, sa, ExchangeType::INFORMATIONAL, update);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.right.engine.sas().next().unwrap().path, path);
    let moved = |event: &crate::Event| matches!(event, crate::Event::PathMoved { .. });
    assert!(!pair.right.events.iter().any(moved));
}

/// The inner addresses are those of the SA, whatever the outer addresses are.
#[test]
fn beet_mode_moves() {
    let mut pair = connected(mobile_ends(Mode::Beet));
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert!(is_one_pair(&pair, hosts(Mode::Beet)));
    let moved = pair.right.events.iter().find_map(|event| match event {
        crate::Event::PathMoved { path, .. } => Some(path.remote.ip()),
        _ => None,
    });
    assert_eq!(moved, Some(CELL.parse().unwrap()));
    rekey_child(&mut pair, Side::Right);
    pair.settle();
    assert_eq!(modes(&pair), [Mode::Beet; 2]);
    let (left, _) = roaming();
    assert!(is_allowed(&left.peers[0], false));
}

/// A message from another address, with the right keys, moves a tunnel whose peer seems to be
/// behind a NAT. In transport mode, packets would then come from an address that the SA does not
/// have.
#[test]
fn a_message_from_elsewhere_moves_no_transport_mode() {
    for mode in BOTH {
        let mut pair = connected(ends(mode));
        let sa = pair.left.ike();
        pair.with(Side::Left, |engine, now| {
            engine.revoke(sa, model::CsaId(1), now);
        });
        let mut flying = pair.intercept().remove(0);
        flying.path.remote.set_ip(CELL.parse().unwrap());
        pair.away.push(LEFT.parse().unwrap());
        pair.deliver(&flying);
        pair.run_for(Duration::from_secs(1));
        let moved = |event: &crate::Event| matches!(event, crate::Event::PathMoved { .. });
        let moved = pair.right.events.iter().any(moved);
        assert_eq!(moved, mode == Mode::Beet);
    }
}
