//! Reasons why a chain of certificates is not trusted.

use crate::UnixTime;
use crate::lines::MAX_CERTIFICATES;
use thiserror::Error;

/// Reason why a chain is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Untrusted {
    /// The peer sent no certificate.
    #[error("the peer sent no certificate")]
    Missing,
    /// The peer sent more certificates than a chain can have.
    #[error("the peer sent more than {MAX_CERTIFICATES} different certificates")]
    TooMany,
    /// A certificate cannot be parsed.
    #[error("a certificate of the chain cannot be parsed")]
    Unreadable,
    /// A certificate has expired.
    #[error("a certificate of the chain expired on {0}")]
    Expired(UnixTime),
    /// A certificate is not valid yet, or the local clock is wrong.
    #[error("a certificate of the chain is valid only from {0}")]
    NotYetValid(UnixTime),
    /// The trusted CA at the end of the chain has expired.
    #[error("the certificate of the CA itself expired on {0}")]
    AuthorityExpired(UnixTime),
    /// The trusted CA at the end of the chain is not valid yet, or the local clock is wrong.
    #[error("the certificate of the CA itself is valid only from {0}")]
    AuthorityNotYetValid(UnixTime),
    /// A certificate above the owner's may not sign others.
    #[error("`{0}` may not issue certificates: it is no CA, or its key usage has no keyCertSign")]
    MayNotCertify(String),
    /// A CA allows fewer CAs below it.
    #[error("the CA `{0}` allows fewer CAs below it than the chain has (pathLenConstraint)")]
    TooDeep(String),
    /// A name is not among those for which a CA may issue.
    #[error("a name in it is outside the name constraints of a CA of its chain")]
    NameOutside,
    /// RFC 5280 allows it, and it is not supported here.
    #[error("its chain has {0}, which Strata does not support")]
    Unsupported(#[from] Unsupported),
    /// The chain ends at no trusted CA.
    #[error("issued by `{0}`, which does not chain to any CA in `ca`")]
    UnknownAuthority(String),
    /// A signature does not match the key of the CA it names.
    #[error("issued by `{0}`, but signed with another key than that CA has in `ca`")]
    Forged(String),
    /// The CA has revoked a certificate.
    #[error("the certificate of `{subject}` was revoked by its CA on {since}")]
    Revoked {
        /// Subject of the revoked certificate.
        subject: String,
        /// Time of the revocation.
        since: UnixTime,
    },
    /// No revocation list covers the chain.
    #[error(
        "no revocation list in `crl` covers the CAs of its chain (issuer `{0}`), and `revocation` is strict"
    )]
    RevocationUnknown(String),
    /// The revocation list that covers the chain has expired.
    #[error("its revocation list expired on {0}, and `revocation` is strict")]
    RevocationListEnded(UnixTime),
    /// A revocation list does not match the key of the CA it names.
    #[error(
        "a revocation list in `crl` names a CA of its chain (issuer `{0}`), but is not signed with the key of that CA"
    )]
    RevocationListForged(String),
    /// The certificate's key usage does not allow IKE.
    #[error(
        "its key usage does not allow IKE: it needs digitalSignature, and no extendedKeyUsage other than ipsecIKE"
    )]
    Usage,
    /// The key is of a kind that is not supported for IKE signatures.
    #[error("its key is not ECDSA P-256, ECDSA P-384, Ed25519, or RSA of at least 2048 bits")]
    UnknownKey,
    /// Another rule of RFC 5280 is violated.
    #[error("the chain violates RFC 5280 ({0})")]
    Invalid(String),
}

/// A part of a chain that RFC 5280 allows, and that is not supported here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The algorithm of a signature, or its parameters.
    #[error("a signature by {0} with these parameters")]
    Signature(String),
    /// The kind of a CA's key.
    #[error("a signature by {0} with a key of this kind")]
    Key(String),
    /// A critical extension.
    #[error("the critical extension {0}")]
    Extension(String),
    /// Name constraints on a kind of name that a certificate has.
    #[error("name constraints on {0}")]
    Constraints(&'static str),
    /// More CAs than are followed.
    #[error("more than six CAs between")]
    Length,
    /// A CA as an end.
    #[error("a certificate of a CA in the place of an end's own")]
    Authority,
    /// A version of X.509.
    #[error("a certificate of X.509 version 1 or 2")]
    Version,
}
