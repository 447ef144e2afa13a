//! Reports of which nodes can read which SAs. No key leaves before its grant is recorded.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, identity, license};
use crate::{Composite, Dropped, Ending, Event, GrantState, Rekey};
use model::{CsaId, ZoneId};
use std::time::Duration;

/// Returns a new world whose gateway asks for a record before keys leave.
pub fn recording() -> World {
    let mut world = World::new(Policies::default());
    world.command(GATEWAY, |node, now| node.set_recording(true, now));
    world
}

/// Returns the grants that the gateway asked to record, the oldest first.
pub fn asked(world: &World) -> Vec<(CsaId, u16)> {
    let events = world.events[GATEWAY].iter();
    let asked = events.filter_map(|event| match event {
        Event::Giving { sa, grant, .. } => Some((sa.csa, *grant)),
        _ => None,
    });
    asked.collect()
}

pub fn answer(world: &mut World, (csa, grant): (CsaId, u16), recorded: Result<(), String>) {
    world.command(GATEWAY, |node, now| node.give(csa, grant, recorded, now));
    world.run_for(Duration::from_secs(5));
}

fn held(world: &World) -> usize {
    world.nodes[LICENSED].held_grants().len()
}

fn state(world: &World) -> GrantState {
    world.nodes[GATEWAY].composite_sas()[0].grants[0].state
}

/// Returns the reasons for ended licences reported by a host, and whether keys had been sent.
fn ended(world: &World, who: usize) -> Vec<(bool, &Ending)> {
    let events = world.events[who].iter();
    let ended = events.filter_map(|event| match event {
        Event::GrantEnded { given, why, .. } => Some((*given, why)),
        _ => None,
    });
    ended.collect()
}

fn dropped(world: &World) -> Vec<Dropped> {
    let events = world.events[LICENSED].iter();
    let dropped = events.filter_map(|event| match event {
        Event::GrantDropped { why, .. } => Some(*why),
        _ => None,
    });
    dropped.collect()
}

#[test]
fn no_key_leaves_before_it_is_recorded() {
    let mut world = recording();
    world.run_for(Duration::from_secs(60));
    let [due] = asked(&world)[..] else {
        panic!("{:?}", world.events[GATEWAY]);
    };
    assert_eq!(held(&world), 0);
    answer(&mut world, due, Ok(()));
    assert_eq!((held(&world), state(&world)), (1, GrantState::Held));
}

#[test]
fn a_key_that_cannot_be_recorded_does_not_leave_until_it_can() {
    let mut world = recording();
    world.run_for(Duration::from_secs(10));
    let due = asked(&world)[0];
    answer(&mut world, due, Err("the disk is full".to_owned()));
    world.run_for(Duration::from_secs(600));
    assert_eq!((held(&world), state(&world)), (0, GrantState::Refused));
    let grant = world.nodes[GATEWAY].composite_sas()[0].grants[0].clone();
    let why = grant.refusal.as_ref().map(ToString::to_string);
    assert_eq!(why.as_deref(), Some("the disk is full"));
    // A repeated or unsolicited answer releases nothing.
    answer(&mut world, due, Ok(()));
    answer(&mut world, (CsaId(1), 1), Ok(()));
    assert_eq!(held(&world), 0);
    world.command(GATEWAY, |node, now| node.set_recording(true, now));
    let again = *asked(&world).last().unwrap();
    assert_ne!(again, due, "a number of a grant is never used again");
    answer(&mut world, again, Ok(()));
    assert_eq!((held(&world), state(&world)), (1, GrantState::Held));
}

#[test]
fn a_node_that_comes_back_is_offered_what_was_withheld() {
    let mut world = recording();
    world.run_for(Duration::from_secs(10));
    let due = asked(&world)[0];
    answer(&mut world, due, Err("the disk is full".to_owned()));
    world
        .command(GATEWAY, |node, now| node.down("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    world
        .command(GATEWAY, |node, now| node.up("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    assert_eq!(asked(&world).len(), 2);
    assert_eq!(ended(&world, GATEWAY), [], "nothing was given");
}

// Refuses: audit
#[test]
fn a_key_of_a_tunnel_that_has_ended_does_not_leave_any_more() {
    let mut world = recording();
    world.run_for(Duration::from_secs(10));
    let due = asked(&world)[0];
    world
        .command(GATEWAY, |node, now| node.down("alice", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    answer(&mut world, due, Ok(()));
    assert_eq!(held(&world), 0);
}

#[test]
fn a_key_for_an_ike_sa_that_is_gone_does_not_leave_on_another() {
    let mut world = recording();
    world.run_for(Duration::from_secs(10));
    let due = asked(&world)[0];
    world
        .command(GATEWAY, |node, now| node.down("fa", now))
        .unwrap();
    world
        .command(GATEWAY, |node, now| node.up("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    answer(&mut world, due, Ok(()));
    assert_eq!(held(&world), 0);
    let again = asked(&world)[1];
    answer(&mut world, again, Ok(()));
    assert_eq!(held(&world), 1);
}

/// Without recording no grant waits for an answer.
#[test]
fn without_recording_keys_leave_at_once_and_nobody_is_asked() {
    let world = World::connected(Policies::default());
    assert_eq!((held(&world), asked(&world).len()), (1, 0));
}

#[test]
fn both_ends_tell_what_they_agreed_on_under_the_same_spis() {
    let world = World::connected(Policies::default());
    let agreed = [MOBILE, GATEWAY].map(|who| {
        let mut events = world.events[who].iter();
        let agreed = events.find_map(|event| match event {
            Event::Licensed { sa, agreement, .. } => Some((sa.clone(), agreement.clone())),
            _ => None,
        });
        agreed.unwrap()
    });
    let [(mobile, ours), (gateway, theirs)] = agreed;
    assert_eq!(ours, theirs);
    assert_eq!(ours.licences[0].node, identity(LICENSED));
    assert_eq!(
        (mobile.inbound, mobile.outbound),
        (gateway.outbound, gateway.inbound)
    );
    assert_eq!(
        [
            world.nodes[MOBILE].name(mobile.peer),
            world.nodes[GATEWAY].name(gateway.peer)
        ],
        ["gw", "alice"]
    );
}

#[test]
fn a_licence_that_one_end_alone_wants_is_told_there_and_is_not_agreed() {
    for (wants, other) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        let mut policies = Policies::default();
        match other {
            MOBILE => policies.mobile.clear(),
            _ => policies.gateway.clear(),
        }
        let world = World::connected(policies);
        let refused = |who: usize| {
            let events = world.events[who].iter();
            let refused = events.filter_map(|event| match event {
                Event::NotLicensed { licence, .. } => Some((licence.node.clone(), licence.zone)),
                _ => None,
            });
            refused.collect::<Vec<_>>()
        };
        assert_eq!(refused(wants), [(identity(LICENSED), ZoneId(1))]);
        assert_eq!(refused(other), []);
        let agreed = |event: &Event| matches!(event, Event::Licensed { .. });
        assert!(!world.events.iter().flatten().any(agreed));
    }
}

#[test]
fn a_rekey_ends_the_old_licence_at_both_ends_and_takes_the_keys_back() {
    let mut world = World::connected(Policies::default());
    world
        .command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now))
        .unwrap();
    // The old keys stay valid for packets cached in transit.
    world.run_for(Duration::from_secs(60));
    assert_eq!(ended(&world, GATEWAY), [(true, &Ending::Rekeyed)]);
    assert_eq!(ended(&world, MOBILE), [(false, &Ending::Rekeyed)]);
    assert_eq!(dropped(&world), [Dropped::Revoked]);
    let taken = |event: &&Event| matches!(event, Event::GrantHeld(_));
    assert_eq!(world.events[LICENSED].iter().filter(taken).count(), 2);
}

#[test]
fn a_licence_that_is_taken_out_ends_because_of_the_configuration() {
    let mut world = World::connected(Policies::default());
    license(&mut world, GATEWAY, false);
    world.run_for(Duration::from_secs(10));
    assert_eq!(ended(&world, GATEWAY), [(true, &Ending::Reconfigured)]);
    assert_eq!(dropped(&world), [Dropped::Revoked]);
}

#[test]
fn an_end_of_the_tunnel_is_told_with_its_reason() {
    let mut world = World::connected(Policies::default());
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    let [(true, Ending::Down(why))] = ended(&world, GATEWAY)[..] else {
        panic!("{:?}", ended(&world, GATEWAY));
    };
    let why = why.to_string();
    assert!(why.contains("the peer closed the IKE SA"), "{why}");
}

// Recovers: audit
#[test]
fn a_node_that_goes_is_told_and_given_keys_when_it_comes_back() {
    let mut world = World::connected(Policies::default());
    let sa = |event: &Event| match event {
        Event::Granted { sa, .. } => Some(sa.clone()),
        _ => None,
    };
    let given =
        |world: &World| -> Vec<Composite> { world.events[GATEWAY].iter().filter_map(sa).collect() };
    world
        .command(GATEWAY, |node, now| node.down("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    assert!(matches!(
        ended(&world, GATEWAY)[..],
        [(true, Ending::NodeGone(_))]
    ));
    assert_eq!(dropped(&world), [Dropped::GatewayGone]);
    world
        .command(GATEWAY, |node, now| node.up("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    let [before, after] = &given(&world)[..] else {
        panic!("{:?}", given(&world));
    };
    assert_eq!(before, after);
}

#[test]
fn a_node_that_hears_nothing_more_tells_that_its_time_is_over() {
    let mut world = World::connected(Policies::default());
    world.off = [true, true, false];
    world.run_for(Duration::from_secs(2 * 3600));
    let why = dropped(&world);
    let over = [Dropped::Expired, Dropped::GatewayGone];
    assert!(why.len() == 1 && over.contains(&why[0]), "{why:?}");
}

#[test]
fn keys_that_are_of_no_use_are_told_at_both_ends() {
    let world = super::grants::crowded();
    let unusable = |event: &Event| matches!(event, Event::GrantUnusable { .. });
    assert!(world.events[LICENSED].iter().any(unusable));
    let refused = |event: &Event| {
        matches!(event, Event::GrantRefused { why, node, .. }
            if why.to_string().contains("TOO_MANY_GRANTS") && *node == identity(LICENSED))
    };
    assert!(world.events[GATEWAY].iter().any(refused));
}
