//! `strata paths` and `strata move`: where tunnels go, and could go.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Where the tunnels go that are up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// One for each peer that is up, sorted by name.
    pub tunnels: Vec<TunnelPaths>,
}

/// Where one tunnel goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelPaths {
    /// Name of the peer's table.
    pub name: String,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// What carries packets between them.
    #[serde(default)]
    pub carrier: Carrier,
    /// Who can move it.
    pub moved_by: Who,
    /// The ways it could take, the best first; empty if they are not ours to choose from.
    pub candidates: Vec<Candidate>,
}

/// What carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// Datagrams of UDP.
    #[default]
    Udp,
    /// A stream of TCP (RFC 9329).
    Tcp,
    /// IP itself, as protocol 50: of ESP alone, where there is no NAT.
    Ip,
}

/// Who can move a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// We, who began it.
    Us,
    /// The peer, who began it.
    Peer,
    /// Nobody: one of both ends cannot, or does not want to.
    Nobody,
}

/// A pair of addresses between which packets can leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// One of ours.
    pub local: IpAddr,
    /// One of the peer's.
    pub remote: IpAddr,
    /// What would carry packets between them.
    #[serde(default)]
    pub carrier: Carrier,
    /// What is known of it.
    pub standing: Standing,
}

/// What is known of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The tunnel takes it.
    Used,
    /// Nothing speaks against it.
    Fresh,
    /// Nobody answered there.
    Silent,
    /// The peer does not want it.
    Refused,
}

/// A tunnel that was told to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Name of the peer's table.
    pub name: String,
    /// Our address and port from now on.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}
