//! The report as text for a terminal of 80 columns.

use super::fetch::Fetched;
use super::network::{CELLULAR, UPLINKS, Uplink, WIFI};
use super::report::{Phase, Report, Stream};
use super::{Way, call};
use crate::demo::paint::count;
use crate::text::paragraph;
use std::fmt;

impl Report {
    /// Returns everything but the verdict.
    pub fn body(&self) -> String {
        [self.conditions(), self.table(), self.witnesses()].join("\n")
    }

    /// Returns the requirement, the measurement, and the reasons of a failure.
    pub fn verdict(&self) -> String {
        let (gap, loss) = (self.gap_allowed_ms, self.loss_allowed_percent);
        if self.passed {
            let streams = [self.call.to_host, self.call.to_server];
            let longest = streams.iter().filter_map(|stream| stream.gap_ms).max();
            let most = streams.iter().map(Stream::loss).fold(0.0, f64::max);
            let passed = format!(
                "PASSED: the call was never silent for longer than {} ms (allowed: {gap}) and \
                 lost {most:.1} % (allowed: {loss:.0} %), the download is whole, and only ESP and \
                 IKE were on the wire.",
                longest.unwrap_or_default()
            );
            return paragraph("", 0, &passed);
        }
        let required = format!(
            "FAILED: required is that the call is never silent for longer than {gap} ms and loses \
             at most {loss:.0} %, that the tunnel is where the host is, that the download is \
             whole, and that only ESP and IKE are on the wire. But:"
        );
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|reason| paragraph("  *", 4, reason));
        paragraph("", 0, &required) + &reasons.collect::<String>()
    }

    fn conditions(&self) -> String {
        let [wifi, cellular] = [WIFI, CELLULAR].map(|uplink| described(&UPLINKS[uplink]));
        let leaves = match self.way {
            Way::Soft | Way::Hard => "which fades",
            Way::Paths => "which breaks off",
        };
        let moves = match self.way {
            Way::Soft => {
                "The daemon measures both paths, and hands the tunnel over while the Wi-Fi still \
                 works (clone, probe_paths)."
            }
            Way::Paths => "Both paths carry packets at the same time (paths = 2).",
            Way::Hard => "The tunnel moves when the Wi-Fi is gone (MOBIKE alone).",
        };
        let text = format!(
            "A host downloads a file and makes a call, {} datagrams a second each way, while it \
             walks out of its Wi-Fi ({wifi}), {leaves}, into a cellular network ({cellular}), and \
             back. {moves} Seed {}.",
            1000 / call::PACE.as_millis(),
            self.seed
        );
        paragraph("", 0, &text)
    }

    fn table(&self) -> String {
        let heads = ["tunnel", "longest silence", "lost", "rate", "tunnel"];
        let [tunnel, silence, lost, rate, moved] = heads;
        let mut table = format!(
            "{:16}{tunnel:9}{silence:>16}{lost:>10}{rate:>6}  {moved}\n",
            ""
        );
        table += &line(["", "on", "in", "out", "in", "out", "Mb/s", "moved after"]);
        table.extend(self.phases.iter().map(row));
        table
    }

    fn witnesses(&self) -> String {
        let call = format!(
            "{} and {} of {} and {} datagrams were lost, in and out. The times are the kernel's. \
             The fading Wi-Fi lost {} packets of all kinds.",
            count(self.call.to_host.lost),
            count(self.call.to_server.lost),
            count(self.call.to_host.sent),
            count(self.call.to_server.sent),
            count(self.faded)
        );
        paragraph("call", LABEL, &call)
            + &paragraph("download", LABEL, &self.of_file())
            + &paragraph("wire", LABEL, &self.of_packets())
    }

    fn of_file(&self) -> String {
        let Some(fetched) = &self.download else {
            return "It did not come to an end.".to_owned();
        };
        let Fetched { octets, size, .. } = fetched;
        let [here, there] = [&fetched.sha256, &fetched.sha256_of_server].map(|sum| begin(sum));
        let sums = match here == there {
            true => format!("sha256sum says {here} of both files"),
            false => format!("sha256sum says {here}, and {there} of the server's file"),
        };
        format!(
            "{} of {} octets; {sums}. The server's kernel counts {} retransmission timeouts.",
            count(*octets),
            count(*size),
            fetched.tcp_timeouts
        )
    }

    fn of_packets(&self) -> String {
        let wire = &self.wire;
        let tshark = match &wire.tshark {
            None => "tshark is not installed.".to_owned(),
            Some(tshark) => format!(
                "tshark says: {} ESP, {} ISAKMP, {} others.",
                count(tshark.esp),
                count(tshark.isakmp),
                count(tshark.other)
            ),
        };
        format!(
            "{} ESP, {} IKE and {} others on both wires of the path. {tshark} A search of {:.1} MB \
             for 8 octets of the download in a row found {}; inside the host it {}.",
            count(wire.esp),
            count(wire.ike),
            count(wire.other),
            wire.searched as f64 / 1e6,
            wire.found,
            if wire.found_inside {
                "finds them"
            } else {
                "finds none either"
            }
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.body(), self.verdict())
    }
}

/// Width of the labels below the table.
const LABEL: usize = 10;

/// Returns the beginning of a checksum.
fn begin(sum: &str) -> &str {
    sum.get(..16).unwrap_or(sum)
}

/// Describes a network by its rate and round trip.
fn described(uplink: &Uplink) -> String {
    let rate = uplink.hop.rate.map_or(0, |rate| rate.get() / 1_000_000);
    let round_trip = 2 * uplink.hop.delay.as_millis();
    format!("{rate} Mb/s, {round_trip} ms")
}

fn row(phase: &Phase) -> String {
    let millis = |gap: Option<u64>| gap.map_or("-".to_owned(), |gap| format!("{gap} ms"));
    let moved = phase.moved_after_ms.map(|after| {
        let why = phase.why.as_deref().unwrap_or_default();
        format!("{:.1} s: {why}", after as f64 / 1e3)
    });
    let (to_host, to_server) = (phase.call.to_host, phase.call.to_server);
    line([
        phase.step.name(),
        phase.path,
        &millis(to_host.gap_ms),
        &millis(to_server.gap_ms),
        &to_host.lost.to_string(),
        &to_server.lost.to_string(),
        &format!("{:.1}", phase.goodput / 1e6),
        &moved.unwrap_or_default(),
    ])
}

/// Formats one line of the table.
fn line([name, path, gap, out, lost, lost_out, rate, moved]: [&str; 8]) -> String {
    let line = format!("{name:16}{path:9}{gap:>8}{out:>8}{lost:>5}{lost_out:>5}{rate:>6}  {moved}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;
    use crate::text::WIDTH;

    #[test]
    fn the_table_has_a_line_for_each_step() {
        let table = report(200).table();
        let row = table.lines().find(|line| line.starts_with("Wi-Fi fades"));
        let row = row.unwrap_or_default();
        assert!(
            row.contains("cellular") && row.contains("220 ms"),
            "{table}"
        );
        assert!(row.contains("1.5 s: 15 % loss"), "{table}");
    }

    #[test]
    fn the_verdict_says_what_was_required_and_what_is_wrong() {
        let verdict = report(200).verdict().replace('\n', " ");
        assert!(verdict.starts_with("PASSED"), "{verdict}");
        assert!(
            verdict.contains("longer than 220 ms (allowed: 300)"),
            "{verdict}"
        );
        let verdict = report(1000).verdict();
        assert!(verdict.starts_with("FAILED"), "{verdict}");
        assert!(verdict.contains("was silent for 1020 ms"), "{verdict}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for way in [Way::Soft, Way::Paths, Way::Hard] {
            for outage in [0, 4000] {
                let mut report = report(outage);
                report.way = way;
                report.seed = u64::MAX;
                let text = report.to_string();
                let longest = text.lines().map(|line| line.chars().count()).max();
                assert!(longest <= Some(WIDTH), "{text}");
            }
        }
    }
}
