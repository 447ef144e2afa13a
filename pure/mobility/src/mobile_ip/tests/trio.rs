use super::world::{BAD, Node, World};
use super::*;
use crypto::Rng;

#[test]
fn a_mobile_node_that_hears_an_agent_is_registered_through_it() {
    let mut world = World::new(1, 1);
    world.move_to(&[0]);
    world.run_for(millis(1000));
    world.assert_at(0);
    let attachment = Attachment {
        interface: WLAN[0],
        agent: agent(0),
        care_of: agent(0),
    };
    let expected = [
        MobileEvent::Found {
            at: attachment,
            station: station(agent(0)),
        },
        MobileEvent::Registered(attachment),
        MobileEvent::Route(Some(attachment)),
    ];
    assert_eq!(world.events, expected);
    let bound = HomeEvent::Bound {
        home: HOME,
        care_of: vec![agent(0)],
    };
    assert_eq!(world.home.poll_event(), Some(bound));
    let visitor = Visitor {
        home: HOME,
        home_agent: HOME_AGENT,
        interface: AIR,
        station: Some(STATION),
    };
    let came = ForeignEvent::Came(visitor);
    assert_eq!(world.foreign[0].poll_event(), Some(came));
}

#[test]
fn a_registration_is_renewed_before_it_ends_and_nobody_notices() {
    let mut world = World::new(1, 2);
    world.move_to(&[0]);
    world.run_for(millis(3_600_000));
    world.assert_at(0);
    let is_renewal = |event: &&MobileEvent| matches!(event, MobileEvent::Renewed(_));
    let renewals = world.events.iter().filter(is_renewal).count();
    assert_eq!(world.events.len() - renewals, 3, "{:?}", world.events);
    let requests = world.requests(Node::Mobile).len();
    assert_eq!(requests, 3600 / 225 + 1 - usize::from(3600 % 225 == 0));
}

#[test]
fn a_move_is_noticed_when_the_old_agent_is_silent_for_as_long_as_it_said() {
    let mut world = World::new(2, 3);
    world.move_to(&[0]);
    world.run_for(millis(10_000));
    world.move_to(&[1]);
    world.run_for(millis(4_500));
    let registered: Vec<_> = world.mobile.registrations().map(|at| at.care_of).collect();
    assert_eq!(registered, [agent(1)]);
    assert_eq!(world.home.care_of(HOME), [agent(1)]);
    // The old agent is not notified; its entry ends with its lifetime (section 3.8.2.2).
    world.run_for(millis(300_000));
    world.assert_at(1);
    assert!(!world.has_visitor(0));
}

// Recovers: mobile-ip
#[test]
fn a_lost_interface_is_left_at_once() {
    let mut world = World::new(2, 4);
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1])];
    world.run_for(millis(5_000));
    world.assert_at(0);
    world.mobile.interface_lost(WLAN[0], world.now);
    world.run_for(millis(100));
    assert_eq!(world.home.care_of(HOME), [agent(1)]);
    world.mobile.interface_found(WLAN[0], world.now);
    world.run_for(millis(3_000));
    assert_eq!(world.home.care_of(HOME), [agent(0)], "it is preferred");
}

#[test]
fn with_two_agents_at_once_packets_go_to_both_and_then_to_the_one_that_is_left() {
    let config = MobileNodeConfig {
        simultaneous: true,
        ..mobile_config()
    };
    let mut world = World::with(2, 5, config, home_config());
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1])];
    world.run_for(millis(5_000));
    let mut care_of = world.home.care_of(HOME);
    care_of.sort();
    assert_eq!(care_of, [agent(0), agent(1)]);
    assert_eq!(world.mobile.registrations().count(), 2);
    world.heard[0] = None;
    world.run_for(millis(10_000));
    let registered: Vec<_> = world.mobile.registrations().map(|at| at.care_of).collect();
    assert_eq!(registered, [agent(1)]);
    assert_eq!(world.home.care_of(HOME), [agent(1)]);
    world.heard[0] = Some(WLAN[0]);
    world.run_for(millis(10_000));
    assert_eq!(world.home.care_of(HOME).len(), 2);
}

#[test]
fn a_home_agent_that_binds_one_care_of_address_has_one() {
    let mobile = MobileNodeConfig {
        simultaneous: true,
        ..mobile_config()
    };
    let home = HomeAgentConfig {
        bindings: 1,
        ..home_config()
    };
    let mut world = World::with(2, 6, mobile, home);
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1])];
    world.run_for(millis(20_000));
    world.assert_at(0);
    assert!(world.requests(Node::Mobile).len() < 4, "it was told once");
}

#[test]
fn who_stops_is_deregistered_everywhere() {
    let mut world = World::new(1, 7);
    world.move_to(&[0]);
    world.run_for(millis(5_000));
    world.mobile.deregister(world.now);
    world.run_for(millis(1_000));
    let done = MobileEvent::Deregistered { confirmed: true };
    assert!(world.events.contains(&done), "{:?}", world.events);
    assert_eq!(world.home.care_of(HOME), [] as [Ipv4Addr; 0]);
    assert!(!world.has_visitor(0));
    assert_eq!(world.mobile.poll_timeout(), None);
}

#[test]
fn who_stops_and_is_not_heard_stops_all_the_same() {
    let mut world = World::new(1, 8);
    world.move_to(&[0]);
    world.run_for(millis(5_000));
    world.hop.lost = 1000;
    world.heard[0] = None;
    world.mobile.deregister(world.now);
    world.run_for(millis(60_000));
    let done = MobileEvent::Deregistered { confirmed: false };
    assert!(world.events.contains(&done));
}

/// A mobile node with a wrong clock learns the time from the home agent (section 5.7.1).
#[test]
fn a_clock_that_is_wrong_costs_one_request_more() {
    let mut world = World::new(1, 9);
    let wrong = ntp(at(0)).plus(Duration::from_secs(86_400));
    world.mobile.set_wall_clock(wrong, at(0));
    world.move_to(&[0]);
    world.run_for(millis(3_000));
    world.assert_at(0);
    assert_eq!(world.requests(Node::Mobile).len(), 2);
    let denied = &world.home.counters().denied;
    assert_eq!(denied[&Code::HomeIdentification], 1);
}

#[test]
fn a_clock_that_nobody_has_set_is_set_by_the_home_agent() {
    let mut world = World::new(1, 10);
    world.mobile = MobileNode::new(mobile_config(), [10; 32], at(0));
    world.move_to(&[0]);
    world.run_for(millis(3_000));
    world.assert_at(0);
}

#[test]
fn nonces_need_no_clock() {
    let key = Association {
        replay: Replay::Nonces,
        ..mobile_home()
    };
    let mobile = MobileNodeConfig {
        key: key.clone(),
        lifetime: Lifetime(20),
        ..mobile_config()
    };
    let home = HomeAgentConfig {
        mobiles: BTreeMap::from([(HOME, key)]),
        ..home_config()
    };
    let mut world = World::with(1, 11, mobile, home.clone());
    world.home = HomeAgent::new(home, [11; 32]);
    world.move_to(&[0]);
    world.run_for(millis(100_000));
    world.assert_at(0);
    // The first nonce is unknown; each reply supplies the next.
    assert_eq!(
        world.home.counters().denied,
        BTreeMap::from([(Code::HomeIdentification, 1)])
    );
}

#[test]
fn an_agent_that_has_begun_anew_is_registered_with_again() {
    let mut world = World::new(1, 12);
    world.move_to(&[0]);
    world.run_for(millis(20_000));
    world.foreign[0] = ForeignAgent::new(foreign_config(0), [99; 32], world.now);
    assert!(!world.has_visitor(0));
    world.run_for(millis(2_500));
    world.assert_at(0);
}

#[test]
fn agents_that_share_a_key_believe_each_other() {
    let home = HomeAgentConfig {
        foreign: BTreeMap::from([(agent(0), foreign_home())]),
        ..home_config()
    };
    let mut world = World::with(1, 13, mobile_config(), home);
    world.move_to(&[0]);
    world.run_for(millis(1_000));
    world.assert_at(0);
    world.mobile.deregister(world.now);
    world.run_for(millis(2_000));
    assert!(
        !world.has_visitor(0),
        "and nothing of that is needed to leave"
    );
}

/// Many moves, on links that lose, duplicate and reorder. Whatever happened, all parties agree in
/// the end.
fn walk(seed: u8, simultaneous: bool, replay: Replay, agent_keys: u8) {
    let key = Association {
        replay,
        ..mobile_home()
    };
    let mobile = MobileNodeConfig {
        key: key.clone(),
        lifetime: Lifetime(20),
        simultaneous,
        ..keyed_config(agent_keys)
    };
    let home = HomeAgentConfig {
        mobiles: BTreeMap::from([(HOME, key)]),
        ..home_config()
    };
    let mut world = World::with(3, seed, mobile, home);
    let mut rng = Rng::from_seed([seed; 32]);
    world.hop = BAD;
    for _ in 0..12 {
        let [a, b, interface, seconds] = rng.array();
        world.move_to(&[usize::from(a % 3), usize::from(b % 4)]);
        world.heard[usize::from(a % 3)] = Some(WLAN[usize::from(interface % 2)]);
        let end = world.now + Duration::from_millis(500 + u64::from(seconds) * 60);
        while world.step(end) {
            let most = if simultaneous { 2 } else { 1 };
            assert!(world.home.care_of(HOME).len() <= most);
        }
        world.run_to(end);
        handover::assert_no_circle(&mut world);
    }
    world.hop = Hop::PERFECT;
    let last = usize::from(rng.array::<1>()[0] % 3);
    world.move_to(&[last]);
    world.run_for(millis(400_000));
    world.assert_at(last);
    for number in (0..3).filter(|&number| number != last) {
        assert!(!world.has_visitor(number), "it is at one agent");
    }
    assert_spacing(&world);
}

/// "A mobile node MUST NOT attempt to register more often than once per second" (section 3.6).
fn assert_spacing(world: &World) {
    let requests = world.timed_requests(Node::Mobile);
    for pair in requests.windows(2) {
        let apart = pair[1].0.since(pair[0].0);
        assert!(apart >= Duration::from_secs(1), "{apart:?} apart");
    }
}

#[test]
fn all_agree_in_the_end_whatever_links_and_moves_do() {
    for seed in 0..40 {
        walk(seed, false, Replay::default(), 0);
    }
}

#[test]
fn all_agree_in_the_end_with_two_agents_at_once() {
    for seed in 40..80 {
        walk(seed, true, Replay::default(), 0);
    }
}

#[test]
fn all_agree_in_the_end_with_nonces() {
    for seed in 80..120 {
        walk(seed, seed % 2 == 0, Replay::Nonces, 0);
    }
}

#[test]
fn all_agree_in_the_end_with_agents_that_tell_each_other() {
    for seed in 120..160 {
        walk(seed, seed % 3 == 0, Replay::default(), 3);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut world = World::new(2, 14);
        world.hop = Hop { jitter: 100, ..BAD };
        world.move_to(&[0, 1]);
        world.run_for(millis(60_000));
        format!("{:?}", world.tap)
    };
    assert_eq!(run(), run());
}
