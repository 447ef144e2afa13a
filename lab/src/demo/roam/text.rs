//! The report as text for a terminal of 80 columns.

use super::diary::letter;
use super::network::RATE;
use super::report::{Move, Report};
use super::{Handover, PLACES, stream};
use crate::demo::paint::count;
use crate::text::paragraph;
use std::fmt;

impl Report {
    /// Returns everything but the verdict.
    pub fn body(&self) -> String {
        [self.conditions(), self.table(), self.legend()].join("\n")
    }

    /// Returns the requirement, and the reasons of a failure.
    pub fn verdict(&self) -> String {
        let required = "after each move the next agent reads, stream and download go on, and no agent \
                        that was left reads a packet that was sealed after that";
        if self.passed {
            let left = self.moves.iter().flat_map(|one| {
                let left = one.after.iter().filter(|(agent, _)| **agent != one.to);
                left.map(|(_, after)| after.shown)
            });
            let shown = count(left.sum());
            let passed = format!("PASSED: {required}: they were shown {shown}, and read 0.");
            return paragraph("", 0, &passed);
        }
        let reasons = self
            .reasons
            .iter()
            .map(|reason| paragraph("  *", 4, reason));
        let failed = format!("FAILED: required is that {required}. But:");
        paragraph("", 0, &failed) + &reasons.collect::<String>()
    }

    fn conditions(&self) -> String {
        let keys = match (self.everywhere, self.handover) {
            (true, _) => "They are licensed wherever it is.",
            (false, Handover::Push) => {
                "The gateway sends keys to an agent when the mobile node is there (push)."
            }
            (false, Handover::Pkd) => {
                "The neighbours of an agent have keys in advance, with which nothing is sealed until \
                 the mobile node is there (pkd)."
            }
            (false, Handover::Dkm) => {
                "An agent gets keys from the one before, which are replaced within 2 s (dkm)."
            }
        };
        let text = format!(
            "A mobile node walks past three foreign agents, {} s each, and downloads at up to {} Mb/s, \
             with {} datagrams a second beside. Agents may read the headers of its packets. {keys}",
            self.stay_seconds,
            RATE / 1_000_000,
            1000 / stream::PACE.as_millis()
        );
        paragraph("", 0, &text)
    }

    fn table(&self) -> String {
        let (head, each) = ("packets that agents read", ["gap of", "", "keys", "reads"]);
        let [gap, lost, keys, reads] = each;
        let mut table = format!(
            "{:7}{gap:>8} {lost:>5} {keys:>8} {reads:>8} {head:>36}\n",
            ""
        );
        let [a, b, c]: [String; PLACES] =
            std::array::from_fn(|agent| format!("{}  ", letter(agent)));
        table += &line(["", "stream", "lost", "after", "after", &a, &b, &c]);
        table.extend(self.moves.iter().map(row));
        table
    }

    fn legend(&self) -> String {
        let allowance = self.allowance_ms as f64 / 1000.0;
        let text = format!(
            "In brackets: how many packets that were sealed after the move (from {allowance} s after \
             home knew of it on) an agent that was left was shown; for this they are copied to it. \
             Without: what the agent read where the mobile node was. Stream: {} of {} datagrams lost. Download: {:.1} MB at {:.1} Mb/s, each octet as the \
             server has it.",
            count(self.lost),
            count(self.sent),
            self.octets as f64 / 1e6,
            self.goodput / 1e6
        );
        paragraph("", 0, &text)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.body(), self.verdict())
    }
}

fn row(one: &Move) -> String {
    let millis = |millis: Option<u64>| match millis {
        None => "never".to_owned(),
        Some(0) => "before".to_owned(),
        Some(millis) => format!("{millis} ms"),
    };
    let read = |agent: usize| {
        let agent = letter(agent);
        match one.after.get(&agent) {
            None => "-  ".to_owned(),
            Some(after) if agent == one.to => format!("{}  ", count(after.read)),
            Some(after) => format!("{} ({})", count(after.read), count(after.shown)),
        }
    };
    line([
        &format!("{} → {}", one.from, one.to),
        &millis(one.gap_ms),
        &one.lost.to_string(),
        &millis(one.keys_ms),
        &millis(one.reads_ms),
        &read(0),
        &read(1),
        &read(2),
    ])
}

/// Formats one line of the table.
fn line([name, gap, lost, keys, reads, a, b, c]: [&str; 8]) -> String {
    let line = format!("{name:7}{gap:>8} {lost:>5} {keys:>8} {reads:>8} {a:>12} {b:>12} {c:>12}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;
    use crate::text::WIDTH;

    #[test]
    fn the_table_has_a_line_for_each_move() {
        let table = report(0).table();
        let row = table.lines().find(|line| line.starts_with("A → B"));
        assert!(row.is_some_and(|row| row.contains("0 (100)")), "{table}");
        assert!(table.contains("141 ms"), "{table}");
    }

    #[test]
    fn the_verdict_says_what_was_required_and_what_is_wrong() {
        let verdict = report(0).verdict().replace('\n', " ");
        assert!(verdict.starts_with("PASSED"), "{verdict}");
        assert!(verdict.contains("shown 100, and read 0"), "{verdict}");
        let verdict = report(5).verdict();
        assert!(verdict.starts_with("FAILED"), "{verdict}");
        assert!(verdict.contains("A read 5 of 100"), "{verdict}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for handover in Handover::ALL {
            let mut report = report(1);
            report.handover = handover;
            report.allowance_ms = 2000;
            let text = report.to_string();
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(WIDTH), "{text}");
        }
    }
}
