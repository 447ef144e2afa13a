//! The analysis for a terminal.

use super::analysis::{Analysis, Limit, Source, Total};
use super::strategies;
use crate::text::paragraph;
use std::time::Duration;

/// Columns of labels, and of the names of strategies.
const LABEL: usize = 26;
const STRATEGY: usize = 30;

impl Analysis {
    /// Renders the analysis for a terminal.
    pub fn text(&self) -> String {
        let advice = self.advice_text();
        [
            self.source.text(),
            self.table_text(),
            self.strategies_text(),
            advice,
        ]
        .join("\n")
    }

    fn table_text(&self) -> String {
        let table = &self.table;
        let days = match (self.days.first(), self.days.last()) {
            (Some(first), Some(last)) => format!("{} to {}", first.day, last.day),
            _ => "unknown".to_owned(),
        };
        let visits = table.connections as f64 / table.users.max(1) as f64;
        let rows = [
            ("days", days),
            ("connections", whole(table.connections)),
            (
                "users",
                format!(
                    "{}, {visits:.1} connections each",
                    whole(table.users as u64)
                ),
            ),
            (
                "time",
                total(&table.seconds, |seconds| {
                    format!("{:.2} h", seconds / 3600.0)
                }),
            ),
            ("received", total(&table.received, octets)),
            ("sent", total(&table.sent, octets)),
        ];
        let rows = rows.iter().map(|(label, text)| row(label, text));
        let mut text = "Sessions\n".to_owned();
        text.extend(rows);
        for (count, what) in [
            (table.began_before, "began before the log"),
            (table.not_ended, "do not end in it"),
            (
                table.users_left_out,
                "of further users, for whom there was no room",
            ),
        ] {
            if count > 0 {
                text += &row("", &format!("{} {what}", whole(count)));
            }
        }
        text
    }

    fn strategies_text(&self) -> String {
        let has_cpu = self.cpu_seconds_without.is_some();
        let row = |name: &str, cells: [&str; 4], cpu: Option<f64>| {
            let [exchanges, cache, secrets, data] = cells;
            let cpu = cpu.map_or(String::new(), |seconds| format!("{seconds:>9.0} s"));
            format!("{name:STRATEGY$}{exchanges:>9}{cache:>11}{secrets:>10}{data:>9}{cpu}\n")
        };
        let played = whole(self.played);
        let mut text =
            format!("Full exchanges of {played} connections that remain with a caching strategy\n");
        text += &row("", ["", "", "secrets", "data"], None);
        text += row("", ["exchanges", "cache", "good for", "under"], None).trim_end();
        text += if has_cpu { "        CPU\n" } else { "\n" };
        for one in &self.strategies {
            let cells = [
                &percent(one.share),
                &whole(one.most_entries as u64),
                &bound(one.life, span),
                &one.burden
                    .map_or("–".to_owned(), |burden| bound(burden, bound_of_octets)),
            ];
            text += &row(&one.name, cells.map(String::as_str), one.cpu_seconds);
        }
        if let Some(without) = self.cpu_seconds_without {
            text += &row("no caching", ["100 %", "", "", ""], Some(without));
        }
        let note = "Cache: most entries at once. Secrets: 95 % of them are good for no longer, from the \
                    full exchange until nothing can be resumed under them, and for no more data.";
        text += &paragraph("", 0, note);
        let evicted = self.strategies.iter().map(|one| one.evicted).max();
        if evicted.is_some_and(|evicted| evicted > 0) {
            text += "The cache had no room for every entry: see --entries.\n";
        }
        text
    }

    fn advice_text(&self) -> String {
        let advice = &self.advice;
        let name = advice.strategy.as_deref();
        let name = name.unwrap_or("leave resumption off");
        let mut text = format!("Recommendation: {name}\n");
        text += &paragraph("", 2, &advice.reason);
        if let Some(risk) = &advice.risk {
            text += &paragraph("", 2, risk);
        }
        if !advice.configuration.is_empty() {
            text += "\n";
        }
        for line in &advice.configuration {
            text += &format!("  {line}\n");
        }
        text
    }
}

impl Source {
    fn text(&self) -> String {
        let mut text = String::new();
        for read in &self.files {
            text += &format!("{}: {}\n", read.file, read.format);
        }
        text += &format!("{} lines", whole(self.lines));
        if self.unreadable > 0 {
            text += &format!(", {} of them unreadable:", whole(self.unreadable));
        }
        text += "\n";
        for place in &self.first_unreadable {
            text += &format!("  {place}\n");
        }
        for cut in &self.cut {
            text += &format!("  ends early: {cut}\n");
        }
        for doubt in self.doubts() {
            text += &paragraph("", 2, &doubt);
        }
        text
    }

    /// Returns what is doubtful about the sessions, a sentence for each reason.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        for (count, what) in [
            (
                self.clock_went_back,
                "times the clock of a log went back: are the files in the order of their times (--in-order)?",
            ),
            (
                self.late,
                "connections came long after others that began later, so that strategies saw them late",
            ),
            (
                self.evicted,
                "connections were up when there was no room for more, and count as not ended",
            ),
            (
                self.backwards,
                "connections end before they begin, as the clock was set, and count as not ended",
            ),
            (
                self.nameless,
                "connections end whose user is in an earlier log, and are left out",
            ),
        ] {
            if count > 0 {
                doubts.push(format!("{} {what}", whole(count)));
            }
        }
        doubts
    }
}

fn row(label: &str, text: &str) -> String {
    let label = format!("  {label}");
    paragraph(&label, LABEL, text)
}

fn total(total: &Total, show: fn(f64) -> String) -> String {
    match total.mean {
        Some(mean) => format!("{} in all, {} each", show(total.sum), show(mean)),
        None => "not in the log".to_owned(),
    }
}

/// Returns a number with commas between thousands.
pub(super) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn percent(part: f64) -> String {
    match part {
        0.0 => "0 %".to_owned(),
        part if part < 0.1 => format!("{:.1} %", part * 100.0),
        part => format!("{:.0} %", part * 100.0),
    }
}

/// Returns octets in decimal units.
pub(super) fn octets(octets: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = UNITS.iter().find(|(unit, _)| octets >= *unit);
    match unit {
        Some((unit, name)) => format!("{:.2} {name}", octets / unit),
        None => format!("{octets:.0} B"),
    }
}

/// Returns a limit of a time, such as `at most 8 h`.
pub(super) fn limit_of_time(limit: Limit) -> String {
    words(limit, span)
}

/// Returns a limit of octets, such as `at most 50 MB`.
pub(super) fn limit_of_octets(limit: Limit) -> String {
    words(limit, bound_of_octets)
}

fn span(seconds: u64) -> String {
    strategies::span(Duration::from_secs(seconds))
}

/// Returns a limit in a table, where it is known that limits are what others are at most.
fn bound(limit: Limit, show: fn(u64) -> String) -> String {
    let more = if limit.more { "> " } else { "" };
    format!("{more}{}", show(limit.than))
}

/// Returns a bound of octets, which is a round number.
pub(crate) fn bound_of_octets(octets: u64) -> String {
    match octets {
        octets if octets >= 1_000_000_000 => format!("{} GB", octets / 1_000_000_000),
        octets if octets >= 1_000_000 => format!("{} MB", octets / 1_000_000),
        octets if octets >= 1_000 => format!("{} kB", octets / 1_000),
        octets => format!("{octets} B"),
    }
}

fn words(limit: Limit, show: impl Fn(u64) -> String) -> String {
    let word = if limit.more { "more than" } else { "at most" };
    format!("{word} {}", show(limit.than))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(whole),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0.0, 0.004, 0.25, 1.0].map(percent),
            ["0 %", "0.4 %", "25 %", "100 %"]
        );
        assert_eq!(octets(1_500.0), "1.50 kB");
        let limit = |more, than| Limit { more, than };
        assert_eq!(limit_of_time(limit(false, 7200)), "at most 2 h");
        assert_eq!(limit_of_octets(limit(true, 50_000_000)), "more than 50 MB");
    }
}
