//! NAT detection and traversal (RFC 7296 section 2.23).
//!
//! Either end sends a hash over the addresses it believes in; the other compares, and "if a NAT is
//! detected, both devices MUST use UDP encapsulation for ESP". Who wants that encapsulation on every
//! path forges its source hash, which is our usual way. Who wants it for NATs alone is honest, and where
//! both ends see none ESP is protocol 50 of IP; that is for an operator to allow
//! ([`Encapsulation`]), for there are networks that let no more than UDP through. Who changes a hash of
//! IKE_SA_INIT on its way is found out by AUTH.

use crate::config::Config;
use crate::exchange::{notifies, notify};
use crate::sa::Context;
use crypto::sha1;
use model::{Encapsulation, Path};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{Message, NotifyType, Payload};

/// Where NATs seem to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    /// In front of us: the peer sends to another address than the one we have.
    pub ours: bool,
    /// In front of the peer, or the peer wants UDP encapsulation as we do.
    pub theirs: bool,
}

impl Nat {
    /// Whether a new address of the peer is checked, and then followed (`sa/following.rs`). An end that is
    /// itself behind a NAT must not: a forger between the NAT and the peer could move it anywhere (RFC 7296
    /// section 2.23).
    pub(crate) const fn follows(self) -> bool {
        self.theirs && !self.ours
    }

    /// Whether there is none.
    const fn is_none(self) -> bool {
        !self.ours && !self.theirs
    }
}

/// The two notifies for a message on a path. The source is forged by who wants UDP encapsulation, and by
/// who leaves its address to the system.
pub(crate) fn payloads(spi_i: u64, spi_r: u64, path: Path, ctx: &mut Context<'_>) -> [Payload; 2] {
    let honest = ctx.config.encapsulation == Encapsulation::ForNat;
    let source = match honest && !path.local.ip().is_unspecified() {
        true => hash(spi_i, spi_r, path.local),
        false => ctx.rng.array(),
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

/// Where ESP goes that belongs to an IKE SA on this path.
pub(crate) fn esp_path(path: Path, nat: Option<Nat>, config: &Config) -> Path {
    let needed = config.encapsulation == Encapsulation::Always || !nat.is_some_and(Nat::is_none);
    match needed || path.is_stream() {
        true => path,
        false => path.without_udp(),
    }
}

/// What a message's hashes say about the path it came on. `None`: the peer has no NAT traversal.
pub(crate) fn detect(message: &Message, path: Path) -> Option<Nat> {
    let header = &message.header;
    let differs = |kind, address| {
        let expected = hash(header.spi_i, header.spi_r, address);
        let mut hashes = notifies(message)
            .filter(|notify| notify.kind == kind)
            .peekable();
        // Several sources may be named; one that fits is enough.
        hashes.peek()?;
        Some(hashes.all(|notify| notify.data != expected))
    };
    Some(Nat {
        ours: differs(NotifyType::NAT_DETECTION_DESTINATION_IP, path.local)?,
        theirs: differs(NotifyType::NAT_DETECTION_SOURCE_IP, path.remote)?,
    })
}

/// The path IKE_AUTH goes on, from the one IKE_SA_INIT came back on: both ends move to the port
/// that IKE and ESP share, unless they began there.
pub(crate) fn float(path: Path, natt_port: u16) -> Path {
    match path.local.port() == natt_port {
        true => path,
        false => Path::udp(
            SocketAddr::new(path.local.ip(), natt_port),
            SocketAddr::new(path.remote.ip(), natt_port),
        ),
    }
}

/// SHA-1 over SPIs, address and port: RFC 7296 fixes the function, nothing secret hangs on it.
fn hash(spi_i: u64, spi_r: u64, address: SocketAddr) -> [u8; 20] {
    let (spi_i, spi_r) = (spi_i.to_be_bytes(), spi_r.to_be_bytes());
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => sha1(&[&spi_i, &spi_r, &ip.octets(), &port]),
        IpAddr::V6(ip) => sha1(&[&spi_i, &spi_r, &ip.octets(), &port]),
    }
}
