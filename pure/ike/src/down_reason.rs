//! Reasons for which an IKE SA is down.

use crate::advice::{advice, cutter, refusal_of_ours};
use crate::bad_proof::BadProof;
use crate::extension::fragment::Uncut;
use crate::extension::mode::BadMode;
use crate::signature::NotVerified;
use model::Identity;
use std::net::{IpAddr, SocketAddr};
use wire::ike::{CertificateRefusal, NotifyType};

/// Reason for which an IKE SA is down. `Display` is meant for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DownReason {
    /// The peer closed the IKE SA.
    #[error("the peer closed it")]
    ClosedByPeer,
    /// The caller closed the IKE SA.
    #[error("closed on request")]
    ClosedHere,
    /// The peer refused our authentication, made with a pre-shared key.
    #[error(
        "the peer refused our authentication (AUTHENTICATION_FAILED): our identity {ours} is unknown there, the pre-shared keys differ, or it requires a `ppk`; compare `id` and `psk` at both ends"
    )]
    AuthenticationRefused {
        /// Identity that we sent.
        ours: Identity,
    },
    /// The peer refused our authentication, which includes a PPK.
    #[error(
        "the peer refused our authentication (AUTHENTICATION_FAILED): the PPK `{id}` or our identity {ours} is unknown there, or the keys differ; compare `ppk`, `id` and `psk` at both ends"
    )]
    PpkRefused {
        /// Identity that we sent.
        ours: Identity,
        /// Name of the PPK.
        id: String,
    },
    /// A PPK is required here, and the peer does not use it.
    #[error(
        "a PPK is required here, and the peer does not use ours (RFC 8784): give it the same `ppk`, or write `required = false` in `ppk` here"
    )]
    NoPpk,
    /// The peer refused our certificate.
    #[error(
        "the peer refused our certificate for {ours} (AUTHENTICATION_FAILED): {}",
        refusal_of_ours(*.why)
    )]
    CertificateRefused {
        /// Identity that we sent.
        ours: Identity,
        /// Reason that the peer gave, if it sent our private notify.
        why: Option<CertificateRefusal>,
    },
    /// The peer refused our raw public key.
    #[error(
        "the peer refused our public key (AUTHENTICATION_FAILED): our identity {ours} is unknown there, or its `pubkey` for us is not our key; `strata pki pubkey` prints ours"
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
    #[error("our private key cannot sign: look at `cert` and `key` in [node]")]
    CannotSign,
    /// The peer answered IKE_SA_INIT, but not IKE_AUTH.
    #[error(
        "the peer answered at first, but not on UDP port {port}; does a firewall block that port?"
    )]
    AuthUnanswered {
        /// UDP port that both ends moved to.
        port: u16,
    },
    /// The same, and our IKE_AUTH request was so long that IP had to fragment it.
    #[error(
        "the peer answered at first, but not the {} octets that prove who we are: IP cuts messages of that length, and many firewalls drop the parts; {}",
        .0.octets,
        cutter(.0.ours)
    )]
    LongAuthUnanswered(Uncut),
    /// The peer answered IKE_SA_INIT, but not the additional key exchange, which was so long that
    /// IP had to fragment it.
    #[error(
        "the peer answered at first, but not the {} octets of the additional key exchange: IP cuts messages of that length, and many firewalls drop the parts; {}",
        .0.octets,
        cutter(.0.ours)
    )]
    LongKemUnanswered(Uncut),
    /// The peer refused the additional key exchange that it had agreed to.
    #[error("the peer refused the additional key exchange: {notify}; {}", advice(*.notify))]
    KemRefused {
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// No key could be generated for an additional key exchange.
    #[error(
        "no key for the additional key exchange can be drawn: this machine has no memory left, or no randomness"
    )]
    NoKemKey,
    /// The peer refused to create the child SA.
    #[error("the peer refused the tunnel: {notify}; {}", advice(*.notify))]
    ChildRefused {
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// The peer deleted the last child SA, without which the IKE SA has no purpose.
    #[error("the peer deleted the tunnel")]
    ChildDeleted,
    /// The peer chose something that we did not offer.
    #[error("the peer broke the protocol: it chose what we did not offer ({0})")]
    NotOffered(&'static str),
    /// The child SA cannot have the configured mode.
    #[error("{0}")]
    Mode(#[from] BadMode),
    /// The peer assigned us no inner address, although we requested one.
    #[error(
        "the peer gives us no address inside: give it a pool of addresses there, or list ours in `local` here and in [tunnel]"
    )]
    NoAddress,
    /// The peer lacks NAT traversal, but only ESP in UDP is supported here.
    #[error(
        "the peer does not detect NATs; without that there is no ESP in UDP, the only encapsulation here"
    )]
    NoNatTraversal,
    /// The peer does not support IKE SAs without a child SA.
    #[error(
        "the peer cannot hold an IKE SA without a child (RFC 6023), so it cannot be a licensed node or a gateway for one"
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
    #[error("the peer refused to begin: {notify}; {}", advice(*.notify))]
    Refused {
        /// The notify. Any host on the path could have forged it.
        notify: NotifyType,
    },
    /// The keys of the IKE SA or of a child SA expired.
    #[error("its keys reached the end of their lifetime, and the peer made no new ones")]
    LifetimeOver,
    /// The peer repeatedly lost the state of a rekey with additional key exchanges.
    #[error(
        "the peer forgot 5 times in a row which new keys it was agreeing on with us: a fault of its implementation, or the path loses nearly everything"
    )]
    Forgetful,
    /// The last authentication is too old.
    #[error(
        "both ends proved who they are longer ago than `reauth` allows, and it was not done again; the log says why"
    )]
    ProofTooOld,
    /// The peer did not answer on the new path of a clone, or did not create all child SAs there.
    #[error(
        "the peer did not answer there, or did not agree to all there that it agrees to here; its log may say more"
    )]
    NotFollowed,
    /// The peer redirected us to a gateway that the configuration does not list.
    #[error(
        "the peer sends us to {to}, which `redirect` in its table does not list; add it there if that is a gateway of the peer's"
    )]
    RedirectNotListed {
        /// Address or name of that gateway.
        to: String,
    },
    /// The peer and the gateways it redirected us to did so too often.
    #[error(
        "the peer, and those it sent us to, sent us on more than 5 times in 300 s: look at their `redirect`, which may lead in a circle"
    )]
    RedirectedTooOften,
    /// A configuration change requires other terms.
    #[error("its configuration changed: it is made anew")]
    Reconfigured,
    /// The peer was removed from the configuration.
    #[error("it was taken out of the configuration")]
    Removed,
    /// A newer IKE SA with the same peer replaced it.
    #[error("replaced by a newer IKE SA of the same peer")]
    Replaced,
    /// The peer violated the protocol.
    #[error("the peer broke the protocol: {0}")]
    Misbehaved(PeerMisbehaved),
    /// The peer reported a syntax error in one of our messages.
    #[error(
        "the peer could not read our message ({notify}): a fault of one of the implementations"
    )]
    Unreadable {
        /// INVALID_SYNTAX or UNSUPPORTED_CRITICAL_PAYLOAD.
        notify: NotifyType,
    },
    /// A TCP connection could not be made, or was lost before the IKE SA was established.
    #[error(
        "no TCP connection with {to}: is the peer running there with `tcp = {}` in its [listen], and does a firewall let that port pass?",
        .to.port()
    )]
    NotConnected {
        /// Remote address and port.
        to: SocketAddr,
    },
    /// The TCP connection is up, but the peer does not answer on it.
    #[error(
        "{to} takes our TCP connection and does not answer; does another program listen at that port? compare `tcp_port` here with `tcp` in the peer's [listen]"
    )]
    StreamUnanswered {
        /// Remote address and port.
        to: SocketAddr,
    },
    /// The peer did not answer at all.
    #[error(
        "no answer from {address}; is the peer running there, and does a firewall let UDP ports 500 and 4500 pass?"
    )]
    Unreachable {
        /// Remote address.
        address: IpAddr,
    },
    /// The peer's proof does not verify with the pre-shared key.
    #[error("the pre-shared key of the peer does not match ours: compare `psk` at both ends")]
    WrongKey,
    /// The peer authenticated as another identity than expected.
    #[error(
        "the peer is {theirs}, but the configuration expects {expected}: change `id` here or there"
    )]
    WrongIdentity {
        /// Identity that the peer sent.
        theirs: Identity,
        /// Configured identity.
        expected: Identity,
    },
    /// The peer answered with more zones or licences than we offered.
    #[error("the peer widened the zones or licences we offered; nothing of that is accepted")]
    ZonesWidened,
    /// Zones are required here, and the peer did not agree to them.
    #[error(
        "zones are required here, but the peer did not agree to ours: set its `zones` like ours, or `zones = \"accept\"` here"
    )]
    ZonesRequired,
}

impl DownReason {
    /// Returns true if one end refused the other's proof of identity. A key may have been changed
    /// at one end only, so the next attempts follow soon.
    pub const fn is_wrong_key(&self) -> bool {
        matches!(
            self,
            Self::AuthenticationRefused { .. }
                | Self::PpkRefused { .. }
                | Self::CertificateRefused { .. }
                | Self::KeyRefused { .. }
                | Self::WrongKey
        )
    }
}

/// A protocol violation that only a faulty or hostile peer commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// A protected message cannot be parsed.
    #[error("a protected message cannot be read")]
    InvalidSyntax,
    /// A protected message lacks or repeats payloads of its exchange.
    #[error("a protected message lacks or repeats payloads")]
    WrongPayloads,
    /// A protected request belongs to an exchange that is not possible in this state.
    #[error("a protected message belongs to no exchange that could come now")]
    UnexpectedExchange,
    /// The peer's value for an additional key exchange is invalid.
    #[error("its value for the additional key exchange is not acceptable")]
    BadKem,
    /// The peer returned another COOKIE2 than ours, or none.
    #[error("it answered a check of its address with another cookie")]
    Cookie,
    /// A protected request has a critical payload of an unknown type.
    #[error("a message holds a critical payload of an unknown type")]
    UnsupportedCritical,
}
