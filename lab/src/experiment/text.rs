//! A figure's result as text for a terminal.

use super::{Environment, Evidence, Finding, Grid, Report, Verdict};
use crate::text::paragraph;

impl Verdict {
    /// Returns the word for readers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Consistent => "consistent",
            Self::NotDecided => "not decided",
            Self::Fails => "FAILS",
        }
    }
}

impl Report {
    /// Returns everything but the verdict.
    pub fn body(&self) -> String {
        let mut text = format!("{}: {}\n", self.figure, self.title);
        for claim in &self.claims {
            let says = format!("{} ({})", claim.says, claim.standing.word());
            text += &paragraph("", 2, &says);
        }
        if let Evidence::Table(grid) = &self.evidence {
            text += &grid.text();
        }
        text += &line(["", "at least", "measured", "95 % interval", "paper"]);
        for finding in &self.findings {
            let detail = finding.detail.as_ref();
            let detail = detail.map_or(String::new(), |detail| format!(" ({detail})"));
            let unit = finding.unit.as_ref();
            let unit = unit.map_or(String::new(), |unit| format!(", in {unit}"));
            text += &paragraph("", 2, &format!("{}{unit}{detail}", finding.what));
            text += &row(finding);
            if let Some(how) = finding.contradiction() {
                text += &paragraph("", 4, &format!("contradicts the paper, {how}"));
            }
        }
        text + &paragraph("", 0, &self.environment.text())
    }

    /// Returns the verdict, with its reasons.
    pub fn conclusion(&self) -> String {
        let verdict = format!("{}: {}", self.figure, self.verdict.word());
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|reason| paragraph("  *", 4, reason));
        format!("{verdict}\n{}", reasons.collect::<String>())
    }
}

impl Environment {
    fn text(&self) -> String {
        let Self {
            kernel,
            cores,
            processor,
            date,
            ..
        } = self;
        let machine = format!("Linux {kernel}, {cores} processors {processor}");
        let machine = format!("{}, {date}", machine.trim_end());
        match &self.downloads {
            None => format!("{machine}; {} s.", self.wall_seconds),
            Some(downloads) => format!(
                "{} runs of {} s for each condition, {} cells, {machine}; {}.",
                downloads.seeds,
                downloads.seconds,
                downloads.cells,
                downloads.punctuality()
            ),
        }
    }
}

/// Widths of a row's name and of each number, in columns.
const NAME: usize = 6;
const NUMBER: usize = 8;

impl Grid {
    fn text(&self) -> String {
        let groups = self.groups();
        let groups = groups.iter().map(|(group, columns)| {
            let width = NUMBER * columns;
            format!("{group:>width$}")
        });
        let names = self.columns.iter();
        let names = names.map(|column| format!("{:>NUMBER$}", column.name));
        let mut text = entry("", groups) + &entry("", names);
        for rows in self.subjects() {
            text += &paragraph("", 2, &rows[0].subject);
            for row in rows {
                let number = |number: &Option<i64>| match number {
                    Some(number) => format!("{number:>NUMBER$}"),
                    None => format!("{:>NUMBER$}", "-"),
                };
                text += &entry(&row.name, row.numbers.iter().map(number));
            }
        }
        text
    }
}

fn entry(name: &str, numbers: impl Iterator<Item = String>) -> String {
    let line = format!("  {name:NAME$}{}", numbers.collect::<String>());
    format!("{}\n", line.trim_end())
}

fn row(finding: &Finding) -> String {
    let number = |value: f64| format!("{value:.2}");
    let missing = || "-".to_owned();
    let measured = finding.measured;
    let interval = measured.and_then(|measured| measured.interval);
    let interval = interval.map(|[low, high]| format!("{low:.2} to {high:.2}"));
    line([
        finding.verdict.word(),
        &finding.at_least.map_or_else(missing, number),
        &measured.map_or_else(missing, |measured| number(measured.value)),
        &interval.unwrap_or_else(missing),
        finding.paper.as_deref().unwrap_or("-"),
    ])
}

fn line([verdict, bound, measured, interval, paper]: [&str; 5]) -> String {
    let line = format!("    {verdict:12}{bound:>10}{measured:>10}{interval:>18}{paper:>18}");
    format!("{}\n", line.trim_end())
}
