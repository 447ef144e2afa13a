//! Proofs of identity by signature (RFC 7296 section 2.15, RFC 7427, RFC 8420): with the key of a
//! certificate, or with a raw public key that the other end knows already (RFC 7670).
//!
//! ```text
//! AUTH = length (1) | AlgorithmIdentifier | signature over the claim's octets
//! ```
//!
//! A peer that names no hash algorithms knows only the methods from before RFC 7427, as the systems
//! of Windows and Apple do. With such a peer, ECDSA is used as in RFC 4754: the curve determines
//! the hash, and AUTH is the signature alone. RSA of that time means SHA-1, and is refused.
//!
//! The engine never holds the private key: the caller provides a [`Signer`](crate::Signer).
//! Verification runs in an order that does not reveal the configured identities to unknown peers:
//! the chain, the name, the signature, and only then the lookup of the peer. Without a chain, every
//! failure gets the same answer.

use crate::auth::{Claim, PeerProved, Proof};
use crate::bad_proof::BadProof;
use crate::config::{Config, Peer};
use crate::credential::Credential;
use crate::exchange::{find, find_notify, notify};
use crate::peer_table::PeerTable;
use crypto::{
    Certificate, KeyKind, Name, PublicKey, RawKey, SignatureAlgorithm, TrustStore, UnixTime,
    fixed_signature,
};
use model::Identity;
use wire::ike::{
    AuthMethod, Authentication, CertificateEncoding, CertificateRefusal, Message, NotifyType,
    Payload,
};

/// Hash algorithms of RFC 7427 section 7 and RFC 8420 section 3: SHA2-256, SHA2-384, SHA2-512,
/// Identity.
const SHA2_256: u16 = 2;
const SHA2_384: u16 = 3;
const SHA2_512: u16 = 4;
const IDENTITY: u16 = 5;

/// Returns the CERT payloads and our AUTH for a peer, or `None` if the key cannot be used.
pub(crate) fn prove(
    credential: &Credential,
    method: AuthMethod,
    claim: &Claim<'_>,
    proof: Proof<'_>,
) -> Option<(Vec<Payload>, Authentication)> {
    let signature = credential.signer.sign(&claim.octets())?;
    let kind = credential.key.key().kind;
    let data = match method {
        AuthMethod::DIGITAL_SIGNATURE => {
            let algorithm = identifier(credential.algorithm, Form::OURS);
            [&[algorithm.len() as u8], &algorithm[..], &signature].concat()
        }
        _ if by_curve(kind) == Some(method) => fixed_signature(kind, &signature)?,
        _ => return None,
    };
    Some((
        certificates(credential, proof),
        Authentication { method, data },
    ))
}

/// Returns the CERT payloads: our certificate chain, or our raw public key for a peer that has
/// it configured.
fn certificates(credential: &Credential, proof: Proof<'_>) -> Vec<Payload> {
    let (encoding, all) = match proof.known_key() {
        None => (
            CertificateEncoding::X509_SIGNATURE,
            credential.chain.clone(),
        ),
        Some(_) => (
            CertificateEncoding::RAW_PUBLIC_KEY,
            vec![credential.key.der().to_vec()],
        ),
    };
    let payload = |data| Payload::Certificate { encoding, data };
    all.into_iter().map(payload).collect()
}

/// Returns the method by which the sender of an IKE_SA_INIT message verifies our signature. A
/// list of hash algorithms "implicitly indicates support of the new" method (RFC 7427 section
/// 4).
pub(crate) fn method(
    credential: &Credential,
    message: &Message,
) -> Result<AuthMethod, NotVerified> {
    let kind = credential.key.key().kind;
    let Some(hashes) = find_notify(message, NotifyType::SIGNATURE_HASH_ALGORITHMS) else {
        return by_curve(kind).ok_or(NotVerified::NoHashes(kind));
    };
    let wanted = hash(credential.algorithm).to_be_bytes();
    let mut hashes = hashes.data.chunks_exact(2);
    match hashes.any(|hash| hash == wanted) {
        true => Ok(AuthMethod::DIGITAL_SIGNATURE),
        false => Err(NotVerified::OtherHashes(kind)),
    }
}

/// Reason for which a peer cannot verify our signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// The peer does not name the hash algorithm of our key.
    #[error("the peer does not support signatures of our {0} key (RFC 7427)")]
    OtherHashes(KeyKind),
    /// The peer names no hash algorithms.
    #[error(
        "the peer does not support signatures of our {0} key, as it announces no hash algorithms (RFC 7427)"
    )]
    NoHashes(KeyKind),
}

/// Returns true if we verify signatures of a method.
pub(crate) fn is_verified(method: AuthMethod) -> bool {
    method.is_signature() && method != AuthMethod::RSA_SIGNATURE
}

/// Returns the method from before RFC 7427 for a kind of key.
const fn by_curve(kind: KeyKind) -> Option<AuthMethod> {
    match kind {
        KeyKind::P256 => Some(AuthMethod::ECDSA_P256),
        KeyKind::P384 => Some(AuthMethod::ECDSA_P384),
        KeyKind::Ed25519 | KeyKind::Rsa => None,
    }
}

/// Returns the notify for IKE_SA_INIT that lists our hash algorithms, if any peer authenticates by
/// signature.
pub(crate) fn announcement(config: &PeerTable) -> Option<Payload> {
    let hashes = [SHA2_256, SHA2_384, SHA2_512, IDENTITY];
    let hashes = hashes.map(u16::to_be_bytes).concat();
    let signing = config.signing.certificates || config.signing.raw_keys;
    signing.then(|| notify(NotifyType::SIGNATURE_HASH_ALGORITHMS, hashes))
}

/// The kinds of signatures by which peers authenticate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Signing {
    pub(crate) certificates: bool,
    pub(crate) raw_keys: bool,
}

impl Signing {
    /// Returns the kinds that these peers use.
    pub(crate) fn of(peers: &[Peer]) -> Self {
        let mut signing = Self::default();
        for peer in peers {
            let proof = Proof::of(peer);
            signing.certificates |= proof.is_certified();
            signing.raw_keys |= proof.known_key().is_some();
        }
        signing
    }
}

/// Most CAs in a CERTREQ: a kilobyte, so that the answer to IKE_SA_INIT stays one datagram. The
/// payload is a hint (RFC 7296 section 3.7).
const MOST_REQUESTED: usize = 50;

/// Returns the CERTREQ payloads: the trusted CAs, if a peer authenticates by certificate, and an
/// empty one for raw public keys, if one uses those.
pub(crate) fn requests(authorities: &[Certificate], signing: Signing) -> Vec<Payload> {
    let request = |encoding, data| Payload::CertificateRequest { encoding, data };
    let named = authorities.iter().take(MOST_REQUESTED);
    let hashes: Vec<u8> = named.flat_map(|ca| ca.key_id).collect();
    let certificates = (signing.certificates && !hashes.is_empty())
        .then(|| request(CertificateEncoding::X509_SIGNATURE, hashes));
    // "The Certification Authority field MUST be empty" (RFC 7670 section 3).
    let key = (signing.raw_keys).then(|| request(CertificateEncoding::RAW_PUBLIC_KEY, Vec::new()));
    certificates.into_iter().chain(key).collect()
}

/// Verifies the signature that proves the sender's claim. The key is that of the certificates in
/// the message or, without any, the `known` key of the sender.
pub(crate) fn verify(
    claim: &Claim<'_>,
    proof: &Authentication,
    message: &Message,
    known: Option<&RawKey>,
    config: &PeerTable,
    today: UnixTime,
) -> Result<PeerProved, BadProof> {
    let chain = chain(message);
    let verified = match chain.as_slice() {
        [] => by_key(claim, proof, message, known, config),
        _ if !config.signing.certificates => Err(BadProof::NoCertificateExpected),
        chain => by_certificate(claim, proof, chain, &config.trust_of_all, today),
    };
    verified.map(|()| PeerProved::by_signature(chain))
}

/// Returns `Ok` if a peer may authenticate as this message does, which has a signature.
pub(crate) fn is_expected(proof: Proof<'_>, message: &Message) -> Result<(), BadProof> {
    if !proof.is_signature() {
        return Err(BadProof::SharedKeyExpected);
    }
    match proof.is_certified() == is_certified(message) {
        true => Ok(()),
        false => Err(missed(proof, AuthMethod::DIGITAL_SIGNATURE)),
    }
}

/// Returns an error if the certificates of a message, which were verified, do not meet the terms of
/// the peer.
pub(crate) fn check_terms(
    peer: &Peer,
    message: &Message,
    config: &PeerTable,
    today: UnixTime,
) -> Result<(), BadProof> {
    let terms = &peer.certificate;
    let is_narrower = config.has_own_authorities || terms.unit.is_some();
    match is_narrower && Proof::of(peer).is_certified() {
        true => terms.check(&chain(message), &config.trust, today),
        false => Ok(()),
    }
}

/// Returns the error for a peer without pre-shared key that did not authenticate in the required
/// way.
pub(crate) const fn missed(proof: Proof<'_>, method: AuthMethod) -> BadProof {
    match (method, proof.known_key()) {
        (AuthMethod::RSA_SIGNATURE, _) => BadProof::OldRsa,
        (_, Some(_)) => BadProof::KeyExpected,
        (_, None) => BadProof::CertificateExpected,
    }
}

/// Returns true if a message has certificates.
pub(crate) fn is_certified(message: &Message) -> bool {
    !chain(message).is_empty()
}

fn by_certificate(
    claim: &Claim<'_>,
    proof: &Authentication,
    chain: &[Vec<u8>],
    trust: &TrustStore,
    today: UnixTime,
) -> Result<(), BadProof> {
    let certificate = trust.verify(chain, today)?;
    if !vouches(&certificate, &claim.id.identity) {
        return Err(BadProof::WrongName {
            claimed: claim.id.identity.clone(),
            names: certificate.names.iter().map(Name::to_string).collect(),
        });
    }
    let key = certificate.key.ok_or(BadProof::UnknownSignature)?;
    is_signed(claim, proof, &key)
}

/// Verifies with a raw public key. The sender need not send its key, because it is configured here.
/// An unknown sender causes the same work, with the key that it sends or with ours, and is rejected
/// in any case.
fn by_key(
    claim: &Claim<'_>,
    proof: &Authentication,
    message: &Message,
    known: Option<&RawKey>,
    config: &Config,
) -> Result<(), BadProof> {
    let sent = sent_key(message);
    let ours = config.credential.as_ref().map(|own| &own.key);
    let key = known.or(sent.as_ref()).or(ours);
    let signed = key.is_some_and(|key| is_signed(claim, proof, key.key()).is_ok());
    match (known, sent) {
        (Some(_), _) if signed => Ok(()),
        (Some(known), Some(sent)) if sent != *known => Err(BadProof::AnotherKey {
            theirs: sent.to_string(),
            expected: known.to_string(),
        }),
        _ => Err(BadProof::WrongKey),
    }
}

/// Returns `Ok` if the claim was signed with this key.
fn is_signed(claim: &Claim<'_>, proof: &Authentication, key: &PublicKey) -> Result<(), BadProof> {
    if proof.method != AuthMethod::DIGITAL_SIGNATURE {
        return is_signed_by_curve(claim, proof, key);
    }
    let (length, rest) = proof.data.split_first().ok_or(BadProof::UnknownSignature)?;
    let (algorithm, signature) = rest
        .split_at_checked(usize::from(*length))
        .ok_or(BadProof::UnknownSignature)?;
    let algorithm = named(algorithm).ok_or(BadProof::UnknownSignature)?;
    // The key determines its algorithm, so an attacker cannot substitute another one.
    if algorithm.kind() != key.kind {
        return Err(BadProof::UnknownSignature);
    }
    match key.verifies(algorithm, &claim.octets(), signature) {
        true => Ok(()),
        false => Err(BadProof::WrongSignature),
    }
}

/// The same for a method from before RFC 7427. A peer may use it even if it supports the new one:
/// "different algorithms can be used in different directions" (section 4), and the hash is no
/// weaker.
fn is_signed_by_curve(
    claim: &Claim<'_>,
    proof: &Authentication,
    key: &PublicKey,
) -> Result<(), BadProof> {
    if by_curve(key.kind) != Some(proof.method) {
        return Err(BadProof::UnknownSignature);
    }
    match key.verifies_fixed(&claim.octets(), &proof.data) {
        true => Ok(()),
        false => Err(BadProof::WrongSignature),
    }
}

/// Returns the notify that explains a refusal to the peer, in addition to AUTHENTICATION_FAILED,
/// which carries no reason.
pub(crate) fn explanation(why: &BadProof) -> Option<Payload> {
    let data = why.code()?.0.to_be_bytes().to_vec();
    Some(notify(NotifyType::CERTIFICATE_REFUSED, data))
}

/// Returns the reason for which a peer refused our certificate.
pub(crate) fn explained(message: &Message) -> Option<CertificateRefusal> {
    let notify = find_notify(message, NotifyType::CERTIFICATE_REFUSED)?;
    let code = notify.data.as_slice().try_into().ok()?;
    Some(CertificateRefusal(u16::from_be_bytes(code)))
}

/// Returns the hash algorithm that a peer needs to verify a signature.
const fn hash(algorithm: SignatureAlgorithm) -> u16 {
    use SignatureAlgorithm as By;
    match algorithm {
        By::EcdsaP256Sha256 | By::RsaPssSha256 | By::RsaPkcs1Sha256 => SHA2_256,
        By::EcdsaP384Sha384 | By::RsaPssSha384 | By::RsaPkcs1Sha384 => SHA2_384,
        By::RsaPssSha512 | By::RsaPkcs1Sha512 => SHA2_512,
        By::Ed25519 => IDENTITY,
    }
}

/// Encodings of RSASSA-PSS parameters that mean the same.
#[derive(Clone, Copy)]
struct Form {
    /// True if hashes have NULL as parameter; otherwise none. Both have to be accepted (RFC 4055
    /// section 2.1).
    nulls: bool,
    /// True if the trailer field is present, as in RFC 7427 appendix A.4.3; otherwise left out, as
    /// DER requires for a default.
    trailer: bool,
}

impl Form {
    const OURS: Self = Self::ALL[0];
    const ALL: [Self; 4] = [
        Self::new(true, false),
        Self::new(true, true),
        Self::new(false, false),
        Self::new(false, true),
    ];

    const fn new(nulls: bool, trailer: bool) -> Self {
        Self { nulls, trailer }
    }
}

/// Returns the algorithm of an AlgorithmIdentifier.
fn named(der: &[u8]) -> Option<SignatureAlgorithm> {
    let is_it =
        |by: &SignatureAlgorithm| Form::ALL.iter().any(|form| identifier(*by, *form) == der);
    SignatureAlgorithm::ALL.into_iter().find(is_it)
}

/// Returns an AlgorithmIdentifier in DER (RFC 7427 appendix A, RFC 8420 appendix A).
fn identifier(algorithm: SignatureAlgorithm, form: Form) -> Vec<u8> {
    use SignatureAlgorithm as By;
    let rsa = |last| {
        let pkcs1 = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last];
        sequence(&[tagged(0x06, &pkcs1), vec![0x05, 0]])
    };
    match algorithm {
        By::EcdsaP256Sha256 => ecdsa(2),
        By::EcdsaP384Sha384 => ecdsa(3),
        By::Ed25519 => sequence(&[tagged(0x06, &[0x2b, 0x65, 0x70])]),
        By::RsaPkcs1Sha256 => rsa(11),
        By::RsaPkcs1Sha384 => rsa(12),
        By::RsaPkcs1Sha512 => rsa(13),
        By::RsaPssSha256 => pss(1, 32, form),
        By::RsaPssSha384 => pss(2, 48, form),
        By::RsaPssSha512 => pss(3, 64, form),
    }
}

fn ecdsa(hash: u8) -> Vec<u8> {
    let with_sha2 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, hash];
    sequence(&[tagged(0x06, &with_sha2)])
}

/// RSASSA-PSS with a hash, MGF1 with the same hash, and a salt of the hash's length (RFC 7427
/// appendix A.4.3).
fn pss(hash: u8, salt: u8, form: Form) -> Vec<u8> {
    let pkcs1 = |last| {
        tagged(
            0x06,
            &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last],
        )
    };
    let sha2 = tagged(
        0x06,
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, hash],
    );
    let null = if form.nulls {
        vec![0x05, 0]
    } else {
        Vec::new()
    };
    let sha2 = sequence(&[sha2, null]);
    let mgf1 = sequence(&[pkcs1(8), sha2.clone()]);
    let parameters = sequence(&[
        tagged(0xa0, &sha2),
        tagged(0xa1, &mgf1),
        tagged(0xa2, &[0x02, 1, salt]),
        match form.trailer {
            true => tagged(0xa3, &[0x02, 1, 1]),
            false => Vec::new(),
        },
    ]);
    sequence(&[pkcs1(10), parameters])
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

/// Returns a DER value of fewer than 128 octets.
fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    [&[tag, value.len() as u8], value].concat()
}

/// Returns the certificates of a message, "the first certificate in the order presented" being the
/// sender's (RFC 7296 section 3.6).
pub(crate) fn chain(message: &Message) -> Vec<Vec<u8>> {
    let certificates = message.payloads.iter().filter_map(|payload| match payload {
        Payload::Certificate {
            encoding: CertificateEncoding::X509_SIGNATURE,
            data,
        } => Some(data.clone()),
        _ => None,
    });
    certificates.collect()
}

/// Returns the raw public key of a message, if we can verify with it.
pub(crate) fn sent_key(message: &Message) -> Option<RawKey> {
    find(message, |payload| match payload {
        Payload::Certificate {
            encoding: CertificateEncoding::RAW_PUBLIC_KEY,
            data,
        } => RawKey::from_der(data).ok(),
        _ => None,
    })
}

/// Parses the end-entity certificate of a chain, without verifying it.
pub(crate) fn first(chain: &[Vec<u8>]) -> Option<Certificate> {
    Certificate::from_der(chain.first()?).ok()
}

/// Returns true if a certificate is for an identity (RFC 4945 section 3.1).
pub(crate) fn vouches(certificate: &Certificate, identity: &Identity) -> bool {
    let mut names = certificate.names.iter().map(|name| match name {
        Name::Dns(name) => Identity::Fqdn(name.clone()),
        Name::Email(name) => Identity::Email(name.clone()),
        Name::Address(address) => Identity::Address(*address),
    });
    names.any(|name| name == *identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn identifiers_are_those_of_rfc_7427_appendix_a() {
        use SignatureAlgorithm as By;
        for (by, expected) in [
            (By::EcdsaP256Sha256, "300a06082a8648ce3d040302"),
            (By::EcdsaP384Sha384, "300a06082a8648ce3d040303"),
            (By::Ed25519, "300506032b6570"),
            (By::RsaPkcs1Sha256, "300d06092a864886f70d01010b0500"),
            (By::RsaPkcs1Sha384, "300d06092a864886f70d01010c0500"),
            (By::RsaPkcs1Sha512, "300d06092a864886f70d01010d0500"),
            (
                By::RsaPssSha256,
                "304606092a864886f70d01010a3039a00f300d06096086480165030402010500a11c301a06092a864886f70d010108300d06096086480165030402010500a203020120a303020101",
            ),
        ] {
            assert_eq!(hex(&identifier(by, Form::new(true, true))), expected);
        }
    }

    // Weakness: 59
    #[test]
    fn every_algorithm_is_found_by_any_form_of_it_and_by_nothing_else() {
        for by in SignatureAlgorithm::ALL {
            for form in Form::ALL {
                let der = identifier(by, form);
                assert_eq!(named(&der), Some(by));
                for at in 0..der.len() {
                    let mut other = der.clone();
                    other[at] ^= 0x80;
                    assert_eq!(named(&other), None, "{by:?}, octet {at}");
                }
            }
        }
        // sha1WithRSAEncryption (appendix A.1.1).
        let sha1 = [
            0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 5, 5, 0,
        ];
        assert_eq!(named(&sha1), None);
    }

    /// CVE-2018-6459, CVE-2021-41990: parameters are never parsed, only compared with the few
    /// acceptable encodings.
    // Weakness: 59
    #[test]
    fn parameters_of_pss_other_than_a_hash_its_mask_and_its_length_name_nothing() {
        let oid = |last| tagged(6, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, last]);
        let hash = |n| {
            sequence(&[
                tagged(6, &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, n]),
                vec![5, 0],
            ])
        };
        let mask = |function, hash: Vec<u8>| tagged(0xa1, &sequence(&[oid(function), hash]));
        let salt = |number: &[u8]| tagged(0xa2, &tagged(2, number));
        let trailer = |number: &[u8]| tagged(0xa3, &tagged(2, number));
        let (sha2, mgf1) = (tagged(0xa0, &hash(1)), mask(8, hash(1)));
        let good = [sha2.clone(), mgf1.clone(), salt(&[32])];
        let named = |parameters: &[Vec<u8>]| named(&sequence(&[oid(10), parameters.concat()]));
        assert_eq!(
            named(&[sequence(&good)]),
            Some(SignatureAlgorithm::RsaPssSha256)
        );
        // None, NULL, and the defaults, which are those of SHA-1.
        let defaults = sequence(&[]);
        let bare = [
            vec![],
            vec![vec![5, 0]],
            vec![defaults.clone()],
            vec![defaults.clone(), defaults],
        ];
        let salts = [
            &[0][..],
            &[20],
            &[33],
            &[0xff],
            &[0x80, 0, 0, 0],
            &[0, 32],
            &[],
        ];
        let salts = salts.map(|number| vec![sha2.clone(), mgf1.clone(), salt(number)]);
        let trailers = [&[0][..], &[2], &[0xbc], &[0xff; 100], &[]];
        let trailers = trailers.map(|number| [&good[..], &[trailer(number)]].concat());
        let masks = [
            mask(8, hash(2)),
            mask(8, vec![]),
            mask(9, hash(1)),
            mask(8, mask(8, hash(1))),
        ];
        let masks = masks.map(|mask| vec![sha2.clone(), mask, salt(&[32])]);
        let [a, b, c] = good.clone();
        let orders = [
            vec![b.clone(), a.clone(), c.clone()],
            vec![a.clone(), a.clone(), b.clone(), c.clone()],
            vec![a.clone(), b.clone()],
            vec![a.clone(), c.clone()],
            vec![sequence(&[a, b, c])],
        ];
        let others = salts.into_iter().chain(trailers).chain(masks).chain(orders);
        for other in others.map(|other| vec![sequence(&other)]).chain(bare) {
            assert_eq!(named(&other), None, "{other:x?}");
        }
    }
}
