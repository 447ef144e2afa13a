//! Terms that a certificate must meet to prove the identity of a peer, besides the name.
//!
//! A chain is verified up to any CA that some peer allows, before the peer is looked up: otherwise
//! the answer would tell an unknown initiator which identities are configured. The terms of the
//! peer follow the lookup. The claimed identity has selected the peer by then, and a certificate
//! that does not meet the terms is refused. It is never tried with another peer.
//!
//! Only tables with one and the same pattern are told apart by the certificate. Their terms exclude
//! each other, and the certificate must meet those of exactly one.

use crate::bad_proof::BadProof;
use crypto::{Certificate, TrustStore, UnixTime, Untrusted, sha256};
use std::borrow::Cow;

/// The certificates that may prove the identity of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateTerms {
    /// The CAs that they may chain to; empty for those of [`crate::Config::trust`].
    pub authorities: Vec<Certificate>,
    /// Organisational unit that their subject must have.
    pub unit: Option<String>,
}

impl CertificateTerms {
    /// Returns the store that trusts the CAs of these terms. `common` is that of all peers without
    /// CAs of their own.
    pub(crate) fn trust<'t>(&self, common: &'t TrustStore) -> Cow<'t, TrustStore> {
        match self.authorities.is_empty() {
            true => Cow::Borrowed(common),
            false => Cow::Owned(common.with_authorities(self.authorities.clone())),
        }
    }

    /// Returns an error if a chain that is trusted for some peer does not meet these terms.
    pub(crate) fn check(
        &self,
        chain: &[Vec<u8>],
        common: &TrustStore,
        today: UnixTime,
    ) -> Result<(), BadProof> {
        let trust = self.trust(common);
        let owner = trust.verify(chain, today).map_err(|why| match why {
            Untrusted::UnknownAuthority(issuer) | Untrusted::Forged(issuer) => {
                let expected = names(trust.authorities());
                BadProof::OtherAuthority { issuer, expected }
            }
            why => why.into(),
        })?;
        match &self.unit {
            Some(unit) if !owner.units.contains(unit) => Err(BadProof::OtherUnit {
                units: owner.units,
                expected: vec![unit.clone()],
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns a digest of what these terms trust. `common` is that of the CAs of all other peers.
    pub(crate) fn digest(&self, common: [u8; 32]) -> [u8; 32] {
        if *self == Self::default() {
            return common;
        }
        let own = match self.authorities.is_empty() {
            true => common,
            false => authorities(&self.authorities),
        };
        let unit = self.unit.as_deref().unwrap_or_default();
        sha256(&[&own, unit.as_bytes()])
    }

    /// Returns true if a chain claims a CA of these terms. No signature is verified.
    fn names_issuer(&self, chain: &[Certificate]) -> bool {
        let mut own = self.authorities.iter();
        let is_named = |ca: &Certificate| chain.iter().any(|one| one.names_issuer(ca));
        self.authorities.is_empty() || own.any(is_named)
    }

    /// Returns true if a certificate claims the unit of these terms.
    fn names_unit(&self, owner: &Certificate) -> bool {
        let unit = self.unit.as_ref();
        unit.is_none_or(|unit| owner.units.contains(unit))
    }
}

/// Returns the index of the terms that a chain claims to meet, of several that exclude each other.
/// The claim is not proved. Without certificates, it is the first.
pub(crate) fn select(all: &[&CertificateTerms], chain: &[Vec<u8>]) -> Result<usize, BadProof> {
    let read = chain.iter().map(|der| Certificate::from_der(der));
    let read: Vec<_> = read.filter_map(Result::ok).collect();
    let ([_, _, ..], Some(owner)) = (all, read.first()) else {
        return Ok(0);
    };
    let places = 0..all.len();
    let issued: Vec<_> = places.filter(|at| all[*at].names_issuer(&read)).collect();
    if issued.is_empty() {
        let expected = all.iter().flat_map(|terms| names(&terms.authorities));
        return Err(BadProof::OtherAuthority {
            issuer: owner.issuer.clone(),
            expected: expected.collect(),
        });
    }
    let mut met = issued.iter().filter(|at| all[**at].names_unit(owner));
    match (met.next(), met.next()) {
        (Some(at), None) => Ok(*at),
        (Some(_), Some(_)) => Err(BadProof::SeveralTables {
            units: owner.units.clone(),
        }),
        (None, _) => Err(BadProof::OtherUnit {
            units: owner.units.clone(),
            expected: issued
                .iter()
                .filter_map(|at| all[*at].unit.clone())
                .collect(),
        }),
    }
}

/// Returns the digest of certification authorities.
pub(crate) fn authorities(all: &[Certificate]) -> [u8; 32] {
    let all: Vec<_> = all.iter().map(|ca| ca.der.as_slice()).collect();
    sha256(&all)
}

fn names(authorities: &[Certificate]) -> Vec<String> {
    let names = authorities.iter().map(|ca| format!("`{}`", ca.subject));
    names.collect()
}
