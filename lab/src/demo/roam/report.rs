//! The result of a walk, for programs and readers, and the verdict on the claims.

use super::diary::{Diary, letter};
use super::{Handover, Options, PLACES};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The walk's result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// True if all claims hold.
    pub passed: bool,
    /// Claims that do not hold.
    pub reasons: Vec<String>,
    /// Distribution of keys to the agent of the mobile node.
    pub handover: Handover,
    /// True if the agents were licensed wherever the mobile node was, which must fail.
    pub everywhere: bool,
    /// Length of the stay at each agent, in seconds.
    pub stay_seconds: u64,
    /// Time after the home agent's binding, in milliseconds, from which on no agent that was left
    /// may read packets.
    pub allowance_ms: u64,
    /// All moves.
    pub moves: Vec<Move>,
    /// Datagrams of the stream.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Octets of the download, each compared with the server's file.
    pub octets: u64,
    /// Goodput of the download, in bits per second.
    pub goodput: f64,
}

/// A move from one agent to the next. Times count from the moment when the old link went down.
#[derive(Clone, Debug, Serialize)]
pub struct Move {
    /// The agent that was left: `A`, `B` or `C`.
    pub from: char,
    /// The next agent.
    pub to: char,
    /// Time of the move since the start, in milliseconds.
    pub at_ms: u64,
    /// Time until the home agent had the binding, in milliseconds.
    pub registered_ms: Option<u64>,
    /// Longest gap of the stream, in milliseconds.
    pub gap_ms: Option<u64>,
    /// Datagrams that were lost.
    pub lost: u64,
    /// Time until the next agent had keys, in milliseconds; 0 if it had them before.
    pub keys_ms: Option<u64>,
    /// Time until the next agent had read a packet, in milliseconds.
    pub reads_ms: Option<u64>,
    /// Octets of the download that arrived between this move and the next.
    pub octets: u64,
    /// Packets sealed after the move, by agent. An agent that was never visited is shown none.
    pub after: BTreeMap<char, After>,
}

/// Packets that were sealed after a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct After {
    /// Packets that passed an agent, or that were copied to it.
    pub shown: u64,
    /// Packets among them that the agent read.
    pub read: u64,
}

impl Report {
    /// Judges the events of a diary.
    pub(super) fn new(options: &Options, diary: &Diary) -> Self {
        let moves: Vec<_> = (1..diary.legs.len()).map(|leg| one(diary, leg)).collect();
        let (sent, lost) = diary.stream();
        let over = diary.over.unwrap_or(diary.now).as_secs_f64();
        let mut reasons = diary.failures.clone();
        reasons.extend(moves.iter().flat_map(Move::reasons));
        if moves.len() < options.moves as usize {
            reasons.push(format!(
                "it moved {} times, not {}",
                moves.len(),
                options.moves
            ));
        }
        Self {
            passed: reasons.is_empty(),
            reasons,
            handover: options.handover,
            everywhere: options.everywhere,
            stay_seconds: options.stay.as_secs(),
            allowance_ms: options.handover.allowance().as_millis() as u64,
            moves,
            sent,
            lost,
            octets: diary.octets,
            goodput: if over > 0.0 {
                diary.octets as f64 * 8.0 / over
            } else {
                0.0
            },
        }
    }
}

impl Move {
    /// Returns the claims that do not hold.
    fn reasons(&self) -> Vec<String> {
        let (from, to) = (self.from, self.to);
        let mut reasons = Vec::new();
        let mut claim = |holds: bool, what: String| {
            if !holds {
                reasons.push(format!("{from} → {to}: {what}"));
            }
        };
        let registered = self.registered_ms.is_some();
        claim(
            registered,
            "the mobile node was not registered there".to_owned(),
        );
        claim(
            self.reads_ms.is_some(),
            format!("{to} read nothing while the mobile node was there"),
        );
        claim(self.gap_ms.is_some(), "the stream did not go on".to_owned());
        claim(self.octets > 0, "the download did not go on".to_owned());
        let was_shown = self.after.get(&from).is_some_and(|after| after.shown > 0);
        let what =
            format!("{from} was shown nothing of what was sealed later, so it could not read it");
        claim(was_shown, what);
        for (agent, after) in self.after.iter().filter(|(agent, _)| **agent != to) {
            let After { shown, read } = after;
            let what =
                format!("{agent} read {read} of {shown} packets that were sealed after that");
            claim(*read == 0, what);
        }
        reasons
    }
}

fn one(diary: &Diary, number: usize) -> Move {
    let leg = &diary.legs[number];
    let millis = |time: Duration| time.as_millis() as u64;
    let since = |at: Option<Duration>| at.map(|at| millis(at.saturating_sub(leg.at)));
    let next = diary.legs.get(number + 1).map(|next| next.octets);
    let after = (0..PLACES).filter_map(|agent| {
        let (read, shown) = diary.read(number, agent)?;
        (shown > 0).then(|| (letter(agent), After { shown, read }))
    });
    Move {
        from: letter(diary.legs[number - 1].to),
        to: letter(leg.to),
        at_ms: millis(leg.at),
        registered_ms: since(leg.bound),
        gap_ms: diary.gap(number).map(millis),
        lost: diary.lost(number),
        keys_ms: since(leg.keys),
        reads_ms: since(leg.reads),
        octets: next.unwrap_or(diary.octets) - leg.octets,
        after: after.collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::diary::tests::walked;
    use super::*;

    /// Returns a report of one move, after which A reads this many packets.
    pub fn report(read_by_a_after: u64) -> Report {
        let options = Options {
            moves: 1,
            ..Options::default()
        };
        Report::new(&options, &walked(read_by_a_after))
    }

    #[test]
    fn what_is_claimed_passes() {
        let report = report(0);
        assert!(report.passed, "{:?}", report.reasons);
        let only = &report.moves[0];
        assert_eq!((only.from, only.to, only.gap_ms), ('A', 'B', Some(141)));
        assert_eq!(
            only.after[&'A'],
            After {
                shown: 100,
                read: 0
            }
        );
    }

    #[test]
    fn an_agent_that_reads_on_fails() {
        let reasons = report(1).reasons;
        let expected = "A → B: A read 1 of 100 packets that were sealed after that";
        assert_eq!(reasons, [expected]);
    }

    #[test]
    fn what_was_not_seen_fails() {
        let mut only = report(0).moves.remove(0);
        only.registered_ms = None;
        only.reads_ms = None;
        only.gap_ms = None;
        only.octets = 0;
        only.after.clear();
        assert_eq!(only.reasons().len(), 5, "{:?}", only.reasons());
    }

    #[test]
    fn a_walk_that_ends_early_fails_with_why() {
        let mut diary = walked(0);
        diary.fail("the tunnel did not come up".to_owned());
        let reasons = Report::new(&Options::default(), &diary).reasons;
        assert_eq!(
            reasons,
            ["the tunnel did not come up", "it moved 1 times, not 4"]
        );
    }
}
