//! The grants that a licensed node holds, those of each gateway apart from all others.
//!
//! A gateway chooses the names of its composite SAs and lines, and the SPIs in its grants are its word too. Another gateway may
//! use the same ones, by chance or on purpose. So a grant is known by its gateway and its name. The data plane and the PEP
//! know it by a name of the node's own, and so they never mix what two gateways have granted.

use crate::status::HeldGrant;
use crypto::Secret;
use esp::Unusable;
use model::{CsaId, Grant, IkeSaId, Instant, Spi};
use std::collections::BTreeMap;

/// Grants of one gateway that may share an SPI: receivers behind one NAT choose theirs without knowing of each other, and
/// each costs a trial (DESIGN section 7).
const CANDIDATES: usize = 4;

/// All of them, by the node's own names.
#[derive(Default)]
pub(crate) struct Holdings {
    held: BTreeMap<CsaId, Held>,
    last: u64,
}

/// A grant.
pub(crate) struct Held {
    /// The IKE SA that it came over.
    pub sa: IkeSaId,
    /// The node's own name of its line.
    pub line: CsaId,
    /// The gateway's name of its line.
    pub granted_line: CsaId,
    pub status: HeldGrant,
    /// What another node may have of it: as it came, but for what is this node's alone.
    pub onward: Option<Box<Grant<Secret>>>,
}

/// The node's own names of a grant and its line.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub csa: CsaId,
    pub line: CsaId,
}

impl Holdings {
    /// The names that a grant gets here: those it has, if it renews one. Errors if its gateway has too many grants with
    /// one of its SPIs.
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

    /// Whether a gateway's grant of this name is held.
    pub fn has(&self, gateway: &str, csa: CsaId) -> bool {
        self.of(gateway).any(|(_, held)| held.status.csa == csa)
    }

    /// Takes a grant, in place of the one that has its name. Gives that.
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

    /// The grant of this name that came over an IKE SA.
    pub fn granted(&self, sa: IkeSaId, csa: CsaId) -> Option<CsaId> {
        self.that(|held| held.sa == sa && held.status.csa == csa)
            .next()
    }

    /// Those that came over an IKE SA.
    pub fn over(&self, sa: IkeSaId) -> Vec<CsaId> {
        self.that(|held| held.sa == sa).collect()
    }

    /// Those whose time has come.
    pub fn expired(&self, now: Instant) -> Vec<CsaId> {
        self.that(|held| held.status.until <= now).collect()
    }

    /// Whether a line has a grant.
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
