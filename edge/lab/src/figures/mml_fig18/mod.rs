//! Figure 18 of "Mobile multi-layered IPsec": the overhead if every n-th packet is encrypted.

use super::level::{Lengths, filled, measure, of, ratio};
use crate::experiment::{Basis, Column, Filled, Finding, Plan, Table};
use std::time::Duration;

/// The figure.
pub const TABLE: Table = Table {
    name: "mml-fig18",
    title: "Overhead of dynamic MML-IPsec, by how many packets are encrypted",
    claim: "If all packets are encrypted the overhead is about 7 % compared to pure IPsec; it decreases as the \
            interval increases, and with every 10th packet it is 0.75 %.",
    setting: "A gateway's worker seals TCP segments of 1380 octets in memory, every so many-th in two zones of \
              AES-128-GCM and all others authenticated alone, and its peer opens them. The paper's other packets are \
              plaintext: that column is computed, as if those segments had gone around the tunnel, as in mml-fig17. \
              Overhead is octets on the wire with UDP and IPv4, in parts of ten thousand: over the same segments of \
              which none is encrypted, which is what the period decides about, and over pure IPsec (ESP with \
              AES-128-GCM and implicit IVs). A packet that is authenticated alone has no padding and no pad length, so \
              it is shorter than that, and the second number becomes negative; so it does with plaintext. The paper \
              does not say what its overhead is made of; in 3DES and on machines of its day time is a part of it. What \
              must hold is that nothing of the overhead remains between the encrypted packets: it shrinks as the period \
              grows, in proportion.",
    duration: |_| Duration::from_secs(1),
    rests_on: Basis::Zones,
    check: || Ok(()),
    fill,
};

fn fill(plan: &Plan) -> Filled {
    let (lengths, faults) = measure(plan);
    let none = of(&lengths, 0).map(|lengths| lengths.here);
    let numbers = |lengths: &Lengths| {
        let there = match lengths.every {
            1 => Some(700),
            10 => Some(75),
            _ => None,
        };
        let parts = |octets: f64, over: f64| ((octets / over - 1.0) * 10_000.0).round() as i64;
        vec![
            there,
            none.map(|none| parts(lengths.here, none)),
            Some(parts(lengths.here, lengths.plain)),
            Some(parts(lengths.plaintext, lengths.plain)),
        ]
    };
    let columns = vec![
        Column::new("paper", "IPsec"),
        Column::new("here", "none"),
        Column::new("here", "IPsec"),
        Column::new("plaintext", "IPsec"),
    ];
    let findings = findings(&lengths);
    filled("1/10000", columns, (&lengths, faults), numbers, findings)
}

fn findings(lengths: &[Lengths]) -> Vec<Finding> {
    let none = of(lengths, 0).map(|lengths| lengths.here);
    let overhead = |every| Some(of(lengths, every)?.here - none?);
    let shrinks = |what: &str, every, bound, paper: Option<&str>| {
        let measured = ratio(overhead(1), overhead(every));
        let finding = Finding::at_least(what, bound, measured);
        match paper {
            Some(paper) => finding.paper(paper),
            None => finding,
        }
    };
    let tenth = "overhead of all packets encrypted over that of every 10th";
    let second = "overhead of all packets encrypted over that of every 2nd";
    let all = of(lengths, 1).map(|lengths| (lengths.here / lengths.plain - 1.0) * 100.0);
    vec![
        shrinks(second, 2, 1.99, None),
        shrinks(tenth, 10, 9.9, Some("9.3")),
        Finding::beside(
            "overhead of all packets encrypted over pure IPsec, in percent",
            7.0,
            ratio(all, Some(1.0)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::level::verdicts;
    use super::*;
    use crate::experiment::Verdict::{Consistent, Fails, Holds};

    #[test]
    fn the_overhead_shrinks_with_the_period_and_without_zones_the_verdict_fails() {
        assert_eq!(verdicts(fill, true), [Holds, Holds, Consistent]);
        assert_eq!(verdicts(fill, false)[..2], [Fails; 2]);
        assert!(findings(&[]).iter().all(|finding| finding.verdict == Fails));
    }
}
