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
use std::collections::{BTreeMap, BTreeSet};

/// Limit of grants of one gateway that share an SPI. Receivers behind one NAT choose their SPIs
/// independently, and each grant costs one trial (DESIGN section 7).
const CANDIDATES: usize = 4;

/// All held grants, by the node's own identifiers.
#[derive(Default)]
pub(crate) struct Holdings {
    held: BTreeMap<CsaId, Held>,
    /// The grants by their properties: packets and messages visit no others.
    index: BTreeSet<(Entry, CsaId)>,
    last: u64,
}

/// Property of a grant that is looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    /// The IKE SA on which it arrived, and its identifier there.
    Over(IkeSaId, CsaId),
    /// Its gateway, and its identifier there.
    Granted(String, CsaId),
    /// Its gateway, and the identifier of its line there.
    GrantedLine(String, CsaId),
    /// Its gateway, and one of its SPIs.
    Spi(String, Spi),
    /// The node's own identifier of its line.
    Line(CsaId),
    /// Time of its expiry.
    Until(Instant),
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
        let gateway = || gateway.to_owned();
        let renewed = self.first(Entry::Granted(gateway(), grant.csa));
        for spi in [grant.from_gateway.spi, grant.to_gateway.spi] {
            let with_spi = self.with(Entry::Spi(gateway(), spi));
            if with_spi.filter(|csa| Some(*csa) != renewed).count() >= CANDIDATES {
                return Err(Unusable::Crowded);
            }
        }
        let of_line = self.first(Entry::GrantedLine(gateway(), grant.line));
        let line = of_line.and_then(|csa| self.get(csa)).map(|held| held.line);
        Ok(Names {
            csa: renewed.unwrap_or_else(|| self.next()),
            line: line.unwrap_or_else(|| self.next()),
        })
    }

    /// Returns true if the grant of a gateway with this identifier is held.
    pub fn has(&self, gateway: &str, csa: CsaId) -> bool {
        self.first(Entry::Granted(gateway.to_owned(), csa))
            .is_some()
    }

    /// Adds a grant. Returns the one with the same identifier that it replaces.
    pub fn insert(&mut self, csa: CsaId, held: Held) -> Option<Held> {
        let replaced = self.remove(csa);
        self.index.extend(held.entries().map(|entry| (entry, csa)));
        self.held.insert(csa, held);
        replaced
    }

    pub fn get(&self, csa: CsaId) -> Option<&Held> {
        self.held.get(&csa)
    }

    pub fn remove(&mut self, csa: CsaId) -> Option<Held> {
        let held = self.held.remove(&csa)?;
        for entry in held.entries() {
            self.index.remove(&(entry, csa));
        }
        Some(held)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// Returns the grant with the gateway's identifier that arrived on an IKE SA.
    pub fn granted(&self, sa: IkeSaId, csa: CsaId) -> Option<CsaId> {
        self.first(Entry::Over(sa, csa))
    }

    /// Returns the grants that arrived on an IKE SA.
    pub fn over(&self, sa: IkeSaId) -> Vec<CsaId> {
        let all = self.range(Entry::Over(sa, CsaId(0)));
        let over = all.take_while(|(entry, _)| matches!(entry, Entry::Over(on, _) if *on == sa));
        over.map(|(_, csa)| *csa).collect()
    }

    /// Returns the grants that have expired.
    pub fn expired(&self, now: Instant) -> Vec<CsaId> {
        let expired = self.expiries().take_while(|(until, _)| *until <= now);
        expired.map(|(_, csa)| csa).collect()
    }

    /// Returns the time at which the next grant expires.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.expiries().next().map(|(until, _)| until)
    }

    /// Returns true if a line has a grant.
    pub fn has_line(&self, line: CsaId) -> bool {
        self.first(Entry::Line(line)).is_some()
    }

    fn expiries(&self) -> impl Iterator<Item = (Instant, CsaId)> {
        let all = self.range(Entry::Until(Instant::ZERO));
        all.filter_map(|(entry, csa)| match entry {
            Entry::Until(until) => Some((*until, *csa)),
            _ => None,
        })
    }

    fn range(&self, entry: Entry) -> impl Iterator<Item = &(Entry, CsaId)> {
        self.index.range((entry, CsaId(0))..)
    }

    fn with(&self, entry: Entry) -> impl Iterator<Item = CsaId> {
        let all = self.range(entry.clone());
        let with = all.take_while(move |(other, _)| *other == entry);
        with.map(|(_, csa)| *csa)
    }

    fn first(&self, entry: Entry) -> Option<CsaId> {
        self.with(entry).next()
    }

    const fn next(&mut self) -> CsaId {
        self.last += 1;
        CsaId(self.last)
    }
}

impl Held {
    fn entries(&self) -> impl Iterator<Item = Entry> {
        let gateway = || self.status.gateway.clone();
        let entries = [
            Entry::Over(self.sa, self.status.csa),
            Entry::Granted(gateway(), self.status.csa),
            Entry::GrantedLine(gateway(), self.granted_line),
            Entry::Spi(gateway(), self.status.from_gateway),
            Entry::Spi(gateway(), self.status.to_gateway),
            Entry::Line(self.line),
            Entry::Until(self.status.until),
        ];
        entries.into_iter()
    }
}
