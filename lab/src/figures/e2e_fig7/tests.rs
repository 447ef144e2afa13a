use super::*;
use crate::experiment::Verdict::{Consistent, Fails, Holds};
use crate::experiment::{Finding, Verdict};

/// Traffic of a move: the silence in milliseconds, and the datagrams that are lost.
#[derive(Clone, Copy)]
struct Made {
    live: f64,
    soft: f64,
}

/// Returns moves: MOBIKE is silent for 35 ms, transport mode for 40 ms, strongSwan for 153 ms.
fn made(round_trips: &[Duration], Made { live, soft }: Made) -> Vec<Cell> {
    let mut cells = empty(round_trips);
    for cell in &mut cells {
        let (system, silence, lost) = match cell.subject().manner {
            Manner::Mobike => (2.0, 35.0, 33.0),
            Manner::Transport => (2.0, 40.0, 38.0),
            Manner::Strongswan => (101.0, 153.0, 150.0),
            Manner::LivePaths => (0.5, live, live),
            Manner::Soft => (0.5, 2.0, soft),
        };
        cell.moves = vec![
            Passage {
                system: Some(system * 1e3),
                first: Some(system * 1e3),
                update: Some(16_000.0),
                check: Some(16_000.0),
                stalled: [Some(silence * 1e3); 2],
                lost: [Some(lost), Some(0.0)],
            };
            3
        ];
    }
    cells
}

const GOOD: Made = Made {
    live: 17.0,
    soft: 0.0,
};

fn verdicts(cells: &[Cell], part: &str) -> Vec<Verdict> {
    let findings = judged(cells).findings;
    let named = |one: &&Finding| one.what.contains(part);
    findings
        .iter()
        .filter(named)
        .map(|one| one.verdict)
        .collect()
}

#[test]
fn moves_that_pass_strongswans_and_lose_nothing_hold() {
    let cells = made(distances(true), GOOD);
    assert_eq!(verdicts(&cells, ""), [Holds; 7]);
    let cells = made(distances(false), GOOD);
    let all = verdicts(&cells, "");
    assert_eq!(all[..12], [Holds; 12]);
    assert_eq!(all[12..], [Consistent; 7]);
}

/// So it is without clones.
#[test]
fn a_soft_hand_over_that_loses_a_datagram_fails() {
    let cells = made(distances(true), Made { soft: 1.0, ..GOOD });
    assert_eq!(verdicts(&cells, "soft hand-over"), [Fails]);
    assert_eq!(verdicts(&cells, "live paths"), [Holds]);
}

/// So it is without live paths.
#[test]
fn a_lost_path_that_stalls_as_long_as_a_move_fails() {
    let cells = made(distances(true), Made { live: 34.0, ..GOOD });
    assert_eq!(verdicts(&cells, "live paths"), [Fails]);
    assert_eq!(verdicts(&cells, "soft hand-over"), [Holds]);
}

#[test]
fn what_was_not_measured_fails() {
    let findings = judged(&complete(Vec::new())).findings;
    assert!(findings.iter().all(|one| one.verdict == Fails));
}

#[test]
fn only_hard_moves_are_timed_by_their_messages() {
    let filled = judged(&made(distances(true), GOOD));
    // Six hard subjects with five quantities, and two others.
    assert_eq!(filled.grid.rows.len(), 6 * 5 + 2 * 2);
    assert_eq!(filled.plots.len(), 2);
    assert_eq!(filled.plots[1].name, "multihoming-15000us");
    let last = filled.grid.rows.last().unwrap();
    assert_eq!(last.subject, "soft hand-over, 15 ms a round trip");
    assert_eq!(last.numbers, [3, 0, 0, 0, 0].map(Some));
}

#[test]
fn the_paper_stands_beside_its_own_moves_alone() {
    let rows = judged(&made(distances(false), GOOD)).grid.rows;
    let printed = rows.iter().filter(|row| row.name.ends_with("the paper"));
    let printed: Vec<_> = printed.collect();
    assert_eq!(printed.len(), 4);
    let its = "transport mode, mobility, 0.355 ms a round trip";
    assert!(printed.iter().all(|row| row.subject == its));
    assert_eq!(printed[3].numbers[2], Some(264_000));
}

#[test]
fn what_is_left_off_is_in_no_configuration() {
    let without = Plan {
        clones: false,
        paths: false,
        ..Plan::QUICK
    };
    for manner in [Manner::LivePaths, Manner::Soft] {
        assert!(!manner.lines(&Plan::QUICK).is_empty());
        assert!(manner.lines(&without).is_empty());
    }
}
