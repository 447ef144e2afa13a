//! The report as text for a terminal of 80 columns.

use super::paint::bar;
use super::run::Run;
use super::{Node, Report, Setup};
use crate::emulator::Statistics;
use crate::histogram::Quantiles;
use crate::scene::LOSSY_RATE;
use crate::text::paragraph;
use std::fmt;

/// Width of the column of setup names.
const LABEL: usize = 15;

/// Length of the longest bar, in characters.
const BAR: usize = 16;

impl Report {
    /// Returns everything but the verdict.
    pub fn body(&self) -> String {
        [
            self.conditions(),
            self.table(),
            self.legend(),
            self.sights(),
            self.punctuality(),
        ]
        .join("\n")
    }

    /// Returns the requirement, the measurement, and the reasons of a failure.
    pub fn verdict(&self) -> String {
        let needed = self.gain_needed;
        let payload = match self.payload_licensed {
            true => "the payload, licensed by name, is found in the licensed node",
            false => "the licensed node has no octet of the payload",
        };
        if let (true, Some(gain)) = (self.passed, self.gain) {
            let measured = format!(
                "PASSED: with SNOOP the zoned download is {gain:.2} times as fast as without \
                 (required: {needed}), and {payload}."
            );
            return paragraph("", 0, &measured);
        }
        let required = format!(
            "FAILED: required is that with SNOOP the zoned download is at least {needed} times as \
             fast as without, and that {payload}. But:"
        );
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|reason| paragraph("  *", 4, reason));
        paragraph("", 0, &required) + &reasons.collect::<String>()
    }

    fn conditions(&self) -> String {
        let errors = match self.one_error_in {
            0 => "no bit errors".to_owned(),
            bits => format!("one bit error in {bits}"),
        };
        let text = format!(
            "A mobile node downloads for {} s from a server behind its gateway: over a lossy hop \
             ({} Mb/s, 1 ms, {errors}), the licensed node, and a wired hop (100 ms each way). \
             TCP is Reno without SACK. Seed {}.",
            self.seconds,
            LOSSY_RATE / 1_000_000,
            self.seed
        );
        paragraph("", 0, &text)
    }

    fn table(&self) -> String {
        let mut table = line(["", "", "", "times", "packets", "", "sent", "ACKs"]);
        table += &line(["", "goodput", "", "zoned", "sent", "lost", "again", "kept"]);
        for setup in Setup::ALL {
            match self.run(setup) {
                Some(run) => table += &self.row(setup, run),
                None if self.runs.contains_key(setup.key()) => {
                    table += &format!("{:LABEL$}not measured\n", setup.name());
                }
                None => {}
            }
        }
        table
    }

    fn row(&self, setup: Setup, run: &Run) -> String {
        let zoned = self.run(Setup::Zoned).filter(|zoned| zoned.goodput > 0.0);
        let lost = |link: &Statistics| link.lost_bit_error + link.lost_queue;
        let count = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
        let node = run.node.as_ref();
        line([
            setup.name(),
            &format!("{:.0} kb/s", run.goodput / 1000.0),
            &bar(run.goodput / LOSSY_RATE as f64, BAR),
            &zoned.map_or("-".to_owned(), |zoned| {
                format!("{:.2}", run.goodput / zoned.goodput)
            }),
            &run.lossy
                .iter()
                .map(|link| link.offered)
                .sum::<u64>()
                .to_string(),
            &run.lossy.iter().map(lost).sum::<u64>().to_string(),
            &count(node.map(Node::retransmitted)),
            &count(node.map(Node::suppressed)),
        ])
    }

    fn legend(&self) -> String {
        let text = format!(
            "A full bar is {} Mb/s. Lost: packets with bit errors, both directions. Sent again: \
             packets SNOOP repaired out of its cache. ACKs kept: signs of loss it kept from the \
             server, which would have slowed down.",
            LOSSY_RATE / 1_000_000
        );
        paragraph("", 0, &text)
    }

    fn sights(&self) -> String {
        let node = |setup: Setup| Some((setup, self.run(setup)?.node.as_ref()?));
        let mut text = String::new();
        for (setup, node) in Setup::ALL.into_iter().filter_map(node) {
            if text.is_empty() {
                text += "What the licensed node could and could not read, by its keys and by a \
                         search of\nits memory, log and answers for 8 octets of the payload in a \
                         row:\n";
            }
            text += &paragraph(setup.name(), LABEL, &sight(setup, node));
        }
        text
    }

    /// Describes the punctuality of the emulator, which bounds the quality of the measurement.
    fn punctuality(&self) -> String {
        let runs = Setup::ALL.into_iter().filter_map(|setup| self.run(setup));
        let links: Vec<_> = runs
            .flat_map(|run| run.lossy.iter().chain(&run.wired))
            .collect();
        let worst = |value: fn(&Quantiles) -> f64| {
            let values = links.iter().map(|link| value(&link.lateness));
            values.fold(0.0, f64::max) / 1000.0
        };
        let priority = match links.iter().all(|link| link.real_time) {
            true => "at real-time priority",
            false => "without real-time priority, which this user may not have",
        };
        let text = format!(
            "The emulated links ran {priority}. On the worst of them 99 % of the packets were at \
             most {:.1} ms late, 99.9 % {:.1} ms, the last one {:.1} ms.",
            worst(|lateness| lateness.p99_us),
            worst(|lateness| lateness.p999_us),
            worst(|lateness| lateness.max_us),
        );
        paragraph("", 0, &text)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.body(), self.verdict())
    }
}

/// Describes the part of the traffic that one licensed node could read.
fn sight(setup: Setup, node: &Node) -> String {
    let found = node.payload.found;
    let searched = format!("{:.0} MB", node.payload.searched as f64 / 1e6);
    if !setup.is_zoned() {
        return match found {
            0 => format!("Everything, in clear; but {searched} were searched in vain."),
            _ => format!(
                "Everything, in clear. The search found payload in {searched}, as it must: this \
                 run proves that the search can see."
            ),
        };
    }
    let opens = node.opens();
    let reads_payload = opens.iter().any(|&zone| zone > 1);
    let keys = match (opens.is_empty(), reads_payload) {
        (true, _) => "Nothing: it has no key.",
        (false, false) => "Addresses and TCP headers: it has the header zone's key only.",
        (false, true) => "Headers and payload: it has the keys of both zones.",
    };
    let place = node.payload.first.as_deref().unwrap_or_default();
    match (found, reads_payload) {
        (0, _) => format!("{keys} The search found no payload in {searched}."),
        (_, true) => format!("{keys} The search found payload in {searched}."),
        (_, false) => format!(
            "{keys} BUT THE SEARCH found payload {found} times in {searched}, first in {place}."
        ),
    }
}

/// Formats one line of the table: a name, a goodput, a bar, numbers.
fn line([name, goodput, bar, times, sent, lost, again, kept]: [&str; 8]) -> String {
    let line = format!(
        "{name:LABEL$}{goodput:>9}  {bar:16} {times:>6} {sent:>8} {lost:>6} {again:>6} {kept:>6}"
    );
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::super::report::tests::{as_claimed, measured};
    use super::*;
    use crate::text::WIDTH;

    fn claimed() -> Report {
        Report::new(&Options::default(), as_claimed())
    }

    #[test]
    fn the_table_has_a_line_for_each_setup() {
        let table = claimed().table();
        for setup in Setup::ALL {
            assert!(
                table.lines().any(|line| line.starts_with(setup.name())),
                "{table}"
            );
        }
        assert!(table.contains("4.00"), "{table}");
    }

    #[test]
    fn the_verdict_says_what_was_required_and_what_was_measured() {
        let verdict = claimed().verdict();
        assert!(verdict.starts_with("PASSED"), "{verdict}");
        assert!(verdict.contains("4.00 times"), "{verdict}");
        assert!(verdict.contains("(required: 3)"), "{verdict}");
        let mut outcomes = as_claimed();
        outcomes[4] = measured(Setup::ZonedSnoop, 4.4e5, 0);
        let verdict = Report::new(&Options::default(), outcomes).verdict();
        assert!(verdict.starts_with("FAILED"), "{verdict}");
        assert!(verdict.contains("at least 3 times"), "{verdict}");
        assert!(verdict.contains("1.10 times"), "{verdict}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let mut outcomes = as_claimed();
        outcomes[3] = measured(Setup::Zoned, 123_456.0, u64::MAX);
        for report in [claimed(), Report::new(&Options::default(), outcomes)] {
            let text = report.to_string();
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(WIDTH), "{text}");
        }
    }

    #[test]
    fn clear_tcp_is_called_a_proof_and_a_leak_is_not() {
        let text = claimed().sights();
        assert!(text.contains("proves that the"), "{text}");
        let mut outcomes = as_claimed();
        outcomes[3] = measured(Setup::Zoned, 4e5, 7);
        let text = Report::new(&Options::default(), outcomes).sights();
        assert!(text.contains("found payload 7 times"), "{text}");
    }
}
