//! Why a proof of identity is not accepted, and what the peer is told of that.

use crate::advice::either;
use crypto::Untrusted;
use model::Identity;
use wire::ike::CertificateRefusal;

/// Why a proof of identity is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadProof {
    /// The chain is not believed.
    #[error("its certificate is not believed: {0}")]
    Untrusted(#[from] Untrusted),
    /// The certificate is somebody else's.
    #[error(
        "its certificate is not for {claimed} but for {}: issue it anew, or change `id`",
        either(.names)
    )]
    WrongName {
        /// Who the peer says it is.
        claimed: Identity,
        /// Whom the certificate names.
        names: Vec<String>,
    },
    /// Somebody else's signature, or over something else.
    #[error("its signature was not made for this exchange with the key of its certificate")]
    WrongSignature,
    /// Another algorithm.
    #[error("its signature is of another kind than the key of its certificate")]
    UnknownSignature,
    /// It says itself that it has another key than we know it by.
    #[error("its public key is {theirs}, but {expected} is in its `pubkey` here")]
    AnotherKey {
        /// The key that it sent, for people.
        theirs: String,
        /// The one that we have.
        expected: String,
    },
    /// Somebody else's signature, or over something else, and no certificate to tell.
    #[error("its signature was not made for this exchange with the key in its `pubkey` here")]
    WrongKey,
    /// Something else where we want a certificate.
    #[error(
        "it has to prove itself by certificate, as it has neither `psk` nor `pubkey` here, but it came with another kind of proof"
    )]
    CertificateExpected,
    /// A signature of the time before RFC 7427.
    #[error(
        "it signed with RSA and SHA-1, as it names no hash algorithms to do better (RFC 7427): issue its certificate for a key of ECDSA P-256 or P-384"
    )]
    OldRsa,
    /// A certificate where no peer has one.
    #[error("it came with a certificate, and no peer here proves itself by one")]
    NoCertificateExpected,
    /// A signature where we want a shared key.
    #[error(
        "it has to prove a pre-shared key, as it has a `psk` here, but it came with a signature"
    )]
    SharedKeyExpected,
    /// Something else where we want to see a key that we know.
    #[error("it has to prove the key in its `pubkey` here, but it came with another kind of proof")]
    KeyExpected,
}

impl BadProof {
    /// What the peer is told: only what its certificate alone gives rise to.
    pub(crate) const fn code(&self) -> Option<CertificateRefusal> {
        use CertificateRefusal as Code;
        Some(match self {
            Self::Untrusted(Untrusted::Expired(_) | Untrusted::AuthorityExpired(_)) => {
                Code::EXPIRED
            }
            Self::Untrusted(Untrusted::NotYetValid(_)) => Code::NOT_YET_VALID,
            Self::Untrusted(Untrusted::UnknownAuthority(_) | Untrusted::Forged(_)) => {
                Code::UNKNOWN_AUTHORITY
            }
            Self::Untrusted(Untrusted::Usage) => Code::WRONG_USAGE,
            Self::Untrusted(Untrusted::Revoked { .. }) => Code::REVOKED,
            Self::Untrusted(
                Untrusted::RevocationUnknown(_)
                | Untrusted::RevocationListEnded(_)
                | Untrusted::RevocationListForged(_),
            ) => Code::REVOCATION_UNKNOWN,
            Self::Untrusted(_) => Code::INVALID,
            Self::WrongName { .. } => Code::WRONG_NAME,
            Self::WrongSignature | Self::UnknownSignature => Code::WRONG_SIGNATURE,
            // They would tell that there is such a peer.
            Self::AnotherKey { .. } | Self::WrongKey => return None,
            Self::CertificateExpected | Self::SharedKeyExpected | Self::KeyExpected => return None,
            Self::OldRsa | Self::NoCertificateExpected => return None,
        })
    }
}
