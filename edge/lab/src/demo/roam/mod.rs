//! `strata demo roam`: keys that arrive with the mobile node.
//!
//! A mobile node downloads a file and hears a voice call while it walks from one foreign agent to the next. Each of the
//! three is a licensed node, and is licensed only while the mobile node is there. A move is as hard as moves are: the link to one
//! agent goes as that to the next comes.
//!
//! That an agent reads nothing that does not pass it would prove nothing. So whatever passes to the mobile node is
//! also copied to the agents that it has left (`copies`): what they are shown was sealed after the move, and what they read
//! of it is counted.
//!
//! Everybody at work tells what happens, and when, to one `diary`; the view, the report and the verdict are made of that
//! alone.

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
pub use view::Audience;

use super::download::{Span, download};
use super::{prepare, web};
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

/// How many agents there are.
const PLACES: usize = 3;

/// What the content of the file is drawn from.
const SEED: u64 = 1;

/// How long a packet waits at most between being sealed and leaving in a tunnel to an agent.
const WAITS: Duration = Duration::from_millis(100);

/// Who waits for the end of a walk looks this often.
const LOOK: Duration = Duration::from_millis(5);

/// What was sent last is given as long to arrive.
const LAST: Duration = Duration::from_millis(500);

/// How keys get to where the mobile node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Handover {
    /// The gateway sends them when it learns where the mobile node is.
    #[default]
    Push,
    /// The neighbours of an agent have them in advance, and nothing is sealed with them until the mobile node comes.
    Pkd,
    /// The new agent gets them from the one before, whose keys are in use for two seconds more.
    Dkm,
}

impl Handover {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Push, Self::Pkd, Self::Dkm];

    /// What configurations and the command line call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pkd => "pkd",
            Self::Dkm => "dkm",
        }
    }

    /// For how long after home knows of a move the agent that was left may still read what comes by: what waits there to be
    /// tunnelled was sealed before, and with DKM old keys are in use for two seconds.
    pub const fn allowance(self) -> Duration {
        match self {
            Self::Push | Self::Pkd => WAITS,
            Self::Dkm => WAITS.saturating_add(Duration::from_secs(2)),
        }
    }
}

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// How keys get to where the mobile node is.
    pub handover: Handover,
    /// How often it moves.
    pub moves: u32,
    /// For how long it is at each agent.
    pub stay: Duration,
    /// Whether the agents are licensed wherever it is: then those that it left read on.
    pub everywhere: bool,
    /// Who is told how far it is.
    pub audience: Audience,
    /// Leave configurations and logs behind.
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
    /// The agent at which the mobile node is after so many moves.
    const fn agent(&self, moves: u32) -> usize {
        moves as usize % PLACES
    }

    /// From the first agent to the end.
    fn total(&self) -> Duration {
        self.stay * (self.moves + 1)
    }
}

/// Walks, in namespaces that were entered ([`crate::testbed::enter`]). What fails on the way is part of the report.
///
/// # Errors
/// The demo cannot run on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_command("nginx", "nginx-light")?;
    find_command("curl", "curl")?;
    find_binary("stratad")?;
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

/// Everybody at work at once, each on a thread, until the walk is over.
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

/// What one thread does.
type Work<'a> = &'a (dyn Fn(&Teller) -> Result<()> + Sync);

/// From agent to agent.
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
