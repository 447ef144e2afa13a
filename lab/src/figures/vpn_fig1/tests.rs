use super::trial::Work;
use super::*;
use crate::experiment::Finding;
use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

/// What is made up of the servers with IPsec, compared with native TCP.
#[derive(Clone, Copy)]
struct Made {
    /// Time of a transfer by Strata and by strongSwan.
    times: [f64; 2],
    /// Processor time of the gateway.
    work: f64,
    /// Power of the number of clients that the time of a transfer grows by: 1 is the law.
    power: f64,
}

const GOOD: Made = Made {
    times: [2.0, 4.0],
    work: 3.0,
    power: 1.0,
};

/// All without tunnels.
const CLEAR: Made = Made {
    times: [1.0; 2],
    work: 1.0,
    power: 1.0,
};

fn made(plan: &Plan, made: Made) -> Measured {
    let mut measured = empty(plan);
    measured.debug = false;
    let octets = measured.octets as f64;
    for cell in &mut measured.cells {
        let (time, work) = match cell.server {
            Server::Native => (1.0, 1.0),
            Server::Strata => (made.times[0], made.work),
            Server::Strongswan => (made.times[1], made.work),
        };
        let clients = cell.clients as f64;
        let trial = |round: u64| {
            // A machine that is slower in each round is so for all.
            let time = time * (1.0 + round as f64 / 100.0) * clients.powf(made.power);
            let web = octets * clients * 0.4e-9;
            Trial {
                round,
                times: vec![time; cell.clients],
                work: Work {
                    web,
                    daemon: (work - 1.0) * web,
                },
            }
        };
        let rounds = 1..=rounds(plan);
        let its = rounds.filter(|round| clients_of(cell, plan, *round));
        cell.trials = its.map(trial).collect();
    }
    measured.cryptography = vec![0.3; 3];
    measured
}

fn clients_of(cell: &Cell, plan: &Plan, round: u64) -> bool {
    clients(cell.link, plan, round).contains(&cell.clients)
}

fn named(findings: &[Finding], part: &str) -> Vec<Verdict> {
    let named = findings.iter().filter(|one| one.what.contains(part));
    named.map(|one| one.verdict).collect()
}

fn verdicts(plan: &Plan, of: Made, part: &str) -> Vec<Verdict> {
    named(&judged(&made(plan, of)).findings, part)
}

#[test]
fn ipsec_that_takes_longer_than_native_tcp_and_less_than_strongswans_holds() {
    for plan in [Plan::QUICK, Plan::FULL] {
        let all = verdicts(&plan, GOOD, "");
        assert!(
            all.iter().all(|one| matches!(one, Holds | Consistent)),
            "{all:?}"
        );
    }
    assert_eq!(verdicts(&Plan::FULL, GOOD, "single/N"), [Holds; 3 * 6]);
    assert_eq!(
        verdicts(&Plan::FULL, GOOD, "over strongSwan"),
        [Holds; 7 + 3]
    );
}

/// So it is with `--no-tunnels`.
#[test]
fn transfers_in_clear_grow_no_faster_and_take_no_more_work() {
    let findings = judged(&made(&Plan::QUICK, CLEAR)).findings;
    assert_eq!(named(&findings, "growth of the time"), [Fails; 4]);
    assert_eq!(
        named(&findings, "processor time of the gateway"),
        [Fails; 4]
    );
    assert_eq!(named(&findings, findings::FULL), [Fails]);
    assert_eq!(named(&findings, findings::CRYPTOGRAPHY), [Fails]);
}

#[test]
fn clients_that_do_not_share_what_a_single_one_has_fail() {
    for power in [0.5, 1.5] {
        let all = verdicts(&Plan::QUICK, Made { power, ..GOOD }, "single/N");
        assert_eq!(all, [Fails; 3 * 2], "{power}");
    }
}

#[test]
fn a_gateway_that_is_slower_than_strongswans_fails() {
    let slow = Made {
        times: [4.0, 2.0],
        ..GOOD
    };
    assert_eq!(verdicts(&Plan::QUICK, slow, "over strongSwan"), [Fails; 5]);
    assert_eq!(verdicts(&Plan::QUICK, slow, "growth"), [Holds; 4]);
}

#[test]
fn what_was_not_measured_fails() {
    let findings = judged(&complete(Measured::default())).findings;
    assert!(findings.iter().all(|one| one.verdict == Fails));
}

/// A debug build is slow in Rust, and strongSwan's C is not.
#[test]
fn a_debug_build_is_compared_with_native_tcp_alone() {
    let mut measured = made(&Plan::QUICK, GOOD);
    measured.debug = true;
    let findings = judged(&measured).findings;
    for part in ["over strongSwan", findings::FULL, findings::CRYPTOGRAPHY] {
        assert_eq!(named(&findings, part), []);
    }
    assert_eq!(named(&findings, "over native TCP"), [Holds; 4 + 4]);
}

#[test]
fn twenty_five_rounds_of_few_clients_have_five_of_the_most() {
    let measured = made(&Plan::FULL, GOOD);
    for (clients, trials) in [(1, 25), (FEW, 25), (MOST, 5)] {
        let cell = measured.cell(Link::Gigabit, Server::Strata, clients);
        assert_eq!(
            cell.map(|cell| cell.trials.len()),
            Some(trials),
            "{clients}"
        );
    }
}

#[test]
fn a_pair_is_of_one_round() {
    let mut measured = made(&Plan::QUICK, GOOD);
    let slowest = |cell: &Cell| cell.server == Server::Strata && cell.clients == FEW;
    for cell in measured.cells.iter_mut().filter(|cell| slowest(cell)) {
        cell.trials.remove(0);
    }
    let findings = judged(&measured).findings;
    let of = |part: &str| findings.iter().find(|one| one.what.contains(part));
    let growth = of("1 Gb/s: growth of the time with each client, Strata").unwrap();
    let growth = growth.measured.unwrap();
    assert_eq!(growth.runs, 2);
    assert!((growth.value - 2.0).abs() < 1e-9, "{growth:?}");
}

#[test]
fn a_row_has_its_times_and_its_work() {
    let mut measured = made(&Plan::QUICK, GOOD);
    measured.octets = 1_000_000;
    let cell = measured.cell(Link::Gigabit, Server::Strata, 3).cloned();
    let mut cell = cell.unwrap();
    cell.trials.truncate(1);
    cell.trials[0].times = vec![1.0, 2.0, 4.0];
    cell.trials[0].work = Work {
        web: 0.3,
        daemon: 2.7,
    };
    let row = measured.row(&cell);
    assert_eq!(row.name, "3 clients");
    assert_eq!(row.subject, "1 Gb/s, Strata");
    // The single client has 1000 kB in 2.02 s.
    let numbers = [1, 4000, 4000, 429, 250, 1000, 2597, 1_000_000, 90, 75];
    assert_eq!(row.numbers, numbers.map(Some));
}

/// 0.3 ns an octet are 26.7 Gb/s, of 0.8 ns of the daemon, and of 1.2 ns with the web server.
#[test]
fn the_gateway_is_bound_by_more_than_its_cryptography() {
    let measured = made(&Plan::QUICK, GOOD);
    let findings = judged(&measured).findings;
    let of = |what: &str| findings.iter().find(|one| one.what == what).unwrap();
    let value = |what: &str| of(what).measured.unwrap().value.round();
    assert_eq!(value(findings::CRYPTOGRAPHY), 38.0);
    assert_eq!(value(findings::FULL), 6667.0);
    let detail = of(findings::FULL).detail.as_deref();
    assert_eq!(detail, Some("the cryptography alone: 26667"));
    let alone = measured.row_of_cryptography();
    assert_eq!(alone.numbers[7], Some(300));
}

#[test]
fn each_link_has_its_times_and_its_throughput_with_the_law() {
    let filled = judged(&made(&Plan::FULL, GOOD));
    let names: Vec<_> = filled.plots.iter().map(|plot| plot.name.as_str()).collect();
    let expected = [
        "time-gigabit",
        "throughput-gigabit",
        "time-unlimited",
        "throughput-unlimited",
    ];
    assert_eq!(names, expected);
    assert!(filled.plots[1].svg().unwrap().contains("Strata, single/N"));
    assert_eq!(filled.grid.rows.len(), 3 * (7 + 3) + 1);
}
