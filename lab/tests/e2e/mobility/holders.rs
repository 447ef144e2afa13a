//! Shared PKD (DESIGN section 5): a few licensed nodes at a time share the header keys.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, Terms};
use lab::process::{DEADLINE, until};
use lab::spis::{held, holds, passed, sent_on};
use lab::testbed::Testbed;
use lab::walk::tables::neighbours;
use lab::walk::{AGENTS, Ends, MOST_AGENTS, OFTEN, Walk, both_ways, tables};
use lab::wiretap::Wiretap;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;

/// A mobile node's endpoints, and the chain of agents that it moves along.
struct Route {
    ends: Ends,
    agents: Vec<Daemon>,
}

/// Returns the licences of both ends: each agent has one for its own network, and at most two share
/// keys.
fn licences(agents: &[usize], holders: &str) -> String {
    tables::licences(agents, &format!("handover = \"pkd\"\n{holders}"))
}

const TWO: &str = "holders = 2";
const ALL: [usize; MOST_AGENTS] = [0, 1, 2, 3];

/// Returns the name of the slot that these agents share.
fn slot(agents: &[usize]) -> String {
    let names: Vec<_> = agents.iter().map(|agent| AGENTS[*agent]).collect();
    format!("@{}", names.join("+"))
}

/// Returns an agent's table that names only the next agent of the chain as a neighbour.
fn onward(number: usize) -> String {
    match number + 1 {
        MOST_AGENTS => String::new(),
        next => neighbours(&[next]),
    }
}

fn chain() -> Result<Walk> {
    Walk::in_bed(Testbed::new("holders")?, &[None; MOST_AGENTS])
}

impl Route {
    /// Starts both ends with the licences of all agents; the mobile node is at the first one.
    fn start(walk: &Walk, neighbours: impl Fn(usize) -> String) -> Result<Self> {
        let all = licences(&ALL[..walk.agents.len()], TWO);
        Self::start_with(walk, [&all, &all], neighbours)
    }

    fn start_with(
        walk: &Walk,
        [mobile, home]: [&str; 2],
        neighbours: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let home = walk.home_config(Terms::requiring(home));
        let terms = Terms::requiring(mobile);
        let (ends, agents) = Ends::start_among(walk, &home, (OFTEN, terms), neighbours)?;
        Ok(Self { ends, agents })
    }

    fn slot(&self) -> String {
        slot(&ALL[..self.agents.len()])
    }

    /// Waits until both ends seal in the shared slot and exactly these agents hold its keys;
    /// returns the SPIs.
    fn is_read_by(&self, readers: &[usize]) -> Result<[String; 2]> {
        self.is_read_in(&self.slot(), readers)
    }

    fn is_read_in(&self, slot: &str, readers: &[usize]) -> Result<[String; 2]> {
        until(&format!("{readers:?} to read"), DEADLINE, || {
            let Some(spis) = self.ends.sealed_in(slot)? else {
                return Ok(None);
            };
            let mut holders = Vec::new();
            for (number, agent) in self.agents.iter().enumerate() {
                if holds(agent, &spis)? {
                    holders.push(number);
                }
            }
            Ok((holders == readers).then_some(spis))
        })
    }
}

fn segments(agents: &[Daemon]) -> Result<Vec<u64>> {
    agents.iter().map(pair::segments).collect()
}

/// Two agents name each other: both hold the keys of one slot, and the mobile node moves back and
/// forth within it.
// Works: handover-shared
// Answers: end-holders
#[lab::test]
fn a_move_among_nodes_that_share_keys_is_no_other_spi_and_loses_nothing() -> Result<()> {
    let walk = Walk::new("holders")?;
    let route = Route::start(&walk, |number| neighbours(&[1 - number]))?;
    let spis = route.is_read_by(&[0, 1])?;
    for number in [1, 0, 1] {
        route.ends.move_to(&walk, number)?;
        let before = pair::segments(&route.agents[number])?;
        both_ways(&walk)?;
        let read = pair::segments(&route.agents[number])? - before;
        ensure!(read > 100, "{} has read {read} segments", AGENTS[number]);
        let now = route.is_read_by(&[0, 1])?;
        ensure!(now == spis, "{now:?} are not {spis:?}");
    }
    Ok(())
}

/// Along the chain, the neighbour of each agent would be the third holder of the keys.
// Works: handover-shared
// Weakness: S31
// Answers: end-holders
#[lab::test]
fn keys_are_made_anew_before_a_third_node_has_them_and_who_was_left_opens_nothing() -> Result<()> {
    let walk = chain()?;
    let route = Route::start(&walk, onward)?;
    let mut spis = route.is_read_by(&[0, 1])?;
    both_ways(&walk)?;
    let mut kept = held(&route.agents[0])?;
    for number in [1, 2] {
        kept.extend(held(&route.agents[number - 1])?);
        route.ends.move_to(&walk, number)?;
        let now = route.is_read_by(&[number, number + 1])?;
        ensure!(
            now.iter().all(|spi| !spis.contains(spi)),
            "{now:?} are those of before"
        );
        spis = now;
        // Packets in flight have arrived.
        both_ways(&walk)?;
        let before = segments(&route.agents)?;
        let tap = Wiretap::open(&walk.mobile)?;
        both_ways(&walk)?;
        let after = segments(&route.agents)?;
        let read = after[number] - before[number];
        ensure!(read > 100, "{} has read {read} segments", AGENTS[number]);
        for left in 0..number {
            let opened = after[left] - before[left];
            ensure!(opened == 0, "{} has read {opened} segments", AGENTS[left]);
        }
        let passed = passed(&tap)?;
        ensure!(
            spis.iter().all(|spi| passed.contains(spi)),
            "{passed:?} lacks {spis:?}"
        );
        let opened = passed.intersection(&kept).count();
        ensure!(opened == 0, "who was left has keys of {opened} SPIs");
    }
    // The last agent names no neighbour and already has the keys.
    route.ends.move_to(&walk, 3)?;
    let now = route.is_read_by(&[2, 3])?;
    ensure!(now == spis, "{now:?} are not {spis:?}");
    Ok(())
}

/// If only one end wants shared keys, no node gets any.
// Refuses: handover-shared
#[lab::test]
fn ends_that_do_not_agree_on_holders_give_no_key() -> Result<()> {
    let walk = Walk::new("holders")?;
    let (alone, shared) = (licences(&[0, 1], ""), licences(&[0, 1], TWO));
    let route = Route::start_with(&walk, [&alone, &shared], |number| neighbours(&[1 - number]))?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        why.contains("read with shared keys") && why.contains("`holders`")
    };
    route.ends.mobile.wait_until("status", DEADLINE, told)?;
    both_ways(&walk)?;
    for agent in &route.agents {
        ensure!(held(agent)?.is_empty(), "it holds keys");
        let read = pair::segments(agent)?;
        ensure!(read == 0, "it has read {read} segments");
    }
    // With the same setting at both ends they agree.
    let terms = Terms::requiring(&shared);
    route
        .ends
        .mobile
        .change(&walk.mobile_config(OFTEN, terms))?;
    route.is_read_by(&[0, 1]).map(drop)
}

// Refuses: handover-shared
#[lab::test]
fn what_holders_cannot_mean_is_told_with_the_fix() -> Result<()> {
    let walk = Walk::new("holders")?;
    let pushed = licences(&[0, 1], TWO).replace("pkd", "push");
    for (licences, told) in [
        (pushed.as_str(), "write `handover = \"pkd\"`"),
        (&licences(&[0, 1], "holders = 1"), "2"),
        (&licences(&[0], TWO), "no two nodes have the same"),
    ] {
        let refused = walk.start_home(Terms::requiring(licences)).err();
        let refused = refused.context("it starts all the same")?;
        let refused = format!("{refused:#}");
        ensure!(refused.contains(told), "{refused}");
    }
    Ok(())
}

// Refuses: handover-shared
#[lab::test]
fn more_neighbours_than_may_hold_keys_are_told() -> Result<()> {
    let walk = chain()?;
    let route = Route::start(&walk, |number| {
        let others: Vec<_> = ALL.into_iter().filter(|other| *other != number).collect();
        neighbours(&others)
    })?;
    let spis = route.is_read_by(&[0, 1])?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        why.contains("is near the tunnel too") && why.contains("`holders`")
    };
    route.ends.home.wait_until("status", DEADLINE, told)?;
    // A move to an agent without keys: a rekey gives keys to it and to the first neighbour that it
    // names.
    route.ends.move_to(&walk, 3)?;
    let now = route.is_read_by(&[0, 3])?;
    ensure!(
        now.iter().all(|spi| !spis.contains(spi)),
        "{now:?} are those of before"
    );
    both_ways(&walk)?;
    ensure!(
        route.is_read_by(&[0, 3])? == now,
        "they are made anew again"
    );
    Ok(())
}

/// The neighbour receives no KEY_DISTRIBUTE, in spite of all retransmissions.
// Recovers: handover-shared
#[lab::test]
fn a_neighbour_that_does_not_answer_delays_no_keys_and_gets_them_later() -> Result<()> {
    let walk = chain()?;
    let mut route = Route::start(&walk, onward)?;
    route.is_read_by(&[0, 1])?;
    let before = held(&route.agents[0])?;
    route.agents[2].process().signal(Signal::SIGSTOP)?;
    let moved = route.ends.move_to(&walk, 1).and_then(|()| {
        until("the second to read by new keys", DEADLINE, || {
            let sealed = sent_on(&route.ends.home.strata("status")?, &route.slot());
            let held = held(&route.agents[1])?;
            let new = |spi: &String| held.contains(spi) && !before.contains(spi);
            Ok(sealed.filter(|spis| spis.iter().all(new)))
        })?;
        both_ways(&walk)
    });
    route.agents[2].process().signal(Signal::SIGCONT)?;
    moved?;
    let read = pair::segments(&route.agents[1])?;
    ensure!(read > 100, "the second has read {read} segments");
    route.is_read_by(&[1, 2]).map(drop)
}

// Recovers: handover-shared
#[lab::test]
fn shared_keys_come_over_a_way_that_loses_much() -> Result<()> {
    let hop = Some(pair::hop(2e-5));
    let walk = Walk::in_bed(Testbed::new("holders")?, &[hop; 3])?;
    let ring = |number: usize| neighbours(&[(number + 1) % 3]);
    let route = Route::start(&walk, ring)?;
    route.is_read_by(&[0, 1])?;
    for (number, readers) in [(1, [1, 2]), (2, [0, 2]), (0, [0, 1])] {
        route.ends.move_to(&walk, number)?;
        route.is_read_by(&readers)?;
        both_ways(&walk)?;
    }
    ensure!(walk.lost() > 0, "nothing was lost");
    Ok(())
}

/// The gateway has forgotten the former holders, so it replaces their keys.
// Recovers: handover-shared
#[lab::test]
fn a_gateway_that_was_killed_gives_few_nodes_other_keys() -> Result<()> {
    let walk = chain()?;
    let mut route = Route::start(&walk, onward)?;
    route.is_read_by(&[0, 1])?;
    route.ends.move_to(&walk, 1)?;
    let before = route.is_read_by(&[1, 2])?;
    route.ends.home.process().crash()?;
    route.ends.home.start_again()?;
    let after = route.is_read_by(&[1, 2])?;
    let all: BTreeSet<_> = before.into_iter().chain(after).collect();
    ensure!(all.len() == 4, "{all:?}");
    both_ways(&walk)
}

/// The third node holds keys in advance. Once the gateway has no licence for it, nothing is sealed
/// with these keys. The others share another slot as soon as both ends agree.
// Refuses: handover-shared
#[lab::test]
fn a_node_that_is_taken_out_of_the_file_reads_nothing_more() -> Result<()> {
    let walk = Walk::in_bed(Testbed::new("holders")?, &[None; 3])?;
    let ring = |number: usize| neighbours(&[(number + 1) % 3]);
    let route = Route::start(&walk, ring)?;
    route.ends.move_to(&walk, 1)?;
    route.is_read_by(&[1, 2])?;
    let kept = held(&route.agents[2])?;
    let others = licences(&[0, 1], TWO);
    route
        .ends
        .home
        .change(&walk.home_config(Terms::requiring(&others)))?;
    let gone = |status: &Value| sent_on(status, &slot(&[0, 1, 2])).is_none();
    for end in [&route.ends.home, &route.ends.mobile] {
        end.wait_until("status", DEADLINE, gone)?;
    }
    let tap = Wiretap::open(&walk.mobile)?;
    both_ways(&walk)?;
    let passed = passed(&tap)?;
    ensure!(
        !passed.is_empty() && passed.is_disjoint(&kept),
        "{passed:?} and {kept:?}"
    );
    let terms = Terms::requiring(&others);
    route
        .ends
        .mobile
        .change(&walk.mobile_config(OFTEN, terms))?;
    route.is_read_in(&slot(&[0, 1]), &[1])?;
    Ok(())
}
