//! The grants that a licensed node holds, with those of each gateway kept separate.
//!
//! A gateway chooses the identifiers of its composite SAs and lines, and states the SPIs of its
//! grants. Another gateway may use the same values, by chance or on purpose. A grant is therefore
//! identified by its gateway and its identifier. The data plane and the PEP know a grant by an
//! identifier that the node itself chose, so they never mix grants of two gateways.

use crate::status::HeldGrant;
use crypto::Secret;
use esp::Unusable;
use model::{CsaId, Grant, IkeSaId, Instant, Spi};
use std::collections::BTreeMap;

/// Limit of grants of one gateway that share an SPI. Receivers behind one NAT choose their SPIs
/// independently, and each grant costs one trial (DESIGN section 7).
const CANDIDATES: usize = 4;

/// All held grants, by the node's own identifiers.
#[derive(Default)]
pub(crate) struct Holdings {
    held: BTreeMap<CsaId, Held>,
    last: u64,
}

/// A grant that is held.
pub(crate) struct Held {
    /// IKE SA on which the grant arrived.
    pub sa: IkeSaId,
    /// The node's own identifier of the line.
    pub line: CsaId,
    /// The gateway's identifier of the line.
    pub granted_line: CsaId,
    pub status: HeldGrant,
    /// Keys that other nodes may fetch: the grant as received, without the keys to write and
    /// inject.
    pub onward: Option<Box<Grant<Secret>>>,
}

/// The node's own identifiers of a grant and its line.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub csa: CsaId,
    pub line: CsaId,
}

impl Holdings {
    /// Returns the node's own identifiers for a grant: the existing ones if it renews a grant.
    /// Errors if the gateway has too many grants with one of the SPIs.
    pub fn name(&mut self, gateway: &str, grant: &Grant<Secret>) -> Result<Names, Unusable> {
        let renewed = self
            .of(gateway)
            .find(|(_, held)| held.status.csa == grant.csa);
        let renewed = renewed.map(|(csa, _)| csa);
        for spi in [grant.from_gateway.spi, grant.to_gateway.spi] {
            let others = self.of(gateway).filter(|(csa, _)| Some(*csa) != renewed);
            if others.filter(|(_, held)| held.has(spi)).count() >= CANDIDATES {
                return Err(Unusable::Crowded);
            }
        }
        let line = self
            .of(gateway)
            .find(|(_, held)| held.granted_line == grant.line)
            .map(|(_, held)| held.line);
        Ok(Names {
            csa: renewed.unwrap_or_else(|| self.next()),
            line: line.unwrap_or_else(|| self.next()),
        })
    }

    /// Returns true if the grant of a gateway with this identifier is held.
    pub fn has(&self, gateway: &str, csa: CsaId) -> bool {
        self.of(gateway).any(|(_, held)| held.status.csa == csa)
    }

    /// Adds a grant. Returns the one with the same identifier that it replaces.
    pub fn insert(&mut self, csa: CsaId, held: Held) -> Option<Held> {
        self.held.insert(csa, held)
    }

    pub fn get(&self, csa: CsaId) -> Option<&Held> {
        self.held.get(&csa)
    }

    pub fn remove(&mut self, csa: CsaId) -> Option<Held> {
        self.held.remove(&csa)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// Returns the grant with the gateway's identifier that arrived on an IKE SA.
    pub fn granted(&self, sa: IkeSaId, csa: CsaId) -> Option<CsaId> {
        self.that(|held| held.sa == sa && held.status.csa == csa)
            .next()
    }

    /// Returns the grants that arrived on an IKE SA.
    pub fn over(&self, sa: IkeSaId) -> Vec<CsaId> {
        self.that(|held| held.sa == sa).collect()
    }

    /// Returns the grants that have expired.
    pub fn expired(&self, now: Instant) -> Vec<CsaId> {
        self.that(|held| held.status.until <= now).collect()
    }

    /// Returns true if a line has a grant.
    pub fn has_line(&self, line: CsaId) -> bool {
        self.held.values().any(|held| held.line == line)
    }

    fn that(&self, is_meant: impl Fn(&Held) -> bool) -> impl Iterator<Item = CsaId> {
        let meant = self.held.iter().filter(move |(_, held)| is_meant(held));
        meant.map(|(csa, _)| *csa)
    }

    fn of<'a>(&'a self, gateway: &'a str) -> impl Iterator<Item = (CsaId, &'a Held)> {
        let held = self.held.iter().map(|(csa, held)| (*csa, held));
        held.filter(move |(_, held)| held.status.gateway == gateway)
    }

    const fn next(&mut self) -> CsaId {
        self.last += 1;
        CsaId(self.last)
    }
}

impl Held {
    fn has(&self, spi: Spi) -> bool {
        [self.status.from_gateway, self.status.to_gateway].contains(&spi)
    }
}
