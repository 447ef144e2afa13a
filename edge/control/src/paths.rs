//! `strata paths` and `strata move`: current and possible paths of tunnels.

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
    /// Encapsulation on this path.
    #[serde(default)]
    pub carrier: Carrier,
    /// The end that can move the tunnel.
    pub moved_by: Who,
    /// Possible paths, best first; empty unless this host can move the tunnel.
    pub candidates: Vec<Candidate>,
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

/// A pair of addresses between which a tunnel can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Local address.
    pub local: IpAddr,
    /// Remote address.
    pub remote: IpAddr,
    /// Encapsulation that this path would use.
    #[serde(default)]
    pub carrier: Carrier,
    /// State of this path.
    pub standing: Standing,
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
}
