//! The responder: a `stratad` that knows every initiator, and what the kernel says of it.

use super::cores;
use super::memory::memory;
use crate::daemon::Daemon;
use crate::host::Host;
use anyhow::{Context, Result};
use model::{Identity, TrafficSelector};
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Where it listens, and where the initiators are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its address.
    pub responder: IpAddr,
    /// The first initiator's; the others' follow.
    pub first: Ipv4Addr,
}

/// Who it is.
const IDENTITY: &str = "responder.bench";

/// What it protects.
const PROTECTED: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 8, 0, 0), 16);

/// Its own address there.
pub(super) const INNER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);

/// The initiators' addresses inside count from here.
const FIRST_INNER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 0);

/// The key of all of them. Whoever has it finds nothing here that is worth it.
pub(super) const KEY: &[u8] = b"a key for measurements only, in namespaces that end with them";

impl Place {
    /// All of them in one host.
    pub const ONE_HOST: Self = Self {
        responder: IpAddr::V4(Ipv4Addr::LOCALHOST),
        first: Ipv4Addr::new(127, 1, 0, 0),
    };

    /// An initiator's address.
    pub const fn address_of(self, number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.first.to_bits() + number))
    }

    /// The number of the initiator that has it.
    pub fn number_of(self, address: IpAddr) -> Option<usize> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let number = address.to_bits().checked_sub(self.first.to_bits())?;
        usize::try_from(number).ok()
    }
}

/// A running responder; dead when dropped.
pub(super) struct Responder(Daemon);

impl Responder {
    /// Starts it with a table for each of so many initiators, and waits until it hears them.
    pub fn start(host: &Host, initiators: usize) -> Result<Self> {
        Self::start_with(host, initiators, "", "")
    }

    /// Starts it with more lines in `[node]`, and more tables.
    pub fn start_with(host: &Host, initiators: usize, node: &str, tables: &str) -> Result<Self> {
        let key = std::str::from_utf8(KEY)?;
        host.secret("bench.psk", key)?;
        let daemon = host.stratad(&(config(initiators, node) + tables))?;
        // The API is there before the sockets for IKE are; it answers when both are.
        daemon.ask("version", json!({}))?;
        Ok(Self(daemon))
    }

    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// How long its threads were on a core so far.
    pub fn spent(&self) -> Result<Duration> {
        let pid = self.pid();
        let mut spent = Duration::ZERO;
        for thread in cores::threads(pid)? {
            // "time spent on the cpu (in nanoseconds)" comes first (Documentation/scheduler/sched-stats.rst).
            let file = format!("/proc/{pid}/task/{thread}/schedstat");
            let text = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
            let nanos = text.split_whitespace().next().unwrap_or_default();
            spent +=
                Duration::from_nanos(nanos.parse().with_context(|| format!("{file}: {text}"))?);
        }
        Ok(spent)
    }

    /// Octets of its memory.
    pub fn memory(&self) -> Result<u64> {
        memory(self.pid())
    }
}

/// The responder's identity.
pub(super) fn identity() -> Identity {
    named(IDENTITY)
}

/// An initiator's identity.
pub(super) fn identity_of(initiator: u32) -> Identity {
    named(&format!("{initiator}.bench"))
}

pub(super) fn named(name: &str) -> Identity {
    name.parse().expect("a name is an identity")
}

/// What the responder protects.
pub(super) fn protected() -> TrafficSelector {
    prefix(PROTECTED.0, PROTECTED.1)
}

/// An initiator's address inside.
pub(super) fn inner(initiator: u32) -> TrafficSelector {
    prefix(inner_address(initiator), 32)
}

pub(super) fn inner_address(initiator: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_INNER.to_bits() + initiator)
}

fn prefix(address: Ipv4Addr, length: u8) -> TrafficSelector {
    TrafficSelector::from_prefix(address.into(), length).expect("both lengths fit IPv4")
}

/// A table for each initiator. Silence is not asked about while a run lasts.
fn config(initiators: usize, node: &str) -> String {
    let (protected, length) = PROTECTED;
    let mut config = format!(
        "[node]\nid = \"{IDENTITY}\"\n{node}[tunnel]\naddresses = [\"{INNER}/{length}\"]\n"
    );
    for number in 0..initiators as u32 {
        let inner = inner_address(number);
        // Writing to a String cannot fail.
        let _ = write!(
            config,
            "[peer.i{number}]\nid = \"{number}.bench\"\npsk = \"bench.psk\"\n\
             local = [\"{protected}/{length}\"]\nremote = [\"{inner}/32\"]\nliveness = \"1h\"\n"
        );
    }
    config
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
