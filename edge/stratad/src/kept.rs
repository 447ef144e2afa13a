//! What outlives this process: the tunnel device and the UDP sockets, of which the service manager
//! keeps copies (`FileDescriptorStoreMax=` of systemd.service(5)). While no daemon runs, packets
//! wait in the queue of the device, and messages of peers in the buffers of the sockets. No key, no
//! SA and no sequence number is kept.
//!
//! A start moves the descriptors out of the store, uses those that fit the configuration, closes
//! the others, and stores what is then open. So a device or port is free as soon as this process
//! closes it, and a start that fails leaves what a killed daemon without a store leaves.
//!
//! The device is not read before its tunnels are back ([`Hold`]).

use crate::host::Host;
use crate::service_manager::Tunnels;
use config::{Config, Offload, Start};
use control::Restart;
use model::{Deadline, Instant};
use node::Node;
use os::routes::MARK;
use os::{Bulk, Datagrams, kept};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The names of descriptors in the store.
const TUNNEL: &str = "tunnel";
const SOCKETS: &str = "sockets";

/// Longest wait of packets for tunnels that this host begins.
const PATIENCE: Duration = Duration::from_secs(3);

/// Wait of packets for tunnels that peers begin. Which of them will do so is not known.
const GRACE: Duration = Duration::from_secs(1);

/// Time after a start in which `strata status` and the metrics have its gap.
const SHOWN: Duration = Duration::from_secs(3600);

/// The descriptors that the service manager kept since the last start, and its store.
#[derive(Debug, Default)]
pub struct Kept {
    /// `NOTIFY_SOCKET`; `None` without a service manager.
    manager: Option<OsString>,
    tunnels: Vec<OwnedFd>,
    sockets: Vec<OwnedFd>,
    /// Reasons that descriptors were refused before there was a log.
    refused: Vec<String>,
    has_adopted_tunnel: bool,
    adopted_sockets: usize,
    closed_sockets: usize,
    is_stored: bool,
}

impl Kept {
    /// Takes what the environment names (sd_listen_fds(3)). Call it first: numbers of descriptors
    /// that this process opens must not be among them.
    pub fn of_this_process() -> Self {
        let mut kept = Self {
            manager: std::env::var_os("NOTIFY_SOCKET"),
            ..Self::default()
        };
        match sd_notify::listen_fds_with_names() {
            Ok(named) => named.for_each(|(number, name)| kept.take(number, &name)),
            Err(error) => kept.refused.push(error.to_string()),
        }
        kept
    }

    fn take(&mut self, number: i32, name: &str) {
        match (kept::own(number), name) {
            (Ok(descriptor), TUNNEL) => self.tunnels.push(descriptor),
            (Ok(descriptor), SOCKETS) => self.sockets.push(descriptor),
            (Ok(_), _) => self.refused.push(format!("nothing is kept as {name:?}")),
            (Err(error), _) => self.refused.push(error.to_string()),
        }
    }

    /// Moves the descriptors out of the store: what this process closes is then gone.
    pub fn claim(&mut self) {
        for why in self.refused.drain(..) {
            tracing::warn!("a descriptor of the service manager is not used: {why}");
        }
        if !self.tunnels.is_empty() || !self.sockets.is_empty() {
            self.empty();
        }
    }

    /// Returns the kept socket that is bound to this address, if there is one. With `beside`, other
    /// threads share its port. If there is none, the port is free afterwards.
    pub fn udp(&mut self, address: SocketAddr, beside: bool) -> Option<Datagrams> {
        let fits = |kept: &OwnedFd| Datagrams::is_such(kept, address, MARK, beside);
        let Some(place) = self.sockets.iter().position(fits) else {
            let all = self.sockets.len();
            let has_port = |kept: &OwnedFd| Datagrams::port_of(kept) == Some(address.port());
            self.sockets.retain(|kept| !has_port(kept));
            self.closed_sockets += all - self.sockets.len();
            return None;
        };
        let adopted = Datagrams::adopt(self.sockets.swap_remove(place), address);
        let refused = |error: &os::Error| tracing::warn!("a kept socket is not used: {error}");
        let adopted = adopted.inspect_err(refused).ok()?;
        self.adopted_sockets += 1;
        Some(adopted)
    }

    /// Returns the kept tunnel device, if it fits the configuration. Others are removed.
    pub fn tunnel(&mut self, config: &Config) -> Option<Bulk> {
        let tunnel = &config.tunnel;
        let offload = tunnel.offload == Offload::Auto;
        let queues = tunnel.workers > NonZeroU8::MIN;
        let adopt = |kept| Bulk::adopt(kept, &tunnel.name, tunnel.mtu, offload, queues);
        let mut adopted = None;
        for kept in self.tunnels.drain(..) {
            match adopt(kept) {
                Ok(tun) => adopted = Some(tun),
                Err(why) => tracing::warn!("a kept tunnel device is not used: {why}"),
            }
        }
        self.has_adopted_tunnel = adopted.is_some();
        adopted
    }

    /// Closes sockets that do not fit the configuration, and stores what is open now. Returns true
    /// if the tunnel device is that of the last start.
    pub fn store(&mut self, host: &Host) -> bool {
        let closed = self.closed_sockets + self.sockets.len();
        if closed > 0 {
            tracing::warn!("{closed} kept sockets are not used: they are not those of [listen]");
        }
        self.sockets.clear();
        self.tunnels.clear();
        let tunnel = host.tunnel.as_ref().map(|tunnel| tunnel.tun.as_fd());
        let sockets = host.sockets.ike.iter().chain(&host.sockets.natt);
        let sockets: Vec<_> = sockets.map(Datagrams::as_fd).collect();
        let is_stored = self.send(TUNNEL, tunnel.as_slice()) && self.send(SOCKETS, &sockets);
        self.is_stored = is_stored && tunnel.is_some();
        if self.has_adopted_tunnel {
            let sockets = self.adopted_sockets;
            tracing::info!(
                "continuing with the tunnel device and {sockets} sockets that were kept"
            );
        }
        self.closed_sockets = 0;
        std::mem::take(&mut self.has_adopted_tunnel)
    }

    /// Stores the devices of another configuration.
    pub fn store_again(&mut self, host: &Host) {
        self.empty();
        self.store(host);
    }

    /// Returns true if the tunnel device outlives this process.
    pub const fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Empties the store, and waits until that is done.
    pub fn empty(&mut self) {
        self.is_stored = false;
        for name in [TUNNEL, SOCKETS] {
            self.tell(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), &[]);
        }
        if let Some(manager) = &self.manager
            && let Err(error) = kept::wait_for(manager)
        {
            tracing::debug!("the service manager does not answer: {error}");
        }
    }

    /// Stores descriptors. The manager is not to watch them: errors of a socket are no end.
    fn send(&self, name: &str, descriptors: &[BorrowedFd<'_>]) -> bool {
        let message = format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0");
        descriptors.is_empty() || self.tell(&message, descriptors)
    }

    fn tell(&self, message: &str, descriptors: &[BorrowedFd<'_>]) -> bool {
        let Some(manager) = &self.manager else {
            return false;
        };
        let told = kept::tell(manager, message, descriptors);
        let failed = |error: &_| tracing::debug!("cannot tell the service manager: {error}");
        told.inspect_err(failed).is_ok()
    }
}

/// A wait before a kept tunnel device is read. Packets stay in the bounded queue of the device, so
/// that they are sealed for tunnels that are up.
#[derive(Debug)]
pub struct Hold {
    /// The begin of this start.
    since: Instant,
}

impl Hold {
    pub const fn new(since: Instant) -> Self {
        Self { since }
    }

    /// Returns the latest end.
    pub fn poll_timeout(&self, node: &Node, config: &Config) -> Deadline {
        let own = config.peers.iter();
        let mut own = own.filter(|peer| peer.start == Start::Auto);
        let waits_for_own = own.any(|peer| !node.is_up(&peer.party.name));
        Deadline {
            at: self.since + if waits_for_own { PATIENCE } else { GRACE },
            reason: "read a kept device",
        }
    }

    /// Returns true if the device should be read now.
    pub fn is_over(&self, node: &Node, config: &Config, now: Instant) -> bool {
        let is_up = |peer: &config::Peer| node.is_up(&peer.party.name);
        config.peers.iter().all(is_up) || self.poll_timeout(node, config).at <= now
    }

    /// Logs the end. Returns the gap.
    pub fn tell(&self, tunnels: Tunnels, now: Instant) -> Gap {
        let gap = Gap {
            since: self.since,
            waited: now - self.since,
        };
        let seconds = gap.waited.as_secs_f64();
        tracing::info!(
            "reading the tunnel device again {seconds:.2} s after this start: {tunnels}"
        );
        gap
    }
}

/// The gap of a restart: the time that packets waited in the queue of the kept device.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    since: Instant,
    waited: Duration,
}

impl Gap {
    /// Returns the gap in the form of the API, for as long as it is news.
    pub fn shown(&self, now: Instant) -> Option<Restart> {
        let ago = now.since(self.since);
        (ago < SHOWN).then(|| Restart {
            seconds_ago: ago.as_secs(),
            waited_micros: u64::try_from(self.waited.as_micros()).unwrap_or(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Works: service
    #[test]
    fn the_gap_of_a_restart_is_told_for_an_hour() {
        let second = Duration::from_secs(1);
        let begun = Instant::ZERO + second * 5;
        let tunnels = Tunnels { up: 1, all: 1 };
        let gap = Hold::new(begun).tell(tunnels, begun + second / 8);
        let told = gap.shown(begun + second * 60).unwrap();
        assert_eq!((told.seconds_ago, told.waited_micros), (60, 125_000));
        assert!(gap.shown(begun + second * 3599).is_some());
        assert!(gap.shown(begun + SHOWN).is_none());
    }
}
