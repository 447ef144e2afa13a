//! Table 2 of "Mobile multi-layered IPsec": the time that each end works on a message of key
//! management.

use super::handover::parties::{ALICE, FAR, GATEWAY, HOME, MOBILE, NEAR, Tunnel};
use super::handover::stage::{Stage, Timed, Work};
use super::handover::{Move, hand_over, messages};
use crate::experiment::{
    Basis, Column, Filled, Finding, Grid, Plan, Row, Table, median, median_ratio,
};
use anyhow::{Context, Result};
use node::{Handover, Rekey};
use std::time::Duration;
use wire::ike::ExchangeType;

/// The table.
pub const TABLE: Table = Table {
    name: "mml-table2",
    title: "Time that each end works on the messages of key management",
    claim: "Establishing an IKE SA takes 27 ms of both ends, establishing the composite SA 82, new keys for it 2.7, and \
            giving keys to a foreign agent 0.5 to 0.6, whichever way: distribution is the cheapest part of it.",
    setting: "Four hosts in one process, each the engine that stratad runs: mobile node, gateway, two foreign agents. What \
              comes for one is handed to it, and the clock read before and after, so that neither reading nor writing \
              nor the way is in it; an exchange is what begins it and the answer at the initiator, and the request at \
              the responder. In microseconds, the median and the longest of the rounds, each of which begins with hosts that know \
              nothing of each other. The paper's machines, their file system and the shell scripts in its numbers are \
              not rebuilt: what must hold is what distribution takes beside the exchanges that it follows. That \
              establishing the composite SA takes three times the IKE SA does not come from the protocol: it is shown \
              beside ours. A hand-over is all that hosts do from the end of a link until nothing more is to be said: the \
              registration, slots and keys, by DKM those that are fetched and those of the agent's own.",
    duration: |quick| ROUND * rounds(quick),
    rests_on: Basis::Zones,
    check: || Ok(()),
    fill,
};

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_millis(20);

const fn rounds(quick: bool) -> u32 {
    if quick { 50 } else { 1000 }
}

/// A row of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exchange {
    IkeSa,
    CompositeSa,
    Rekey,
    Distribution,
    Predistribution,
    Migration,
    Neighbours,
}

impl Exchange {
    const ALL: [Self; 7] = [
        Self::IkeSa,
        Self::CompositeSa,
        Self::Rekey,
        Self::Distribution,
        Self::Predistribution,
        Self::Migration,
        Self::Neighbours,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::IkeSa => "IKE SA",
            Self::CompositeSa => "composite SA",
            Self::Rekey => "new keys",
            Self::Distribution => "key distribution",
            Self::Predistribution => "key distribution in advance (PKD)",
            Self::Migration => "key request of the next agent (DKM)",
            Self::Neighbours => "neighbour notification",
        }
    }

    /// Returns the paper's times of the initiator and the responder, in microseconds.
    const fn paper(self) -> [f64; 2] {
        match self {
            Self::IkeSa => [13_300.0, 13_420.0],
            Self::CompositeSa => [53_200.0, 29_100.0],
            Self::Rekey => [1_300.0, 1_350.0],
            Self::Distribution => [400.0, 200.0],
            Self::Predistribution | Self::Migration => [300.0, 200.0],
            Self::Neighbours => [2_000.0, 7_300.0],
        }
    }

    /// Returns the initiator and the responder, the exchange on the wire, and the work that makes
    /// its request.
    const fn parts(self) -> ([usize; 2], ExchangeType, Option<Work>) {
        match self {
            Self::IkeSa => ([MOBILE, HOME], ExchangeType::IKE_SA_INIT, Some(Work::Begun)),
            // Its request is made while the previous answer is handled.
            Self::CompositeSa => ([MOBILE, HOME], ExchangeType::IKE_AUTH, None),
            Self::Rekey => (
                [HOME, MOBILE],
                ExchangeType::CREATE_CHILD_SA,
                Some(Work::Begun),
            ),
            Self::Distribution => (
                [HOME, NEAR],
                ExchangeType::KEY_DISTRIBUTE,
                Some(Work::Given(NEAR)),
            ),
            Self::Predistribution => (
                [HOME, FAR],
                ExchangeType::KEY_DISTRIBUTE,
                Some(Work::Given(FAR)),
            ),
            // Its request is made when the registration passes.
            Self::Migration => ([FAR, NEAR], ExchangeType::KEY_REQUEST, None),
            // It is sent as soon as there is an IKE SA, together with the handling of that answer.
            Self::Neighbours => ([NEAR, HOME], ExchangeType::INFORMATIONAL, None),
        }
    }

    /// Returns the time that both ends worked on the first such exchange.
    fn cost(self, work: &[Timed]) -> Option<[f64; 2]> {
        let ([initiator, responder], exchange, begun) = self.parts();
        let first = |who: usize, what: Work| {
            let mut all = work.iter().filter(|timed| timed.who == who);
            let found = all.find(|timed| timed.work == what)?;
            Some(found.took.as_secs_f64() * 1e6)
        };
        let made = begun.map_or(Some(0.0), |begun| first(initiator, begun));
        let answered = first(initiator, Work::Answer(exchange, responder));
        let asked = first(responder, Work::Request(exchange, initiator));
        Some([made? + answered?, asked?])
    }
}

/// Times of one round: for each exchange that took place, and for all hosts in each kind of
/// hand-over.
#[derive(Clone, Debug, Default)]
struct Round {
    exchanges: Vec<Cost<Exchange>>,
    moves: Vec<Cost<Handover>>,
    /// Messages that a hand-over waited for, in addition to its registration.
    beside: Vec<(Handover, usize)>,
}

/// Measured kinds of hand-over, with their names.
const MOVES: [(Handover, &str); 3] = [
    (Handover::Push, "push"),
    (Handover::Pkd, "PKD"),
    (Handover::Dkm, "DKM"),
];

/// Messages of a registration: to an agent, home, back to the agent, and to the mobile node.
const REGISTRATION: f64 = 4.0;

/// Returns the number of additional messages that a hand-over may wait for: with DKM, a request to
/// the previous agent and its answer.
const fn allowed(handover: Handover) -> f64 {
    match handover {
        Handover::Push | Handover::Pkd => 0.0,
        Handover::Dkm => 2.0,
    }
}

/// Longest total work of all hosts for a hand-over, in microseconds.
const GOAL: f64 = 2_000.0;

fn fill(plan: &Plan) -> Filled {
    let (rounds, faults) = match measure(plan) {
        Ok(rounds) => (rounds, Vec::new()),
        Err(error) => (Vec::new(), vec![format!("{error:#}")]),
    };
    let ends = ["initiator", "responder"];
    Filled {
        grid: Grid {
            columns: ["paper", "here", "longest"]
                .iter()
                .flat_map(|group| ends.map(|name| Column::new(group, name)))
                .collect(),
            rows: rows(&rounds),
        },
        findings: findings(&rounds),
        faults,
        plots: Vec::new(),
    }
}

fn measure(plan: &Plan) -> Result<Vec<Round>> {
    (0..rounds(plan.quick))
        .map(|round| once(plan.zones, round.into()))
        .collect()
}

/// Measures a set-up from hosts without state to a tunnel that is rekeyed, and moves in other,
/// equal sets of hosts.
fn once(zones: bool, seed: u64) -> Result<Round> {
    const WHILE: Duration = Duration::from_secs(3);
    let tunnel = match zones {
        true => Tunnel::Zoned(Handover::Pkd),
        false => Tunnel::Plain,
    };
    let mut stage = Stage::new(tunnel, seed);
    stage.run_for(WHILE);
    let mut exchanges = cost(&stage.work, &[Exchange::Neighbours]);
    stage.forget();
    stage.command(MOBILE, |node, now| node.up(GATEWAY, now))?;
    stage.run_for(WHILE);
    exchanges.extend(cost(
        &stage.work,
        &[
            Exchange::IkeSa,
            Exchange::CompositeSa,
            Exchange::Distribution,
            Exchange::Predistribution,
        ],
    ));
    stage.forget();
    stage
        .command(HOME, |node, now| node.rekey(ALICE, Rekey::Children, now))
        .with_context(|| format!("no tunnel came up: {:?}", stage.events))?;
    stage.run_for(WHILE);
    exchanges.extend(cost(&stage.work, &[Exchange::Rekey]));
    let (mut moves, mut beside) = (Vec::new(), Vec::new());
    for (handover, _) in MOVES.iter().filter(|_| zones) {
        let done = hand_over(*handover, seed)?;
        exchanges.extend(cost(&done.work, &[Exchange::Migration]));
        moves.push((*handover, spent(&done)));
        beside.push((*handover, messages(&done.work[..done.waits(*handover)?])));
    }
    Ok(Round {
        exchanges,
        moves,
        beside,
    })
}

/// Times of the initiator and of the responder, in microseconds.
type Cost<K> = (K, [f64; 2]);

/// Returns the time that the mobile node worked for a move, and that of all others.
fn spent(done: &Move) -> [f64; 2] {
    let of = |is_it: fn(usize) -> bool| {
        let work = done.work.iter().filter(|timed| is_it(timed.who));
        work.map(|timed| timed.took.as_secs_f64() * 1e6).sum()
    };
    [of(|who| who == MOBILE), of(|who| who != MOBILE)]
}

fn cost(work: &[Timed], exchanges: &[Exchange]) -> Vec<Cost<Exchange>> {
    let exchanges = exchanges.iter();
    exchanges
        .filter_map(|exchange| Some((*exchange, exchange.cost(work)?)))
        .collect()
}

/// Returns the times of one key in each round that has it.
fn costs<K: Copy + PartialEq>(
    rounds: &[Round],
    of: fn(&Round) -> &[Cost<K>],
    key: K,
) -> Vec<[f64; 2]> {
    let all = rounds.iter().flat_map(of);
    let its = all.filter(|(which, _)| *which == key);
    its.map(|(_, cost)| *cost).collect()
}

fn exchanges(round: &Round) -> &[Cost<Exchange>] {
    &round.exchanges
}

fn moves(round: &Round) -> &[Cost<Handover>] {
    &round.moves
}

fn whole(micros: f64) -> i64 {
    micros.round() as i64
}

fn rows(rounds: &[Round]) -> Vec<Row> {
    let row = |subject: &str, name: &str, paper: [Option<i64>; 2], costs: &[[f64; 2]]| {
        let of = |end: usize| costs.iter().map(|cost| cost[end]).collect::<Vec<_>>();
        let middle = |end| median(&of(end)).map(whole);
        let longest = |end| of(end).into_iter().max_by(f64::total_cmp).map(whole);
        let here = [middle(0), middle(1), longest(0), longest(1)];
        Row {
            subject: subject.to_owned(),
            name: name.to_owned(),
            numbers: paper.into_iter().chain(here).collect(),
        }
    };
    let exchange = |exchange: Exchange| {
        let paper = exchange.paper().map(|micros| Some(whole(micros)));
        let costs = costs(rounds, exchanges, exchange);
        row("us an exchange", exchange.name(), paper, &costs)
    };
    let moved = |(handover, name): &(Handover, &str)| {
        let costs = costs(rounds, moves, *handover);
        row(
            "us a hand-over: the mobile node and all others",
            name,
            [None; 2],
            &costs,
        )
    };
    let all = Exchange::ALL.map(exchange).into_iter();
    all.chain(MOVES.iter().map(moved)).collect()
}

fn findings(rounds: &[Round]) -> Vec<Finding> {
    let total = |[initiator, responder]: [f64; 2]| initiator + responder;
    let over = |exchange: Exchange| {
        let [above, below] =
            [exchange, Exchange::Distribution].map(|one| costs(rounds, exchanges, one));
        let pairs = above.iter().zip(&below);
        let pairs: Vec<_> = pairs.map(|(a, b)| (total(*a), total(*b))).collect();
        let there = total(exchange.paper()) / total(Exchange::Distribution.paper());
        let what = format!("{} over key distribution, both ends", exchange.name());
        Finding::at_least(what, 1.0, median_ratio(&pairs)).paper(format!("{there:.1}"))
    };
    let cheap = |(handover, name): &(Handover, &str)| {
        let costs = costs(rounds, moves, *handover);
        let pairs: Vec<_> = costs.iter().map(|cost| (GOAL, total(*cost))).collect();
        let what = format!("2 ms over all that hosts do for a hand-over by {name}");
        Finding::at_least(what, 1.0, median_ratio(&pairs))
    };
    let silent = |(handover, name): &(Handover, &str)| {
        let all = rounds.iter().flat_map(|round| &round.beside);
        let its = all.filter(|(which, _)| which == handover);
        let allowed = REGISTRATION + allowed(*handover);
        let pairs = its.map(|(_, beside)| (allowed, REGISTRATION + *beside as f64));
        let with = match handover {
            Handover::Push | Handover::Pkd => "",
            Handover::Dkm => " and one round trip between agents",
        };
        let what = format!(
            "messages of a registration{with} over those that a hand-over by {name} waits for"
        );
        Finding::at_least(what, 1.0, median_ratio(&pairs.collect::<Vec<_>>()))
    };
    let composite = {
        let [above, below] =
            [Exchange::CompositeSa, Exchange::IkeSa].map(|one| costs(rounds, exchanges, one));
        let pairs = above.iter().zip(&below);
        let pairs: Vec<_> = pairs.map(|(a, b)| (total(*a), total(*b))).collect();
        let there = total(Exchange::CompositeSa.paper()) / total(Exchange::IkeSa.paper());
        let what = "composite SA over IKE SA, both ends";
        Finding::beside(what, (there * 10.0).round() / 10.0, median_ratio(&pairs))
    };
    let dearer = [Exchange::CompositeSa, Exchange::Rekey].map(over);
    let moved = MOVES.iter().flat_map(|one| [cheap(one), silent(one)]);
    [composite].into_iter().chain(dearer).chain(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    fn verdicts(rounds: &[Round]) -> Vec<Verdict> {
        let findings = findings(rounds);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    fn round(distribution: f64, moved: f64) -> Round {
        Round {
            exchanges: vec![
                (Exchange::IkeSa, [100.0, 100.0]),
                (Exchange::CompositeSa, [50.0, 50.0]),
                (Exchange::Rekey, [30.0, 30.0]),
                (Exchange::Distribution, [distribution; 2]),
            ],
            moves: MOVES.map(|(handover, _)| (handover, [moved; 2])).into(),
            beside: MOVES
                .map(|(handover, _)| (handover, allowed(handover) as usize))
                .into(),
        }
    }

    #[test]
    fn distribution_that_takes_longer_than_what_it_follows_fails() {
        let good = [round(20.0, 300.0), round(25.0, 300.0)];
        assert_eq!(verdicts(&good)[..1], [Consistent]);
        assert_eq!(verdicts(&good)[1..], [Holds; 8]);
        let dear = verdicts(&[round(31.0, 300.0)]);
        assert_eq!(dear[1..4], [Holds, Fails, Holds]);
        assert_eq!(verdicts(&[round(101.0, 300.0)])[1..3], [Fails; 2]);
    }

    #[test]
    fn the_longest_round_stands_beside_the_median() {
        let rounds = [20.0, 21.0, 90.0].map(|took| round(took, 300.0));
        let rows = rows(&rounds);
        let its = rows
            .iter()
            .find(|row| row.name == Exchange::Distribution.name());
        let longest = [Some(21), Some(21), Some(90), Some(90)];
        assert_eq!(its.unwrap().numbers[2..], longest);
    }

    #[test]
    fn a_hand_over_that_takes_longer_than_its_goal_fails() {
        let slow = verdicts(&[round(20.0, 1001.0)]);
        assert_eq!(slow[3..], [Fails, Holds, Fails, Holds, Fails, Holds]);
    }

    #[test]
    fn a_hand_over_that_waits_for_a_message_fails() {
        for (kind, _) in MOVES.iter().enumerate() {
            let mut round = round(20.0, 300.0);
            round.beside[kind].1 += 1;
            let mut wanted = [Holds; 6];
            wanted[2 * kind + 1] = Fails;
            assert_eq!(verdicts(&[round])[3..], wanted);
        }
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&[]), [Fails; 9]);
    }

    #[test]
    fn every_exchange_is_seen_with_zones_and_without_them_no_keys_leave() {
        let seen = |zones| {
            let round = once(zones, 1).unwrap();
            let exchanges = round.exchanges.iter().map(|(exchange, _)| *exchange);
            let mut exchanges: Vec<_> = exchanges.collect();
            exchanges.sort();
            (exchanges, round.moves.len())
        };
        assert_eq!(seen(true), (Exchange::ALL.into(), MOVES.len()));
        let (exchanges, moves) = seen(false);
        assert!(
            !exchanges.contains(&Exchange::Distribution),
            "{exchanges:?}"
        );
        assert!(!exchanges.contains(&Exchange::Predistribution));
        assert_eq!(moves, 0);
    }
}
