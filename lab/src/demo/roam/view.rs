//! Progress of a walk: a picture that is redrawn on a terminal, otherwise a line for each event.

use super::diary::{Diary, letter};
use super::frame::{Paint, count, frame};
use super::news::Dated;
use super::{Options, PLACES};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Interval at which the picture is drawn.
const DRAW: Duration = Duration::from_millis(200);

/// Interval of the lines that are written without an event.
const LINE: Duration = Duration::from_secs(2);

/// Audience of the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A person, if standard output is a terminal; otherwise a reader of lines.
    Person,
    /// A program that reads only the report.
    Nobody,
}

/// Displays the progress of a walk.
pub(super) struct View {
    options: Options,
    means: Means,
}

/// Form of the display.
enum Means {
    Picture(ProgressBar, Paint),
    Lines,
    Nothing,
}

impl View {
    pub fn new(options: &Options) -> Self {
        let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        let means = match options.audience {
            Audience::Nobody => Means::Nothing,
            Audience::Person if is_terminal => picture(),
            Audience::Person => Means::Lines,
        };
        Self {
            options: options.clone(),
            means,
        }
    }

    /// Displays the phase before the walk starts.
    pub fn phase(&mut self, phase: &str) {
        match &self.means {
            Means::Picture(bar, _) => bar.set_message(format!("{phase} ...")),
            Means::Lines => write(&format!("{phase}\n")),
            Means::Nothing => {}
        }
    }

    /// Records all events in the diary and displays them, until every sender is dropped.
    pub fn show(&mut self, news: &Receiver<Dated>, diary: &mut Diary) {
        let beginning = Instant::now();
        let (mut drawn, mut lines) = (Duration::ZERO, LINE);
        loop {
            match news.recv_timeout(DRAW) {
                Ok((at, what)) => {
                    let told = diary.note(at, what);
                    self.tell(diary, told);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = beginning.elapsed();
            if now >= drawn + DRAW {
                drawn = now;
                diary.pass(now);
                self.draw(diary);
            }
            if now >= lines {
                lines += LINE;
                self.tell(diary, diary.over.is_none().then(|| summary(diary)));
            }
        }
        diary.pass(beginning.elapsed());
    }

    /// Removes the picture. The report that follows has the same content.
    pub fn close(&mut self) {
        if let Means::Picture(bar, _) = &self.means {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, diary: &Diary) {
        if let Means::Picture(bar, paint) = &self.means {
            bar.set_message(frame(&self.options, diary, *paint));
            bar.tick();
        }
    }

    fn tell(&self, diary: &Diary, told: Option<String>) {
        if let (Means::Lines, Some(told)) = (&self.means, told) {
            write(&format!("{:6.2} s  {told}\n", diary.now.as_secs_f64()));
        }
    }
}

fn picture() -> Means {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let style = ProgressStyle::with_template("{msg}").expect("the template is well-formed");
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    // https://no-color.org
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Means::Picture(bar, Paint { colour: !refused })
}

/// Summarises the traffic and the rates of the agents.
fn summary(diary: &Diary) -> String {
    let rate = diary.recent(1).last().map_or(0, |(rate, _)| *rate) as f64 / 1e6;
    let reads = (0..PLACES).map(|agent| format!("{} {}", letter(agent), diary.rate(agent)));
    let reads: Vec<_> = reads.collect();
    let (sent, lost) = diary.stream();
    format!(
        "download {rate:.1} Mb/s; stream {} sent, {lost} lost; reads per second: {}",
        count(sent),
        reads.join(", ")
    )
}

/// Writes to standard output. A closed pipe is not an error.
fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
