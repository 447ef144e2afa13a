//! The responder: a `stratad` that knows every initiator, and the kernel's accounting of it.

use super::cores;
use super::memory::{memory, peak};
use crate::daemon::Daemon;
use crate::host::Host;
use anyhow::Result;
use model::{Identity, TrafficSelector};
use serde::{Deserialize, Serialize};
use serde_json::json;
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
        Self::start_for(host, initiators, terms, "", "")
    }

    /// Does the same, with more lines in the table of each initiator, and additional tables.
    pub fn start_for(
        host: &Host,
        initiators: usize,
        terms: Terms,
        each: &str,
        tables: &str,
    ) -> Result<Self> {
        let node = match terms {
            Terms::Psk | Terms::Leased => "",
            Terms::Ecdsa => CERTIFIED,
        };
        let store = host.directory().join("leases.redb");
        let store = format!("[store]\nfile = \"{}\"\n", store.display());
        Self::start_as(
            host,
            &(config(initiators, node, terms, each) + &store + tables),
        )
    }

    fn start_as(host: &Host, config: &str) -> Result<Self> {
        secret(host)?;
        let responder = Self(host.stratad(config)?);
        responder.listens()?;
        Ok(responder)
    }

    /// Kills the responder. Its files stay.
    pub fn crash(&mut self) -> Result<()> {
        self.0.process().crash()
    }

    /// Starts the responder again, and waits until it listens.
    pub fn start_again(&mut self) -> Result<()> {
        self.0.start_again()?;
        self.listens()
    }

    /// Waits for the sockets of IKE: the API exists before they do, but answers only once they
    /// exist.
    fn listens(&self) -> Result<()> {
        self.0.ask("version", json!({})).map(drop)
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

    /// Returns the largest number of octets so far, with code and files.
    pub fn peak(&self) -> Result<u64> {
        peak(self.pid())
    }
}

/// Writes the pre-shared key into the folder of a host.
pub(super) fn secret(host: &Host) -> Result<()> {
    host.secret("bench.psk", std::str::from_utf8(KEY)?)
        .map(drop)
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

/// Returns the configuration, with a table for each initiator, which has the lines `each`.
fn config(initiators: usize, node: &str, terms: Terms, each: &str) -> String {
    let (_, length) = PROTECTED;
    let more = match terms {
        Terms::Psk | Terms::Ecdsa => "",
        Terms::Leased => POOL,
    };
    // Initiators expect nothing but echoes.
    let mut config = format!(
        "[node]\nid = \"{IDENTITY}\"\n{node}[tunnel]\naddresses = [\"{INNER}/{length}\"]\n\
         path_mtu = \"off\"\n"
    );
    for number in 0..initiators as u32 {
        config += &table(number, terms, each);
    }
    config + more
}

/// Returns the table of an initiator. The liveness interval is longer than any run.
pub(super) fn table(number: u32, terms: Terms, each: &str) -> String {
    let (protected, length) = PROTECTED;
    let inner = inner_address(number);
    let proof = match terms {
        Terms::Psk => format!("psk = \"bench.psk\"\nremote = [\"{inner}/32\"]\n"),
        Terms::Ecdsa => format!("remote = [\"{inner}/32\"]\n"),
        Terms::Leased => "psk = \"bench.psk\"\npool = \"bench\"\n".to_owned(),
    };
    format!(
        "[peer.i{number}]\nid = \"{}\"\n{proof}local = [\"{protected}/{length}\"]\n{each}\
         liveness = \"1h\"\n",
        identity_of(number)
    )
}

/// Returns the configuration of a daemon that is one more initiator, with a pre-shared key, default
/// settings, and these lines in the table of the responder.
pub(super) fn initiator(number: u32, address: IpAddr, lines: &str) -> String {
    let (protected, length) = PROTECTED;
    let (id, inner) = (identity_of(number), inner_address(number));
    format!(
        "[node]\nid = \"{id}\"\n[tunnel]\naddresses = [\"{inner}/32\"]\n[peer.gateway]\n\
         address = \"{address}\"\nid = \"{IDENTITY}\"\npsk = \"bench.psk\"\n\
         local = [\"{inner}/32\"]\nremote = [\"{protected}/{length}\"]\n{lines}"
    )
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
