//! `strata status`: asks the daemon for its peers, some at a time so that it carries packets in
//! between, and prints them once or every second.

use crate::answer::{self, PATIENCE};
use crate::show;
use clap::builder::PossibleValuesParser;
use control::{Client, NoAnswer, Request, Response, Selection, StateFilter, Status};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use terminal::{Exit, Output, Size, cut, json_safe};

/// Peers that the daemon visits for one answer.
const PART: NonZeroUsize = NonZeroUsize::new(250).expect("it is not zero");

/// Time from one look to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// The peers to show.
#[derive(Debug, clap::Args)]
pub struct Wanted {
    /// Names of peers, to show all about them, or patterns such as 'u1*', to show their lines; if
    /// omitted, every peer
    #[arg(value_name = "PEER")]
    peers: Vec<String>,
    /// Only peers in this state
    #[arg(long, value_parser = PossibleValuesParser::new(StateFilter::WORDS))]
    state: Option<String>,
    /// Show them every second, until interrupted
    #[arg(long)]
    watch: bool,
}

/// Prints the selected peers and returns the exit status.
pub fn run(wanted: &Wanted, socket: &Path, output: &Output) -> Exit {
    let selection = Selection {
        peers: wanted.peers.clone(),
        state: wanted.state.as_ref().and_then(|word| word.parse().ok()),
        ..Selection::default()
    };
    let first = look(&selection, socket);
    if wanted.watch && matches!(first, Ok(Response::Status(_))) {
        return watch(first, &selection, socket, output);
    }
    match first {
        Ok(Response::Error(failure)) => output.fail(Exit::No, &failure),
        Ok(answer) => {
            output.print(&shown(&answer, &selection, terminal::size(), output));
            Exit::Done
        }
        Err(error) => answer::fail(&error, output),
    }
}

/// Prints the peers every second, until nothing reads them any more. A daemon that does not answer
/// may be on its way back.
fn watch(
    first: Result<Response, NoAnswer>,
    selection: &Selection,
    socket: &Path,
    output: &Output,
) -> Exit {
    let mut answer = first;
    let mut next = Instant::now();
    loop {
        let size = terminal::size().filter(|_| !output.json);
        let answered = answer.unwrap_or_else(|error| Response::Error(answer::failure(&error)));
        let text = shown(&answered, selection, size, output);
        let text = match size {
            Some(size) => format!("{CLEAR}{}", page(&text, size)),
            None if output.json => text,
            None => format!("{text}\n"),
        };
        if output.try_print(&text).is_err() {
            return Exit::Done;
        }
        next = (next + PAUSE).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
        answer = look(selection, socket);
    }
}

/// Asks for all selected peers.
fn look(selection: &Selection, socket: &Path) -> Result<Response, NoAnswer> {
    let mut client = Client::connect(socket)?;
    let mut selection = Selection {
        most: Some(PART),
        ..selection.clone()
    };
    let mut whole = Status::default();
    loop {
        let mut part = match client.ask(&Request::Status(selection.clone()), PATIENCE)? {
            Response::Status(status) => status,
            other => return Ok(other),
        };
        let next = part.next.take();
        match selection.after {
            None => whole = part,
            Some(_) => whole.append(part),
        }
        // A peer that follows has a greater name, so that this ends.
        if next <= selection.after {
            return Ok(Response::Status(whole));
        }
        selection.after = next;
    }
}

/// Formats an answer.
fn shown(answer: &Response, selection: &Selection, size: Option<Size>, output: &Output) -> String {
    if output.json {
        return format!("{}\n", json_safe(&answer.to_line()));
    }
    let (columns, paint) = (size.map(|size| size.columns), output.paint());
    match answer {
        Response::Status(status) if selection.is_by_name() => show::status::details(status, paint),
        Response::Status(status) if is_of_all(selection) => {
            show::status::overview(status, columns, paint)
        }
        Response::Status(status) => show::status::selected(status, columns, paint),
        other => show::response(other, paint),
    }
}

fn is_of_all(selection: &Selection) -> bool {
    selection.peers.is_empty() && selection.state.is_none()
}

/// Moves the cursor to the first line, and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Leaves out the lines that would scroll the first ones away, and says how many.
fn page(text: &str, size: Size) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut shown = lines.as_slice();
    // The cursor is on the line after the last one.
    let room = size.rows.saturating_sub(1);
    if lines.len() > room {
        shown = &lines[..room.saturating_sub(1)];
    }
    let columns = Some(size.columns);
    let mut page: String = shown
        .iter()
        .map(|line| format!("{}\n", cut(line, columns)))
        .collect();
    let others = lines.len() - shown.len();
    if others > 0 {
        let more = format!("... {others} more lines; name peers or a pattern to see less");
        page.push_str(&format!("{}\n", cut(&more, columns)));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        rows: 4,
        columns: 12,
    };

    #[test]
    fn what_is_watched_fits_the_terminal() {
        assert_eq!(page("1\n2\n3\n", SIZE), "1\n2\n3\n");
        assert_eq!(page("1\n2\n3\n4\n5\n", SIZE), "1\n2\n... 3 more …\n");
        assert_eq!(page("a line that is long\n", SIZE), "a line that…\n");
    }
}
