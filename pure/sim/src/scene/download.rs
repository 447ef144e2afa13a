//! The download of *Mobile multi-layered IPsec*, figures 12 to 16:
//!
//! ```text
//! mobile ──wireless──  node  ──wired──  gateway ──── server
//!         2 Mb/s, 1 ms       100 ms
//!          bit errors
//! ```
//!
//! The server sends without end. Goodput is the rate at which the mobile node's program receives
//! after slow start. Addresses, queues and buffers are those of `strata-lab demo`, so that the two
//! can be compared.

use super::Configuration;
use super::stage::Stage;
use crate::Statistics;
use crate::tcp::{self, Counters};
use node::{Node, TransitCounters};
use std::time::Duration;
use world::Hosts;

/// Interval between two samples.
const SAMPLING: Duration = Duration::from_millis(100);

/// Longest wait for the handshakes, and for the first octet.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Octets of the longest inner packet that fits the tunnel: `stratad`'s default.
const TUNNEL_MTU: u16 = 1380;

/// Octets of the IPv4 and TCP headers.
const HEADERS: u16 = 40;

/// A download and its transport.
#[derive(Clone, Debug, PartialEq)]
pub struct Download {
    /// Protection of the download, and the service of the node.
    pub configuration: Configuration,
    /// Of the packets in zones, one in `every` is encrypted, with 0 none. The others are only
    /// authenticated. With `None`, all are encrypted.
    pub every: Option<u32>,
    /// TCP settings of both ends. In a tunnel, the segment size is reduced to fit.
    pub tcp: tcp::Settings,
    /// Number of bits per bit error on the wireless hop, in both directions; 0 for no errors.
    pub one_error_in: u64,
    /// Time from the first octet to the end.
    pub duration: Duration,
    /// Seed of errors, keys and content.
    pub seed: u64,
    /// True if the node gets the licence for the headers. Without it there is no gain.
    pub licence: bool,
    /// True if SNOOP runs where the configuration has it. Without it there is no gain.
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

/// Results of a download.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Bits per second of payload, without the first quarter or five seconds.
    pub goodput: f64,
    /// Octets that arrived in order, each compared with the server's stream.
    pub octets: u64,
    /// State of the server's connection over time, from the first octet that arrived.
    pub samples: Vec<Sample>,
    /// Counters of the server's TCP.
    pub tcp: Counters,
    /// Counters of the wireless hop: to the mobile node, and from it.
    pub wireless: [Statistics; 2],
    /// Counters of transit packets at the node, if there is one.
    pub transit: Option<TransitCounters>,
    /// Counters of SNOOP, if it runs.
    pub snoop: Option<pep::Counters>,
    /// Hash over every packet of the run and its time.
    pub digest: [u8; 32],
}

/// State of the server's connection at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time since the first octet arrived.
    pub at: Duration,
    /// Offset of the next new octet to send.
    pub sent: u64,
    /// Octets acknowledged.
    pub acknowledged: u64,
    /// Congestion window, in octets.
    pub window: u64,
    /// Slow start threshold, in octets; `None` before the first loss.
    pub threshold: Option<u64>,
}

/// The reason why a download could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The tunnel did not come up.
    #[error("the tunnel did not come up within {PATIENCE:?}: {why}; try fewer bit errors")]
    NoTunnel {
        /// The mobile node's reason.
        why: String,
    },
    /// The node received no keys.
    #[error("the licensed node got no keys within {PATIENCE:?}; try fewer bit errors")]
    NoGrant,
    /// No octet arrived.
    #[error("nothing arrived within {PATIENCE:?}; try fewer bit errors")]
    Silence,
    /// A wrong octet arrived, which is a bug.
    #[error("octet {at} of the download or one soon after it is not what the server sent")]
    Damaged {
        /// Offset of the piece with the wrong octet.
        at: u64,
    },
}

impl Download {
    /// Builds the network, waits for the tunnel and the grant, downloads and measures.
    ///
    /// # Errors If the network loses too much.
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

    /// Returns the duration of slow start, which is not measured.
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
            stage.network.run_to(began + at);
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

    /// Returns the TCP settings of the mobile node. Linux charges its receive buffer per packet, so
    /// smaller segments have a smaller window.
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
