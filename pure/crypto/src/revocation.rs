//! Certificate revocation lists (RFC 5280 section 5).
//!
//! This module parses lists. [`crate::TrustStore`] checks a list's signature when it verifies a
//! chain, because only then the CA's key is known. A list with a wrong signature makes it refuse
//! every chain that the list covers.

use crate::UnixTime;
use crate::certificate::{self, Certificate};
use rustls_pki_types::CertificateRevocationListDer;
use rustls_pki_types::pem::PemObject;
use std::sync::Arc;
use thiserror::Error;
use webpki::{CertRevocationList, OwnedCertRevocationList};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// The content of a revocation list.
#[derive(Clone, Debug)]
pub struct RevocationList {
    /// The list in DER.
    pub der: Vec<u8>,
    /// The CA that issued the list, as text for people.
    pub issuer: String,
    /// Time of issue.
    pub this_update: UnixTime,
    /// Latest time of the next list, at which this one expires.
    pub next_update: UnixTime,
    /// The list's number among those of its CA, if it fits 64 bits.
    pub number: Option<u64>,
    /// The list in webpki's form, for lookups.
    list: Arc<CertRevocationList<'static>>,
}

/// A revoked certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// Serial number, unique within the issuing CA, as encoded in DER.
    pub serial: Vec<u8>,
    /// Time of the revocation.
    pub since: UnixTime,
}

/// The octets are no revocation list, or one of an unsupported form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a version 2 revocation list with a nextUpdate time and for all reasons (RFC 5280)")]
pub struct NoRevocationList;

impl RevocationList {
    /// Parses a list in DER; trailing octets are an error.
    pub fn from_der(der: &[u8]) -> Result<Self, NoRevocationList> {
        let list = OwnedCertRevocationList::from_der(der).map_err(|_| NoRevocationList)?;
        let parsed = parse(der).ok_or(NoRevocationList)?;
        let next_update = parsed.next_update().ok_or(NoRevocationList)?;
        let number = parsed.crl_number();
        Ok(Self {
            der: der.to_vec(),
            issuer: certificate::text(parsed.issuer()),
            this_update: UnixTime::from_timestamp(parsed.last_update().timestamp()),
            next_update: UnixTime::from_timestamp(next_update.timestamp()),
            number: number.and_then(|number| u64::try_from(number).ok()),
            list: Arc::new(list.into()),
        })
    }

    /// Parses all lists of a PEM file in their order; other sections are skipped.
    pub fn all_from_pem(text: &[u8]) -> Result<Vec<Self>, NoRevocationList> {
        let sections = CertificateRevocationListDer::pem_slice_iter(text);
        let read = |section: Result<CertificateRevocationListDer<'_>, _>| {
            section.map_or(Err(NoRevocationList), |der| Self::from_der(&der))
        };
        let lists: Vec<_> = sections.map(read).collect::<Result<_, _>>()?;
        (!lists.is_empty()).then_some(lists).ok_or(NoRevocationList)
    }

    /// Returns all revoked certificates of the list.
    pub fn revoked(&self) -> Vec<Revoked> {
        let parsed = parse(&self.der);
        let all = parsed
            .iter()
            .flat_map(|list| list.iter_revoked_certificates());
        all.map(|one| Revoked {
            serial: one.raw_serial().to_vec(),
            since: UnixTime::from_timestamp(one.revocation_date.timestamp()),
        })
        .collect()
    }

    /// Returns the time since which a certificate is revoked, or `None` if the list does not revoke
    /// it.
    pub fn revokes(&self, certificate: &Certificate) -> Option<UnixTime> {
        let found = self.list.find_serial(&certificate.serial).ok()??;
        (self.issuer == certificate.issuer).then_some(UnixTime(found.revocation_date.as_secs()))
    }

    /// Returns the list in webpki's form.
    pub(crate) fn list(&self) -> &CertRevocationList<'static> {
        &self.list
    }
}

fn parse(der: &[u8]) -> Option<CertificateRevocationList<'_>> {
    let (rest, list) = CertificateRevocationList::from_der(der).ok()?;
    rest.is_empty().then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn file(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ike/src/tests/revocation");
        std::fs::read(folder.join(name)).unwrap()
    }

    fn list(name: &str) -> RevocationList {
        let lists = RevocationList::all_from_pem(&file(name)).unwrap();
        lists.into_iter().next().unwrap()
    }

    fn certificate(name: &str) -> Certificate {
        Certificate::all_from_pem(&file(name)).unwrap().remove(0)
    }

    #[test]
    fn a_list_of_openssl_is_read() {
        let list = list("mobile.crl");
        assert_eq!(list.issuer, "CN=List CA");
        assert_eq!(list.this_update.to_string(), "2030-03-01 00:00 UTC");
        assert_eq!(list.next_update.to_string(), "2031-01-01 00:00 UTC");
        assert_eq!(list.number, Some(1));
        let [revoked] = &list.revoked()[..] else {
            panic!("one, not {:?}", list.revoked());
        };
        assert_eq!(revoked.serial, certificate("mobile.pem").serial);
        assert_eq!(revoked.since.to_string(), "2030-01-15 12:00 UTC");
        assert!(self::list("nothing.crl").revoked().is_empty());
    }

    #[test]
    fn a_list_takes_back_what_it_names_and_nothing_else() {
        let list = list("mobile.crl");
        let since = list.revokes(&certificate("mobile.pem"));
        assert_eq!(since, Some(list.revoked()[0].since));
        for other in ["gateway.pem", "middle.pem", "mobile-middle.pem", "ca.pem"] {
            assert_eq!(list.revokes(&certificate(other)), None, "{other}");
        }
    }

    /// Another CA may use the same serial number.
    #[test]
    fn a_list_says_nothing_of_what_another_ca_has_issued() {
        let elsewhere = Certificate {
            issuer: "CN=List Middle".to_owned(),
            ..certificate("mobile.pem")
        };
        assert_eq!(list("mobile.crl").revokes(&elsewhere), None);
    }

    #[test]
    fn what_is_no_list_or_an_old_one_is_not_read() {
        let no_list = |octets: &[u8]| RevocationList::all_from_pem(octets).is_err();
        assert!(no_list(&file("first-version.crl")));
        assert!(no_list(&file("ca.pem")));
        let der = list("mobile.crl").der;
        for len in 0..der.len() {
            assert!(RevocationList::from_der(&der[..len]).is_err());
        }
        assert!(RevocationList::from_der(&[&der[..], &[0]].concat()).is_err());
    }
}
