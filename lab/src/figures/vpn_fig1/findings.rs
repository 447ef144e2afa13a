//! Claims about the figure, and its numbers beside the paper's.

use super::FEW;
use super::cell::{Cell, Measured, counted, spread};
use super::server::{Link, Server};
use super::trial::{Trial, Work};
use crate::experiment::{Finding, extremes, median, median_ratio};

/// Least ratios of IPsec over native TCP: growth of the time with each client, for links that
/// native TCP fills and for those that nothing does, and processor time of the gateway for an
/// octet.
const GROWTH: [(Link, f64); 2] = [(Link::Gigabit, 1.02), (Link::Unlimited, 1.5)];
const WORK: f64 = 1.5;

/// Least ratio of the lesser to the larger of a client's throughput and what the law has. Clients
/// that TCP favours finish early, which raises the mean of all.
const CLOSE: f64 = 2.0 / 3.0;

/// Numbers of clients with their throughput in the paper, in kB/s. That of 25 is by the law.
const PAPER: [(usize, f64); 2] = [(FEW, 375.0), (super::MOST, 88.0)];

/// Rate of all clients of the paper's server together, in Mb/s.
const TOGETHER: &str = "6 x 375 kB/s = 18";

/// Share of the cryptography in the work for ESP, in the paper's earlier study, in percent.
const SHARE: &str = "34 to 55";

/// Names of the findings about what bounds the gateway.
pub(super) const FULL: &str = "rate at which the processor of Strata's gateway is full";
pub(super) const CRYPTOGRAPHY: &str = "cryptography alone, of the work of Strata's gateway";

/// Returns all findings. Only a release build is compared with strongSwan and with cryptography.
pub(super) fn all(measured: &Measured) -> Vec<Finding> {
    let mut all = growth(measured);
    all.extend(law(measured));
    all.extend(throughput(measured));
    all.extend(work(measured));
    if !measured.debug {
        all.extend(against_strongswan(measured));
        all.extend(bounds(measured));
    }
    all
}

/// Claims that each further client costs more time with IPsec.
fn growth(measured: &Measured) -> Vec<Finding> {
    let of = |(link, bound), server: Server| {
        let ends = |server| [1, FEW].map(|clients| measured.cell(link, server, clients));
        let growth = |server| {
            let [single, few] = ends(server);
            measured.pairs([few, single], |few, single| {
                (few.round, few.time() - single.time())
            })
        };
        let native = growth(Server::Native);
        let pairs = growth(server).into_iter().filter_map(|(round, grown)| {
            let (_, native) = native.iter().find(|(other, _)| *other == round)?;
            Some((grown, *native))
        });
        let pairs: Vec<_> = pairs.collect();
        let what = format!(
            "{}: growth of the time with each client, {} over native TCP",
            link.name(),
            server.name()
        );
        Finding::at_least(what, bound, median_ratio(&pairs))
    };
    let each = |bound| Server::PROTECTED.map(|server| of(bound, server));
    GROWTH.into_iter().flat_map(each).collect()
}

/// Claims that clients share what a single one has, on links that bound native TCP as the paper's.
fn law(measured: &Measured) -> Vec<Finding> {
    let is_shared = |cell: &&Cell| cell.link == Link::Gigabit && cell.clients > 1;
    let shared = measured.cells.iter().filter(is_shared);
    let finding = |cell: &Cell| {
        let over = measured.over_law(cell);
        let close: Vec<_> = over
            .iter()
            .map(|over| (over.min(1.0 / over), 1.0))
            .collect();
        let what = format!(
            "{}, {}, {}: throughput of each beside single/N",
            cell.link.name(),
            cell.server.name(),
            counted(cell.clients)
        );
        let finding = Finding::at_least(what, CLOSE, median_ratio(&close));
        match (median(&over), extremes(&over)) {
            (Some(middle), Some([least, most])) => finding.detail(format!(
                "measured over the law: {middle:.3}, from {least:.3} to {most:.3}"
            )),
            _ => finding,
        }
    };
    shared.map(finding).collect()
}

/// Shows the throughput of each client beside the paper's.
fn throughput(measured: &Measured) -> Vec<Finding> {
    let link = Link::Gigabit;
    let beside = |server: Server| {
        PAPER.map(|(clients, paper)| {
            let cell = measured.cell(link, server, clients);
            let each = cell.and_then(|cell| cell.bar(|trial| trial.each(measured.octets) / 1e3));
            let what = format!(
                "{}, {}, {}: throughput of each",
                link.name(),
                server.name(),
                counted(clients)
            );
            (cell, Finding::quantity(what, "kB/s", paper, each))
        })
    };
    let all = Server::PROTECTED.into_iter().flat_map(beside);
    all.filter_map(|(cell, finding)| cell.map(|_| finding))
        .collect()
}

/// Claims that clients of Strata's gateway are at least as fast.
fn against_strongswan(measured: &Measured) -> Vec<Finding> {
    let of = |link: Link, clients: usize| {
        let cells = Server::PROTECTED.map(|server| measured.cell(link, server, clients));
        let octets = measured.octets;
        let pairs = measured.pairs(cells, |ours, theirs| {
            (ours.each(octets), theirs.each(octets))
        });
        let what = format!(
            "{}, {}: throughput, Strata over strongSwan",
            link.name(),
            counted(clients)
        );
        Finding::at_least(what, 1.0, median_ratio(&pairs))
    };
    let over = |link| {
        let clients = measured.clients(link).into_iter();
        clients.map(move |clients| of(link, clients))
    };
    Link::ALL.into_iter().flat_map(over).collect()
}

/// Claims that IPsec makes a gateway compute for longer.
fn work(measured: &Measured) -> Vec<Finding> {
    let of = |link: Link, server: Server| {
        let cells = [server, Server::Native].map(|server| measured.cell(link, server, FEW));
        let pairs = measured.pairs(cells, |ipsec, native| (ipsec.work.all(), native.work.all()));
        let what = format!(
            "{}, {}: processor time of the gateway, {} over native TCP",
            link.name(),
            counted(FEW),
            server.name()
        );
        Finding::at_least(what, WORK, median_ratio(&pairs))
    };
    let each = |link| Server::PROTECTED.map(|server| of(link, server));
    Link::ALL.into_iter().flat_map(each).collect()
}

/// Shows the rate at which Strata's gateway fills its processor, and what the cryptography alone is
/// of the daemon's work, both without a limit.
fn bounds(measured: &Measured) -> [Finding; 2] {
    let cell = measured.cell(Link::Unlimited, Server::Strata, FEW);
    let octets = measured.octets as f64 * FEW as f64;
    let alone = median(&measured.cryptography);
    // In clear, the daemon has next to nothing to do.
    let is_protected = |trial: &&Trial| trial.work.daemon > trial.work.web;
    let of = |value: &dyn Fn(Work) -> f64| {
        let trials = cell?.trials.iter().filter(is_protected);
        let all: Vec<_> = trials.map(|trial| value(trial.work)).collect();
        spread(&all)
    };
    let rate = of(&|work| octets * 8.0 / 1e6 / work.all());
    let share = alone.and_then(|alone| of(&|work| alone * octets / 1e9 / work.daemon * 100.0));
    let full = Finding::quantity(FULL, "Mb/s", TOGETHER, rate);
    [
        match alone {
            Some(alone) => full.detail(format!("the cryptography alone: {:.0}", 8e3 / alone)),
            None => full,
        },
        Finding::quantity(CRYPTOGRAPHY, "%", SHARE, share),
    ]
}
