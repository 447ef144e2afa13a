//! The responder: a `stratad` that knows every initiator, and the kernel's accounting of it.

use super::cores;
use super::memory::memory;
use crate::daemon::Daemon;
use crate::host::Host;
use anyhow::Result;
use model::{Identity, TrafficSelector};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Addresses of the responder and of the initiators.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Address of the responder.
    pub responder: IpAddr,
    /// Address of the first initiator; the others follow.
    pub first: Ipv4Addr,
}

/// Terms of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Terms {
    /// Authentication by a pre-shared key; the initiator has an inner address.
    Psk,
    /// The same with a certificate for ECDSA over P-256 at both ends.
    Ecdsa,
    /// Authentication by a pre-shared key; the responder leases the inner address.
    Leased,
}

impl Terms {
    /// Returns the label in tables.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Psk => "PSK",
            Self::Ecdsa => "ECDSA",
            Self::Leased => "lease",
        }
    }
}

/// Identity of the responder.
const IDENTITY: &str = "responder.bench";

/// Network that the responder protects.
const PROTECTED: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 8, 0, 0), 16);

/// Inner address of the responder.
pub(super) const INNER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);

/// First of the initiators' inner addresses.
const FIRST_INNER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 0);

/// Pool of the initiators' inner addresses.
const POOL: &str = "[pool.bench]\naddresses = [\"172.16.0.0/12\"]\n";

/// Lines of `[node]` for authentication by certificates.
const CERTIFIED: &str = "cert = \"chain.pem\"\nkey = \"end.key\"\nca = [\"ca.pem\"]\n";

/// Pre-shared key of all initiators. It protects nothing of value.
pub(super) const KEY: &[u8] = b"a key for measurements only, in namespaces that end with them";

impl Place {
    /// The responder and all initiators on one host.
    pub const ONE_HOST: Self = Self {
        responder: IpAddr::V4(Ipv4Addr::LOCALHOST),
        first: Ipv4Addr::new(127, 1, 0, 0),
    };

    /// The responder on one host, all initiators on another.
    pub const TWO_HOSTS: Self = Self {
        responder: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
        first: Ipv4Addr::new(10, 64, 0, 2),
    };

    /// Gives the host of the initiators the addresses of [`Place::TWO_HOSTS`], and that of the
    /// responder the route to them. A wire joins both, 192.0.2.1 and 192.0.2.2.
    pub fn address(initiators: &Host, responder: &Host) -> Result<()> {
        // The whole network of an IPv4 address on a loopback device is local to the host.
        let crowd = initiators.netns().netlink()?;
        crowd.add_address("lo", "10.64.0.1/14".parse()?)?;
        responder.route("10.64.0.0/14", "192.0.2.1")
    }

    /// Returns the address of an initiator.
    pub const fn address_of(self, number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.first.to_bits() + number))
    }

    /// Returns the number of the initiator with this address.
    pub fn number_of(self, address: IpAddr) -> Option<usize> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let number = address.to_bits().checked_sub(self.first.to_bits())?;
        usize::try_from(number).ok()
    }
}

/// A running responder; it is killed when dropped.
pub(super) struct Responder(Daemon);

impl Responder {
    /// Starts the responder with a table for each initiator, and waits until it listens.
    pub fn start(host: &Host, initiators: usize) -> Result<Self> {
        Self::start_with(host, initiators, "", "")
    }

    /// Starts the responder with additional lines in `[node]`, and additional tables.
    pub fn start_with(host: &Host, initiators: usize, node: &str, tables: &str) -> Result<Self> {
        Self::start_as(host, &(config(initiators, node, Terms::Psk, "") + tables))
    }

    /// Starts a responder with these terms for all initiators. For [`Terms::Ecdsa`], its
    /// certificate is in the host's folder.
    pub fn start_on(host: &Host, initiators: usize, terms: Terms) -> Result<Self> {
        Self::start_for(host, initiators, terms, "")
    }

    /// Does the same, with more lines in the table of each initiator.
    pub fn start_for(host: &Host, initiators: usize, terms: Terms, each: &str) -> Result<Self> {
        let node = match terms {
            Terms::Psk | Terms::Leased => "",
            Terms::Ecdsa => CERTIFIED,
        };
        let store = host.directory().join("leases.redb");
        let store = format!("[store]\nfile = \"{}\"\n", store.display());
        Self::start_as(host, &(config(initiators, node, terms, each) + &store))
    }

    fn start_as(host: &Host, config: &str) -> Result<Self> {
        host.secret("bench.psk", std::str::from_utf8(KEY)?)?;
        let daemon = host.stratad(config)?;
        // The API exists before the sockets for IKE do, but answers only once both exist.
        daemon.ask("version", json!({}))?;
        Ok(Self(daemon))
    }

    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Returns the processor time of its threads so far.
    pub fn spent(&self) -> Result<Duration> {
        cores::spent_by(self.pid())
    }

    /// Returns the octets of its memory.
    pub fn memory(&self) -> Result<u64> {
        memory(self.pid())
    }
}

/// Returns the responder's identity.
pub(super) fn identity() -> Identity {
    named(IDENTITY)
}

/// Returns an initiator's identity. All have one length.
pub(super) fn identity_of(initiator: u32) -> Identity {
    named(&format!("{initiator:06}.bench"))
}

pub(super) fn named(name: &str) -> Identity {
    name.parse().expect("a name is an identity")
}

/// Returns the network that the responder protects.
pub(super) fn protected() -> TrafficSelector {
    prefix(PROTECTED.0, PROTECTED.1)
}

/// Returns an initiator's inner address.
pub(super) fn inner(initiator: u32) -> TrafficSelector {
    prefix(inner_address(initiator), 32)
}

pub(super) fn inner_address(initiator: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_INNER.to_bits() + initiator)
}

fn prefix(address: Ipv4Addr, length: u8) -> TrafficSelector {
    TrafficSelector::from_prefix(address.into(), length).expect("both lengths fit IPv4")
}

/// Returns the configuration, with a table for each initiator, which has the lines `each`. The
/// liveness interval is longer than any run.
fn config(initiators: usize, node: &str, terms: Terms, each: &str) -> String {
    let (protected, length) = PROTECTED;
    let (proof, more) = match terms {
        Terms::Psk => ("psk = \"bench.psk\"\n", ""),
        Terms::Ecdsa => ("", ""),
        Terms::Leased => ("psk = \"bench.psk\"\npool = \"bench\"\n", POOL),
    };
    // Initiators expect nothing but echoes.
    let mut config = format!(
        "[node]\nid = \"{IDENTITY}\"\n{node}[tunnel]\naddresses = [\"{INNER}/{length}\"]\n\
         path_mtu = \"off\"\n"
    );
    for number in 0..initiators as u32 {
        let inner = match terms {
            Terms::Psk | Terms::Ecdsa => format!("remote = [\"{}/32\"]\n", inner_address(number)),
            Terms::Leased => String::new(),
        };
        // Writing to a `String` cannot fail.
        let _ = write!(
            config,
            "[peer.i{number}]\nid = \"{}\"\n{proof}local = [\"{protected}/{length}\"]\n\
             {inner}{each}liveness = \"1h\"\n",
            identity_of(number)
        );
    }
    config + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initiator_is_found_by_its_address() {
        let place = Place::ONE_HOST;
        for number in [0, 1, 255, 256, 70_000] {
            let address = place.address_of(number);
            assert_eq!(place.number_of(address), Some(number as usize));
        }
        assert_eq!(place.number_of(place.responder), None);
    }
}
