//! Table 2 of "Mobile multi-layered IPsec": the time that each end works on a message of key
//! management.

use super::handover::parties::{ALICE, FAR, GATEWAY, HOME, MOBILE, NEAR, Tunnel};
use super::handover::stage::{Stage, Timed, Work};
use super::handover::{Move, hand_over, messages};
use crate::experiment::{
    Basis, Claim, Column, Filled, Finding, Grid, Plan, Raw, Row, Table, median, median_ratio,
};
use anyhow::{Context, Result};
use node::{Handover, Rekey};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::ike::ExchangeType;
use world::Hosts;

/// The table.
pub const TABLE: Table = Table {
    name: "mml-table2",
    title: "Time that each end works on the messages of key management",
    claims: &[
        Claim {
            says: "Establishing the composite SA takes 3.1 times as long as establishing the IKE \
                   SA.",
            judged_by: &["composite SA over IKE SA, both ends"],
        },
        Claim {
            says: "Giving keys to a foreign agent is the cheapest part: the composite SA takes 137 \
                   times as long, and new keys for it 4.4 times.",
            judged_by: &[
                "composite SA over key distribution, both ends",
                "new keys over key distribution, both ends",
            ],
        },
        Claim {
            says: "That takes as long whichever way it goes, nearly.",
            judged_by: &[
                "key distribution in advance (PKD) over key distribution, both ends",
                "key request of the next agent (DKM) over key distribution, both ends",
            ],
        },
    ],
    setting: "Four hosts in one process, each the engine that stratad runs: mobile node, gateway, \
              two foreign agents. What comes for one is handed to it, and the clock read before \
              and after, so that neither reading nor writing nor the way is in it; an exchange is \
              what begins it and the answer at the initiator, and the request at the responder. In \
              microseconds, the median and the longest of the rounds, each of which begins with \
              hosts that know nothing of each other. The paper's machines, their file system and \
              the shell scripts in its numbers are not rebuilt: what must hold is what \
              distribution takes beside the exchanges that it follows. That establishing the \
              composite SA takes three times the IKE SA does not come from the protocol: it is \
              shown beside ours. A hand-over is all that hosts do from the end of a link until \
              nothing more is to be said: the registration, slots and keys, by DKM those that are \
              fetched and those of the agent's own.",
    duration: |quick| ROUND * rounds(quick),
    rests_on: &[Basis::Zones],
    check: || Ok(()),
    measure: |plan| Raw::from_result(measure(plan)),
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?)),
};

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_millis(20);

const fn rounds(quick: bool) -> u32 {
    if quick { 50 } else { 1000 }
}

/// A row of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Round {
    exchanges: Vec<Cost<Exchange>>,
    moves: Vec<Cost<Kind>>,
    /// Messages that a hand-over waited for, in addition to its registration.
    beside: Vec<(Kind, usize)>,
}

/// A kind of hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Push,
    Pkd,
    Dkm,
}

/// Messages of a registration: to an agent, home, back to the agent, and to the mobile node.
const REGISTRATION: f64 = 4.0;

impl Kind {
    const ALL: [Self; 3] = [Self::Push, Self::Pkd, Self::Dkm];

    const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pkd => "PKD",
            Self::Dkm => "DKM",
        }
    }

    const fn handover(self) -> Handover {
        match self {
            Self::Push => Handover::Push,
            Self::Pkd => Handover::Pkd,
            Self::Dkm => Handover::Dkm,
        }
    }

    /// Returns the number of additional messages that a hand-over may wait for: with DKM, a request
    /// to the previous agent and its answer.
    const fn allowed(self) -> f64 {
        match self {
            Self::Push | Self::Pkd => 0.0,
            Self::Dkm => 2.0,
        }
    }
}

/// Longest total work of all hosts for a hand-over, in microseconds.
const GOAL: f64 = 2_000.0;

fn judged(rounds: &[Round]) -> Filled {
    let ends = ["initiator", "responder"];
    Filled {
        grid: Grid {
            columns: ["paper", "here", "longest"]
                .iter()
                .flat_map(|group| ends.map(|name| Column::new(group, name)))
                .collect(),
            rows: rows(rounds),
        },
        findings: findings(rounds),
        faults: Vec::new(),
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
    for kind in Kind::ALL.into_iter().filter(|_| zones) {
        let done = hand_over(kind.handover(), seed)?;
        exchanges.extend(cost(&done.work, &[Exchange::Migration]));
        moves.push((kind, spent(&done)));
        let waits = done.waits(kind.handover())?;
        beside.push((kind, messages(&done.work[..waits])));
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

fn moves(round: &Round) -> &[Cost<Kind>] {
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
    let moved = |kind: Kind| {
        let costs = costs(rounds, moves, kind);
        row(
            "us a hand-over: the mobile node and all others",
            kind.name(),
            [None; 2],
            &costs,
        )
    };
    let all = Exchange::ALL.map(exchange).into_iter();
    all.chain(Kind::ALL.map(moved)).collect()
}

fn findings(rounds: &[Round]) -> Vec<Finding> {
    let total = |[initiator, responder]: [f64; 2]| initiator + responder;
    let ratio = |above: Exchange, below: Exchange| {
        let [above, below] = [above, below].map(|one| costs(rounds, exchanges, one));
        let pairs = above.iter().zip(&below);
        let pairs: Vec<_> = pairs.map(|(a, b)| (total(*a), total(*b))).collect();
        median_ratio(&pairs)
    };
    let said = |above: Exchange, below: Exchange| {
        format!("{:.1}", total(above.paper()) / total(below.paper()))
    };
    let name = |above: Exchange, below: Exchange| {
        format!("{} over {}, both ends", above.name(), below.name())
    };
    let composite = (Exchange::CompositeSa, Exchange::IkeSa);
    let as_cheap = [Exchange::Predistribution, Exchange::Migration];
    let beside = [composite]
        .into_iter()
        .chain(as_cheap.map(|exchange| (exchange, Exchange::Distribution)))
        .map(|(above, below)| {
            Finding::beside(name(above, below), said(above, below), ratio(above, below))
        });
    let dearer = [Exchange::CompositeSa, Exchange::Rekey].map(|exchange| {
        let below = Exchange::Distribution;
        Finding::at_least(name(exchange, below), 1.0, ratio(exchange, below))
            .paper(said(exchange, below))
    });
    let cheap = |kind: Kind| {
        let costs = costs(rounds, moves, kind);
        let pairs: Vec<_> = costs.iter().map(|cost| (GOAL, total(*cost))).collect();
        let what = format!(
            "2 ms over all that hosts do for a hand-over by {}",
            kind.name()
        );
        Finding::at_least(what, 1.0, median_ratio(&pairs))
    };
    let silent = |kind: Kind| {
        let all = rounds.iter().flat_map(|round| &round.beside);
        let its = all.filter(|(which, _)| *which == kind);
        let allowed = REGISTRATION + kind.allowed();
        let pairs = its.map(|(_, beside)| (allowed, REGISTRATION + *beside as f64));
        let with = match kind {
            Kind::Push | Kind::Pkd => "",
            Kind::Dkm => " and one round trip between agents",
        };
        let what = format!(
            "messages of a registration{with} over those that a hand-over by {} waits for",
            kind.name()
        );
        Finding::at_least(what, 1.0, median_ratio(&pairs.collect::<Vec<_>>()))
    };
    let moved = Kind::ALL
        .into_iter()
        .flat_map(|one| [cheap(one), silent(one)]);
    beside.chain(dearer).chain(moved).collect()
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
                (Exchange::Predistribution, [distribution; 2]),
                (Exchange::Migration, [distribution; 2]),
            ],
            moves: Kind::ALL.map(|kind| (kind, [moved; 2])).into(),
            beside: Kind::ALL.map(|kind| (kind, kind.allowed() as usize)).into(),
        }
    }

    #[test]
    fn distribution_that_takes_longer_than_what_it_follows_fails() {
        let good = [round(20.0, 300.0), round(25.0, 300.0)];
        assert_eq!(verdicts(&good)[..3], [Consistent; 3]);
        assert_eq!(verdicts(&good)[3..], [Holds; 8]);
        let dear = verdicts(&[round(31.0, 300.0)]);
        assert_eq!(dear[3..6], [Holds, Fails, Holds]);
        assert_eq!(verdicts(&[round(101.0, 300.0)])[3..5], [Fails; 2]);
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
        assert_eq!(slow[5..], [Fails, Holds, Fails, Holds, Fails, Holds]);
    }

    #[test]
    fn a_hand_over_that_waits_for_a_message_fails() {
        for kind in 0..Kind::ALL.len() {
            let mut round = round(20.0, 300.0);
            round.beside[kind].1 += 1;
            let mut wanted = [Holds; 6];
            wanted[2 * kind + 1] = Fails;
            assert_eq!(verdicts(&[round])[5..], wanted);
        }
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&[]), [Fails; 11]);
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
        assert_eq!(seen(true), (Exchange::ALL.into(), Kind::ALL.len()));
        let (exchanges, moves) = seen(false);
        assert!(
            !exchanges.contains(&Exchange::Distribution),
            "{exchanges:?}"
        );
        assert!(!exchanges.contains(&Exchange::Predistribution));
        assert_eq!(moves, 0);
    }
}
