//! `strata paths`, `strata move` and `strata signal`: current and possible paths of tunnels.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Paths of all peers that are up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// One entry per peer that is up, sorted by name.
    pub tunnels: Vec<TunnelPaths>,
}

/// Path of one peer's tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelPaths {
    /// Name of the peer's table.
    pub name: String,
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Interface that link-local addresses of this path belong to; `None` if it has none.
    #[serde(default)]
    pub interface: Option<String>,
    /// Encapsulation on this path.
    #[serde(default)]
    pub carrier: Carrier,
    /// The end that can move the tunnel.
    pub moved_by: Who,
    /// Reason for the path, if this host can move the tunnel.
    #[serde(default)]
    pub why: Option<Chosen>,
    /// Loss on the path before, in per cent, if it was left because it faded.
    #[serde(default)]
    pub faded_percent: Option<u8>,
    /// Possible paths, best first; empty unless this host can move the tunnel.
    pub candidates: Vec<Candidate>,
    /// Paths that carry packets at the same time, that of the IKE SA first; empty if `paths` allows
    /// one only, or one end does not support more.
    #[serde(default)]
    pub live: Vec<LivePath>,
}

/// Encapsulation of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// UDP datagrams.
    #[default]
    Udp,
    /// A TCP stream (RFC 9329).
    Tcp,
    /// IP protocol 50, without UDP: for ESP only, if there is no NAT.
    Ip,
}

/// The end that can move a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// This host, as the initiator.
    Us,
    /// The peer, as the initiator.
    Peer,
    /// Neither end, because one of them does not support or allow it. Called `nobody` by older
    /// versions.
    #[serde(alias = "nobody")]
    Neither,
}

/// The reason for the path of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// The system's routes prefer it.
    Route,
    /// An operator or a connection manager asked for it.
    Asked,
    /// The path before lost packets.
    Faded,
    /// The path before had a weak signal, as an external source has reported.
    Weak,
    /// The path before did not answer.
    Silent,
    /// It is quicker than the path before, and the routes prefer neither.
    Quicker,
}

/// A pair of addresses between which a tunnel can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Local address.
    pub local: IpAddr,
    /// Remote address.
    pub remote: IpAddr,
    /// Interface that link-local addresses of this path belong to; `None` if it has none.
    #[serde(default)]
    pub interface: Option<String>,
    /// Encapsulation that this path would use.
    #[serde(default)]
    pub carrier: Carrier,
    /// State of this path.
    pub standing: Standing,
    /// Smoothed round trip, if the path is measured.
    #[serde(default)]
    pub round_trip_micros: Option<u64>,
    /// Loss among the newest 20 requests, in per cent, if the path is measured.
    #[serde(default)]
    pub lost_percent: Option<u8>,
    /// Signal of the local address, if an external source reports it.
    #[serde(default)]
    pub signal: Option<Strength>,
}

/// The signal of a network, as an external source has reported it in the last 30 seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strength {
    /// The signal in per cent.
    pub percent: u8,
    /// True if tunnels leave the network while another path works: from below 30 % until 45 %.
    pub weak: bool,
    /// Name of the source, if it was given.
    #[serde(default)]
    pub by: Option<String>,
}

impl Strength {
    /// Advice to somebody who has given a number that is not a percentage.
    pub const FIX: &str = "for dBm, write 2 * (dBm + 100)";
}

/// One of several paths that carry packets at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivePath {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// True if the path is used; false if the peer does not answer there.
    pub works: bool,
    /// True if the path has a weak signal, and others carry what this host sends.
    #[serde(default)]
    pub avoided: bool,
    /// Traffic that the path carries before all others: selectors of the peer's end where this host
    /// has `traffic`, of this host's end where the peer has it; empty if there is none.
    #[serde(default)]
    pub traffic: Vec<String>,
    /// True if the path carries other traffic as well.
    #[serde(default = "yes")]
    pub shared: bool,
}

/// Returns true: a path of a version without `traffic` carries everything.
const fn yes() -> bool {
    true
}

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The tunnel uses this path.
    Used,
    /// No failure is known.
    Fresh,
    /// The peer did not answer on this path.
    Silent,
    /// The peer refused this path.
    Refused,
}

/// A tunnel that is moving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Name of the peer's table.
    pub name: String,
    /// New local address and port.
    pub local: SocketAddr,
    /// New remote address and port.
    pub remote: SocketAddr,
    /// Interface that link-local addresses of this path belong to; `None` if it has none.
    #[serde(default)]
    pub interface: Option<String>,
    /// True if the tunnel moves without a pause.
    #[serde(default)]
    pub soft: bool,
}

/// A report that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Name of the interface.
    pub interface: String,
    /// The signal.
    #[serde(flatten)]
    pub strength: Strength,
    /// Tunnels that have a path by the interface and that this host moves, sorted by name.
    pub tunnels: Vec<SignalTunnel>,
}

/// A tunnel that has a path by an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalTunnel {
    /// Name of the peer's table.
    pub name: String,
    /// True if the tunnel can leave a weak signal without a pause; otherwise it stays.
    pub follows: bool,
}
