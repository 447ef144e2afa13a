//! One HTML page over all results of a folder, including the plots, to be read or sent as it is.

use crate::experiment::{
    Agreement, CONTRADICTION, Environment, Estimate, Evidence, Exhibit, Finding, Grid, Parameter,
    Point, Report, Standing, Statement, Verdict, bits,
};
use crate::figures::{self, ALL};
use crate::obstacle::Obstacle;
use anyhow::{Context, Result};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::fs;
use std::path::{Path, PathBuf};

const STYLE: &str = include_str!("style.css");

/// Known causes of the difference between the kernel's Reno and the simulator's.
const WHY_APART: &str = "The simulator’s errors are other draws, its TCP lacks the finer of the \
     kernel’s rules for recovery and timers, and no process there ever waits for a processor. Where \
     losses are many, goodput hangs on timeouts, in which all of this shows most.";

/// File of the page, in the output folder.
const FILE: &str = "report.html";

/// Writes the page over everything found in an output folder. Returns its path.
///
/// # Errors
/// There is no result, or a result cannot be read.
pub fn write(out: &Path) -> Result<PathBuf, Obstacle> {
    let fix = "run `strata-lab figures run NAME --out DIR` first, then this with the same DIR";
    let refused = |error: anyhow::Error| Obstacle::new(format!("{error:#}"), fix);
    let mut reports = Report::read_all(out).map_err(refused)?;
    let place = |report: &Report| ALL.iter().position(|known| known.name() == report.figure);
    reports.sort_by_key(place);
    if reports.is_empty() {
        let message = format!("{} holds no result", out.display());
        return Err(Obstacle::new(message, fix));
    }
    let figures = reports.iter().map(|report| figure(out, report));
    let figures = figures.collect::<Result<Vec<_>>>().map_err(refused)?;
    let path = out.join(FILE);
    fs::write(&path, page(&reports, &figures).into_string())
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(|error| Obstacle::new(format!("{error:#}"), "make room there"))?;
    Ok(path)
}

fn page(reports: &[Report], figures: &[Markup]) -> Markup {
    let content = html! {
        h1 { "Strata: the lab’s report" }
        p.lead {
            "Figures of the papers, measured again on real packets between network "
            "namespaces: kernel TCP, stratad, and a link emulator with Poisson bit errors. "
            "Each figure or table has a claim, what must hold for it, and a verdict."
        }
        (overview(reports))
        (contradictions(reports))
        @for figure in figures { (figure) }
        (reading())
    };
    document("Strata: the lab's report", &content)
}

/// Returns a page with this content that stands alone.
pub(crate) fn document(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    }
}

fn overview(reports: &[Report]) -> Markup {
    html! {
        table.overview {
            thead { tr { th { "figure or table" } th { "what it shows" } th { "must hold" } th { "verdict" } } }
            tbody {
                @for report in reports {
                    tr {
                        td { a href={ "#" (report.figure) } { (report.figure) } }
                        td { (report.title) }
                        td { (held(report)) }
                        td { (badge(report.verdict)) }
                    }
                }
            }
        }
    }
}

/// Renders all results that contradict the papers, in one table.
fn contradictions(reports: &[Report]) -> Markup {
    let findings = reports.iter().flat_map(|report| {
        let findings = report.findings.iter();
        findings.filter_map(move |finding| Some((report, finding, finding.contradiction()?)))
    });
    let findings: Vec<_> = findings.collect();
    html! {
        @if !findings.is_empty() {
            h2 { "Where the results contradict the papers" }
            p {
                "By more than a factor of " (CONTRADICTION) " or the other way, and the paper’s "
                "number is outside the interval. What may explain it stands at the figure."
            }
            table.findings {
                thead {
                    tr {
                        th { "figure or table" } th { "what" } th.number { "paper" }
                        th.number { "measured" } th.number { "95 % interval" }
                        th.number { "how" }
                    }
                }
                tbody {
                    @for (report, finding, how) in &findings {
                        tr {
                            td { a href={ "#" (report.figure) } { (report.figure) } }
                            td { (finding.what) (unit(finding)) }
                            td.number { (finding.paper.as_deref().unwrap_or("–")) }
                            td.number { (optional(finding.measured.map(|measured| measured.value))) }
                            td.number { (interval(finding.measured)) }
                            td.number { (how.to_string()) }
                        }
                    }
                }
            }
        }
    }
}

fn held(report: &Report) -> String {
    let findings = &report.findings;
    let held = findings
        .iter()
        .filter(|finding| finding.verdict <= Verdict::Holds);
    format!("{} of {}", held.count(), findings.len())
}

fn badge(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Holds => "badge holds",
        Verdict::Consistent => "badge consistent",
        Verdict::NotDecided => "badge undecided",
        Verdict::Fails => "badge fails",
    };
    html! { span class=(class) { (verdict.word()) } }
}

fn figure(out: &Path, report: &Report) -> Result<Markup> {
    let folder = out.join(&report.figure);
    let plots = report.plots.iter().map(|name| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    });
    let plots = plots.collect::<Result<Vec<_>>>()?;
    Ok(html! {
        section id=(report.figure) {
            h2 { (report.figure) ": " (report.title) " " (badge(report.verdict)) }
            @if !report.reasons.is_empty() {
                ul.reasons { @for reason in &report.reasons { li { (reason) } } }
            }
            (claims(&report.claims))
            dl { dt { "Here" } dd { (report.setting) } }
            (parameters(figures::find(&report.figure).map_or(&[], Exhibit::parameters)))
            (findings(&report.findings))
            div.plots { @for plot in &plots { figure { (PreEscaped(plot)) } } }
            @match &report.evidence {
                Evidence::Downloads { points, agreement } => {
                    (self::agreement(agreement))
                    (self::points(points))
                }
                Evidence::Table(grid) => (self::grid(grid)),
            }
            (environment(&report.environment))
        }
    })
}

/// Renders what the paper says, with what the measurements say of it.
fn claims(claims: &[Statement]) -> Markup {
    html! {
        table.claims {
            thead { tr { th { "what the paper says" } th { } } }
            tbody {
                @for claim in claims {
                    tr { td { (claim.says) } td { (standing(claim.standing)) } }
                }
            }
        }
    }
}

fn standing(standing: Standing) -> Markup {
    let class = match standing {
        Standing::Holds => "badge holds",
        Standing::Consistent => "badge consistent",
        Standing::NotMeasured | Standing::NotDecided | Standing::Contradicts => "badge undecided",
        Standing::Fails => "badge fails",
    };
    html! { span class=(class) { (standing.word()) } }
}

/// Renders the parameters of the paper beside those that ran.
fn parameters(parameters: &[Parameter]) -> Markup {
    html! {
        @if !parameters.is_empty() {
            details {
                summary { "Parameters of the paper, and those that run" }
                table.points {
                    thead { tr { th { "parameter" } th { "paper" } th { "here" } th { "why" } } }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                td { (parameter.name) }
                                td { (parameter.paper) }
                                td { @if parameter.here == parameter.paper { "the same" }
                                     @else { (parameter.here) } }
                                td { (parameter.why) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the unit of a quantity, which a ratio does not have.
fn unit(finding: &Finding) -> Markup {
    html! {
        @if let Some(unit) = &finding.unit { span.detail { "in " (unit) } }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        table.findings {
            thead {
                tr {
                    th { "what must hold" } th.number { "at least" } th.number { "measured" }
                    th.number { "95 % interval" } th.number { "paper" } th.number { "simulator" }
                    th { }
                }
            }
            tbody {
                @for finding in findings {
                    tr {
                        td {
                            (finding.what)
                            (unit(finding))
                            @if let Some(detail) = &finding.detail { span.detail { (detail) } }
                        }
                        td.number { (optional(finding.at_least)) }
                        td.number { b { (optional(finding.measured.map(|measured| measured.value))) } }
                        td.number { (interval(finding.measured)) }
                        td.number { (finding.paper.as_deref().unwrap_or("–")) }
                        td.number { (optional(finding.simulated)) }
                        td {
                            (badge(finding.verdict))
                            @if let Some(how) = finding.contradiction() {
                                " " span.apart { "contradicts " (how.to_string()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.2}"))
}

fn interval(estimate: Option<Estimate>) -> String {
    let ends = estimate.and_then(|estimate| estimate.interval);
    ends.map_or("–".to_owned(), |[low, high]| {
        format!("{low:.2} – {high:.2}")
    })
}

fn points(points: &[Point]) -> Markup {
    let megabits = |bits: f64| format!("{:.3}", bits / 1e6);
    html! {
        details {
            summary { "All " (points.len()) " conditions" }
            table.points {
                thead {
                    tr {
                        th { "configuration" } th { "sender" } th.number { "wired hop" }
                        th.number { "bits per error" } th.number { "Mb/s" }
                        th.number { "95 % interval" } th.number { "simulator" }
                        th.number { "sent again by the server" } th.number { "by SNOOP" }
                        th.number { "runs" }
                    }
                }
                tbody {
                    @for point in points {
                        tr {
                            td { (point.condition.name()) }
                            td { (point.condition.sender.name()) }
                            td.number { (point.condition.wired_ms) " ms" }
                            td.number { (bits(point.condition.one_error_in)) }
                            td.number { b { (megabits(point.goodput.value)) } }
                            td.number {
                                @if let Some([low, high]) = point.goodput.interval {
                                    (megabits(low)) " – " (megabits(high))
                                } @else { "–" }
                            }
                            td.number { (point.simulated.map_or("–".to_owned(), megabits)) }
                            td.number { (format!("{:.0}", point.resent)) }
                            td.number { (format!("{:.0}", point.repaired)) }
                            td.number { (point.goodput.runs) }
                        }
                    }
                }
            }
        }
    }
}

/// Lists the conditions in which the simulator disagrees, with the known causes.
fn agreement(agreement: &Agreement) -> Markup {
    let apart = agreement.apart.len();
    html! {
        @if agreement.conditions > 0 {
            p.agreement {
                b { "Simulator: " }
                (agreement.conditions - apart) " of " (agreement.conditions)
                " conditions (Reno) within 15 % of the namespaces’ goodput."
                @if apart > 0 {
                    " Apart:"
                    @for apart in &agreement.apart {
                        " " (apart.condition.name()) " at " (bits(apart.condition.one_error_in))
                        " (× " (format!("{:.2}", apart.ratio))
                        @if apart.may_be_chance { ", intervals overlap" } ")"
                    }
                    ". " (WHY_APART)
                }
            }
        }
    }
}

/// Renders a table's numbers under the names of its column groups.
fn grid(grid: &Grid) -> Markup {
    html! {
        table.grid {
            thead {
                tr {
                    th { }
                    @for (group, columns) in grid.groups() { th.number colspan=(columns) { (group) } }
                }
                tr {
                    th { }
                    @for column in &grid.columns { th.number { (column.name) } }
                }
            }
            @for rows in grid.subjects() {
                tbody {
                    tr { th colspan=(grid.columns.len() + 1) { (rows[0].subject) } }
                    @for row in rows {
                        tr {
                            td { (row.name) }
                            @for number in &row.numbers {
                                td.number {
                                    (number.map_or("–".to_owned(), |number| number.to_string()))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn environment(environment: &Environment) -> Markup {
    html! {
        p.environment {
            "Strata " (environment.build) ", Linux " (environment.kernel) ", "
            (environment.cores) " processors"
            @if !environment.processor.is_empty() { " (" (environment.processor) ")" }
            @if !environment.date.is_empty() { ", " (environment.date) }
            @if !environment.commit.is_empty() { ", commit " (environment.commit) }
            @if let Some(downloads) = &environment.downloads {
                "; " (downloads.cells) " cells of "
                (downloads.seconds) " s, " (downloads.seeds) " for each condition, at most "
                (downloads.at_once) " networks at once"
                @if !downloads.snoop { ", " b { "SNOOP off" } }
            }
            @if !environment.zones { ", " b { "zones off" } }
            @if !environment.simultaneous { ", " b { "simultaneous bindings off" } }
            @if !environment.resumption { ", " b { "resumption off" } }
            @if !environment.mobike { ", " b { "MOBIKE off" } }
            @if !environment.transport { ", " b { "transport mode off" } }
            @if !environment.clones { ", " b { "clones off" } }
            @if !environment.paths { ", " b { "live paths off" } }
            @if !environment.tunnels { ", " b { "tunnels off" } }
            @if environment.quick { ", quick" }
            "."
            @if let Some(downloads) = &environment.downloads {
                " " (downloads.punctuality()) "."
            }
            @if !environment.command.is_empty() { " Command: " code { (environment.command) } }
        }
    }
}

fn reading() -> Markup {
    html! {
        section.reading {
            h2 { "How to read it" }
            p {
                "Ratios are taken run by run between configurations that met the same bit errors, and "
                "averaged geometrically; intervals are Student’s on their logarithms, for medians a "
                "bootstrap’s over the pairs. A claim " b { "holds" } " if the measured ratio is at "
                "least the required one, and " b { "fails" } " if it is not; it is " b { "not decided" }
                " if the required one is within the interval, so that chance decides. "
                "It is " b { "consistent" } " if it points the way the paper says and how far depends "
                "on what the paper leaves open; how far is in the table of contradictions. Bars in plots are 95 % intervals; hollow diamonds are "
                "numbers from the paper’s text. Its curves are in pictures that have no numbers."
            }
            p {
                "A statement of the paper has the worst standing of the findings that judge it. It "
                "is " b { "not measured" } " if only a run without " code { "--quick" }
                " measures it. A "
                "comparison with the paper alone is " b { "consistent" } " unless it "
                "contradicts it."
            }
            p {
                "A table is measured once, in as many rounds as it says; a dash is a number that "
                "there is not."
            }
        }
    }
}
