//! Whole figures from stored cells: no test here needs a network.

use super::report::FILE;
use super::synthetic::{Folder, as_claimed, fill, options};
use super::{
    Basis, Cell, Column, Estimate, Evidence, Exhibit, Figure, Filled, Finding, Grid, Options, Raw,
    Report, Row, Table, Verdict, run,
};
use crate::figures;
use crate::scene::{Sender, Setup};
use std::fs;
use std::time::Duration;

fn figure(name: &str) -> &'static Figure {
    figures::find(name).and_then(Exhibit::figure).unwrap()
}

fn points(report: &Report) -> usize {
    match &report.evidence {
        Evidence::Downloads { points, .. } => points.len(),
        Evidence::Table(_) => 0,
    }
}

fn judged(name: &str, figure: &'static Figure, goodput: impl Fn(&Cell) -> f64) -> Report {
    let folder = Folder::new(name);
    fill(&folder.0, figure, goodput);
    let reports = run(&[Exhibit::Figure(figure)], &options(&folder.0)).unwrap();
    reports.into_iter().next().unwrap()
}

#[test]
fn what_is_claimed_holds() {
    for figure in figures::ALL.into_iter().filter_map(Exhibit::figure) {
        let report = judged(&format!("claimed-{}", figure.name), figure, as_claimed);
        assert_eq!(report.reasons, [""; 0], "{}", figure.name);
        assert_eq!(report.verdict, Verdict::Holds, "{}", figure.name);
    }
}

/// Each row violates one claim: cells that are slower by a factor, and the reason that must be
/// among the reported ones.
#[test]
fn whatever_does_not_hold_fails_the_figure_with_its_reason() {
    type Slow = fn(Setup, Sender, u64) -> bool;
    let violations: [(&str, f64, Slow, &str); 9] = [
        (
            "mml-fig14",
            0.94,
            |setup, _, errors| setup == Setup::Zoned && errors == 0,
            "Reno, no errors: zoned over IPsec: 0.92 times, not at least 0.95",
        ),
        (
            "mml-fig14",
            0.9,
            |setup, _, errors| setup != Setup::None && errors == 0,
            "CUBIC + SACK, no errors: zoned over none: 0.84 times, not at least 0.9",
        ),
        (
            "mml-fig14",
            0.8,
            |setup, sender, _| setup == Setup::ZonedSnoop && sender == Sender::Reno,
            "Reno, 512k: zoned + SNOOP over zoned: 3.20 times, not at least 3.5",
        ),
        (
            "mml-fig14",
            0.45,
            |setup, sender, _| setup == Setup::ZonedSnoop && sender == Sender::Cubic,
            "CUBIC + SACK, 512k: zoned + SNOOP over zoned: 1.80 times, not at least 2",
        ),
        (
            "mml-fig14",
            0.25,
            |setup, _, errors| setup == Setup::ZonedSnoop && errors == 64 << 10,
            "Reno, 64k: zoned + SNOOP over none: 0.94 times, not at least 1.5",
        ),
        (
            "mml-fig14",
            0.94,
            |setup, sender, _| setup == Setup::ZonedSnoop && sender == Sender::Bbr,
            "BBR, 64k: median of zoned + SNOOP over zoned: 0.94 times, not at least 0.95",
        ),
        (
            "mml-fig12",
            0.2,
            |setup, _, _| setup == Setup::Snoop,
            "Reno, 512k: SNOOP over none: 0.80 times, not at least 1.5",
        ),
        (
            "mml-fig15",
            0.4,
            |setup, _, _| setup == Setup::ZonedSnoop,
            "Reno: octets of zoned + SNOOP over IPsec: 1.56 times, not at least 2",
        ),
        (
            "mml-fig16",
            0.5,
            |setup, _, _| setup == Setup::Snoop,
            "Reno: mean window of SNOOP over none: 2.11 times, not at least 3",
        ),
    ];
    for (name, factor, is_slow, reason) in violations {
        let figure = figure(name);
        let report = judged(
            &format!("violated-{factor}-{}", reason.len()),
            figure,
            |cell| {
                let condition = cell.condition;
                let slow = is_slow(condition.setup, condition.sender, condition.one_error_in);
                as_claimed(cell) * if slow { factor } else { 1.0 }
            },
        );
        assert_eq!(report.verdict, Verdict::Fails);
        let reasons = &report.reasons;
        assert!(reasons.iter().any(|r| r == reason), "{reason}: {reasons:?}");
    }
}

/// Dynamic levels that change nothing but the number of encrypted octets, with the reason of each
/// finding.
#[test]
fn levels_that_win_nothing_fail_every_finding() {
    let figure = figure("mml-fig17");
    let report = judged("levels", figure, |_| 1.8e6);
    assert_eq!(report.verdict, Verdict::Fails);
    assert_eq!(report.reasons.len(), 6);
    let reason = "others plaintext: no packet encrypted over every packet encrypted: 1.00 times, not at least 1.035";
    assert!(
        report.reasons.iter().any(|r| r == reason),
        "{:?}",
        report.reasons
    );
}

#[test]
fn a_figure_has_its_files_and_the_report_is_read_back() {
    let folder = Folder::new("files");
    let figure = figure("mml-fig15");
    fill(&folder.0, figure, as_claimed);
    let reports = run(&[Exhibit::Figure(figure)], &options(&folder.0)).unwrap();
    let place = folder.0.join(figure.name);
    for name in ["cells.csv", "traces.csv", FILE] {
        assert!(place.join(name).is_file(), "{name}");
    }
    assert_eq!(reports[0].plots.len(), 3);
    for name in &reports[0].plots {
        let svg = fs::read_to_string(place.join(name)).unwrap();
        assert!(
            svg.starts_with("<svg") && svg.contains("zoned + SNOOP"),
            "{name}"
        );
    }
    // Not compared as a whole: a number may differ in its last digit after a round trip.
    let read = Report::read_all(&folder.0).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(points(&read[0]), points(&reports[0]));
    assert_eq!(points(&read[0]), 15);
    assert_eq!(read[0].plots, reports[0].plots);
    assert_eq!(read[0].environment, reports[0].environment);
}

#[test]
fn cells_of_one_figure_serve_another() {
    let folder = Folder::new("shared");
    fill(&folder.0, figure("mml-fig14"), as_claimed);
    let others = ["mml-fig12", "mml-fig15", "mml-fig16"].map(|name| Exhibit::Figure(figure(name)));
    // If a cell were missing, this would need a network.
    let reports = run(&others, &options(&folder.0)).unwrap();
    assert!(
        reports
            .iter()
            .all(|report| report.verdict == Verdict::Holds)
    );
}

/// A table without a measurement. Its second number is missing if zones are disabled.
const TABLE: Table = Table {
    name: "a-table",
    title: "",
    claims: &[],
    setting: "",
    duration: |_| Duration::ZERO,
    rests_on: &[Basis::Zones],
    check: || Ok(()),
    measure: |plan| {
        let number: Option<i64> = plan.zones.then_some(19);
        let faults = number.is_none().then(|| "one is missing".to_owned());
        Raw::new(&number, faults.into_iter().collect())
    },
    judge: |raw| {
        let number = raw.data()?;
        let estimate = Estimate {
            value: 1.0,
            interval: None,
            runs: 1,
        };
        Ok(Filled {
            grid: Grid {
                columns: vec![Column::new("", "octets"), Column::new("measured", "added")],
                rows: vec![Row {
                    subject: "a suite".to_owned(),
                    name: "IPv4".to_owned(),
                    numbers: vec![Some(40), number],
                }],
            },
            findings: vec![Finding::at_least("", 1.0, Some(estimate))],
            faults: Vec::new(),
            plots: Vec::new(),
        })
    },
};

#[test]
fn a_table_has_its_files_beside_those_of_a_figure_and_is_read_back() {
    let folder = Folder::new("table");
    let figure = figure("mml-fig15");
    fill(&folder.0, figure, as_claimed);
    let both = [Exhibit::Table(&TABLE), Exhibit::Figure(figure)];
    let reports = run(&both, &options(&folder.0)).unwrap();
    let names: Vec<_> = reports.iter().map(|report| &*report.figure).collect();
    assert_eq!(names, [TABLE.name, figure.name]);
    assert_eq!(reports[0].verdict, Verdict::Holds);
    assert!(reports[0].body().contains("      40      19"));
    let csv = fs::read_to_string(folder.0.join(TABLE.name).join("rows.csv")).unwrap();
    assert_eq!(
        csv,
        "subject,name,octets,measured_added\na suite,IPv4,40,19\n"
    );
    let read = Report::read_all(&folder.0).unwrap();
    assert_eq!(read[0], reports[0]);
    assert!(matches!(read[1].evidence, Evidence::Downloads { .. }));
}

#[test]
fn a_wrong_number_fails_a_table_whatever_its_findings_are() {
    let folder = Folder::new("fault");
    let mut options = options(&folder.0);
    options.plan.zones = false;
    let reports = run(&[Exhibit::Table(&TABLE)], &options).unwrap();
    assert_eq!(reports[0].verdict, Verdict::Fails);
    assert_eq!(reports[0].reasons, ["one is missing"]);
    assert_eq!(Report::read_all(&folder.0).unwrap(), reports);
}

#[test]
fn what_does_not_matter_cannot_be_left_off() {
    let folder = Folder::new("control");
    let refusal = |exhibit: Exhibit, leave_off: fn(&mut Options)| {
        let mut options = options(&folder.0);
        leave_off(&mut options);
        run(&[exhibit], &options).unwrap_err().message
    };
    let table = refusal(Exhibit::Table(&TABLE), |options| options.plan.snoop = false);
    assert!(table.starts_with("a-table does not rest on"), "{table}");
    let plain = Exhibit::Table(&Table {
        rests_on: &[Basis::Bindings],
        ..TABLE
    });
    let plain = refusal(plain, |options| options.plan.zones = false);
    assert!(plain.starts_with("a-table does not rest on"), "{plain}");
    let zoned = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.simultaneous = false;
    });
    assert!(zoned.ends_with("--no-simultaneous leaves off"), "{zoned}");
    let kept = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.resumption = false;
    });
    assert!(kept.ends_with("--no-resumption leaves off"), "{kept}");
    let still = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.mobike = false;
    });
    assert!(still.ends_with("--no-mobike leaves off"), "{still}");
    let tunnelled = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.transport = false;
    });
    assert!(
        tunnelled.ends_with("--no-transport leaves off"),
        "{tunnelled}"
    );
    let hard = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.clones = false;
    });
    assert!(hard.ends_with("--no-clones leaves off"), "{hard}");
    let single = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.paths = false;
    });
    assert!(single.ends_with("--no-paths leaves off"), "{single}");
    let clear = refusal(Exhibit::Table(&TABLE), |options| {
        options.plan.tunnels = false;
    });
    assert!(clear.ends_with("--no-tunnels leaves off"), "{clear}");
    let repaired = Exhibit::Figure(figure("mml-fig15"));
    let repaired = refusal(repaired, |options| options.plan.zones = false);
    assert!(
        repaired.starts_with("mml-fig15 does not rest on"),
        "{repaired}"
    );
    let levels = Exhibit::Figure(figure("mml-fig17"));
    let levels = refusal(levels, |options| options.plan.snoop = false);
    assert!(levels.starts_with("mml-fig17 does not rest on"), "{levels}");
}
