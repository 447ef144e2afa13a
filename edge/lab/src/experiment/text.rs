//! A figure's result for people, on a terminal.

use super::{Finding, Report, Verdict};
use crate::text::paragraph;

impl Verdict {
    /// What a person reads.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Consistent => "consistent",
            Self::Fails => "FAILS",
        }
    }
}

impl Report {
    /// Everything but the verdict.
    pub fn body(&self) -> String {
        let mut text = format!("{}: {}\n", self.figure, self.title);
        text += &line(["", "at least", "measured", "95 % interval", "paper"]);
        for finding in &self.findings {
            let detail = finding.detail.as_ref();
            let detail = detail.map_or(String::new(), |detail| format!(" ({detail})"));
            text += &paragraph("", 2, &format!("{}{detail}", finding.what));
            text += &row(finding);
        }
        let environment = &self.environment;
        let conditions = format!(
            "{} runs of {} s for each condition, {} cells, Linux {}, {} processors; {}.",
            environment.seeds,
            environment.seconds,
            environment.cells,
            environment.kernel,
            environment.cores,
            environment.punctuality()
        );
        text + &paragraph("", 0, &conditions)
    }

    /// What follows, with the reasons.
    pub fn conclusion(&self) -> String {
        let verdict = format!("{}: {}", self.figure, self.verdict.word());
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|reason| paragraph("  *", 4, reason));
        format!("{verdict}\n{}", reasons.collect::<String>())
    }
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
