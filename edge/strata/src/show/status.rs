//! `strata status`: errors and warnings, then a line or a block for each peer, then dropped
//! packets.

mod details;
mod lines;
mod order;

use super::mobile_ip;
use crate::text::{Paint, clean, count, span};
use control::{ClearClaim, Lookup, Peer, Refusal, Restart, Role, Status, Trouble, Users};
pub(super) use details::addresses;
use std::fmt::Write;
use std::time::Duration;

/// Formats all peers, with a line for each. Lines of peers are cut to the columns of a terminal.
/// Writing to a `String` cannot fail, so results of `writeln!` are dropped.
pub fn overview(status: &Status, columns: Option<usize>, paint: Paint) -> String {
    let mut text = String::new();
    show_host(&mut text, status, paint);
    if let Some(mobile_ip) = &status.mobile_ip {
        mobile_ip::show(&mut text, mobile_ip, paint);
    }
    if !status.peers.is_empty() {
        lines::show(&mut text, &status.peers, columns, paint);
    }
    if let Some(refusal) = &status.refused_stranger {
        let heading = paint.bold("an unidentified host was refused");
        let _ = writeln!(text, "\n{heading}\n  {}", reason(refusal));
    }
    show_drops(&mut text, status, paint);
    text
}

/// Formats peers that were named, with all that is known of each.
pub fn details(status: &Status, paint: Paint) -> String {
    let mut text = String::new();
    show_host(&mut text, status, paint);
    for peer in order::sorted(&status.peers) {
        details::show(&mut text, peer, paint);
    }
    text
}

/// Formats peers that a pattern or a state has selected, with a line for each.
pub fn selected(status: &Status, columns: Option<usize>, paint: Paint) -> String {
    let mut text = String::new();
    show_host(&mut text, status, paint);
    lines::show(&mut text, &status.peers, columns, paint);
    text
}

fn show_host(text: &mut String, status: &Status, paint: Paint) {
    let roles: Vec<_> = status.roles.iter().map(|role| role_name(*role)).collect();
    let identity = paint.bold(&clean(&status.identity));
    let uptime = span(status.uptime_seconds);
    let _ = writeln!(
        text,
        "{identity}  {}, running for {uptime}",
        roles.join(", ")
    );
    if let Some(restart) = &status.restart {
        let _ = writeln!(text, "{}", restarted(restart));
    }
    show_errors(text, &status.errors, paint);
    show_unencrypted(text, &status.peers, paint);
    show_warnings(text, &status.warnings, paint);
    if !status.locked.is_empty() {
        let prefixes = details::list(&status.locked);
        let _ = writeln!(text, "locked: {prefixes} (`leak = \"never\"`)");
    }
    show_clear(text, &status.clear, paint);
}

/// Tells how long packets waited at a restart.
fn restarted(restart: &Restart) -> String {
    let waited = Duration::from_micros(restart.waited_micros).as_secs_f64();
    let ago = span(restart.seconds_ago);
    format!("restarted {ago} ago, packets waited {waited:.2} s")
}

/// Limit on the lines about failures; `--json` has all of them.
const MOST_ERRORS: usize = 16;

fn show_errors(text: &mut String, errors: &[Trouble], paint: Paint) {
    for error in errors.iter().take(MOST_ERRORS) {
        let (what, fix) = (clean(&error.what), clean(&error.fix));
        let _ = writeln!(text, "{} {what}\n  fix: {fix}", paint.bad("error:"));
    }
    let others = errors.len().saturating_sub(MOST_ERRORS);
    if others > 0 {
        let _ = writeln!(text, "{} and {others} others", paint.bad("error:"));
    }
}

/// Limit on the lines about tunnels without encryption.
const MOST_UNENCRYPTED: usize = 8;

fn show_unencrypted(text: &mut String, peers: &[Peer], paint: Paint) {
    let some = peers
        .iter()
        .filter_map(|peer| Some((peer, unencrypted(peer)?)));
    let some: Vec<_> = some.collect();
    let label = paint.bad("not encrypted:");
    for (peer, suite) in some.iter().take(MOST_UNENCRYPTED) {
        let (name, suite) = (clean(&peer.name), clean(suite));
        let _ = writeln!(
            text,
            "{label} every router on the path can read the tunnel with {name} ({suite})"
        );
    }
    let others = some.len().saturating_sub(MOST_UNENCRYPTED);
    if others > 0 {
        let _ = writeln!(text, "{label} {others} others");
    }
}

/// Returns the suite of a peer's tunnel that is not encrypted.
fn unencrypted(peer: &Peer) -> Option<&str> {
    let mut children = peer.children.iter().filter(|child| !child.draining);
    let child = children.find(|child| child.unencrypted)?;
    Some(child.suite.as_deref().unwrap_or("without encryption"))
}

/// Limit on the warnings; `--json` has all of them.
const MOST_WARNINGS: usize = 16;

fn show_warnings(text: &mut String, warnings: &[String], paint: Paint) {
    for warning in warnings.iter().take(MOST_WARNINGS) {
        let _ = writeln!(text, "{} {}", paint.bold("warning:"), clean(warning));
    }
    let others = warnings.len().saturating_sub(MOST_WARNINGS);
    if others > 0 {
        let _ = writeln!(text, "{} and {others} others", paint.bold("warning:"));
    }
}

/// Limit on the lines about packets in clear; `--json` has all sources.
const MOST_CLAIMS: usize = 8;

fn show_clear(text: &mut String, claims: &[ClearClaim], paint: Paint) {
    for claim in claims.iter().take(MOST_CLAIMS) {
        let (claim, ago) = (claim.to_string(), span(claim.seconds_ago));
        let _ = writeln!(
            text,
            "{} {} ({ago} ago)",
            paint.bad("clear:"),
            clean(&claim)
        );
    }
    let others = claims.len().saturating_sub(MOST_CLAIMS);
    if others > 0 {
        let _ = writeln!(text, "{} and {others} other sources", paint.bad("clear:"));
    }
}

pub(super) fn reason(refusal: &Refusal) -> String {
    let (reason, ago) = (clean(&refusal.reason), span(refusal.seconds_ago));
    match refusal.from {
        Some(from) => format!("{reason} (from {from}, {ago} ago)"),
        None => format!("{reason} ({ago} ago)"),
    }
}

/// Tells how many users a table for many has.
fn of_users(users: Users) -> String {
    format!("{} of {} users", users.here, users.most)
}

/// Formats a lookup with its time.
pub(super) fn lookup(lookup: &Lookup) -> String {
    let told = lookup.to_string();
    let told = clean(&told);
    let asking = if lookup.asking { ", asking again" } else { "" };
    match lookup.seconds_ago {
        Some(ago) => format!("{told}, {} ago{asking}", span(ago)),
        None => format!("{told}{asking}"),
    }
}

fn show_drops(text: &mut String, status: &Status, paint: Paint) {
    if status.drops.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", paint.bold("dropped packets"));
    let width = status
        .drops
        .values()
        .map(|number| count(*number).len())
        .max();
    for (reason, number) in &status.drops {
        let (number, width) = (count(*number), width.unwrap_or(0));
        let _ = writeln!(text, "  {number:>width$}  {}", clean(reason));
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Endpoint => "endpoint",
        Role::Gateway => "gateway",
        Role::LicensedNode => "licensed node",
        Role::MobileNode => "mobile node",
        Role::ForeignAgent => "foreign agent",
        Role::HomeAgent => "home agent",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;
    use control::{
        Carrier, Child, ChildKind, ChildMode, MtuOrigin, PeerKind, PeerState, Routes, RoutesReason,
        Traffic, Window,
    };
    use std::collections::BTreeMap;

    fn office() -> Peer {
        Peer {
            name: "office".to_owned(),
            kind: PeerKind::Vpn,
            table: None,
            users: None,
            identity: "gw.example.net".to_owned(),
            state: PeerState::Up,
            remote: Some("192.0.2.1:4500".parse().unwrap()),
            interface: None,
            lookup: Some(Lookup {
                name: "gw.example.net".to_owned(),
                asking: false,
                seconds_ago: Some(80),
                server: Some("192.0.2.53".parse().unwrap()),
                addresses: vec!["192.0.2.1".parse().unwrap()],
                failure: None,
                tried: vec!["192.0.2.1".parse().unwrap()],
                last_up: None,
            }),
            carrier: Carrier::Tcp,
            since_seconds: Some(75),
            heard_seconds: Some(61),
            silent: true,
            rivals: Vec::new(),
            last_refusal: None,
            ppk: true,
            clone: true,
            ike_sas: 2,
            kem: vec!["mlkem768".to_owned()],
            window: Some(Window {
                ours: 8,
                theirs: 4,
                under_way: 0,
            }),
            inside: vec!["10.1.0.2".parse().unwrap()],
            routes: Some(Routes {
                reason: RoutesReason::Subnets,
                prefixes: vec!["10.8.0.0/16".to_owned()],
                beyond: Vec::new(),
            }),
            children: vec![Child {
                name: None,
                spi_in: "c0de0001".to_owned(),
                spi_out: "beef0002".to_owned(),
                suite: None,
                unencrypted: false,
                packets_left: None,
                esn: false,
                key_exchanges: vec!["x25519".to_owned(), "mlkem768".to_owned()],
                mode: ChildMode::Tunnel,
                carrier: Carrier::Tcp,
                draining: false,
                waiting: false,
                path_mtu: Some(1400),
                path_mtu_origin: Some(MtuOrigin::Probed),
                mtu: Some(1338),
                kind: ChildKind::Zoned,
                local: vec!["10.1.0.2/32".to_owned()],
                remote: vec!["10.8.0.0/16".to_owned(), "fd00:8::/64".to_owned()],
                received: Traffic {
                    packets: 1234,
                    octets: 1 << 20,
                },
                sent: Traffic {
                    packets: 1,
                    octets: 40,
                },
                received_per_second: 150_000,
                sent_per_second: 0,
            }],
            missing: Vec::new(),
        }
    }

    fn home() -> Peer {
        Peer {
            name: "home".to_owned(),
            identity: "home.example.net".to_owned(),
            state: PeerState::Down,
            remote: None,
            lookup: None,
            carrier: Carrier::Udp,
            since_seconds: None,
            heard_seconds: None,
            silent: false,
            last_refusal: Some(Refusal {
                seconds_ago: 3,
                from: None,
                reason: "the peer refused our identity".to_owned(),
            }),
            ppk: false,
            clone: false,
            ike_sas: 0,
            kem: Vec::new(),
            window: None,
            inside: Vec::new(),
            routes: None,
            children: Vec::new(),
            ..office()
        }
    }

    #[test]
    fn a_status_fits_a_screen_and_begins_with_what_is_wrong() {
        let status = Status {
            identity: "alice@example.net".to_owned(),
            roles: vec![Role::Endpoint],
            uptime_seconds: 7380,
            errors: vec![Trouble {
                task: "dns".to_owned(),
                remote: None,
                what: "cannot set the name servers of `dns`: it is a mount".to_owned(),
                fix: "remove `dns`".to_owned(),
                seconds: Some(5),
            }],
            warnings: vec!["PAYLOAD LICENSED: fa".to_owned()],
            locked: vec!["10.8.0.0/16".to_owned()],
            clear: vec![ClearClaim {
                address: "10.1.0.2".parse().unwrap(),
                peer: Some("alice".to_owned()),
                interface: "eth0".to_owned(),
                link: Some("02:00:00:00:00:66".to_owned()),
                from: vec!["192.0.2.102".parse().unwrap()],
                packets: 3,
                seconds_ago: 61,
            }],
            peers: vec![home(), office()],
            refused_stranger: Some(Refusal {
                seconds_ago: 9,
                from: Some("192.0.2.102:500".parse().unwrap()),
                reason: "no peer with the identity eve is configured".to_owned(),
            }),
            drops: BTreeMap::from([
                ("esp_replay".to_owned(), 12),
                ("esp_no_policy".to_owned(), 3456),
            ]),
            ..Status::default()
        };
        let expected = "\
alice@example.net  endpoint, running for 2 h 3 min
error: cannot set the name servers of `dns`: it is a mount
  fix: remove `dns`
warning: PAYLOAD LICENSED: fa
locked: 10.8.0.0/16 (`leak = \"never\"`)
clear: 3 packets in clear claimed to be alice, 10.1.0.2, by eth0 from 192.0.2.102 02:00:00:00:00:66, dropped (1 min 1 s ago)

peer    state   address                in          out      heard
home    down    -                      -           -        failed: the peer refused our identity (3 s ago)
office  silent  192.0.2.1:4500 by TCP  1.2 Mbit/s  0 bit/s  1 min 1 s ago
2 peers: 1 up (1 silent), 1 down

an unidentified host was refused
  no peer with the identity eve is configured (from 192.0.2.102:500, 9 s ago)

dropped packets
  3,456  esp_no_policy
     12  esp_replay
";
        assert_eq!(overview(&status, None, PLAIN), expected);
    }

    #[test]
    fn a_peer_that_is_named_is_shown_in_full() {
        let status = Status {
            identity: "alice@example.net".to_owned(),
            roles: vec![Role::Endpoint],
            uptime_seconds: 5,
            warnings: vec!["PAYLOAD LICENSED: fa".to_owned()],
            peers: vec![office(), home()],
            drops: BTreeMap::from([("esp_replay".to_owned(), 12)]),
            ..Status::default()
        };
        let expected = "\
alice@example.net  endpoint, running for 5 s
warning: PAYLOAD LICENSED: fa

peer home  down
  identity  home.example.net
  failed    the peer refused our identity (3 s ago)

peer office  up for 1 min 15 s, silent
  identity  gw.example.net
  remote    192.0.2.1:4500 by TCP
  name      gw.example.net: 192.0.2.1 (says 192.0.2.53); tried 192.0.2.1, 1 min 20 s ago
  heard     1 min 1 s ago
  ppk       in all keys
  kem       mlkem768 in all keys
  window    4 requests to the peer at once, 8 from it
  ike       2 IKE SAs at once
  inside    10.1.0.2
  routes    10.8.0.0/16: announced by the peer
  sa        zoned, in c0de0001, out beef0002
  pfs       x25519, mlkem768
  carries   10.1.0.2/32 <-> 10.8.0.0/16, fd00:8::/64
  mtu       1338, of 1400 outside (probed)
  received  1.0 MiB in 1,234 packets, 1.2 Mbit/s now
  sent      40 B in 1 packet
";
        assert_eq!(details(&status, PLAIN), expected);
    }

    /// In red, above the warnings, and again at the peer.
    #[test]
    fn a_tunnel_that_is_not_encrypted_is_the_first_thing_that_is_told() {
        let mut peer = Peer {
            silent: false,
            ..office()
        };
        let child = &mut peer.children[0];
        child.kind = ChildKind::Plain;
        (child.suite, child.unencrypted) = (Some("null-sha256".to_owned()), true);
        let status = Status {
            warnings: vec!["another".to_owned()],
            peers: vec![peer],
            ..Status::default()
        };
        let told = "not encrypted: every router on the path can read the tunnel with office \
                    (null-sha256)\nwarning: another\n";
        let shown = overview(&status, None, PLAIN);
        assert!(shown.contains(told), "{shown}");
        assert!(shown.contains("office  up, in clear  "), "{shown}");
        let shown = details(&status, PLAIN);
        assert!(shown.contains(told), "{shown}");
        assert!(
            shown.contains("  sa        plain, NOT ENCRYPTED (null-sha256), in c0de"),
            "{shown}"
        );
        let red = overview(&status, None, Paint::new(true));
        assert!(red.contains("\u{1b}[1;31mnot encrypted:"), "{red}");
        let mut over = status;
        over.peers[0].children[0].draining = true;
        let shown = overview(&over, None, PLAIN);
        assert!(!shown.contains("not encrypted:"), "{shown}");
    }

    #[test]
    fn a_table_for_many_users_tells_their_number_and_a_user_its_table() {
        let table = Peer {
            name: "staff".to_owned(),
            identity: "*@staff.example.net".to_owned(),
            state: PeerState::Down,
            users: Some(Users {
                here: 1,
                most: 1000,
            }),
            remote: None,
            since_seconds: None,
            ..office()
        };
        let user = Peer {
            name: "alice@staff.example.net".to_owned(),
            lookup: None,
            table: Some("staff".to_owned()),
            ..office()
        };
        let status = Status {
            peers: vec![table, user],
            ..Status::default()
        };
        let shown = details(&status, PLAIN);
        assert!(shown.contains("peer staff  1 of 1000 users"), "{shown}");
        let user = "peer alice@staff.example.net  up for 1 min 15 s, silent\n  identity  \
                    gw.example.net\n  table     staff\n";
        assert!(shown.contains(user), "{shown}");
        let shown = selected(&status, None, PLAIN);
        let line = "\nstaff                    1 of 1000 users  -  ";
        assert!(shown.contains(line), "{shown}");
        assert!(shown.ends_with("\n1 peer: 1 up (1 silent)\n"), "{shown}");
    }

    // Works: service
    #[test]
    fn a_restart_is_told_with_its_gap() {
        let restart = Some(Restart {
            seconds_ago: 12,
            waited_micros: 134_000,
        });
        let status = Status {
            restart,
            ..Status::default()
        };
        let shown = overview(&status, None, PLAIN);
        assert!(
            shown.contains("\nrestarted 12 s ago, packets waited 0.13 s\n"),
            "{shown}"
        );
        let shown = overview(&Status::default(), None, PLAIN);
        assert!(!shown.contains("restarted"), "{shown}");
    }

    // Works: link-local
    #[test]
    fn a_link_local_address_is_shown_with_its_interface() {
        let peer = Peer {
            remote: Some("[fe80::1]:4500".parse().unwrap()),
            interface: Some("eth0\u{1b}".to_owned()),
            carrier: Carrier::Udp,
            ..office()
        };
        let status = Status {
            peers: vec![peer],
            ..Status::default()
        };
        let shown = details(&status, PLAIN);
        assert!(shown.contains("  remote    [fe80::1%eth0"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let shown = selected(&status, None, PLAIN);
        assert!(shown.contains("[fe80::1%eth0"), "{shown}");
    }

    #[test]
    fn lines_are_in_natural_order_and_as_wide_as_the_terminal() {
        let named = |name: &str| Peer {
            name: name.to_owned(),
            ..office()
        };
        let mut node = named("fa");
        node.kind = PeerKind::Licensed;
        let status = Status {
            peers: vec![node, named("u1"), named("u10"), named("u2")],
            ..Status::default()
        };
        let shown = selected(&status, Some(20), PLAIN);
        let lines: Vec<_> = shown.lines().skip(2).collect();
        let expected = [
            "peer           stat…",
            "u1             sile…",
            "u2             sile…",
            "u10            sile…",
            "fa (licensed)  sile…",
            "4 peers: 4 up (4 silent)",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_child_that_is_missing_and_an_empty_selection_are_told() {
        let mut peer = office();
        peer.missing = vec!["voice".to_owned()];
        let status = Status {
            peers: vec![peer],
            ..Status::default()
        };
        let shown = selected(&status, None, PLAIN);
        assert!(shown.contains("1 min 1 s ago, without voice\n"), "{shown}");
        let shown = selected(&Status::default(), None, PLAIN);
        assert!(shown.ends_with("\nno peers\n"), "{shown}");
    }

    #[test]
    fn failures_of_many_destinations_leave_room_for_the_rest() {
        let trouble = |number: u8| Trouble {
            task: "send".to_owned(),
            remote: Some([192, 0, 2, number].into()),
            what: format!("nothing can be sent to 192.0.2.{number}"),
            fix: "connect this host to a network".to_owned(),
            seconds: Some(1),
        };
        let status = Status {
            errors: (0..200).map(trouble).collect(),
            ..Status::default()
        };
        let shown = overview(&status, None, PLAIN);
        assert!(shown.contains("error: and 184 others\n"), "{shown}");
        assert!(shown.lines().count() < 40, "{shown}");
    }

    // Weakness: 26
    #[test]
    fn nothing_a_peer_says_reaches_the_terminal_raw() {
        let evil = "\x1b]0;x\x07\u{202e}".to_owned();
        let mut peer = office();
        peer.name = evil.clone();
        peer.identity = evil.clone();
        peer.last_refusal = Some(Refusal {
            seconds_ago: 0,
            from: None,
            reason: evil.clone(),
        });
        peer.children[0].spi_in = evil.clone();
        peer.children[0].local = vec![evil.clone()];
        peer.children[0].key_exchanges = vec![evil.clone()];
        let status = Status {
            identity: evil.clone(),
            errors: vec![Trouble {
                task: evil.clone(),
                remote: None,
                what: evil.clone(),
                fix: evil.clone(),
                seconds: None,
            }],
            warnings: vec![evil.clone()],
            peers: vec![peer],
            drops: BTreeMap::from([(evil, 1)]),
            ..Status::default()
        };
        for shown in [
            overview(&status, None, PLAIN),
            selected(&status, Some(80), PLAIN),
            details(&status, PLAIN),
        ] {
            assert!(!shown.contains(['\x1b', '\x07', '\u{202e}']), "{shown:?}");
        }
    }
}
