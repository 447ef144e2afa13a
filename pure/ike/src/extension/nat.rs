//! NAT detection and traversal (RFC 7296 section 2.23).
//!
//! Either end sends hashes of the addresses it believes in, and the other compares them. "If a NAT
//! is detected, both devices MUST use UDP encapsulation for ESP". An end that wants UDP
//! encapsulation on every path sends a false source hash, which is our default. An end that wants
//! it only across NATs sends a true one. If neither end then detects a NAT, ESP is sent directly
//! over IP, as protocol 50. An operator has to allow this ([`Encapsulation`]), because some
//! networks let only UDP through. AUTH detects any modification of the hashes in IKE_SA_INIT.

use crate::config::Config;
use crate::exchange::{notifies, notify};
use crypto::{Rng, sha1};
use model::{Encapsulation, Path};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{Message, NotifyType, Payload};

/// Result of NAT detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    /// True if a NAT is in front of us: the peer sends to another address than ours.
    pub ours: bool,
    /// True if a NAT is in front of the peer, or the peer wants UDP encapsulation as we do.
    pub theirs: bool,
}

impl Nat {
    /// Returns true if a new address of the peer is checked, and then followed (`task/follow.rs`).
    /// An end that is behind a NAT itself must not follow: a forger between the NAT and the peer
    /// could move it anywhere (RFC 7296 section 2.23).
    pub(crate) const fn follows(self) -> bool {
        self.theirs && !self.ours
    }

    /// Returns true if no NAT was detected.
    const fn is_none(self) -> bool {
        !self.ours && !self.theirs
    }
}

/// Returns the two notifies for a message on a path. The source hash is random to force UDP
/// encapsulation, and if our address is unspecified.
pub(crate) fn payloads(
    spi_i: u64,
    spi_r: u64,
    path: Path,
    config: &Config,
    rng: &mut Rng,
) -> [Payload; 2] {
    let honest = config.encapsulation == Encapsulation::ForNat;
    let source = match honest && !path.local.ip().is_unspecified() {
        true => hash(spi_i, spi_r, path.local),
        false => rng.array(),
    };
    let destination = hash(spi_i, spi_r, path.remote);
    [
        notify(NotifyType::NAT_DETECTION_SOURCE_IP, source.to_vec()),
        notify(
            NotifyType::NAT_DETECTION_DESTINATION_IP,
            destination.to_vec(),
        ),
    ]
}

/// Returns the path for ESP of an IKE SA on this path.
pub(crate) fn esp_path(path: Path, nat: Option<Nat>, config: &Config) -> Path {
    let needed = config.encapsulation == Encapsulation::Always || !nat.is_some_and(Nat::is_none);
    match needed || path.is_stream() {
        true => path,
        false => path.without_udp(),
    }
}

/// Compares a message's hashes with the path of its arrival. `None`: the peer does not support NAT
/// traversal.
pub(crate) fn detect(message: &Message, path: Path) -> Option<Nat> {
    let header = &message.header;
    let differs = |kind, address| {
        let expected = hash(header.spi_i, header.spi_r, address);
        let mut hashes = notifies(message)
            .filter(|notify| notify.kind == kind)
            .peekable();
        // A message may name several sources; one that matches is enough.
        hashes.peek()?;
        Some(hashes.all(|notify| notify.data != expected))
    };
    Some(Nat {
        ours: differs(NotifyType::NAT_DETECTION_DESTINATION_IP, path.local)?,
        theirs: differs(NotifyType::NAT_DETECTION_SOURCE_IP, path.remote)?,
    })
}

/// Returns the path for IKE_AUTH, given that of the IKE_SA_INIT response: both ends move to the
/// port that IKE and ESP share, unless they began there.
pub(crate) fn float(path: Path, natt_port: u16) -> Path {
    match path.local.port() == natt_port {
        true => path,
        false => Path::udp(
            SocketAddr::new(path.local.ip(), natt_port),
            SocketAddr::new(path.remote.ip(), natt_port),
        ),
    }
}

/// Returns SHA-1 over SPIs, address and port. RFC 7296 prescribes the function, and nothing secret
/// depends on it.
fn hash(spi_i: u64, spi_r: u64, address: SocketAddr) -> [u8; 20] {
    let (spi_i, spi_r) = (spi_i.to_be_bytes(), spi_r.to_be_bytes());
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => sha1(&[&spi_i, &spi_r, &ip.octets(), &port]),
        IpAddr::V6(ip) => sha1(&[&spi_i, &spi_r, &ip.octets(), &port]),
    }
}
