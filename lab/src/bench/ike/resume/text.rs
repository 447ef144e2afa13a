//! The report as text for readers.

use super::{Report, Row, Way};
use crate::bench::Measured;
use crate::bench::goal;
use crate::text::paragraph;

impl Measured for Report {
    /// Returns true if all tunnels came up, all sessions were resumed and every echo came back.
    fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn body(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let core = match self.own_core {
            true => "a core of their own",
            false => "the core that everything else here is on, too",
        };
        let way = match self.resume {
            Way::Skid3 => "SKID3",
            Way::Ticket => "a ticket",
        };
        let most = |row: &Row| row.octets.most as u64;
        let octets = self.rows.iter().map(most).max().unwrap_or_default();
        let about = format!(
            "Tunnels are set up in full (X25519), lost without a Delete, and resumed by {way}, at \
             gateways with {core}: {} in each of {} rounds. Processor time of the gateway for each \
             in µs, the median with the smallest and the largest, and the ratio of the two in a \
             round; then both times of the cryptography alone, and those in s until all of them \
             are up, with 16 under way. The largest growth of the gateway's memory is {} octets \
             for each tunnel.",
            self.setups, self.rounds, octets
        );
        let names = ["by", "in full", "resumed", "ratio", "crypto", "all up"];
        let names = names.map(str::to_owned);
        let table: String = self.rows.iter().map(line).collect();
        format!("{}\n{}{table}", paragraph("", 0, &about), row(names))
    }

    fn verdict(&self) -> String {
        let failed = self.failure.as_ref().map(|why| format!("{why}."));
        goal::verdict(&self.goals, failed, self.optimised)
    }
}

fn line(of: &Row) -> String {
    row([
        of.terms.label().to_owned(),
        of.full_us.text(0),
        of.resumed_us.text(0),
        of.ratio.text(2),
        format!(
            "{:.0} {:.0}",
            of.full_raw_us.median, of.resumed_raw_us.median
        ),
        format!("{:.2} {:.2}", of.full_s.median, of.resumed_s.median),
    ])
}

fn row([terms, full, resumed, ratio, raw, up]: [String; 6]) -> String {
    format!("{terms:>6} {full:>14} {resumed:>14} {ratio:>17} {raw:>9} {up:>10}\n")
}

#[cfg(test)]
mod tests {
    use super::super::Way;
    use super::super::report::tests::report;
    use crate::bench::Measured;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal() {
        let whole = report(Way::Ticket, 30.0);
        let mut failed = report(Way::Skid3, 150.0);
        failed.failure = Some("3 of 400 sessions were resumed".into());
        for (report, word) in [(whole, "missed"), (failed, "FAILED")] {
            let text = report.body() + &report.verdict();
            let fits = |line: &str| line.chars().count() <= WIDTH;
            assert!(text.lines().all(fits), "{text}");
            assert!(text.contains(word) && text.contains("   PSK"), "{text}");
        }
    }
}
