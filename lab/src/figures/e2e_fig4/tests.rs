use super::*;
use crate::experiment::Verdict::{Consistent, Fails, Holds};
use crate::experiment::{Finding, Verdict};
use crate::figures::moves::Passage;

/// Returns set-ups and moves in which Strata's traffic is stalled for this many milliseconds, and
/// strongSwan's for 108.
fn made(stalled: f64) -> Vec<Cell> {
    let mut cells = complete(&[]);
    for cell in &mut cells {
        let (system, stalled) = match (cell.subject().protection, cell.subject().contender) {
            (Protection::None, _) => (0.5, 1.5),
            (_, Contender::Strata) => (2.0, stalled),
            (_, Contender::Strongswan) => (101.0, 108.0),
        };
        cell.set_ups = vec![4000.0; 3];
        cell.moves = vec![
            Passage {
                system: Some(system * 1e3),
                first: Some(system * 1e3),
                stalled: [Some(stalled * 1e3); 2],
                lost: [Some(stalled), Some(0.0)],
                ..Passage::default()
            };
            3
        ];
    }
    cells
}

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
fn moves_that_take_a_fifth_of_the_papers_time_hold() {
    let cells = made(7.0);
    assert_eq!(verdicts(&cells, "the paper's over this"), [Holds; 8]);
    assert_eq!(verdicts(&cells, "strongSwan over Strata"), [Holds; 4]);
    let all = judged(&cells).findings;
    let rest = all[12..].iter().map(|one| one.verdict);
    assert!(rest.clone().count() > 15);
    assert!(rest.into_iter().all(|verdict| verdict == Consistent));
}

/// So it is without MOBIKE: silence is found after seconds.
#[test]
fn a_tunnel_that_is_set_up_again_fails() {
    let late = verdicts(&made(13_000.0), "T_STALLED, the paper's over this");
    assert_eq!(late, [Fails; 4]);
    assert_eq!(
        verdicts(&made(13_000.0), "T_STALLED, strongSwan over Strata"),
        [Fails; 2]
    );
}

#[test]
fn what_was_not_measured_fails() {
    let findings = judged(&complete(&[])).findings;
    assert!(findings.iter().all(|one| one.verdict == Fails));
}

#[test]
fn what_ipsec_adds_is_the_difference_to_moves_without_it() {
    let findings = judged(&made(7.0)).findings;
    let what = "NULL tunnel, Strata: T_STALLED over that without IPsec";
    let added = findings.iter().find(|one| one.what == what).unwrap();
    assert_eq!(added.measured.unwrap().value, 5.5);
}

#[test]
fn each_subject_has_a_row_for_each_quantity_and_the_paper_has_its_own() {
    let filled = judged(&made(7.0));
    let named = |part: &str| {
        let rows = filled.grid.rows.iter();
        rows.filter(|row| row.subject.starts_with(part)).count()
    };
    // Four protections in the paper, and all but none by the daemons.
    assert_eq!(named("T_IKE"), 4 + 6);
    assert_eq!(named("T_SYS"), 7);
    assert_eq!(named("T_STALLED"), 5 + 7);
    assert_eq!(filled.plots.len(), 3);
    assert_eq!(filled.plots[2].name, "t-stalled");
    let row = filled.grid.rows.iter().find(|row| row.name == "none");
    assert_eq!(row.unwrap().numbers, [3, 500, 500, 500, 500].map(Some));
}
