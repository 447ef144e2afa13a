//! The report as text for readers.

use super::report::Cost;
use super::{Length, Report, Row};
use crate::bare::Shape;
use crate::bench::Measured;
use crate::bench::goal;
use crate::text::paragraph;

impl Measured for Report {
    /// Returns true if packets got through, at whatever cost.
    fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn body(&self) -> String {
        let about = format!(
            "Batches of 64 packets with AES-128-GCM of {} in memory: nanoseconds of processor time of a \
             packet, those of its AEAD calls alone, and the share that these are. Datagrams come from a device that \
             leaves their checksums, and go to one that makes them.",
            self.aead
        );
        let names =
            row(["", "", "", "sealing", "AEAD", "share"]) + &half(["opening", "AEAD", "share"]);
        let table = self.rows.iter().map(line).collect::<String>();
        let nodes = self.rows.iter().filter_map(node).collect::<String>();
        let head = row(["zones", "octets", "SAs", "", "", ""]);
        let head = head.trim_end();
        format!(
            "{}\n{names}\n{head}\n{table}\nA node that reads the first zone:\n{nodes}",
            paragraph("", 0, &about)
        )
    }

    fn verdict(&self) -> String {
        let failed = self.failure.as_ref().map(|why| format!("{why}."));
        goal::verdict(&self.goals, failed, self.optimised)
    }
}

fn line(of: &Row) -> String {
    let [zones, octets, sas] = subject(of);
    let [sealing, opening] = [of.sealing, of.opening].map(numbers);
    let [a, b, c] = sealing.each_ref().map(String::as_str);
    row([&zones, &octets, &sas, a, b, c]) + &half(opening.each_ref().map(String::as_str)) + "\n"
}

fn node(of: &Row) -> Option<String> {
    let [zones, octets, sas] = subject(of);
    let cost = numbers(of.node?);
    let [a, b, c] = cost.each_ref().map(String::as_str);
    Some(row([&zones, &octets, &sas, a, b, c]) + "\n")
}

fn subject(row: &Row) -> [String; 3] {
    let zones = match row.shape {
        Shape::Plain => "plain",
        Shape::One => "one",
        Shape::Two => "two",
        Shape::Three => "three",
    };
    let octets = match row.length {
        Length::Octets(octets) => octets.to_string(),
        Length::Imix => "IMIX".to_owned(),
    };
    [zones.to_owned(), octets, row.sas.to_string()]
}

fn numbers(cost: Cost) -> [String; 3] {
    [
        format!("{:.0}", cost.ns),
        format!("{:.0}", cost.raw_ns),
        format!("{:.2}", cost.share),
    ]
}

fn row([zones, octets, sas, a, b, c]: [&str; 6]) -> String {
    format!("{zones:6}{octets:>7}{sas:>8}{}", half([a, b, c]))
}

fn half([a, b, c]: [&str; 3]) -> String {
    format!("{a:>11}{b:>7}{c:>7}")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;
    use crate::text::WIDTH;

    #[test]
    fn all_of_it_fits_a_terminal_and_says_what_was_missed() {
        let report = report(1500);
        let text = report.body() + &report.verdict();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        let missed = text.lines().filter(|line| line.ends_with("missed"));
        assert_eq!(missed.count(), 3, "{text}");
        let failed = Report::failed(Some("a packet was dropped".into()));
        assert!(failed.verdict().contains("FAILED: a packet was dropped."));
    }
}
