//! The download of *Mobile multi-layered IPsec*, figures 12 to 16:
//!
//! ```text
//! mobile ──wireless──  node  ──wired──  gateway ──── server
//!         2 Mb/s, 1 ms       100 ms
//!          bit errors
//! ```
//!
//! The server sends without end; goodput is what the mobile node's program gets after slow start.
//! Addresses, queues and buffers are those of `strata demo`, so that the two can be compared.

use super::Configuration;
use super::stage::Stage;
use crate::Statistics;
use crate::tcp::{self, Counters};
use node::{Node, TransitCounters};
use std::time::Duration;

/// Between two samples.
const SAMPLING: Duration = Duration::from_millis(100);

/// How long handshakes may take, and the first octet to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Octets of the longest inner packet that fits the tunnel: `stratad`'s default.
const TUNNEL_MTU: u16 = 1380;

/// Headers of IPv4 and TCP.
const HEADERS: u16 = 40;

/// A download and how it is carried.
#[derive(Clone, Debug, PartialEq)]
pub struct Download {
    /// What protects it, and what the node does.
    pub configuration: Configuration,
    /// Of packets in zones every so many-th is encrypted, with 0 none, and the others are authenticated alone; all
    /// are with `None`.
    pub every: Option<u32>,
    /// How both ends speak TCP. In a tunnel segments are made to fit.
    pub tcp: tcp::Settings,
    /// One bit error in so many bits on the wireless hop, both directions; 0 for none.
    pub one_error_in: u64,
    /// From the first octet to the end.
    pub duration: Duration,
    /// What errors, keys and content are drawn from.
    pub seed: u64,
    /// Whether the node gets the licence for the headers; without it there is no gain.
    pub licence: bool,
    /// Whether SNOOP works where it should; without it there is no gain.
    pub snoop: bool,
}

impl Default for Download {
    /// The demo's zoned download with SNOOP: 45 s, one error in 512 kbit, Reno without SACK.
    fn default() -> Self {
        Self {
            configuration: Configuration::ZonedSnoop,
            every: None,
            tcp: tcp::Settings {
                sack: false,
                ..tcp::Settings::default()
            },
            one_error_in: 512 << 10,
            duration: Duration::from_secs(45),
            seed: 1,
            licence: true,
            snoop: true,
        }
    }
}

/// What a download did.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Bits per second of payload, the first quarter or five seconds left out.
    pub goodput: f64,
    /// Octets that arrived in order, each the right one.
    pub octets: u64,
    /// The server's connection over time, from the first octet that arrived.
    pub samples: Vec<Sample>,
    /// What the server's TCP did.
    pub tcp: Counters,
    /// The wireless hop: to the mobile node, and from it.
    pub wireless: [Statistics; 2],
    /// What the node did with transit packets, where there is one.
    pub transit: Option<TransitCounters>,
    /// What SNOOP did, where it runs.
    pub snoop: Option<pep::Counters>,
    /// A hash over every packet of the run and its moment.
    pub digest: [u8; 32],
}

/// One moment of the server's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the first octet arrived.
    pub at: Duration,
    /// The next octet to be sent for the first time.
    pub sent: u64,
    /// Octets acknowledged.
    pub acknowledged: u64,
    /// Congestion window, in octets.
    pub window: u64,
    /// Slow start threshold, in octets; `None` before the first loss.
    pub threshold: Option<u64>,
}

/// Why a download could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No tunnel.
    #[error("the tunnel did not come up within {PATIENCE:?}: {why}; try fewer bit errors")]
    NoTunnel {
        /// What the mobile node said.
        why: String,
    },
    /// No keys at the node.
    #[error("the licensed node got no keys within {PATIENCE:?}; try fewer bit errors")]
    NoGrant,
    /// No octet.
    #[error("nothing arrived within {PATIENCE:?}; try fewer bit errors")]
    Silence,
    /// A wrong octet: a bug.
    #[error("octet {at} of the download or one soon after it is not what the server sent")]
    Damaged {
        /// Which.
        at: u64,
    },
}

impl Download {
    /// Builds the network, waits for the tunnel and the grant, downloads and measures.
    ///
    /// # Errors
    /// The network is too bad for it.
    pub fn run(&self) -> Result<Measured, Failure> {
        let mut stage = Stage::build(self);
        if self.configuration.has_tunnel() {
            stage.wait_for_tunnel()?;
        }
        if self.configuration.is_zoned() && self.licence {
            stage.wait_for(Stage::has_grant, Failure::NoGrant)?;
        }
        stage.begin(self);
        stage.wait_for(|stage| stage.octets() > 0, Failure::Silence)?;
        self.measure(stage)
    }

    /// The part of a download that is slow start.
    fn skipped(&self) -> Duration {
        (self.duration / 4).min(Duration::from_secs(5))
    }

    fn measure(&self, mut stage: Stage) -> Result<Measured, Failure> {
        let began = stage.received().and_then(|received| received.began);
        let began = began.unwrap_or(stage.network.now());
        let mut samples = Vec::new();
        let mut skipped = None;
        let mut at = Duration::ZERO;
        while at < self.duration {
            at = (at + SAMPLING).min(self.duration);
            stage.network.run_until(began + at);
            samples.extend(stage.sample(at));
            if at >= self.skipped() {
                skipped.get_or_insert((at, stage.octets()));
            }
        }
        if let Some(at) = stage.received().and_then(|received| received.damaged) {
            return Err(Failure::Damaged { at });
        }
        let (from, before) = skipped.unwrap_or_default();
        let octets = stage.octets();
        let node = stage.network.host(stage.licensed).node();
        let [wireless, back] = stage.network.statistics(stage.wireless);
        Ok(Measured {
            goodput: (octets - before) as f64 * 8.0 / (self.duration - from).as_secs_f64(),
            octets,
            samples,
            tcp: stage
                .server_program()
                .map_or_else(Counters::default, |server| *server.connection().counters()),
            wireless: [wireless, back],
            transit: node.map(|node| *node.transit_counters()),
            snoop: node.and_then(Node::snoop_counters).cloned(),
            digest: stage.network.digest(),
        })
    }

    /// What the mobile node announces. Linux charges its receive buffer by packets, so the window
    /// of smaller segments is smaller.
    pub(super) fn tcp(&self) -> tcp::Settings {
        let mtu = if self.configuration.has_tunnel() {
            TUNNEL_MTU
        } else {
            1500
        };
        let mss = self.tcp.mss.min(mtu - HEADERS);
        let buffer = u64::from(self.tcp.receive_buffer) * u64::from(mss) / u64::from(self.tcp.mss);
        tcp::Settings {
            mss,
            receive_buffer: buffer as u32,
            ..self.tcp.clone()
        }
    }
}
