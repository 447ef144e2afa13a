//! Traffic of interfaces: which path it takes, and what it loses when an interface is lost.

use super::datagram;
use super::world::{
    GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, SECOND, THIRD, World, address,
};
use crate::{PathRule, Stance, Way};
use model::TrafficSelector;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use wire::ip::Header;

const MS: Duration = Duration::from_millis(1);

/// Flows of the server on each port.
const FLOWS: u16 = 8;

/// Ports of the server: of voice, which a rule has go by the second interface, and of all else.
const VOICE: u16 = 5060;
const BULK: u16 = 80;

fn second() -> IpAddr {
    SECOND.parse().unwrap()
}

fn third() -> IpAddr {
    THIRD.parse().unwrap()
}

fn rule(interface: &str, port: u16) -> PathRule {
    let all = TrafficSelector::from_prefix([10, 8, 0, 0].into(), 16).unwrap();
    PathRule {
        interface: interface.to_owned(),
        remote: vec![TrafficSelector {
            protocol: 6,
            ports: port..=port,
            ..all
        }],
    }
}

fn voice() -> Vec<PathRule> {
    vec![rule("wwan0", VOICE)]
}

fn ways(world: &mut World, locals: &[IpAddr]) {
    let remote = address(GATEWAY);
    let ways: Vec<_> = locals
        .iter()
        .map(|local| Way {
            local: *local,
            remote,
        })
        .collect();
    world.command(MOBILE, |node, now| node.handle_ways(&ways, now));
}

fn both(world: &mut World) {
    ways(world, &[address(MOBILE), second()]);
}

fn seeded(rules: &[PathRule], seed: u64) -> World {
    let mut world = started(rules, seed);
    both(&mut world);
    world
}

fn started(rules: &[PathRule], seed: u64) -> World {
    let mut world = World::seeded(
        Policies {
            mobile: Vec::new(),
            gateway: Vec::new(),
            stance: Stance::Refuse,
            snoop: false,
            paths: 2,
            ..Policies::default()
        },
        seed,
    );
    world.off[LICENSED] = true;
    world.reconfigure(MOBILE, |config| config.peers[0].ike.rules = rules.to_vec());
    let interfaces = [
        (address(MOBILE), "wlan0"),
        (second(), "wwan0"),
        (third(), "eth0"),
    ];
    let interfaces = interfaces.map(|(address, name)| (address, name.to_owned()));
    let interfaces = BTreeMap::from(interfaces);
    world.command(MOBILE, |node, now| node.set_interfaces(interfaces, now));
    world.run_for(Duration::from_secs(1));
    world
}

fn connected(rules: &[PathRule]) -> World {
    let mut world = seeded(rules, 1);
    world.run_for(Duration::from_secs(8));
    assert_eq!(live(&world, MOBILE).len(), 2);
    world
}

/// Returns the address of the mobile node on each live path of a host, the ports of the traffic of
/// the path's own, and true if it carries other traffic as well.
fn live(world: &World, who: usize) -> Vec<(IpAddr, Vec<u16>, bool)> {
    let paths = world.nodes[who].paths();
    let live = paths.iter().flat_map(|tunnel| &tunnel.live);
    let live = live.map(|live| {
        let end = match who {
            MOBILE => live.path.local,
            _ => live.path.remote,
        };
        let ports = live.traffic.iter().map(|one| *one.ports.start());
        (end.ip(), ports.collect(), live.is_shared)
    });
    live.collect()
}

/// Sends a segment of each flow in both directions every two milliseconds.
fn stream(world: &mut World, numbers: std::ops::Range<u32>) {
    for number in numbers {
        for port in [VOICE, BULK] {
            for flow in 0..FLOWS {
                let client = format!("10.1.0.2:{}", 40_000 + flow);
                let server = format!("10.8.0.1:{port}");
                let payload = number.to_be_bytes();
                let there = datagram::tcp(&client, &server, number * 4, 1, &payload);
                let back = datagram::tcp(&server, &client, number * 4, 1, &payload);
                world.send(MOBILE, &there);
                world.send(GATEWAY, &back);
            }
        }
        world.run_for(2 * MS);
    }
}

/// Returns the number of segments of a port that arrived at a host.
fn arrived(world: &World, who: usize, port: u16) -> usize {
    let is_of = |octets: &&Vec<u8>| {
        let flow = Header::parse(octets).unwrap().flow();
        [flow.source_port, flow.destination_port].contains(&port)
    };
    world.delivered[who].iter().filter(is_of).count()
}

/// Returns the packets that a host has sealed on the child SAs with a name.
fn sent(world: &World, who: usize, name: Option<&str>) -> u64 {
    let peers = world.nodes[who].peers();
    let children = peers.iter().flat_map(|peer| &peer.children);
    let named = children.filter(|child| child.name.as_deref() == name);
    named.map(|child| child.sent.packets).sum()
}

/// Returns what a host has sent: on the first path, on the second one, and of its traffic there.
fn shares(world: &World, who: usize) -> [u64; 3] {
    let own = match who {
        MOBILE => "rule 1 on path 2",
        _ => "traffic of path 2",
    };
    [None, Some("path 2"), Some(own)].map(|name| sent(world, who, name))
}

#[test]
fn the_traffic_of_a_rule_takes_its_interface_both_ways_and_all_else_the_other() {
    let mut world = connected(&voice());
    for who in [MOBILE, GATEWAY] {
        let expected = [
            (address(MOBILE), vec![], true),
            (second(), vec![VOICE], false),
        ];
        assert_eq!(live(&world, who), expected, "{}", NAMES[who]);
    }
    stream(&mut world, 0..100);
    world.run_for(Duration::from_secs(1));
    let each = 100 * u64::from(FLOWS);
    for who in [MOBILE, GATEWAY] {
        assert_eq!(shares(&world, who), [each, 0, each], "{}", NAMES[who]);
        for port in [VOICE, BULK] {
            assert_eq!(arrived(&world, who, port) as u64, each);
        }
    }
}

/// Negative control.
#[test]
fn without_a_rule_both_kinds_of_traffic_share_both_paths() {
    let mut world = connected(&[]);
    stream(&mut world, 0..100);
    world.run_for(Duration::from_secs(1));
    for who in [MOBILE, GATEWAY] {
        let [first, further, own] = shares(&world, who);
        assert!(first > 0 && further > 0, "{}", NAMES[who]);
        assert_eq!(own, 0);
    }
}

#[test]
fn each_interface_has_a_rule_and_all_else_is_shared() {
    let rules = [rule("wlan0", BULK), rule("wwan0", VOICE)];
    let world = connected(&rules);
    for who in [MOBILE, GATEWAY] {
        let expected = [
            (address(MOBILE), vec![BULK], true),
            (second(), vec![VOICE], true),
        ];
        assert_eq!(live(&world, who), expected, "{}", NAMES[who]);
    }
}

/// The route by the interface is gone: its traffic takes the other within the same moment, and
/// returns with the interface.
#[test]
fn traffic_falls_to_the_other_path_when_its_interface_is_lost_and_returns_with_it() {
    for gone in [second(), address(MOBILE)] {
        let mut world = connected(&voice());
        stream(&mut world, 0..100);
        let left = if gone == second() {
            address(MOBILE)
        } else {
            second()
        };
        world.cut = vec![gone];
        ways(&mut world, &[left]);
        stream(&mut world, 100..600);
        world.run_for(Duration::from_secs(10));
        let all = 600 * usize::from(FLOWS);
        for port in [VOICE, BULK] {
            assert_eq!(arrived(&world, GATEWAY, port), all, "{gone}: {port}");
            // The gateway learns of it from the next message.
            let lost = all - arrived(&world, MOBILE, port);
            assert!(lost < 40 * usize::from(FLOWS), "{gone}: {lost} of {port}");
        }
        for who in [MOBILE, GATEWAY] {
            let paths = live(&world, who);
            assert!(paths.len() == 1 && paths[0].2, "{gone}: {paths:?}");
        }
        world.cut.clear();
        both(&mut world);
        let returned = |world: &World| {
            [MOBILE, GATEWAY].into_iter().all(|who| {
                let paths = live(world, who);
                let voice = (second(), vec![VOICE], false);
                paths.len() == 2 && paths.contains(&voice)
            })
        };
        assert!(
            world.run_until(Duration::from_secs(60), returned),
            "{gone}: {:?}",
            live(&world, MOBILE)
        );
    }
}

/// Packets vanish on the path of a rule: both ends leave it by themselves, without a message.
#[test]
fn the_path_of_a_rule_that_is_silent_is_left_by_both_ends() {
    let mut world = connected(&voice());
    stream(&mut world, 0..100);
    world.cut = vec![second()];
    stream(&mut world, 100..1100);
    let before = [MOBILE, GATEWAY].map(|who| arrived(&world, who, VOICE));
    stream(&mut world, 1100..1600);
    world.run_for(MS * 500);
    for (who, before) in [MOBILE, GATEWAY].into_iter().zip(before) {
        let more = arrived(&world, who, VOICE) - before;
        assert!(more >= 500 * usize::from(FLOWS), "{}: {more}", NAMES[who]);
        let all = 1600 * usize::from(FLOWS);
        assert_eq!(arrived(&world, who, BULK), all, "{}", NAMES[who]);
    }
    world.cut.clear();
    let used = |world: &World| {
        let is_used = |who| live(world, who).contains(&(second(), vec![VOICE], false));
        is_used(MOBILE) && is_used(GATEWAY)
    };
    stream(&mut world, 1600..3600);
    assert!(world.run_until(Duration::from_secs(60), used));
    let before = shares(&world, GATEWAY)[2];
    stream(&mut world, 3600..3650);
    assert_eq!(shares(&world, GATEWAY)[2] - before, 50 * u64::from(FLOWS));
}

/// The only path left carries everything, also if it has traffic of its own.
#[test]
fn a_path_with_traffic_of_its_own_carries_everything_when_it_is_the_last() {
    let mut world = connected(&voice());
    world.cut = vec![address(MOBILE)];
    stream(&mut world, 0..1500);
    let before = [MOBILE, GATEWAY].map(|who| arrived(&world, who, BULK));
    stream(&mut world, 1500..1700);
    world.run_for(MS * 500);
    for (who, before) in [MOBILE, GATEWAY].into_iter().zip(before) {
        let more = arrived(&world, who, BULK) - before;
        assert!(more >= 200 * usize::from(FLOWS), "{}: {more}", NAMES[who]);
    }
}

/// Of three interfaces, two have a path. The second path is by that of the rule.
#[test]
fn the_interface_of_a_rule_has_a_path_before_others() {
    let (first, eth) = (address(MOBILE), third());
    let voice = voice();
    let of_rule = (second(), vec![VOICE], false);
    // Without a rule, the order of the routes counts.
    for (rules, other) in [(&voice[..], of_rule), (&voice[..0], (eth, vec![], true))] {
        let mut world = started(rules, 1);
        ways(&mut world, &[first, eth, second()]);
        world.run_for(Duration::from_secs(8));
        let wanted = [(first, vec![], true), other];
        for who in [MOBILE, GATEWAY] {
            assert_eq!(live(&world, who), wanted, "{}", NAMES[who]);
        }
    }
}

#[test]
fn another_rule_takes_effect_at_once_and_loses_nothing() {
    let mut world = connected(&voice());
    stream(&mut world, 0..100);
    let change = |world: &mut World, rules: Vec<PathRule>| {
        let anew = world.reconfigure(MOBILE, |config| config.peers[0].ike.rules = rules);
        assert!(anew.is_empty());
    };
    change(&mut world, vec![rule("wlan0", VOICE)]);
    stream(&mut world, 100..600);
    world.run_for(Duration::from_secs(5));
    for who in [MOBILE, GATEWAY] {
        let expected = [
            (address(MOBILE), vec![VOICE], false),
            (second(), vec![], true),
        ];
        assert_eq!(live(&world, who), expected, "{}", NAMES[who]);
    }
    change(&mut world, Vec::new());
    stream(&mut world, 600..1100);
    world.run_for(Duration::from_secs(60));
    for who in [MOBILE, GATEWAY] {
        let paths = live(&world, who);
        assert!(
            paths
                .iter()
                .all(|(_, own, shared)| own.is_empty() && *shared)
        );
        for port in [VOICE, BULK] {
            assert_eq!(arrived(&world, who, port), 1100 * usize::from(FLOWS));
        }
    }
}

/// Returns the number of times at which the mobile node reviews its paths.
fn reviews(world: &mut World, seconds: u32) -> usize {
    let mut times = BTreeSet::new();
    for _ in 0..10 * seconds {
        let next = world.nodes[MOBILE].poll_timeout();
        let review = next.filter(|next| next.reason == "check live paths");
        times.extend(review.map(|review| review.at));
        world.run_for(100 * MS);
    }
    times.len()
}

#[test]
fn a_rule_that_the_gateway_refuses_is_requested_ever_less_often_until_a_reload() {
    let outside = TrafficSelector::from_prefix([10, 99, 0, 0].into(), 16).unwrap();
    let refused = PathRule {
        remote: vec![outside],
        ..rule("wwan0", VOICE)
    };
    let [without, with] = [vec![], vec![refused]].map(|rules| {
        let mut world = connected(&rules);
        let reviews = reviews(&mut world, 250);
        (reviews, world)
    });
    let (reviews, mut world) = with;
    assert!(reviews <= without.0 + 25, "{reviews}, {}", without.0);
    world.reconfigure(MOBILE, |config| config.peers[0].ike.rules = voice());
    world.run_for(Duration::from_secs(3));
    let voice = (second(), vec![VOICE], false);
    assert!(
        live(&world, MOBILE).contains(&voice),
        "{:?}",
        live(&world, MOBILE)
    );
}

#[test]
fn rekeys_keep_the_traffic_of_a_path_and_lose_nothing() {
    let mut world = connected(&voice());
    stream(&mut world, 0..100);
    world
        .command(MOBILE, |node, now| {
            node.rekey("gw", crate::Rekey::Children, now)
        })
        .unwrap();
    stream(&mut world, 100..600);
    world
        .command(GATEWAY, |node, now| {
            node.rekey("alice", crate::Rekey::Ike, now)
        })
        .unwrap();
    stream(&mut world, 600..1100);
    world
        .command(GATEWAY, |node, now| {
            node.rekey("alice", crate::Rekey::Children, now)
        })
        .unwrap();
    stream(&mut world, 1100..1600);
    world.run_for(Duration::from_secs(60));
    for who in [MOBILE, GATEWAY] {
        for port in [VOICE, BULK] {
            assert_eq!(arrived(&world, who, port), 1600 * usize::from(FLOWS));
        }
        let voice = (second(), vec![VOICE], false);
        assert!(
            live(&world, who).contains(&voice),
            "{:?}",
            live(&world, who)
        );
    }
}

#[test]
fn traffic_is_agreed_over_hops_that_lose_and_reorder() {
    for seed in 0..4 {
        let mut world = seeded(&voice(), seed);
        world.wireless = world.wireless.losing(100).delaying(100);
        world.run_for(Duration::from_secs(30));
        world.wireless = super::world::Hop::default();
        world.run_for(Duration::from_secs(60));
        for who in [MOBILE, GATEWAY] {
            let voice = (second(), vec![VOICE], false);
            assert!(
                live(&world, who).contains(&voice),
                "{seed} {}: {:?}",
                NAMES[who],
                live(&world, who)
            );
        }
    }
}
