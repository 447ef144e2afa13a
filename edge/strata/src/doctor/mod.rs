//! `strata doctor`: what on this machine keeps Strata from working, and how to change it.
//!
//! It looks and changes nothing, with a daemon or without, as root or as anybody; where it may not
//! look it says so. [`machine`] is about the machine, [`network`] about what the configuration
//! makes of its network.

mod finding;
mod machine;
mod network;

use crate::output::{Exit, Output};
use config::{Config, Error, Fault};
use finding::{Finding, Verdict};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Looks at everything and prints what was found, the worst first.
pub fn run(file: &Path, socket: &Path, output: &Output) -> Exit {
    let (config, mut findings) = configuration(file);
    let socket = config.as_ref().map_or(socket, |config| &config.socket);
    let runs = UnixStream::connect(socket).is_ok();
    findings.push(Finding::good(
        "daemon",
        if runs {
            "stratad runs"
        } else {
            "stratad does not run"
        },
    ));
    findings.extend(machine::examine(config.as_ref(), runs));
    if let Some(config) = &config {
        findings.extend(network::examine(config, runs));
    }
    findings.sort_by_key(|finding| finding.verdict);
    print(&findings, output);
    match findings
        .iter()
        .any(|finding| finding.verdict == Verdict::Fail)
    {
        true => Exit::No,
        false => Exit::Done,
    }
}

fn print(findings: &[Finding], output: &Output) {
    if !output.json {
        let paint = output.paint();
        let text: String = findings.iter().map(|finding| finding.show(paint)).collect();
        return output.print(&text);
    }
    let ok = findings
        .iter()
        .all(|finding| finding.verdict != Verdict::Fail);
    let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
    let report = json!({
        "version": control::VERSION,
        "doctor": { "ok": ok, "findings": findings },
    });
    output.print_json(&report.to_string());
}

/// The configuration, if it is good, and what `strata check` says about it.
fn configuration(file: &Path) -> (Option<Config>, Vec<Finding>) {
    const CHECK: &str = "configuration";
    const WHY: &str = "stratad does not start with it";
    match config::load(file) {
        Ok(config) => {
            let doubt = |warning: &config::Warning| {
                let fix = format!("change it in {}, if it is not meant", file.display());
                Finding::doubt(CHECK, warning.to_string(), "it is legal", fix)
            };
            let expiry = config::expiry(config.certificates(), &config.lists, config::today());
            let mut findings: Vec<_> = expiry.iter().chain(&config.warnings).map(doubt).collect();
            if findings.is_empty() {
                findings.push(Finding::good(CHECK, file.display().to_string()));
            }
            (Some(config), findings)
        }
        Err(error @ Error::Unreadable { .. }) => {
            let seen = error.to_string();
            let seen = seen.lines().next().unwrap_or_default();
            let why = "without it only the machine can be examined";
            (None, vec![Finding::doubt(CHECK, seen, why, error.fix())])
        }
        Err(Error::Invalid(faults)) => {
            let finding = |fault: &Fault| {
                let Fault {
                    line,
                    key,
                    problem,
                    fix,
                    ..
                } = fault;
                let seen = format!("{}:{line}: {key}: {problem}", file.display());
                Finding::fail(CHECK, seen, WHY, fix)
            };
            (None, faults.faults.iter().map(finding).collect())
        }
    }
}
