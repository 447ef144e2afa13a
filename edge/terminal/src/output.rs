//! Output streams and exit statuses.

use crate::text::{Paint, json_safe};
use control::Failure;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Done = 0,
    /// The command worked, with a negative result.
    No = 1,
    /// The usage or the configuration is wrong.
    Usage = 2,
    /// The daemon cannot be reached.
    Unreachable = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Prints results as text or JSON on standard output, and messages as text on standard error.
#[derive(Debug)]
pub struct Output {
    /// True for JSON.
    pub json: bool,
}

impl Output {
    /// Creates the output of a program.
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns the colours for standard output.
    pub fn paint(&self) -> Paint {
        Paint::new(wants_colour(io::stdout().is_terminal()))
    }

    /// Prints text unchanged.
    pub fn print(&self, text: &str) {
        write(&mut io::stdout().lock(), text);
    }

    /// Prints text unchanged, for a command that goes on until nothing reads it any more.
    pub fn try_print(&self, text: &str) -> io::Result<()> {
        try_write(&mut io::stdout().lock(), text)
    }

    /// Prints one JSON object on one line.
    pub fn print_json(&self, line: &str) {
        self.print(&format!("{}\n", json_safe(line)));
    }

    /// Prints a message on standard error.
    pub fn complain(&self, text: &str) {
        write(&mut io::stderr().lock(), text);
    }

    /// Prints the failure of a command and returns its exit status.
    pub fn fail(&self, exit: Exit, failure: &Failure) -> Exit {
        if self.json {
            let response = control::Response::Error(failure.clone());
            self.print_json(&response.to_line());
        } else {
            let paint = Paint::new(wants_colour(io::stderr().is_terminal()));
            self.complain(&crate::failure(failure, paint));
        }
        exit
    }
}

fn wants_colour(is_terminal: bool) -> bool {
    // https://no-color.org
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !refused
}

/// Writes text and ignores errors. A reader that stops early (`strata status | head`) is no error,
/// and a broken output cannot report any.
fn write(sink: &mut impl Write, text: &str) {
    let _ = try_write(sink, text);
}

fn try_write(sink: &mut impl Write, text: &str) -> io::Result<()> {
    sink.write_all(text.as_bytes()).and_then(|()| sink.flush())
}
