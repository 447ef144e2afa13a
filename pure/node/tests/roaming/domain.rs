//! A mobile node that licenses the agents by their domain, at a gateway that names each.

use super::hosts::{AGENT, AGENTS, HOME, MOBILE, Policies, config};
use super::world::{Flight, Hosts, World};
use crypto::Secret;
use model::Spi;
use node::{Event, Handover};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Exchange that creates slots.
const CREATE_CHILD_SA: u8 = 36;

fn read_at(world: &mut World, agent: usize) -> bool {
    world.run_until(20 * SECOND, |world| world.readers() == [Some(agent); 2])
}

/// Returns the number of agents that hold keys.
fn holders(world: &World) -> usize {
    let holds = |agent: &usize| !world.nodes[AGENT + agent].held_grants().is_empty();
    (0..AGENTS).filter(holds).count()
}

/// Returns true if the mobile node refused a slot because too many agents of the domain had one.
fn refused_one_more(world: &World) -> bool {
    let events = world.events[MOBILE].iter();
    let told: Vec<_> = events.map(|event| format!("{event:?}")).collect();
    told.iter().any(|told| told.contains("TooManyOfDomain"))
}

#[test]
fn keys_come_after_a_mobile_node_that_does_not_name_the_agents() {
    for (handover, most) in [
        (Handover::Push, 4),
        (Handover::Push, 1),
        (Handover::Pkd, 4),
        (Handover::Pkd, 1),
    ] {
        let mut world = World::at(Policies::by_domain(handover, most), 0);
        for agent in [1, 2, 0, 2] {
            world.move_to(agent);
            assert!(read_at(&mut world, agent), "{handover:?} {most}: {agent}");
            let before = world.read(agent);
            assert!(world.traffic_flows());
            assert_eq!(world.read(agent), before + 2);
        }
        world.witness.assert_nobody_read_behind();
    }
}

/// The mobile node learns the names: which agent its packets are sealed for.
#[test]
fn the_mobile_node_can_tell_who_reads() {
    let mut world = World::at(Policies::by_domain(Handover::Push, 4), 0);
    world.move_to(1);
    assert!(read_at(&mut world, 1));
    let told = world.events[MOBILE].iter().filter_map(|event| match event {
        Event::SealedFor { node, .. } => Some(node.as_ref().map(ToString::to_string)),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    let named = ["fa.example.net", "fb.example.net"].map(|node| Some(node.to_owned()));
    assert!(
        told.starts_with(&named[..1]) && told.ends_with(&named[1..]),
        "{told:?}"
    );
    let csas = world.nodes[MOBILE].composite_sas();
    let newest = csas
        .iter()
        .rev()
        .find(|csa| !csa.agreement.licences.is_empty());
    let licences = &newest.unwrap().agreement.licences;
    assert_eq!(licences[0].node.to_string(), "fb.example.net");
}

/// Home prepares no more agents than its limit, and none that the mobile node would refuse.
// Refuses: licence-domain
#[test]
fn as_many_agents_have_keys_at_once_as_may() {
    for most in [1, 2, 3] {
        let mut world = World::at(Policies::by_domain(Handover::Pkd, most), 0);
        for agent in [0, 1, 2, 0] {
            world.move_to(agent);
            assert!(read_at(&mut world, agent));
            world.run_for(10 * SECOND);
            assert_eq!(holders(&world), usize::from(most), "at {agent}");
        }
        assert!(!refused_one_more(&world), "{most}");
    }
    // Control: home would prepare one more than the mobile node permits.
    let mut policies = Policies::by_domain(Handover::Pkd, 2);
    policies.domain = Some([2, 3]);
    let mut world = World::at(policies, 0);
    world.run_for(10 * SECOND);
    assert!(refused_one_more(&world));
    assert_eq!(holders(&world), 2);
}

/// Until the new agent's slot is there, the mobile node seals for nobody.
// Recovers: licence-domain
#[test]
fn between_a_move_and_the_next_offer_no_agent_reads() {
    let mut world = World::at(Policies::by_domain(Handover::Push, 4), 0);
    world.silent_in = Some((HOME, CREATE_CHILD_SA));
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(1)
        && world.slot(MOBILE).is_none()
        && world.slot(HOME).is_none()));
    let before = [0, 1].map(|agent| world.read(agent));
    assert!(world.traffic_flows());
    assert_eq!([0, 1].map(|agent| world.read(agent)), before);
    world.silent_in = None;
    assert!(world.run_until(30 * SECOND, |world| world.readers() == [Some(1); 2]));
    world.witness.assert_nobody_read_behind();
}

/// A licence that the mobile node takes back ends at once, whichever agents hold keys.
// Refuses: licence-domain
#[test]
fn a_domain_that_the_mobile_node_licenses_no_more_reads_nothing() {
    let policies = Policies::by_domain(Handover::Push, 4);
    let mut world = World::at(policies.clone(), 0);
    let mut told = config(MOBILE, &policies);
    told.peers[0].ike.slots.clear();
    told.peers[0].places = None;
    world.command(MOBILE, |node, now| node.reconfigure(told, now));
    let before = world.read(0);
    assert!(world.traffic_flows());
    assert!(world.run_until(10 * SECOND, |world| {
        world.nodes[AGENT].held_grants().is_empty()
    }));
    assert!(world.traffic_flows());
    assert!(
        world.read(0) <= before + 1,
        "{} after {before}",
        world.read(0)
    );
}

/// The agent in use, and one that has keys in advance. The control changes a timer of the agent.
// Weakness: S38
// Refuses: licence-domain
#[test]
fn an_agent_whose_proof_counts_no_more_has_no_key_of_what_is_sealed_later() {
    for (agent, is_trusted) in [(0, false), (1, false), (0, true), (1, true)] {
        let policies = Policies::by_domain(Handover::Pkd, 4);
        let mut world = World::at(policies.clone(), 0);
        world.run_for(10 * SECOND);
        let held = world.nodes[AGENT + agent].held_grants();
        let kept: Vec<_> = held
            .iter()
            .flat_map(|held| [held.from_gateway, held.to_gateway])
            .collect();
        assert!(!kept.is_empty(), "agent {agent} has keys");
        let mut told = config(HOME, &policies);
        let node = &mut told.peers[1 + agent].ike;
        match is_trusted {
            true => node.liveness *= 2,
            false => node.psk = Some(Secret::new(b"another key of this length".to_vec())),
        }
        world.command(HOME, |node, now| node.reconfigure(told, now));
        world.run_for(5 * SECOND);
        world.move_to(agent);
        let sealed = |world: &World| [MOBILE, HOME].map(|who| world.slot(who));
        let is_open = |spi: Option<Spi>| spi.is_some_and(|spi| kept.contains(&spi));
        let settled = world.run_until(20 * SECOND, |world| {
            sealed(world).map(is_open) == [is_trusted; 2]
        });
        assert!(settled, "agent {agent}, {is_trusted}: {:?}", sealed(&world));
        world.run_for(30 * SECOND);
        assert!(world.traffic_flows());
        assert_eq!(sealed(&world).map(is_open), [is_trusted; 2]);
    }
}

/// A licence by name has the place that the mobile node writes, not the one that home stated while
/// the domain licensed the agent.
// Refuses: licence-domain
#[test]
fn an_agent_that_the_mobile_node_names_by_now_reads_only_where_it_says() {
    let mut policies = Policies::by_domain(Handover::Push, 4);
    let mut world = World::at(policies.clone(), 0);
    policies.named = Some([0, 2]);
    let named = config(MOBILE, &policies);
    world.command(MOBILE, |node, now| node.reconfigure(named, now));
    world.run_for(20 * SECOND);
    assert_eq!(world.slot(MOBILE), None);
    let before = world.read(0);
    let segment = world.segment(MOBILE, 1);
    world.run_for(SECOND);
    assert!(world.delivered[HOME].contains(&segment));
    assert_eq!(world.read(0), before);
    // Control: one that the domain still licenses.
    world.move_to(1);
    assert!(read_at(&mut world, 1));
}

/// The next neighbour gets its keys when those of the agent that was left are gone.
#[test]
fn a_packet_under_way_when_the_mobile_node_moves_arrives_although_a_neighbour_waits() {
    let mut policies = Policies::by_domain(Handover::Pkd, 2);
    policies.neighbours = [vec![1], vec![2], vec![0]];
    let mut world = World::at(policies, 0);
    world.run_for(10 * SECOND);
    let segment = world.segment(MOBILE, 1);
    let late = world.network.intercept();
    world.move_to(1);
    assert!(read_at(&mut world, 1));
    world.run_for(SECOND);
    for flight in late {
        if let Flight::Up(_, packet) = flight {
            world.hand_over(HOME, &packet);
        }
    }
    assert!(
        world.delivered[HOME].contains(&segment),
        "{:?}",
        world.dropped
    );
    assert!(world.run_until(10 * SECOND, |world| {
        !world.nodes[AGENT + 2].held_grants().is_empty() && holders(world) == 2
    }));
    assert!(!refused_one_more(&world));
}

/// Both ends change the rights of the domain, one after the other: the agent that is there has them
/// without a move.
#[test]
fn other_rights_of_a_domain_reach_the_agent_that_is_there() {
    for first in [MOBILE, HOME] {
        let policies = Policies::by_domain(Handover::Push, 4);
        let mut world = World::at(policies, 0);
        let writes = Policies {
            writes: true,
            ..Policies::by_domain(Handover::Push, 4)
        };
        for end in [first, 1 - first] {
            let other = config(end, &writes);
            world.command(end, |node, now| node.reconfigure(other, now));
            world.run_for(10 * SECOND);
        }
        assert!(read_at(&mut world, 0), "{first} is first");
        let csas = world.nodes[MOBILE].composite_sas();
        let mut licences = csas.iter().flat_map(|csa| &csa.agreement.licences);
        assert!(licences.any(|licence| licence.right == model::Right::Write));
    }
}
