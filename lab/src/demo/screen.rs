//! Display of a running demo: a picture that is redrawn on a terminal, otherwise lines.

use super::paint::Paint;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Interval at which the picture is drawn.
pub(super) const DRAW: Duration = Duration::from_millis(200);

/// Interval of the lines that are written without an event.
pub(super) const LINE: Duration = Duration::from_secs(2);

/// Audience of the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A person, if standard output is a terminal; otherwise a reader of lines.
    Person,
    /// A program that reads only the report.
    Nobody,
}

/// A display.
pub(super) enum Screen {
    /// On a terminal.
    Picture(ProgressBar, Paint),
    /// A line for each event.
    Lines,
    /// No display.
    Nothing,
}

impl Screen {
    pub fn new(audience: Audience) -> Self {
        let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        match audience {
            Audience::Nobody => Self::Nothing,
            Audience::Person if is_terminal => picture(),
            Audience::Person => Self::Lines,
        }
    }

    /// Displays the phase before the demo starts.
    pub fn phase(&self, phase: &str) {
        match self {
            Self::Picture(bar, _) => bar.set_message(format!("{phase} ...")),
            Self::Lines => write(&format!("{phase}\n")),
            Self::Nothing => {}
        }
    }

    /// Draws the picture, if there is one.
    pub fn draw(&self, frame: impl FnOnce(Paint) -> String) {
        if let Self::Picture(bar, paint) = self {
            bar.set_message(frame(*paint));
            bar.tick();
        }
    }

    /// Writes what happened at a time since the start, if the display has lines.
    pub fn tell(&self, at: Duration, told: Option<String>) {
        if let (Self::Lines, Some(told)) = (self, told) {
            write(&format!("{:6.2} s  {told}\n", at.as_secs_f64()));
        }
    }

    /// Removes the picture. The report that follows has the same content.
    pub fn close(&self) {
        if let Self::Picture(bar, _) = self {
            bar.finish_and_clear();
        }
    }
}

fn picture() -> Screen {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let style = ProgressStyle::with_template("{msg}").expect("the template is well-formed");
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    // https://no-color.org
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Screen::Picture(bar, Paint { colour: !refused })
}

/// Writes to standard output. A closed pipe is not an error.
fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
