//! `strata-lab figures`: passes the arguments to the lab and prints its findings.

use crate::args::{Figures, Run};
use lab::experiment::{self, Exhibit, Options, Plan, Report, Verdict};
use lab::obstacle::Obstacle;
use lab::{bundle, figures, interrupt, page, testbed};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use terminal::{Exit, Output};

/// Runs a subcommand. Must be called before the first thread starts.
pub fn run(figures: &Figures, output: &Output) -> Result<Exit, Obstacle> {
    match figures {
        Figures::List => Ok(list(output)),
        Figures::Run(run) => measure(run, output.json).map(|reports| print(&reports, output)),
        Figures::Report { out } => page::write(out).map(|file| tell(&file, output)),
        Figures::Bundle { out, to } => bundle::pack(out, to).map(|_| tell(to, output)),
        Figures::Verify { folder } => bundle::verify(folder).map(|checked| judge(&checked, output)),
    }
}

fn list(output: &Output) -> Exit {
    let at_once = experiment::networks_at_once();
    let width = figures::ALL
        .iter()
        .map(|exhibit| exhibit.name().len())
        .max();
    let width = width.unwrap_or_default() + 2;
    for exhibit in figures::ALL {
        let estimates = [Plan::QUICK, Plan::FULL].map(|plan| exhibit.estimate(&plan, at_once));
        let (name, title) = (exhibit.name(), exhibit.title());
        let obstacle = exhibit.obstacle();
        if output.json {
            let line = json!({
                "name": name,
                "title": title,
                "quick_seconds": estimates[0].as_secs(),
                "full_seconds": estimates[1].as_secs(),
                "cannot_run": obstacle.as_ref().map(|obstacle| &obstacle.message),
                "fix": obstacle.as_ref().map(|obstacle| &obstacle.fix),
            });
            output.print_json(&line.to_string());
        } else {
            let [quick, full] = estimates.map(time);
            output.print(&format!("{name:width$}{title}\n{:width$}", ""));
            output.print(&format!("full {full}, --quick {quick}\n"));
            if let Some(obstacle) = obstacle {
                output.print(&format!("{:18}cannot run: {obstacle}\n", ""));
            }
        }
    }
    if !output.json {
        output.print("Figures that are measured into the same folder share results.\n");
    }
    Exit::Done
}

fn time(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

fn measure(run: &Run, json: bool) -> Result<Vec<Report>, Obstacle> {
    let exhibits = run.names.iter().map(|name| find(name));
    let exhibits = exhibits.collect::<Result<Vec<_>, _>>()?;
    testbed::enter()?;
    interrupt::tidy()?;
    experiment::run(&exhibits, &options(run, json))
}

fn find(name: &str) -> Result<Exhibit, Obstacle> {
    figures::find(name).ok_or_else(|| {
        let message = format!("there is no figure {name}");
        Obstacle::new(message, "run `strata-lab figures list` to see all names")
    })
}

fn print(reports: &[Report], output: &Output) -> Exit {
    for report in reports {
        if output.json {
            let line = serde_json::to_string(report).expect("a report has only string keys");
            output.print_json(&line);
            continue;
        }
        let paint = output.paint();
        let conclusion = report.conclusion();
        let conclusion = match report.verdict {
            Verdict::Holds | Verdict::Consistent => paint.good(conclusion.trim_end()),
            Verdict::NotDecided => paint.doubtful(conclusion.trim_end()),
            Verdict::Fails => paint.bad(conclusion.trim_end()),
        };
        output.print(&format!("{}\n{conclusion}\n\n", report.body()));
    }
    let failed = reports
        .iter()
        .any(|report| report.verdict == Verdict::Fails);
    if failed { Exit::No } else { Exit::Done }
}

/// Prints the path of the page.
fn tell(file: &Path, output: &Output) -> Exit {
    if output.json {
        output.print_json(&json!({"file": file}).to_string());
    } else {
        output.print(&format!("{}\n", file.display()));
    }
    Exit::Done
}

/// Prints the outcome of a check.
fn judge(checked: &bundle::Checked, output: &Output) -> Exit {
    let bundle::Checked {
        reports,
        files,
        faults,
    } = checked;
    if output.json {
        let line = json!({"reports": reports, "files": files, "faults": faults});
        output.print_json(&line.to_string());
    } else {
        let lines = faults.iter().map(|fault| format!("{fault}\n"));
        output.print(&lines.collect::<String>());
        let conclusion = format!(
            "{reports} figures and tables, {files} files, {} faults",
            faults.len()
        );
        let paint = output.paint();
        let conclusion = match faults.is_empty() {
            true => paint.good(&conclusion),
            false => paint.bad(&conclusion),
        };
        output.print(&format!("{conclusion}\n"));
    }
    if faults.is_empty() {
        Exit::Done
    } else {
        Exit::No
    }
}

fn options(run: &Run, json: bool) -> Options {
    let plan = if run.quick { Plan::QUICK } else { Plan::FULL };
    Options {
        plan: Plan {
            seeds: run.seeds.unwrap_or(plan.seeds),
            seconds: run.seconds.unwrap_or(plan.seconds),
            clients: run.clients.unwrap_or(plan.clients),
            snoop: !run.no_snoop,
            zones: !run.no_zones,
            simultaneous: !run.no_simultaneous,
            resumption: !run.no_resumption,
            mobike: !run.no_mobike,
            transport: !run.no_transport,
            clones: !run.no_clones,
            paths: !run.no_paths,
            tunnels: !run.no_tunnels,
            ..plan
        },
        out: run.out.clone(),
        at_once: run.at_once.unwrap_or_else(experiment::networks_at_once),
        bars: !json,
    }
}
