//! The report as text for readers.

use super::{Report, Row};
use crate::bench::Measured;
use crate::bench::goal;
use crate::text::paragraph;

impl Measured for Report {
    /// Returns true if every set-up was served under every flood.
    fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn body(&self) -> String {
        let about = format!(
            "TCP through a tunnel that is up, and 200 set-ups a second, beside a flood of 20,000 packets or \
             50 Mb a second and beside a control in which the gateway drops the flood before its sockets; \
             {} rounds at most. Thousands of packets a second, Gb/s, their ratio (least and most; with a \
             question mark if chance may have put it on its side of 0.9), and set-ups served with the \
             milliseconds that 99 of 100 and the longest took.",
            self.rounds
        );
        let names = row([
            "", "k/s", "Gb/s", "control", "ratio", "served", "p99", "max",
        ]);
        let table: String = self.rows.iter().map(line).collect();
        format!("{}\n{names}{table}", paragraph("", 0, &about))
    }

    fn verdict(&self) -> String {
        goal::verdict(&self.goals, self.failure.clone(), self.optimised)
    }
}

fn line(of: &Row) -> String {
    let (flooded, control) = (of.flooded, of.control);
    row([
        of.kind.name(),
        &format!("{:.1}", of.packets_per_s / 1e3),
        &format!("{:.2}", flooded.gbps),
        &format!("{:.2}", control.gbps),
        &format!(
            "{:.2} ({:.2}-{:.2}){}",
            of.ratio,
            of.least_ratio,
            of.most_ratio,
            if of.decided { "" } else { "?" }
        ),
        &format!(
            "{:.3}",
            flooded.served as f64 / flooded.wanted.max(1) as f64
        ),
        &goal::unit(flooded.p99_ms, "", 0),
        &goal::unit(flooded.most_ms, "", 0),
    ])
}

fn row([name, rate, flooded, control, ratio, served, p99, most]: [&str; 8]) -> String {
    format!("{name:<23}{rate:>5}{flooded:>6}{control:>8}{ratio:>18}{served:>7}{p99:>5}{most:>6}\n")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use crate::bench::Measured;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal() {
        for served in [100, 99] {
            let report = report(served);
            let text = report.body() + &report.verdict();
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
            assert!(text.contains("half-open from a /64"), "{text}");
            assert!(text.contains("0.95 (0.95-0.95)?"), "{text}");
        }
    }
}
