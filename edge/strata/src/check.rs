//! `strata check`: checks a configuration without a daemon.

use crate::output::{Exit, Output};
use crate::text::plural;
use config::{Config, Error, Fault};
use control::Failure;
use serde_json::{Value, json};
use std::path::Path;

/// Reads the configuration and prints its errors, or a summary of its effects.
pub fn run(file: &Path, output: &Output) -> Exit {
    match config::load(file) {
        Ok(config) => good(file, &config, output),
        Err(Error::Invalid(faults)) => {
            if output.json {
                output.print_json(&report(file, &faults.faults, &[]));
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
        output.print_json(&report(file, &[], &warnings));
        return Exit::Done;
    }
    for warning in &warnings {
        output.complain(&format!("warning: {warning}\n"));
    }
    output.print(&format!("{}: valid: {}\n", file.display(), summary(config)));
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
    let tables: Vec<_> = tables
        .map(|(number, thing)| plural(number as u64, thing))
        .collect();
    match &config.divert {
        Some(divert) => format!(
            "{}, {}, packets between {} and {} are diverted",
            config.identity,
            tables.join(", "),
            divert.wired,
            divert.wireless
        ),
        None => format!("{}, {}", config.identity, tables.join(", ")),
    }
}

fn report(file: &Path, faults: &[Fault], warnings: &[String]) -> String {
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
    json!({
        "version": control::VERSION,
        "check": {
            "file": file.display().to_string(),
            "ok": faults.is_empty(),
            "errors": errors,
            "warnings": warnings,
        },
    })
    .to_string()
}
