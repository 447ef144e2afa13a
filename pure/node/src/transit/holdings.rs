//! The grants that a licensed node holds, with those of each gateway kept separate.
//!
//! A gateway chooses the identifiers of its composite SAs and lines, and states the SPIs of its
//! grants. Another gateway may use the same values, by chance or on purpose. A grant is therefore
//! identified by its gateway and its identifier. The data plane and the PEP know a grant by an
//! identifier that the node itself chose, so they never mix grants of two gateways.

use crate::status::HeldGrant;
use crypto::Secret;
use esp::Unusable;
use model::{CsaId, Grant, IkeSaId, Instant, PeerId, Spi};
use pep::{Line, Owner};
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
    /// Packets opened by grants that are gone, by gateway.
    opened: BTreeMap<PeerId, u64>,
}

/// Property of a grant that is looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    /// The IKE SA on which it arrived, and its identifier there.
    Over(IkeSaId, CsaId),
    /// Its gateway, and its identifier there.
    Granted(PeerId, CsaId),
    /// Its gateway, and the identifier of its line there.
    GrantedLine(PeerId, CsaId),
    /// Its gateway, and one of its SPIs.
    Spi(PeerId, Spi),
    /// The node's own identifier of its line.
    Line(CsaId),
    /// Time of its expiry.
    Until(Instant),
}

/// A grant that is held.
pub(crate) struct Held {
    /// IKE SA on which the grant arrived.
    pub sa: IkeSaId,
    /// The node's own identifiers of the line and of its gateway.
    pub line: Line,
    /// The gateway's identifier of the line.
    pub granted_line: CsaId,
    pub status: HeldGrant,
    /// Packets that it opened.
    pub opened: u64,
    /// Keys that other nodes may fetch: the grant as received, without the keys to write and
    /// inject.
    pub onward: Option<Box<Grant<Secret>>>,
}

/// The node's own identifiers of a grant and its line.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub csa: CsaId,
    pub line: Line,
}

impl Holdings {
    /// Returns the node's own identifiers for a grant: the existing ones if it renews a grant.
    /// Errors if the gateway has too many grants with one of the SPIs.
    pub fn name(&mut self, gateway: PeerId, grant: &Grant<Secret>) -> Result<Names, Unusable> {
        let renewed = self.first(Entry::Granted(gateway, grant.csa));
        for spi in [grant.from_gateway.spi, grant.to_gateway.spi] {
            let with_spi = self.with(Entry::Spi(gateway, spi));
            if with_spi.filter(|csa| Some(*csa) != renewed).count() >= CANDIDATES {
                return Err(Unusable::Crowded);
            }
        }
        let of_line = self.first(Entry::GrantedLine(gateway, grant.line));
        let line = of_line.and_then(|csa| self.get(csa)).map(|held| held.line);
        let owner = self.granted_by(gateway).map(|held| held.line.owner);
        let csa = renewed.unwrap_or_else(|| CsaId(self.next()));
        let line = line.unwrap_or_else(|| Line {
            owner: owner.unwrap_or_else(|| Owner(self.next())),
            csa: CsaId(self.next()),
        });
        Ok(Names { csa, line })
    }

    /// Returns a grant of a gateway, if any is held.
    fn granted_by(&self, gateway: PeerId) -> Option<&Held> {
        let mut from = self.range(Entry::Granted(gateway, CsaId(0)));
        let (entry, csa) = from.next()?;
        let is_its = matches!(entry, Entry::Granted(of, _) if *of == gateway);
        self.get(*csa).filter(|_| is_its)
    }

    /// Returns true if the grant of a gateway with this identifier is held.
    pub fn has(&self, gateway: PeerId, csa: CsaId) -> bool {
        self.first(Entry::Granted(gateway, csa)).is_some()
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

    /// Counts a packet that a grant opened. Returns its line.
    pub fn count_opened(&mut self, csa: CsaId) -> Option<Line> {
        let held = self.held.get_mut(&csa)?;
        held.opened += 1;
        Some(held.line)
    }

    /// Returns the packets opened for each gateway.
    pub fn opened(&self) -> BTreeMap<PeerId, u64> {
        let mut opened = self.opened.clone();
        for held in self.held.values() {
            *opened.entry(held.status.gateway).or_default() += held.opened;
        }
        opened
    }

    pub fn remove(&mut self, csa: CsaId) -> Option<Held> {
        let held = self.held.remove(&csa)?;
        *self.opened.entry(held.status.gateway).or_default() += held.opened;
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
    pub fn has_line(&self, line: Line) -> bool {
        self.first(Entry::Line(line.csa)).is_some()
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

    const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl Held {
    fn entries(&self) -> impl Iterator<Item = Entry> {
        let gateway = self.status.gateway;
        let entries = [
            Entry::Over(self.sa, self.status.csa),
            Entry::Granted(gateway, self.status.csa),
            Entry::GrantedLine(gateway, self.granted_line),
            Entry::Spi(gateway, self.status.from_gateway),
            Entry::Spi(gateway, self.status.to_gateway),
            Entry::Line(self.line.csa),
            Entry::Until(self.status.until),
        ];
        entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{GrantHalf, MapKind, ZoneId};
    use std::time::Duration;

    fn grant(csa: u64) -> Grant<Secret> {
        let half = |spi: u64| GrantHalf {
            spi: Spi(spi as u32),
            zones: Vec::new(),
            overlay: None,
            injection: None,
        };
        Grant {
            csa: CsaId(csa),
            line: CsaId(csa),
            grant: 1,
            payload_zone: ZoneId(2),
            suites: Vec::new(),
            map: MapKind::Changeable,
            window: 4096,
            lifetime: Duration::from_secs(60),
            onward: None,
            from_gateway: half(0x1000 + csa),
            to_gateway: half(0x2000 + csa),
        }
    }

    /// Holds a grant of a gateway, and returns its names.
    fn hold(holdings: &mut Holdings, gateway: PeerId, csa: u64) -> Names {
        let grant = grant(csa);
        let names = holdings.name(gateway, &grant).unwrap();
        let status = HeldGrant {
            csa: grant.csa,
            gateway,
            identity: "gateway".parse().unwrap(),
            from_gateway: grant.from_gateway.spi,
            to_gateway: grant.to_gateway.spi,
            zones: Vec::new(),
            payload_zone: grant.payload_zone,
            grant: grant.grant,
            writes: false,
            injects: false,
            until: Instant::ZERO + grant.lifetime,
        };
        let held = Held {
            sa: IkeSaId(1),
            line: names.line,
            granted_line: grant.line,
            status,
            opened: 0,
            onward: None,
        };
        holdings.insert(names.csa, held);
        names
    }

    #[test]
    fn packets_are_counted_for_their_gateway_beyond_the_end_of_a_grant() {
        let mut holdings = Holdings::default();
        let [first, second] = [1, 2].map(|csa| hold(&mut holdings, PeerId(1), csa).csa);
        let other = hold(&mut holdings, PeerId(0), 1).csa;
        for csa in [first, first, second, other] {
            assert!(holdings.count_opened(csa).is_some());
        }
        holdings.remove(first);
        assert_eq!(holdings.count_opened(first), None);
        let opened = [(PeerId(0), 1), (PeerId(1), 3)];
        assert_eq!(holdings.opened(), BTreeMap::from(opened));
    }

    /// The PEP shares its memory by owner.
    // Weakness: 174
    #[test]
    fn the_lines_of_a_gateway_have_one_owner_and_those_of_two_gateways_have_two() {
        let mut holdings = Holdings::default();
        let [first, second] = [1, 2].map(|csa| hold(&mut holdings, PeerId(1), csa));
        let other = hold(&mut holdings, PeerId(0), 1);
        let another = hold(&mut holdings, PeerId(2), 1);
        let owners = [first, second, other, another].map(|names| names.line.owner);
        assert_eq!(owners[0], owners[1]);
        let different: BTreeSet<_> = owners.into_iter().collect();
        assert_eq!(different.len(), 3);
        let renewed = hold(&mut holdings, PeerId(1), 1);
        assert_eq!((renewed.csa, renewed.line), (first.csa, first.line));
    }
}
