//! The report as text for readers.

use super::contender::MOST_OF_STRONGSWAN;
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
        let core = match self.own_core {
            true => "a core of their own",
            false => "the core that everything else here is on, too",
        };
        let about = format!(
            "Set-ups at stratad and at charon, in turns, with {core}, while so many tunnels are up (at charon \
             {MOST_OF_STRONGSWAN} at most): {} of each in {} rounds. Processor time of a set-up in µs, the median with the smallest and the largest, and the \
             ratio of the two in a round; then the time in µs until each is up, with 16 under way, and KB of memory \
             for each tunnel, of both.",
            self.setups, self.rounds
        );
        if self.rows.is_empty() {
            return String::new();
        }
        let names = [
            "tunnels",
            "by",
            "Strata",
            "strongSwan",
            "ratio",
            "up after",
            "KB",
        ];
        let names = row(names.map(str::to_owned));
        let table: String = self.rows.iter().map(line).collect();
        let peers = format!(
            "A configured peer that is not up takes {:.0} octets of stratad's memory ({} peers).",
            self.octets_of_a_peer, self.configured
        );
        let raw: String = self.rows.iter().filter_map(cryptography).collect();
        let [about, peers] = [about, raw + &peers].map(|text| paragraph("", 0, &text));
        format!("{about}\n{names}{table}\n{peers}")
    }

    fn verdict(&self) -> String {
        let failed = self.failure.as_ref().map(|why| format!("{why}."));
        goal::verdict(&self.goals, failed, self.optimised)
    }
}

fn line(of: &Row) -> String {
    let kilo = |octets: f64| octets / 1000.0;
    row([
        of.tunnels.to_string(),
        of.terms.label().to_owned(),
        of.strata_us.text(0),
        of.strongswan_us.text(0),
        of.ratio.text(2),
        format!("{:.0} {:.0}", of.strata_wall_us, of.strongswan_wall_us),
        format!(
            "{:.0} {:.0}",
            kilo(of.strata_octets),
            kilo(of.strongswan_octets)
        ),
    ])
}

/// Returns the sentence about the cryptography alone.
fn cryptography(of: &Row) -> Option<String> {
    let (raw, over) = (of.raw_us?, of.over_raw?);
    Some(format!(
        "With {} tunnels, the cryptography alone took {} µs: Strata takes {} times as long. ",
        of.tunnels,
        raw.text(0),
        over.text(2)
    ))
}

fn row([tunnels, terms, strata, strongswan, ratio, wall, octets]: [String; 7]) -> String {
    format!(
        "{tunnels:>7} {terms:>5} {strata:>13} {strongswan:>13} {ratio:>15} {wall:>10} {octets:>6}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use crate::bench::Measured;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal() {
        let whole = report(160.0);
        let mut failed = report(160.0);
        failed.failure = Some("3 of 100000 are up: no proposal was chosen".into());
        for (report, word) in [(whole, "missed"), (failed, "FAILED")] {
            let text = report.body() + &report.verdict();
            assert!(
                text.lines().all(|line| line.chars().count() <= WIDTH),
                "{text}"
            );
            assert!(
                text.contains(word) && text.contains(" 100000   PSK"),
                "{text}"
            );
        }
    }
}
