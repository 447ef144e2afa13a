//! Reasons for which an IKE SA is down.

use crate::bad_proof::BadProof;
use crate::extension::fragment::Uncut;
use crate::extension::mode::BadMode;
use crate::signature::NotVerified;
use model::Identity;
use std::net::{IpAddr, SocketAddr};
use wire::ike::{CertificateRefusal, NotifyType};

/// Reason for which an IKE SA is down. `Display` states the fact for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownReason {
    /// The peer closed the IKE SA.
    #[error("the peer closed the IKE SA")]
    ClosedByPeer,
    /// The caller closed the IKE SA.
    #[error("closed on request")]
    ClosedHere,
    /// The peer refused our authentication, made with a pre-shared key.
    #[error(
        "the peer refused our authentication (AUTHENTICATION_FAILED): our identity {ours} is unknown there, the pre-shared keys differ, or it requires a PPK"
    )]
    AuthenticationRefused {
        /// Identity that we sent.
        ours: Identity,
    },
    /// The peer refused our authentication, which includes a PPK.
    #[error(
        "the peer refused our authentication (AUTHENTICATION_FAILED): the PPK `{id}` or our identity {ours} is unknown there, or the keys differ"
    )]
    PpkRefused {
        /// Identity that we sent.
        ours: Identity,
        /// Name of the PPK.
        id: String,
    },
    /// A PPK is required here, and the peer does not use it.
    #[error("a PPK is required here, but the peer does not use ours (RFC 8784)")]
    NoPpk,
    /// The peer refused our certificate.
    #[error(
        "the peer refused our certificate for {ours} (AUTHENTICATION_FAILED): {}",
        defect(*.why)
    )]
    CertificateRefused {
        /// Identity that we sent.
        ours: Identity,
        /// Reason that the peer gave, if it sent our private notify.
        why: Option<CertificateRefusal>,
    },
    /// The peer refused our raw public key.
    #[error(
        "the peer refused our public key (AUTHENTICATION_FAILED): our identity {ours} is unknown there, or has another public key there"
    )]
    KeyRefused {
        /// Identity that we sent.
        ours: Identity,
    },
    /// The peer's proof of identity is not acceptable, or no longer is.
    #[error("{0}")]
    BadProof(#[from] BadProof),
    /// The peer cannot verify our kind of signature.
    #[error("{0}")]
    SignatureNotAccepted(#[from] NotVerified),
    /// Our private key cannot sign.
    #[error("our private key cannot sign")]
    CannotSign,
    /// The peer answered IKE_SA_INIT, but not IKE_AUTH.
    #[error("the peer answered IKE_SA_INIT, but not IKE_AUTH on UDP port {port}")]
    AuthUnanswered {
        /// UDP port that both ends moved to.
        port: u16,
    },
    /// The peer answered IKE_SA_INIT, but not IKE_AUTH, and our request was so long that IP had to
    /// fragment it.
    #[error(
        "the peer answered IKE_SA_INIT, but not our IKE_AUTH request of {} octets: IP fragments such messages, and many firewalls drop fragments",
        .0.octets
    )]
    LongAuthUnanswered(Uncut),
    /// The peer answered IKE_SA_INIT, but not the additional key exchange, which was so long that
    /// IP had to fragment it.
    #[error(
        "the peer answered IKE_SA_INIT, but not the additional key exchange of {} octets: IP fragments such messages, and many firewalls drop fragments",
        .0.octets
    )]
    LongKemUnanswered(Uncut),
    /// The peer refused the additional key exchange that it had agreed to.
    #[error("the peer refused the additional key exchange: {notify}")]
    KemRefused {
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// No key could be generated for an additional key exchange.
    #[error(
        "no key for the additional key exchange could be generated: this machine has no memory or no randomness left"
    )]
    NoKemKey,
    /// The peer refused to create the child SA.
    #[error("the peer refused the tunnel: {notify}")]
    ChildRefused {
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// The peer deleted the last child SA, without which the IKE SA has no purpose.
    #[error("the peer deleted the tunnel")]
    ChildDeleted,
    /// The peer chose something that we did not offer.
    #[error("the peer violated the protocol: its response does not match our request ({0})")]
    NotOffered(&'static str),
    /// The child SA cannot have the configured mode.
    #[error("{0}")]
    Mode(#[from] BadMode),
    /// The peer assigned us no inner address, although we requested one.
    #[error("the peer assigned us no inner address")]
    NoAddress,
    /// The peer lacks NAT traversal, but only ESP in UDP is supported here.
    #[error(
        "the peer does not support NAT traversal, which ESP in UDP requires, the only encapsulation here"
    )]
    NoNatTraversal,
    /// The peer does not support IKE SAs without a child SA.
    #[error(
        "the peer does not support IKE SAs without a child SA (RFC 6023), so it cannot be a licensed node or a gateway for one"
    )]
    NotChildless,
    /// The peer did not answer a request on an established IKE SA.
    #[error("the peer did not answer {attempts} times; it is gone or unreachable")]
    PeerGone {
        /// Number of times the request was sent.
        attempts: u32,
    },
    /// The peer refused our first message by an unauthenticated notify, and sent no other answer
    /// until we gave up.
    #[error("the peer refused our first message: {notify}")]
    Refused {
        /// The notify. Any host on the path could have forged it.
        notify: NotifyType,
    },
    /// The keys of the IKE SA or of a child SA expired.
    #[error("the keys reached the end of their lifetime, and the peer did not rekey")]
    LifetimeOver,
    /// The peer repeatedly lost the state of a rekey with additional key exchanges.
    #[error(
        "the peer lost the state of a rekey 5 times in a row: its implementation is faulty, or the path loses nearly all packets"
    )]
    Forgetful,
    /// The last authentication is too old.
    #[error("the last authentication is older than allowed, and re-authentication did not succeed")]
    ProofTooOld,
    /// The peer did not answer on the new path of a clone, or did not create all child SAs there.
    #[error("the peer did not answer on the new path, or did not create all tunnels there")]
    NotFollowed,
    /// The peer redirected us to a gateway that the configuration does not list.
    #[error("the peer redirected us to {to}, which is not listed here as its gateway")]
    RedirectNotListed {
        /// Address or name of that gateway.
        to: String,
    },
    /// The peer and the gateways it redirected us to did so too often.
    #[error("the peer and the gateways it named redirected us more than 5 times in 300 s")]
    RedirectedTooOften,
    /// A configuration change requires other terms.
    #[error("the configuration changed: the IKE SA is established again")]
    Reconfigured,
    /// The peer was removed from the configuration.
    #[error("the peer was removed from the configuration")]
    Removed,
    /// A newer IKE SA with the same peer replaced it.
    #[error("replaced by a newer IKE SA of the same peer")]
    Replaced,
    /// The peer violated the protocol.
    #[error("the peer violated the protocol: {0}")]
    Misbehaved(PeerMisbehaved),
    /// The peer reported a syntax error in one of our messages.
    #[error(
        "the peer could not parse our message ({notify}): one of the implementations is faulty"
    )]
    Unreadable {
        /// INVALID_SYNTAX or UNSUPPORTED_CRITICAL_PAYLOAD.
        notify: NotifyType,
    },
    /// A TCP connection could not be made, or was lost before the IKE SA was established.
    #[error("no TCP connection to {to}")]
    NotConnected {
        /// Remote address and port.
        to: SocketAddr,
    },
    /// The TCP connection is up, but the peer does not answer on it.
    #[error("{to} accepts our TCP connection, but does not answer")]
    StreamUnanswered {
        /// Remote address and port.
        to: SocketAddr,
    },
    /// The peer did not answer at all.
    #[error("no answer from {address}")]
    Unreachable {
        /// Remote address.
        address: IpAddr,
    },
    /// The peer's proof does not verify with the pre-shared key.
    #[error("the pre-shared key of the peer does not match ours")]
    WrongKey,
    /// The peer accepted our ticket, but does not know the keys of the session.
    #[error("the peer accepted our ticket, but does not know the keys of the session")]
    NotResumed,
    /// The peer authenticated as another identity than expected.
    #[error("the peer is {theirs}, but the configuration expects {expected}")]
    WrongIdentity {
        /// Identity that the peer sent.
        theirs: Identity,
        /// Configured identity.
        expected: Identity,
    },
    /// The peer answered with more zones or licences than we offered.
    #[error("the peer answered with more zones or licences than we offered; none are accepted")]
    ZonesWidened,
    /// Zones are required here, and the peer did not agree to them.
    #[error("zones are required here, but the peer did not agree to ours")]
    ZonesRequired,
}

impl DownReason {
    /// Returns true if this end was asked for it: by a command, or by its configuration.
    pub const fn is_intended(&self) -> bool {
        matches!(self, Self::ClosedHere | Self::Reconfigured | Self::Removed)
    }

    /// Returns true if what the peer has proved counts no more: its certificate was revoked, or our
    /// configuration demands another proof.
    pub const fn ends_trust(&self) -> bool {
        matches!(self, Self::BadProof(_) | Self::Reconfigured)
    }

    /// Returns true if a setting of one end does not fit the other's, such as a key or the
    /// algorithms. It may have been changed at one end only so far, so the next attempts follow
    /// soon.
    pub const fn is_disagreement(&self) -> bool {
        matches!(
            self,
            Self::AuthenticationRefused { .. }
                | Self::PpkRefused { .. }
                | Self::NoPpk
                | Self::CertificateRefused { .. }
                | Self::KeyRefused { .. }
                | Self::BadProof(_)
                | Self::SignatureNotAccepted(_)
                | Self::WrongKey
                | Self::WrongIdentity { .. }
                | Self::Refused { .. }
                | Self::ChildRefused {
                    notify: NotifyType::NO_PROPOSAL_CHOSEN | NotifyType::TS_UNACCEPTABLE
                }
                | Self::Mode(_)
                | Self::NoAddress
                | Self::ZonesRequired
        )
    }
}

/// Returns the phrase for the defect that a peer found in our certificate.
const fn defect(why: Option<CertificateRefusal>) -> &'static str {
    match why {
        Some(CertificateRefusal::EXPIRED) => "the certificate or its CA has expired",
        Some(CertificateRefusal::NOT_YET_VALID) => "the certificate is not valid yet there",
        Some(CertificateRefusal::UNKNOWN_AUTHORITY) => "our CA is not trusted there",
        Some(CertificateRefusal::WRONG_NAME) => "our identity is not a name in the certificate",
        Some(CertificateRefusal::WRONG_UNIT) => "its organisational unit is another",
        Some(CertificateRefusal::WRONG_USAGE) => "its key usage does not allow IKE",
        Some(CertificateRefusal::WRONG_SIGNATURE) => "our signature does not verify",
        Some(CertificateRefusal::REVOKED) => "the certificate was revoked",
        Some(CertificateRefusal::REVOCATION_UNKNOWN) => "the peer cannot check its revocation",
        Some(CertificateRefusal::UNSUPPORTED) => "the peer does not support a part of its chain",
        Some(_) => "the certificate violates RFC 5280",
        None => {
            "our identity is unknown or has a pre-shared key or a public key there, or our CA is not trusted there"
        }
    }
}

/// A protocol violation that only a faulty or hostile peer commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// A protected message cannot be parsed.
    #[error("a protected message cannot be parsed")]
    InvalidSyntax,
    /// A protected message lacks or repeats payloads of its exchange.
    #[error("a protected message lacks or repeats payloads")]
    WrongPayloads,
    /// A protected request belongs to an exchange that is not possible in this state.
    #[error("a protected message belongs to an exchange that is not possible in this state")]
    UnexpectedExchange,
    /// The peer's value for an additional key exchange is invalid.
    #[error("its value for the additional key exchange is invalid")]
    BadKem,
    /// The peer returned another COOKIE2 than ours, or none.
    #[error("it answered an address check with a wrong COOKIE2")]
    Cookie,
    /// A protected request has a critical payload of an unknown type.
    #[error("a message has a critical payload of an unknown type")]
    UnsupportedCritical,
}
