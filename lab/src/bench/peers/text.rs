//! The report as text for readers.

use super::{Entrant, Report, Row};
use crate::bench::Measured;
use crate::bench::goal;
use crate::text::paragraph;

impl Measured for Report {
    /// Returns true if all programs carried traffic, in whatever amount.
    fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn body(&self) -> String {
        let about = format!(
            "Two hosts and a wire on this machine, {} rounds: Gb/s over one TCP connection and over \
             four, seconds of all processors for a GB over one, thousands of datagrams of 64 octets a \
             second, microseconds there and back at rest and beside four connections, and the first over \
             Strata's. AES-GCM is that of {}.",
            self.rounds, self.aead
        );
        if self.rows.is_empty() {
            return String::new();
        }
        let names = row(["", "one", "four", "CPU", "small", "RTT", "loaded", "ratio"]);
        let table: String = self.rows.iter().map(line).collect();
        let missing: String = self.missing.iter().map(missing).collect();
        format!("{}\n{names}{table}{missing}", paragraph("", 0, &about))
    }

    fn verdict(&self) -> String {
        goal::verdict(&self.goals, self.failure.clone(), self.optimised)
    }
}

fn line(of: &Row) -> String {
    let ratio = of.over_plain;
    row([
        of.entrant.name(),
        &format!("{:.2}", of.one_gbps),
        &format!("{:.2}", of.four_gbps),
        &format!("{:.2}", of.cpu_s_per_gb),
        &format!("{:.0}", of.packets_per_s / 1e3),
        &format!("{:.0}", of.rtt_us),
        &format!("{:.0}", of.loaded_rtt_us),
        &format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.least, ratio.most),
    ])
}

fn missing(who: &Entrant) -> String {
    let name = who.name();
    format!("{name:<18} is not here: `lab/peers target/peers` builds it\n")
}

fn row([name, one, four, cpu, small, rtt, loaded, ratio]: [&str; 8]) -> String {
    format!("{name:<18}{one:>7}{four:>7}{cpu:>6}{small:>6}{rtt:>6}{loaded:>8}{ratio:>21}\n")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use crate::bench::Measured;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal() {
        let report = report();
        let text = report.body() + &report.verdict();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(text.contains("Strata, two zones"), "{text}");
        assert!(text.contains("0.90 (0.90-0.90)"), "{text}");
        assert!(text.contains("boringtun          is not here"), "{text}");
    }
}
