//! The logs of gateways, analysed: how many users came, how often and for how long, and which
//! caching strategy saves what (paper 004, section IV; `strata-lab logs`).
//!
//! Files are read once, in a stream, by the readers of the crate `logs`. Each strategy is played by
//! the code that decides at a gateway. Memory has a bound, whatever the length of the logs.

mod advice;
mod analysis;
mod anonymous;
mod input;
mod page;
pub(crate) mod plots;
pub(crate) mod strategies;
pub mod synthesis;
pub(crate) mod text;

pub use advice::Advice;
pub(crate) use analysis::classes;
pub use analysis::{Analysis, Class, Remaining};

use crate::obstacle::Obstacle;
use analysis::Source;
use anonymous::Anonymous;
use crypto::UnixTime;
use indicatif::{ProgressBar, ProgressStyle};
use input::{File, Opened};
use logs::{Clock, Columns, Format, Logs, Order, Outcome, Session, Simulation, Summary, Zone};
use resumption::Strategy;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Most sessions that are up at once, and most users that are told apart.
const MOST_OPEN: usize = 1_000_000;
const MOST_USERS: usize = 2_000_000;

/// Most sessions that wait for one that began earlier.
const MOST_WAITING: usize = 1 << 18;

/// Sessions that are handed to the strategies at once, and how often ahead of the slowest.
const BATCH: usize = 4096;
const AHEAD: usize = 4;

/// What to analyse, and how.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The files; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// The format of all files. Without it, each file shows its own.
    pub format: Option<Format>,
    /// Columns of tables, in addition to the usual names.
    pub columns: Option<Columns>,
    /// Zone of times that say none, and of days.
    pub zone: Zone,
    /// Read the files as they are listed, and not the oldest first.
    pub in_order: bool,
    /// Most entries of the gateway's cache.
    pub entries: usize,
    /// CPU time of a full exchange and of a resumed one at the gateway, if known.
    pub cost: Option<Cost>,
    /// File for the sessions without names and addresses.
    pub anonymous: Option<PathBuf>,
    /// Show a bar on a terminal.
    pub bars: bool,
}

/// CPU time of an exchange at a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// A full exchange.
    pub full: Duration,
    /// A session that is resumed.
    pub resumed: Duration,
}

/// Analyses logs.
///
/// # Errors
/// A file cannot be opened, has no known format, or there is no session in any.
pub fn analyse(asked: &Asked) -> Result<Analysis, Obstacle> {
    let files = input::files(&asked.files, asked.in_order)?;
    let mut anonymous = asked
        .anonymous
        .as_deref()
        .map(Anonymous::create)
        .transpose()?;
    let read = Arc::new(AtomicU64::new(0));
    let bar = bar(&files, asked.bars);
    let mut summary = Summary::new(asked.zone, MOST_USERS);
    let (mut source, outcomes, late) = thread::scope(|scope| {
        let (players, senders) = players();
        let players: Vec<_> = players
            .into_iter()
            .map(|player| scope.spawn(|| player.run(asked.entries)))
            .collect();
        let mut stage = Stage::new(senders);
        let mut take = |session: Session| {
            summary.add(&session);
            if let Some(anonymous) = &mut anonymous {
                anonymous.write(&session);
            }
            stage.add(session);
            bar.set_position(read.load(Ordering::Relaxed));
        };
        let source = read_all(&files, asked, &read, &mut take)?;
        let late = stage.finish();
        let outcomes = players.into_iter().map(|player| player.join());
        let outcomes: Vec<Outcome> = outcomes
            .flat_map(|played| played.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        Ok::<_, Obstacle>((source, outcomes, late))
    })?;
    bar.finish_and_clear();
    anonymous.map_or(Ok(()), Anonymous::finish)?;
    source.late = late;
    if summary.connections() == 0 {
        let first = source.first_unreadable.first();
        let first = first.map_or(String::new(), |place| format!("; {place}"));
        let message = format!("no session in {} lines{first}", source.lines);
        let fix =
            "see `strata help choose-a-caching-policy` for what each log needs, or use --format";
        return Err(Obstacle::new(message, fix));
    }
    Ok(Analysis::new(source, &summary, outcomes, asked.cost))
}

/// Reads all files. Those of one format are one log.
fn read_all(
    files: &[File],
    asked: &Asked,
    read: &Arc<AtomicU64>,
    take: &mut dyn FnMut(Session),
) -> Result<Source, Obstacle> {
    let begin = files.first().map_or(0, |file| file.modified);
    let mut all = BTreeMap::<Format, Logs>::new();
    let mut source = Source::default();
    for file in files {
        let (format, input) = match file.open(asked, read)? {
            Opened::Text(format, input) => (format, input),
            Opened::Empty => continue,
            Opened::Damaged(error) => {
                source.cut.push(format!("{}: {error}", file.name));
                continue;
            }
        };
        let logs = all.entry(format).or_insert_with(|| {
            let reader = match (&asked.columns, format) {
                (Some(columns), Format::Csv) => columns.clone().reader(),
                _ => format.reader(),
            };
            let clock = Clock::new(asked.zone, UnixTime(begin));
            Logs::new(reader, clock, MOST_OPEN)
        });
        source.note(&file.name, format);
        if let Err(error) = logs.read(&file.name, input, take) {
            source.cut.push(format!("{}: {error}", file.name));
        }
    }
    for mut logs in all.into_values() {
        logs.finish(take);
        source.end(&logs);
    }
    Ok(source)
}

/// Puts sessions into the order of their begins, and hands them to the players.
struct Stage {
    order: Order,
    batch: Vec<Session>,
    senders: Vec<SyncSender<Batch>>,
}

impl Stage {
    fn new(senders: Vec<SyncSender<Batch>>) -> Self {
        Self {
            order: Order::new(MOST_WAITING),
            batch: Vec::with_capacity(BATCH),
            senders,
        }
    }

    fn add(&mut self, session: Session) {
        let batch = &mut self.batch;
        self.order.add(session, &mut |next| batch.push(next));
        if self.batch.len() >= BATCH {
            self.send();
        }
    }

    /// Hands out what waits. Returns how many sessions came after one that begins later.
    fn finish(mut self) -> u64 {
        let batch = &mut self.batch;
        self.order.finish(&mut |next| batch.push(next));
        self.send();
        self.order.late()
    }

    fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let batch = Arc::new(batch);
        for sender in &self.senders {
            // A player that is gone has panicked, and is joined.
            let _ = sender.send(Arc::clone(&batch));
        }
    }
}

/// Plays some of the strategies, on a thread.
struct Player {
    strategies: Vec<Strategy>,
    batches: Receiver<Batch>,
}

/// Sessions that all players get.
type Batch = Arc<Vec<Session>>;

/// Returns players that share the strategies, as many as there are processors.
fn players() -> (Vec<Player>, Vec<SyncSender<Batch>>) {
    let all = strategies::all();
    let count = thread::available_parallelism().map_or(1, usize::from);
    let share = all.len().div_ceil(count);
    let players = all.chunks(share).map(|strategies| {
        let (sender, batches) = sync_channel(AHEAD);
        let strategies = strategies.to_vec();
        let player = Player {
            strategies,
            batches,
        };
        (player, sender)
    });
    players.unzip()
}

impl Player {
    fn run(self, entries: usize) -> Vec<Outcome> {
        let strategies = self.strategies.into_iter();
        let mut all: Vec<_> = strategies
            .map(|strategy| Simulation::new(strategy, entries))
            .collect();
        for batch in self.batches {
            for simulation in &mut all {
                batch.iter().for_each(|session| simulation.visit(session));
            }
        }
        all.into_iter().map(Simulation::finish).collect()
    }
}

fn bar(files: &[File], bars: bool) -> ProgressBar {
    if !bars || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let octets = files.iter().map(|file| file.octets).sum();
    let style = "{bar:30.green/dim} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(style).expect("the template is well-formed");
    ProgressBar::new(octets).with_style(style)
}

#[cfg(test)]
mod tests;
