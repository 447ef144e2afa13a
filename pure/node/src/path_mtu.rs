//! Maximum packet length per path (RFC 4301 section 8.2).
//!
//! Packets are sent with DF set. A router that cannot forward a packet reports its MTU. The kernel
//! receives the report and refuses the next packet of that length. The driver passes the kernel's
//! value in here, and it applies to every SA on the path: datagrams that do not fit are not sealed,
//! and their sources are informed of the limit.
//!
//! Reports can be forged in a router's name (section 8.2.1). A value that no link can have is
//! therefore ignored, and no accepted value ever causes loss: `esp` allows fragmentation in transit
//! rather than limit datagrams to fewer than 1280 octets. A value expires after ten minutes,
//! because the path may have changed (RFC 1191 section 6.3). It does not follow a tunnel that
//! moves.

use crate::{Event, Node};
use esp::PathMtu;
use model::{ChildSaId, Deadline, Instant, Path};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// "When a PMTU value has not been decreased for a while (on the order of 10 minutes)", longer packets are
/// tried again (RFC 1191 section 6.3, which RFC 4301 section 8.2.2 wants).
const AGE: Duration = Duration::from_secs(600);

/// Datagram size that every host accepts (RFC 791), and MTU that every link has (RFC 8200 section
/// 5). A smaller reported value is forged or useless.
const LEAST_V4: u16 = 576;
const LEAST_V6: u16 = 1280;

/// Maximum number of Mobile IP tunnels with an ignored value that are remembered.
const MOST_TUNNELS: usize = 256;

/// Local and remote address of a path. Ports do not distinguish paths.
pub(crate) type Pair = (IpAddr, IpAddr);

/// Known path MTUs.
#[derive(Default)]
pub(crate) struct PathMtus {
    /// True if path MTU discovery is on.
    pub discovered: bool,
    known: BTreeMap<Pair, Known>,
    /// Mobile IP tunnels with an ignored value, and the time until which it is not reported again.
    tunnels: BTreeMap<Pair, Instant>,
    /// Number of ignored values.
    pub disbelieved: u64,
}

struct Known {
    mtu: PathMtu,
    until: Instant,
}

impl Node {
    /// Handles a packet that was not sent because it exceeds the path MTU known to the system.
    pub fn handle_path_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        let pair = pair(path);
        if !self.path_mtus.discovered || self.children.between(pair).next().is_none() {
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

    /// Reports that the system's path MTU for a Mobile IP tunnel is implausibly small. The value is
    /// counted and reported once in ten minutes, for as long as the system remembers it.
    pub fn disbelieve_path_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        let tunnels = &mut self.path_mtus.tunnels;
        tunnels.retain(|_, until| *until > now);
        if tunnels.len() < MOST_TUNNELS && !tunnels.contains_key(&pair(path)) {
            tunnels.insert(pair(path), now + AGE);
            self.path_mtus.disbelieved += 1;
            self.events.push_back(Event::PathMtuForged { path, mtu });
        }
    }

    /// Returns the number of implausible path MTUs that were ignored.
    pub const fn disbelieved_path_mtus(&self) -> u64 {
        self.path_mtus.disbelieved
    }

    /// Turns path MTU discovery on or off.
    pub(crate) fn discover_path_mtus(&mut self, discovered: bool) {
        if self.path_mtus.discovered != discovered {
            self.path_mtus.discovered = discovered;
            self.path_mtus.known.clear();
            let ids: Vec<_> = self.children.iter().map(|(id, _)| id).collect();
            ids.into_iter().for_each(|id| self.measure(id));
        }
    }

    /// Discards expired values.
    pub(crate) fn forget_path_mtus(&mut self, now: Instant) {
        let known = &mut self.path_mtus.known;
        let old = known.iter().filter(|(_, known)| known.until <= now);
        let old: Vec<_> = old.map(|(pair, _)| *pair).collect();
        for pair in old {
            self.path_mtus.known.remove(&pair);
            self.measure_path(pair);
        }
    }

    /// Applies the path MTU to a child SA.
    pub(crate) fn measure(&mut self, id: ChildSaId) {
        if let Some(child) = self.children.get_mut(id) {
            let mtu = self.path_mtus.of(child.status.path);
            child.status.mtu = self.workers.set_path_mtu(id, mtu);
            child.status.path_mtu = match mtu {
                PathMtu::Octets(octets) => child.status.mtu.and(Some(octets)),
                PathMtu::Any | PathMtu::Unknown => None,
            };
        }
    }

    /// Applies the path MTU to all child SAs on a path, and reports it once per peer.
    fn measure_path(&mut self, on: Pair) {
        let ids: Vec<_> = self.children.between(on).collect();
        let mut told = Vec::new();
        for id in ids {
            let before = self
                .children
                .get(id)
                .and_then(|child| child.status.path_mtu);
            self.measure(id);
            let Some(child) = self.children.get(id) else {
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
            reason: "discover a path MTU again",
        })
    }
}

pub(crate) const fn pair(path: Path) -> Pair {
    (path.local.ip(), path.remote.ip())
}
