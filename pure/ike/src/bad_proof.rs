//! Reasons for which a proof of identity is not accepted, and the codes that the peer receives.

use crypto::Untrusted;
use model::Identity;
use wire::ike::CertificateRefusal;

/// Reason for which a proof of identity is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProof {
    /// The certificate chain is not trusted.
    #[error("the peer's certificate is not trusted: {0}")]
    Untrusted(#[from] Untrusted),
    /// The certificate is for another identity.
    #[error("the peer's certificate is not for {claimed} but for {}", .names.join(" or "))]
    WrongName {
        /// Identity that the peer claims.
        claimed: Identity,
        /// Identities in the certificate.
        names: Vec<String>,
    },
    /// The certificate is of another CA than those of this peer.
    #[error("the peer's certificate is issued by `{issuer}`, but must chain to {}", .expected.join(" or "))]
    OtherAuthority {
        /// Issuer of the certificate.
        issuer: String,
        /// The CAs of this peer.
        expected: Vec<String>,
    },
    /// The certificate lacks the organisational unit of this peer.
    #[error("the peer's certificate has {}, but must have {}", in_words(.units), in_words(.expected))]
    OtherUnit {
        /// Organisational units in the certificate.
        units: Vec<String>,
        /// The organisational unit of this peer, or of each table for it.
        expected: Vec<String>,
    },
    /// The certificate meets the terms of several tables.
    #[error("the peer's certificate has {}, which are those of several tables", in_words(.units))]
    SeveralTables {
        /// Organisational units in the certificate.
        units: Vec<String>,
    },
    /// The signature was made with another key than the certificate's, or over other data.
    #[error("the peer's signature does not verify with the key of its certificate")]
    WrongSignature,
    /// The signature algorithm does not fit the key of the certificate.
    #[error("the peer's signature algorithm does not match the key of its certificate")]
    UnknownSignature,
    /// The peer sent another public key than the configured one.
    #[error("the peer's public key is {theirs}, but {expected} is configured")]
    AnotherKey {
        /// Key that the peer sent, in printable form.
        theirs: String,
        /// Configured key.
        expected: String,
    },
    /// The signature was made with another key than the configured one, or over other data, and the
    /// peer sent no key.
    #[error("the peer's signature does not verify with its configured public key")]
    WrongKey,
    /// The peer did not use a certificate, although it has to.
    #[error("the peer must authenticate by certificate, but used another method")]
    CertificateExpected,
    /// The peer used an RSA signature from before RFC 7427.
    #[error("the peer signed with RSA and SHA-1, as it announces no hash algorithms (RFC 7427)")]
    OldRsa,
    /// The peer used a certificate, but no configured peer authenticates by one.
    #[error("the peer sent a certificate, but no peer here authenticates by certificate")]
    NoCertificateExpected,
    /// The peer used a signature, although it has to use a pre-shared key.
    #[error("the peer must authenticate by pre-shared key, but used a signature")]
    SharedKeyExpected,
    /// The peer did not use its configured public key, although it has to.
    #[error("the peer must authenticate with its configured public key, but used another method")]
    KeyExpected,
}

/// Describes organisational units.
fn in_words(units: &[String]) -> String {
    match units {
        [] => "no organisational unit".to_owned(),
        [unit] => format!("the organisational unit `{unit}`"),
        several => format!("the organisational units `{}`", several.join("`, `")),
    }
}

impl BadProof {
    /// Returns the code that the peer receives. Only defects of its certificate have one.
    pub(crate) const fn code(&self) -> Option<CertificateRefusal> {
        use CertificateRefusal as Code;
        Some(match self {
            Self::Untrusted(Untrusted::Expired(_) | Untrusted::AuthorityExpired(_)) => {
                Code::EXPIRED
            }
            Self::Untrusted(Untrusted::NotYetValid(_) | Untrusted::AuthorityNotYetValid(_)) => {
                Code::NOT_YET_VALID
            }
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
            Self::Untrusted(Untrusted::Unsupported(_)) => Code::UNSUPPORTED,
            Self::Untrusted(_) => Code::INVALID,
            Self::WrongName { .. } => Code::WRONG_NAME,
            Self::OtherAuthority { .. } => Code::UNKNOWN_AUTHORITY,
            Self::OtherUnit { .. } | Self::SeveralTables { .. } => Code::WRONG_UNIT,
            Self::WrongSignature | Self::UnknownSignature => Code::WRONG_SIGNATURE,
            // A code would reveal that such a peer is configured.
            Self::AnotherKey { .. } | Self::WrongKey => return None,
            Self::CertificateExpected | Self::SharedKeyExpected | Self::KeyExpected => return None,
            Self::OldRsa | Self::NoCertificateExpected => return None,
        })
    }
}
