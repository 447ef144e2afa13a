//! Progress of a walk: a picture that is redrawn on a terminal, otherwise a line for each event.

use super::diary::{Diary, letter};
use super::frame::frame;
use super::news::Dated;
use super::{Options, PLACES};
use crate::demo::paint::count;
use crate::demo::screen::{DRAW, LINE, Screen};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Displays the progress of a walk.
pub(super) struct View {
    options: Options,
    screen: Screen,
}

impl View {
    pub fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            screen: Screen::new(options.audience),
        }
    }

    /// Displays the phase before the walk starts.
    pub fn phase(&mut self, phase: &str) {
        self.screen.phase(phase);
    }

    /// Records all events in the diary and displays them, until every sender is dropped.
    pub fn show(&mut self, news: &Receiver<Dated>, diary: &mut Diary) {
        let beginning = Instant::now();
        let (mut drawn, mut lines) = (Duration::ZERO, LINE);
        loop {
            match news.recv_timeout(DRAW) {
                Ok((at, what)) => {
                    let told = diary.note(at, what);
                    self.screen.tell(diary.now, told);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = beginning.elapsed();
            if now >= drawn + DRAW {
                drawn = now;
                diary.pass(now);
                self.screen.draw(|paint| frame(&self.options, diary, paint));
            }
            if now >= lines {
                lines += LINE;
                let told = diary.over.is_none().then(|| summary(diary));
                self.screen.tell(diary.now, told);
            }
        }
        diary.pass(beginning.elapsed());
    }

    /// Removes the picture. The report that follows has the same content.
    pub fn close(&mut self) {
        self.screen.close();
    }
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
