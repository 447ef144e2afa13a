//! `strata doctor`: reports problems of this machine that keep Strata from working, with remedies.
//!
//! The checks read only. They run with or without a daemon, as root or as any user, and report a
//! check that lacks permission. [`machine`] checks the machine, [`network`] the effects of the
//! configuration on its network, and [`firewall`] other programs' filters.

mod finding;
mod firewall;
mod machine;
mod network;

use crate::answer::PATIENCE;
use config::{Config, Error, Fault};
use control::{Client, Peer, PeerState, Request, Response, Selection, Status};
use finding::{Finding, Verdict};
use os::Claim;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use terminal::{Exit, Output};

/// Runs all checks and prints the findings, the worst first.
pub fn run(file: &Path, socket: &Path, output: &Output) -> Exit {
    let (config, mut findings) = configuration(file);
    let socket = config.as_ref().map_or(socket, |config| &config.socket);
    let holder = Claim::holder().unwrap_or_default();
    let answers = match UnixStream::connect(socket) {
        Ok(_) => true,
        // The daemon's socket is accessible to root only.
        Err(error) => error.kind() == ErrorKind::PermissionDenied && holder.is_some(),
    };
    findings.push(daemon(answers, holder.as_deref(), socket));
    let status = status(socket);
    findings.extend(status.iter().flat_map(told));
    findings.extend(machine::examine(
        config.as_ref(),
        answers || holder.is_some(),
    ));
    if let Some(config) = &config {
        findings.extend(network::examine(config, answers));
        let is_up = |peer: &Peer| peer.state == PeerState::Up;
        let up = status.is_some_and(|status| status.peers.iter().any(is_up));
        findings.extend(firewall::examine(config, up));
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

/// Checks the daemon. A running daemon that does not answer has another configuration, or is just
/// starting.
fn daemon(answers: bool, holder: Option<&str>, socket: &Path) -> Finding {
    const CHECK: &str = "daemon";
    match holder {
        _ if answers => Finding::good(CHECK, "stratad runs"),
        None => Finding::good(CHECK, "stratad does not run"),
        Some(holder) => Finding::doubt(
            CHECK,
            format!(
                "{holder} serves this network namespace, but does not answer on {}",
                socket.display()
            ),
            "a second stratad cannot start here: it would remove the routes of the first",
            "name its configuration: strata doctor FILE (or stop that process)",
        ),
    }
}

/// Asks the daemon for its status. Returns `None` if no daemon answers.
fn status(socket: &Path) -> Option<Status> {
    let client = Client::connect(socket);
    let request = Request::Status(Selection::default());
    let answer = client.and_then(|mut client| client.ask(&request, PATIENCE));
    match answer {
        Ok(Response::Status(status)) => Some(status),
        _ => None,
    }
}

/// Returns the findings of the daemon itself.
fn told(status: &Status) -> Vec<Finding> {
    const WHY: &str = "stratad cannot do this part of its work; the rest is not affected";
    // The checks of the network and its settings report three of these, with or without a daemon,
    // and `installed` the others.
    const OTHERS: [&str; 5] = ["wait", "forwarding", "reverse_path", "removed", "filter"];
    let errors = status.errors.iter();
    let errors = errors.filter(|error| !OTHERS.contains(&&*error.task));
    let errors = errors.map(|error| Finding::fail("daemon", &error.what, WHY, &error.fix));
    let names = status.peers.iter().filter_map(name);
    errors.chain([installed(status)]).chain(names).collect()
}

/// Checks the name of a peer whose `address` is one.
fn name(peer: &Peer) -> Option<Finding> {
    const CHECK: &str = "name";
    let lookup = peer.lookup.as_ref()?;
    let seen = format!("{}: {lookup}", lookup.name);
    let is_lost = lookup.failure.is_some() && peer.state != PeerState::Up;
    Some(match is_lost {
        false => Finding::good(CHECK, seen),
        true => Finding::fail(
            CHECK,
            seen,
            "the peer is not found, so its tunnel cannot be set up",
            format!("do that, then look at `strata explain {}`", peer.name),
        ),
    })
}

/// Checks for routes, rules and filters that could not be installed, or that another program keeps
/// removing.
fn installed(status: &Status) -> Finding {
    const CHECK: &str = "installed";
    const CLEAR: &str = "packets in clear with a source address inside a tunnel may be accepted";
    if let Some(why) = &status.unguarded {
        return Finding::fail(
            CHECK,
            format!("the filter for packets in clear could not be installed: {why}"),
            CLEAR,
            "correct that; stratad tries again within 10 s",
        );
    }
    if let Some(missing) = status.errors.iter().find(|error| error.task == "filter") {
        return Finding::fail(CHECK, &missing.what, CLEAR, &missing.fix);
    }
    match status.removed.as_slice() {
        [] => Finding::good(CHECK, "routes, rules and filters are as stratad set them"),
        removed => Finding::fail(
            CHECK,
            format!("another program keeps removing: {}", removed.join(", ")),
            "stratad no longer restores them; packets of protected prefixes may leave or arrive in clear",
            "configure that program to leave routes and rules of stratad alone, then: strata reload",
        ),
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

/// Loads the configuration, and returns the findings of `strata check` about it.
fn configuration(file: &Path) -> (Option<Config>, Vec<Finding>) {
    const CHECK: &str = "configuration";
    const WHY: &str = "stratad does not start with errors in its configuration";
    match config::load(file) {
        Ok(config) => {
            let doubt = |warning: &config::Warning| {
                let fix = format!("if that is not intended, change it in {}", file.display());
                Finding::doubt(CHECK, warning.to_string(), "allowed, but unusual", fix)
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
            let why = "without the configuration, only the machine is checked";
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
                let key = if key.is_empty() {
                    String::new()
                } else {
                    format!(" {key}:")
                };
                let seen = format!("{}:{line}:{key} {problem}", file.display());
                Finding::fail(CHECK, seen, WHY, fix)
            };
            (None, faults.faults.iter().map(finding).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::Trouble;

    #[test]
    fn every_failure_that_the_daemon_reports_is_a_finding_with_its_fix() {
        let trouble = |task: &str| Trouble {
            task: task.to_owned(),
            remote: None,
            what: format!("cannot do {task}"),
            fix: format!("mend {task}"),
            seconds: Some(1),
        };
        let status = Status {
            errors: vec![trouble("dns"), trouble("wait"), trouble("store")],
            ..Status::default()
        };
        let findings = told(&status);
        let failed = findings.iter().filter(|one| one.verdict == Verdict::Fail);
        let failed: Vec<_> = failed.map(|one| (&one.seen[..], &one.fix[..])).collect();
        let expected = [
            ("cannot do dns", "mend dns"),
            ("cannot do store", "mend store"),
        ];
        assert_eq!(failed, expected);
        assert!(
            told(&Status::default())
                .iter()
                .all(|one| one.verdict == Verdict::Good)
        );
    }
}
