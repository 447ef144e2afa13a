//! Where answers go, and how a command ends.

use crate::text::{Paint, json_safe};
use control::Failure;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Everything worked, and the answer is no.
    No = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// The daemon cannot be reached.
    Unreachable = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Text or JSON on standard output; complaints in text on standard error.
#[derive(Debug)]
pub struct Output {
    pub json: bool,
}

impl Output {
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Colours for what goes to standard output.
    pub fn paint(&self) -> Paint {
        Paint::new(wants_colour(io::stdout().is_terminal()))
    }

    /// Prints text as it is.
    pub fn print(&self, text: &str) {
        write(&mut io::stdout().lock(), text);
    }

    /// Prints one JSON object.
    pub fn print_json(&self, line: &str) {
        self.print(&format!("{}\n", json_safe(line)));
    }

    /// Says something beside the answer.
    pub fn complain(&self, text: &str) {
        write(&mut io::stderr().lock(), text);
    }

    /// Ends a command that could not be done.
    pub fn fail(&self, exit: Exit, failure: &Failure) -> Exit {
        if self.json {
            let response = control::Response::Error(failure.clone());
            self.print_json(&response.to_line());
        } else {
            let paint = Paint::new(wants_colour(io::stderr().is_terminal()));
            self.complain(&crate::show::failure(failure, paint));
        }
        exit
    }
}

fn wants_colour(is_terminal: bool) -> bool {
    // https://no-color.org
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !refused
}

/// A reader that has seen enough (`strata status | head`) is no error, and one that failed cannot
/// be told.
fn write(sink: &mut impl Write, text: &str) {
    let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
}
