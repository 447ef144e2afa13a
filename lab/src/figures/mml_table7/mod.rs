//! Table 7 of "Mobile multi-layered IPsec": the time that a licensed node works on a packet.

use super::cost::{Proxy, nanoseconds, readable, shape};
use crate::bare::{Ends, Node, Shape, segment};
use crate::experiment::{
    Basis, Claim, Column, Filled, Finding, Grid, Plan, Raw, Row, Table, median, median_ratio,
};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "mml-table7",
    title: "Time that a licensed node works on a packet: opening its headers, and SNOOP",
    claims: &[
        Claim {
            says: "The node opens the first zone in the time in which an end opens both, nearly.",
            judged_by: &[
                "time of an end that opens both zones over that of the node that opens one",
            ],
        },
        Claim {
            says: "SNOOP takes a third of that.",
            judged_by: &["time of SNOOP for a data segment over that of opening the first zone"],
        },
        Claim {
            says: "The wireless link is the bottleneck, not the node.",
            judged_by: &["time on the link over that of the node, opening and SNOOP"],
        },
    ],
    setting: "TCP segments of 1380 octets, sealed in two zones of AES-128-GCM, are opened by the \
              code that a licensed node runs, with its replay window, and by that of an end; SNOOP \
              is shown the same segments and an acknowledgement of each. All in turns, in memory, \
              in nanoseconds of processor time of one packet, the median of the rounds. The time \
              on the link is computed from the sealed packet with UDP and IP header. In the paper \
              the node takes 42 µs, an end 44, SNOOP 13, and the link 547. The paper's 547 µs are \
              those of a function, and less than a packet of 137 octets takes at 2 Mb/s.",
    duration: |quick| ROUND * rounds(quick),
    rests_on: &[Basis::Zones],
    check: || Ok(()),
    measure: |plan| Raw::from_result(measure(plan)),
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?)),
};

const OCTETS: usize = 1380;
/// Octets of the UDP and IPv4 headers around a sealed packet.
const OUTER: usize = 28;
/// Rate of the paper's wireless link.
const BITS_PER_SECOND: f64 = 2e6;

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_millis(1);

const fn rounds(quick: bool) -> u32 {
    if quick { 200 } else { 2000 }
}

/// Times of the paper, in nanoseconds.
const PAPER_OPENING: i64 = 42_000;
const PAPER_END: i64 = 44_000;
const PAPER_SNOOP: i64 = 13_000;
const PAPER_LINK: i64 = 547_000;

/// Times of one round, in nanoseconds per packet.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Round {
    /// Opening at the node, and at the end.
    node: f64,
    end: f64,
    /// SNOOP for a segment, and for its acknowledgement.
    data: f64,
    acknowledgement: f64,
    /// Transmission on the link.
    link: f64,
    /// Number of packets that the node could read, and number of all packets.
    read: usize,
    all: usize,
}

fn judged(rounds: &[Round]) -> Filled {
    Filled {
        grid: Grid {
            columns: ["paper", "measured", "longest"]
                .map(|name| Column::new("", name))
                .into(),
            rows: rows(rounds),
        },
        findings: findings(rounds),
        faults: Vec::new(),
        plots: Vec::new(),
    }
}

fn measure(plan: &Plan) -> Result<Vec<Round>> {
    let mut ends = Ends::new(shape(plan), 1)?;
    let (mut node, mut proxy) = (Node::new(Shape::Two)?, Proxy::new());
    let one = |number| {
        let datagrams = segment::row(OCTETS, number);
        let carried = ends.carry(&datagrams)?;
        let (opening, read) = node.open(&carried.sealed)?;
        let [data, acknowledgement] = proxy.snoop(&datagrams)?;
        let octets = carried.sealed.first().map_or(0, Vec::len) + OUTER;
        Ok(Round {
            node: nanoseconds(opening),
            end: nanoseconds(carried.opening),
            data: nanoseconds(data),
            acknowledgement: nanoseconds(acknowledgement),
            link: (octets * 8) as f64 / BITS_PER_SECOND * 1e9,
            read,
            all: carried.sealed.len(),
        })
    };
    (0..rounds(plan.quick)).map(one).collect()
}

fn rows(rounds: &[Round]) -> Vec<Row> {
    let row = |name: &str, paper: Option<i64>, of: fn(&Round) -> f64| {
        let times: Vec<_> = rounds.iter().map(of).collect();
        let longest = times.iter().copied().max_by(f64::total_cmp);
        let whole = |time: f64| time.round() as i64;
        Row {
            subject: "ns a packet".to_owned(),
            name: name.to_owned(),
            numbers: vec![paper, median(&times).map(whole), longest.map(whole)],
        }
    };
    vec![
        row("an end opens both zones", Some(PAPER_END), |round| {
            round.end
        }),
        row(
            "the node opens the header zone",
            Some(PAPER_OPENING),
            |round| round.node,
        ),
        row("SNOOP, a data segment", Some(PAPER_SNOOP), |round| {
            round.data
        }),
        row("SNOOP, an acknowledgement", Some(PAPER_SNOOP), |round| {
            round.acknowledgement
        }),
        row("the link of 2 Mb/s", Some(PAPER_LINK), |round| round.link),
    ]
}

fn findings(rounds: &[Round]) -> Vec<Finding> {
    let ratio = |above: fn(&Round) -> f64, below: fn(&Round) -> f64| {
        let pairs: Vec<_> = rounds
            .iter()
            .map(|round| (above(round), below(round)))
            .collect();
        median_ratio(&pairs)
    };
    let paper = |above: i64, below: i64| format!("{:.2}", above as f64 / below as f64);
    let count = |of: fn(&Round) -> usize| rounds.iter().map(of).sum::<usize>();
    let (read, all) = (count(|round| round.read), count(|round| round.all));
    vec![
        Finding::at_least(
            "time of an end that opens both zones over that of the node that opens one",
            1.0,
            ratio(|round| round.end, |round| round.node),
        )
        .paper(paper(PAPER_END, PAPER_OPENING)),
        Finding::beside(
            "time of SNOOP for a data segment over that of opening the first zone",
            paper(PAPER_SNOOP, PAPER_OPENING),
            ratio(|round| round.data, |round| round.node),
        ),
        Finding::beside(
            "time on the link over that of the node, opening and SNOOP",
            "more than 1",
            ratio(|round| round.link, |round| round.node + round.data),
        ),
        readable(read, all),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;

    const GOOD: Round = Round {
        node: 200.0,
        end: 300.0,
        data: 100.0,
        acknowledgement: 100.0,
        link: 5_000_000.0,
        read: 64,
        all: 64,
    };

    fn verdicts(round: Round) -> Vec<Verdict> {
        let findings = findings(&[round; 3]);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_node_that_works_more_than_an_end_or_reads_nothing_fails() {
        use Verdict::{Consistent, Fails, Holds};
        assert_eq!(verdicts(GOOD), [Holds, Consistent, Consistent, Holds]);
        let slow = Round {
            node: 301.0,
            ..GOOD
        };
        assert_eq!(verdicts(slow), [Fails, Consistent, Consistent, Holds]);
        assert_eq!(verdicts(Round { read: 63, ..GOOD })[3], Fails);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert!(
            findings(&[])
                .iter()
                .all(|finding| finding.verdict == Verdict::Fails)
        );
    }
}
