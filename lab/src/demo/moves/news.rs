//! Events that the threads of a walk report, each with its time.

use super::call::Direction;
use super::fetch::Fetched;
use super::journey::Step;
use super::wire::Wire;
use control::Chosen;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, SystemTime};

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum News {
    /// A step of the walk begins.
    Step(Step),
    /// The Wi-Fi now loses this many per cent of the packets.
    Loss(u8),
    /// The daemon's answer about its paths.
    Paths(Sight),
    /// The datagram with this number is about to be sent. Numbers are consecutive.
    Sent(Direction, u32),
    /// The datagram with this number has arrived.
    Came(Direction, u32),
    /// This many octets of the download have arrived in total.
    Octets(u64),
    /// The download has ended.
    Fetched(Fetched),
    /// What passed on the wire.
    Wire(Wire),
    /// The packets that the fading Wi-Fi has lost.
    Faded(u64),
    /// The walk is over.
    Over,
    /// A thread gave up, for this reason.
    Failed(String),
}

/// The paths of the tunnel, by the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// The networks that carry packets.
    pub used: [bool; 2],
    /// Why the tunnel is on its path.
    pub why: Option<Chosen>,
    /// Loss on the path before, in per cent, if the tunnel left it for that.
    pub faded: Option<u8>,
    /// Quality of the path through each network.
    pub paths: [Quality; 2],
}

/// The quality of a path, as far as it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quality {
    /// True if packets can leave there.
    pub exists: bool,
    pub round_trip: Option<Duration>,
    /// In per cent.
    pub lost: Option<u8>,
}

/// An event with the time since the start.
pub(super) type Dated = (Duration, News);

/// Reports events.
#[derive(Clone)]
pub(super) struct Teller {
    /// Time of the start since the epoch, as the kernel stamps packets.
    beginning: Duration,
    news: Sender<Dated>,
}

/// Creates a channel of events. Their times count from now.
pub(super) fn channel() -> (Teller, Receiver<Dated>) {
    let (news, heard) = mpsc::channel();
    let beginning = now();
    (Teller { beginning, news }, heard)
}

impl Teller {
    /// Reports an event that happens now.
    pub fn tell(&self, news: News) {
        self.tell_of(now(), news);
    }

    /// Reports an event of this time since the epoch. A missing receiver is not an error.
    pub fn tell_of(&self, at: Duration, news: News) {
        let _ = self.news.send((at.saturating_sub(self.beginning), news));
    }
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
