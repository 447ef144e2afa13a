//! Proofs of identity by certificate (RFC 7296 section 2.15, RFC 7427, RFC 8420).
//!
//! ```text
//! AUTH = length (1) | AlgorithmIdentifier | signature over the claim's octets
//! ```
//!
//! The private key is not ours: whoever owns the engine lends a [`Signer`]. What is verified comes
//! in an order that tells strangers nothing about who is configured here: the chain, the name, the
//! signature, and only then whose peer that is.

use crate::auth::{Claim, PeerProved};
use crate::directory::Directory;
use crate::event::BadProof;
use crate::exchange::{find_notify, notify};
use crypto::{Certificate, Name, SignatureAlgorithm, TrustStore, UnixTime};
use model::Identity;
use std::fmt::Debug;
use std::sync::Arc;
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

/// Makes signatures with a private key that the engine never sees.
pub trait Signer: Debug + Send + Sync {
    /// Signs the octets with the key of [`Credential::chain`]'s first certificate. `None` if the
    /// key cannot be used.
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>>;
}

/// What we prove our identity with.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Our certificate in DER, then the intermediates up to a CA that peers trust.
    pub chain: Vec<Vec<u8>>,
    /// What the key is for.
    pub algorithm: SignatureAlgorithm,
    /// The key.
    pub signer: Arc<dyn Signer>,
}

impl Credential {
    /// The CERT payloads and our AUTH. `None` if the key cannot be used.
    pub(crate) fn prove(&self, claim: &Claim<'_>) -> Option<(Vec<Payload>, Authentication)> {
        let signature = self.signer.sign(&claim.octets())?;
        let algorithm = identifier(self.algorithm, Form::OURS);
        let data = [&[algorithm.len() as u8], &algorithm[..], &signature].concat();
        let proof = Authentication {
            method: AuthMethod::DIGITAL_SIGNATURE,
            data,
        };
        let certificate = |der: &Vec<u8>| Payload::Certificate {
            encoding: CertificateEncoding::X509_SIGNATURE,
            data: der.clone(),
        };
        Some((self.chain.iter().map(certificate).collect(), proof))
    }

    /// Whether the peer said that it verifies signatures of our kind (RFC 7427 section 4).
    pub(crate) fn is_accepted(&self, message: &Message) -> bool {
        let wanted = hash(self.algorithm);
        let announced = find_notify(message, NotifyType::SIGNATURE_HASH_ALGORITHMS);
        announced.is_some_and(|hashes| {
            let mut hashes = hashes.data.chunks_exact(2);
            hashes.any(|hash| hash == wanted.to_be_bytes())
        })
    }
}

/// What IKE_SA_INIT says about signatures, if anybody here proves itself by them.
pub(crate) fn announcement(config: &Directory) -> Option<Payload> {
    let hashes = [SHA2_256, SHA2_384, SHA2_512, IDENTITY];
    let hashes = hashes.map(u16::to_be_bytes).concat();
    config
        .certificates
        .then(|| notify(NotifyType::SIGNATURE_HASH_ALGORITHMS, hashes))
}

/// CERTREQ: the CAs we believe, if anybody here proves itself by them.
pub(crate) fn request(config: &Directory) -> Option<Payload> {
    let authorities = config.trust.authorities().iter();
    let data: Vec<u8> = authorities.flat_map(|ca| ca.key_id).collect();
    (config.certificates && !data.is_empty()).then_some(Payload::CertificateRequest {
        encoding: CertificateEncoding::X509_SIGNATURE,
        data,
    })
}

/// Checks that a message proves its sender's claim by certificate.
pub(crate) fn verify(
    claim: &Claim<'_>,
    proof: &Authentication,
    message: &Message,
    trust: &TrustStore,
    today: UnixTime,
) -> Result<PeerProved, BadProof> {
    let certificate = trust.verify(&chain(message), today)?;
    if !vouches(&certificate, claim.identity) {
        return Err(BadProof::WrongName {
            claimed: claim.identity.clone(),
            names: certificate.names.iter().map(Name::to_string).collect(),
        });
    }
    let key = certificate.key.ok_or(BadProof::UnknownSignature)?;
    let (length, rest) = proof.data.split_first().ok_or(BadProof::UnknownSignature)?;
    let (algorithm, signature) = rest
        .split_at_checked(usize::from(*length))
        .ok_or(BadProof::UnknownSignature)?;
    let algorithm = named(algorithm).ok_or(BadProof::UnknownSignature)?;
    // The certificate says of what kind the key is: nobody is talked into another.
    if algorithm.kind() != key.kind {
        return Err(BadProof::UnknownSignature);
    }
    match key.verifies(algorithm, &claim.octets(), signature) {
        true => Ok(PeerProved::by_signature()),
        false => Err(BadProof::WrongSignature),
    }
}

/// What a refusal tells the peer beside AUTHENTICATION_FAILED, which says nothing more.
pub(crate) fn explanation(why: &BadProof) -> Option<Payload> {
    let data = why.code()?.0.to_be_bytes().to_vec();
    Some(notify(NotifyType::CERTIFICATE_REFUSED, data))
}

/// What a peer's refusal says about our certificate.
pub(crate) fn explained(message: &Message) -> Option<CertificateRefusal> {
    let notify = find_notify(message, NotifyType::CERTIFICATE_REFUSED)?;
    let code = notify.data.as_slice().try_into().ok()?;
    Some(CertificateRefusal(u16::from_be_bytes(code)))
}

/// The hash that a peer has to know to verify a signature.
const fn hash(algorithm: SignatureAlgorithm) -> u16 {
    use SignatureAlgorithm as By;
    match algorithm {
        By::EcdsaP256Sha256 | By::RsaPssSha256 | By::RsaPkcs1Sha256 => SHA2_256,
        By::EcdsaP384Sha384 | By::RsaPssSha384 | By::RsaPkcs1Sha384 => SHA2_384,
        By::RsaPssSha512 | By::RsaPkcs1Sha512 => SHA2_512,
        By::Ed25519 => IDENTITY,
    }
}

/// How parameters of RSASSA-PSS are written down that say nothing.
#[derive(Clone, Copy)]
struct Form {
    /// Hashes have NULL for a parameter, or none: both are to be accepted (RFC 4055 section 2.1).
    nulls: bool,
    /// The one trailer there is has its number, as in RFC 7427 appendix A.4.3, or is left out, as DER
    /// would have it.
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

/// The algorithm of an AlgorithmIdentifier.
fn named(der: &[u8]) -> Option<SignatureAlgorithm> {
    let is_it =
        |by: &SignatureAlgorithm| Form::ALL.iter().any(|form| identifier(*by, *form) == der);
    SignatureAlgorithm::ALL.into_iter().find(is_it)
}

/// AlgorithmIdentifiers in DER (RFC 7427 appendix A, RFC 8420 appendix A).
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

/// RSASSA-PSS with a hash, MGF1 with the same, and a salt as long as it (RFC 7427 appendix A.4.3).
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

/// A value of fewer than 128 octets.
fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    [&[tag, value.len() as u8], value].concat()
}

/// The certificates of a message, "the first certificate in the order presented" being the
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

/// What the owner's certificate of a chain says, believed or not.
pub(crate) fn first(chain: &[Vec<u8>]) -> Option<Certificate> {
    Certificate::from_der(chain.first()?).ok()
}

/// Whether a certificate is for an identity, octet by octet (RFC 4945 section 3.1).
pub(crate) fn vouches(certificate: &Certificate, identity: &Identity) -> bool {
    certificate.names.iter().any(|name| match (name, identity) {
        (Name::Dns(name), Identity::Fqdn(identity))
        | (Name::Email(name), Identity::Email(identity)) => name == identity,
        (Name::Address(name), Identity::Address(identity)) => name == identity,
        _ => false,
    })
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
}
