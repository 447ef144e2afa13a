//! How long packets may be on each path (RFC 4301 section 8.2).
//!
//! Packets are sent so that nobody on the way cuts them. A router that cannot pass one on says what it
//! could have passed on; the kernel hears that, and refuses the next one as too long. What it knows is
//! handed in here, and holds for every SA on the path: datagrams that have no room are not sealed, and
//! their sources are told how long they may be.
//!
//! Anybody can say so in a router's name (section 8.2.1). Hence what no link on the way may be is not
//! believed, and nothing is ever lost by what is: `esp` has packets cut on their way rather than send
//! datagrams of fewer than 1280 octets alone. It is forgotten after ten minutes, for the path may have
//! become another (RFC 1191 section 6.3), and does not follow a tunnel that moves.

use crate::{Event, Node};
use esp::PathMtu;
use model::{ChildSaId, Deadline, Instant, Path};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// "When a PMTU value has not been decreased for a while (on the order of 10 minutes)", longer packets are
/// tried again (RFC 1191 section 6.3, which RFC 4301 section 8.2.2 wants).
const AGE: Duration = Duration::from_secs(600);

/// What a datagram can be that every host takes (RFC 791), and every link (RFC 8200 section 5). A router
/// that says less is none, or of no use.
const LEAST_V4: u16 = 576;
const LEAST_V6: u16 = 1280;

/// Tunnels of Mobile IP of whose paths something was said that is not believed: so many are remembered.
const MOST_TUNNELS: usize = 256;

/// Our address and the peer's. Ports make no other path.
type Pair = (IpAddr, IpAddr);

/// What is known of paths.
#[derive(Default)]
pub(crate) struct PathMtus {
    /// Whether anybody asks.
    pub discovered: bool,
    known: BTreeMap<Pair, Known>,
    /// Of tunnels of Mobile IP: those of whose paths what is not believed was told, and until when that is no news.
    tunnels: BTreeMap<Pair, Instant>,
    /// What nobody believed.
    pub disbelieved: u64,
}

struct Known {
    mtu: PathMtu,
    until: Instant,
}

impl Node {
    /// A packet was not sent, as it is longer than its path takes by what the system knows.
    pub fn handle_path_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        let pair = pair(path);
        let mut paths = self.children.values().map(|child| child.status.path);
        if !self.path_mtus.discovered || !paths.any(|path| self::pair(path) == pair) {
            return;
        }
        let least = if pair.1.is_ipv4() { LEAST_V4 } else { LEAST_V6 };
        let believed = mtu >= least;
        if !believed {
            self.path_mtus.disbelieved += 1;
            self.events.push_back(Event::PathMtuForged { path, mtu });
        }
        let known = Known {
            mtu: match believed {
                true => PathMtu::Octets(mtu),
                false => PathMtu::Any,
            },
            until: now + AGE,
        };
        self.path_mtus.known.insert(pair, known);
        self.measure_path(pair);
    }

    /// The path of a tunnel of Mobile IP takes too little to be believed, by what the system knows. That is counted and told
    /// once in ten minutes, for as long as the system remembers it.
    pub fn disbelieve_path_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        let tunnels = &mut self.path_mtus.tunnels;
        tunnels.retain(|_, until| *until > now);
        if tunnels.len() < MOST_TUNNELS && !tunnels.contains_key(&pair(path)) {
            tunnels.insert(pair(path), now + AGE);
            self.path_mtus.disbelieved += 1;
            self.events.push_back(Event::PathMtuForged { path, mtu });
        }
    }

    /// How many times somebody said of a path what cannot be.
    pub const fn disbelieved_path_mtus(&self) -> u64 {
        self.path_mtus.disbelieved
    }

    /// Begins or ends asking.
    pub(crate) fn discover_path_mtus(&mut self, discovered: bool) {
        if self.path_mtus.discovered != discovered {
            self.path_mtus.discovered = discovered;
            self.path_mtus.known.clear();
            let ids: Vec<_> = self.children.keys().copied().collect();
            ids.into_iter().for_each(|id| self.measure(id));
        }
    }

    /// Forgets what is too old.
    pub(crate) fn forget_path_mtus(&mut self, now: Instant) {
        let known = &mut self.path_mtus.known;
        let old = known.iter().filter(|(_, known)| known.until <= now);
        let old: Vec<_> = old.map(|(pair, _)| *pair).collect();
        for pair in old {
            self.path_mtus.known.remove(&pair);
            self.measure_path(pair);
        }
    }

    /// Has a child's packets be as long as its path takes.
    pub(crate) fn measure(&mut self, id: ChildSaId) {
        if let Some(child) = self.children.get_mut(&id) {
            let mtu = self.path_mtus.of(child.status.path);
            child.status.mtu = self.workers.set_path_mtu(id, mtu);
            child.status.path_mtu = match mtu {
                PathMtu::Octets(octets) => child.status.mtu.and(Some(octets)),
                PathMtu::Any | PathMtu::Unknown => None,
            };
        }
    }

    /// The same for all on a path, which an operator hears of once for each peer.
    fn measure_path(&mut self, on: Pair) {
        let children = self.children.iter();
        let children = children.filter(|(_, child)| pair(child.status.path) == on);
        let ids: Vec<_> = children.map(|(id, _)| *id).collect();
        let mut told = Vec::new();
        for id in ids {
            let before = self
                .children
                .get(&id)
                .and_then(|child| child.status.path_mtu);
            self.measure(id);
            let Some(child) = self.children.get(&id) else {
                continue;
            };
            if before != child.status.path_mtu && !told.contains(&child.peer) {
                told.push(child.peer.clone());
                self.events.push_back(Event::PathMtu {
                    peer: child.peer.clone(),
                    outside: child.status.path_mtu,
                    inside: child.status.mtu,
                });
            }
        }
    }
}

impl PathMtus {
    pub fn new(discovered: bool) -> Self {
        Self {
            discovered,
            ..Self::default()
        }
    }

    fn of(&self, path: Path) -> PathMtu {
        match self.known.get(&pair(path)) {
            _ if !self.discovered => PathMtu::Any,
            Some(known) => known.mtu,
            None => PathMtu::Unknown,
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.known.values().map(|known| known.until).min()?;
        Some(Deadline {
            at,
            reason: "what a path takes may have become another",
        })
    }
}

const fn pair(path: Path) -> Pair {
    (path.local.ip(), path.remote.ip())
}
