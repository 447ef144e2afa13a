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
use crate::config::Config;
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

/// Hash algorithms of RFC 7427 section 7 and RFC 8420 section 3: SHA2-256, Identity.
const SHA2_256: u16 = 2;
const IDENTITY: u16 = 5;

/// ecdsa-with-SHA256 (RFC 7427 appendix A.3.2).
const ECDSA_SHA256: &[u8] = &[
    0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02,
];

/// id-Ed25519 (RFC 8420 appendix A).
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];

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
        let algorithm = identifier(self.algorithm);
        let data = [&[algorithm.len() as u8], algorithm, &signature].concat();
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
        let wanted = match self.algorithm {
            SignatureAlgorithm::EcdsaP256Sha256 => SHA2_256,
            SignatureAlgorithm::Ed25519 => IDENTITY,
        };
        let announced = find_notify(message, NotifyType::SIGNATURE_HASH_ALGORITHMS);
        announced.is_some_and(|hashes| {
            let mut hashes = hashes.data.chunks_exact(2);
            hashes.any(|hash| hash == wanted.to_be_bytes())
        })
    }
}

/// What IKE_SA_INIT says about signatures, if anybody here proves itself by them.
pub(crate) fn announcement(config: &Config) -> Option<Payload> {
    let hashes = [SHA2_256, IDENTITY].map(u16::to_be_bytes).concat();
    let used = config.peers.iter().any(|peer| peer.psk.is_none());
    used.then(|| notify(NotifyType::SIGNATURE_HASH_ALGORITHMS, hashes))
}

/// CERTREQ: the CAs we believe, if anybody here proves itself by them.
pub(crate) fn request(config: &Config) -> Option<Payload> {
    let used = config.peers.iter().any(|peer| peer.psk.is_none());
    let authorities = config.trust.authorities().iter();
    let data: Vec<u8> = authorities.flat_map(|ca| ca.key_id).collect();
    (used && !data.is_empty()).then_some(Payload::CertificateRequest {
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
    // The algorithm is that of the certificate's key: a peer has no choice to be talked out of.
    if algorithm != identifier(key.algorithm) {
        return Err(BadProof::UnknownSignature);
    }
    match key.verifies(&claim.octets(), signature) {
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

const fn identifier(algorithm: SignatureAlgorithm) -> &'static [u8] {
    match algorithm {
        SignatureAlgorithm::EcdsaP256Sha256 => ECDSA_SHA256,
        SignatureAlgorithm::Ed25519 => ED25519,
    }
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
