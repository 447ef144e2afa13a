//! Both ends re-authenticate while packets flow: nothing is lost, and licensed nodes continue to
//! read.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{CannotReauthenticate, Event, NotRepeated, PeerState, Stance};
use std::time::Duration;

/// Hosts that initiate, with their names of the peer.
const BEGUN: [(usize, &str); 2] = [(MOBILE, "gw"), (GATEWAY, "fa")];

fn reauthenticate(world: &mut World, (who, peer): (usize, &str)) {
    let asked = world.command(who, |node, now| node.reauthenticate(peer, now));
    assert_eq!(asked, Ok(()));
}

/// Sends packets from these ends, a hundred per second. Returns the number that each end sent.
pub fn stream(world: &mut World, from: &[usize], first: u32, time: Duration) -> u32 {
    let count = time.as_millis() as u32 / 10;
    for number in first..first + count {
        for who in from {
            world.segment(*who, 4 * number, &number.to_be_bytes());
        }
        world.run_for(Duration::from_millis(10));
    }
    count
}

/// Streams through several re-authentications, of the tunnel and of the licensed node's IKE SA in
/// turn.
fn stream_through(world: &mut World, from: &[usize], times: usize, pause: Duration) {
    let mut sent = 0;
    for round in 0..times {
        let (who, peer) = BEGUN[round % 2];
        // If messages are lost, the previous one may still be in progress.
        let under_way = Err(CannotReauthenticate::Ike(NotRepeated::UnderWay));
        while world.command(who, |node, now| node.reauthenticate(peer, now)) == under_way {
            sent += stream(world, from, sent, Duration::from_secs(1));
            assert!(sent < 500_000, "it never ends");
        }
        sent += stream(world, from, sent, pause);
    }
    world.run_for(Duration::from_secs(1));
    for who in [MOBILE, GATEWAY] {
        let other = if who == MOBILE { GATEWAY } else { MOBILE };
        let expected = u32::from(from.contains(&other)) * sent;
        assert_eq!(
            world.delivered[who].len(),
            expected as usize,
            "at host {who}"
        );
        assert_eq!(world.dropped[who], [], "at host {who}");
    }
}

/// Returns how often a host reported a re-authentication of the tunnel.
fn times(world: &World, who: usize) -> usize {
    times_of(world, who, |event| {
        matches!(event, Event::Reauthenticated { .. })
    })
}

/// Returns how often a host reported an event.
pub fn times_of(world: &World, who: usize, such: impl Fn(&Event) -> bool) -> usize {
    let events = world.events[who].iter();
    events.filter(|event| such(event)).count()
}

/// These streams contain no acknowledgements, so SNOOP would retransmit all of them.
pub fn without_snoop() -> Policies {
    Policies {
        snoop: false,
        ..Policies::default()
    }
}

#[test]
fn a_stream_loses_nothing_through_ten_authentications_and_the_node_reads_all_of_it() {
    let mut world = World::connected(without_snoop());
    stream_through(&mut world, &[MOBILE, GATEWAY], 10, Duration::from_secs(30));
    let times = [MOBILE, GATEWAY, LICENSED].map(|who| times(&world, who));
    assert_eq!(times, [5, 10, 5]);
    let transit = world.nodes[LICENSED].transit_counters();
    assert_eq!((transit.not_opened, transit.stale), (0, 0));
    assert_eq!(transit.unlicensed, 0, "every packet was read");
    world.run_for(Duration::from_secs(60));
    assert!(world.tunnel_is_up());
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
}

/// Only the Delete shows the other end that its answer arrived.
#[test]
fn a_stream_one_way_loses_nothing() {
    for stance in [Stance::Refuse, Stance::Require] {
        for from in [MOBILE, GATEWAY] {
            let policies = Policies {
                stance,
                mobile: Vec::new(),
                ..without_snoop()
            };
            let mut world = World::connected(policies);
            stream_through(&mut world, &[from], 10, Duration::from_secs(8));
        }
    }
}

// Recovers: reauth
#[test]
fn a_stream_loses_nothing_if_a_third_of_the_ike_messages_is_lost() {
    for seed in 0..8 {
        let mut world = World::seeded(without_snoop(), seed);
        world.run_for(Duration::from_secs(10));
        world.ike_lost = 333;
        stream_through(&mut world, &[MOBILE, GATEWAY], 4, Duration::from_secs(60));
        assert_eq!(times(&world, MOBILE), 2, "seed {seed}");
        world.ike_lost = 0;
        world.run_for(Duration::from_secs(120));
        assert!(world.tunnel_is_up(), "seed {seed}");
    }
}

/// All answers to IKE_AUTH are lost: the gateway has a new SA, and the mobile node gives up. The
/// mobile node may have moved, so the gateway probes it patiently before it gives up as well.
// Recovers: reauth
#[test]
fn a_new_ike_sa_whose_answer_never_came_leaves_the_old_one_in_use() {
    let mut world = World::connected(without_snoop());
    let before = world.spis(MOBILE);
    const IKE_AUTH: u8 = 35;
    world.silent_in = Some((GATEWAY, IKE_AUTH));
    reauthenticate(&mut world, BEGUN[0]);
    let sent = stream(&mut world, &[MOBILE, GATEWAY], 0, Duration::from_secs(400));
    world.run_for(Duration::from_secs(1));
    assert_eq!((times(&world, MOBILE), times(&world, GATEWAY)), (0, 1));
    for who in [MOBILE, GATEWAY] {
        assert_eq!(world.delivered[who].len(), sent as usize, "at host {who}");
        assert_eq!(world.spis(who), before, "at host {who}");
        let peer = &world.nodes[who].peers()[0];
        assert_eq!(peer.state, PeerState::Up);
        assert!(!peer.children[0].draining);
    }
    let told = |event: &Event| matches!(event, Event::Refused { why, .. } if why.to_string().contains("re-authentication failed"));
    assert!(world.events[MOBILE].iter().any(told));
    let down = |event: &Event| matches!(event, Event::PeerDown { .. });
    assert!(!world.events[MOBILE].iter().any(down));
}

#[test]
fn what_cannot_be_repeated_is_refused_with_a_reason() {
    let mut world = World::new(Policies::default());
    let ask = |world: &mut World, who, peer: &str| {
        world.command(who, |node, now| node.reauthenticate(peer, now))
    };
    let nobody = ask(&mut world, MOBILE, "nobody");
    assert!(matches!(nobody, Err(CannotReauthenticate::UnknownPeer(_))));
    let ike = |why| -> Result<(), _> { Err(CannotReauthenticate::Ike(why)) };
    assert_eq!(ask(&mut world, MOBILE, "gw"), ike(NotRepeated::NotUp));
    world.run_for(Duration::from_secs(10));
    assert_eq!(ask(&mut world, GATEWAY, "alice"), ike(NotRepeated::NotOurs));
    assert_eq!(ask(&mut world, MOBILE, "gw"), Ok(()));
    assert_eq!(ask(&mut world, MOBILE, "gw"), ike(NotRepeated::UnderWay));
}
