//! `strata-lab demo roam`: keys that move with the mobile node.
//!
//! A mobile node downloads a file and receives a voice call while it moves from one foreign agent
//! to the next. Each of the three agents is a licensed node, and is licensed only while the mobile
//! node is there. A move is abrupt: the link to one agent goes down as the link to the next comes
//! up.
//!
//! An agent trivially cannot read packets that do not pass it. Therefore every packet to the mobile
//! node is also copied to the agents that it has left (`copies`). These copies were sealed after
//! the move, and the number of them that an agent reads is counted.
//!
//! All threads report events, with their time, to one `diary`. The view, the report and the verdict
//! are derived from the diary alone.

mod copies;
mod diary;
mod frame;
mod network;
mod news;
mod report;
mod stream;
mod text;
mod view;
mod watch;

pub use report::{After, Move, Report};

use super::download::{Span, download};
use super::{Audience, prepare, web};
use crate::canary::Marked;
use crate::obstacle::Obstacle;
use crate::pair::GATEWAY;
use crate::testbed::{find_binary, find_command};
use crate::vigil::Vigil;
use anyhow::{Context, Result};
use diary::Diary;
use network::{Network, RATE};
use news::{News, Teller};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use view::View;

/// Number of agents.
const PLACES: usize = 3;

/// Seed of the file's content.
const SEED: u64 = 1;

/// Longest time between the sealing of a packet and its departure in a tunnel to an agent.
const WAITS: Duration = Duration::from_millis(100);

/// Interval at which threads check for the end of the walk.
const LOOK: Duration = Duration::from_millis(5);

/// Time that the last datagrams get to arrive.
const LAST: Duration = Duration::from_millis(500);

/// Distribution of keys to the agent of the mobile node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Handover {
    /// The gateway sends keys to an agent when it learns that the mobile node is there.
    #[default]
    Push,
    /// The neighbours of an agent have keys in advance, with which nothing is sealed until the
    /// mobile node arrives.
    Pkd,
    /// The new agent fetches keys from the previous one. These keys stay in use for two more
    /// seconds.
    Dkm,
}

impl Handover {
    /// All ways of distribution, the default first.
    pub const ALL: [Self; 3] = [Self::Push, Self::Pkd, Self::Dkm];

    /// Returns the name in configurations and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pkd => "pkd",
            Self::Dkm => "dkm",
        }
    }

    /// Returns the time after the home agent's binding during which the previous agent may still
    /// read copies. Packets that wait at home for their tunnel were sealed before, and with DKM old
    /// keys stay in use for two seconds.
    pub const fn allowance(self) -> Duration {
        match self {
            Self::Push | Self::Pkd => WAITS,
            Self::Dkm => WAITS.saturating_add(Duration::from_secs(2)),
        }
    }
}

/// Options of the walk.
#[derive(Clone, Debug)]
pub struct Options {
    /// Distribution of keys to the agent of the mobile node.
    pub handover: Handover,
    /// Number of moves.
    pub moves: u32,
    /// Length of the stay at each agent.
    pub stay: Duration,
    /// True if the agents are licensed wherever the mobile node is, so that those it left keep
    /// reading.
    pub everywhere: bool,
    /// Audience of the progress.
    pub audience: Audience,
    /// True to keep configurations and logs.
    pub keep: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            handover: Handover::default(),
            moves: 4,
            stay: Duration::from_secs(7),
            everywhere: false,
            audience: Audience::Nobody,
            keep: false,
        }
    }
}

impl Options {
    /// Returns the agent of the mobile node after this many moves.
    const fn agent(&self, moves: u32) -> usize {
        moves as usize % PLACES
    }

    /// Returns the duration of the whole walk.
    fn total(&self) -> Duration {
        self.stay * (self.moves + 1)
    }
}

/// Runs the walk in namespaces that were already entered ([`crate::testbed::enter`]). The report
/// includes failures on the way.
///
/// # Errors
/// The demo cannot run on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_command("nginx", "nginx-light")?;
    find_command("curl", "curl")?;
    find_binary("stratad")?;
    find_binary("strata")?;
    let stream = Marked::new(SEED);
    let octets = RATE / 8 * (options.total().as_secs() + 10);
    let (bed, folder) = prepare(&stream, octets, options.keep)?;
    let _vigil = Vigil::start();
    let mut view = View::new(options);
    view.phase("building a network, and bringing its tunnel up");
    let mut diary = Diary::new(options.handover.allowance());
    let walked = Network::build(bed, options)
        .and_then(|network| walk(&network, options, (&stream, &folder), &mut diary, &mut view));
    view.close();
    if let Err(error) = walked {
        diary.fail(format!("{error:#}"));
    }
    Ok(Report::new(options, &diary))
}

/// Runs all parts of the walk at once, each on a thread, until the walk is over.
fn walk(
    network: &Network,
    options: &Options,
    (content, folder): (&Marked, &Path),
    diary: &mut Diary,
    view: &mut View,
) -> Result<()> {
    let _web = web::serve(&network.walk.home, GATEWAY[0], folder)?;
    let over = AtomicBool::new(false);
    let over = &over;
    let works: [(&str, Work<'_>); 6] = [
        ("the walk", &|teller| {
            let walked = roam(network, options, teller);
            over.store(true, Ordering::Relaxed);
            walked
        }),
        ("the stream", &|teller| stream::send(network, teller, over)),
        ("the stream", &|teller| {
            stream::receive(network, teller, over)
        }),
        ("the agents", &|teller| watch::watch(network, teller, over)),
        ("the copies", &|_| {
            copies::copy(&network.walk, options.handover, over)
        }),
        ("the download", &|teller| {
            let span = Span {
                total: options.total(),
                skipped: Duration::ZERO,
            };
            let (mobile, url) = (&network.walk.mobile, web::url(GATEWAY[0]));
            let progress = |octets| teller.tell(News::Octets(octets));
            download(mobile, &url, content, span, progress).map(drop)
        }),
    ];
    let (teller, news) = news::channel();
    thread::scope(|scope| {
        for (what, work) in works {
            let teller = teller.clone();
            scope.spawn(move || {
                if let Err(error) = work(&teller) {
                    teller.tell(News::Failed(format!("{what}: {error:#}")));
                }
            });
        }
        drop(teller);
        view.show(&news, diary);
    });
    Ok(())
}

/// The work of one thread.
type Work<'a> = &'a (dyn Fn(&Teller) -> Result<()> + Sync);

/// Moves the mobile node from agent to agent.
fn roam(network: &Network, options: &Options, teller: &Teller) -> Result<()> {
    teller.tell(News::Left(options.agent(0)));
    for moves in 1..=options.moves {
        thread::sleep(options.stay);
        let [from, to] = [moves - 1, moves].map(|moves| options.agent(moves));
        teller.tell(News::Left(to));
        let moved = network.walk.set_link(from, false);
        moved
            .and_then(|()| network.walk.set_link(to, true))
            .context("a link could not be changed")?;
    }
    thread::sleep(options.stay);
    teller.tell(News::Over);
    Ok(())
}
