//! The report as text for readers.

use super::report::HONEST_SHARE;
use super::{Load, Poured, Report, Round};
use crate::bench::Measured;
use crate::bench::goal::{LABEL, unit, verdict};
use crate::text::paragraph;

impl Measured for Report {
    /// Returns true if enough set-ups succeeded, at whatever cost.
    fn is_complete(&self) -> bool {
        let needed = match self.load {
            Load::Rate { .. } | Load::Simultaneous { .. } => 1.0,
            Load::Flood { .. } => HONEST_SHARE,
        };
        self.up as f64 >= needed * self.wanted as f64
    }

    fn body(&self) -> String {
        let text = [
            paragraph("", 0, &self.conditions()),
            self.figures(),
            self.table(),
        ];
        text.join("\n")
    }

    fn verdict(&self) -> String {
        let failed = self.failure.as_ref().filter(|_| !self.is_complete());
        let missing = self.wanted - self.up;
        let failed = failed.map(|why| format!("{missing} of {} are not up: {why}.", self.wanted));
        verdict(&self.goals, failed, self.optimised)
    }
}

impl Report {
    fn conditions(&self) -> String {
        let load = match self.load {
            Load::Rate { at_once, .. } => format!("{at_once} under way at once"),
            Load::Simultaneous { .. } => "all of them begin at once".to_owned(),
            Load::Flood { spoofed, seconds } => {
                format!(
                    "for {seconds} s in peace and then under {spoofed} spoofed requests a second"
                )
            }
        };
        let core = match self.own_core {
            true => "a core of its own",
            false => "the core that everything else here is on, too",
        };
        format!(
            "Tunnels are set up with a stratad that has {core}: {load}. Each is IKE_SA_INIT and \
             IKE_AUTH with a pre-shared key, X25519 and AES-128-GCM, and a plain child."
        )
    }

    fn figures(&self) -> String {
        let up = format!("{} of {}", self.up, self.wanted);
        let share = format!("{:.1} %", self.retransmitted_share * 100.0);
        [
            line("up", &up),
            line("responder's core, each", &unit(self.cpu_us, "µs", 0)),
            line("its cryptography alone", &unit(self.raw_us, "µs", 0)),
            line("times its cryptography", &unit(self.ratio, "", 2)),
            line(
                "set-ups per second of its core",
                &unit(self.per_cpu_second, "", 0),
            ),
            line("half are up after", &unit(self.p50_ms, "ms", 1)),
            line("99 % are up after", &unit(self.p99_ms, "ms", 1)),
            line(
                "octets of memory for each",
                &unit(self.octets_per_sa, "", 0),
            ),
            line("requests sent again", &share),
        ]
        .concat()
    }

    /// Returns the rounds one by one, to show the cost of a set-up when more tunnels are up.
    fn table(&self) -> String {
        let mut table = row(["up before", "up", "seconds", "core µs", "raw µs", "times"]);
        for round in &self.rounds {
            table += &row([
                &round.sas_before.to_string(),
                &round.up.to_string(),
                &format!("{:.2}", round.seconds),
                &unit(round.cpu_us, "", 0),
                &format!("{:.0}", round.raw_us),
                &unit(round.ratio, "", 2),
            ]);
        }
        let floods = self.rounds.iter().filter_map(flood);
        table + &floods.collect::<String>()
    }
}

fn flood(round: &Round) -> Option<String> {
    let Poured {
        sent,
        per_second,
        request,
        answers,
        longest_answer,
    } = round.flood?;
    let text = format!(
        "The flood: {sent} requests of {request} octets, {per_second:.0} a second; {answers} answers, \
         the longest of {longest_answer} octets."
    );
    Some(paragraph("", 0, &text))
}

fn line(label: &str, value: &str) -> String {
    format!("{label:LABEL$}{value:>14}\n")
}

fn row(columns: [&str; 6]) -> String {
    let cells = columns.map(|column| format!("{column:>11}"));
    cells.concat() + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{RATE, round};
    use super::*;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal_and_says_what_was_missed() {
        let report = Report::new(RATE, vec![round(&[1, 2, 3], 1000)], true);
        let text = report.body() + &report.verdict();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(
            text.contains("FAILED: 1 of 4 are not up: no answer."),
            "{text}"
        );
        let ratio = text.lines().find(|line| line.ends_with("missed"));
        assert!(
            ratio.is_some_and(|line| line.contains("at most 2.5")),
            "{text}"
        );
    }
}
