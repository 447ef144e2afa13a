//! Events that the threads of a walk report, each with its time.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The mobile node leaves for this agent. The first event of a walk is its arrival at the first
    /// agent.
    Left(usize),
    /// The home agent has bound it to this agent, or to none.
    Bound(Option<usize>),
    /// Counters of an agent.
    Agent(usize, Sight),
    /// An agent no longer answers, for this reason.
    Gone(usize, String),
    /// The datagram with this number is about to be sent. Numbers are consecutive.
    Sent(u32),
    /// The datagram with this number has arrived.
    Came(u32),
    /// This many octets of the download have arrived in total.
    Octets(u64),
    /// The walk is over.
    Over,
    /// A thread gave up, for this reason.
    Failed(String),
}

/// Counters of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// Number of composite SAs that it has keys for.
    pub keys: usize,
    /// Number of packets that it has opened so far.
    pub read: u64,
    /// Number of sealed packets that it could have opened so far.
    pub shown: u64,
}

/// An event with the time since the start.
pub(super) type Dated = (Duration, News);

/// Reports events.
#[derive(Clone)]
pub(super) struct Teller {
    beginning: Instant,
    news: Sender<Dated>,
}

/// Creates a channel of events. Their times count from now.
pub(super) fn channel() -> (Teller, Receiver<Dated>) {
    let (news, heard) = mpsc::channel();
    let beginning = Instant::now();
    (Teller { beginning, news }, heard)
}

impl Teller {
    /// Reports an event that happens now. A missing receiver is not an error.
    pub fn tell(&self, news: News) {
        let _ = self.news.send((self.beginning.elapsed(), news));
    }
}
