//! The report as text for readers.

use super::{Report, Row};
use crate::bench::Measured;
use crate::bench::goal;
use crate::text::paragraph;

impl Measured for Report {
    /// Returns true if all tunnels came up and every echo came back.
    fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn body(&self) -> String {
        let core = if self.own_core {
            "that has a core of its own"
        } else {
            "that shares its core"
        };
        let about = format!(
            "{} tunnels between a crowd and a stratad {core}, plain ESP in UDP over a pair of veth devices. \
             Echoes of 1280 octets are asked for inside, through one tunnel, through a few in turns and through \
             all of them: echoes a second, the gateway's time for one, and the speed beside that of one and of \
             few.",
            self.sas
        );
        if self.rows.is_empty() {
            return String::new();
        }
        let names = row(["in use", "per s", "core µs", "one", "few"].map(str::to_owned));
        let table: String = self.rows.iter().map(line).collect();
        format!("{}\n{names}{table}", paragraph("", 0, &about))
    }

    fn verdict(&self) -> String {
        let failed = self.failure.as_ref().map(|why| format!("{why}."));
        goal::verdict(&self.goals, failed, self.optimised)
    }
}

fn line(of: &Row) -> String {
    row([
        of.sas.to_string(),
        format!("{:.0}", of.echoes_per_s),
        format!("{:.2}", of.cpu_us),
        format!("{:.2}", of.over_one),
        format!("{:.2}", of.over_few),
    ])
}

fn row([sas, rate, cpu, one, few]: [String; 5]) -> String {
    format!("{sas:>10}{rate:>12}{cpu:>12}{one:>10}{few:>10}\n")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use crate::bench::Measured;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal() {
        let whole = report();
        let mut failed = report();
        failed.failure = Some("3 of 100000 are up: no proposal was chosen".into());
        for (report, word) in [(whole, "missed"), (failed, "FAILED")] {
            let text = report.body() + &report.verdict();
            assert!(
                text.lines().all(|line| line.chars().count() <= WIDTH),
                "{text}"
            );
            assert!(
                text.contains(word) && text.contains("    100000       40960"),
                "{text}"
            );
        }
    }
}
