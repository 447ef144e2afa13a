//! What must hold of the figure, and its times beside the paper's.

use super::Subject;
use super::cell::{Cell, Quantity};
use crate::experiment::{Estimate, Finding, median_ratio};
use crate::figures::moves::{Contender, Protection};

/// Ratio by which Strata is faster than the paper, and reacts faster than strongSwan.
const FIFTH: f64 = 5.0;

/// T_IKE in the paper, in milliseconds.
const NEGOTIATION: &str = "250 to 260";

/// Protections of one suite in both modes, with the name of the suite.
const MODES: [(&str, Protection, Protection); 2] = [
    ("ESP", Protection::EspTransport, Protection::EspTunnel),
    ("NULL", Protection::NullTransport, Protection::NullTunnel),
];

/// Returns all findings.
pub(super) fn all(cells: &[Cell]) -> Vec<Finding> {
    let ours = || {
        let ours = |cell: &&Cell| cell.subject().contender == Contender::Strata;
        cells.iter().filter(ours)
    };
    let is_protected = |cell: &&Cell| cell.subject().protection != Protection::None;
    let plain = Subject::strata(Protection::None);
    let protected = ours().filter(is_protected);
    let judged = protected.clone().flat_map(faster_than_the_paper);
    let compared = protected
        .clone()
        .flat_map(|cell| against_strongswan(cells, cell));
    let beside = cells.iter().filter(is_protected).map(negotiation);
    let stalled = ours().filter_map(stalled);
    let added = protected.flat_map(|cell| added(of(cells, plain), cell));
    judged
        .chain(compared)
        .chain(beside)
        .chain(stalled)
        .chain(added)
        .chain(MODES.map(|(suite, transport, tunnel)| modes(cells, suite, [tunnel, transport])))
        .collect()
}

fn of(cells: &[Cell], subject: Subject) -> Option<&Cell> {
    cells.iter().find(|cell| cell.subject() == subject)
}

/// Claims that a set-up takes at most a fifth of the paper's time, and so does stalled traffic.
fn faster_than_the_paper(cell: &Cell) -> Vec<Finding> {
    let over = |quantity: Quantity| {
        let paper = quantity.paper(cell.subject().protection)? * 1e3;
        let pairs: Vec<_> = cell
            .values(quantity)
            .into_iter()
            .map(|one| (paper, one))
            .collect();
        let what = format!(
            "{}: {}, the paper's over this",
            cell.subject().name(),
            quantity.name()
        );
        Some(Finding::at_least(what, FIFTH, median_ratio(&pairs)))
    };
    [Quantity::Ike, Quantity::Stalled]
        .into_iter()
        .filter_map(over)
        .collect()
}

/// Claims that Strata reacts in a fifth of strongSwan's time, and that traffic is stalled for less.
fn against_strongswan(cells: &[Cell], ours: &Cell) -> Vec<Finding> {
    let protection = ours.subject().protection;
    let Some(theirs) = of(cells, Subject::strongswan(protection)) else {
        return Vec::new();
    };
    let over = |quantity: Quantity, bound: f64| {
        let pairs: Vec<_> = theirs
            .values(quantity)
            .into_iter()
            .zip(ours.values(quantity))
            .collect();
        let name = protection.name();
        let what = format!("{name}: {}, strongSwan over Strata", quantity.name());
        Finding::at_least(what, bound, median_ratio(&pairs))
    };
    vec![over(Quantity::System, FIFTH), over(Quantity::Stalled, 1.0)]
}

fn negotiation(cell: &Cell) -> Finding {
    let what = format!("{}: T_IKE", cell.subject().name());
    let middle = middle(&cell.values(Quantity::Ike));
    Finding::quantity(what, "ms", NEGOTIATION, middle)
}

fn stalled(cell: &Cell) -> Option<Finding> {
    let paper = Quantity::Stalled.paper(cell.subject().protection)?;
    let what = format!("{}: T_STALLED", cell.subject().name());
    let middle = middle(&cell.values(Quantity::Stalled));
    Some(Finding::quantity(what, "ms", paper, middle))
}

/// Shows what IPsec adds to a move without it, beside what it adds in the paper.
fn added(plain: Option<&Cell>, cell: &Cell) -> Vec<Finding> {
    let over = |quantity: Quantity, paper: f64| {
        let before = plain.map_or_else(Vec::new, |plain| plain.values(quantity));
        let pairs = cell.values(quantity).into_iter().zip(before);
        let added: Vec<_> = pairs.map(|(with, without)| with - without).collect();
        let what = format!(
            "{}: {} over that without IPsec",
            cell.subject().name(),
            quantity.name()
        );
        Finding::quantity(what, "ms", paper, middle(&added))
    };
    let system = match cell.subject().protection {
        Protection::EspTransport | Protection::NullTransport => 161.85,
        _ => 163.48,
    };
    vec![
        over(Quantity::System, system),
        // 199.587 ms with IPsec, 30.0325 ms without.
        over(Quantity::Stalled, 169.5545),
    ]
}

/// Shows how much longer the system takes in tunnel mode.
fn modes(cells: &[Cell], suite: &str, modes: [Protection; 2]) -> Finding {
    let [tunnel, transport] = modes.map(|protection| {
        let cell = of(cells, Subject::strata(protection));
        cell.map_or_else(Vec::new, |cell| cell.values(Quantity::System))
    });
    let pairs: Vec<_> = tunnel.into_iter().zip(transport).collect();
    let what = format!("{suite}, Strata: T_SYS, tunnel over transport");
    Finding::beside(what, "1.01 to 2.90", median_ratio(&pairs))
}

/// Returns the median of times in microseconds, in milliseconds.
fn middle(values: &[f64]) -> Option<Estimate> {
    let pairs: Vec<_> = values.iter().map(|value| (*value, 1e3)).collect();
    median_ratio(&pairs)
}
