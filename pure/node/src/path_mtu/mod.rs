//! Maximum packet length per path (RFC 4301 section 8.2).
//!
//! [`Discovery::Probe`], the default of the daemon, searches it: it starts from the MTU of the
//! interface, and probes travel as data does (`search.rs`, RFC 8899). A probe is a dummy packet on
//! one of the path's SAs, and a peer that has our vendor ID answers it with a short one, whatever
//! its own configuration says. Both take sequence numbers like all packets, but neither is data:
//! the loss of one is no loss of a datagram, and no reason to check the peer. In a composite SA, a
//! notice before each probe keeps its loss out of the measurement by which the peer may choose a
//! protection. A path that carries nothing is not probed. Every path has a search of its own, so a
//! tunnel that moves starts again, with the presumption that the new path carries what the old one
//! did.
//!
//! With [`Discovery::Icmp`], packets are sent with DF set. A router that cannot forward a packet
//! reports its MTU, which applies to every SA on the path: datagrams that do not fit are not
//! sealed, and their sources are informed of the limit. A value expires after ten minutes, because
//! the path may have changed (RFC 1191 section 6.3). It does not follow a tunnel that moves.
//!
//! The driver passes all reports in here. One counts only if it quotes a packet of ours: path, SPI
//! and a recent sequence number. The system believes anyone who knows the addresses, so its own
//! value for a path is never asked for. Whoever sees our packets can still forge a report (RFC 4301
//! section 8.2.1). A value that no link can have is therefore ignored, and without probes no
//! accepted value ever causes loss: `esp` allows fragmentation in transit rather than limit
//! datagrams to fewer than 1280 octets.

mod host;
mod search;

pub use search::Origin;

use esp::{Packet, PathMtu, Sink};
use model::{ChildSaId, Deadline, Instant, Path};
use search::{Heard, Search, Step};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wire::esp::FIRST_SPI;
use wire::probe::{Kind, Probe};
use wire::quoted::Quoted;

/// "When a PMTU value has not been decreased for a while (on the order of 10 minutes)", longer
/// packets are tried again (RFC 1191 section 6.3, which RFC 4301 section 8.2.2 wants).
const AGE: Duration = Duration::from_secs(600);

/// Datagram size that every host accepts (RFC 791), and MTU that every link has (RFC 8200 section
/// 5). A smaller reported value is forged or useless.
const LEAST_V4: u16 = 576;
const LEAST_V6: u16 = 1280;

/// Maximum number of Mobile IP tunnels with an ignored value that are remembered.
const MOST_TUNNELS: usize = 256;

/// Datagrams up to this length fit every path with any overhead.
const LONG: usize = 1100;

/// Maximum number of probes and echoes that wait to be sent.
const MOST_WAITING: usize = 1024;

/// The way in which path MTUs are discovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// None: packets may be fragmented.
    #[default]
    Off,
    /// Routers report them.
    Icmp,
    /// Probes find them, and reports of routers choose the probes.
    Probe,
}

/// Counters of probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    /// Probes sent.
    pub sent: u64,
    /// Probes without an echo.
    pub lost: u64,
    /// Probes of peers that were answered.
    pub echoed: u64,
}

/// Known path MTUs.
#[derive(Default)]
pub(crate) struct PathMtus {
    discovery: Discovery,
    searches: BTreeMap<Path, Searching>,
    /// Times of the next steps of searches.
    due: BTreeSet<(Instant, Path)>,
    /// Paths whose MTU the driver should ask the system for.
    wanted: BTreeSet<Path>,
    /// Probes and echoes to be sent, with their SAs.
    waiting: VecDeque<(ChildSaId, Probe)>,
    counts: ProbeCounts,
    known: BTreeMap<Path, Known>,
    /// Mobile IP tunnels with an ignored value, and the time until which it is not reported again.
    tunnels: BTreeMap<Path, Instant>,
    /// Number of ignored values.
    disbelieved: u64,
}

/// The search of one path.
struct Searching {
    search: Search,
    /// The child SAs on the path.
    users: BTreeSet<ChildSaId>,
    /// The time of its next step, if it has one.
    due: Option<Instant>,
    /// The result that was reported to the operator.
    told: Option<u16>,
}

struct Known {
    mtu: PathMtu,
    until: Instant,
}

impl PathMtus {
    pub fn new(discovery: Discovery) -> Self {
        Self {
            discovery,
            ..Self::default()
        }
    }

    /// Returns true if the search of a path is that of a child SA.
    fn has(&self, path: Path, id: ChildSaId) -> bool {
        let entry = self.searches.get(&path);
        entry.is_some_and(|entry| entry.users.contains(&id))
    }

    /// Returns the limits of a path, and its MTU if known.
    fn of(&self, path: Path) -> (PathMtu, Option<u16>) {
        match self.discovery {
            Discovery::Off => (PathMtu::Any, None),
            Discovery::Icmp => match self.known.get(&path).map(|known| known.mtu) {
                Some(PathMtu::Octets(octets)) => (PathMtu::Octets(octets), Some(octets)),
                Some(mtu) => (mtu, None),
                None => (PathMtu::Unknown, None),
            },
            Discovery::Probe => match self.searches.get(&path) {
                Some(entry) => {
                    let outside = entry.search.outside().map(|(octets, _)| octets);
                    (entry.search.limit(), outside)
                }
                None => (PathMtu::Any, None),
            },
        }
    }

    /// Returns the origin of the MTU of a path.
    pub fn origin(&self, path: Path) -> Option<Origin> {
        match self.discovery {
            Discovery::Off => None,
            Discovery::Icmp => self.of(path).1.map(|_| Origin::Reported),
            Discovery::Probe => Some(self.searches.get(&path)?.search.outside()?.1),
        }
    }

    fn join(&mut self, path: Path, id: ChildSaId, search: impl FnOnce() -> Search) {
        let wanted = &mut self.wanted;
        let entry = self.searches.entry(path).or_insert_with(|| {
            wanted.insert(path);
            Searching {
                search: search(),
                users: BTreeSet::new(),
                due: None,
                told: None,
            }
        });
        entry.users.insert(id);
    }

    fn leave(&mut self, path: Path, id: ChildSaId) {
        let Some(entry) = self.searches.get_mut(&path) else {
            return;
        };
        entry.users.remove(&id);
        if entry.users.is_empty() {
            let due = entry.due;
            self.searches.remove(&path);
            self.wanted.remove(&path);
            if let Some(at) = due {
                self.due.remove(&(at, path));
            }
        }
    }

    /// Queues a probe or an echo. Returns false if too many wait.
    fn send(&mut self, id: ChildSaId, probe: Probe) -> bool {
        let has_room = self.waiting.len() < MOST_WAITING;
        if has_room {
            self.waiting.push_back((id, probe));
        }
        has_room
    }

    fn schedule(&mut self, path: Path) {
        let Some(entry) = self.searches.get_mut(&path) else {
            return;
        };
        let next = entry.search.poll_timeout();
        if let Some(before) = std::mem::replace(&mut entry.due, next) {
            self.due.remove(&(before, path));
        }
        self.due.extend(next.map(|at| (at, path)));
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let now = !self.waiting.is_empty() || !self.wanted.is_empty();
        let known = self.known.values().map(|known| known.until).min();
        let due = self.due.first().map(|(at, _)| *at);
        let next = [known, due].into_iter().flatten().min();
        Some(Deadline {
            at: now.then_some(Instant::ZERO).or(next)?,
            reason: "discover a path MTU",
        })
    }
}
