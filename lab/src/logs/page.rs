//! One HTML page with the figures, to be read or sent as it is.

use super::analysis::Analysis;
use super::text::{limit_of_octets, limit_of_time, octets, percent, whole};
use crate::obstacle::Obstacle;
use crate::page::document;
use anyhow::{Context, Result};
use maud::{Markup, PreEscaped, html};
use std::fs;
use std::path::{Path, PathBuf};

/// File of the page.
const FILE: &str = "logs.html";

/// Files of the analysis for programs.
const JSON: &str = "logs.json";

impl Analysis {
    /// Writes the page, the figures and the numbers into a folder. Returns the path of the page.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, out: &Path) -> Result<PathBuf, Obstacle> {
        self.try_write(out).map_err(|error| {
            Obstacle::new(format!("{error:#}"), "name a folder that can be written")
        })
    }

    fn try_write(&self, out: &Path) -> Result<PathBuf> {
        let cannot = |path: &Path| format!("cannot write {}", path.display());
        fs::create_dir_all(out).with_context(|| cannot(out))?;
        let write = |file: &str, text: String| {
            let path = out.join(file);
            fs::write(&path, text).with_context(|| cannot(&path))?;
            Ok::<_, anyhow::Error>(path)
        };
        let mut drawings = Vec::new();
        for plot in self.plots() {
            let svg = plot.svg()?;
            write(&format!("{}.svg", plot.name), svg.clone())?;
            drawings.push(svg);
        }
        write(JSON, serde_json::to_string_pretty(self)?)?;
        write(FILE, self.page(&drawings).into_string())
    }

    fn page(&self, drawings: &[String]) -> Markup {
        let content = html! {
            h1 { "What the logs say" }
            p.lead {
                (whole(self.table.connections)) " connections of "
                (whole(self.table.users as u64)) " users, and which caching strategy saves "
                "how many of their key exchanges."
            }
            (self.recommendation())
            (self.characteristics())
            section {
                h2 { "Figures" }
                div.plots {
                    @for drawing in drawings { figure { (PreEscaped(drawing)) } }
                }
            }
            (self.comparison())
            (self.sources())
        };
        document("Strata: what the logs say", &content)
    }

    fn recommendation(&self) -> Markup {
        let advice = &self.advice;
        html! {
            section {
                h2 {
                    "Recommendation: "
                    (advice.strategy.as_deref().unwrap_or("leave resumption off"))
                }
                p { (advice.reason) }
                @if let Some(risk) = &advice.risk { p { (risk) } }
                @if !advice.configuration.is_empty() {
                    pre { code { (advice.configuration.join("\n")) } }
                }
            }
        }
    }

    fn characteristics(&self) -> Markup {
        let table = &self.table;
        let hours = |seconds: f64| format!("{:.2} h", seconds / 3600.0);
        let totals = [
            (
                "received by the gateways",
                table.received,
                octets as fn(f64) -> String,
            ),
            ("sent by the gateways", table.sent, octets),
            ("time", table.seconds, hours),
        ];
        html! {
            section {
                h2 { "Connections" }
                table {
                    thead { tr { th { } th.number { "in all" } th.number { "each" } } }
                    tbody {
                        @for (name, total, show) in totals {
                            tr {
                                td { (name) }
                                td.number { (show(total.sum)) }
                                td.number { (total.mean.map_or("–".to_owned(), show)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn comparison(&self) -> Markup {
        html! {
            section {
                h2 { "Full exchanges that remain" }
                p { "Of " (whole(self.played)) " connections whose begin is in the logs. Cache: most "
                    "entries at once. Secrets: 95 % of them, until nothing can be resumed under them." }
                table {
                    thead {
                        tr {
                            th { "strategy" }
                            th.number { "exchanges" }
                            th.number { "part" }
                            th.number { "cache" }
                            th.number { "secrets good for" }
                            th.number { "data under them" }
                            @if self.cpu_seconds_without.is_some() { th.number { "CPU" } }
                        }
                    }
                    tbody {
                        @for one in &self.strategies {
                            tr {
                                td { (one.name) }
                                td.number { (whole(one.exchanges)) }
                                td.number { (percent(one.share)) }
                                td.number { (whole(one.most_entries as u64)) }
                                td.number { (limit_of_time(one.life)) }
                                td.number { (one.burden.map_or("–".to_owned(), limit_of_octets)) }
                                @if let Some(seconds) = one.cpu_seconds {
                                    td.number { (format!("{seconds:.0} s")) }
                                }
                            }
                        }
                        @if let Some(seconds) = self.cpu_seconds_without {
                            tr {
                                td { "no caching" }
                                td.number { (whole(self.played)) }
                                td.number { "100 %" }
                                td { } td { } td { }
                                td.number { (format!("{seconds:.0} s")) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn sources(&self) -> Markup {
        let source = &self.source;
        html! {
            section {
                h2 { "Read" }
                p {
                    (whole(source.lines)) " lines, " (whole(source.unreadable)) " of them unreadable."
                }
                ul {
                    @for read in &source.files { li { (read.file) " (" (read.format) ")" } }
                }
                @if !source.first_unreadable.is_empty() {
                    ul.reasons {
                        @for place in &source.first_unreadable {
                            li { (place) }
                        }
                    }
                }
                ul {
                    @for cut in &source.cut { li { "ends early: " (cut) } }
                    @for doubt in source.doubts() { li { (doubt) } }
                }
            }
        }
    }
}
