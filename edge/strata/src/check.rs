//! `strata check`: checks a configuration without a daemon.

use crate::text::plural;
use config::{Config, Error, Fault, Mobility, Need};
use control::Failure;
use serde_json::{Value, json};
use std::path::Path;
use terminal::{Exit, Output};

/// Reads the configuration and prints its errors, or a summary of its effects.
pub fn run(file: &Path, output: &Output) -> Exit {
    match config::load(file) {
        Ok(config) => good(file, &config, output),
        Err(Error::Invalid(faults)) => {
            if output.json {
                output.print_json(&report(file, &faults.faults, &[], &[]));
            } else {
                let errors = plural(faults.faults.len() as u64, "error");
                output.complain(&format!("{faults}\n{errors}\n"));
            }
            Exit::Usage
        }
        Err(error @ Error::Unreadable { .. }) => {
            let message = error.to_string();
            let message = message.lines().next().unwrap_or_default();
            output.fail(Exit::Usage, &Failure::new(message, error.fix()))
        }
    }
}

fn good(file: &Path, config: &Config, output: &Output) -> Exit {
    let expiry = config::expiry(config.certificates(), &config.lists, config::today());
    let warnings = expiry.iter().chain(&config.warnings);
    let warnings: Vec<_> = warnings.map(ToString::to_string).collect();
    if output.json {
        output.print_json(&report(file, &[], &warnings, &config.needs()));
        return Exit::Done;
    }
    for warning in &warnings {
        output.complain(&format!("warning: {warning}\n"));
    }
    output.print(&format!("{}: valid: {}\n", file.display(), summary(config)));
    for need in config.needs() {
        output.print(&format!("needs {need}\n"));
    }
    Exit::Done
}

/// Summarises the configuration in one line.
fn summary(config: &Config) -> String {
    let tables = [
        (config.peers.len(), "tunnel"),
        (config.licensed.len(), "licensed node"),
        (config.gateways.len(), "gateway"),
        (config.adjacent.len(), "neighbour"),
    ];
    let tables = tables.into_iter().filter(|(number, _)| *number > 0);
    let tables = tables.map(|(number, thing)| plural(number as u64, thing));
    let mobility = config.mobility.as_ref().map(|mobility| match mobility {
        Mobility::MobileNode(node) => format!("mobile node with {}", node.home_address),
        Mobility::ForeignAgent(agent) => format!("foreign agent at {}", agent.interface),
        Mobility::HomeAgent(agent) => format!("home agent at {}", agent.address),
    });
    let divert = config.divert.as_ref().map(|divert| {
        format!(
            "packets between {} and {} are diverted",
            divert.wired, divert.wireless
        )
    });
    let identity = std::iter::once(config.identity.to_string());
    let parts: Vec<_> = identity
        .chain(tables)
        .chain(mobility)
        .chain(divert)
        .collect();
    parts.join(", ")
}

fn report(file: &Path, faults: &[Fault], warnings: &[String], needs: &[Need]) -> String {
    let error = |fault: &Fault| -> Value {
        json!({
            "line": fault.line,
            "column": fault.column,
            "key": fault.key,
            "message": fault.problem,
            "fix": fault.fix,
        })
    };
    let errors: Vec<_> = faults.iter().map(error).collect();
    let need = |need: &Need| -> Value {
        let settings: Vec<_> = need.settings.iter().map(ToString::to_string).collect();
        json!({
            "settings": settings,
            "why": need.why,
            "vital": need.is_vital,
        })
    };
    json!({
        "version": control::VERSION,
        "check": {
            "file": file.display().to_string(),
            "ok": faults.is_empty(),
            "errors": errors,
            "warnings": warnings,
            "needs": needs.iter().map(need).collect::<Vec<_>>(),
        },
    })
    .to_string()
}
