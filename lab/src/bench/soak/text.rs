//! The report as text for readers.

use super::{Report, Sample};
use crate::bench::{Goal, Measured};
use crate::text::paragraph;

/// Largest number of lines in the table.
const LINES: usize = 12;

impl Measured for Report {
    /// Returns true if nothing was lost and no daemon has grown.
    fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn body(&self) -> String {
        let about = format!(
            "A mobile node, a licensed node and a gateway on this machine, {} s: datagrams of 1000 octets \
             both ways, {:.0} a second after {:.0} as fast as they came and went; all of them by then, and \
             MiB of memory of each daemon.",
            self.seconds,
            self.per_s().unwrap_or_default(),
            self.full_per_s
        );
        if self.samples.is_empty() {
            return String::new();
        }
        let every = self.samples.len().div_ceil(LINES);
        let chosen = self.samples.iter().skip(every - 1).step_by(every);
        let table: String = chosen.map(line).collect();
        let names = row(["s", "datagrams", "mobile", "licensed", "gateway"].map(str::to_owned));
        format!("{}\n{names}{table}", paragraph("", 0, &about))
    }

    fn verdict(&self) -> String {
        let goals: String = self.goals.iter().map(Goal::line).collect();
        match &self.failure {
            Some(why) => goals + &paragraph("", 0, &format!("FAILED: {why}")),
            None => goals + "No datagram was lost.\n",
        }
    }
}

fn line(of: &Sample) -> String {
    let mib = |octets: u64| format!("{:.1}", octets as f64 / f64::from(1 << 20));
    row([
        format!("{:.0}", of.s),
        of.datagrams.to_string(),
        mib(of.mobile),
        mib(of.node),
        mib(of.gateway),
    ])
}

fn row([s, datagrams, mobile, node, gateway]: [String; 5]) -> String {
    format!("{s:>6}{datagrams:>14}{mobile:>12}{node:>12}{gateway:>12}\n")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use crate::bench::Measured;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal() {
        for grown in [0, 1 << 20] {
            let report = report([grown; 3]);
            let text = report.body() + &report.verdict();
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
            assert_eq!(text.contains("FAILED"), grown > 0, "{text}");
            assert!(text.contains("    60        600000"), "{text}");
        }
    }
}
