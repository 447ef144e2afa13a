//! Validation of certificate chains up to a CA that the operator configured (RFC 5280 section 6,
//! with the rules of RFC 4945 for IKE).
//!
//! webpki does the work. This module adds IKE's rules for key usage, the CA's own validity, and
//! errors that tell an operator what to do. Revocations are known from the lists that the operator
//! configures; nothing is ever fetched.

use crate::certificate::Certificate;
use crate::lines;
use crate::path::{self, Path};
use crate::untrusted::{Unsupported, Untrusted};
use crate::verifier;
use crate::{RevocationList, UnixTime};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use webpki::{
    CertRevocationList, EndEntityCert, Error, ExpirationPolicy, ExtendedKeyUsageValidator,
    KeyPurposeId, KeyPurposeIdIter, RevocationOptions, RevocationOptionsBuilder,
    UnknownStatusPolicy,
};
use x509_parser::asn1_rs::{Any, FromDer};

/// id-kp-ipsecIKE, 1.3.6.1.5.5.7.3.17 (RFC 4945 section 5.1.3.12).
const IPSEC_IKE: KeyPurposeId<'static> = KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 17]);

/// anyExtendedKeyUsage, 2.5.29.37.0.
const ANY: KeyPurposeId<'static> = KeyPurposeId::new(&[0x55, 0x1d, 37, 0]);

/// The trusted CAs and their revocations.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    authorities: Vec<Certificate>,
    /// Revocation lists, newest first: the first list of a CA decides.
    lists: Arc<[RevocationList]>,
    revocation: Revocation,
}

/// Policy for certificates without a valid revocation list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Revocation {
    /// Accept a certificate unless a list revokes it. The entries of an expired list still count.
    #[default]
    Relaxed,
    /// Require an unexpired list for the certificate and for each CA between it and the trusted CA.
    Strict,
}

impl TrustStore {
    /// Returns a store that trusts these CAs, without revocation lists.
    pub fn new(authorities: Vec<Certificate>) -> Self {
        Self {
            authorities,
            ..Self::default()
        }
    }

    /// Adds revocation lists and the policy for certificates that no list covers.
    #[must_use]
    pub fn with_revocation(self, mut lists: Vec<RevocationList>, revocation: Revocation) -> Self {
        lists.sort_by_key(|list| Reverse(list.this_update));
        Self {
            lists: lists.into(),
            revocation,
            ..self
        }
    }

    /// Returns a store that trusts these CAs instead, with the same revocation lists and policy.
    #[must_use]
    pub fn with_authorities(&self, authorities: Vec<Certificate>) -> Self {
        Self {
            authorities,
            ..self.clone()
        }
    }

    /// Returns true if the store trusts no CA.
    pub const fn is_empty(&self) -> bool {
        self.authorities.is_empty()
    }

    /// Returns the trusted CAs.
    pub fn authorities(&self) -> &[Certificate] {
        &self.authorities
    }

    /// Verifies a chain up to a trusted CA: the owner's certificate first, then intermediates in
    /// any order. Returns the owner's certificate.
    pub fn verify(&self, chain: &[Vec<u8>], at: UnixTime) -> Result<Certificate, Untrusted> {
        self.verify_by(chain, at, verifier::ALL)
    }

    fn verify_by(
        &self,
        chain: &[Vec<u8>],
        at: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<Certificate, Untrusted> {
        let first = chain.first().ok_or(Untrusted::Missing)?;
        let owner = Certificate::from_der(first).map_err(|_| Untrusted::Unreadable)?;
        self.follow(&owner, chain, at, algorithms)?;
        may_sign(&owner)?;
        Ok(owner)
    }

    /// Judges our own chain as a peer does that trusts its CA, who may be another than ours.
    pub fn judge_own(&self, chain: &[Vec<u8>], at: UnixTime) -> Result<(), Untrusted> {
        match self.verify(chain, at) {
            // A CA of the same name as ours may have issued it.
            Err(Untrusted::UnknownAuthority(_) | Untrusted::Forged(_)) => alone(chain, at),
            judged => judged.map(drop),
        }
    }

    /// Returns a revocation in a chain that was trusted at `believed`. Certificates that have
    /// expired since then do not matter. For most chains the cheap search by name and serial number
    /// suffices.
    pub fn revoked_since(&self, chain: &[Vec<u8>], believed: UnixTime) -> Option<Untrusted> {
        if self.lists.is_empty() {
            return None;
        }
        let read = chain.iter().map(|der| Certificate::from_der(der));
        let read: Vec<_> = read.filter_map(Result::ok).collect();
        read.iter()
            .find_map(|certificate| self.revoked(certificate))?;
        let why = self.verify(chain, believed).err()?;
        matches!(why, Untrusted::Revoked { .. }).then_some(why)
    }

    /// Returns the revocation of a certificate that any list names, without a check of the list's
    /// signature.
    fn revoked(&self, certificate: &Certificate) -> Option<Untrusted> {
        let mut lists = self.lists.iter();
        let since = lists.find_map(|list| list.revokes(certificate))?;
        let subject = certificate.subject.clone();
        Some(Untrusted::Revoked { subject, since })
    }

    /// Looks for a candidate path that is valid.
    fn follow(
        &self,
        owner: &Certificate,
        chain: &[Vec<u8>],
        at: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Untrusted> {
        let others = lines::others(owner, chain).ok_or(Untrusted::TooMany)?;
        let mut why = None;
        for line in lines::leading(owner, &others, &self.authorities) {
            match self.follow_line(owner, &line, at, algorithms) {
                Ok(()) => return Ok(()),
                Err(error) => drop(why.get_or_insert(error)),
            }
        }
        Err(why.unwrap_or_else(|| Untrusted::UnknownAuthority(owner.issuer.clone())))
    }

    /// Looks for a CA with the name of the last issuer up to which a candidate path is valid. A CA
    /// that was renewed with its key has several certificates.
    fn follow_line(
        &self,
        owner: &Certificate,
        line: &[&Certificate],
        at: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Untrusted> {
        // A gateway may have a CA for each of many tables, so the others are not even parsed.
        let top = line.last().copied().unwrap_or(owner);
        let named = self.authorities.iter().filter(|ca| top.names_issuer(ca));
        let mut why = None;
        for authority in named {
            let path = Path {
                owner,
                between: line,
                authority,
            };
            match self.follow_path(&path, at, algorithms) {
                Ok(()) => return Ok(()),
                // Of two CAs of one name, the one whose key fits is meant.
                Err(error) if matches!(why, None | Some(Untrusted::Forged(_))) => why = Some(error),
                Err(_) => {}
            }
        }
        Err(why.unwrap_or_else(|| Untrusted::UnknownAuthority(owner.issuer.clone())))
    }

    /// Verifies a path, which leaves webpki no choice.
    fn follow_path(
        &self,
        path: &Path<'_>,
        at: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Untrusted> {
        let why = |error| {
            let revoked = matches!(error, Error::CertRevoked).then(|| {
                let mut certificates = std::iter::once(&path.owner).chain(path.between);
                certificates.find_map(|certificate| self.revoked(certificate))
            });
            let refusal = || path.refusal(error);
            revoked.flatten().unwrap_or_else(refusal)
        };
        let authority = der(path.authority);
        let anchor = webpki::anchor_from_trusted_cert(&authority)
            .map_err(|error| Untrusted::Invalid(format!("a CA in `ca`: {error}")))?;
        let between: Vec<_> = path
            .between
            .iter()
            .map(|certificate| der(certificate))
            .collect();
        let first = der(path.owner);
        let certificate = EndEntityCert::try_from(&first).map_err(why)?;
        let lists: Vec<_> = self.lists.iter().map(RevocationList::list).collect();
        let revocation = self.options(&lists).map_err(why)?;
        let (anchors, time) = ([anchor], seconds(at));
        let verified = certificate.verify_for_usage(
            algorithms, &anchors, &between, time, ForIke, revocation, None,
        );
        verified.map_err(why)?;
        path.judge(at)
    }

    /// Returns webpki's options for revocation, or `None` without lists and with the relaxed
    /// policy.
    fn options<'l>(
        &self,
        lists: &'l [&'l CertRevocationList<'l>],
    ) -> Result<Option<RevocationOptions<'l>>, Error> {
        let (unknown, ended) = match self.revocation {
            Revocation::Relaxed => (UnknownStatusPolicy::Allow, ExpirationPolicy::Ignore),
            Revocation::Strict => (UnknownStatusPolicy::Deny, ExpirationPolicy::Enforce),
        };
        match (RevocationOptionsBuilder::new(lists), self.revocation) {
            (Ok(options), _) => {
                let options = options.with_status_policy(unknown);
                Ok(Some(options.with_expiration_policy(ended).build()))
            }
            (Err(_), Revocation::Relaxed) => Ok(None),
            (Err(_), Revocation::Strict) => Err(Error::UnknownRevocationStatus),
        }
    }
}

/// "If EKU present AND contains either id-kp-ipsecIKE or anyExtendedKeyUsage, continue" (RFC 4945
/// section 5.1.3.12). A certificate without an EKU is accepted as well.
struct ForIke;

impl ExtendedKeyUsageValidator for ForIke {
    fn validate(&self, mut purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        let Some(first) = purposes.next() else {
            return Ok(());
        };
        let fits = |purpose: KeyPurposeId<'_>| purpose == IPSEC_IKE || purpose == ANY;
        let mut found = fits(first?);
        for purpose in purposes {
            found |= fits(purpose?);
        }
        found.then_some(()).ok_or(Error::EmptyEkuExtension)
    }
}

const fn der(certificate: &Certificate) -> CertificateDer<'_> {
    CertificateDer::from_slice(certificate.der.as_slice())
}

const fn seconds(at: UnixTime) -> rustls_pki_types::UnixTime {
    rustls_pki_types::UnixTime::since_unix_epoch(Duration::from_secs(at.0))
}

/// Returns `Ok` if the key of an owner may sign an exchange.
const fn may_sign(owner: &Certificate) -> Result<(), Untrusted> {
    match (owner.may_sign, &owner.key) {
        (false, _) => Err(Untrusted::Usage),
        (true, None) => Err(Untrusted::UnknownKey),
        (true, Some(_)) => Ok(()),
    }
}

/// Judges the first certificate of a chain whose CA is not known. webpki judges it before it looks
/// for a CA, and the algorithm of its signature with any key: its own stands for the CA's.
fn alone(chain: &[Vec<u8>], at: UnixTime) -> Result<(), Untrusted> {
    let first = chain.first().ok_or(Untrusted::Missing)?;
    let owner = Certificate::from_der(first).map_err(|_| Untrusted::Unreadable)?;
    let refused = |error| path::refusal(error, &owner);
    let first = der(&owner);
    let mut anchor = webpki::anchor_from_trusted_cert(&first).map_err(refused)?;
    let (_, issuer) = Any::from_der(&owner.issuer_der).map_err(|_| Untrusted::Unreadable)?;
    anchor.subject = issuer.data.into();
    let certificate = EndEntityCert::try_from(&first).map_err(refused)?;
    let anchors = [anchor];
    let judged = certificate.verify_for_usage(
        verifier::ALL,
        &anchors,
        &[],
        seconds(at),
        ForIke,
        None,
        None,
    );
    match judged.map_err(refused) {
        Ok(_) | Err(Untrusted::Forged(_) | Untrusted::Unsupported(Unsupported::Key(_))) => {
            may_sign(&owner)
        }
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// 2030-03-17, when the openssl test certificates of `ike` are valid.
    const TODAY: UnixTime = UnixTime(1_900_000_000);

    fn certificate(name: &str) -> Certificate {
        let folder = "../ike/src/tests/certificates";
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let pem = std::fs::read(folder.join(format!("{name}.pem"))).unwrap();
        Certificate::all_from_pem(&pem).unwrap().remove(0)
    }

    fn verify(chain: &[&str], at: UnixTime) -> Result<Certificate, Untrusted> {
        let chain: Vec<_> = chain.iter().map(|name| certificate(name).der).collect();
        TrustStore::new(vec![certificate("ca")]).verify(&chain, at)
    }

    #[test]
    fn a_chain_leads_over_an_intermediate_beside_certificates_that_do_not_matter() {
        let owner = verify(&["mobile-middle", "other", "middle"], TODAY).unwrap();
        assert_eq!(
            owner.names,
            [crate::Name::Dns("mobile.example.net".to_owned())]
        );
        let without = verify(&["mobile-middle"], TODAY);
        assert!(matches!(without, Err(Untrusted::UnknownAuthority(_))));
    }

    #[test]
    fn the_time_is_in_both_ends_of_the_validity() {
        let ends = certificate("gateway");
        for at in [ends.not_before, ends.not_after] {
            assert!(verify(&["gateway"], at).is_ok());
        }
        let (before, after) = (ends.not_before.0 - 1, ends.not_after.0 + 1);
        assert_eq!(
            verify(&["gateway"], UnixTime(before)),
            Err(Untrusted::NotYetValid(ends.not_before))
        );
        assert_eq!(
            verify(&["gateway"], UnixTime(after)),
            Err(Untrusted::Expired(ends.not_after))
        );
    }

    /// RFC 5280 section 6.1 checks the validity only of the certificates below a trust anchor.
    #[test]
    fn a_chain_is_believed_to_the_last_second_of_its_ca_and_no_longer() {
        let chain = [certificate("gateway").der];
        let until = |not_after| {
            let ca = Certificate {
                not_after,
                ..certificate("ca")
            };
            TrustStore::new(vec![ca]).verify(&chain, TODAY)
        };
        assert!(until(TODAY).is_ok());
        for seconds in [1, 86_400] {
            let end = UnixTime(TODAY.0 - seconds);
            assert_eq!(until(end), Err(Untrusted::AuthorityExpired(end)));
        }
    }

    #[test]
    fn a_ca_of_another_name_is_told_from_one_of_another_key() {
        let unknown = verify(&["mobile-other", "other"], TODAY);
        assert_eq!(
            unknown,
            Err(Untrusted::UnknownAuthority("CN=Other CA".to_owned()))
        );
        let forged = verify(&["mobile-same", "same"], TODAY);
        assert_eq!(forged, Err(Untrusted::Forged("CN=Test CA".to_owned())));
    }

    #[test]
    fn an_end_certificate_is_no_ca_and_a_ca_for_another_use_is_no_end() {
        assert_eq!(verify(&["coder"], TODAY), Err(Untrusted::Usage));
        assert!(verify(&["ca"], TODAY).is_err());
    }

    fn behind_the_fence(chain: &[&str]) -> Result<Certificate, Untrusted> {
        let chain: Vec<_> = chain.iter().map(|name| certificate(name).der).collect();
        TrustStore::new(vec![certificate("fence")]).verify(&chain, TODAY)
    }

    /// CVE-2026-35331 and similar: a CA cannot vouch for names outside its constraints.
    // Weakness: 56
    #[test]
    fn an_intermediate_vouches_only_for_names_that_its_constraints_leave_it() {
        assert!(behind_the_fence(&["gateway-permitted", "permitted"]).is_ok());
        for chain in [
            ["mobile-permitted", "permitted"],
            ["mobile-excluded", "excluded"],
        ] {
            let refused = behind_the_fence(&chain);
            assert_eq!(refused, Err(Untrusted::NameOutside));
        }
    }

    /// Returns an unsigned certificate for an Ed25519 key without a private key. `is_ca` adds the
    /// CA extension.
    fn forged(serial: u8, issuer: &str, subject: &str, is_ca: bool) -> Vec<u8> {
        let der = |tag: u8, parts: &[&[u8]]| {
            let value = parts.concat();
            let length = value.len() as u16;
            let length = match value.len() {
                0..128 => vec![length as u8],
                128..256 => vec![0x81, length as u8],
                _ => vec![0x82, (length >> 8) as u8, length as u8],
            };
            [&[tag], &length[..], &value].concat()
        };
        let ed25519 = [0x30, 5, 6, 3, 0x2b, 0x65, 0x70];
        let name = |text: &str| {
            let common = der(0x30, &[&[6, 3, 0x55, 4, 3], &der(0x0c, &[text.as_bytes()])]);
            der(0x30, &[&der(0x31, &[&common])])
        };
        let time = |text: &str| der(0x17, &[text.as_bytes()]);
        let validity = der(0x30, &[&time("200101000000Z"), &time("490101000000Z")]);
        let key = der(0x30, &[&ed25519, &der(3, &[&[0], &[serial; 32]])]);
        let constraints = [
            0x30, 15, 6, 3, 0x55, 0x1d, 19, 1, 1, 0xff, 4, 5, 0x30, 3, 1, 1, 0xff,
        ];
        let extensions = der(0xa3, &[&der(0x30, &[&constraints])]);
        let parts = [
            &[0xa0, 3, 2, 1, 2, 2, 1, serial + 1][..],
            &ed25519,
            &name(issuer),
            &validity,
            &name(subject),
            &key,
            if is_ca { &extensions } else { &[] },
        ];
        der(0x30, &[&der(0x30, &parts), &ed25519, &der(3, &[&[0; 65]])])
    }

    /// A verifier that counts the signatures verified by the current test's thread.
    #[derive(Debug)]
    struct Counted;

    thread_local! {
        static VERIFIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    impl SignatureVerificationAlgorithm for Counted {
        fn verify_signature(
            &self,
            _: &[u8],
            _: &[u8],
            _: &[u8],
        ) -> Result<(), rustls_pki_types::InvalidSignature> {
            VERIFIED.set(VERIFIED.get() + 1);
            Err(rustls_pki_types::InvalidSignature)
        }

        fn public_key_alg_id(&self) -> rustls_pki_types::AlgorithmIdentifier {
            rustls_pki_types::alg_id::ED25519
        }

        fn signature_alg_id(&self) -> rustls_pki_types::AlgorithmIdentifier {
            rustls_pki_types::alg_id::ED25519
        }
    }

    /// Returns the number of signatures verified for a chain of one owner and `forged_cas` forged
    /// CAs of one name.
    fn signatures_of(forged_cas: u8, issuer: &str, store: &TrustStore) -> (Untrusted, usize) {
        let cas = (1..=forged_cas).map(|serial| forged(serial, issuer, issuer, true));
        let owner = forged(0, issuer, "owner", false);
        let chain: Vec<_> = std::iter::once(owner).chain(cas).collect();
        VERIFIED.set(0);
        let refused = store.verify_by(&chain, TODAY, &[&Counted]).unwrap_err();
        (refused, VERIFIED.get())
    }

    // Weakness: 61
    #[test]
    fn certificates_that_could_stand_in_any_order_cost_a_bounded_number_of_signatures() {
        let store = TrustStore::new(vec![certificate("ca")]);
        for count in 1..=9 {
            let (refused, signatures) = signatures_of(count, "Test CA", &store);
            assert!(matches!(refused, Untrusted::Forged(_)), "{refused:?}");
            assert!(signatures <= 8, "{count} CAs: {signatures} signatures");
            let (refused, signatures) = signatures_of(count, "A", &store);
            assert!(matches!(refused, Untrusted::UnknownAuthority(_)));
            assert_eq!(signatures, 0, "{count} CAs that lead nowhere");
            let (refused, signatures) = signatures_of(count, "A", &TrustStore::default());
            assert!(matches!(refused, Untrusted::UnknownAuthority(_)));
            assert_eq!(signatures, 0, "{count} CAs, and none in the store");
        }
        assert_eq!(signatures_of(10, "A", &store), (Untrusted::TooMany, 0));
    }

    #[test]
    fn a_chain_is_believed_in_any_order_with_anything_besides() {
        let good = ["mobile-middle", "middle"];
        for besides in [
            &["ca"][..],
            &["same", "other", "thief"],
            &["middle", "middle", "mobile-middle"],
            &["same", "ca", "other", "fence", "deep-1", "deep-2", "deep-3"],
        ] {
            let first = [&good[..1], besides, &good[1..]].concat();
            let last = [&good[..], besides].concat();
            assert!(verify(&first, TODAY).is_ok(), "{first:?}");
            assert!(verify(&last, TODAY).is_ok(), "{last:?}");
        }
    }

    /// A CA has two certificates, and the first one leads to no trusted CA or is forged.
    #[test]
    fn a_cross_signed_ca_is_followed_by_the_line_that_is_good() {
        let genuine = ["mobile-middle", "middle"].map(|name| certificate(name).der);
        for issuer in ["Other CA", "Test CA"] {
            let bad = forged(1, issuer, "Middle CA", true);
            let [owner, middle] = genuine.clone();
            let store = TrustStore::new(vec![certificate("ca")]);
            assert!(
                store.verify(&[owner, bad, middle], TODAY).is_ok(),
                "{issuer}"
            );
        }
    }

    // Weakness: 61
    #[test]
    fn a_chain_too_long_to_be_meant_is_not_followed() {
        let middles = (1..=8).rev().map(|depth| format!("deep-{depth}"));
        let names: Vec<_> = std::iter::once("mobile-deep".to_owned())
            .chain(middles)
            .collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let refused = behind_the_fence(&names);
        assert_eq!(refused, Err(Unsupported::Length.into()));
        // Repeating the same CAs makes the chain neither longer nor costlier.
        let again: Vec<_> = names.iter().copied().cycle().take(200).collect();
        assert!(behind_the_fence(&again).is_err());
    }

    /// Verifies a chain against a CA with these revocation lists, in March 2030.
    fn looked_up(
        chain: &[&str],
        lists: &[&str],
        revocation: Revocation,
    ) -> Result<Certificate, Untrusted> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ike/src/tests/revocation");
        let read = |name: &str, kind: &str| std::fs::read(folder.join(format!("{name}.{kind}")));
        let certificate = |name: &str| {
            let pem = read(name, "pem").unwrap();
            Certificate::all_from_pem(&pem).unwrap().remove(0)
        };
        let lists = lists.iter().flat_map(|name| {
            let pem = read(name, "crl").unwrap();
            RevocationList::all_from_pem(&pem).unwrap()
        });
        let chain: Vec<_> = chain.iter().map(|name| certificate(name).der).collect();
        let store = TrustStore::new(vec![certificate("ca")]);
        let store = store.with_revocation(lists.collect(), revocation);
        let verified = store.verify(&chain, TODAY);
        let revoked = verified.clone().err();
        let revoked = revoked.filter(|why| matches!(why, Untrusted::Revoked { .. }));
        assert_eq!(store.revoked_since(&chain, TODAY), revoked);
        verified
    }

    const MIDDLE: &[&str] = &["mobile-middle", "middle"];

    #[test]
    fn what_its_ca_has_revoked_is_refused_by_either_policy() {
        for revocation in [Revocation::Relaxed, Revocation::Strict] {
            for (chain, lists, whose) in [
                (&["mobile"][..], &["mobile"][..], "CN=mobile"),
                (MIDDLE, &["middle", "of-middle"][..], "CN=List Middle"),
            ] {
                let refused = looked_up(chain, lists, revocation).unwrap_err().to_string();
                let expected = format!("`{whose}` was revoked by its CA on 2030-01-15");
                assert!(refused.contains(&expected), "{refused}");
            }
            let others = looked_up(&["gateway"], &["mobile"], revocation);
            assert!(others.is_ok(), "{others:?}");
        }
    }

    #[test]
    fn strict_wants_a_list_of_every_ca_of_the_chain_and_relaxed_does_not() {
        let unknown = |why| matches!(why, Untrusted::RevocationUnknown(_));
        for (chain, lists, enough) in [
            (&["mobile"][..], &[][..], false),
            (&["mobile"][..], &["of-middle"][..], false),
            (&["mobile"][..], &["nothing"][..], true),
            (MIDDLE, &["nothing"][..], false),
            (MIDDLE, &["of-middle"][..], false),
            (MIDDLE, &["nothing", "of-middle"][..], true),
        ] {
            let strict = looked_up(chain, lists, Revocation::Strict);
            assert_eq!(strict.is_ok(), enough, "{chain:?} {lists:?}");
            assert!(strict.map_or_else(unknown, |_| true), "{chain:?} {lists:?}");
            assert!(looked_up(chain, lists, Revocation::Relaxed).is_ok());
        }
    }

    #[test]
    fn a_list_that_has_ended_counts_for_what_it_says_and_is_not_enough_for_strict() {
        use Revocation::{Relaxed, Strict};
        let ended = looked_up(&["mobile"], &["ended"], Strict).unwrap_err();
        assert!(
            ended.to_string().contains("expired on 2030-03-01"),
            "{ended}"
        );
        assert!(looked_up(&["mobile"], &["ended"], Relaxed).is_ok());
        let refused = looked_up(&["mobile"], &["ended-mobile"], Relaxed).unwrap_err();
        assert!(matches!(refused, Untrusted::Revoked { .. }), "{refused}");
    }

    #[test]
    fn the_newest_list_of_a_ca_is_asked_wherever_it_stands() {
        for lists in [["nothing", "mobile"], ["mobile", "nothing"]] {
            for revocation in [Revocation::Relaxed, Revocation::Strict] {
                let refused = looked_up(&["mobile"], &lists, revocation).unwrap_err();
                assert!(matches!(refused, Untrusted::Revoked { .. }), "{refused}");
            }
        }
    }

    /// A list with a wrong signature neither clears a certificate nor revokes one.
    // Refuses: revocation-lists
    #[test]
    fn a_list_that_somebody_else_has_signed_refuses_what_it_should_have_spoken_for() {
        for revocation in [Revocation::Relaxed, Revocation::Strict] {
            for name in ["mobile", "gateway"] {
                let refused = looked_up(&[name], &["forged"], revocation).unwrap_err();
                let forged = matches!(refused, Untrusted::RevocationListForged(_));
                assert!(forged, "{refused}");
            }
        }
    }

    // Weakness: 19
    #[test]
    fn no_damage_to_a_certificate_leaves_it_believed() {
        let store = TrustStore::new(vec![certificate("ca")]);
        let good = certificate("gateway").der;
        for at in 0..good.len() {
            let mut damaged = good.clone();
            damaged[at] ^= 1;
            assert!(store.verify(&[damaged], TODAY).is_err(), "octet {at}");
            assert!(store.verify(&[good[..at].to_vec()], TODAY).is_err());
        }
        assert_eq!(store.verify(&[], TODAY), Err(Untrusted::Missing));
    }
}
