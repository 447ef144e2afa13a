//! The configuration of an engine, with its peers indexed by identifier and by identity.
//!
//! A gateway may have ten thousand peers, and a handshake looks up one of them a dozen times. No
//! processing of a datagram iterates over all peers.

use crate::allowed_suites::AllowedIkeSuites;
use crate::certificate_terms;
use crate::config::{Config, Peer, PeerRole};
use crate::placed::Hosts;
use crate::signature::Signing;
use crate::users::Users;
use crypto::TrustStore;
use model::{Identity, PeerId, Wildcard};
use rustc_hash::FxHasher;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::ops::Deref;

/// A configuration and its indices.
pub(crate) struct PeerTable {
    config: Config,
    /// Positions in the list of peers by identifier. The first of two with the same one counts.
    by_id: Index,
    /// Positions in the list of peers by identity.
    by_identity: Index,
    /// Positions of the licensed nodes, to which we distribute keys.
    licensed: Vec<usize>,
    /// The peers that stand for many identities, the closest pattern first.
    tables: Vec<PeerId>,
    /// The peers that proved one of these identities.
    pub(crate) users: Users,
    /// The algorithms that any peer allows: the identity of an initiator is known only in IKE_AUTH.
    pub(crate) menu: AllowedIkeSuites,
    /// The kinds of signatures by which any peer authenticates: with a certificate, or with a raw
    /// public key.
    pub(crate) signing: Signing,
    /// True if any peer has a PPK.
    pub(crate) ppks: bool,
    /// Digest of the certification authorities that we trust for peers without their own.
    pub(crate) authorities: [u8; 32],
    /// Every certification authority that we trust for any peer.
    pub(crate) trust_of_all: TrustStore,
    /// True if a peer has certification authorities of its own.
    pub(crate) has_own_authorities: bool,
    /// The addresses of all peers that have a fixed one.
    pub(crate) addresses_of_peers: BTreeSet<IpAddr>,
    /// The single addresses that peers have in the configuration, if any is in transport mode.
    pub(crate) hosts: Hosts,
    /// Number of configurations that this engine had before.
    pub(crate) version: u64,
}

impl PeerTable {
    pub(crate) fn new(config: Config) -> Self {
        let peers = &config.peers;
        let places = 0..peers.len();
        let by_id = Index::new(peers.iter().map(|peer| peer.id.0));
        let by_identity = Index::new(peers.iter().map(|peer| of_identity(&peer.identity)));
        let licensed = places.filter(|place| matches!(peers[*place].role, PeerRole::Licensed));
        let licensed = licensed.collect();
        let tables = tables(peers).iter().map(|table| table.id).collect();
        let peers = config.peers.iter();
        let trust_of_all = trust_of_all(&config);
        let common = config.trust.authorities();
        Self {
            authorities: certificate_terms::authorities(common),
            has_own_authorities: peers
                .clone()
                .any(|peer| !peer.certificate.authorities.is_empty()),
            trust_of_all,
            by_id,
            by_identity,
            licensed,
            tables,
            users: Users::default(),
            menu: AllowedIkeSuites::of_all(&config.peers),
            signing: Signing::of(&config.peers),
            addresses_of_peers: peers.clone().filter_map(|peer| peer.address).collect(),
            hosts: Hosts::new(&config.peers),
            ppks: peers.clone().any(|peer| peer.ppk.is_some()),
            version: 0,
            config,
        }
    }

    /// Returns the peer with an identifier.
    pub(crate) fn peer(&self, id: PeerId) -> Option<&Peer> {
        if id.is_user() {
            return self.users.get(id);
        }
        self.config.peers.get(self.by_id.get(id.0).next()?)
    }

    /// Returns the peers with an identity, in the order of the configuration: one for each address
    /// that the identity may connect from. A user is the only one with its identity.
    pub(crate) fn named(&self, identity: &Identity) -> impl Iterator<Item = &Peer> {
        let peers = self.by_identity.get(of_identity(identity));
        let peers = peers.filter_map(|place| self.config.peers.get(place));
        let peers = peers.filter(move |peer| peer.identity == *identity && peer.users.is_none());
        peers.chain(self.users.named(identity))
    }

    /// Returns the peers that stand for an identity among many: those with the closest pattern.
    /// Several differ in the certificates that they accept. Nobody else has our identity.
    pub(crate) fn tables_for(&self, identity: &Identity) -> Vec<&Peer> {
        if *identity == self.config.identity {
            return Vec::new();
        }
        let tables: Vec<_> = self.tables.iter().filter_map(|id| self.peer(*id)).collect();
        tables_in(&tables, identity)
    }

    /// Returns the peer that an initiator with this identity would be, or be a user of.
    pub(crate) fn claimed(&self, identity: &Identity) -> Option<&Peer> {
        let named = self.named(identity).next();
        named.or_else(|| self.tables_for(identity).first().copied())
    }

    /// Goes on counting the packets without encryption of each peer whose terms for them stay.
    pub(crate) fn keep_counting(&mut self, before: &Self) {
        let peers = self.config.peers.iter_mut();
        for peer in peers.filter(|peer| peer.unencrypted.is_some()) {
            let old = before.peer(peer.id).map(|old| &old.unencrypted);
            if let Some(old) = old.filter(|old| **old == peer.unencrypted) {
                peer.unencrypted.clone_from(old);
            }
        }
    }

    /// Returns the licensed nodes.
    pub(crate) fn licensed(&self) -> impl Iterator<Item = &Peer> {
        let places = self.licensed.iter();
        places.filter_map(|place| self.config.peers.get(*place))
    }

    /// Returns true if we distribute keys.
    pub(crate) const fn grants(&self) -> bool {
        !self.licensed.is_empty()
    }
}

/// Positions by a number, sorted: an identifier or a hash. A search visits neighbouring memory and
/// no peer: with 100,000 peers, each visit to another one waits for memory. The hash needs no
/// secret, because only the configuration has entries.
struct Index(Box<[(u32, u32)]>);

impl Index {
    /// Creates the index of items with these hashes.
    fn new(hashes: impl Iterator<Item = u32>) -> Self {
        let mut places: Vec<_> = hashes.zip(0..).collect();
        places.sort_unstable();
        Self(places.into())
    }

    /// Returns the positions of the items with a hash, in order.
    fn get(&self, hash: u32) -> impl Iterator<Item = usize> {
        let first = self.0.partition_point(|(other, _)| *other < hash);
        let rest = self.0[first..].iter();
        let found = rest.take_while(move |(other, _)| *other == hash);
        found.map(|(_, place)| *place as usize)
    }
}

/// Returns the peers that stand for many identities, the closest pattern first.
pub(crate) fn tables(peers: &[Peer]) -> Vec<&Peer> {
    let mut tables: Vec<_> = peers.iter().filter(|peer| peer.users.is_some()).collect();
    tables.sort_by_key(|table| Reverse(rank(table)));
    tables
}

/// Returns those of these peers that stand for an identity with the closest pattern.
///
/// A secret that many share proves none of their identities, so only certificates do.
pub(crate) fn tables_in<'p>(tables: &[&'p Peer], identity: &Identity) -> Vec<&'p Peer> {
    let stands_for = |table: &Peer| {
        let users = table.users.as_ref();
        users.is_some_and(|users| {
            let is_one = matches!(users.identities, Wildcard::One(_));
            let is_proved = is_one || table.is_certified();
            is_proved && users.identities.matches(identity)
        })
    };
    let standing: Vec<_> = tables.iter().copied().filter(|t| stands_for(t)).collect();
    let closest = standing.first().map(|table| rank(table));
    let is_closest = |table: &&Peer| Some(rank(table)) == closest;
    standing.into_iter().take_while(is_closest).collect()
}

/// Returns the rank of a table's pattern: the highest counts.
fn rank(table: &Peer) -> Option<usize> {
    let users = table.users.as_ref();
    users.map(|users| users.identities.rank())
}

/// Returns the certification authorities that we trust for any peer, each once.
fn trust_of_all(config: &Config) -> TrustStore {
    let peers = config.peers.iter();
    let own = peers.flat_map(|peer| &peer.certificate.authorities);
    let mut seen = BTreeSet::new();
    let all = config.trust.authorities().iter().chain(own);
    let all = all.filter(|authority| seen.insert(&authority.der));
    config.trust.with_authorities(all.cloned().collect())
}

/// Equal identities have equal hashes, in whatever case they are written.
fn of_identity(identity: &Identity) -> u32 {
    let mut hasher = FxHasher::default();
    match identity {
        Identity::Address(address) => address.hash(&mut hasher),
        Identity::Fqdn(text) | Identity::Email(text) => {
            let octets = text.bytes().map(|octet| octet.to_ascii_lowercase());
            octets.for_each(|octet| octet.hash(&mut hasher));
        }
        Identity::Opaque { data, .. } => data.hash(&mut hasher),
    }
    hasher.finish() as u32
}

impl Deref for PeerTable {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

/// Tests change the configuration without informing the engine. Identifiers and identities must
/// stay.
#[cfg(test)]
impl std::ops::DerefMut for PeerTable {
    fn deref_mut(&mut self) -> &mut Config {
        &mut self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{peer, peer_id};

    fn directory(names: &[&str], change: impl FnOnce(&mut [Peer])) -> PeerTable {
        let peers = names.iter().map(|name| peer(name, PeerRole::Gateway));
        let mut peers: Vec<_> = peers.collect();
        change(&mut peers);
        let us = "us.example.net".parse().expect("a name is an identity");
        PeerTable::new(Config::new(us, peers))
    }

    #[test]
    fn a_peer_is_found_by_its_identifier_and_by_its_identity_in_the_files_order() {
        let directory = directory(&["a", "b", "c"], |peers| {
            peers[2].identity = peers[0].identity.clone();
        });
        let found = |name| directory.peer(peer_id(name)).map(|peer| peer.id);
        assert_eq!([found("b"), found("d")], [Some(peer_id("b")), None]);
        let who = "a.example.net".parse().unwrap();
        let same: Vec<_> = directory.named(&who).map(|peer| peer.id).collect();
        assert_eq!(same, ["a", "c"].map(peer_id));
        let nobody = "c.example.net".parse().unwrap();
        assert_eq!(directory.named(&nobody).count(), 0);
        let other_case = "A.Example.NET".parse().unwrap();
        assert_eq!(directory.named(&other_case).count(), 2);
    }

    #[test]
    fn items_with_one_hash_are_found_in_order() {
        let index = Index::new([7, 3, 7, u32::MAX, 0].into_iter());
        let found = |hash| index.get(hash).collect::<Vec<_>>();
        assert_eq!(
            [found(7), found(3), found(4)],
            [vec![0, 2], vec![1], vec![]]
        );
        assert_eq!([found(0), found(u32::MAX)], [[4], [3]]);
    }

    #[test]
    fn one_peer_is_enough_for_what_is_said_of_all() {
        let some = directory(&["a", "b"], |peers| {
            peers[0].psk = None;
            peers[1].role = PeerRole::Licensed;
            peers[1].suites = vec![model::Suite::ChaCha20Poly1305];
        });
        assert!(some.signing.certificates && some.grants());
        assert!(some.menu.suites.contains(&model::Suite::ChaCha20Poly1305));
        let none = directory(&["a", "b"], |_| {});
        assert!(!none.signing.certificates && !none.grants());
    }
}
