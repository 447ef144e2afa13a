//! Progress while cells run: one bar for all of them on a terminal, otherwise a line every half
//! minute. Everything goes to standard error.

use super::Options;
use super::scheduler::{News, State};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Interval of the lines without a bar.
const LINE: Duration = Duration::from_secs(30);

/// Counts cells and displays the counts.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    things: &'static str,
    total: usize,
    done: usize,
    repeated: usize,
    failed: usize,
    start: Instant,
    next_line: Instant,
}

impl Progress {
    /// Starts the display; `things` names the counted items for readers.
    pub fn new(things: &'static str, total: usize, options: &Options) -> Self {
        let is_drawn = options.bars && std::io::stderr().is_terminal();
        let start = Instant::now();
        Self {
            bar: is_drawn.then(|| bar(things, total)),
            things,
            total,
            done: 0,
            repeated: 0,
            failed: 0,
            start,
            next_line: start + LINE,
        }
    }

    pub fn note(&mut self, news: &News<'_>, state: State) {
        match news {
            News::Tick => {}
            News::Done(_) => self.done += 1,
            News::Again(cell, error) => {
                self.repeated += 1;
                self.say(&format!("again: {}: {error:#}", cell.key()));
            }
            News::Late(measured, reason) => {
                self.repeated += 1;
                self.say(&format!("again: {}: {reason}", measured.cell.key()));
            }
            News::Failed(cell, error) => {
                self.failed += 1;
                self.say(&format!("given up: {}: {error:#}", cell.key()));
            }
        }
        let text = self.text(state);
        if let Some(bar) = &self.bar {
            bar.set_position((self.done + self.failed) as u64);
            bar.set_message(text);
        } else if Instant::now() >= self.next_line {
            self.next_line += LINE;
            eprintln!("{} of {} {}; {text}", self.done, self.total, self.things);
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    fn text(&self, state: State) -> String {
        let mut text = format!("{} of {} at once", state.running, state.width);
        if self.repeated > 0 {
            text += &format!(", {} repeated", self.repeated);
        }
        let runs = self.done + self.failed + self.repeated;
        if runs > 0 {
            let left = (self.total - self.done - self.failed) as f64;
            let each = self.start.elapsed().as_secs_f64() / runs as f64;
            text += &format!(", {:.0} min left", (left * each / 60.0).ceil());
        }
        text
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The table that follows has the same content.
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(things: &'static str, total: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30.green/dim} {pos}/{len} {prefix}  {msg}")
        .expect("the template is well-formed");
    ProgressBar::new(total as u64)
        .with_style(style)
        .with_prefix(things)
}
