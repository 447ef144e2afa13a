//! Agents that share keys (shared PKD): messages of a move among them, rekeys, and holders of the
//! keys.

use super::hosts::{AGENT, AGENTS, HOME, MOBILE, Policies, config};
use super::world::{Hosts, World};
use node::{Event, Rekey};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Exchange numbers.
const CREATE_CHILD_SA: u8 = 36;
const KEY_DISTRIBUTE: u8 = 240;

/// Agents A and B, each of which is the other's neighbour.
fn pair() -> Policies {
    let mut policies = Policies::shared(2);
    policies.neighbours = [vec![1], vec![0], vec![]];
    policies
}

fn slots(world: &World) -> [Option<model::Spi>; 2] {
    [MOBILE, HOME].map(|who| world.slot(who))
}

/// Returns the agents that hold the current keys.
fn readers(world: &World) -> Vec<usize> {
    (0..AGENTS).filter(|agent| world.reads(*agent)).collect()
}

#[test]
fn a_move_among_agents_that_share_keys_is_no_other_spi_and_needs_no_new_key() {
    let mut world = World::at(pair(), 0);
    world.run_for(10 * SECOND);
    let spis = slots(&world);
    assert_eq!(readers(&world), [0, 1]);
    for exchange in [CREATE_CHILD_SA, KEY_DISTRIBUTE] {
        world.silent_in = Some((HOME, exchange));
        for agent in [1, 0] {
            world.move_to(agent);
            assert!(world.run_until(20 * SECOND, |world| world.is_at(agent)));
            let before = world.read(agent);
            assert!(world.traffic_flows());
            assert_eq!(world.read(agent), before + 2, "it reads at once");
            assert_eq!(slots(&world), spis);
        }
    }
    assert_eq!(world.rekeyed(HOME), 0);
    world.holders.assert_few(2);
}

/// Figure 9 of the paper: home rekeys with the mobile node, distributes the keys to its current
/// agent and the agent's neighbours, and revokes the old ones.
#[test]
fn keys_are_made_anew_before_more_agents_hold_them_than_may() {
    let mut world = World::at(Policies::shared(2), 0);
    world.run_for(10 * SECOND);
    assert_eq!(readers(&world), [0, 1], "A, and B that it names");
    for (agent, near) in [(1, [1, 2]), (2, [0, 2]), (0, [0, 1])] {
        let before = slots(&world);
        world.move_to(agent);
        assert!(world.run_until(20 * SECOND, |world| readers(world) == near));
        let after = slots(&world);
        assert!(before[0] != after[0] && before[1] != after[1]);
        let left = (0..AGENTS).find(|agent| !near.contains(agent)).unwrap();
        let read = world.read(left);
        assert!(world.traffic_flows());
        assert_eq!(world.read(left), read);
        // The old keys of the agent that was left are revoked when no packet sealed with them is in
        // flight any more.
        let forgotten = |world: &World| world.nodes[AGENT + left].held_grants().is_empty();
        assert!(world.run_until(60 * SECOND, forgotten));
    }
    world.holders.assert_few(2);
}

/// The price of sharing: the agent that was left can read until the rekey, and no other agent can.
// Weakness: S31
// Answers: end-holders
#[test]
fn who_was_left_holds_the_keys_until_there_are_new_ones_and_who_never_had_them_does_not() {
    let mut world = World::at(Policies::shared(2), 0);
    world.run_for(10 * SECOND);
    world.silent_in = Some((HOME, CREATE_CHILD_SA));
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(1)));
    assert!(world.traffic_flows());
    assert_eq!(readers(&world), [0, 1]);
    assert!(world.nodes[AGENT + 2].held_grants().is_empty());
    world.silent_in = None;
    assert!(world.run_until(30 * SECOND, |world| readers(world) == [1, 2]));
    world.holders.assert_few(2);
}

/// The mobile node moves to an agent that is not a neighbour. Home does not use the slot until the
/// agent there has keys, because the current holders were left.
// Refuses: handover-shared
#[test]
fn for_an_agent_that_may_not_have_the_keys_home_seals_nothing_in_them() {
    let mut world = World::at(Policies::shared(2), 0);
    world.run_for(10 * SECOND);
    world.silent_in = Some((HOME, CREATE_CHILD_SA));
    world.move_to(2);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(2)));
    world.run_for(SECOND);
    assert_eq!(world.slot(HOME), None);
    assert!(world.traffic_flows(), "on the first child");
    assert!(world.nodes[AGENT + 2].held_grants().is_empty());
    world.silent_in = None;
    assert!(world.run_until(30 * SECOND, |world| readers(world) == [0, 2]));
    world.holders.assert_few(2);
}

/// Each agent is a neighbour of all others. The first neighbour gets keys and the other one does
/// not, which is reported once and causes no rekey.
// Weakness: S32
#[test]
fn more_neighbours_than_may_hold_keys_get_none_and_that_is_told() {
    let mut policies = Policies::shared(2);
    policies.neighbours = [vec![1, 2], vec![0, 2], vec![0, 1]];
    let mut world = World::at(policies, 0);
    world.run_for(120 * SECOND);
    assert_eq!(readers(&world), [0, 1]);
    assert_eq!(world.rekeyed(HOME), 0);
    let told = |world: &World| {
        let events = world.events[HOME].iter();
        let told = events.filter(|event| {
            matches!(event, Event::Refused { why, .. } if why.to_string().contains("fc.example.net is near"))
        });
        told.count()
    };
    assert_eq!(told(&world), 1);
    // The mobile node moves there all the same: the new keys go to this agent and its first
    // neighbour.
    world.move_to(2);
    assert!(world.run_until(20 * SECOND, |world| readers(world) == [0, 2]));
    assert!(world.traffic_flows());
    world.run_for(120 * SECOND);
    assert_eq!(world.rekeyed(HOME), 1);
    world.holders.assert_few(2);
}

/// One end has a slot for each agent, or another group of agents: neither end accepts the other's
/// offer.
#[test]
fn ends_that_do_not_agree_on_who_shares_keys_give_none() {
    let mut alone = Policies::shared(2);
    alone.holders[MOBILE] = None;
    let mut other = Policies::shared(2);
    other.licensed[MOBILE] = vec![0, 1];
    for policies in [alone, other] {
        let mut world = World::new(policies, 7);
        world.set_link(0, true);
        world.run_for(20 * SECOND);
        assert!(world.traffic_flows());
        assert_eq!(slots(&world), [None, None]);
        for agent in 0..AGENTS {
            assert!(world.nodes[AGENT + agent].held_grants().is_empty());
            assert_eq!(world.read(agent), 0);
        }
        let told = |event: &Event| matches!(event, Event::Refused { why, .. } if why.to_string().contains("read with shared keys"));
        assert!(world.events[MOBILE].iter().any(told));
    }
}

/// Sending does not wait for lost keys, and the agent that was left gets none of the new ones.
// Recovers: handover-shared
#[test]
fn keys_that_are_lost_on_the_way_come_later_and_delay_nothing() {
    let mut world = World::at(Policies::shared(2), 0);
    world.run_for(10 * SECOND);
    world.silent_in = Some((HOME, KEY_DISTRIBUTE));
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(1)));
    for _ in 0..5 {
        assert!(world.traffic_flows());
    }
    assert_eq!(world.rekeyed(HOME), 1);
    assert!(readers(&world).is_empty(), "what is new nobody reads");
    world.silent_in = None;
    assert!(world.run_until(60 * SECOND, |world| readers(world) == [1, 2]));
    world.holders.assert_few(2);
}

/// A node that the mobile node is not at may respond late.
#[test]
fn a_neighbour_that_is_silent_delays_no_new_keys() {
    let mut world = World::at(Policies::shared(2), 0);
    world.run_for(10 * SECOND);
    world.off[AGENT + 2] = true;
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(1)));
    world.run_for(Duration::from_millis(500));
    assert_eq!(readers(&world), [1]);
    world.off[AGENT + 2] = false;
    assert!(world.run_until(60 * SECOND, |world| readers(world) == [1, 2]));
    world.holders.assert_few(2);
}

// Recovers: handover-shared
#[test]
fn new_keys_that_cross_a_move_are_for_where_the_mobile_node_is() {
    for who in [MOBILE, HOME] {
        for late in [0, 5, 10, 20, 40, 80] {
            let mut world = World::at(Policies::shared(2), 0);
            world.run_for(10 * SECOND);
            world.move_to(1);
            world.run_for(Duration::from_millis(late));
            let name = ["office", "alice"][who];
            let rekey = world.command(who, |node, now| node.rekey(name, Rekey::Children, now));
            assert!(rekey.is_ok());
            let reads = world.run_until(30 * SECOND, |world| readers(world) == [1, 2]);
            assert!(reads, "{who} {late}: {:?}", readers(&world));
            assert!(world.traffic_flows());
            world.holders.assert_few(2);
        }
    }
}

#[test]
fn a_restart_of_any_host_ends_with_keys_where_the_mobile_node_is() {
    for who in [MOBILE, HOME, AGENT + 1, AGENT + 2] {
        let mut world = World::at(Policies::shared(2), 0);
        world.move_to(1);
        assert!(world.run_until(20 * SECOND, |world| readers(world) == [1, 2]));
        world.restart(who);
        let reads = world.run_until(120 * SECOND, |world| readers(world) == [1, 2]);
        assert!(reads, "after a restart of {who}");
        assert!(world.traffic_flows());
        world.holders.assert_few(2);
    }
}

/// A restarted agent may still have its keys, so it counts as a holder.
// Weakness: S31
#[test]
fn an_agent_that_was_left_and_started_anew_is_given_nothing_and_counts() {
    let mut world = World::at(pair(), 0);
    world.run_for(10 * SECOND);
    world.policies.neighbours[1] = vec![2];
    let told = config(AGENT + 1, &world.policies);
    world.command(AGENT + 1, |node, now| node.reconfigure(told, now));
    let before = slots(&world);
    world.restart(AGENT);
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| readers(world) == [1, 2]));
    assert_ne!(slots(&world), before, "C would have been the third");
    world.run_for(30 * SECOND);
    assert!(world.nodes[AGENT].held_grants().is_empty());
    world.holders.assert_few(2);
}

/// An agent that is removed from one end's configuration cannot read what this end seals from then
/// on, nor what the other end seals after it was notified. The others read as soon as both
/// configurations agree again.
#[test]
fn an_agent_that_has_no_licence_any_more_reads_nothing() {
    let mut world = World::at(Policies::shared(3), 0);
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.reads(1) && world.reads(2)));
    let reconfigure = |world: &mut World, who: usize| {
        world.policies.licensed[who] = vec![0, 1];
        let told = config(who, &world.policies);
        world.command(who, |node, now| node.reconfigure(told, now));
    };
    let kept = world.nodes[AGENT + 2].held_grants();
    let kept: Vec<_> = kept
        .iter()
        .flat_map(|held| [held.from_gateway, held.to_gateway])
        .collect();
    reconfigure(&mut world, HOME);
    assert_eq!(world.slot(HOME).filter(|spi| kept.contains(spi)), None);
    world.run_for(SECOND);
    assert!(
        slots(&world)
            .iter()
            .flatten()
            .all(|spi| !kept.contains(spi))
    );
    assert!(world.traffic_flows());
    reconfigure(&mut world, MOBILE);
    assert!(
        world.run_until(120 * SECOND, |world| readers(world) == [0, 1]
            || readers(world) == [1])
    );
    assert!(world.traffic_flows());
    assert!(world.nodes[AGENT + 2].held_grants().is_empty());
}

/// A compromised agent keeps changing its neighbours, so that rekeys never end.
// Refuses: handover-shared
// Weakness: S32
#[test]
fn an_agent_that_names_ever_other_neighbours_has_keys_made_anew_every_two_seconds_at_most() {
    let mut world = World::at(pair(), 0);
    world.run_for(10 * SECOND);
    for number in 0..200 {
        world.policies.neighbours[0] = vec![1 + number % 2];
        let told = config(AGENT, &world.policies);
        world.command(AGENT, |node, now| node.reconfigure(told, now));
        world.run_for(Duration::from_millis(100));
    }
    let rekeyed = world.rekeyed(HOME);
    assert!((1..=11).contains(&rekeyed), "{rekeyed} times in 20 s");
    assert!(world.traffic_flows());
    assert!(world.reads(0));
    world.holders.assert_few(2);
}
