//! Progress of a walk: a picture that is redrawn on a terminal, otherwise lines.

use super::Options;
use super::call::Direction;
use super::frame::{frame, quality};
use super::network::{CELLULAR, UPLINKS, WIFI};
use super::news::Dated;
use super::record::{Record, path};
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

    /// Displays what happens before and after the walk.
    pub fn phase(&self, phase: &str) {
        self.screen.phase(phase);
    }

    /// Records all events and displays them, until every sender is dropped.
    pub fn show(&self, news: &Receiver<Dated>, record: &mut Record) {
        let beginning = Instant::now();
        let (mut drawn, mut lines) = (Duration::ZERO, LINE);
        loop {
            match news.recv_timeout(DRAW) {
                Ok((at, what)) => {
                    let told = record.note(at, what);
                    self.screen.tell(at, told);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = beginning.elapsed();
            if now >= drawn + DRAW {
                drawn = now;
                record.pass(now);
                self.screen
                    .draw(|paint| frame(&self.options, record, paint));
            }
            if now >= lines {
                lines += LINE;
                let told = record.over.is_none().then(|| summary(record));
                self.screen.tell(record.now, told);
            }
        }
        record.pass(beginning.elapsed());
    }

    /// Removes the picture. The report that follows has the same content.
    pub fn close(&self) {
        self.screen.close();
    }
}

/// Summarises the paths, the download and the call of the last two seconds.
fn summary(record: &Record) -> String {
    let span = record.now.saturating_sub(LINE)..record.now;
    let paths = [WIFI, CELLULAR].map(|uplink| {
        let quality = quality(record.sight().paths[uplink]);
        format!("{} {}", UPLINKS[uplink].name, quality.trim())
    });
    let call = Direction::ALL.map(|direction| {
        let lost = record.lost(direction, &record.whole()).1;
        let gap = record.gap(direction, &span).unwrap_or_default();
        format!(
            "{} lost, silent for {} ms {}",
            count(lost),
            gap.as_millis(),
            direction.text()
        )
    });
    format!(
        "tunnel on {}; {}; download {:.1} Mb/s; call: {}",
        path(record.sight().used),
        paths.join(", "),
        record.goodput(&span) / 1e6,
        call.join(", ")
    )
}
