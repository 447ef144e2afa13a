//! Sends requests to the daemon and maps its answers to exit statuses.

use crate::{show, text};
use control::{Changed, Client, Failure, NoAnswer, PeerState, Request, Response};
use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;
use terminal::{Exit, Output};

/// Time limit for an answer, beyond the time that the request itself asks the daemon to wait.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Sends a request, prints the answer and returns the exit status.
pub fn ask(socket: &Path, request: &Request, output: &Output) -> Exit {
    let waits = match request {
        Request::Up { wait_seconds, .. } => wait_seconds.unwrap_or(0),
        // Four in a second, and the answers to the questions for counters.
        Request::Ping { count, .. } => 10 + u64::from(count.map_or(0, NonZeroU16::get)) / 4,
        _ => 0,
    };
    let patience = PATIENCE + Duration::from_secs(waits);
    let answer = Client::connect(socket).and_then(|mut client| client.ask(request, patience));
    match answer {
        Ok(Response::Error(failure)) => output.fail(Exit::No, &failure),
        Ok(response) => {
            warn(&response, output);
            match output.json {
                true => output.print_json(&response.to_line()),
                false => output.print(&show::response(&response, output.paint())),
            }
            verdict(&response, waits > 0)
        }
        Err(error) => fail(&error, output),
    }
}

/// Prints the failure of a request that got no answer, and returns the exit status.
pub fn fail(error: &NoAnswer, output: &Output) -> Exit {
    output.fail(exit(error), &failure(error))
}

/// Returns the exit status of an answer. `up` fails only if it waited for the result. A file with
/// faults is a configuration error, as it is for `check`.
fn verdict(response: &Response, waited: bool) -> Exit {
    match response {
        Response::Up(Changed { peers }) if waited => {
            let all_up = peers.iter().all(|peer| peer.state == PeerState::Up);
            if all_up { Exit::Done } else { Exit::No }
        }
        Response::Ping(ping) if !ping.is_well() => Exit::No,
        Response::Reload(reload) if !reload.faults.is_empty() => Exit::Usage,
        _ => Exit::Done,
    }
}

/// Returns the failure to print if no answer came. It mentions a daemon that uses another socket,
/// and prefixes that are unreachable because a stopped daemon blocks them.
pub fn failure(error: &NoAnswer) -> Failure {
    if let (NoAnswer::NotRunning(_), Ok(Some(holder))) = (error, os::Claim::holder()) {
        return Failure::new(
            format!("{error}; {holder} serves this network namespace"),
            "set `--socket` to the `socket` of [control] in that daemon's configuration",
        );
    }
    let held = os::Routes::held().unwrap_or_default();
    if held.is_empty() || exit(error) != Exit::Unreachable {
        return Failure::new(error.to_string(), error.fix());
    }
    let held: Vec<_> = held.iter().map(ToString::to_string).collect();
    Failure::new(
        format!(
            "{error}; traffic to {} is blocked meanwhile",
            held.join(", ")
        ),
        format!("{}; or lift the block with `stratad --unlock`", error.fix()),
    )
}

fn exit(error: &NoAnswer) -> Exit {
    match error {
        NoAnswer::Garbled(_) => Exit::No,
        _ => Exit::Unreachable,
    }
}

/// Warns loudly when keys are written: they are exported only on request (invariant 9).
fn warn(response: &Response, output: &Output) {
    let Response::Keylog(control::Keylog {
        directory: Some(directory),
    }) = response
    else {
        return;
    };
    let directory = directory.to_string_lossy();
    output.complain(&format!(
        "KEYS ARE WRITTEN to {}: these files decrypt all traffic.\n\
         To stop, run `strata keylog off`, then delete the files.\n",
        text::clean(&directory)
    ));
}
