//! What those at work tell, each with when it was.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The mobile node leaves for this agent; at the beginning, it is there.
    Left(usize),
    /// The home agent knows it to be at this agent, or at none.
    Bound(Option<usize>),
    /// What an agent says of itself.
    Agent(usize, Sight),
    /// An agent says nothing any more, and why.
    Gone(usize, String),
    /// The datagram of this number is about to be sent. They come in order.
    Sent(u32),
    /// It has arrived.
    Came(u32),
    /// So many octets of the download have come.
    Octets(u64),
    /// The walk is over.
    Over,
    /// Somebody gave up, and why.
    Failed(String),
}

/// What an agent says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// How many composite SAs it has keys of.
    pub keys: usize,
    /// How many packets it has opened, ever.
    pub read: u64,
    /// How many sealed packets were there to be opened, ever.
    pub shown: u64,
}

/// Something with the time since the beginning.
pub(super) type Dated = (Duration, News);

/// A way to tell.
#[derive(Clone)]
pub(super) struct Teller {
    beginning: Instant,
    news: Sender<Dated>,
}

/// It begins now.
pub(super) fn channel() -> (Teller, Receiver<Dated>) {
    let (news, heard) = mpsc::channel();
    let beginning = Instant::now();
    (Teller { beginning, news }, heard)
}

impl Teller {
    /// Tells something that happens now. Nobody listening is no reason to stop.
    pub fn tell(&self, news: News) {
        let _ = self.news.send((self.beginning.elapsed(), news));
    }
}
