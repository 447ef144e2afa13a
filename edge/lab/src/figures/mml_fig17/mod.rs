//! Figure 17 of "Mobile multi-layered IPsec": throughput where every so many-th packet is encrypted.

use super::level::{Lengths, PAYLOAD, filled, measure, of, ratio};
use crate::experiment::{Column, Filled, Finding, Plan, Table};
use std::time::Duration;

/// The figure.
pub const TABLE: Table = Table {
    name: "mml-fig17",
    title: "Throughput of dynamic MML-IPsec, by how many packets are encrypted",
    claim: "When all packets are encrypted the throughput is about 1.25 Mb/s; it increases as fewer are.",
    setting: "A gateway's worker seals TCP segments of 1380 octets in memory, every so many-th in two zones of \
              AES-128-GCM and all others authenticated alone, and its peer opens them. Throughput is what TCP \
              carries of 2 Mb/s, the paper's wireless link, by the octets of each packet with UDP and IPv4; \
              acknowledgements and losses, of which its absolute number is made, are not rebuilt. The paper's \
              other packets are plaintext, which this suite never sends: that column is computed, as if those \
              segments had gone around the tunnel.",
    duration: |_| Duration::from_secs(1),
    zones: true,
    check: || Ok(()),
    fill,
};

/// Of the wireless link, in kb/s.
const RATE: f64 = 2000.0;

fn fill(plan: &Plan) -> Filled {
    let (lengths, faults) = measure(plan);
    let numbers = |lengths: &Lengths| {
        let there = (lengths.every == 1).then_some(1250);
        let [here, plaintext] = [lengths.here, lengths.plaintext].map(throughput);
        vec![
            there,
            Some(here.round() as i64),
            Some(plaintext.round() as i64),
        ]
    };
    let columns = vec![
        Column::new("paper", "kb/s"),
        Column::new("here", "kb/s"),
        Column::new("plaintext", "kb/s"),
    ];
    let findings = findings(&lengths);
    filled("2 Mb/s", columns, (&lengths, faults), numbers, findings)
}

/// What TCP carries, in kb/s.
fn throughput(octets: f64) -> f64 {
    RATE * PAYLOAD as f64 / octets
}

fn findings(lengths: &[Lengths]) -> Vec<Finding> {
    let of = |every| of(lengths, every).map(|lengths| throughput(lengths.here));
    [(2, 1), (5, 2), (10, 5), (0, 10)]
        .map(|(fewer, more)| {
            let [above, below] = [fewer, more].map(super::level::name);
            let what = format!("throughput with {above} over that with {below}");
            Finding::at_least(what, 1.0001, ratio(of(fewer), of(more)))
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::level::verdicts;
    use super::*;
    use crate::experiment::Verdict::{Fails, Holds};

    #[test]
    fn throughput_grows_as_fewer_packets_are_encrypted_and_without_zones_the_verdict_fails() {
        assert_eq!(verdicts(fill, true), [Holds; 4]);
        assert_eq!(verdicts(fill, false), [Fails; 4]);
        assert!(findings(&[]).iter().all(|finding| finding.verdict == Fails));
    }
}
