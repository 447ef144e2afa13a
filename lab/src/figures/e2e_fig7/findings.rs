//! What must hold of the figure, and its times beside the paper's.

use super::cell::{Cell, Quantity, Subject, far};
use super::manner::Manner;
use super::{HOT_SPOT, NEAR, Passage};
use crate::experiment::{Estimate, Finding, median_ratio};
use crate::figures::moves::Kind;
use std::time::Duration;

/// Ratio of strongSwan's reaction to ours where an interface is lost, as in figure 6.
const FIFTH: f64 = 5.0;

/// Returns all findings at these distances.
pub(super) fn all(cells: &[Cell], round_trips: &[Duration]) -> Vec<Finding> {
    let at = |round_trip: Duration| Distance { cells, round_trip };
    let distances = || round_trips.iter().copied().map(at);
    let judged = distances().flat_map(|one| one.judged());
    let is_near = |one: &Distance<'_>| one.round_trip == NEAR;
    let beside = distances().filter(is_near).flat_map(|one| one.beside());
    judged.chain(beside).collect()
}

/// The cells at one distance.
struct Distance<'a> {
    cells: &'a [Cell],
    round_trip: Duration,
}

impl Distance<'_> {
    fn of(&self, subject: Subject) -> Option<&Cell> {
        let its = |cell: &&Cell| cell.subject() == subject && cell.round_trip == self.round_trip;
        self.cells.iter().find(its)
    }

    fn values(&self, subject: Subject, quantity: Quantity) -> Vec<f64> {
        let cell = self.of(subject);
        cell.map_or_else(Vec::new, |cell| cell.values(quantity))
    }

    /// Returns the ratio of the medians of two subjects, paired move by move.
    fn ratio(&self, above: Subject, below: Subject, quantity: Quantity) -> Option<Estimate> {
        let values = |subject| self.values(subject, quantity);
        let pairs: Vec<_> = values(above).into_iter().zip(values(below)).collect();
        median_ratio(&pairs)
    }

    /// Claims how MOBIKE-X moves.
    fn judged(&self) -> Vec<Finding> {
        let mut findings = vec![self.loses_nothing()];
        for kind in Kind::ALL {
            let fastest = match kind {
                Kind::Mobility => 1.0,
                Kind::Multihoming => FIFTH,
            };
            findings.push(self.against_strongswan(kind, Quantity::System, fastest));
            findings.push(self.against_strongswan(kind, Quantity::Stalled, 1.0));
        }
        if self.round_trip == HOT_SPOT {
            findings.extend([self.live_paths(), self.loses()]);
        }
        findings
    }

    fn against_strongswan(&self, kind: Kind, quantity: Quantity, bound: f64) -> Finding {
        let [theirs, ours] =
            [Manner::Strongswan, Manner::Transport].map(|one| Subject::new(one, kind));
        let what = format!(
            "{}, {}: {}, strongSwan's MOBIKE over transport mode",
            kind.name(),
            far(self.round_trip),
            quantity.name()
        );
        Finding::at_least(what, bound, self.ratio(theirs, ours, quantity))
    }

    /// Claims that a lost interface stalls traffic for less than two round trips if the other one
    /// carries packets already. A move takes two: the update, and the check of the new address.
    fn live_paths(&self) -> Finding {
        let allowed = (self.round_trip * 2).as_secs_f64() * 1e6;
        let lost = Subject::new(Manner::LivePaths, Kind::Multihoming);
        let silences = self.values(lost, Quantity::Stalled).into_iter();
        let pairs: Vec<_> = silences.map(|silence| (allowed, silence)).collect();
        let what = format!(
            "live paths, {}: two round trips over T_STALLED",
            far(self.round_trip)
        );
        Finding::at_least(what, 1.0, median_ratio(&pairs))
    }

    /// Claims that no soft hand-over loses a datagram.
    fn loses_nothing(&self) -> Finding {
        let cell = self.of(Subject::new(Manner::Soft, Kind::Multihoming));
        let moves = cell.map_or(&[][..], |cell| &cell.moves);
        let is_whole = |one: &&Passage| one.lost == [Some(0.0); 2];
        let (whole, all) = (moves.iter().filter(is_whole).count(), moves.len());
        let share = (all > 0).then(|| Estimate {
            value: whole as f64 / all as f64,
            interval: None,
            runs: all,
        });
        let what = format!(
            "soft hand-over, {}: moves that lose no datagram, over all",
            far(self.round_trip)
        );
        Finding::at_least(what, 1.0, share).detail(format!("{whole} of {all}"))
    }

    /// Claims that a hard hand-over loses datagrams; otherwise there would be nothing to gain.
    fn loses(&self) -> Finding {
        let what = format!(
            "transport mode, multihoming, {}: lost, to the node",
            far(self.round_trip)
        );
        let moves = Subject::new(Manner::Transport, Kind::Multihoming);
        let lost = self.values(moves, Quantity::Lost);
        Finding::at_least(what, 1.0, middle(&lost, 1.0))
    }

    /// Shows the moves that the paper measures beside its times.
    fn beside(&self) -> Vec<Finding> {
        let its = Subject::PRINTED;
        let far = far(self.round_trip);
        let shown = |quantity: Quantity| {
            let paper = quantity.paper(its, self.round_trip)?;
            let [manner, kind] = [its.manner.name(), its.kind.name()];
            let what = format!("{manner}, {kind}, {far}: {}", quantity.name());
            let middle = middle(&self.values(its, quantity), 1e3);
            Some(Finding::quantity(what, "ms", paper, middle))
        };
        let mobike = |kind| Subject::new(Manner::Mobike, kind);
        let update = Finding::beside(
            format!("{far}: T_UPDATE, transport mode over MOBIKE"),
            "36.6035 / 13.60 = 2.69",
            self.ratio(its, mobike(its.kind), Quantity::Update),
        );
        let stalled = |other: Kind, paper: &str| {
            let ratio = self.ratio(mobike(other), its, Quantity::Stalled);
            let other = other.name();
            let what = format!("{far}: T_STALLED, MOBIKE, {other} over transport mode");
            Finding::beside(what, paper, ratio)
        };
        let times = Quantity::PLOTTED.into_iter().filter_map(shown);
        times
            .chain([
                update,
                stalled(Kind::Mobility, "289.318 / 264 = 1.096"),
                stalled(Kind::Multihoming, "305.9345 / 264 = 1.159"),
            ])
            .collect()
    }
}

/// Returns the median of values, each divided by `unit`.
fn middle(values: &[f64], unit: f64) -> Option<Estimate> {
    let pairs: Vec<_> = values.iter().map(|value| (*value, unit)).collect();
    median_ratio(&pairs)
}
