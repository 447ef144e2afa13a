//! Progress while the demo runs: a bar for each setup on a terminal, otherwise a line every few
//! seconds. Everything goes to standard error.

use super::{Options, Setup};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Interval at which bars are drawn.
const DRAW: Duration = Duration::from_millis(250);

/// Interval of the lines without bars.
const LINE: Duration = Duration::from_secs(10);

/// Progress of a setup.
enum News {
    Phase(&'static str),
    Octets(u64),
}

/// Reports the progress of a setup.
#[derive(Clone)]
pub(super) struct Teller {
    index: usize,
    news: Sender<(usize, News)>,
}

impl Teller {
    /// Reports the current phase. A missing receiver is not an error.
    pub fn phase(&self, phase: &'static str) {
        let _ = self.news.send((self.index, News::Phase(phase)));
    }

    /// Reports the number of octets received so far.
    pub fn octets(&self, octets: u64) {
        let _ = self.news.send((self.index, News::Octets(octets)));
    }
}

/// Displays the progress of all setups.
pub(super) struct Progress {
    news: Receiver<(usize, News)>,
    bars: Option<Vec<ProgressBar>>,
    state: Vec<State>,
    duration: Duration,
}

struct State {
    setup: Setup,
    phase: &'static str,
    octets: u64,
    since: Option<Instant>,
}

impl Progress {
    /// Creates the display, with one line and one teller for each setup.
    pub fn new(options: &Options) -> (Self, Vec<Teller>) {
        let (sender, news) = mpsc::channel();
        let setups = &options.setups;
        let teller = |index| Teller {
            index,
            news: sender.clone(),
        };
        let tellers = (0..setups.len()).map(teller).collect();
        let is_drawn = options.bars && std::io::stderr().is_terminal();
        if is_drawn {
            let seconds = options.duration.as_secs();
            eprintln!(
                "{} networks, {seconds} s of one download in each:",
                setups.len()
            );
        }
        let progress = Self {
            news,
            bars: is_drawn.then(|| bars(setups, options.duration)),
            state: setups.iter().copied().map(State::new).collect(),
            duration: options.duration,
        };
        (progress, tellers)
    }

    /// Displays the progress until every teller is dropped.
    pub fn show(mut self) {
        let mut next_line = Instant::now() + LINE;
        loop {
            match self.news.recv_timeout(DRAW) {
                Ok((index, news)) => self.note(index, news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.bars.is_none() && Instant::now() >= next_line {
                next_line += LINE;
                self.write_line();
            }
        }
        // The table that follows has the same content.
        for bar in self.bars.iter().flatten() {
            bar.finish_and_clear();
        }
    }

    fn note(&mut self, index: usize, news: News) {
        let state = &mut self.state[index];
        match news {
            News::Phase(phase) => state.phase = phase,
            News::Octets(octets) => {
                state.octets = octets;
                state.since.get_or_insert_with(Instant::now);
            }
        }
        if let Some(bars) = &self.bars {
            let elapsed = state.since.map_or(Duration::ZERO, |since| since.elapsed());
            let bar = &bars[index];
            bar.set_position(elapsed.min(self.duration).as_millis() as u64);
            bar.set_message(state.text(self.duration));
        }
    }

    fn write_line(&self) {
        let states = self.state.iter();
        let texts: Vec<_> = states
            .map(|state| format!("{}: {}", state.setup.name(), state.text(self.duration)))
            .collect();
        eprintln!("{}", texts.join("; "));
    }
}

impl State {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            phase: "",
            octets: 0,
            since: None,
        }
    }

    fn text(&self, duration: Duration) -> String {
        match self.since {
            Some(since) if self.phase == "downloading" => {
                let elapsed = since.elapsed();
                let kilobits = self.octets as f64 * 8.0 / 1000.0;
                let goodput = kilobits / elapsed.as_secs_f64().max(0.1);
                let left = duration.saturating_sub(elapsed).as_secs_f64();
                format!("{goodput:4.0} kb/s, {left:.0} s left")
            }
            _ => self.phase.to_owned(),
        }
    }
}

fn bars(setups: &[Setup], duration: Duration) -> Vec<ProgressBar> {
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template("{prefix:15}{bar:36.green/dim}  {msg}")
        .expect("the template is well-formed");
    let bar = |setup: &Setup| {
        let bar = bars.add(ProgressBar::new(duration.as_millis() as u64));
        bar.with_style(style.clone()).with_prefix(setup.name())
    };
    setups.iter().map(bar).collect()
}
