//! Asking the daemon, and what its answer means for the exit status.

use crate::output::{Exit, Output};
use crate::{show, text};
use control::{Changed, Client, Failure, NoAnswer, PeerState, Request, Response};
use std::path::Path;
use std::time::Duration;

/// How long the daemon may take for what it does not have to wait for itself.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Asks, prints, and says how it ended.
pub fn ask(socket: &Path, request: &Request, output: &Output) -> Exit {
    let waits = match request {
        Request::Up { wait_seconds, .. } => wait_seconds.unwrap_or(0),
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
        Err(error) => output.fail(exit(&error), &unanswered(&error)),
    }
}

/// `up` is a wish; only who waits for its fulfilment hears that it failed. A file with faults is a
/// wrong configuration here as it is for `check`.
fn verdict(response: &Response, waited: bool) -> Exit {
    match response {
        Response::Up(Changed { peers }) if waited => {
            let all_up = peers.iter().all(|peer| peer.state == PeerState::Up);
            if all_up { Exit::Done } else { Exit::No }
        }
        Response::Reload(reload) if !reload.faults.is_empty() => Exit::Usage,
        _ => Exit::Done,
    }
}

/// Who finds no daemon may have come because something cannot be reached, or have asked on another socket.
fn unanswered(error: &NoAnswer) -> Failure {
    if let (NoAnswer::NotRunning(_), Ok(Some(holder))) = (error, os::Claim::holder()) {
        return Failure::new(
            format!("{error}; {holder} serves this network namespace"),
            "give --socket the path that `socket` of [control] has in its file",
        );
    }
    let held = os::Routes::held().unwrap_or_default();
    if held.is_empty() || exit(error) != Exit::Unreachable {
        return Failure::new(error.to_string(), error.fix());
    }
    let held: Vec<_> = held.iter().map(ToString::to_string).collect();
    Failure::new(
        format!("{error}; {} is held back meanwhile", held.join(", ")),
        format!("{}; or open it with `stratad --unlock`", error.fix()),
    )
}

fn exit(error: &NoAnswer) -> Exit {
    match error {
        NoAnswer::Garbled(_) => Exit::No,
        _ => Exit::Unreachable,
    }
}

/// Invariant 9: keys leave only when asked for, and then loudly.
fn warn(response: &Response, output: &Output) {
    let Response::Keylog(control::Keylog {
        directory: Some(directory),
    }) = response
    else {
        return;
    };
    let directory = directory.to_string_lossy();
    output.complain(&format!(
        "KEYS ARE WRITTEN to {}: whoever reads them can read all traffic.\n\
         Stop it with `strata keylog off` and delete them when you are done.\n",
        text::clean(&directory)
    ));
}
